/* csv_set.c - reads tables with all threads: lines are counted block by block,
 * so that each block knows its rows, then parsed in place.
 *
 * A block is copied before it is parsed, since a mapped file may change.  Of
 * several bad rows the first one is reported. */
#include "data/csv/csv.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/thread.h"
#include "data/dense/encoding.h"
#include "data/dense/set.h"
#include "data/sparse/formats/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)1 << 20)
#define MOST_BLOCKS 65535 /* of one pool run */

typedef struct block {
    int32_t file;
    size_t offset, bytes;
    int64_t first, rows; /* of the table */
} block;

typedef struct loader {
    const pl_source_opts *opts;
    pl_sparse_file *files;
    int32_t file_count;
    pl_csv_table table;
    block *blocks;
    size_t block_count, block_room;
    pl_pool *pool;
    size_t base; /* block of the first item */
    int64_t rows;
    pl_csv_fill fill;
    float *features;
    int32_t *labels; /* classes... */
    float *targets;  /* ... or numbers */
    pl_mutex lock;
    size_t failed; /* the first block that failed, and why; lock */
    pl_error why;
} loader;

/* The end of the line that begins at `from`. */
static size_t next_line(const pl_sparse_file *file, size_t from)
{
    const uint8_t *end =
        from < file->bytes ? memchr(file->data + from, '\n', file->bytes - from)
                           : NULL;
    return end != NULL ? (size_t)(end - file->data) + 1 : file->bytes;
}

static pl_status split_file(loader *l, int32_t index)
{
    const pl_sparse_file *file = &l->files[index];
    size_t at = l->table.header ? next_line(file, 0) : 0;
    size_t target = BLOCK_BYTES;
    while (file->bytes / target > MOST_BLOCKS / 2)
        target *= 2;
    while (at < file->bytes) {
        size_t goal = file->bytes - at > target ? at + target - 1 : at;
        size_t end =
            file->bytes - at > target ? next_line(file, goal) : file->bytes;
        PL_TRY(PL_GROW(l->blocks, l->block_count, l->block_room));
        l->blocks[l->block_count++] =
            (block) { .file = index, .offset = at, .bytes = end - at };
        at = end;
    }
    return PL_OK;
}

static bool is_empty_line(const char *at)
{
    return at[0] == '\n' || (at[0] == '\r' && at[1] == '\n');
}

/* A copy that ends with a whole line and is followed by readable bytes. */
static pl_status copy_block(const loader *l, const block *b, char **out)
{
    const pl_sparse_file *file = &l->files[b->file];
    char *copy;
    PL_TRY(PL_NEW(copy, b->bytes + 1 + PL_TEXT_PAD));
    memcpy(copy, file->data + b->offset, b->bytes);
    copy[b->bytes] = '\n';
    *out = copy;
    return PL_OK;
}

static void keep_failure(loader *l, size_t index, pl_status status)
{
    pl_mutex_lock(&l->lock);
    if (index < l->failed) {
        l->failed = index;
        pl_error_save(&l->why, status);
    }
    pl_mutex_unlock(&l->lock);
}

static void count_block(void *arg, int item, int thread)
{
    (void)thread;
    loader *l = arg;
    block *b = &l->blocks[l->base + (size_t)item];
    const uint8_t *at = l->files[b->file].data + b->offset;
    const uint8_t *end = at + b->bytes;
    while (at < end) {
        const uint8_t *line = memchr(at, '\n', (size_t)(end - at));
        line = line != NULL ? line : end;
        size_t bytes = (size_t)(line - at);
        b->rows += bytes > 1 || (bytes == 1 && at[0] != '\r');
        at = line + 1;
    }
}

/* The number of the line at `offset` of a file, for a message. */
static int64_t line_number(const pl_sparse_file *file, size_t offset)
{
    int64_t lines = 1;
    for (size_t i = 0; i < offset; i++)
        lines += file->data[i] == '\n';
    return lines;
}

static pl_status parse_rows(loader *l, const block *b, char *text)
{
    const pl_sparse_file *file = &l->files[b->file];
    char *at = text, *end = text + b->bytes;
    int64_t row = b->first;
    while (at < end) {
        if (is_empty_line(at)) {
            at += *at == '\r' ? 2 : 1;
            continue;
        }
        char *line = at;
        if (row == b->first + b->rows)
            return PL_FAIL(PL_IO, "%s changed while it was read", file->path);
        void *label = l->labels != NULL    ? (void *)&l->labels[row]
                      : l->targets != NULL ? &l->targets[row]
                                           : NULL;
        pl_status status =
            pl_csv_row(&l->table, &at, &l->fill,
                       l->features + row * l->table.features, label);
        if (status != PL_OK)
            return pl_context(status, "%s:%lld", file->path,
                              (long long)line_number(
                                  file, b->offset + (size_t)(line - text)));
        row++;
    }
    return row == b->first + b->rows
               ? PL_OK
               : PL_FAIL(PL_IO, "%s changed while it was read", file->path);
}

