/* monitor_view.c - what `monitor` shows: a screen that is redrawn on a
 * terminal, a line per sample elsewhere, means and peaks at the end. */
#include "cli/view/monitor_view.h"

#include "app/view/layout.h"
#include "base/text/console.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#define BAR        30 /* characters */
#define CORES_MOST 32 /* cores with a line each */

/* One screen of output; longer ones are cut. */
typedef struct picture {
    char text[16384];
    size_t used;
    int lines;
} picture;

static void append(picture *p, const char *format, va_list args)
    PL_PRINTF(2, 0);

static void append(picture *p, const char *format, va_list args)
{
    size_t room = sizeof p->text - p->used;
    int wrote = vsnprintf(p->text + p->used, room, format, args);
    if (wrote > 0)
        p->used += (size_t)wrote < room ? (size_t)wrote : room - 1;
}

static void print(picture *p, const char *format, ...) PL_PRINTF(2, 3);

static void print(picture *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    append(p, format, args);
    va_end(args);
}

static void draw(picture *p, const char *format, ...) PL_PRINTF(2, 3);

/* Append one line, which replaces the one on the terminal. */
static void draw(picture *p, const char *format, ...)
{
    va_list args;
    print(p, "\033[K");
    va_start(args, format);
    append(p, format, args);
    va_end(args);
    print(p, "\n");
    p->lines++;
}

/* Returns false if the output was dropped because it was not being read. */
static bool put(const pl_monitor_view *view, const picture *p)
{
    if (view->file == stderr)
        return view->terminal ? pl_console_redraw(p->text, p->used)
                              : pl_console_write(p->text, p->used);
    fwrite(p->text, 1, p->used, view->file);
    fflush(view->file);
    return true;
}

static const char *bar(double percent, char text[BAR + 1])
{
    int full = isfinite(percent) ? (int)(percent * BAR / 100 + 0.5) : 0;
    full = full < 0 ? 0 : full > BAR ? BAR : full;
    memset(text, '#', (size_t)full);
    memset(text + full, '.', (size_t)(BAR - full));
    text[BAR] = '\0';
    return text;
}

/* "1.25 MB/s"; "-" if not known. */
static const char *rate_text(double bytes, char text[24])
{
    char number[16];
    if (!isfinite(bytes))
        return "-";
    pl_layout_number(bytes, number);
    bool unit = strchr(number, ' ') != NULL;
    snprintf(text, 24, "%s%sB/s", number, unit ? "" : " ");
    return text;
}

static void draw_host(picture *p, const pl_usage_view *usage)
{
    char text[BAR + 1], a[24], b[24];
    draw(p, "cpu     %5.1f %% [%s]  load %.2f", usage->cpu,
         bar(usage->cpu, text), usage->load);
    for (int i = 0; i < usage->core_count && i < CORES_MOST; i++)
        draw(p, "  cpu%-3d%5.1f %% [%s]", i, usage->cores[i],
             bar(usage->cores[i], text));
    double share = 100 * usage->memory_mb / usage->memory_total_mb;
    draw(p, "memory  %5.1f %% [%s]  %.1f of %.1f GB", share, bar(share, text),
         usage->memory_mb / 1024, usage->memory_total_mb / 1024);
    draw(p, "disk    read %s, written %s", rate_text(usage->disk_read_bytes, a),
         rate_text(usage->disk_written_bytes, b));
    for (int i = 0; i < usage->net_count; i++)
        draw(p, "%-7.15s in %s (%.0f packets/s), out %s (%.0f packets/s)",
             usage->nets[i].name, rate_text(usage->nets[i].received_bytes, a),
             usage->nets[i].received_packets,
             rate_text(usage->nets[i].sent_bytes, b),
             usage->nets[i].sent_packets);
    draw(p, "context switches %.0f/s", usage->switches);
}

static void draw_job(picture *p, const pl_usage_view *usage)
{
    char a[24], b[24];
    draw(p,
         "command cpu %.1f %% of one core, memory %.0f MB (most %.0f), disk "
         "read %s, written %s, %d process%s",
         usage->job_cpu, usage->job_rss_mb, usage->job_peak_mb,
         rate_text(usage->job_read_bytes, a),
         rate_text(usage->job_written_bytes, b), usage->job_tasks,
         usage->job_tasks == 1 ? "" : "es");
}

static double net_bytes(const pl_usage_view *usage)
{
    double sum = 0;
    for (int i = 0; i < usage->net_count; i++)
        sum += usage->nets[i].received_bytes + usage->nets[i].sent_bytes;
    return sum;
}

static void print_line(picture *p, const pl_usage_view *usage, bool job)
{
    char clock[16], net[24], disk[24];
    time_t now = (time_t)usage->time;
    struct tm parts;
    localtime_r(&now, &parts);
    strftime(clock, sizeof clock, "%H:%M:%S", &parts);
    print(p, "%s  cpu %5.1f %%  memory %.1f/%.1f GB  network %s  disk %s",
          clock, usage->cpu, usage->memory_mb / 1024,
          usage->memory_total_mb / 1024, rate_text(net_bytes(usage), net),
          rate_text(usage->disk_read_bytes + usage->disk_written_bytes, disk));
    if (job)
        print(p, "  command cpu %.1f %%, %.0f MB", usage->job_cpu,
              usage->job_rss_mb);
    print(p, "\n");
}

static double most(double a, double b)
{
    return b > a ? b : a; /* also when b is not a number */
}

static void add(pl_monitor_view *view, const pl_usage_view *usage)
{
    view->samples++;
    view->cpu_sum += isfinite(usage->cpu) ? usage->cpu : 0;
    view->cpu_peak = most(view->cpu_peak, usage->cpu);
    view->memory_peak_mb = most(view->memory_peak_mb, usage->memory_mb);
    view->job_cpu_sum += isfinite(usage->job_cpu) ? usage->job_cpu : 0;
    view->job_cpu_peak = most(view->job_cpu_peak, usage->job_cpu);
    view->job_peak_mb = most(view->job_peak_mb, usage->job_peak_mb);
    view->net_peak = most(view->net_peak, net_bytes(usage));
    view->disk_peak = most(view->disk_peak,
                           usage->disk_read_bytes + usage->disk_written_bytes);
}

void pl_monitor_view_show(pl_monitor_view *view, const pl_usage_view *usage)
{
    picture p = { .used = 0 };
    add(view, usage);
    if (!view->terminal) {
        print_line(&p, usage, view->job);
        put(view, &p);
        return;
    }
    if (view->drawn > 0)
        print(&p, "\033[%dA\r", view->drawn);
    draw_host(&p, usage);
    if (view->job)
        draw_job(&p, usage);
    if (put(view, &p))
        view->drawn = p.lines;
}

void pl_monitor_view_end(const pl_monitor_view *view, double seconds)
{
    char net[24], disk[24];
    picture p = { .used = 0 };
    if (view->samples == 0)
        return;
    double count = (double)view->samples;
    print(&p,
          "%.1f s: cpu mean %.1f %%, most %.1f %%; memory most %.1f GB; "
          "network most %s; disk most %s\n",
          seconds, view->cpu_sum / count, view->cpu_peak,
          view->memory_peak_mb / 1024, rate_text(view->net_peak, net),
          rate_text(view->disk_peak, disk));
    if (view->job)
        print(&p,
              "command: cpu mean %.1f %%, most %.1f %% of one core; memory "
              "most %.0f MB\n",
              view->job_cpu_sum / count, view->job_cpu_peak, view->job_peak_mb);
    if (view->file == stderr)
        pl_console_last(p.text, p.used);
    else
        put(view, &p);
}
