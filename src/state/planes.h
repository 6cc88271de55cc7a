/* planes.h - the memory that a checkpoint saves.
 *
 * Parameters lie in one block (tensor/params.h), and so does each slot of an
 * optimizer, in the same layout.  Each of these blocks, or the same range of
 * each, is a plane: plane 0 the parameters, then the slots, then what each
 * worker holds back of its gradients (sync/allreduce/held.h).
 *
 * Threads: a value. */
#ifndef PL_STATE_PLANES_H
#define PL_STATE_PLANES_H

#define PL_PLANES_MOST 132

typedef struct pl_planes {
    int count;                         /* 0: other processes hold the memory */
    float *data[PL_PLANES_MOST];       /* borrowed */
    const char *slots[PL_PLANES_MOST]; /* their names; plane 0 has none */
} pl_planes;

#endif
