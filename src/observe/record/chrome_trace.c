/* Converts spans to text.  Begin and end are each rounded to a nanosecond and
 * the duration is their difference, so that spans that are contiguous in ticks
 * are contiguous in the file. */
#include "observe/record/chrome_trace.h"

#include "base/assert.h"
#include "base/file/file.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define LINE_BYTES 1024
#define NAME_BYTES 512 /* longer names are cut off */

static pl_chrome_trace_opts resolve(const pl_chrome_trace_opts *opts)
{
    pl_chrome_trace_opts resolved =
        opts == NULL ? (pl_chrome_trace_opts) { 0 } : *opts;
    if (resolved.process == NULL)
        resolved.process = "paceline";
    return resolved;
}

/* `name` escaped for a JSON string. */
static void escape(const char *name, char text[NAME_BYTES])
{
    size_t used = 0;
    for (; *name != '\0' && used + 7 < NAME_BYTES; name++) {
        unsigned char c = (unsigned char)*name;
        if (c == '"' || c == '\\')
            text[used++] = '\\';
        if (c < 0x20)
            used += (size_t)snprintf(text + used, 7, "\\u%04x", c);
        else
            text[used++] = (char)c;
    }
    text[used] = '\0';
}

PL_PRINTF(2, 3)
static pl_status put(pl_file_writer *writer, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    PL_ASSERT(length >= 0 && length < LINE_BYTES);
    return pl_file_writer_put(writer, line, (size_t)length);
}

static pl_status put_names(pl_file_writer *writer, const pl_trace *trace,
                           const pl_chrome_trace_opts *opts)
{
    char name[NAME_BYTES];
    escape(opts->process, name);
    PL_TRY(put(writer,
               "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%" PRId32
               ",\"tid\":0,\"args\":{\"name\":\"%s\"}}",
               opts->pid, name));
    for (int lane = 0; lane < pl_trace_lanes(trace); lane++)
        PL_TRY(put(writer,
                   ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%" PRId32
                   ",\"tid\":%d,\"args\":{\"name\":\"thread %d\"}}",
                   opts->pid, lane, lane));
    return PL_OK;
}

static int64_t ns_since(uint64_t birth, uint64_t ticks)
{
    return llround((double)(int64_t)(ticks - birth) * pl_ticks_ns());
}

static pl_status put_lane(pl_file_writer *writer, const pl_trace *trace,
                          int lane, int32_t pid)
{
    char name[NAME_BYTES];
    uint64_t birth = pl_trace_begin(trace);
    for (uint32_t i = 0; i < pl_trace_count(trace, lane); i++) {
        const pl_span *span = pl_trace_get(trace, lane, i);
        int64_t begin = ns_since(birth, span->begin);
        int64_t end = ns_since(birth, span->end);
        escape(span->name, name);
        PL_TRY(put(writer,
                   ",\n{\"name\":\"%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,"
                   "\"pid\":%" PRId32 ",\"tid\":%d,\"args\":{\"step\":%" PRId64,
                   name, (double)begin / 1000, (double)(end - begin) / 1000,
                   pid, lane, span->step));
        if (span->bytes > 0)
            PL_TRY(put(writer, ",\"bytes\":%" PRId64, span->bytes));
        PL_TRY(put(writer, "}}"));
    }
    return PL_OK;
}

static pl_status put_operators(pl_file_writer *writer,
                               const pl_chrome_trace_opts *opts)
{
    char name[NAME_BYTES];
    PL_TRY(put(writer, ",\n\"operators\":["));
    for (int i = 0; i < opts->operator_count; i++) {
        const pl_trace_operator *op = &opts->operators[i];
        escape(op->name, name);
        PL_TRY(put(writer,
                   "%s\n{\"name\":\"%s\",\"op\":\"%s\",\"shape\":\"%s\","
                   "\"flop\":%.1f,\"bytes\":%.1f}",
                   i > 0 ? "," : "", name, op->op, op->shape, op->flop,
                   op->bytes));
    }
    return put(writer, "]");
}

/* The recorder's start time on the host's clock. */
static int64_t begin_clock_ns(const pl_trace *trace)
{
    double ago =
        (double)(pl_ticks_now() - pl_trace_begin(trace)) * pl_ticks_ns();
    return pl_clock_now_ns(pl_clock_real()) - (int64_t)ago;
}

static pl_status put_all(pl_file_writer *writer, const pl_trace *trace,
                         const pl_chrome_trace_opts *opts)
{
    PL_TRY(put(writer,
               "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{"
               "\"begin_wall_ns\":%" PRId64 ",\"begin_clock_ns\":%" PRId64
               ",\"dropped\":%" PRIu64 ",\n\"gflops\":%.3f,\"gbytes\":%.3f",
               pl_trace_begin_wall_ns(trace), begin_clock_ns(trace),
               pl_trace_dropped(trace), opts->gflops, opts->gbytes));
    if (opts->skew.known)
        PL_TRY(put(writer, ",\"ahead_ns\":%" PRId64, opts->skew.ahead_ns));
    PL_TRY(put_operators(writer, opts));
    PL_TRY(put(writer, "},\n\"traceEvents\":[\n"));
    PL_TRY(put_names(writer, trace, opts));
    for (int lane = 0; lane < pl_trace_lanes(trace); lane++)
        PL_TRY(put_lane(writer, trace, lane, opts->pid));
    return put(writer, "\n]}\n");
}

pl_status pl_chrome_trace_write(const pl_trace *trace, const char *path,
                                const pl_chrome_trace_opts *opts)
{
    pl_chrome_trace_opts wanted = resolve(opts);
    pl_file_writer *writer = NULL;
    pl_status status;
    PL_TRY_OUT(status, pl_file_writer_new(&writer, path));
    PL_TRY_OUT(status, put_all(writer, trace, &wanted));
    PL_TRY_OUT(status, pl_file_writer_commit(writer));
out:
    pl_file_writer_free(writer);
    return status == PL_OK ? PL_OK : pl_context(status, "trace %s", path);
}
