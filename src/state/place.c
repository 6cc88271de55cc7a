/* Decides whether a path received from another task may be used. */
#include "state/place.h"

#include "base/file/file.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

pl_status pl_place_checkpoints(char **out, const pl_place *place,
                               const char *told)
{
    if (place->run != NULL)
        return pl_file_join(out, place->run, "checkpoints");
    return pl_mem_copy_text(out, told);
}

static pl_status not_there(const char *path)
{
    return PL_FAIL(PL_NOTFOUND,
                   "%s does not exist here: every parameter server must see "
                   "the run folder; choose a --run that all machines share",
                   path);
}

/* `path` is <base>/checkpoints, or <base>/<more>/checkpoints. */
static bool is_below(const char *path, const char *base, bool deep)
{
    size_t length = strcmp(base, "/") == 0 ? 0 : strlen(base);
    if (strncmp(path, base, length) != 0 || path[length] != '/')
        return false;
    const char *rest = path + length;
    const char *last = deep ? strrchr(rest, '/') : rest;
    return (!deep || last > rest) && strcmp(last, "/checkpoints") == 0;
}

/* The owner of a run folder may keep its checkpoints on another disk.  Only
 * users who can write to the folder can create such a link; other users' links
 * are not followed. */
static bool is_own_link(const char *checkpoints)
{
    struct stat found;
    return lstat(checkpoints, &found) == 0 && S_ISLNK(found.st_mode) &&
           (found.st_uid == geteuid() || found.st_uid == 0);
}

static pl_status check_below(const pl_place *place, const char *checkpoints,
                             const char *real)
{
    const char *own = place->run != NULL ? place->run : place->within;
    if (place->run != NULL && is_own_link(checkpoints))
        return PL_OK;
    char *base = realpath(own, NULL);
    pl_status status = PL_OK;
    if (base != NULL && is_below(real, base, place->run == NULL))
        status = PL_OK;
    else if (place->run != NULL)
        status = PL_FAIL(PL_USAGE,
                         "%s is %s, which is not in the run folder: a "
                         "parameter server uses nothing else",
                         checkpoints, real);
    else
        status = PL_FAIL(PL_USAGE,
                         "%s is not below %s, where this parameter server was "
                         "started without --run: start all tasks with the same "
                         "--run",
                         real, base != NULL ? base : own);
    free(base);
    return status;
}

/* A symbolic link is refused. */
static pl_status check_folder(const char *checkpoints, const char *name)
{
    struct stat found;
    char *folder;
    PL_TRY(pl_file_join(&folder, checkpoints, name));
    pl_status status = PL_OK;
    if (lstat(folder, &found) != 0)
        status = not_there(folder);
    else if (!S_ISDIR(found.st_mode))
        status = PL_FAIL(PL_USAGE, "%s is not a folder", folder);
    pl_mem_free(folder);
    return status;
}

pl_status pl_place_check(const pl_place *place, const char *checkpoints,
                         const char *name)
{
    pl_status status = PL_OK;
    if (place->run != NULL || place->within != NULL) {
        char *real = realpath(checkpoints, NULL);
        if (real == NULL)
            return errno == ENOENT
                       ? not_there(checkpoints)
                       : PL_FAIL(PL_IO, "%s: %s", checkpoints, strerror(errno));
        status = check_below(place, checkpoints, real);
        free(real);
    }
    PL_TRY(status);
    return check_folder(checkpoints, name);
}
