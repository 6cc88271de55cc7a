/* npy.c - the head of a .npy array: a magic number, a version, and the text of
 * a Python dictionary, accepted only as numpy.save writes it. */
#include "data/npy/npy.h"

#include "tensor/shape.h"

#include <stdio.h>
#include <string.h>

#define MAGIC       "\x93NUMPY"
#define MAGIC_BYTES 6
#define CURE        "in NumPy: numpy.save(FILE, numpy.ascontiguousarray(array))"

/* The rest of the dictionary's text. */
typedef struct header {
    const char *at, *end;
} header;

static void skip_blanks(header *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\n'))
        t->at++;
}

static bool take(header *t, char c)
{
    skip_blanks(t);
    if (t->at == t->end || *t->at != c)
        return false;
    t->at++;
    return true;
}

static bool take_word(header *t, const char *word)
{
    size_t bytes = strlen(word);
    skip_blanks(t);
    if ((size_t)(t->end - t->at) < bytes || memcmp(t->at, word, bytes) != 0)
        return false;
    t->at += bytes;
    return true;
}

/* A quoted string of less than `room` bytes. */
static bool take_string(header *t, char *out, size_t room)
{
    skip_blanks(t);
    if (t->at == t->end || (*t->at != '\'' && *t->at != '"'))
        return false;
    char quote = *t->at++;
    size_t used = 0;
    while (t->at < t->end && *t->at != quote && used + 1 < room)
        out[used++] = *t->at++;
    out[used] = '\0';
    return take(t, quote);
}

static pl_status not_a_head(const header *t, const char *expected)
{
    int shown = t->end - t->at < 20 ? (int)(t->end - t->at) : 20;
    return PL_FAIL(PL_FORMAT,
                   "the header of the array has \"%.*s\", expected %s", shown,
                   t->at, expected);
}

static pl_status parse_descr(header *t, pl_element *out)
{
    char descr[32], kind = 0, order = 0;
    unsigned bytes = 0;
    char rest;
    skip_blanks(t);
    if (t->at < t->end && *t->at == '[')
        return PL_FAIL(PL_UNSUPPORTED,
                       "a structured array, expected one type of number; save "
                       "one field of it, " CURE);
    if (!take_string(t, descr, sizeof descr))
        return not_a_head(t, "a type like '<f4'");
    if (sscanf(descr, "%c%c%2u%c", &order, &kind, &bytes, &rest) != 3 ||
        strchr("<>|=", order) == NULL || strchr("?buif", kind) == NULL ||
        (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) ||
        (kind == 'f' && bytes < 4) || (kind == 'b' && bytes != 1))
        return PL_FAIL(PL_UNSUPPORTED,
                       "elements of type '%s', expected uint8, float32, "
                       "float64 or integers; convert them, in NumPy: "
                       "array.astype('float32')",
                       descr);
    *out = (pl_element) {
        .kind = kind == 'f'   ? PL_ELEMENT_FLOAT
                : kind == 'i' ? PL_ELEMENT_SIGNED
                              : PL_ELEMENT_UNSIGNED,
        .bytes = (int)bytes,
        .big = order == '>',
    };
    return PL_OK;
}

static pl_status parse_size(header *t, int64_t *out)
{
    const char *begin = t->at;
    int64_t size = 0;
    while (t->at < t->end && *t->at >= '0' && *t->at <= '9' &&
           size <= PL_SHAPE_ELEMENTS)
        size = size * 10 + (*t->at++ - '0');
    if (t->at == begin)
        return not_a_head(t, "a dimension");
    (void)take(t, 'L'); /* of Python 2 */
    *out = size;
    return PL_OK;
}

static pl_status parse_shape(header *t, pl_shape *out)
{
    *out = PL_SCALAR;
    if (!take(t, '('))
        return not_a_head(t, "a shape like (60000, 28, 28)");
    while (!take(t, ')')) {
        int64_t size = 0;
        skip_blanks(t);
        PL_TRY(parse_size(t, &size));
        if (out->rank == PL_MAX_RANK)
            return PL_FAIL(PL_UNSUPPORTED,
                           "an array of more than %d dimensions", PL_MAX_RANK);
        out->dim[out->rank++] = size;
        if (!take(t, ',') && (t->at == t->end || *t->at != ')'))
            return not_a_head(t, "',' or ')'");
    }
    return PL_OK;
}

static pl_status parse_order(header *t)
{
    if (take_word(t, "True"))
        return PL_FAIL(PL_UNSUPPORTED,
                       "the array is in Fortran order, expected C order, one "
                       "example after the other; save it again, " CURE);
    return take_word(t, "False") ? PL_OK : not_a_head(t, "True or False");
}

