/* source.h - sends the records of a run folder, as they grow.
 *
 * Scans the folder periodically (record_file.h) and sends what is new in
 * messages of at most PL_RECORD_CHUNK bytes, one file after the other: growing
 * files from where the last message ended, whole files once they have their
 * name.  A checkpoint is sent once it is complete, its manifest last; a removed
 * one is reported as gone.
 *
 * Threads: one. */
#ifndef PL_JOB_HOSTS_RECORDS_SOURCE_H
#define PL_JOB_HOSTS_RECORDS_SOURCE_H

#include "job/supervise/messages.h"

typedef struct pl_record_source pl_record_source;

typedef pl_status pl_record_send(void *context,
                                 const pl_control_message *message);

typedef struct pl_record_source_opts {
    const char *run;      /* required: the folder */
    bool resume;          /* only what a resumed run needs: run.json, the
                             newest complete checkpoint, and the tables of
                             resources, to which hosts append */
    int64_t every_ms;     /* between scans of the folder; default 500 */
    pl_record_send *send; /* required */
    void *context;
} pl_record_source_opts;

pl_status pl_record_source_new(pl_record_source **out,
                               const pl_record_source_opts *opts) PL_MUST_CHECK;
void pl_record_source_free(pl_record_source *source); /* may be NULL */

/* The current content was received: do not send it. */
pl_status pl_record_source_skip(pl_record_source *source) PL_MUST_CHECK;

/* Send the next message, if there is anything new; *sent: there was.  With
 * `look` the folder is scanned even when that is not due, so that nothing is
 * left when *sent is false.  A file that cannot be read is skipped; a failure
 * of `send` is returned. */
pl_status pl_record_source_step(pl_record_source *source, bool look,
                                bool *sent) PL_MUST_CHECK;

#endif
