/* map.c - decides when a file is mapped and what happens when its pages
 * disappear.
 *
 * Mapped files are in a list that the handler of SIGBUS walks without a lock:
 * its cells are reused but never freed, and a cell is valid while its `begin`
 * is not zero. */
#include "base/file/map.h"

#include "base/assert.h"
#include "base/file/file_priv.h"
#include "base/mem.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CELLS_MORE 256 /* allocated at a time */

typedef struct pl_map_watch watch;

struct pl_map_watch {
    atomic_bool taken;
    atomic_bool broken;
    atomic_uintptr_t begin; /* 0: nothing is mapped */
    atomic_size_t bytes;    /* whole pages */
    watch *next;
    /* Used by its owner only: */
    char *path;
    dev_t device;
    ino_t inode;
};

static _Atomic(watch *) watches;
static struct sigaction before;
static atomic_bool allowed;

static watch *find(uintptr_t address)
{
    for (watch *w = atomic_load(&watches); w != NULL; w = w->next) {
        uintptr_t begin = atomic_load(&w->begin);
        if (begin != 0 && address >= begin &&
            address - begin < atomic_load(&w->bytes))
            return w;
    }
    return NULL;
}

static uintptr_t page_bytes(void)
{
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

/* Map zeros from the page at `address` to the end of the mapping.  The mark is
 * set first, so that a thread that reads a zero also finds the mark. */
static bool replace(watch *w, void *address)
{
    char *page = (char *)address - ((uintptr_t)address & (page_bytes() - 1));
    size_t rest =
        atomic_load(&w->begin) + atomic_load(&w->bytes) - (uintptr_t)page;
    atomic_store(&w->broken, true);
    return mmap(page, rest, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                -1, 0) != MAP_FAILED;
}

/* Returning retries the instruction: it reads zeros, or reaches the previous
 * handler. */
static void on_bus(int number, siginfo_t *info, void *context)
{
    (void)context;
    int error = errno;
    bool fault = info->si_code > 0;
    watch *w = fault ? find((uintptr_t)info->si_addr) : NULL;
    if (w == NULL || !replace(w, info->si_addr)) {
        sigaction(number, &before, NULL);
        if (!fault)
            raise(number);
    }
    errno = error;
}

void pl_map_allow(void)
{
    struct sigaction action = { .sa_sigaction = on_bus,
                                .sa_flags = SA_SIGINFO | SA_ONSTACK };
    struct sigaction old;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, NULL, &old) != 0)
        return; /* files are read instead */
    bool ours = (old.sa_flags & SA_SIGINFO) != 0 && old.sa_sigaction == on_bus;
    if (!ours)
        before = old;
    atomic_store(&allowed, ours || sigaction(SIGBUS, &action, NULL) == 0);
}

static watch *take_free(void)
{
    for (watch *w = atomic_load(&watches); w != NULL; w = w->next)
        if (!atomic_exchange(&w->taken, true))
            return w;
    return NULL;
}

