/* source.h - sends the records of a run folder, as they grow.
 *
 * Looks through the folder now and then (record_file.h) and makes messages of
 * what is new, at most PL_RECORD_CHUNK bytes each, one file after the other:
 * what grows from where the last message ended, what is written whole when it
 * is there under its name.  A checkpoint goes once it is complete, its
 * manifest last; one that the run has removed is told to be gone.
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
    int64_t every_ms;     /* between looks through the folder; default 500 */
    pl_record_send *send; /* required */
    void *context;
} pl_record_source_opts;

pl_status pl_record_source_new(pl_record_source **out,
                               const pl_record_source_opts *opts) PL_MUST_CHECK;
void pl_record_source_free(pl_record_source *source); /* NULL is fine */

/* What is there now came from elsewhere: it is not sent. */
pl_status pl_record_source_skip(pl_record_source *source) PL_MUST_CHECK;

/* Send the next message, where there is something new; *sent: there was.  With
 * `look` the folder is looked through also when that is not due, so that
 * nothing is left when *sent is false.  A file that cannot be read is skipped;
 * what `send` returns is returned. */
pl_status pl_record_source_step(pl_record_source *source, bool look,
                                bool *sent) PL_MUST_CHECK;

#endif
