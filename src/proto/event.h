/* event.h - the records of TensorBoard's event files, as bytes.
 *
 * Each call appends one record to the end of a buffer: an Event message
 * (event.proto, packed by protobuf-c) in the frame of a TFRecord file.  Times
 * are seconds since 1970.  Out of memory, nothing is appended and
 * pl_buffer_status returns the error.
 *
 * Threads: the caller's. */
#ifndef PL_PROTO_EVENT_H
#define PL_PROTO_EVENT_H

#include "base/buffer.h"
#include "base/record/histogram.h"

#include <stdbool.h>

/* The first record of every file. */
void pl_event_version(pl_buffer *out, double time);
/* The run resumes at `step`: records of later steps are void. */
void pl_event_restart(pl_buffer *out, double time, int64_t step);

void pl_event_scalar(pl_buffer *out, double time, int64_t step, const char *tag,
                     double value);
void pl_event_histogram(pl_buffer *out, double time, int64_t step,
                        const char *tag, const pl_histogram *histogram);

/* One node of a model's graph. */
typedef struct pl_event_node {
    const char *name;
    const char *op;
    const char *device;        /* "/job:ps/task:0" */
    const char *const *inputs; /* names of nodes */
    int input_count;
    const int64_t *sizes; /* of the result; -1: the batch */
    int rank;
    bool integers;
} pl_event_node;
void pl_event_graph(pl_buffer *out, double time, const pl_event_node *nodes,
                    int count);

/* A hyperparameter: the text as typed; a number is shown as a number. */
typedef struct pl_event_hparam {
    const char *name;
    const char *text;
} pl_event_hparam;
#define PL_EVENT_HPARAMS 64 /* the most */
void pl_event_hparams(pl_buffer *out, double time,
                      const pl_event_hparam *hparams, int count);
/* The end of the run with these hyperparameters. */
void pl_event_end(pl_buffer *out, double time, bool success);

#endif
