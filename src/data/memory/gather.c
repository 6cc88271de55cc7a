/* gather.c - a reader that assembles each batch: examples made by a callback,
 * and CSR with 32-bit indices.
 *
 * The rows are chosen by the reader of sets in memory, which runs over a set of
 * row numbers only, so that order, shares and positions are those of any other
 * data. */
#include "base/mem.h"
#include "data/memory/memory.h"
#include "data/shuffle.h"
#include "tensor/shape.h"

typedef struct gather_reader {
    pl_reader base;
    const pl_data *data;
    int64_t first;    /* example of the data that has number 0 here */
    pl_dataset rows;  /* the numbers 0 .. count - 1 */
    pl_reader *inner; /* over them */
    bool in_order;    /* one pass: */
    int64_t read;     /* rows of it so far */
    uint32_t *index;  /* of the rows of a batch, as the data counts them */
    int32_t *labels;  /* of the batch, like what follows */
    float *features;  /* dense */
    int64_t *row_start;
    uint64_t *ids; /* [room] */
    float *values; /* likewise */
    size_t room;
} gather_reader;

static void number_rows(gather_reader *self, const pl_batch *batch)
{
    int64_t from = self->first + self->read;
    for (int64_t r = 0; r < batch->rows; r++)
        self->index[r] =
            (uint32_t)(self->in_order ? from + r
                                      : self->first + batch->labels.index[r]);
    self->read += self->in_order ? batch->rows : 0;
}

/* Check the labels of a callback. */
static pl_status check_made(const gather_reader *self, int64_t rows)
{
    for (int64_t r = 0; r < rows; r++)
        if (self->labels[r] < 0 || self->labels[r] >= self->data->info.classes)
            return PL_FAIL(PL_USAGE,
                           "%s: the function gave example %u the label %d, "
                           "expected 0 to %d",
                           self->data->name, self->index[r], self->labels[r],
                           self->data->info.classes - 1);
    return PL_OK;
}

static pl_status make_rows(gather_reader *self, pl_batch *out)
{
    const pl_data *data = self->data;
    int failed = data->make(data->context, self->index, out->rows,
                            self->features, self->labels);
    if (failed != 0)
        return PL_FAIL(PL_IO,
                       "%s: the function that makes examples returned "
                       "%d",
                       data->name, failed);
    out->features = (pl_view) {
        .data = self->features,
        .stride = pl_shape_row(data->info.example),
        .dtype = PL_FLOAT32,
        .scale = 1,
    };
    return check_made(self, out->rows);
}

static pl_status reserve(gather_reader *self, size_t count)
{
    if (count <= self->room)
        return PL_OK;
    count += count / 2;
    PL_TRY(PL_RESIZE(self->ids, count));
    if (self->data->values != NULL)
        PL_TRY(PL_RESIZE(self->values, count));
    self->room = count;
    return PL_OK;
}

static pl_status copy_rows(gather_reader *self, pl_batch *out)
{
    const pl_data *data = self->data;
    const int32_t *start = data->row_start_32;
    int64_t used = 0;
    for (int64_t r = 0; r < out->rows; r++)
        used += start[self->index[r] + 1] - start[self->index[r]];
    PL_TRY(reserve(self, (size_t)used));
    used = 0;
    for (int64_t r = 0; r < out->rows; r++) {
        uint32_t row = self->index[r];
        self->row_start[r] = used;
        self->labels[r] = data->labels != NULL ? data->labels[row] : 0;
        for (int32_t at = start[row]; at < start[row + 1]; at++, used++) {
            self->ids[used] = (uint64_t)data->ids_32[at];
            if (data->values != NULL)
                self->values[used] = data->values[at];
        }
    }
    self->row_start[out->rows] = used;
    out->row_start = self->row_start;
    out->ids = self->ids;
    out->values = data->values != NULL ? self->values : NULL;
    return PL_OK;
}

