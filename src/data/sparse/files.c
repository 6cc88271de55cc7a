/* files.c - opens all files that a source's pattern names, and unpacks
 * compressed ones into unnamed temporary files. */
#include "data/sparse/files.h"

#include "base/mem.h"
#include "data/pack/unpack.h"

#include <glob.h>

#define MOST_FILES 100000

/* Replace packed bytes by their content. */
static pl_status unpack(pl_sparse_file *file, pl_packing packing,
                        const pl_source_opts *opts)
{
    pl_spill spill;
    pl_map map = { 0 };
    PL_TRY(pl_spill_init(&spill, opts->cache_dir));
    pl_status status =
        pl_unpack(&spill, packing, file->data, file->bytes, opts->unpack_ratio);
    pl_status whole = pl_map_check(&file->map);
    status = whole != PL_OK ? whole : status;
    if (status == PL_OK)
        status = pl_spill_map(&spill, &map);
    pl_spill_close(&spill);
    PL_TRY(status);
    pl_map_close(&file->map);
    file->map = map;
    file->data = map.data;
    file->bytes = map.bytes;
    file->packed = true;
    return PL_OK;
}

static pl_status unpack_if_packed(pl_sparse_file *file,
                                  const pl_sparse_format *format,
                                  const pl_source_opts *opts)
{
    bool text = format->plain == NULL;
    pl_packing packing = pl_packing_of(file->data, file->bytes, text);
    if (packing == PL_PACKING_NONE ||
        (format->plain != NULL && format->plain(file->data, file->bytes)))
        return PL_OK;
    pl_status status = unpack(file, packing, opts);
    return status == PL_OK ? PL_OK : pl_context(status, "%s", file->path);
}

static pl_status open_file(pl_sparse_file *file, const char *path,
                           const pl_sparse_format *format,
                           const pl_source_opts *opts)
{
    PL_TRY(pl_mem_copy_text(&file->path, path));
    PL_TRY(pl_map_init(&file->map, path));
    file->data = file->map.data;
    file->bytes = file->map.bytes;
    return unpack_if_packed(file, format, opts);
}

static pl_status open_all(pl_sparse_file **out, int32_t *count,
                          char *const *paths, size_t path_count,
                          const pl_sparse_format *format,
                          const pl_source_opts *opts)
{
    if (path_count > MOST_FILES)
        return PL_FAIL(PL_UNSUPPORTED, "%zu files, at most %d", path_count,
                       MOST_FILES);
    pl_sparse_file *files;
    PL_TRY(PL_NEW(files, path_count));
    for (size_t i = 0; i < path_count; i++) {
        pl_status status = open_file(&files[i], paths[i], format, opts);
        if (status != PL_OK) {
            pl_sparse_files_free(files, (int32_t)path_count);
            return status;
        }
    }
    *out = files;
    *count = (int32_t)path_count;
    return PL_OK;
}

pl_status pl_sparse_files_new(pl_sparse_file **out, int32_t *count,
                              const pl_sparse_format *format,
                              const char *pattern, const pl_source_opts *opts)
{
    if (pl_file_exists(pattern)) /* even with wildcard characters */
        return open_all(out, count, (char *[]) { (char *)pattern }, 1, format,
                        opts);
    glob_t found;
    int code = glob(pattern, 0, NULL, &found);
    pl_status status;
    if (code == GLOB_NOMATCH)
        status = PL_FAIL(PL_NOTFOUND, "no file %s", pattern);
    else if (code != 0)
        status = PL_FAIL(code == GLOB_NOSPACE ? PL_NOMEM : PL_IO,
                         "cannot list the files %s", pattern);
    else
        status =
            open_all(out, count, found.gl_pathv, found.gl_pathc, format, opts);
    globfree(&found);
    return status;
}

pl_status pl_sparse_files_new_memory(pl_sparse_file **out,
                                     const pl_sparse_format *format,
                                     const uint8_t *data, size_t bytes,
                                     const pl_source_opts *opts)
{
    pl_sparse_file *file;
    pl_source_opts in_memory = *opts;
    in_memory.cache_dir = NULL;
    PL_TRY(PL_NEW(file, 1));
    file->data = data;
    file->bytes = bytes;
    pl_status status = pl_mem_copy_text(&file->path, "memory");
    if (status == PL_OK)
        status = unpack_if_packed(file, format, &in_memory);
    if (status == PL_OK)
        *out = file;
    else
        pl_sparse_files_free(file, 1);
    return status;
}

void pl_sparse_files_free(pl_sparse_file *files, int32_t count)
{
    if (files == NULL)
        return;
    for (int32_t i = 0; i < count; i++) {
        pl_map_close(&files[i].map);
        pl_mem_free(files[i].path);
    }
    pl_mem_free(files);
}
