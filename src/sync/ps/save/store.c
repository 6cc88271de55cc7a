/* A server's checkpoints: passes the core's requests to the writer
 * (state/writer.h), and the outcome to the core. */
#include "sync/ps/save/store.h"

#include "base/mem.h"
#include "state/writer.h"

struct pl_ps_store {
    pl_writer *writer;
    int32_t of;
    pl_manifest_shard *shards; /* [of] */
    pl_written told;           /* the result that poll returned */
};

pl_status pl_ps_store_new(pl_ps_store **out, const pl_partition_opts *opts)
{
    pl_status status;
    pl_ps_store *store;
    PL_TRY(PL_NEW(store, 1));
    store->of = opts->of;
    PL_TRY_OUT(status, PL_NEW(store->shards, (size_t)opts->of));
    PL_TRY_OUT(status, pl_writer_new(&store->writer, opts));
    *out = store;
    return PL_OK;
out:
    pl_ps_store_free(store);
    return status;
}

void pl_ps_store_free(pl_ps_store *store)
{
    if (store == NULL)
        return;
    pl_writer_free(store->writer);
    pl_mem_free(store->shards);
    pl_mem_free(store);
}

pl_status pl_ps_store_place(pl_ps_store *store, const char *run)
{
    return pl_writer_place(store->writer, run);
}

bool pl_ps_store_save(pl_ps_store *store, const char *plan, size_t bytes)
{
    return pl_writer_shard(store->writer, plan, bytes);
}

bool pl_ps_store_commit(pl_ps_store *store, const pl_ps_part *parts)
{
    for (int32_t j = 0; j < store->of; j++) {
        pl_manifest_shard_name(store->shards[j].name, j, store->of);
        store->shards[j].bytes = parts[j].bytes;
        store->shards[j].crc32c = parts[j].crc32c;
    }
    return pl_writer_commit(store->writer, store->shards);
}

bool pl_ps_store_load(pl_ps_store *store, const char *plan, size_t bytes)
{
    return pl_writer_load(store->writer, plan, bytes);
}

void pl_ps_store_cancel(pl_ps_store *store)
{
    pl_writer_cancel(store->writer);
}

bool pl_ps_store_touch(pl_ps_store *store, int64_t first, int64_t count)
{
    return pl_frozen_touch(pl_writer_frozen(store->writer), first, count);
}

bool pl_ps_store_busy(pl_ps_store *store)
{
    return pl_writer_busy(store->writer);
}

static pl_saved outcome_of(pl_status status)
{
    if (status == PL_OK)
        return PL_SAVED_GOOD;
    return status == PL_NUMERIC ? PL_SAVED_NUMERIC : PL_SAVED_FAILED;
}

bool pl_ps_store_poll(pl_ps_store *store, pl_ps_stored *out)
{
    pl_written *told = &store->told;
    if (!pl_writer_poll(store->writer, told))
        return false;
    *out = (pl_ps_stored) {
        .outcome = outcome_of(told->error.status),
        .bytes = told->shard.bytes,
        .crc32c = told->shard.crc32c,
        .why = told->error.message,
    };
    return true;
}
