/* idx_set.c - a data set from a pair of IDX files: finds them under their usual
 * names, checks that images and labels belong together, and writes such pairs.
 */
#include "data/idx/idx.h"

#include "base/mem.h"

#define MNIST_SIDE    28
#define MNIST_CLASSES 10

typedef struct idx_dataset {
    pl_dataset base;
    pl_idx images;
    pl_idx labels;
} idx_dataset;

static void release(pl_dataset *base)
{
    idx_dataset *set = (idx_dataset *)base;
    pl_idx_close(&set->images);
    pl_idx_close(&set->labels);
    pl_mem_free(set->base.name);
    pl_mem_free(set);
}

static const pl_map *source(const pl_dataset *base)
{
    return &((const idx_dataset *)base)->images.map;
}

static const pl_dataset_ops idx_ops = {
    .kind = "idx",
    .free = release,
    .source = source,
};

static const char *prefix_of(pl_split split)
{
    return split == PL_SPLIT_TRAIN ? "train" : "t10k";
}

/* What is looked for, as printed: images have rank 3 in their names. */
static const char *part_of(int rank)
{
    return rank == 1 ? "labels" : "images";
}

/* The path of a split's images or labels: the first of four names that is
 * there.  *out becomes NULL when none is. */
static pl_status find(char **out, const char *folder, pl_split split, int rank)
{
    for (int form = 0; form < 4; form++) {
        char *path;
        PL_TRY(pl_mem_format(&path, "%s/%s-%s%cidx%d-ubyte%s", folder,
                             prefix_of(split), part_of(rank),
                             form < 2 ? '-' : '.', rank,
                             form % 2 == 0 ? "" : ".gz"));
        if (pl_file_exists(path)) {
            *out = path;
            return PL_OK;
        }
        pl_mem_free(path);
    }
    *out = NULL;
    return PL_OK;
}

static pl_status not_found(const char *folder, pl_split split, int rank)
{
    if (!pl_file_exists(folder))
        return PL_FAIL(PL_NOTFOUND, "no folder %s", folder);
    const char *prefix = prefix_of(split), *part = part_of(rank);
    return PL_FAIL(PL_NOTFOUND,
                   "%s holds neither %s-%s-idx%d-ubyte nor "
                   "%s-%s-idx%d-ubyte.gz (nor either with a dot: "
                   "%s-%s.idx%d-ubyte)",
                   folder, prefix, part, rank, prefix, part, rank, prefix, part,
                   rank);
}

/* Find and read one file.  *path is the caller's, also after a failure. */
static pl_status open_part(pl_idx *idx, char **path, const char *folder,
                           pl_split split, int rank)
{
    PL_TRY(find(path, folder, split, rank));
    if (*path == NULL)
        return not_found(folder, split, rank);
    return pl_idx_init(idx, *path);
}

