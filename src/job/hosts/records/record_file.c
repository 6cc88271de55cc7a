/* Which files are records: one table, which hosts use to find them and the
 * launcher to check what hosts send. */
#include "job/hosts/records/record_file.h"

#include <string.h>

#define NAME_MOST 255

const pl_record_folder pl_record_folders[] = {
    { "events", 2, "", PL_RECORD_GROWS },
    { "resources", 1, ".csv", PL_RECORD_GROWS },
    { "trace", 1, ".json", PL_RECORD_WHOLE },
    { PL_RECORD_CHECKPOINTS, 2, "", PL_RECORD_WHOLE },
    { .name = NULL },
};

const char *const pl_record_files[] = { "run.json", "timeline.jsonl",
                                        "confusion.json", "summary.json",
                                        NULL };

/* One name of a path: no leading dot, so neither ".." nor a temporary file. */
static bool is_name(const char *name, size_t bytes)
{
    if (bytes == 0 || bytes > NAME_MOST || name[0] == '.')
        return false;
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
            return false;
    return true;
}

static bool ends_in(const char *text, const char *end)
{
    size_t bytes = strlen(text), tail = strlen(end);
    return bytes > tail && strcmp(text + bytes - tail, end) == 0;
}

/* Whether a path consists of names separated by exactly `slashes` slashes. */
static bool has_names(const char *path, int slashes)
{
    for (; slashes >= 0; slashes--) {
        size_t bytes = strcspn(path, "/");
        if (!is_name(path, bytes) || (path[bytes] == '/') != (slashes > 0))
            return false;
        path += bytes + 1;
    }
    return true;
}

static pl_record_kind kind_of_file(const char *path)
{
    for (const char *const *name = pl_record_files; *name != NULL; name++)
        if (strcmp(path, *name) == 0)
            return ends_in(path, ".jsonl") ? PL_RECORD_LINES : PL_RECORD_WHOLE;
    return PL_RECORD_NONE;
}

pl_record_kind pl_record_kind_of(const char *path)
{
    if (strlen(path) >= PL_RECORD_PATH_MOST)
        return PL_RECORD_NONE;
    size_t first = strcspn(path, "/");
    if (path[first] == '\0')
        return kind_of_file(path);
    for (const pl_record_folder *f = pl_record_folders; f->name != NULL; f++)
        if (strlen(f->name) == first && strncmp(path, f->name, first) == 0)
            return has_names(path, f->depth) && ends_in(path, f->end)
                       ? f->kind
                       : PL_RECORD_NONE;
    return PL_RECORD_NONE;
}

bool pl_record_is_checkpoint(const char *path)
{
    static const char folder[] = PL_RECORD_CHECKPOINTS "/";
    return strncmp(path, folder, sizeof folder - 1) == 0 && has_names(path, 1);
}
