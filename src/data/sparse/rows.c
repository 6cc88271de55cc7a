/* Growing arrays of sparse rows. */
#include "data/sparse/rows.h"

#include "base/mem.h"

#include <string.h>

void pl_sparse_rows_close(pl_sparse_rows *rows)
{
    pl_mem_free(rows->start);
    pl_mem_free(rows->labels);
    pl_mem_free(rows->ids);
    pl_mem_free(rows->values);
    *rows = (pl_sparse_rows) { .count = 0 };
}

/* At least `needed`, with enough reserve that growing is rare. */
static int64_t room_for(int64_t needed, int64_t room)
{
    int64_t more = room + room / 2;
    return needed > more ? needed : more;
}

pl_status pl_sparse_rows_reserve(pl_sparse_rows *rows, int64_t count,
                                 int64_t ids)
{
    if (count > rows->count_room || rows->start == NULL) {
        int64_t room = room_for(count, rows->count_room);
        PL_TRY(PL_RESIZE(rows->start, (size_t)room + 1));
        PL_TRY(PL_RESIZE(rows->labels, (size_t)room));
        rows->start[0] = 0;
        rows->count_room = room;
    }
    if (ids > rows->id_room || rows->ids == NULL) {
        int64_t room = room_for(ids, rows->id_room);
        PL_TRY(PL_RESIZE(rows->ids, (size_t)room));
        PL_TRY(PL_RESIZE(rows->values, (size_t)room));
        rows->id_room = room;
    }
    return PL_OK;
}

void pl_sparse_rows_fill(float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = 1;
}

void pl_sparse_rows_clear(pl_sparse_rows *rows)
{
    rows->count = 0;
    rows->weighted = false;
}

pl_status pl_sparse_rows_append(pl_sparse_rows *rows,
                                const pl_sparse_rows *from, int64_t first,
                                int64_t count)
{
    if (count == 0)
        return PL_OK;
    int64_t begin = from->start[first];
    int64_t ids = from->start[first + count] - begin;
    int64_t used = pl_sparse_rows_ids(rows);
    PL_TRY(pl_sparse_rows_reserve(rows, rows->count + count, used + ids));
    for (int64_t r = 0; r < count; r++)
        rows->start[rows->count + r + 1] =
            used + from->start[first + r + 1] - begin;
    memcpy(rows->labels + rows->count, from->labels + first,
           (size_t)count * sizeof *rows->labels);
    memcpy(rows->ids + used, from->ids + begin,
           (size_t)ids * sizeof *rows->ids);
    if (from->weighted && !rows->weighted)
        pl_sparse_rows_fill(rows->values, used);
    rows->weighted = rows->weighted || from->weighted;
    if (from->weighted)
        memcpy(rows->values + used, from->values + begin,
               (size_t)ids * sizeof *rows->values);
    else if (rows->weighted)
        pl_sparse_rows_fill(rows->values + used, ids);
    rows->count += count;
    return PL_OK;
}

int64_t pl_sparse_rows_bytes(const pl_sparse_rows *rows)
{
    return rows->count_room *
               (int64_t)(sizeof *rows->start + sizeof *rows->labels) +
           rows->id_room * (int64_t)(sizeof *rows->ids + sizeof *rows->values);
}
