/* fuzz_zip.c - zip archives: the directory, and what is packed in them. */
#include "base/assert.h"
#include "base/mem.h"
#include "data/npy/zip.h"
#include "fuzz/fuzz.h"

#define MOST_BYTES ((uint64_t)1 << 20)

static void unpack(const pl_map *map, const pl_zip_member *member)
{
    uint8_t *data;
    PL_ASSERT(member->offset <= map->bytes);
    PL_ASSERT(member->packed <= map->bytes - member->offset);
    if (!member->deflated || member->bytes > MOST_BYTES)
        return;
    if (pl_zip_unpack(&data, map, member) == PL_OK)
        pl_mem_free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    pl_map map = { .data = data, .bytes = bytes };
    pl_zip_member *list;
    size_t count;
    if (pl_zip_list(&list, &count, &map) != PL_OK)
        return 0;
    for (size_t i = 0; i < count; i++)
        unpack(&map, &list[i]);
    pl_mem_free(list);
    return 0;
}
