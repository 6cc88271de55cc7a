/* idx_set.c - a data set from a pair of IDX files: finds them by their usual
 * names or takes those given, checks that examples and labels belong together,
 * and writes such pairs. */
#include "data/idx/idx.h"

#include "base/assert.h"
#include "base/mem.h"
#include "data/dense/set.h"
#include "tensor/shape.h"

#include <string.h>
#include <sys/stat.h>

#define MNIST_SIDE    28
#define MNIST_CLASSES 10

static const char *prefix_of(pl_split split)
{
    return split == PL_SPLIT_TRAIN ? "train" : "t10k";
}

static bool begins(const char *name, const char *prefix, const char *part)
{
    size_t bytes = strlen(prefix);
    return strncmp(name, prefix, bytes) == 0 && name[bytes] == '-' &&
           strncmp(name + bytes + 1, part, strlen(part)) == 0;
}

/* The path of a split's images or labels: the first name with their prefix.
 * *out becomes NULL when there is none. */
static pl_status find(char **out, const char *folder, pl_split split,
                      const char *part)
{
    char **names;
    size_t count;
    *out = NULL;
    PL_TRY(pl_file_list(&names, &count, folder));
    pl_status status = PL_OK;
    for (size_t i = 0; i < count && *out == NULL && status == PL_OK; i++)
        if (begins(names[i], prefix_of(split), part) ||
            (split == PL_SPLIT_TEST && begins(names[i], "test", part)))
            status = pl_file_join(out, folder, names[i]);
    pl_mem_free(names);
    return status;
}

static pl_status not_found(const char *folder, pl_split split, const char *part)
{
    return PL_FAIL(PL_NOTFOUND,
                   "%s holds no file whose name begins with %s-%s, as "
                   "%s-%s-idx%d-ubyte does; name the files: idx:IMAGES,LABELS",
                   folder, prefix_of(split), part, prefix_of(split), part,
                   part[0] == 'l' ? 1 : 3);
}

/* Find and read one file.  The caller frees *path, also after a failure. */
static pl_status open_part(pl_idx *idx, char **path, const char *folder,
                           pl_split split, const char *part)
{
    PL_TRY(find(path, folder, split, part));
    if (*path == NULL)
        return not_found(folder, split, part);
    return pl_idx_init(idx, *path);
}

static pl_status check_images(const pl_idx *images, const char *path,
                              bool mnist)
{
    pl_shape shape = images->shape;
    char text[PL_SHAPE_TEXT];
    if (shape.rank < 2)
        return PL_FAIL(PL_FORMAT,
                       "%s: %d dimension, expected 2 or more for images", path,
                       shape.rank);
    if (mnist && (shape.rank != 3 || shape.dim[1] != MNIST_SIDE ||
                  shape.dim[2] != MNIST_SIDE))
        return PL_FAIL(PL_FORMAT,
                       "%s: images of shape %s, expected [count, %d, %d]", path,
                       pl_shape_text(shape, text), MNIST_SIDE, MNIST_SIDE);
    return PL_OK;
}

/* Labels as int32 (pl_mem_free). */
static pl_status read_labels(int32_t **out, int64_t *count, const char *path)
{
    pl_idx idx;
    int32_t *labels = NULL;
    PL_TRY(pl_idx_init(&idx, path));
    pl_status status;
    *count = idx.shape.dim[0];
    if (pl_shape_row(idx.shape) != *count)
        status = PL_FAIL(PL_FORMAT, "%s: %d dimensions, expected 1 for labels",
                         path, idx.shape.rank);
    else
        status = PL_NEW(labels, (size_t)*count);
    if (status == PL_OK)
        status =
            pl_element_labels(idx.element, idx.data, (size_t)*count, labels);
    pl_status whole = pl_map_check(&idx.map);
    pl_idx_close(&idx);
    status = whole != PL_OK ? whole : status;
    if (status == PL_OK) {
        *out = labels;
        return PL_OK;
    }
    pl_mem_free(labels);
    return pl_context(status, "%s", path);
}

static int32_t most_label(const int32_t *labels, int64_t count)
{
    int32_t most = 0;
    PL_ASSERT(labels != NULL || count == 0);
    for (int64_t i = 0; i < count; i++)
        most = labels[i] > most ? labels[i] : most;
    return most;
}

/* Classes are counted over both splits, so that training and testing agree; a
 * folder with only one split is fine. */
