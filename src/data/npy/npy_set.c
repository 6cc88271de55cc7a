/* npy_set.c - a data set from one or two NumPy arrays: selects the arrays of an
 * archive, and checks that examples and labels match. */
#include "data/npy/npy.h"

#include "base/file/file.h"
#include "base/mem.h"
#include "data/npy/zip.h"
#include "tensor/shape.h"

#include <string.h>

/* One array in a file, or unpacked from one. */
typedef struct array {
    char *name; /* for messages: "x.npy", "a.npz: x_train" */
    pl_map map;
    uint8_t *memory; /* NULL: it is read from the map */
    const uint8_t *data;
    pl_npy npy;
} array;

static void close_array(array *a)
{
    pl_map_close(&a->map);
    pl_mem_free(a->memory);
    pl_mem_free(a->name);
    *a = (array) { .name = NULL };
}

static pl_status parse(array *a, const uint8_t *data, uint64_t bytes)
{
    size_t most = bytes < PL_NPY_HEAD_MOST ? (size_t)bytes : PL_NPY_HEAD_MOST;
    uint8_t *head; /* a copy: the file may change */
    PL_TRY(PL_NEW(head, most + 1));
    memcpy(head, data, most);
    pl_status status = pl_npy_parse(&a->npy, head, most, bytes);
    pl_mem_free(head);
    pl_status whole = pl_map_check(&a->map);
    a->data = data + a->npy.head_bytes;
    return whole != PL_OK ? whole : status;
}

static pl_status open_file(array *a, const char *path)
{
    PL_TRY(pl_mem_copy_text(&a->name, path));
    PL_TRY(pl_map_init(&a->map, path));
    if (a->map.bytes == 0)
        return PL_FAIL(PL_FORMAT, "%s: empty, expected a NumPy array", path);
    pl_status status = parse(a, a->map.data, a->map.bytes);
    return status == PL_OK ? PL_OK : pl_context(status, "%s", path);
}

static pl_status open_found(array *a, const pl_zip_member *member)
{
    if (!member->deflated)
        return parse(a, a->map.data + member->offset, member->bytes);
    PL_TRY(pl_zip_unpack(&a->memory, &a->map, member));
    return parse(a, a->memory, member->bytes);
}

/* Is this the member `key`.npy? */
static bool is_key(const pl_zip_member *member, const char *key)
{
    size_t bytes = strlen(key);
    return strncmp(member->name, key, bytes) == 0 &&
           strcmp(member->name + bytes, ".npy") == 0;
}

static const pl_zip_member *find_key(const pl_zip_member *list, size_t count,
                                     const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (is_key(&list[i], key))
            return &list[i];
    return NULL;
}

static pl_status open_member(array *a, const char *path,
                             const pl_zip_member *list, size_t count,
                             const char *key)
{
    PL_TRY(pl_mem_format(&a->name, "%s: %s", path, key));
    const pl_zip_member *member = find_key(list, count, key);
    if (member == NULL)
        return PL_FAIL(PL_NOTFOUND, "%s holds no array %s", path, key);
    PL_TRY(pl_map_init(&a->map, path));
    if (member->offset > a->map.bytes ||
        member->packed > a->map.bytes - member->offset)
        return PL_FAIL(PL_IO, "%s changed while it was read", path);
    pl_status status = open_found(a, member);
    return status == PL_OK ? PL_OK : pl_context(status, "%s", a->name);
}

/* Usual names of examples and labels in archives. */
typedef struct pair {
    const char *examples, *labels;
} pair;

static const pair train_pairs[] = {
    { "x_train", "y_train" },
    { "X_train", "y_train" },
    { "train_images", "train_labels" },
    { "train_x", "train_y" },
};
static const pair test_pairs[] = {
    { "x_test", "y_test" },
    { "X_test", "y_test" },
    { "test_images", "test_labels" },
    { "test_x", "test_y" },
};
static const pair whole_pairs[] = {
    { "x", "y" },           { "X", "y" },
    { "images", "labels" }, { "features", "labels" },
    { "data", "labels" },   { "arr_0", "arr_1" },
};

static const pair *find_pair(const pair *pairs, size_t pair_count,
                             const pl_zip_member *list, size_t count)
{
    for (size_t i = 0; i < pair_count; i++)
        if (find_key(list, count, pairs[i].examples) != NULL)
            return &pairs[i];
    return NULL;
}

