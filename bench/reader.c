#include "data/source.h"

#include "bench.h"

#include <stdio.h>

typedef struct reading {
    pl_reader *reader;
    pl_status status;
} reading;

static void run_next(void *arg, int64_t times)
{
    reading *r = arg;
    pl_batch batch;
    for (int64_t i = 0; i < times && r->status == PL_OK; i++) {
        r->status = pl_reader_next(r->reader, &batch);
        measure_keep(&batch);
    }
}

static pl_status bench_batch(bench *b, pl_dataset *set, int64_t batch)
{
    reading r = { .status = PL_OK };
    PL_TRY(pl_reader_new(&r.reader, set,
                         &(pl_reader_opts) { .batch = batch, .seed = 1 }));
    measurement m = measure(&(measure_opts) {
        .run = run_next, .arg = &r, .window_s = b->window_s });
    pl_reader_free(r.reader);
    PL_TRY(r.status);
    table_count(&b->table, "batch", batch);
    table_measured(&b->table, "ns per batch", m);
    table_number(&b->table, "ns per example", m.median / (double)batch);
    table_row_end(&b->table);
    return PL_OK;
}

pl_status bench_reader(bench *b)
{
    static const int64_t batches[] = { 10, 100, 500 };
    pl_dataset *set;
    PL_TRY(pl_source_open(
        &set, "synthetic", PL_SPLIT_TRAIN,
        &(pl_source_opts) { .shape = PL_SHAPE(28, 28), .examples = 60000 }));
    table_begin(&b->table, "reader", "Reader",
                "pl_reader_next over 60,000 shuffled examples of 28 x 28: it "
                "picks rows and copies none.");
    pl_status status = PL_OK;
    for (size_t i = 0; status == PL_OK && i < 3; i++)
        status = bench_batch(b, set, batches[i]);
    table_end(&b->table);
    pl_dataset_free(set);
    return status == PL_OK ? bench_sparse_files(b) : status;
}
