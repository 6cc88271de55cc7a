/* fuzz_records.c - what a launcher takes as records of a run, line by line as
 * a host sends them.  Whatever is sent, nothing appears outside of the run
 * folder. */
#include "base/assert.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "job/hosts/records/sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* In memory: what is written is flushed, which takes its time on disks. */
static char root[] = "/dev/shm/paceline-fuzz-records-XXXXXX";
static char run[sizeof root + 4];

static void begin(void)
{
    if (mkdtemp(root) == NULL)
        abort();
    snprintf(run, sizeof run, "%s/run", root);
}

static void end(void)
{
    if (pl_file_remove_all(root) != PL_OK)
        abort();
}

static void take(pl_record_sink *sink, const char *line, size_t bytes)
{
    pl_json *json;
    pl_control_message message;
    if (pl_json_parse(&json, line, bytes, "message") != PL_OK ||
        pl_control_decode(&message, json) != PL_OK)
        return;
    if (message.kind == PL_CONTROL_RECORD &&
        pl_record_sink_take(sink, &message) != PL_OK)
        PL_ASSERT(strlen(pl_error_message()) > 0);
    pl_control_message_close(&message);
}

static void check_root(void)
{
    char **names;
    size_t count;
    if (pl_file_list(&names, &count, root) != PL_OK)
        abort();
    PL_ASSERT(count == 1);
    pl_mem_free(names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static bool begun;
    pl_record_sink *sink;
    const char *at = (const char *)data, *stop = at + bytes;
    if (!begun) {
        begin();
        atexit(end);
        begun = true;
    }
    if (mkdir(run, 0700) != 0 || pl_record_sink_new(&sink, run) != PL_OK)
        abort();
    while (at < stop) {
        const char *line = at;
        const char *newline = memchr(at, '\n', (size_t)(stop - at));
        at = newline != NULL ? newline + 1 : stop;
        take(sink, line, (size_t)((newline != NULL ? newline : stop) - line));
    }
    pl_record_sink_free(sink);
    check_root();
    if (pl_file_remove_all(run) != PL_OK)
        abort();
    return 0;
}
