/* store.h - the blocks of A and B that one worker holds.
 *
 * They lie in shared memory that other processes of the host read in place.
 *
 * Threads: constant once made. */
#ifndef PL_MATMUL_STORE_H
#define PL_MATMUL_STORE_H

#include "matmul/entries.h"
#include "net/shm/area.h"

typedef struct pl_store pl_store;

/* The placement is borrowed. */
pl_status pl_store_new(pl_store **out, const pl_placement *placement,
                       int32_t worker) PL_MUST_CHECK;
void pl_store_free(pl_store *store); /* may be NULL */

/* Compute all entries; may take long. */
void pl_store_fill(pl_store *store);

/* Row by row; NULL when another worker holds it. */
const float *pl_store_block(const pl_store *store, int matrix, int32_t i,
                            int32_t j);
pl_area *pl_store_area(const pl_store *store);

#endif