static pl_status next(pl_reader *base, pl_batch *out)
{
    gather_reader *self = (gather_reader *)base;
    pl_batch numbers;
    PL_TRY(pl_reader_next(self->inner, &numbers));
    *out = (pl_batch) { .rows = numbers.rows };
    if (numbers.rows == 0)
        return PL_OK;
    number_rows(self, &numbers);
    PL_TRY(self->data->make != NULL ? make_rows(self, out)
                                    : copy_rows(self, out));
    out->labels = (pl_view) {
        .data = self->labels, .stride = 1, .dtype = PL_INT32, .scale = 1
    };
    if (self->data->weights != NULL)
        out->weights = (pl_view) {
            .data = self->data->weights,
            .index = self->index,
            .stride = 1,
            .dtype = PL_FLOAT32,
            .scale = 1,
        };
    return PL_OK;
}

static void position(const pl_reader *base, pl_position *out)
{
    pl_reader_position(((const gather_reader *)base)->inner, out);
}

static pl_status seek(pl_reader *base, const pl_position *to)
{
    const gather_reader *self = (const gather_reader *)base;
    if (self->in_order)
        return PL_FAIL(PL_UNSUPPORTED, "%s: one pass goes from the beginning",
                       self->data->name);
    return pl_reader_seek(self->inner, to);
}

static void go(pl_reader *base, int64_t step)
{
    pl_reader_go(((gather_reader *)base)->inner, step);
}

static void describe(const pl_reader *base, char text[PL_READS_TEXT])
{
    pl_reader_describe(((const gather_reader *)base)->inner, text);
}

static void release(pl_reader *base)
{
    gather_reader *self = (gather_reader *)base;
    pl_reader_free(self->inner);
    pl_mem_free(self->index);
    pl_mem_free(self->labels);
    pl_mem_free(self->features);
    pl_mem_free(self->row_start);
    pl_mem_free(self->ids);
    pl_mem_free(self->values);
    pl_mem_free(self);
}

static const pl_reader_ops gather_ops = {
    .next = next,
    .position = position,
    .seek = seek,
    .go = go,
    .describe = describe,
    .free = release,
};

static pl_status open_reader(gather_reader *self, pl_dataset *set,
                             const pl_reader_opts *opts)
{
    static const int32_t none = 0;
    static const int64_t no_start = 0;
    const pl_data *data = self->data;
    bool in_runs = data->info.sparse && !self->in_order;
    size_t rows = (size_t)(opts->batch < set->count ? opts->batch : set->count);
    self->rows = *set;
    self->rows.labels = (pl_view) { .data = &none, .dtype = PL_INT32 };
    self->rows.features = self->rows.labels; /* of width 0: never read */
    /* Sparse rows are shuffled in runs, as with 64-bit indices. */
    self->rows.row_start = in_runs ? &no_start : NULL;
    PL_TRY(pl_shuffle_reader_new(&self->inner, &self->rows, opts));
    PL_TRY(PL_NEW(self->index, rows));
    PL_TRY(PL_NEW(self->labels, rows));
    if (data->info.sparse)
        return PL_NEW(self->row_start, rows + 1);
    return PL_NEW_ALIGNED(self->features,
                          rows * (size_t)pl_shape_row(data->info.example));
}

pl_status pl_gather_reader_new(pl_reader **out, pl_dataset *set,
                               const pl_data *data, int64_t first,
                               const pl_reader_opts *opts)
{
    gather_reader *self;
    PL_TRY(PL_NEW(self, 1));
    self->base.ops = &gather_ops;
    self->data = data;
    self->first = first;
    self->in_order = opts->one_pass;
    pl_status status = open_reader(self, set, opts);
    if (status != PL_OK) {
        release(&self->base);
        return status;
    }
    self->base.steps_per_epoch = self->inner->steps_per_epoch;
    self->base.left_out = self->inner->left_out;
    *out = &self->base;
    return PL_OK;
}
