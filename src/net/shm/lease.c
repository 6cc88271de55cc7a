/* Counts the readers of a mapping, and unmaps it after the last. */
#include "net/shm/lease.h"

#include "base/mem.h"

#include <stdint.h>
#include <sys/mman.h>

struct pl_lease {
    void *data;
    size_t bytes;
    int64_t holds;
};

pl_status pl_lease_new_take(pl_lease **out, void *data, size_t bytes)
{
    pl_lease *lease;
    pl_status status = PL_NEW(lease, 1);
    if (status != PL_OK) {
        munmap(data, bytes);
        return status;
    }
    *lease = (pl_lease) { data, bytes, 1 };
    *out = lease;
    return PL_OK;
}

pl_lease *pl_lease_hold(pl_lease *lease)
{
    if (lease != NULL)
        lease->holds++;
    return lease;
}

void pl_lease_release(pl_lease *lease)
{
    if (lease == NULL || --lease->holds > 0)
        return;
    munmap(lease->data, lease->bytes);
    pl_mem_free(lease);
}

const void *pl_lease_data(const pl_lease *lease)
{
    return lease->data;
}

size_t pl_lease_bytes(const pl_lease *lease)
{
    return lease->bytes;
}

bool pl_lease_covers(const pl_lease *lease, const void *data, size_t bytes)
{
    if (lease == NULL)
        return false;
    uintptr_t begin = (uintptr_t)lease->data, at = (uintptr_t)data;
    return at >= begin && at - begin <= lease->bytes &&
           bytes <= lease->bytes - (at - begin);
}
