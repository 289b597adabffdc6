/*
 * Metrics and traces: registering for them, and Fluent Bit's own functions that read them. All
 * of that is looked up in the running host, and may be missing there.
 */
#ifndef OKR_TELEMETRY_H
#define OKR_TELEMETRY_H

#include <stddef.h>

/* The numbers of Fluent Bit's event types. */
enum { OKR_EVENT_LOGS = 1, OKR_EVENT_METRICS = 2, OKR_EVENT_TRACES = 4 };

/* okr_register_events has the host send us metrics and traces beside logs, if it has functions that
 * read them and it is certain that def, its register struct, has a place for that; 1 if it will. */
int okr_register_events(void *def);

/* okr_otlp makes an OTLP protobuf message of the context at data[*at:] and moves *at behind it.
 * The message is to be given back to okr_otlp_free. NULL: *at has moved if the context could be
 * read but not written, and not moved if it could not be read. */
char *okr_otlp(int event, const char *data, size_t size, size_t *at, size_t *length);
void okr_otlp_free(int event, char *message);

#endif