static void parse_block(void *arg, int item, int thread)
{
    (void)thread;
    loader *l = arg;
    size_t index = l->base + (size_t)item;
    char *text = NULL;
    pl_status status = copy_block(l, &l->blocks[index], &text);
    if (status == PL_OK)
        status = parse_rows(l, &l->blocks[index], text);
    if (status != PL_OK)
        keep_failure(l, index, status);
    pl_mem_free(text);
}

static pl_status run_blocks(loader *l, pl_pool_job *job)
{
    for (l->base = 0; l->base < l->block_count; l->base += MOST_BLOCKS) {
        size_t left = l->block_count - l->base;
        pl_pool_run(l->pool, (int)(left < MOST_BLOCKS ? left : MOST_BLOCKS),
                    job, l);
    }
    return l->failed < l->block_count ? pl_error_raise(&l->why) : PL_OK;
}

static pl_status check_files(const loader *l)
{
    for (int32_t i = 0; i < l->file_count; i++)
        PL_TRY(pl_map_check(&l->files[i].map));
    return PL_OK;
}

/* Count the rows of each block, and check that the bytes can hold them: each
 * cell takes at least one. */
static pl_status count_rows(loader *l)
{
    uint64_t bytes = 0;
    PL_TRY(run_blocks(l, count_block));
    for (size_t i = 0; i < l->block_count; i++) {
        l->blocks[i].first = l->rows;
        l->rows += l->blocks[i].rows;
        bytes += l->blocks[i].bytes + 1;
    }
    if ((uint64_t)l->rows > bytes / l->table.column_count + 1)
        return PL_FAIL(PL_FORMAT,
                       "%s: %lld rows in %llu bytes cannot all have %zu cells, "
                       "as the first line has",
                       l->table.path, (long long)l->rows,
                       (unsigned long long)bytes, l->table.column_count);
    if (l->rows == 0)
        return PL_FAIL(PL_FORMAT, "%s holds no rows%s", l->table.path,
                       l->table.header ? " after its header" : "");
    return PL_OK;
}

static bool is_category(const pl_csv_column *column)
{
    return column->role == PL_CSV_CATEGORY ||
           column->role == PL_CSV_LABEL_CLASS;
}

/* The name under which a column's values are kept. */
static const char *kept_name(const pl_csv_column *column)
{
    return column->role == PL_CSV_LABEL_CLASS ? "classes" : column->name;
}

static pl_status learn_row(loader *l, char **at)
{
    bool last = false;
    pl_csv_cell cell;
    for (size_t c = 0; !last; c++) {
        PL_TRY(pl_csv_take(at, l->table.delimiter, &cell, &last));
        if (c < l->table.column_count && is_category(&l->table.columns[c]))
            PL_TRY(pl_csv_add_value(&l->table.columns[c], cell.text));
    }
    return PL_OK;
}

static pl_status learn_block(loader *l, const block *b)
{
    char *text;
    PL_TRY(copy_block(l, b, &text));
    pl_status status = PL_OK;
    for (char *at = text; at < text + b->bytes && status == PL_OK;)
        if (is_empty_line(at))
            at += *at == '\r' ? 2 : 1;
        else
            status = learn_row(l, &at);
    pl_mem_free(text);
    return status;
}

static pl_status recall_values(pl_csv_column *column,
                               const pl_encoding *encoding)
{
    const char **texts;
    size_t count;
    PL_TRY(pl_encoding_texts(encoding, kept_name(column), &texts, &count));
    pl_status status = PL_OK;
    for (size_t i = 0; i < count && status == PL_OK; i++)
        status = pl_csv_add_value(column, texts[i]);
    pl_mem_free(texts);
    return status;
}

/* The values of categories: those of the run, or those in the data. */
static pl_status find_categories(loader *l)
{
    pl_csv_table *table = &l->table;
    pl_encoding *encoding = l->opts->encoding;
    bool fixed = encoding != NULL && encoding->fixed, any = false;
    for (size_t c = 0; c < table->column_count; c++) {
        any |= is_category(&table->columns[c]);
        if (fixed && is_category(&table->columns[c]))
            PL_TRY(recall_values(&table->columns[c], encoding));
    }
    for (size_t i = 0; any && !fixed && i < l->block_count; i++)
        PL_TRY(learn_block(l, &l->blocks[i]));
    for (size_t c = 0; c < table->column_count; c++)
        if (encoding != NULL && !fixed && is_category(&table->columns[c]))
            PL_TRY(pl_encoding_set_texts(
                encoding, kept_name(&table->columns[c]),
                table->columns[c].values, table->columns[c].value_count));
    pl_csv_place_columns(table);
    return table->features > 0
               ? PL_OK
               : PL_FAIL(PL_FORMAT, "%s has no column of features",
                         table->path);
}

/* Skip the byte order mark that some programs put before UTF-8. */
static void skip_mark(pl_sparse_file *file)
{
    if (file->bytes >= 3 && memcmp(file->data, "\xef\xbb\xbf", 3) == 0) {
        file->data += 3;
        file->bytes -= 3;
    }
}

/* Detect delimiter, header and columns from the first two lines of the first
 * file. */
