/* Counts ids in an open-addressing table, numbers them by decreasing frequency,
 * and reads and writes that order as a text file. */
#include "data/sparse/numbering.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/file/file.h"
#include "base/hash/crc32c.h"
#include "base/mem.h"
#include "data/sparse/formats/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BITS 10
#define HEAD       "# ids by their new numbers, 0 first\n"

/* Open addressing, at most half full. */
typedef struct cell {
    uint64_t id_plus_1; /* 0: empty */
    uint64_t value;     /* the count, then the number */
} cell;

struct pl_numbering {
    cell *cells; /* [1 << bits] */
    int bits;
    int64_t used;
    uint64_t *order; /* [used], once finished: ids by their numbers */
};

static pl_status set_bits(pl_numbering *n, int bits)
{
    n->bits = bits;
    return PL_NEW(n->cells, (size_t)1 << bits);
}

pl_status pl_numbering_new(pl_numbering **out)
{
    pl_numbering *n;
    PL_TRY(PL_NEW(n, 1));
    pl_status status = set_bits(n, FIRST_BITS);
    if (status == PL_OK)
        *out = n;
    else
        pl_numbering_free(n);
    return status;
}

void pl_numbering_free(pl_numbering *n)
{
    if (n == NULL)
        return;
    pl_mem_free(n->cells);
    pl_mem_free(n->order);
    pl_mem_free(n);
}

/* The cell of an id, or the empty one where it belongs. */
static cell *find_cell(const pl_numbering *n, uint64_t id)
{
    uint64_t mask = ((uint64_t)1 << n->bits) - 1;
    uint64_t at = id * 0x9e3779b97f4a7c15u >> (64 - n->bits);
    while (n->cells[at].id_plus_1 != 0 && n->cells[at].id_plus_1 != id + 1)
        at = (at + 1) & mask;
    return &n->cells[at];
}

static pl_status grow(pl_numbering *n)
{
    cell *old = n->cells;
    int bits = n->bits;
    pl_status status = set_bits(n, bits + 1);
    if (status != PL_OK) {
        n->cells = old;
        n->bits = bits;
        return status;
    }
    for (size_t i = 0; i < (size_t)1 << bits; i++)
        if (old[i].id_plus_1 != 0)
            *find_cell(n, old[i].id_plus_1 - 1) = old[i];
    pl_mem_free(old);
    return PL_OK;
}

/* The cell of an id, created if missing (*fresh). */
static pl_status add(pl_numbering *n, uint64_t id, cell **out, bool *fresh)
{
    cell *at = find_cell(n, id);
    *fresh = at->id_plus_1 == 0;
    if (*fresh && 2 * (n->used + 1) > (int64_t)1 << n->bits) {
        PL_TRY(grow(n));
        at = find_cell(n, id);
    }
    if (*fresh) {
        at->id_plus_1 = id + 1;
        n->used++;
    }
    *out = at;
    return PL_OK;
}

pl_status pl_numbering_count(pl_numbering *n, const pl_batch *batch)
{
    PL_ASSERT(n->order == NULL);
    for (int64_t r = 0; r < batch->rows; r++) {
        int64_t s = batch->row_index != NULL ? batch->row_index[r] : r;
        for (int64_t j = batch->row_start[s]; j < batch->row_start[s + 1];
             j++) {
            cell *at;
            bool fresh;
            PL_TRY(add(n, batch->ids[j], &at, &fresh));
            at->value++;
        }
    }
    return PL_OK;
}

static int more_frequent(const void *one, const void *other)
{
    const cell *a = one, *b = other;
    if (a->value != b->value)
        return a->value > b->value ? -1 : 1;
    return a->id_plus_1 < b->id_plus_1 ? -1 : a->id_plus_1 > b->id_plus_1;
}

pl_status pl_numbering_finish(pl_numbering *n)
{
    cell *sorted;
    int64_t count = 0;
    PL_TRY(PL_NEW(sorted, (size_t)n->used));
    pl_status status = PL_NEW(n->order, (size_t)n->used);
    if (status == PL_OK) {
        for (size_t i = 0; i < (size_t)1 << n->bits; i++)
            if (n->cells[i].id_plus_1 != 0)
                sorted[count++] = n->cells[i];
        qsort(sorted, (size_t)count, sizeof *sorted, more_frequent);
        for (int64_t k = 0; k < count; k++) {
            n->order[k] = sorted[k].id_plus_1 - 1;
            find_cell(n, n->order[k])->value = (uint64_t)k;
        }
    }
    pl_mem_free(sorted);
    return status;
}

