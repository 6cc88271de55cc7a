/* monitor_view.c - what `monitor` shows: a screen that is redrawn on a
 * terminal, a line per sample elsewhere, means and peaks at the end. */
#include "cli/view/monitor_view.h"

#include "app/view/progress.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#define BAR        30 /* characters */
#define CORES_MOST 32 /* that have a line each */

static void draw(pl_monitor_view *view, const char *format, ...)
    PL_PRINTF(2, 3);

/* One line of the picture, with what was there before wiped out. */
static void draw(pl_monitor_view *view, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("\033[K", view->file);
    vfprintf(view->file, format, args);
    fputc('\n', view->file);
    va_end(args);
    view->drawn++;
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

/* "1.25 MB/s", "-" when it is not known. */
static const char *rate_text(double bytes, char text[24])
{
    char number[16];
    if (!isfinite(bytes))
        return "-";
    pl_progress_number(bytes, number);
    bool unit = strchr(number, ' ') != NULL;
    snprintf(text, 24, "%s%sB/s", number, unit ? "" : " ");
    return text;
}

static void draw_host(pl_monitor_view *view, const pl_usage_view *usage)
{
    char text[BAR + 1], a[24], b[24];
    draw(view, "cpu     %5.1f %% [%s]  load %.2f", usage->cpu,
         bar(usage->cpu, text), usage->load);
    for (int i = 0; i < usage->core_count && i < CORES_MOST; i++)
        draw(view, "  cpu%-3d%5.1f %% [%s]", i, usage->cores[i],
             bar(usage->cores[i], text));
    double share = 100 * usage->memory_mb / usage->memory_total_mb;
    draw(view, "memory  %5.1f %% [%s]  %.1f of %.1f GB", share,
         bar(share, text), usage->memory_mb / 1024,
         usage->memory_total_mb / 1024);
    draw(view, "disk    read %s, written %s",
         rate_text(usage->disk_read_bytes, a),
         rate_text(usage->disk_written_bytes, b));
    for (int i = 0; i < usage->net_count; i++)
        draw(view, "%-7.15s in %s (%.0f packets/s), out %s (%.0f packets/s)",
             usage->nets[i].name, rate_text(usage->nets[i].received_bytes, a),
             usage->nets[i].received_packets,
             rate_text(usage->nets[i].sent_bytes, b),
             usage->nets[i].sent_packets);
    draw(view, "context switches %.0f/s", usage->switches);
}

static void draw_job(pl_monitor_view *view, const pl_usage_view *usage)
{
    char a[24], b[24];
    draw(view,
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

static void put_line(const pl_monitor_view *view, const pl_usage_view *usage)
{
    char clock[16], net[24], disk[24];
    time_t now = (time_t)usage->time;
    struct tm parts;
    localtime_r(&now, &parts);
    strftime(clock, sizeof clock, "%H:%M:%S", &parts);
    fprintf(
        view->file,
        "%s  cpu %5.1f %%  memory %.1f/%.1f GB  network %s  disk %s", clock,
        usage->cpu, usage->memory_mb / 1024, usage->memory_total_mb / 1024,
        rate_text(net_bytes(usage), net),
        rate_text(usage->disk_read_bytes + usage->disk_written_bytes, disk));
    if (view->job)
        fprintf(view->file, "  command cpu %.1f %%, %.0f MB", usage->job_cpu,
                usage->job_rss_mb);
    fputc('\n', view->file);
    fflush(view->file);
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
    add(view, usage);
    if (!view->terminal) {
        put_line(view, usage);
        return;
    }
    if (view->drawn > 0)
        fprintf(view->file, "\033[%dA\r", view->drawn);
    view->drawn = 0;
    draw_host(view, usage);
    if (view->job)
        draw_job(view, usage);
    fflush(view->file);
}

void pl_monitor_view_end(const pl_monitor_view *view, double seconds)
{
    char net[24], disk[24];
    if (view->samples == 0)
        return;
    double count = (double)view->samples;
    fprintf(view->file,
            "%.1f s: cpu mean %.1f %%, most %.1f %%; memory most %.1f GB; "
            "network most %s; disk most %s\n",
            seconds, view->cpu_sum / count, view->cpu_peak,
            view->memory_peak_mb / 1024, rate_text(view->net_peak, net),
            rate_text(view->disk_peak, disk));
    if (view->job)
        fprintf(view->file,
                "command: cpu mean %.1f %%, most %.1f %% of one core; memory "
                "most %.0f MB\n",
                view->job_cpu_sum / count, view->job_cpu_peak,
                view->job_peak_mb);
    fflush(view->file);
}
