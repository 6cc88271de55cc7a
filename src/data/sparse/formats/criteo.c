/* criteo.c - click logs as Criteo publishes them: a label, 13 integers and 26
 * categories per line, separated by tabs; all but the label may be missing.
 *
 * Integers by their logarithm: integer j is feature j with the value
 * log(1 + x), or -log(1 - x) for x < 0; zero and missing are left out.
 * Categories are hashed to the features from 13 on.
 *
 * Integers by bucket: x is put into bucket x up to 2, otherwise into bucket
 * floor(log(x)^2) + 2^32, and (j, bucket) is hashed to all features, like the
 * categories, with value 1; missing ones are left out.
 *
 * The hash is of (column, text): see hash_text.  It must never change: models
 * depend on it. */
#include "data/sparse/formats/format.h"
#include "data/sparse/formats/text.h"

#include <math.h>
#include <string.h>

#define INTEGERS   13
#define CATEGORIES 26
#define COLUMNS    (1 + INTEGERS + CATEGORIES)
#define FEATURES   ((int64_t)1 << 24)

typedef struct click {
    pl_decode *decode;
    const pl_text *text;
    pl_sparse_rows *rows;
    bool bucket;
    uint64_t first;    /* feature that categories are hashed to */
    uint64_t features; /* from `first` on */
    int64_t used;      /* ids so far, of all rows */
    int64_t before;    /* rows before the block */
} click;

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Eight bytes at a time, the last ones padded with zeros, mixed by the
 * finalizer of SplitMix64. */
static uint64_t hash_text(unsigned column, const char *text, size_t bytes)
{
    uint64_t hash = mix((uint64_t)column << 32 | (bytes & UINT32_MAX));
    for (; bytes > 8; bytes -= 8, text += 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        hash = mix(hash ^ word);
    }
    uint64_t word = 0;
    memcpy(&word, text, bytes);
    return mix(hash ^ word);
}

static void add(click *c, uint64_t id, float value)
{
    c->rows->ids[c->used] = id;
    c->rows->values[c->used++] = value;
    if (id > c->decode->largest)
        c->decode->largest = id;
}

/* A hash becomes a feature: the high half of the product. */
static void add_hash(click *c, uint64_t hash)
{
    uint64_t at = (uint64_t)(((unsigned __int128)hash * c->features) >> 64);
    add(c, c->first + at, 1);
}

static void add_integer(click *c, unsigned column, int64_t x)
{
    if (c->bucket) {
        double l = x > 2 ? log((double)x) : 0;
        int64_t bucket = x > 2 ? (int64_t)(l * l) + ((int64_t)1 << 32) : x;
        add_hash(c, mix(mix((uint64_t)column << 32) ^ (uint64_t)bucket));
    } else if (x != 0) {
        add(c, column - 1,
            (float)(x > 0 ? log1p((double)x) : -log1p(-(double)x)));
    }
}

static bool ends_column(char ch)
{
    return ch == '\t' || ch == '\n' || ch == '\r';
}

static pl_status wrong(const click *c, const char *at, const char *expected)
{
    char word[32];
    return pl_text_fail(c->decode, c->text, at, "%s, expected %s",
                        pl_text_word(at, word), expected);
}

static pl_status read_label(click *c, const char **at)
{
    char label = **at;
    if ((label != '0' && label != '1') || (*at)[1] != '\t')
        return wrong(c, *at, "a label, 0 or 1, and a tab");
    c->rows->labels[c->rows->count] = label == '1';
    (*at)++;
    return PL_OK;
}

static pl_status read_integer(click *c, unsigned column, const char **cursor)
{
    const char *at = *cursor;
    if (ends_column(*at))
        return PL_OK; /* missing */
    bool minus = *at == '-';
    uint64_t x = 0;
    const char *end = pl_text_integer(at + minus, &x);
    if (end == NULL || end == at + minus || !ends_column(*end))
        return wrong(c, at, "an integer");
    add_integer(c, column, minus ? -(int64_t)x : (int64_t)x);
    *cursor = end;
    return PL_OK;
}

static void read_category(click *c, unsigned column, const char **cursor)
{
    const char *at = *cursor, *end = at;
    while (!ends_column(*end))
        end++;
    if (end > at)
        add_hash(c, hash_text(column, at, (size_t)(end - at)));
    *cursor = end;
}

/* *at becomes the end of the line, or the position of the error. */
static pl_status read_line(click *c, const char **at)
{
    PL_TRY(read_label(c, at));
    for (unsigned column = 1; column < COLUMNS; column++) {
        if (**at != '\t')
            return pl_text_fail(c->decode, c->text, *at,
                                "%u columns, expected %d: a label, %d "
                                "integers and %d categories",
                                column, COLUMNS, INTEGERS, CATEGORIES);
        ++*at;
        if (column <= INTEGERS)
            PL_TRY(read_integer(c, column, at));
        else
            read_category(c, column, at);
    }
    if (**at == '\r')
        ++*at;
    if (**at != '\n')
        return wrong(c, *at, "the end of the line after 40 columns");
    c->rows->count++;
    c->rows->start[c->rows->count] = c->used;
    return PL_OK;
}

static pl_status read_lines(click *c)
{
    for (const char *at = c->text->begin; at < c->text->end; at++) {
        const char *begin = at;
        int64_t used = c->used;
        if (*at == '\n')
            continue;
        pl_status status = read_line(c, &at);
        if (status == PL_OK) {
            PL_TRY(pl_decode_check_rows(c->decode, c->rows->count - c->before));
        } else {
            c->used = used;
            PL_TRY(pl_decode_pass(c->decode, status));
            at = pl_text_line_end(begin);
        }
    }
    return PL_OK;
}

static pl_status decode(pl_decode *decode, pl_sparse_rows *rows)
{
    pl_text text;
    bool bucket = decode->opts->integers == PL_INTEGERS_BUCKET;
    uint64_t first = bucket ? 0 : INTEGERS;
    if (decode->bound <= first)
        return PL_FAIL(PL_USAGE, "--features %llu, expected at least %llu",
                       (unsigned long long)decode->bound,
                       (unsigned long long)first + 1);
    PL_TRY(pl_text_init(&text, decode));
    click c = {
        .decode = decode,
        .text = &text,
        .rows = rows,
        .bucket = bucket,
        .first = first,
        .features = decode->bound - first,
        .used = pl_sparse_rows_ids(rows),
        .before = rows->count,
    };
    int64_t most = decode->block->rows * (COLUMNS - 1);
    /* A bad line, or one that shows a change of the file, may be beyond the
     * counted examples. */
    pl_status status = pl_sparse_rows_reserve(
        rows, rows->count + decode->block->rows + 1, c.used + most + COLUMNS);
    rows->weighted = rows->weighted || !bucket;
    if (status == PL_OK)
        status = read_lines(&c);
    pl_text_close(&text);
    return status;
}

const pl_sparse_format pl_criteo_format = {
    .name = "criteo",
    .features = FEATURES,
    .split = pl_text_split,
    .count = pl_text_count,
    .decode = decode,
};
