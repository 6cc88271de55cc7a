/* folder.c - the functions of file.h for folders. */
#include "base/file/file.h"

#include "base/file/file_priv.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_FOLDERS_MAX 16 /* descriptors a removal may hold */

const char *pl_file_last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

pl_status pl_file_flush_folder_of(const char *path)
{
    char *folder;
    const char *name = pl_file_last_name(path);
    int length = (int)(name - path);
    PL_TRY(length == 0 ? pl_mem_copy_text(&folder, ".")
                       : pl_mem_format(&folder, "%.*s", length, path));
    int result = -1;
    int file;
    PL_SYSTEM_CALL(file, open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (file >= 0) {
        PL_SYSTEM_CALL(result, fsync(file));
        if (result < 0 && (errno == EINVAL || errno == ENOTSUP))
            result = 0; /* a file system that cannot flush folders */
    }
    pl_status status =
        result < 0 ? pl_file_fail_errno("flush", folder, true) : PL_OK;
    if (file >= 0)
        close(file);
    pl_mem_free(folder);
    return status;
}

/* Make one folder whose parent exists. */
static pl_status make_one_folder(const char *path, bool flush)
{
    int result;
    PL_SYSTEM_CALL(result, mkdir(path, 0777));
    if (result == 0)
        return flush ? pl_file_flush_folder_of(path) : PL_OK;
    struct stat info;
    if (errno == EEXIST && stat(path, &info) == 0) {
        if (S_ISDIR(info.st_mode))
            return PL_OK;
        return PL_FAIL(PL_IO, "make folder %s: a file of that name exists",
                       path);
    }
    return pl_file_fail_errno("make folder", path, true);
}

static pl_status make_folders(const char *path, bool flush_last)
{
    pl_status status = PL_OK;
    char *part;
    PL_TRY(pl_mem_copy_text(&part, path));
    for (char *at = part; status == PL_OK && *at != '\0'; at++) {
        if (*at != '/' || at == part || at[-1] == '/' || at[1] == '\0')
            continue;
        *at = '\0';
        if (!pl_file_exists(part)) /* a parent may be unreadable */
            status = make_one_folder(part, true);
        *at = '/';
    }
    if (status == PL_OK) {
        size_t length = strlen(part);
        while (length > 1 && part[length - 1] == '/')
            part[--length] = '\0';
        status = make_one_folder(part, flush_last);
    }
    pl_mem_free(part);
    return status;
}

pl_status pl_file_make_folder(const char *path)
{
    return make_folders(path, true);
}

pl_status pl_file_make_folder_unflushed(const char *path)
{
    return make_folders(path, false);
}

pl_status pl_file_rename(const char *from, const char *to)
{
    int result;
    PL_SYSTEM_CALL(result, rename(from, to));
    if (result < 0) {
        pl_status status = pl_file_fail_errno("rename to", to, true);
        return pl_context(status, "%s", from);
    }
    return pl_file_flush_folder_of(to);
}

static int remove_one(const char *path, const struct stat *info, int type,
                      struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return pl_file_fault() ? -1 : remove(path);
}

pl_status pl_file_remove_all(const char *path)
{
    if (nftw(path, remove_one, OPEN_FOLDERS_MAX, FTW_DEPTH | FTW_PHYS) != 0 &&
        errno != ENOENT)
        return pl_file_fail_errno("remove", path, true);
    return PL_OK;
}

pl_status pl_file_join(char **out, const char *folder, const char *name)
{
    size_t length = strlen(folder);
    bool slash = length > 0 && folder[length - 1] == '/';
    return pl_mem_format(out, "%s%s%s", folder, length == 0 || slash ? "" : "/",
                         name);
}

/* Concatenated names, each NUL-terminated. */
struct name_list {
    char *bytes;
    size_t used;
    size_t room;
    size_t count;
};

static pl_status add_name(struct name_list *list, const char *name)
{
    size_t bytes = strlen(name) + 1;
    if (list->room - list->used < bytes) {
        size_t room = list->room * 2 + NAME_MAX + 1;
        PL_TRY(PL_RESIZE(list->bytes, room));
        list->room = room;
    }
    memcpy(list->bytes + list->used, name, bytes);
    list->used += bytes;
    list->count++;
    return PL_OK;
}

static pl_status read_names(struct name_list *list, DIR *stream,
                            const char *folder)
{
    for (;;) {
        errno = 0;
        struct dirent *entry = pl_file_fault() ? NULL : readdir(stream);
        if (entry == NULL)
            return errno == 0 ? PL_OK
                              : pl_file_fail_errno("list", folder, false);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            PL_TRY(add_name(list, entry->d_name));
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The pointers and the bytes they point to, in one allocation. */
static pl_status pack_names(char ***out, const struct name_list *list)
{
    size_t table = list->count * sizeof(char *);
    char *memory;
    PL_TRY(PL_NEW(memory, table + list->used));
    char **names = (void *)memory;
    char *at = memory + table;
    if (list->used > 0)
        memcpy(at, list->bytes, list->used);
    for (size_t i = 0; i < list->count; i++) {
        names[i] = at;
        at += strlen(at) + 1;
    }
    qsort(names, list->count, sizeof *names, compare_names);
    *out = names;
    return PL_OK;
}

pl_status pl_file_list(char ***names, size_t *count, const char *folder)
{
    DIR *stream = pl_file_fault() ? NULL : opendir(folder);
    if (stream == NULL)
        return pl_file_fail_errno("list", folder, false);
    struct name_list list = { 0 };
    pl_status status = read_names(&list, stream, folder);
    closedir(stream);
    if (status == PL_OK)
        status = pack_names(names, &list);
    if (status == PL_OK)
        *count = list.count;
    pl_mem_free(list.bytes);
    return status;
}
