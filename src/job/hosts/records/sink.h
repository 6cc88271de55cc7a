/* sink.h - takes the records of one host into a run folder.
 *
 * What comes is what source.h sends there, and is checked: only files that are
 * records (record_file.h), in order, at most PL_RECORD_CHUNK bytes at once.  A
 * whole file gets its name when it is complete.  Where a file that grows has
 * the name of another host's, it gets a number: resources/node-2.csv.  One that
 * the host was sent for a resumed run goes on where it ended.
 *
 * Threads: one. */
#ifndef PL_JOB_HOSTS_RECORDS_SINK_H
#define PL_JOB_HOSTS_RECORDS_SINK_H

#include "job/supervise/messages.h"

typedef struct pl_record_sink pl_record_sink;

/* `run` must be there. */
pl_status pl_record_sink_new(pl_record_sink **out,
                             const char *run) PL_MUST_CHECK;
/* A whole file that is not complete is removed; NULL is fine. */
void pl_record_sink_free(pl_record_sink *sink);

/* PL_PEER: not a record, or not the piece of it that was to come next, which is
 * left out; PL_IO: cannot be written. */
pl_status pl_record_sink_take(pl_record_sink *sink,
                              const pl_control_message *message) PL_MUST_CHECK;

#endif