#define FIND(pairs) find_pair(pairs, sizeof pairs / sizeof *pairs, list, count)

/* The names of a split's arrays in an archive. */
static pl_status choose(pair *out, const char *path, const pl_zip_member *list,
                        size_t count, pl_split split,
                        const pl_source_opts *opts)
{
    const pair *found =
        split == PL_SPLIT_TRAIN ? FIND(train_pairs) : FIND(test_pairs);
    if (found == NULL && (split == PL_SPLIT_TRAIN || !opts->own_test))
        found = FIND(whole_pairs);
    if (found == NULL && split == PL_SPLIT_TEST && opts->own_test)
        return pl_dense_no_test(path);
    if (found == NULL)
        return PL_FAIL(PL_NOTFOUND,
                       "%s holds none of the arrays %s, x, X, images, "
                       "features, data and arr_0; name them: npz:%s,EXAMPLES,"
                       "LABELS",
                       path,
                       split == PL_SPLIT_TRAIN ? "x_train, train_images"
                                               : "x_test, test_images",
                       path);
    *out = *found;
    if (find_key(list, count, found->labels) == NULL)
        out->labels = NULL;
    return PL_OK;
}

/* Numbers to be predicted: [N] or [N, K]. */
static pl_status take_targets(pl_dense_parts *parts, const array *a)
{
    int64_t width = pl_shape_row(a->npy.shape) / parts->count;
    char text[PL_SHAPE_TEXT];
    if (a->npy.shape.rank > 2 || width > INT32_MAX)
        return PL_FAIL(PL_FORMAT,
                       "%s: labels of shape %s, expected numbers of shape [N] "
                       "or [N, K]",
                       a->name, pl_shape_text(a->npy.shape, text));
    parts->classes = (int32_t)width;
    PL_TRY(PL_NEW_ALIGNED(parts->targets, (size_t)(parts->count * width)));
    pl_element_floats(a->npy.element, a->data, (size_t)(parts->count * width),
                      parts->targets);
    return pl_map_check(&a->map);
}

/* Labels are one number per row: [N] or [N, 1]. */
static pl_status take_labels(pl_dense_parts *parts, const array *a,
                             bool numeric)
{
    const pl_npy *npy = &a->npy;
    char text[PL_SHAPE_TEXT];
    if (npy->shape.dim[0] != parts->count)
        return PL_FAIL(PL_FORMAT, "%s has %lld labels for the %lld examples",
                       a->name, (long long)npy->shape.dim[0],
                       (long long)parts->count);
    if (numeric)
        return take_targets(parts, a);
    if (pl_shape_row(npy->shape) != parts->count)
        return PL_FAIL(PL_FORMAT,
                       "%s: labels of shape %s, expected one number an "
                       "example; of one-hot labels, in NumPy: "
                       "labels.argmax(1)",
                       a->name, pl_shape_text(npy->shape, text));
    PL_TRY(PL_NEW(parts->labels, (size_t)parts->count));
    pl_status status = pl_element_labels(npy->element, a->data,
                                         (size_t)parts->count, parts->labels);
    pl_status whole = pl_map_check(&a->map);
    status = whole != PL_OK ? whole : status;
    return status == PL_OK ? PL_OK : pl_context(status, "%s", a->name);
}

/* The examples, whose memory moves to `parts`. */
static pl_status take_examples(pl_dense_parts *parts, array *a,
                               const pl_source_opts *opts)
{
    pl_shape shape = a->npy.shape;
    if (shape.rank < 2)
        return PL_FAIL(PL_FORMAT,
                       "%s has one number an example, as labels have; expected "
                       "two dimensions or more, the examples first",
                       a->name);
    parts->count = shape.dim[0];
    parts->shape.rank = shape.rank - 1;
    for (int d = 1; d < shape.rank; d++)
        parts->shape.dim[d - 1] = shape.dim[d];
    parts->map = a->map;
    parts->memory = a->memory;
    a->map = (pl_map) { .data = NULL };
    a->memory = NULL;
    PL_TRY(pl_dense_take_elements(parts, a->npy.element, a->data));
    return pl_dense_channels_first(parts, opts->channels);
}