/* A cell for one mapping; NULL: no memory. */
static watch *take_watch(void)
{
    watch *w = take_free();
    if (w != NULL)
        return w;
    /* Not pl_mem_alloc: these are never freed. */
    watch *more = mmap(NULL, CELLS_MORE * sizeof *more, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (more == MAP_FAILED)
        return NULL;
    for (int i = 0; i + 1 < CELLS_MORE; i++)
        more[i].next = &more[i + 1];
    atomic_store(&more[0].taken, true);
    watch *first = atomic_load(&watches);
    do
        more[CELLS_MORE - 1].next = first;
    while (!atomic_compare_exchange_weak(&watches, &first, more));
    return more;
}

static void drop_watch(watch *w)
{
    pl_mem_free(w->path);
    w->path = NULL;
    atomic_store(&w->taken, false);
}

/* Map the pages of an open file. */
static pl_status map_pages(pl_map *map, int file, const char *path,
                           const struct stat *info)
{
    watch *w = take_watch();
    PL_TRY(pl_mem_check(w, 1, sizeof *w));
    pl_status status = pl_mem_copy_text(&w->path, path);
    void *data = MAP_FAILED;
    if (status == PL_OK) {
        data = pl_file_fault()
                   ? MAP_FAILED
                   : mmap(NULL, map->bytes, PROT_READ, MAP_PRIVATE, file, 0);
        if (data == MAP_FAILED)
            status = pl_file_fail_errno("map", path, false);
    }
    if (status != PL_OK) {
        drop_watch(w);
        return status;
    }
    uintptr_t page = page_bytes();
    w->device = info->st_dev;
    w->inode = info->st_ino;
    atomic_store(&w->broken, false);
    atomic_store(&w->bytes, (map->bytes + page - 1) / page * page);
    atomic_store(&w->begin, (uintptr_t)data);
    map->data = data;
    map->watch = w;
    return PL_OK;
}

static pl_status cut(const char *path, size_t found, size_t expected)
{
    return PL_FAIL(PL_IO,
                   "%s changed while it was read: it had %zu bytes and has "
                   "%zu now; do not change it while it is in use",
                   path, expected, found);
}

static pl_status read_into(uint8_t *to, size_t bytes, int file,
                           const char *path)
{
    for (size_t used = 0; used < bytes;) {
        ssize_t got;
        PL_SYSTEM_CALL(got, read(file, to + used, bytes - used));
        if (got < 0)
            return pl_file_fail_errno("read", path, false);
        if (got == 0)
            return cut(path, used, bytes);
        used += (size_t)got;
    }
    return PL_OK;
}

/* Read the file into private pages, so that closing is the same. */
static pl_status read_pages(pl_map *map, int file, const char *path)
{
    void *data = pl_file_fault()
                     ? MAP_FAILED
                     : mmap(NULL, map->bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return pl_file_fail_errno("read", path, false);
    pl_status status = read_into(data, map->bytes, file, path);
    if (status != PL_OK) {
        munmap(data, map->bytes);
        return status;
    }
    map->data = data;
    return PL_OK;
}

static pl_status open_map(pl_map *map, const char *path, bool shared,
                          size_t most)
{
    int file = -1;
    struct stat info;
    *map = (pl_map) { 0 };
    PL_TRY(pl_file_open_to_read(&file, path, &info));
    map->bytes = (size_t)info.st_size;
    pl_status status = PL_OK;
    if (map->bytes > most)
        status = PL_FAIL(PL_FORMAT, "%s: longer than %zu bytes", path, most);
    else if (map->bytes > 0)
        status = shared ? map_pages(map, file, path, &info)
                        : read_pages(map, file, path);
    close(file); /* a mapping stays valid */
    if (status != PL_OK)
        *map = (pl_map) { 0 };
    return status;
}

pl_status pl_map_init(pl_map *map, const char *path)
{
    return open_map(map, path, atomic_load(&allowed), SIZE_MAX);
}

pl_status pl_map_read(pl_map *map, const char *path, size_t most)
{
    return open_map(map, path, false, most);
}

void pl_map_close(pl_map *map)
{
    if (map->watch != NULL)
        atomic_store(&map->watch->begin, 0);
    if (map->data != NULL)
        munmap((void *)map->data, map->bytes);
    if (map->watch != NULL)
        drop_watch(map->watch);
    *map = (pl_map) { 0 };
}

bool pl_map_intact(const pl_map *map)
{
    return map->watch == NULL || !atomic_load(&map->watch->broken);
}

pl_status pl_map_check(const pl_map *map)
{
    struct stat now;
    const watch *w = map->watch;
    if (w == NULL)
        return PL_OK;
    /* After the last byte its page reads as zeros, without a signal. */
    bool there = stat(w->path, &now) == 0 && now.st_dev == w->device &&
                 now.st_ino == w->inode;
    if (there && (size_t)now.st_size < map->bytes)
        return cut(w->path, (size_t)now.st_size, map->bytes);
    if (!pl_map_intact(map))
        return PL_FAIL(PL_IO,
                       "%s changed while it was read: some of its %zu bytes "
                       "could not be read; was it truncated, or is the disk "
                       "failing?",
                       w->path, map->bytes);
    return PL_OK;
}

pl_status pl_map_copy(const pl_map *map, size_t offset, void *to, size_t bytes)
{
    PL_ASSERT(offset <= map->bytes && bytes <= map->bytes - offset);
    if (bytes > 0)
        memcpy(to, map->data + offset, bytes);
    return pl_map_check(map);
}
