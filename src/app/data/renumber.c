/* renumber.c - counts the ids of a source in a first pass, then replaces them
 * in batches by their rank. */
#include "app/data/renumber.h"

#include "base/file/file.h"

#include <stdio.h>

static pl_status count_batch(void *context, const pl_batch *batch)
{
    return pl_numbering_count(context, batch);
}

/* A first pass over the source, which counts ids. */
static pl_status make(pl_numbering *numbering, const char *source,
                      const pl_source_opts *opts, bool quiet)
{
    pl_data_pass pass = {
        .source = source,
        .verb = "counted",
        .opts = opts,
        .quiet = quiet,
        .use = count_batch,
        .context = numbering,
    };
    PL_TRY(pl_data_pass_run(&pass));
    if (pass.numbering != 0)
        return PL_FAIL(PL_USAGE,
                       "--renumber: the ids of %s have already been renumbered",
                       source);
    return pl_numbering_finish(numbering);
}

pl_status pl_renumber_init(pl_renumber *renumber, const char *path,
                           const char *source, const pl_source_opts *opts,
                           bool quiet)
{
    pl_numbering *numbering;
    *renumber = (pl_renumber) { .left_out = 0 };
    if (pl_file_exists(path))
        return pl_numbering_load(&renumber->numbering, path);
    PL_TRY(pl_numbering_new(&numbering));
    pl_status status = make(numbering, source, opts, quiet);
    if (status == PL_OK)
        status = pl_numbering_save(numbering, path);
    if (status != PL_OK) {
        pl_numbering_free(numbering);
        return status;
    }
    printf("%s: %lld ids\n", path, (long long)pl_numbering_size(numbering));
    renumber->numbering = numbering;
    return PL_OK;
}

void pl_renumber_close(pl_renumber *renumber)
{
    pl_numbering_free(renumber->numbering);
    pl_sparse_rows_close(&renumber->rows);
    *renumber = (pl_renumber) { .left_out = 0 };
}

/* Append the non-zeros of a row whose ids have a number. */
static void put_row(pl_renumber *renumber, const pl_batch *batch, int64_t row)
{
    pl_sparse_rows *rows = &renumber->rows;
    int64_t source = batch->row_index != NULL ? batch->row_index[row] : row;
    int64_t used = pl_sparse_rows_ids(rows);
    for (int64_t j = batch->row_start[source]; j < batch->row_start[source + 1];
         j++) {
        int64_t number = pl_numbering_find(renumber->numbering, batch->ids[j]);
        if (number == PL_NUMBERING_NONE) {
            renumber->left_out++;
            continue;
        }
        rows->ids[used] = (uint64_t)number;
        rows->values[used++] = batch->values != NULL ? batch->values[j] : 1;
    }
    rows->labels[rows->count] = (int32_t)pl_view_label(&batch->labels, row);
    rows->start[++rows->count] = used;
}

pl_status pl_renumber_batch(pl_renumber *renumber, const pl_batch *batch,
                            pl_batch *out)
{
    pl_sparse_rows *rows = &renumber->rows;
    int64_t ids = 0;
    for (int64_t r = 0; r < batch->rows; r++) {
        int64_t s = batch->row_index != NULL ? batch->row_index[r] : r;
        ids += batch->row_start[s + 1] - batch->row_start[s];
    }
    pl_sparse_rows_clear(rows);
    PL_TRY(pl_sparse_rows_reserve(rows, batch->rows, ids));
    for (int64_t r = 0; r < batch->rows; r++)
        put_row(renumber, batch, r);
    *out = (pl_batch) {
        .rows = rows->count,
        .labels = { .data = rows->labels,
                    .stride = 1,
                    .dtype = PL_INT32,
                    .scale = 1.0f },
        .row_start = rows->start,
        .ids = rows->ids,
        .values = batch->values != NULL ? rows->values : NULL,
    };
    return PL_OK;
}