static pl_status count_classes(pl_dense_parts *parts, const char *folder,
                               pl_split split)
{
    pl_split other = split == PL_SPLIT_TRAIN ? PL_SPLIT_TEST : PL_SPLIT_TRAIN;
    int32_t most = most_label(parts->labels, parts->count), *there = NULL;
    char *path;
    int64_t count = 0;
    PL_TRY(find(&path, folder, other, "labels"));
    if (path != NULL) {
        pl_status status = read_labels(&there, &count, path);
        pl_mem_free(path);
        PL_TRY(status);
        int32_t most_there = most_label(there, count);
        most = most_there > most ? most_there : most;
        pl_mem_free(there);
    }
    parts->classes = most + 1;
    return PL_OK;
}

static pl_status check_range(const pl_dense_parts *parts, const char *path)
{
    for (int64_t i = 0; i < parts->count; i++)
        if (parts->labels[i] >= parts->classes)
            return PL_FAIL(
                PL_FORMAT, "%s: example %lld has label %d, expected 0 to %d",
                path, (long long)i, parts->labels[i], parts->classes - 1);
    return PL_OK;
}

/* Take the elements of a file, which is closed or handed over. */
static pl_status take_images(pl_dense_parts *parts, pl_idx *images,
                             pl_channel_order channels)
{
    pl_shape shape = images->shape;
    parts->count = shape.dim[0];
    parts->shape.rank = shape.rank - 1;
    for (int d = 1; d < shape.rank; d++)
        parts->shape.dim[d - 1] = shape.dim[d];
    parts->map = images->map;
    parts->memory = images->unpacked;
    images->map = (pl_map) { .data = NULL };
    images->unpacked = NULL;
    PL_TRY(pl_dense_take_elements(parts, images->element, images->data));
    return pl_dense_channels_first(parts, channels);
}

static pl_status take_labels(pl_dense_parts *parts, const char *images,
                             const char *labels)
{
    int64_t count;
    PL_TRY(read_labels(&parts->labels, &count, labels));
    if (count == parts->count)
        return PL_OK;
    return PL_FAIL(PL_FORMAT, "%s has %lld images, %s has %lld labels", images,
                   (long long)parts->count, labels, (long long)count);
}

/* Open and check both files of a split. */
static pl_status open_folder(pl_dense_parts *parts, const char *folder,
                             pl_split split, const pl_source_opts *opts,
                             bool mnist)
{
    pl_status status;
    char *images = NULL, *labels = NULL;
    pl_idx idx = { .data = NULL };
    if (!pl_file_exists(folder))
        return PL_FAIL(PL_NOTFOUND, "no folder %s", folder);
    PL_TRY_OUT(status, open_part(&idx, &images, folder, split, "images"));
    PL_TRY_OUT(status, check_images(&idx, images, mnist));
    if (mnist && idx.element.bytes != 1) {
        status =
            PL_FAIL(PL_FORMAT, "%s: images of MNIST are bytes; give idx:%s",
                    images, folder);
        goto out;
    }
    PL_TRY_OUT(status, find(&labels, folder, split, "labels"));
    if (labels == NULL)
        PL_TRY_OUT(status, not_found(folder, split, "labels"));
    PL_TRY_OUT(status, take_images(parts, &idx,
                                   mnist ? PL_CHANNELS_FIRST : opts->channels));
    PL_TRY_OUT(status, take_labels(parts, images, labels));
    parts->classes = MNIST_CLASSES;
    if (!mnist)
        PL_TRY_OUT(status, count_classes(parts, folder, split));
    status = check_range(parts, labels);
out:
    pl_idx_close(&idx);
    pl_mem_free(images);
    pl_mem_free(labels);
    return status;
}

/* "EXAMPLES,LABELS", or examples alone. */
static pl_status open_files(pl_dense_parts *parts, const char *place,
                            pl_split split, const pl_source_opts *opts)
{
    pl_status status;
    char *images = NULL, *labels;
    pl_idx idx = { .data = NULL };
    if (split == PL_SPLIT_TEST && opts->own_test)
        return pl_dense_no_test(place);
    PL_TRY_OUT(status, pl_mem_copy_text(&images, place));
    labels = pl_file_exists(images) ? NULL : strchr(images, ',');
    if (labels != NULL)
        *labels++ = '\0';
    PL_TRY_OUT(status, pl_idx_init(&idx, images));
    if (opts->unlabelled && idx.shape.rank < 2) {
        char text[PL_SHAPE_TEXT];
        status = PL_FAIL(PL_USAGE,
                         "%s holds one number an example, as files of labels "
                         "do; expected images of %s",
                         images, pl_shape_text(opts->shape, text));
        goto out;
    }
    PL_TRY_OUT(status, check_images(&idx, images, false));
    PL_TRY_OUT(status, take_images(parts, &idx, opts->channels));
    if (labels != NULL)
        status = take_labels(parts, images, labels);
out:
    pl_idx_close(&idx);
    pl_mem_free(images);
    return status;
}

