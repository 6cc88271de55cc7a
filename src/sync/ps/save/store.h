/* store.h - a parameter server's checkpoints on disk, written and read by the
 * writer (state/writer.h) while the server continues.
 *
 * One operation at a time: it is begun, and later `poll` returns its result.
 * While a shard is written from memory that changes, `touch` copies what is
 * about to change (state/frozen.h).
 *
 * Threads: driven by one. */
#ifndef PL_SYNC_PS_SAVE_STORE_H
#define PL_SYNC_PS_SAVE_STORE_H

#include "state/partition.h"
#include "sync/ps/core/core.h"

typedef struct pl_ps_store pl_ps_store;

/* All pointers are borrowed; the planes cover the same range. */
pl_status pl_ps_store_new(pl_ps_store **out,
                          const pl_partition_opts *opts) PL_MUST_CHECK;
void pl_ps_store_free(pl_ps_store *store); /* waits for the disk */

/* Keep checkpoints in this run folder, which was verified to be the job's.  To
 * be called before the first operation. */
pl_status pl_ps_store_place(pl_ps_store *store, const char *run) PL_MUST_CHECK;

/* As the ops of core.h. */
bool pl_ps_store_save(pl_ps_store *store, const char *plan, size_t bytes);
bool pl_ps_store_commit(pl_ps_store *store, const pl_ps_part *parts);
bool pl_ps_store_load(pl_ps_store *store, const char *plan, size_t bytes);
void pl_ps_store_cancel(pl_ps_store *store);
bool pl_ps_store_touch(pl_ps_store *store, int64_t first, int64_t count);

/* Whether an operation is under way. */
bool pl_ps_store_busy(pl_ps_store *store);
/* True once for each operation that ended and was not cancelled; `why` is valid
 * until the next call. */
bool pl_ps_store_poll(pl_ps_store *store, pl_ps_stored *out);

#endif
