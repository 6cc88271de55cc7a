/* traces.c - finds the trace files of a run; their names show which belong to
 * servers. */
#include "observe/runs/traces.h"

#include "base/file/file.h"
#include "base/mem.h"

#include <string.h>

#define TRACE_BYTES_MOST ((size_t)1 << 30) /* per file */

void pl_traces_close(pl_traces *traces)
{
    for (size_t i = 0; i < traces->count; i++)
        pl_json_free(traces->list[i]);
    pl_profile_free(traces->workers);
    pl_profile_free(traces->servers);
    *traces = (pl_traces) { 0 };
}

static bool is_trace(const char *name)
{
    size_t length = strlen(name);
    return name[0] != '.' && length > 5 &&
           strcmp(name + length - 5, ".json") == 0;
}

static pl_status read_trace(pl_traces *t, const char *folder, const char *name)
{
    char *path;
    pl_json *trace;
    bool server = strncmp(name, "ps-", 3) == 0;
    if (t->count == PL_TRACES_MOST)
        return PL_FAIL(PL_UNSUPPORTED, "%s has more than %d traces", folder,
                       PL_TRACES_MOST);
    PL_TRY(pl_file_join(&path, folder, name));
    pl_status status = pl_json_read_file(&trace, path, TRACE_BYTES_MOST);
    if (status == PL_OK) {
        t->list[t->count++] = trace;
        t->server_count += server;
        t->worker_count += !server;
        status = pl_profile_add(server ? t->servers : t->workers, trace, path);
    }
    pl_mem_free(path);
    return status;
}

static pl_status read_folder(pl_traces *t, const char *run, const char *folder)
{
    char **names = NULL;
    size_t count = 0;
    PL_TRY(pl_profile_new(&t->workers));
    PL_TRY(pl_profile_new(&t->servers));
    pl_status status = pl_file_list(&names, &count, folder);
    if (status == PL_NOTFOUND)
        status = PL_OK;
    for (size_t i = 0; status == PL_OK && i < count; i++)
        if (is_trace(names[i]))
            status = read_trace(t, folder, names[i]);
    pl_mem_free(names);
    if (status == PL_OK && t->count == 0)
        status =
            PL_FAIL(PL_NOTFOUND,
                    "%s has no traces; train with --profile to make them", run);
    return status;
}

pl_status pl_traces_read(pl_traces *out, const char *run)
{
    char *folder;
    *out = (pl_traces) { 0 };
    if (!pl_file_exists(run))
        return PL_FAIL(PL_NOTFOUND,
                       "%s: there is no such folder; expected a run folder",
                       run);
    PL_TRY(pl_file_join(&folder, run, "trace"));
    pl_status status = read_folder(out, run, folder);
    pl_mem_free(folder);
    if (status != PL_OK)
        pl_traces_close(out);
    return status;
}

pl_status pl_traces_table(const pl_traces *traces, const char *name,
                          const char *title, pl_table **out)
{
    pl_profile_part parts[2];
    size_t count = 0;
    if (traces->worker_count > 0)
        parts[count++] = (pl_profile_part) { traces->workers, "worker" };
    if (traces->server_count > 0)
        parts[count++] = (pl_profile_part) { traces->servers, "ps" };
    return pl_profile_table(parts, count, name, title, out);
}