static pl_status finish(pl_dataset **out, pl_dense_parts *parts,
                        const char *kind, const char *place, pl_status status)
{
    if (status == PL_OK)
        return pl_dense_set_new(out, parts);
    pl_dense_parts_close(parts);
    return pl_context(status, "%s:%s", kind, place);
}

/* A place with a comma, or one that is a file, names files; any other is a
 * folder. */
static bool names_files(const char *place)
{
    struct stat info;
    return stat(place, &info) == 0 ? !S_ISDIR(info.st_mode)
                                   : strchr(place, ',') != NULL;
}

pl_status pl_idx_dataset_open(pl_dataset **out, const char *place,
                              pl_split split, const pl_source_opts *opts)
{
    pl_dense_parts parts = { .name = NULL };
    pl_status status = pl_mem_format(&parts.name, "idx:%s", place);
    if (status == PL_OK)
        status = names_files(place)
                     ? open_files(&parts, place, split, opts)
                     : open_folder(&parts, place, split, opts, false);
    return finish(out, &parts, "idx", place, status);
}

pl_status pl_idx_mnist_open(pl_dataset **out, const char *folder,
                            pl_split split, const pl_source_opts *opts)
{
    pl_dense_parts parts = { .name = NULL };
    pl_status status = pl_mem_format(&parts.name, "mnist:%s", folder);
    if (status == PL_OK)
        status = open_folder(&parts, folder, split, opts, true);
    return finish(out, &parts, "mnist", folder, status);
}

/* Labels as the bytes of IDX. */
static pl_status copy_labels(uint8_t **out, const pl_dataset *set)
{
    uint8_t *labels;
    PL_TRY(PL_NEW(labels, (size_t)set->count));
    for (int64_t i = 0; i < set->count; i++)
        labels[i] = (uint8_t)pl_view_label(&set->labels, i);
    *out = labels;
    return PL_OK;
}

pl_status pl_dataset_write_idx(const pl_dataset *set, const char *folder,
                               pl_split split)
{
    const pl_view *features = &set->features;
    if (set->sparse || set->count < 1 || set->shape.rank >= PL_MAX_RANK ||
        set->classes > 256 || set->labels.data == NULL)
        return PL_FAIL(PL_UNSUPPORTED,
                       "%s: only labelled dense examples of at most %d "
                       "dimensions and 256 classes are written as IDX",
                       set->name, PL_MAX_RANK - 1);

    pl_status status;
    char *images_path = NULL, *labels_path = NULL;
    uint8_t *labels = NULL;
    pl_shape shape = PL_SHAPE(set->count);
    for (int d = 0; d < set->shape.rank; d++)
        shape.dim[shape.rank++] = set->shape.dim[d];
    const char *prefix = prefix_of(split);
    const char *type = features->dtype == PL_UINT8 ? "ubyte" : "float";
    PL_TRY_OUT(status, pl_file_make_folder(folder));
    PL_TRY_OUT(status, pl_mem_format(&images_path, "%s/%s-images-idx%d-%s",
                                     folder, prefix, shape.rank, type));
    PL_TRY_OUT(status, pl_mem_format(&labels_path, "%s/%s-labels-idx1-ubyte",
                                     folder, prefix));
    PL_TRY_OUT(status, copy_labels(&labels, set));
    PL_TRY_OUT(status, pl_idx_write(images_path, shape, features->dtype,
                                    features->data));
    PL_TRY_OUT(status, pl_dataset_check(set, true));
    PL_TRY_OUT(status, pl_idx_write(labels_path, PL_SHAPE(set->count), PL_UINT8,
                                    labels));
out:
    pl_mem_free(labels);
    pl_mem_free(labels_path);
    pl_mem_free(images_path);
    return status;
}
