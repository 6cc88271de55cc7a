/* progress.h - the progress of a run, saved in a checkpoint beside the tensors.
 *
 * Threads: a value. */
#ifndef PL_STATE_PROGRESS_H
#define PL_STATE_PROGRESS_H

#include "base/json/json.h"
#include "base/position.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct pl_progress {
    int64_t step;     /* updates made */
    int64_t examples; /* seen by all workers */
    double seconds;   /* of training, without evaluation */
    bool mixed;       /* made with several instruction sets: not reproducible */
    pl_position position; /* of this worker's reader */
    double best_loss;     /* the lowest of the chief's tests; 0: not tested */
    int64_t worse;        /* tests since then, for --patience */
    int64_t bucket_bytes; /* of all-reduced gradients; 0: not all-reduced */
    int64_t link;         /* the pl_link_class that chose a codec; 0: none */
} pl_progress;

/* The manifest's "state" of a run computed with `kernels`; the caller frees
 * *out. */
pl_status pl_progress_json(pl_json **out, const pl_progress *progress,
                           const char *kernels) PL_MUST_CHECK;

/* Read it back, except the step, which is in the manifest.  If other kernels
 * than `kernels` computed it, warn and set `mixed`. */
pl_status pl_progress_read(pl_progress *out, const pl_json *state,
                           const char *kernels) PL_MUST_CHECK;

#endif