static pl_status check_labels(const pl_idx *labels, const char *path)
{
    if (labels->shape.rank != 1)
        return PL_FAIL(PL_FORMAT, "%s: %d dimensions, expected 1 for labels",
                       path, labels->shape.rank);
    return PL_OK;
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

static int32_t most_label(const pl_idx *labels)
{
    uint8_t most = 0;
    for (int64_t i = 0; i < labels->shape.dim[0]; i++)
        most = labels->data[i] > most ? labels->data[i] : most;
    return most;
}

static pl_status check_range(const pl_idx *labels, const char *path,
                             int32_t classes)
{
    for (int64_t i = 0; i < labels->shape.dim[0]; i++)
        if (labels->data[i] >= classes)
            return PL_FAIL(PL_FORMAT,
                           "%s: example %lld has label %d, expected 0 to %d",
                           path, (long long)i, labels->data[i], classes - 1);
    return PL_OK;
}

/* Classes are counted over both splits, so that training and testing agree;
 * a folder with one split only will do. */
static pl_status count_classes(int32_t *classes, const pl_idx *labels,
                               const char *folder, pl_split split)
{
    pl_split other = split == PL_SPLIT_TRAIN ? PL_SPLIT_TEST : PL_SPLIT_TRAIN;
    int32_t most = most_label(labels);
    char *path;
    PL_TRY(find(&path, folder, other, 1));
    if (path != NULL) {
        pl_idx there;
        pl_status status = pl_idx_init(&there, path);
        if (status == PL_OK) {
            status = check_labels(&there, path);
            int32_t most_there = most_label(&there);
            most = most_there > most ? most_there : most;
            pl_idx_close(&there);
        }
        pl_mem_free(path);
        PL_TRY(status);
    }
    *classes = most + 1;
    return PL_OK;
}

/* Open and check both files of a split. */
static pl_status open_pair(idx_dataset *set, const char *folder, pl_split split,
                           bool mnist)
{
    pl_status status;
    char *images = NULL, *labels = NULL;
    int32_t *classes = &set->base.classes;
    PL_TRY_OUT(status, open_part(&set->images, &images, folder, split, 3));
    PL_TRY_OUT(status, check_images(&set->images, images, mnist));
    PL_TRY_OUT(status, open_part(&set->labels, &labels, folder, split, 1));
    PL_TRY_OUT(status, check_labels(&set->labels, labels));
    PL_TRY_OUT(status, pl_idx_own(&set->labels)); /* they index memory */
    if (set->images.shape.dim[0] != set->labels.shape.dim[0]) {
        status = PL_FAIL(PL_FORMAT, "%s has %lld images, %s has %lld labels",
                         images, (long long)set->images.shape.dim[0], labels,
                         (long long)set->labels.shape.dim[0]);
        goto out;
    }
    *classes = MNIST_CLASSES;
    if (!mnist)
        PL_TRY_OUT(status, count_classes(classes, &set->labels, folder, split));
    status = check_range(&set->labels, labels, *classes);
out:
    pl_mem_free(images);
    pl_mem_free(labels);
    return status;
}

/* What the base needs to know of the opened files. */
static void describe(idx_dataset *set)
{
    pl_dataset *base = &set->base;
    pl_shape shape = set->images.shape;
    base->count = shape.dim[0];
    base->shape.rank = shape.rank - 1;
    for (int d = 1; d < shape.rank; d++)
        base->shape.dim[d - 1] = shape.dim[d];
    if (set->images.unpacked != NULL)
        base->held_bytes = pl_shape_row(shape);
    base->features = (pl_view) {
        .data = set->images.data,
        .stride = pl_shape_row(base->shape),
        .dtype = PL_UINT8,
        .scale = 1.0f / 255.0f,
    };
    base->labels = (pl_view) {
        .data = set->labels.data,
        .stride = 1,
        .dtype = PL_UINT8,
        .scale = 1.0f,
    };
}

pl_status pl_idx_dataset_open(pl_dataset **out, const char *folder,
                              pl_split split, bool mnist)
{
    pl_status status;
    const char *kind = mnist ? "mnist" : "idx";
    idx_dataset *set;
    PL_TRY(PL_NEW(set, 1));
    set->base.ops = &idx_ops;
    PL_TRY_OUT(status, pl_mem_format(&set->base.name, "%s:%s", kind, folder));
    PL_TRY_OUT(status, open_pair(set, folder, split, mnist));
    describe(set);

    *out = &set->base;
    set = NULL; /* now the caller's */
out:
    if (set != NULL)
        release(&set->base);
    return status == PL_OK ? PL_OK : pl_context(status, "%s:%s", kind, folder);
}

/* Labels as the bytes that IDX holds. */
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
    if (set->sparse || set->count < 1 || set->shape.rank != 2 ||
        set->classes > 256 || features->dtype != PL_UINT8)
        return PL_FAIL(PL_UNSUPPORTED,
                       "%s: only uint8 images of two dimensions and at most "
                       "256 classes are written as IDX",
                       set->name);

    pl_status status;
    char *images_path = NULL, *labels_path = NULL;
    uint8_t *labels = NULL;
    const char *prefix = prefix_of(split);
    PL_TRY_OUT(status, pl_file_make_folder(folder));
    PL_TRY_OUT(status, pl_mem_format(&images_path, "%s/%s-images-idx3-ubyte",
                                     folder, prefix));
    PL_TRY_OUT(status, pl_mem_format(&labels_path, "%s/%s-labels-idx1-ubyte",
                                     folder, prefix));
    PL_TRY_OUT(status, copy_labels(&labels, set));
    PL_TRY_OUT(status, pl_idx_write(images_path,
                                    PL_SHAPE(set->count, set->shape.dim[0],
                                             set->shape.dim[1]),
                                    features->data));
    PL_TRY_OUT(status, pl_dataset_check(set, true));
    PL_TRY_OUT(status, pl_idx_write(labels_path, PL_SHAPE(set->count), labels));
out:
    pl_mem_free(labels);
    pl_mem_free(labels_path);
    pl_mem_free(images_path);
    return status;
}