static pl_status open_table(loader *l)
{
    const pl_sparse_file *file = &l->files[0];
    size_t bytes = next_line(file, next_line(file, 0));
    block head = { .bytes = bytes };
    char *text;
    if (bytes == 0)
        return PL_FAIL(PL_FORMAT, "%s is empty", file->path);
    PL_TRY(copy_block(l, &head, &text));
    pl_status status =
        pl_csv_table_init(&l->table, file->path, text, text + bytes, l->opts);
    pl_mem_free(text);
    return status == PL_OK ? PL_OK : pl_context(status, "%s:1", file->path);
}

static pl_status load(loader *l)
{
    for (int32_t i = 0; i < l->file_count; i++)
        skip_mark(&l->files[i]);
    PL_TRY(open_table(l));
    for (int32_t i = 0; i < l->file_count; i++)
        PL_TRY(split_file(l, i));
    l->failed = l->block_count;
    int threads = l->opts->threads > 0 ? l->opts->threads : pl_thread_cores();
    PL_TRY(pl_pool_new(&l->pool, threads));
    PL_TRY(count_rows(l));
    PL_TRY(find_categories(l));
    if (l->rows > PL_SHAPE_ELEMENTS / l->table.features)
        return PL_FAIL(
            PL_UNSUPPORTED, "%s: %lld rows of %lld numbers are too many",
            l->table.path, (long long)l->rows, (long long)l->table.features);
    PL_TRY(PL_NEW_ALIGNED(l->features, (size_t)(l->rows * l->table.features)));
    if (l->table.label >= 0 && l->table.numeric)
        PL_TRY(PL_NEW_ALIGNED(l->targets, (size_t)l->rows));
    else if (l->table.label >= 0)
        PL_TRY(PL_NEW(l->labels, (size_t)l->rows));
    return run_blocks(l, parse_block);
}

/* A truncated file has unreadable rows: report the truncation instead. */
static pl_status load_intact(loader *l)
{
    pl_status status = load(l), whole = check_files(l);
    return whole != PL_OK ? whole : status;
}

/* Text labels have one class per value; a number counts as one. */
static int32_t class_count(const pl_csv_table *table)
{
    if (table->label < 0)
        return 0;
    if (table->numeric)
        return 1;
    const pl_csv_column *column = &table->columns[table->label];
    return column->role == PL_CSV_LABEL_CLASS ? (int32_t)column->value_count
                                              : 0;
}

static pl_status make_set(pl_dataset **out, loader *l, const char *place)
{
    pl_dense_parts parts = {
        .memory = l->features,
        .data = l->features,
        .dtype = PL_FLOAT32,
        .count = l->rows,
        .shape = PL_SHAPE(l->table.features),
        .labels = l->labels,
        .targets = l->targets,
        .classes = class_count(&l->table),
    };
    l->features = NULL;
    l->labels = NULL;
    l->targets = NULL;
    pl_status status = pl_mem_format(&parts.name, "csv:%s", place);
    if (status == PL_OK)
        return pl_dense_set_new(out, &parts);
    pl_dense_parts_close(&parts);
    return status;
}

static pl_status choose_fill(loader *l)
{
    const char *text = l->opts->fill_missing;
    double value = (double)NAN;
    if (text != NULL && (!pl_csv_number(text, &value) || isnan(value)))
        return PL_FAIL(PL_USAGE, "--fill-missing %s: expected a number", text);
    l->fill = (pl_csv_fill) {
        .value = (float)value,
        .missing = l->opts->allow_missing,
    };
    return PL_OK;
}

static pl_status open_files(pl_dataset **out, loader *l, const char *place)
{
    pl_mutex_init(&l->lock);
    pl_status status = choose_fill(l);
    if (status == PL_OK)
        status = load_intact(l);
    if (status == PL_OK)
        status = make_set(out, l, place);
    pl_mutex_close(&l->lock);
    pl_pool_free(l->pool);
    pl_mem_free(l->blocks);
    pl_mem_free(l->features);
    pl_mem_free(l->labels);
    pl_mem_free(l->targets);
    pl_csv_table_close(&l->table);
    pl_sparse_files_free(l->files, l->file_count);
    return status;
}

/* All that opening files needs of a format. */
static const pl_sparse_format csv_format = { .name = "csv" };

pl_status pl_csv_open(pl_dataset **out, const char *place, pl_split split,
                      const pl_source_opts *opts)
{
    loader l = { .opts = opts };
    if (split == PL_SPLIT_TEST && opts->own_test)
        return pl_dense_no_test(place);
    PL_TRY(
        pl_sparse_files_new(&l.files, &l.file_count, &csv_format, place, opts));
    return open_files(out, &l, place);
}

pl_status pl_csv_open_memory(pl_dataset **out, const uint8_t *data,
                             size_t bytes, const pl_source_opts *opts)
{
    loader l = { .opts = opts, .file_count = 1 };
    PL_TRY(
        pl_sparse_files_new_memory(&l.files, &csv_format, data, bytes, opts));
    return open_files(out, &l, "memory");
}