static pl_status put_together(pl_dataset **out, char *name, array *examples,
                              array *labels, const pl_source_opts *opts)
{
    pl_dense_parts parts = { .name = name };
    pl_status status = take_examples(&parts, examples, opts);
    if (status == PL_OK && labels != NULL)
        status = take_labels(&parts, labels, opts->numeric);
    if (status == PL_OK)
        return pl_dense_set_new(out, &parts);
    pl_dense_parts_close(&parts);
    return status;
}

/* "a,b,c" in up to three pieces; a file with this whole name is one piece. */
static int cut(char *text, char *pieces[3])
{
    int count = 1;
    pieces[0] = text;
    if (pl_file_exists(text))
        return 1;
    for (char *at = text; *at != '\0'; at++)
        if (*at == ',' && count < 3) {
            *at = '\0';
            pieces[count++] = at + 1;
        }
    return count;
}

static pl_status open_archive(pl_dataset **out, char *name, char **pieces,
                              int count, pl_split split,
                              const pl_source_opts *opts)
{
    array examples = { .name = NULL }, labels = { .name = NULL };
    pl_map file = { .data = NULL };
    pl_zip_member *list = NULL;
    size_t members = 0;
    const char *path = pieces[0];
    pair keys = { count > 1 ? pieces[1] : NULL, count > 2 ? pieces[2] : NULL };
    pl_status status;
    PL_TRY_OUT(status, pl_map_init(&file, path));
    status = pl_zip_list(&list, &members, &file);
    if (status != PL_OK) {
        pl_context(status, "%s", path);
        goto out;
    }
    if (count > 1 && split == PL_SPLIT_TEST && opts->own_test)
        PL_TRY_OUT(status, pl_dense_no_test(path));
    if (count == 1)
        PL_TRY_OUT(status, choose(&keys, path, list, members, split, opts));
    PL_TRY_OUT(status,
               open_member(&examples, path, list, members, keys.examples));
    if (keys.labels != NULL)
        PL_TRY_OUT(status,
                   open_member(&labels, path, list, members, keys.labels));
    status = put_together(out, name, &examples,
                          keys.labels != NULL ? &labels : NULL, opts);
    name = NULL;
out:
    pl_mem_free(name);
    close_array(&examples);
    close_array(&labels);
    pl_mem_free(list);
    pl_map_close(&file);
    return status;
}

static pl_status open_arrays(pl_dataset **out, char *name, char **pieces,
                             int count, pl_split split,
                             const pl_source_opts *opts)
{
    array examples = { .name = NULL }, labels = { .name = NULL };
    pl_status status;
    if (split == PL_SPLIT_TEST && opts->own_test)
        PL_TRY_OUT(status, pl_dense_no_test(name));
    if (count > 2) {
        status = PL_FAIL(PL_USAGE,
                         "%s names three files, expected "
                         "npy:EXAMPLES,LABELS",
                         name);
        goto out;
    }
    PL_TRY_OUT(status, open_file(&examples, pieces[0]));
    if (count == 2)
        PL_TRY_OUT(status, open_file(&labels, pieces[1]));
    status =
        put_together(out, name, &examples, count == 2 ? &labels : NULL, opts);
    name = NULL;
out:
    pl_mem_free(name);
    close_array(&examples);
    close_array(&labels);
    return status;
}

static bool is_archive(const char *path)
{
    size_t bytes = strlen(path);
    return bytes > 4 && strcmp(path + bytes - 4, ".npz") == 0;
}

static pl_status open_place(pl_dataset **out, const char *kind,
                            const char *place, pl_split split,
                            const pl_source_opts *opts)
{
    char *words = NULL, *name = NULL, *pieces[3];
    pl_status status = pl_mem_copy_text(&words, place);
    if (status == PL_OK)
        status = pl_mem_format(&name, "%s:%s", kind, place);
    if (status == PL_OK) {
        int count = cut(words, pieces);
        status = kind[2] == 'z' || is_archive(pieces[0])
                     ? open_archive(out, name, pieces, count, split, opts)
                     : open_arrays(out, name, pieces, count, split, opts);
    }
    pl_mem_free(words);
    return status;
}

pl_status pl_npy_open(pl_dataset **out, const char *place, pl_split split,
                      const pl_source_opts *opts)
{
    return open_place(out, "npy", place, split, opts);
}

pl_status pl_npz_open(pl_dataset **out, const char *place, pl_split split,
                      const pl_source_opts *opts)
{
    return open_place(out, "npz", place, split, opts);
}
