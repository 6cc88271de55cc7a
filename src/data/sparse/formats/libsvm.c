/* libsvm.c - "LABEL [qid:N] ID:VALUE ID:VALUE ... [# comment]", one example per
 * line.  Ids are used unchanged: a file that counts from 1 leaves feature 0
 * unused. */
#include "data/sparse/formats/format.h"
#include "data/sparse/formats/text.h"

#include <string.h>

/* "1:1 " - the least bytes of a non-zero. */
#define LEAST_BYTES 4

typedef struct libsvm_line {
    pl_decode *decode;
    const pl_text *text;
    pl_sparse_rows *rows;
    int64_t ids;   /* used so far, of all rows */
    int64_t first; /* row of the block */
} libsvm_line;

static bool ends_word(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '#';
}

static pl_status wrong(const libsvm_line *line, const char *at,
                       const char *expected)
{
    char word[32];
    return pl_text_fail(line->decode, line->text, at, "%s, expected %s",
                        pl_text_word(at, word), expected);
}

static pl_status parse_label(libsvm_line *line, const char **at)
{
    double label = 0;
    const char *end = pl_text_real(*at, &label);
    if (end == NULL || !ends_word(*end) ||
        (label != 0 && label != 1 && label != -1))
        return wrong(line, *at, "a label: 0 or 1, or -1 or 1");
    unsigned kind = label == 1   ? 0
                    : label == 0 ? PL_LABEL_ZERO
                                 : PL_LABEL_MINUS;
    kind |= line->decode->labels;
    if (kind == (PL_LABEL_ZERO | PL_LABEL_MINUS))
        return wrong(line, *at,
                     "the labels to be either 0 and 1 or -1 and 1, not 0 and "
                     "-1");
    line->decode->labels = kind;
    line->rows->labels[line->rows->count] = label == 1;
    *at = end;
    return PL_OK;
}

/* "qid:7": for ranking; ignored. */
static pl_status skip_qid(libsvm_line *line, const char **at)
{
    uint64_t qid;
    const char *begin = *at;
    if (memcmp(begin, "qid:", 4) == 0) {
        begin += 4;
        const char *end = pl_text_integer(begin, &qid);
        if (end != NULL && end != begin && ends_word(*end)) {
            *at = end;
            return PL_OK;
        }
    }
    return wrong(line, *at, "ID:VALUE or qid:NUMBER");
}

static pl_status bad_id(libsvm_line *line, const char *at, const char *end,
                        uint64_t id)
{
    uint64_t bound = line->decode->bound;
    if (end == at)
        return wrong(line, at, "ID:VALUE with an id of 0 or more");
    if (end == NULL || (*end == ':' && id >= bound))
        return bound > PL_SPARSE_ID_MOST
                   ? wrong(line, at, "an id below 2^63")
                   : pl_text_fail(line->decode, line->text, at,
                                  "id %.*s, expected ids below --features "
                                  "%llu",
                                  (int)strspn(at, "0123456789"), at,
                                  (unsigned long long)bound);
    return wrong(line, end, "':' and a value after the id");
}

/* The non-zeros of a line; *at becomes its end. */
static pl_status parse_pairs(libsvm_line *line, const char **cursor)
{
    const char *at = *cursor;
    uint64_t bound = line->decode->bound, largest = line->decode->largest;
    uint64_t *ids = line->rows->ids;
    float *values = line->rows->values;
    int64_t used = line->ids;
    bool weighted = false;
    for (;;) {
        at = pl_text_skip_blanks(at);
        uint64_t id = 0;
        const char *end = pl_text_integer(at, &id);
        if (__builtin_expect(
                end == NULL || *end != ':' || end == at || id >= bound, 0)) {
            if (*at == '\n' || *at == '#' || *at == '\r')
                break;
            if (*at == 'q') {
                PL_TRY(skip_qid(line, &at));
                continue;
            }
            return bad_id(line, at, end, id);
        }
        at = end + 1;
        float value = 1;
        if (at[0] == '1' && ends_word(at[1])) {
            at++;
        } else {
            double real = 0;
            end = pl_text_real(at, &real);
            value = (float)real;
            if (end == NULL || !ends_word(*end) || !__builtin_isfinite(value))
                return wrong(line, at, "a finite number");
            at = end;
            weighted = weighted || value != 1;
        }
        ids[used] = id;
        values[used++] = value;
        largest = id > largest ? id : largest;
    }
    line->ids = used;
    line->rows->weighted |= weighted;
    line->decode->largest = largest;
    *cursor = at;
    return PL_OK;
}

static pl_status parse_line(libsvm_line *line, const char **at)
{
    PL_TRY(parse_label(line, at));
    PL_TRY(parse_pairs(line, at));
    if (**at == '\r' && (*at)[1] != '\n')
        return wrong(line, *at, "a line feed after the carriage return");
    line->rows->count++;
    line->rows->start[line->rows->count] = line->ids;
    return PL_OK;
}

static pl_status parse_lines(libsvm_line *line)
{
    for (const char *at = line->text->begin; at < line->text->end; at++) {
        at = pl_text_skip_blanks(at);
        if (*at == '\r')
            at++;
        if (*at == '\n')
            continue;
        if (*at != '#') {
            int64_t ids = line->ids;
            pl_status status = parse_line(line, &at);
            if (status == PL_OK)
                PL_TRY(pl_decode_check_rows(line->decode,
                                            line->rows->count - line->first));
            if (status != PL_OK) {
                line->ids = ids;
                PL_TRY(pl_decode_pass(line->decode, status));
            }
        }
        at = pl_text_line_end(at);
    }
    return PL_OK;
}

static pl_status decode(pl_decode *decode, pl_sparse_rows *rows)
{
    pl_text text;
    PL_TRY(pl_text_init(&text, decode));
    libsvm_line line = { decode, &text, rows, pl_sparse_rows_ids(rows),
                         rows->count };
    int64_t most = (text.end - text.begin) / LEAST_BYTES + 1;
    /* One more row than counted, to detect a change of the file. */
    pl_status status = pl_sparse_rows_reserve(
        rows, rows->count + decode->block->rows + 1, line.ids + most);
    if (status == PL_OK)
        status = parse_lines(&line);
    pl_text_close(&text);
    return status;
}

const pl_sparse_format pl_libsvm_format = {
    .name = "libsvm",
    .split = pl_text_split,
    .count = pl_text_count,
    .decode = decode,
    .writer = &pl_libsvm_writer,
};
