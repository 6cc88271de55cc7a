/* An unnamed temporary file in a folder, or in memory where no folder is
 * given. */
#include "base/file/spill.h"

#include "base/file/file_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *place(const char *folder)
{
    return folder != NULL ? folder : "temporary memory";
}

pl_status pl_spill_init(pl_spill *spill, const char *folder)
{
    int file;
    if (folder != NULL) {
        PL_TRY(pl_file_make_folder(folder));
        PL_SYSTEM_CALL(file,
                       open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
        /* Some file systems do not support unnamed files. */
        if (file < 0 && errno == EOPNOTSUPP)
            folder = NULL;
        else if (file < 0)
            return pl_file_fail_errno("make a temporary file in", folder, true);
    }
    if (folder == NULL) {
        PL_SYSTEM_CALL(file, memfd_create("paceline", MFD_CLOEXEC));
        if (file < 0)
            return pl_file_fail_errno("make", place(folder), true);
    }
    *spill = (pl_spill) { file, folder };
    return PL_OK;
}

void pl_spill_close(pl_spill *spill)
{
    close(spill->file);
}

pl_status pl_spill_put(pl_spill *spill, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t put;
        PL_SYSTEM_CALL(put, write(spill->file, at, bytes));
        if (put < 0)
            return pl_file_fail_errno("write a temporary file in",
                                      place(spill->folder), true);
        at += put;
        bytes -= (size_t)put;
    }
    return PL_OK;
}

pl_status pl_spill_map(const pl_spill *spill, pl_map *map)
{
    struct stat info;
    int result;
    PL_SYSTEM_CALL(result, fstat(spill->file, &info));
    if (result < 0)
        return pl_file_fail_errno("read a temporary file in",
                                  place(spill->folder), true);
    *map = (pl_map) { .bytes = (size_t)info.st_size };
    if (map->bytes == 0)
        return PL_OK;
    void *data = pl_file_fault() ? MAP_FAILED
                                 : mmap(NULL, map->bytes, PROT_READ,
                                        MAP_PRIVATE, spill->file, 0);
    if (data == MAP_FAILED)
        return pl_file_fail_errno("map a temporary file in",
                                  place(spill->folder), true);
    map->data = data;
    return PL_OK;
}
