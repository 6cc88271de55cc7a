/* timeline.h - the events of a run and their times: timeline.jsonl, one line
 * per event.
 *
 * Losses, restarts, rollbacks, checkpoints and tests, written by the tasks and
 * the supervisor that observe them, each by one write to the end of the file,
 * under its lock.  docs/formats/run.md describes it.  A file that cannot be
 * written is reported once and does not end the run.
 *
 * Threads: put from any. */
#ifndef PL_BASE_RECORD_TIMELINE_H
#define PL_BASE_RECORD_TIMELINE_H

#include "base/json/fields.h"

typedef enum pl_event_kind {
    PL_EVENT_START,      /* the job starts, or is resumed, here */
    PL_EVENT_LOST,       /* a task died or timed out: how */
    PL_EVENT_RESTART,    /* a task was started again */
    PL_EVENT_ROLLBACK,   /* the job rolled back: step, from */
    PL_EVENT_CHECKPOINT, /* of a step, begun */
    PL_EVENT_TEST,       /* of a step: test_loss, test_accuracy */
    PL_EVENT_WARNING,    /* of a step: the problem */
} pl_event_kind;

typedef struct pl_run_event {
    double time; /* seconds since 1970; put fills it in */
    pl_event_kind kind;
    char task[64];      /* the affected task; "": put fills it in */
    int64_t step, from; /* -1: not of this kind */
    double test_loss, test_accuracy; /* NAN: likewise */
    char text[200];                  /* how, in words; "": nothing to add */
} pl_run_event;
extern const pl_fields pl_run_event_fields;

/* "start", ...; by kind, then NULL. */
extern const char *const pl_event_kind_names[];

/* An event with all fields but its kind unknown. */
pl_run_event pl_run_event_of(pl_event_kind kind);

typedef struct pl_timeline pl_timeline;

typedef struct pl_timeline_opts {
    const char *folder; /* the run's; required */
    const char *task;   /* the writer: "worker 0"; required */
    bool own_only;      /* leave what concerns the whole job (rollbacks,
                           checkpoints) to its chief */
    /* Optional: called with each event, even when it cannot be written. */
    void (*told)(void *context, const pl_run_event *event);
    void *context;
} pl_timeline_opts;

pl_status pl_timeline_new(pl_timeline **out,
                          const pl_timeline_opts *opts) PL_MUST_CHECK;
void pl_timeline_free(pl_timeline *timeline); /* NULL is fine, also below */
void pl_timeline_put(pl_timeline *timeline, const pl_run_event *event);

/* Append lines that another host put into a file of its own. */
pl_status pl_timeline_append(const char *folder, const char *lines,
                             size_t bytes) PL_MUST_CHECK;

/* The events since the job last started, in the order of time. */
typedef struct pl_run_events {
    pl_run_event *list;
    size_t count;
} pl_run_events;

/* Lines that are not events are skipped; a run without the file has none. */
pl_status pl_run_events_read(pl_run_events *out,
                             const char *folder) PL_MUST_CHECK;
void pl_run_events_close(pl_run_events *events);

#endif
