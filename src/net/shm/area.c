/* area.c - anonymous shared memory as a descriptor and a mapping; checks that a
 * range lies within it. */
#include "net/shm/area.h"

#include "base/mem.h"
#include "net/shm/area_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_FROM ((size_t)4 << 20) /* as pl_mem_alloc_aligned */

struct pl_area {
    void *data;
    size_t bytes;  /* as requested */
    size_t mapped; /* at least 1 */
    int fd;
};

pl_status pl_area_make_file(int *fd, size_t bytes)
{
    int made = memfd_create("paceline", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0)
        return PL_FAIL(PL_IO, "memfd_create: %s", strerror(errno));
    if (bytes > INT64_MAX || ftruncate(made, (off_t)bytes) != 0 ||
        fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) !=
            0) {
        int error = bytes > INT64_MAX ? EFBIG : errno;
        close(made);
        return PL_FAIL(PL_NOMEM, "shared memory of %zu bytes: %s", bytes,
                       strerror(error));
    }
    *fd = made;
    return PL_OK;
}

static pl_status map(pl_area *area)
{
    void *data = mmap(NULL, area->mapped, PROT_READ | PROT_WRITE, MAP_SHARED,
                      area->fd, 0);
    if (data == MAP_FAILED)
        return PL_FAIL(PL_NOMEM, "map %zu bytes of shared memory: %s",
                       area->mapped, strerror(errno));
    area->data = data;
    if (area->mapped >= HUGE_FROM)
        madvise(data, area->mapped, MADV_HUGEPAGE); /* a hint */
    return PL_OK;
}

pl_status pl_area_new(pl_area **out, size_t bytes)
{
    pl_area *area;
    pl_status status;
    PL_TRY(PL_NEW(area, 1));
    area->fd = -1;
    area->bytes = bytes;
    area->mapped = bytes == 0 ? 1 : bytes;
    PL_TRY_OUT(status, pl_area_make_file(&area->fd, area->mapped));
    PL_TRY_OUT(status, map(area));
    *out = area;
    return PL_OK;
out:
    pl_area_free(area);
    return status;
}

void pl_area_free(pl_area *area)
{
    if (area == NULL)
        return;
    if (area->data != NULL)
        munmap(area->data, area->mapped);
    if (area->fd >= 0)
        close(area->fd);
    pl_mem_free(area);
}

void *pl_area_data(const pl_area *area)
{
    return area->data;
}

size_t pl_area_bytes(const pl_area *area)
{
    return area->bytes;
}

int pl_area_fd(const pl_area *area)
{
    return area->fd;
}

bool pl_area_holds(const pl_area *area, const void *data, size_t bytes,
                   size_t *offset)
{
    uintptr_t begin = (uintptr_t)area->data, at = (uintptr_t)data;
    if (at < begin || at - begin > area->bytes ||
        bytes > area->bytes - (at - begin))
        return false;
    *offset = at - begin;
    return true;
}
