package rdkafka

/*
#include <stdlib.h>
#include "api.h"
#include "okr.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"unsafe"
)

// Property is one setting of librdkafka.
type Property struct {
	Name, Value string
}

// errorTextLen is the room for librdkafka's error texts, which it documents as 512 bytes.
const errorTextLen = 512

// Version returns librdkafka's own version text, for example "2.11.1". It is that of the
// library this program was built with, also in a host that exports another.
func Version() string {
	return C.GoString(C.rd_kafka_version_str())
}

// Features returns the built-in features of the library as it lists them itself, for
// example "gzip,snappy,ssl,sasl_scram".
func Features() string {
	conf := C.rd_kafka_conf_new()
	defer C.rd_kafka_conf_destroy(conf)
	return confGet(conf, "builtin.features")
}

// CheckProperty tells whether librdkafka takes the value for the property: nil, or an
// error that is librdkafka's own text. The check covers one value, not what it means
// together with others.
func CheckProperty(name, value string) error {
	conf := C.rd_kafka_conf_new()
	defer C.rd_kafka_conf_destroy(conf)
	return confSet(conf, name, value)
}

// CheckAll tells whether librdkafka makes a producer of the properties: nil, or its own
// text. Files are as in [Options]. It opens no connection.
func CheckAll(properties, files []Property) error {
	conf, err := newConf(properties, files)
	if err != nil {
		return err
	}
	defer C.rd_kafka_conf_destroy(conf)
	return namingFiles(try(conf), properties)
}

// namingFiles adds the paths to an error of librdkafka, which names the property only.
func namingFiles(err error, properties []Property) error {
	if err == nil {
		return nil
	}
	for _, p := range properties {
		if slices.Contains(fileProperties, p.Name) && strings.Contains(err.Error(), p.Name) {
			err = fmt.Errorf("%w (%s is %q)", err, p.Name, p.Value)
		}
	}
	return err
}

// try makes a handle of a configuration and drops it again.
func try(conf *C.struct_rd_kafka_conf_s) error {
	var text [errorTextLen]C.char
	if C.okr_try(conf, &text[0], C.size_t(len(text))) != 0 {
		return fmt.Errorf("rdkafka: opening a client: %s", C.GoString(&text[0]))
	}
	return nil
}

// Dump returns every property with its value as librdkafka holds it after the given ones
// were set, sorted by name; secrets are included.
func Dump(properties []Property) ([]Property, error) {
	conf, err := newConf(properties, nil)
	if err != nil {
		return nil, err
	}
	defer C.rd_kafka_conf_destroy(conf)
	var n C.size_t
	arr := C.rd_kafka_conf_dump(conf, &n)
	defer C.rd_kafka_conf_dump_free(arr, n)
	pairs := unsafe.Slice(arr, int(n))
	out := make([]Property, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, Property{C.GoString(pairs[i]), C.GoString(pairs[i+1])})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// newConf sets every property in order, then those whose value is in a file; all faults come
// back in one error.
func newConf(properties, files []Property) (*C.struct_rd_kafka_conf_s, error) {
	conf := C.rd_kafka_conf_new()
	var faults []error
	for _, p := range properties {
		if err := confSet(conf, p.Name, p.Value); err != nil {
			faults = append(faults, fmt.Errorf("rdkafka: setting %s: %w", p.Name, err))
		}
	}
	for _, p := range files {
		if err := confSetFromFile(conf, p.Name, p.Value); err != nil {
			faults = append(faults, fmt.Errorf("rdkafka: setting %s: %w", p.Name, err))
		}
	}
	if len(faults) > 0 {
		C.rd_kafka_conf_destroy(conf)
		return nil, errors.Join(faults...)
	}
	return conf, nil
}

// confSetFromFile sets a property to what a file holds, but for the line break at its end, which editors add. The error
// never quotes it, as librdkafka's own text may.
func confSetFromFile(conf *C.struct_rd_kafka_conf_s, name, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	if value == "" {
		return fmt.Errorf("%s is empty", path)
	}
	if confSet(conf, name, value) != nil {
		return fmt.Errorf("librdkafka refuses what %s holds", path)
	}
	return nil
}

func confSet(conf *C.struct_rd_kafka_conf_s, name, value string) error {
	if strings.ContainsRune(name, 0) || strings.ContainsRune(value, 0) {
		return errors.New("the name or value contains a NUL byte")
	}
	n, v := C.CString(name), C.CString(value)
	defer C.free(unsafe.Pointer(n))
	defer C.free(unsafe.Pointer(v))
	var text [errorTextLen]C.char
	if C.rd_kafka_conf_set(conf, n, v, &text[0], C.size_t(len(text))) != C.OKR_CONF_OK {
		return errors.New(C.GoString(&text[0]))
	}
	return nil
}

func confGet(conf *C.struct_rd_kafka_conf_s, name string) string {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	var size C.size_t
	if C.rd_kafka_conf_get(conf, n, nil, &size) != C.OKR_CONF_OK || size == 0 {
		return ""
	}
	buf := make([]byte, int(size)+1)
	if C.rd_kafka_conf_get(conf, n, (*C.char)(unsafe.Pointer(&buf[0])), &size) != C.OKR_CONF_OK {
		return ""
	}
	return C.GoString((*C.char)(unsafe.Pointer(&buf[0])))
}
