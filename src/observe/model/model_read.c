/* model_read.c - finds the event files of each task and the resource tables of
 * each host in a run folder. Unreadable ones are left out with a reason. */
#include "base/error.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "observe/model/model_priv.h"
#include "observe/runs/curve_read.h"

#include <stdlib.h>
#include <string.h>

#define FILE_MOST ((size_t)1 << 30) /* bytes of one file */

typedef pl_status (*reader)(pl_curves *curves, const pl_map *map,
                            const char *path);

static pl_status read_events(pl_curves *curves, const pl_map *map,
                             const char *path)
{
    return pl_events_read(curves, map->data, map->bytes, path);
}

static pl_status read_resources(pl_curves *curves, const pl_map *map,
                                const char *path)
{
    return pl_resources_read(curves, (const char *)map->data, map->bytes, path);
}

static pl_status read_file(pl_runs_model *model, pl_curves *curves,
                           const char *path, reader read)
{
    pl_map map;
    pl_status status = pl_map_read(&map, path, FILE_MOST);
    if (status == PL_OK) {
        status = read(curves, &map, path);
        pl_map_close(&map);
    }
    return status == PL_OK ? PL_OK
                           : pl_record_leave_out(model->left_out, path, status);
}

static pl_status add_task(pl_model_run *run, const char *name, size_t bytes,
                          pl_model_task **out)
{
    PL_TRY(PL_GROW(run->tasks, run->count, run->room));
    pl_model_task *task = &run->tasks[run->count];
    *task = (pl_model_task) { 0 };
    PL_TRY(pl_mem_format(&task->name, "%.*s", (int)bytes, name));
    run->count++;
    *out = task;
    return PL_OK;
}

/* All event files of one task: one per start. */
static pl_status read_task(pl_runs_model *model, pl_model_run *run,
                           const char *folder, const char *name)
{
    char **names, *path;
    size_t count;
    pl_model_task *task;
    pl_status status = pl_file_list(&names, &count, folder);
    if (status != PL_OK)
        return pl_record_leave_out(model->left_out, folder, status);
    status = add_task(run, name, strlen(name), &task);
    for (size_t i = 0; i < count && status == PL_OK; i++) {
        if (strstr(names[i], ".tfevents.") == NULL)
            continue;
        status = pl_file_join(&path, folder, names[i]);
        if (status == PL_OK) {
            status = read_file(model, &task->curves, path, read_events);
            pl_mem_free(path);
        }
    }
    pl_mem_free(names);
    return status;
}

static pl_status read_host(pl_runs_model *model, pl_model_run *run,
                           const char *path, const char *name)
{
    size_t length = strlen(name);
    pl_model_task *host;
    if (name[0] == '.' || length <= 4 || strcmp(name + length - 4, ".csv") != 0)
        return PL_OK;
    PL_TRY(add_task(run, name, length - 4, &host));
    host->host = true;
    return read_file(model, &host->curves, path, read_resources);
}

/* Servers last, so that workers have the same colours in every figure; numbers
 * by value. */
static int by_task(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    int x_serves = strncmp(x, "ps-", 3) == 0;
    int y_serves = strncmp(y, "ps-", 3) == 0;
    return x_serves != y_serves ? x_serves - y_serves : strverscmp(x, y);
}

/* Each entry of <path>/<kind>; a run without records has none. */
static pl_status read_entries(pl_runs_model *model, pl_model_run *run,
                              const char *path, const char *kind,
                              pl_status (*read)(pl_runs_model *, pl_model_run *,
                                                const char *, const char *))
{
    char *folder, **names, *entry;
    size_t count;
    PL_TRY(pl_file_join(&folder, path, kind));
    pl_status status = pl_file_list(&names, &count, folder);
    if (status != PL_OK) {
        status = status == PL_NOTFOUND
                     ? PL_OK
                     : pl_record_leave_out(model->left_out, folder, status);
        pl_mem_free(folder);
        return status;
    }
    qsort(names, count, sizeof *names, by_task);
    for (size_t i = 0; i < count && status == PL_OK; i++) {
        status = pl_file_join(&entry, folder, names[i]);
        if (status == PL_OK) {
            status = read(model, run, entry, names[i]);
            pl_mem_free(entry);
        }
    }
    pl_mem_free(names);
    pl_mem_free(folder);
    return status;
}

pl_status pl_model_read_tasks(pl_runs_model *model, pl_model_run *run,
                              const char *path)
{
    return read_entries(model, run, path, "events", read_task);
}

pl_status pl_model_read_hosts(pl_runs_model *model, pl_model_run *run,
                              const char *path)
{
    return read_entries(model, run, path, "resources", read_host);
}