pl_status pl_numbering_save(const pl_numbering *n, const char *path)
{
    pl_file_writer *file;
    PL_TRY(pl_file_writer_new_output(&file, path));
    pl_status status = pl_file_writer_put(file, HEAD, strlen(HEAD));
    for (int64_t k = 0; k < n->used && status == PL_OK; k++) {
        char line[32];
        int bytes = snprintf(line, sizeof line, "%" PRIu64 "\n", n->order[k]);
        status = pl_file_writer_put(file, line, (size_t)bytes);
    }
    if (status == PL_OK)
        status = pl_file_writer_commit(file);
    pl_file_writer_free(file);
    return status;
}

/* The id in a line; false when there is none. */
static bool read_id(const char *line, size_t bytes, uint64_t *out)
{
    uint64_t id = 0;
    for (size_t i = 0; i < bytes; i++) {
        uint64_t digit = (uint64_t)line[i] - '0';
        if (digit > 9 || id > (PL_SPARSE_ID_MOST - digit) / 10)
            return false;
        id = id * 10 + digit;
    }
    *out = id;
    return bytes > 0;
}

static pl_status read_line(pl_numbering *n, const char *line, size_t bytes)
{
    uint64_t id;
    cell *at;
    bool fresh;
    if (!read_id(line, bytes, &id))
        return PL_FAIL(PL_FORMAT, "expected an id of 0 or more");
    PL_TRY(add(n, id, &at, &fresh));
    if (!fresh)
        return PL_FAIL(PL_FORMAT, "id %" PRIu64 " has a number already", id);
    at->value = (uint64_t)n->used - 1;
    return PL_OK;
}

static pl_status read_lines(pl_numbering *n, const char *text, size_t bytes,
                            const char *name)
{
    const char *end = text + bytes;
    for (int64_t number = 1; text < end; number++) {
        const char *feed = memchr(text, '\n', (size_t)(end - text));
        size_t length = (size_t)((feed != NULL ? feed : end) - text);
        pl_status status =
            length > 0 && text[0] == '#' ? PL_OK : read_line(n, text, length);
        if (status != PL_OK)
            return pl_context(status, "%s:%lld", name, (long long)number);
        text += length + 1;
    }
    if (n->used == 0)
        return PL_FAIL(PL_FORMAT, "%s: no ids", name);
    return PL_OK;
}

pl_status pl_numbering_parse(pl_numbering **out, const char *text, size_t bytes,
                             const char *name)
{
    pl_numbering *n;
    PL_TRY(pl_numbering_new(&n));
    pl_status status = read_lines(n, text, bytes, name);
    if (status == PL_OK)
        status = PL_NEW(n->order, (size_t)n->used);
    if (status != PL_OK) {
        pl_numbering_free(n);
        return status;
    }
    for (size_t i = 0; i < (size_t)1 << n->bits; i++)
        if (n->cells[i].id_plus_1 != 0)
            n->order[n->cells[i].value] = n->cells[i].id_plus_1 - 1;
    *out = n;
    return PL_OK;
}

pl_status pl_numbering_load(pl_numbering **out, const char *path)
{
    pl_map map;
    PL_TRY(pl_map_init(&map, path));
    pl_status status =
        pl_numbering_parse(out, (const char *)map.data, map.bytes, path);
    pl_status whole = pl_map_check(&map);
    pl_map_close(&map);
    if (status == PL_OK && whole != PL_OK)
        pl_numbering_free(*out);
    return whole != PL_OK ? whole : status;
}

int64_t pl_numbering_size(const pl_numbering *n)
{
    return n->used;
}

uint32_t pl_numbering_mark(const pl_numbering *n)
{
    uint32_t crc = 0;
    for (int64_t k = 0; k < n->used; k++) {
        uint8_t bytes[8];
        pl_put_u64(bytes, n->order[k]);
        crc = pl_crc32c(crc, bytes, sizeof bytes);
    }
    return crc != 0 ? crc : 1;
}

int64_t pl_numbering_find(const pl_numbering *n, uint64_t id)
{
    const cell *at = find_cell(n, id);
    return at->id_plus_1 != 0 ? (int64_t)at->value : PL_NUMBERING_NONE;
}
