//go:build cgo

package main

/*
#include <stdio.h>
#include <stdlib.h>

// Declared here and not taken from rdkafka.h, so that this package needs no include
// path; the kafka package below brings the static library to the link.
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
typedef struct rd_kafka_topic_conf_s rd_kafka_topic_conf_t;
extern void rd_kafka_conf_properties_show(FILE *fp);
extern const char *rd_kafka_version_str(void);
extern rd_kafka_conf_t *rd_kafka_conf_new(void);
extern void rd_kafka_conf_destroy(rd_kafka_conf_t *conf);
extern const char **rd_kafka_conf_dump(rd_kafka_conf_t *conf, size_t *cntp);
extern void rd_kafka_conf_dump_free(const char **arr, size_t cnt);

// docgen_show returns what rd_kafka_conf_properties_show prints; the caller frees it.
static char *docgen_show(void) {
	char *text = NULL;
	size_t len = 0;
	FILE *fp = open_memstream(&text, &len);
	if (fp == NULL)
		return NULL;
	rd_kafka_conf_properties_show(fp);
	fclose(fp);
	return text;
}
*/
import "C"

import (
	"errors"
	"unsafe"

	// Linked for its static librdkafka only; no symbol of the Go client is used.
	_ "github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// libraryNames asks the linked librdkafka for its properties.
func libraryNames() ([]byte, error) {
	text := C.docgen_show()
	if text == nil {
		return nil, errors.New("listing librdkafka's properties: out of memory")
	}
	defer C.free(unsafe.Pointer(text))
	return renderNames(C.GoString(C.rd_kafka_version_str()), C.GoString(text), dumpedNames())
}

// dumpedNames are the names that rd_kafka_conf_dump lists: those with a value, among
// them a few that the table hides.
func dumpedNames() []string {
	conf := C.rd_kafka_conf_new()
	defer C.rd_kafka_conf_destroy(conf)
	var n C.size_t
	dump := C.rd_kafka_conf_dump(conf, &n)
	defer C.rd_kafka_conf_dump_free(dump, n)
	var names []string
	for i, s := range unsafe.Slice(dump, int(n)) {
		if i%2 == 0 { // names and values alternate
			names = append(names, C.GoString(s))
		}
	}
	return names
}
