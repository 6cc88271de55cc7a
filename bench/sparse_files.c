/* sparse_files.c - one pass over files of sparse examples, from opening to
 * the last batch, in every format. */
#include "base/file/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/source.h"
#include "data/sparse/formats/writer.h"

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXAMPLES 200000
#define FEATURES 33762578
#define BATCH    1000

typedef struct pass {
    const char *source;
    int threads;
    pl_status status;
    int64_t examples;
} pass;

static pl_status read_once(pass *p)
{
    pl_dataset *set;
    pl_reader *reader = NULL;
    pl_batch batch;
    PL_TRY(pl_source_open(&set, p->source, PL_SPLIT_TRAIN,
                          &(pl_source_opts) { .threads = p->threads,
                                              .features = FEATURES,
                                              .shuffle_buffer = 32768 }));
    pl_status status = pl_reader_new(
        &reader, set, &(pl_reader_opts) { .batch = BATCH, .seed = 1 });
    int64_t steps = status == PL_OK ? reader->steps_per_epoch : 0;
    p->examples = steps * BATCH;
    for (int64_t i = 0; i < steps && status == PL_OK; i++) {
        status = pl_reader_next(reader, &batch);
        measure_keep(&batch);
    }
    pl_reader_free(reader);
    pl_dataset_free(set);
    return status;
}

static void run_pass(void *arg, int64_t times)
{
    pass *p = arg;
    for (int64_t i = 0; i < times && p->status == PL_OK; i++)
        p->status = read_once(p);
}

static pl_status write_sparse(const char *target)
{
    pl_dataset *set;
    pl_reader *reader = NULL;
    pl_sparse_writer *writer = NULL;
    pl_batch batch = { .rows = 1 };
    const pl_source_opts opts = { .examples = EXAMPLES, .features = FEATURES };
    pl_status status;
    PL_TRY(pl_source_open(&set, "synthetic-sparse", PL_SPLIT_TRAIN, &opts));
    PL_TRY_OUT(status, pl_sparse_writer_new(&writer, target, &opts));
    PL_TRY_OUT(status, pl_reader_new(&reader, set,
                                     &(pl_reader_opts) { .batch = BATCH,
                                                         .one_pass = true }));
    while (batch.rows > 0) {
        PL_TRY_OUT(status, pl_reader_next(reader, &batch));
        PL_TRY_OUT(status, pl_sparse_writer_put(writer, &batch));
    }
    PL_TRY_OUT(status, pl_sparse_writer_finish(writer));
out:
    pl_sparse_writer_free(writer);
    pl_reader_free(reader);
    pl_dataset_free(set);
    return status;
}

static pl_status write_criteo(const char *path)
{
    pl_file_writer *writer;
    PL_TRY(pl_file_writer_new(&writer, path));
    pl_status status = PL_OK;
    uint64_t drawn = 0;
    for (int i = 0; i < EXAMPLES && status == PL_OK; i++) {
        char line[1024];
        int used = snprintf(line, sizeof line, "%d", i % 2);
        for (int c = 0; c < 13; c++)
            used += snprintf(line + used, sizeof line - (size_t)used, "\t%u",
                             pl_rng_below(1, drawn++, 2000));
        for (int c = 0; c < 26; c++)
            used += snprintf(line + used, sizeof line - (size_t)used, "\t%08x",
                             (unsigned)pl_rng_u64(2, drawn++));
        line[used++] = '\n';
        status = pl_file_writer_put(writer, line, (size_t)used);
    }
    if (status == PL_OK)
        status = pl_file_writer_commit(writer);
    pl_file_writer_free(writer);
    return status;
}

static pl_status bench_format(bench *b, const char *folder, const char *format)
{
    char source[512];
    snprintf(source, sizeof source, "%s:%s/%s", format, folder, format);
    const char *path = source + strlen(format) + 1;
    PL_TRY(strcmp(format, "criteo") == 0 ? write_criteo(path)
                                         : write_sparse(source));
    pl_map map;
    PL_TRY(pl_map_init(&map, path));
    double megabytes = (double)map.bytes * 1e-6;
    pl_map_close(&map);
    for (int threads = 1; threads <= b->threads; threads *= 2) {
        pass p = { .source = source, .threads = threads };
        measurement m = measure(&(measure_opts) {
            .run = run_pass, .arg = &p, .window_s = b->window_s });
        PL_TRY(p.status);
        table_text(&b->table, "format", format);
        table_count(&b->table, "threads", threads);
        table_number(&b->table, "file MB", megabytes);
        table_measured(&b->table, "examples per s",
                       measure_inverse(m, 1e9 * (double)p.examples));
        table_number(&b->table, "MB per s", megabytes * 1e9 / m.median);
        table_row_end(&b->table);
    }
    return PL_OK;
}

pl_status bench_sparse_files(bench *b)
{
    static const char *const formats[] = { "cache", "tfrecord", "libsvm",
                                           "criteo" };
    char folder[] = "/tmp/paceline-bench-XXXXXX";
    if (mkdtemp(folder) == NULL)
        return PL_FAIL(PL_IO, "cannot make a folder in /tmp");
    table_begin(&b->table, "sparse_files", "Files of sparse examples",
                "One shuffled pass over 200,000 examples of 39 non-zeros out "
                "of 33,762,578 features, from opening a file in the page cache "
                "to the last batch of 1000.");
    pl_status status = PL_OK;
    for (size_t i = 0; i < 4 && status == PL_OK; i++)
        status = bench_format(b, folder, formats[i]);
    table_end(&b->table);
    pl_status removed = pl_file_remove_all(folder);
    return status != PL_OK ? status : removed;
}
