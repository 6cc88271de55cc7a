/* sink.h - takes the records of one host into a run folder.
 *
 * The messages come from source.h on the host, and are checked: only files that
 * are records (record_file.h), in order, at most PL_RECORD_CHUNK bytes at once.
 * A whole file gets its name when it is complete.  If a file that grows has the
 * name of another host's file, it gets a number: resources/node-2.csv.  A file
 * that was sent to the host for a resumed run continues where it ended.
 *
 * Threads: one. */
#ifndef PL_JOB_HOSTS_RECORDS_SINK_H
#define PL_JOB_HOSTS_RECORDS_SINK_H

#include "job/supervise/messages.h"

typedef struct pl_record_sink pl_record_sink;

/* `run` must exist. */
pl_status pl_record_sink_new(pl_record_sink **out,
                             const char *run) PL_MUST_CHECK;
/* A whole file that is not complete is removed; may be NULL. */
void pl_record_sink_free(pl_record_sink *sink);

/* PL_PEER: not a record, or not the next piece of it; it is skipped.  PL_IO:
 * cannot be written. */
pl_status pl_record_sink_take(pl_record_sink *sink,
                              const pl_control_message *message) PL_MUST_CHECK;

#endif
