/* folder.c - decides which files are images, by the ends of their names, and
 * which class a folder is. */
#include "data/images/folder.h"

#include "base/file/file.h"
#include "base/mem.h"
#include "data/dense/encoding.h"
#include "data/dense/set.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define MOST_FILES ((size_t)1 << 28)

void pl_image_list_close(pl_image_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        pl_mem_free(list->files[i].name);
    for (size_t i = 0; i < list->class_count; i++)
        pl_mem_free(list->classes[i]);
    pl_mem_free(list->files);
    pl_mem_free(list->classes);
    pl_mem_free(list->folder);
    *list = (pl_image_list) { .folder = NULL };
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_image(const char *name)
{
    static const char *const ends[] = { ".png", ".jpg", ".jpeg" };
    size_t bytes = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end = strlen(ends[i]);
        if (name[0] != '.' && bytes > end &&
            strcasecmp(name + bytes - end, ends[i]) == 0)
            return true;
    }
    return false;
}

static pl_status add(pl_image_list *list, const char *below, const char *name,
                     int32_t class)
{
    if (list->count == MOST_FILES)
        return PL_FAIL(PL_UNSUPPORTED, "more than %zu images", MOST_FILES);
    PL_TRY(PL_GROW(list->files, list->count, list->room));
    char **to = &list->files[list->count].name;
    PL_TRY(below != NULL ? pl_file_join(to, below, name)
                         : pl_mem_copy_text(to, name));
    list->files[list->count++].class = class;
    return PL_OK;
}

/* Add the images of the list's folder or, if given, of `below` in it. */
static pl_status add_folder(pl_image_list *list, const char *below,
                            int32_t class)
{
    char *path = NULL, **names = NULL;
    size_t count = 0;
    pl_status status;
    if (below != NULL)
        PL_TRY_OUT(status, pl_file_join(&path, list->folder, below));
    PL_TRY_OUT(status, pl_file_list(&names, &count,
                                    path != NULL ? path : list->folder));
    for (size_t i = 0; i < count; i++)
        if (is_image(names[i]))
            PL_TRY_OUT(status, add(list, below, names[i], class));
out:
    pl_mem_free(names);
    pl_mem_free(path);
    return status;
}

static pl_status add_class(pl_image_list *list, const char *name)
{
    char **grown = list->classes;
    size_t room = list->class_count;
    PL_TRY(PL_RESIZE(grown, room + 1));
    list->classes = grown;
    grown[room] = NULL;
    PL_TRY(pl_mem_copy_text(&grown[room], name));
    list->class_count++;
    return PL_OK;
}

/* The subfolders, sorted by their names, are the classes. */
static pl_status find_classes(pl_image_list *list)
{
    char **names;
    size_t count;
    PL_TRY(pl_file_list(&names, &count, list->folder));
    pl_status status = PL_OK;
    for (size_t i = 0; i < count && status == PL_OK; i++) {
        char *path;
        status = pl_file_join(&path, list->folder, names[i]);
        if (status == PL_OK && names[i][0] != '.' && is_folder(path))
            status = add_class(list, names[i]);
        if (status == PL_OK)
            pl_mem_free(path);
    }
    pl_mem_free(names);
    return status;
}

/* The class of a folder: its index among all folders, or among those of the
 * training data. */
static pl_status class_of(const pl_image_list *list, const char *name,
                          const char **known, size_t known_count, int32_t *out)
{
    for (size_t i = 0; i < known_count; i++)
        if (strcmp(known[i], name) == 0) {
            *out = (int32_t)i;
            return PL_OK;
        }
    return PL_FAIL(PL_FORMAT,
                   "%s/%s is not one of the %zu classes of the training data, "
                   "the first of which is %s",
                   list->folder, name, known_count,
                   known_count > 0 ? known[0] : "missing");
}

static pl_status add_classes(pl_image_list *list, pl_encoding *encoding)
{
    const char **known = NULL;
    size_t known_count = 0;
    bool fixed = encoding != NULL && encoding->fixed;
    if (fixed)
        PL_TRY(pl_encoding_texts(encoding, "classes", &known, &known_count));
    pl_status status = PL_OK;
    for (size_t i = 0; i < list->class_count && status == PL_OK; i++) {
        int32_t class = (int32_t)i;
        if (known != NULL)
            status =
                class_of(list, list->classes[i], known, known_count, &class);
        if (status == PL_OK)
            status = add_folder(list, list->classes[i], class);
    }
    pl_mem_free(known);
    if (status == PL_OK && encoding != NULL && !fixed)
        status = pl_encoding_set_texts(encoding, "classes", list->classes,
                                       list->class_count);
    return status;
}

/* The first of some folders that exists in `folder`; NULL: none. */
static pl_status first_of(char **out, const char *folder,
                          const char *const *names)
{
    *out = NULL;
    for (; *names != NULL && *out == NULL; names++) {
        char *path;
        PL_TRY(pl_file_join(&path, folder, *names));
        if (is_folder(path))
            *out = path;
        else
            pl_mem_free(path);
    }
    return PL_OK;
}

/* DIR itself, or its folder of the split. */
static pl_status find_folder(pl_image_list *list, const char *folder,
                             pl_split split, const pl_source_opts *opts)
{
    static const char *const train[] = { "train", NULL };
    static const char *const test[] = { "test", "val", "valid", NULL };
    char *training;
    if (!is_folder(folder))
        return PL_FAIL(PL_NOTFOUND, "no folder %s", folder);
    PL_TRY(first_of(&training, folder, train));
    if (training != NULL && split == PL_SPLIT_TRAIN) {
        list->folder = training;
        return PL_OK;
    }
    pl_mem_free(training);
    if (training != NULL)
        PL_TRY(first_of(&list->folder, folder, test));
    if (list->folder != NULL)
        return PL_OK;
    return split == PL_SPLIT_TEST && opts->own_test
               ? pl_dense_no_test(folder)
               : pl_mem_copy_text(&list->folder, folder);
}

/* One image, for prediction. */
static pl_status take_file(pl_image_list *list, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    PL_TRY(slash != NULL ? pl_mem_format(&list->folder, "%.*s/",
                                         (int)(slash - path), path)
                         : pl_mem_copy_text(&list->folder, "."));
    return add(list, NULL, name, -1);
}

static pl_status fill(pl_image_list *list, const char *folder, pl_split split,
                      const pl_source_opts *opts)
{
    if (pl_file_exists(folder) && !is_folder(folder))
        return take_file(list, folder);
    PL_TRY(find_folder(list, folder, split, opts));
    PL_TRY(find_classes(list));
    PL_TRY(list->class_count > 0 ? add_classes(list, opts->encoding)
                                 : add_folder(list, NULL, -1));
    return list->count > 0
               ? PL_OK
               : PL_FAIL(PL_NOTFOUND,
                         "%s holds no images: expected a folder for each "
                         "class, with .png, .jpg or .jpeg files",
                         list->folder);
}

pl_status pl_image_list_init(pl_image_list *list, const char *folder,
                             pl_split split, const pl_source_opts *opts)
{
    *list = (pl_image_list) { .folder = NULL };
    pl_status status = fill(list, folder, split, opts);
    if (status != PL_OK)
        pl_image_list_close(list);
    return status;
}
