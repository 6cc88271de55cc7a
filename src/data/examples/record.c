/* record.c - knows the usual names of features: of pixels, label and size. */
#include "data/examples/record.h"

#include "base/mem.h"
#include "proto/field.h"
#include "proto/tf_example.h"

#include <string.h>

/* Names of the pixels or numbers, in order of preference; the first is the one
 * given by the user. */
static const char *const usual[] = {
    "", "image_raw", "image/encoded", "image", "features", "x", "data",
};
#define USUAL (sizeof usual / sizeof *usual)

/* All features searched for. */
enum {
    LABEL = USUAL,
    CLASS_LABEL,
    HEIGHT,
    WIDTH,
    DEPTH,
    ALL,
};

static pl_tf_list list_of(const char *name)
{
    return (pl_tf_list) { .name = name, .name_bytes = strlen(name) };
}

/* The one integer of a feature; `out` keeps its value when there is none. */
static pl_status read_int(const pl_tf_list *list, int64_t *out, bool *found)
{
    int64_t *all;
    size_t count = 0;
    if (list->kind != PL_TF_INTS)
        return PL_OK;
    PL_TRY(PL_NEW(all, list->bytes + 1));
    pl_status status = pl_tf_list_ints(list, all, &count);
    if (status == PL_OK && count != 1)
        status = PL_FAIL(PL_FORMAT,
                         "feature \"%s\" has %zu numbers, expected "
                         "1",
                         list->name, count);
    if (status == PL_OK) {
        *out = all[0];
        *found = true;
    }
    pl_mem_free(all);
    return status;
}

/* A BytesList of one element. */
static pl_status read_bytes(const pl_tf_list *list, pl_example_parts *out)
{
    pl_proto_span in = { list->data, list->data + list->bytes };
    int count = 0;
    while (in.at < in.end) {
        pl_proto_field f;
        PL_TRY(pl_proto_next(&in, &f));
        if (!pl_proto_holds(&f, 1))
            continue;
        out->data = f.body.at;
        out->bytes = (size_t)(f.body.end - f.body.at);
        count++;
    }
    return count == 1 ? PL_OK
                      : PL_FAIL(PL_FORMAT,
                                "feature \"%s\" has %d pieces of bytes, "
                                "expected 1",
                                list->name, count);
}

static pl_status take_example(pl_example_parts *out, const pl_tf_list *lists,
                              const char *given)
{
    for (size_t i = 0; i < USUAL; i++) {
        out->name = lists[i].name;
        out->floats = lists[i].kind == PL_TF_FLOATS;
        if (lists[i].kind == PL_TF_BYTES)
            return read_bytes(&lists[i], out);
        if (!out->floats)
            continue;
        out->data = lists[i].data;
        out->bytes = lists[i].bytes;
        return PL_OK;
    }
    return given != NULL
               ? PL_FAIL(
                     PL_NOTFOUND,
                     "no feature \"%s\" of bytes or floats (--image-feature "
                     "names it)",
                     given)
               : PL_FAIL(PL_NOTFOUND,
                         "no feature image_raw, image/encoded, image, "
                         "features, x or data; name it: --image-feature NAME");
}

pl_status pl_example_parts_find(pl_example_parts *out, const uint8_t *data,
                                size_t bytes, const pl_source_opts *opts)
{
    pl_tf_list lists[ALL];
    bool found = false;
    const char *given = opts->image_feature;
    *out = (pl_example_parts) { .data = NULL };
    for (size_t i = 0; i < USUAL; i++)
        lists[i] = list_of(given == NULL ? usual[i] : given);
    lists[LABEL] =
        list_of(opts->label_feature != NULL ? opts->label_feature : "label");
    lists[CLASS_LABEL] = list_of("image/class/label");
    lists[HEIGHT] = list_of("height");
    lists[WIDTH] = list_of("width");
    lists[DEPTH] = list_of("depth");
    PL_TRY(pl_tf_example_find(data, bytes, lists, ALL));
    PL_TRY(take_example(out, lists, given));
    PL_TRY(read_int(&lists[LABEL], &out->label, &out->labelled));
    if (!out->labelled)
        PL_TRY(read_int(&lists[CLASS_LABEL], &out->label, &out->labelled));
    PL_TRY(read_int(&lists[HEIGHT], &out->height, &found));
    PL_TRY(read_int(&lists[WIDTH], &out->width, &found));
    return read_int(&lists[DEPTH], &out->depth, &found);
}

static pl_tf_list float_list(const pl_example_parts *parts)
{
    return (pl_tf_list) { .name = parts->name,
                          .kind = PL_TF_FLOATS,
                          .data = parts->data,
                          .bytes = parts->bytes };
}

pl_status pl_example_float_count(const pl_example_parts *parts, size_t *count)
{
    pl_tf_list list = float_list(parts);
    float *all;
    PL_TRY(PL_NEW(all, list.bytes / 4 + 1));
    pl_status status = pl_tf_list_floats(&list, all, count);
    pl_mem_free(all);
    return status;
}

pl_status pl_example_floats(const pl_example_parts *parts, float *to,
                            size_t count)
{
    pl_tf_list list = float_list(parts);
    float *all;
    size_t found = 0;
    PL_TRY(PL_NEW(all, list.bytes / 4 + 1));
    pl_status status = pl_tf_list_floats(&list, all, &found);
    if (status == PL_OK && found != count)
        status = PL_FAIL(PL_FORMAT,
                         "feature \"%s\" has %zu numbers, the first "
                         "example has %zu",
                         parts->name, found, count);
    if (status == PL_OK)
        memcpy(to, all, count * sizeof *to);
    pl_mem_free(all);
    return status;
}

bool pl_example_has(const uint8_t *data, size_t bytes, const char *name)
{
    pl_tf_list list = list_of(name);
    return pl_tf_example_find(data, bytes, &list, 1) == PL_OK &&
           list.kind != PL_TF_NONE;
}
