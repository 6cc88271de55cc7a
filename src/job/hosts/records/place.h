/* place.h - where the tasks of a host keep the run folder: the agent's side.
 *
 * The launcher has put a file into its run folder and asks whether it is
 * visible here.  If so, the tasks write there.  If not, they write to a folder
 * of this host, and their records are sent to the launcher (source.h); what a
 * resumed run needs is sent here before they start (sink.h).
 *
 * Threads: one. */
#ifndef PL_JOB_HOSTS_RECORDS_PLACE_H
#define PL_JOB_HOSTS_RECORDS_PLACE_H

#include "base/error.h"
#include "job/hosts/records/sink.h"
#include "job/hosts/records/source.h"

#define PL_RUN_PLACE_TOKEN 32 /* hexadecimal digits */
/* In the launcher's run folder while it asks; the token follows. */
#define PL_RUN_PLACE_MARK ".launch-"

typedef struct pl_run_place {
    char *run; /* a folder made here; NULL: the launcher's, or not yet
                  requested */
    pl_record_source *source; /* of `run` */
    pl_record_sink *sink;     /* ... before the tasks start */
    pl_error failed;          /* the first failure of the sink */
    bool sent;                /* the launcher has everything; true also before a
                                 task was started */
} pl_run_place;

/* `cache`: where the host's own folder is made; NULL: nowhere.  `source`: how
 * to send; its folder is set here. */
typedef struct pl_run_place_opts {
    const char *cache;
    pl_record_source_opts source;
} pl_run_place_opts;

/* The question "place": `folder` and, for a run that has a folder, `run` and
 * `token`.  Changes to `folder`; the answer has `run` and `shared`. */
pl_status pl_run_place_answer(pl_run_place *place,
                              const pl_run_place_opts *opts,
                              const pl_json *question,
                              pl_json *answer) PL_MUST_CHECK;
/* Take a record that a resumed run needs. */
void pl_run_place_take(pl_run_place *place, const pl_control_message *message);
/* The question "stored": all of these have arrived. */
pl_status pl_run_place_stored(pl_run_place *place) PL_MUST_CHECK;

/* Removes the folder when the launcher has all of it; may be zeroed. */
void pl_run_place_close(pl_run_place *place);

#endif