static pl_status parse_dictionary(pl_npy *out, header *t)
{
    unsigned seen = 0;
    if (!take(t, '{'))
        return not_a_head(t, "'{'");
    while (!take(t, '}')) {
        char key[32];
        if (!take_string(t, key, sizeof key) || !take(t, ':'))
            return not_a_head(t, "a key and ':'");
        if (strcmp(key, "descr") == 0) {
            PL_TRY(parse_descr(t, &out->element));
            seen |= 1;
        } else if (strcmp(key, "fortran_order") == 0) {
            PL_TRY(parse_order(t));
            seen |= 2;
        } else if (strcmp(key, "shape") == 0) {
            PL_TRY(parse_shape(t, &out->shape));
            seen |= 4;
        } else {
            return PL_FAIL(PL_FORMAT,
                           "the header of the array has the key '%s', "
                           "expected descr, fortran_order and shape",
                           key);
        }
        (void)take(t, ',');
    }
    return seen == 7 ? PL_OK
                     : PL_FAIL(PL_FORMAT,
                               "the header of the array lacks one of descr, "
                               "fortran_order and shape");
}

/* The size of the elements must match the bytes that follow. */
static pl_status check_size(const pl_npy *npy, uint64_t all)
{
    char text[PL_SHAPE_TEXT], type[PL_ELEMENT_TEXT];
    if (npy->shape.rank == 0)
        return PL_FAIL(PL_FORMAT, "a single number, expected an array with a "
                                  "row an example");
    PL_TRY(pl_shape_check(npy->shape));
    uint64_t expected = npy->head_bytes + (uint64_t)pl_shape_row(npy->shape) *
                                              (uint64_t)npy->element.bytes;
    if (all == expected)
        return PL_OK;
    return PL_FAIL(PL_FORMAT, "%s: %llu bytes, expected %llu for %s of %s",
                   all < expected ? "truncated" : "trailing bytes",
                   (unsigned long long)all, (unsigned long long)expected,
                   pl_shape_text(npy->shape, text),
                   pl_element_name(npy->element, type));
}

pl_status pl_npy_parse(pl_npy *out, const uint8_t *data, size_t bytes,
                       uint64_t all)
{
    *out = (pl_npy) { .head_bytes = 0 };
    if (bytes < MAGIC_BYTES + 4 || memcmp(data, MAGIC, MAGIC_BYTES) != 0)
        return PL_FAIL(PL_FORMAT,
                       "not a NumPy array: it does not begin with \\x93NUMPY; "
                       "write it by numpy.save");
    unsigned version = data[MAGIC_BYTES];
    size_t fixed = version == 1 ? 10 : 12;
    if (version < 1 || version > 3)
        return PL_FAIL(PL_UNSUPPORTED, "NumPy array format %u, expected 1 to 3",
                       version);
    size_t length = (size_t)data[8] | (size_t)data[9] << 8;
    if (version > 1 && bytes >= fixed)
        length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    if (bytes < fixed || length > bytes - fixed)
        return PL_FAIL(PL_FORMAT,
                       "truncated: the header of the array states %zu bytes, "
                       "the file has %zu (at most %d are read)",
                       length, bytes < fixed ? 0 : bytes - fixed,
                       PL_NPY_HEAD_MOST);
    const char *begin = (const char *)data + fixed;
    header t = { begin, begin + length };
    PL_TRY(parse_dictionary(out, &t));
    out->head_bytes = fixed + length;
    return check_size(out, all);
}

size_t pl_npy_head(uint8_t out[PL_NPY_WRITE_MOST], const char *descr,
                   pl_shape shape)
{
    char *at = (char *)out + 10, *end = (char *)out + PL_NPY_WRITE_MOST;
    memcpy(out, MAGIC, MAGIC_BYTES);
    out[MAGIC_BYTES] = 1; /* version 1.0 */
    out[MAGIC_BYTES + 1] = 0;
    at += snprintf(at, (size_t)(end - at),
                   "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int d = 0; d < shape.rank; d++)
        at += snprintf(at, (size_t)(end - at), "%lld,%s",
                       (long long)shape.dim[d], d + 1 < shape.rank ? " " : "");
    at += snprintf(at, (size_t)(end - at), "), }");
    size_t used = (size_t)(at - (char *)out), all = (used + 64) / 64 * 64;
    memset(at, ' ', all - used);
    out[all - 1] = '\n';
    out[8] = (uint8_t)(all - 10);
    out[9] = (uint8_t)((all - 10) >> 8);
    return all;
}
