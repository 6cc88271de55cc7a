/* traffic.c - estimates the bytes of a gradient if all parameters travelled in
 * both directions, and the time for them on the link of this run: shared memory
 * and loopback are measured, for another host the speed of the fastest
 * interface is assumed.  Without a known speed the time is not known. */
#include "app/run/traffic.h"

#include "app/train/memory.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "net/address.h"
#include "net/probe/probe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COPY_BYTES  ((size_t)16 << 20) /* larger than the second-level cache */
#define COPY_ROUNDS 4
#define PROBE_MS    30
#define INTERFACES  "/sys/class/net"

/* Bytes per second that one thread copies; the best round counts. */
static double copy_speed(void)
{
    char *from = NULL, *to = NULL;
    double best = NAN;
    if (PL_NEW_ALIGNED(from, COPY_BYTES) == PL_OK &&
        PL_NEW_ALIGNED(to, COPY_BYTES) == PL_OK)
        for (int round = 0; round < COPY_ROUNDS; round++) {
            memset(from, round, COPY_BYTES);
            int64_t begin = pl_clock_now_ns(pl_clock_real());
            memcpy(to, from, COPY_BYTES);
            double took =
                (double)(pl_clock_now_ns(pl_clock_real()) - begin) * 1e-9;
            double speed = (double)COPY_BYTES / (took > 0 ? took : 1e-9);
            best = isnan(best) || speed > best ? speed : best;
        }
    pl_mem_free(from);
    pl_mem_free(to);
    return best;
}

static double loopback_speed(void)
{
    static const char token[] = "loopback-speed-of-this-very-host";
    _Static_assert(sizeof token == PL_PROBE_TOKEN + 1, "length of a token");
    pl_probe *probe;
    pl_probe_result result = { .bytes_per_s = NAN };
    char address[64];
    if (pl_probe_new(&probe, "127.0.0.1:0", token) != PL_OK)
        return NAN;
    snprintf(address, sizeof address, "127.0.0.1:%d", pl_probe_port(probe));
    if (pl_probe_measure(&result, address, token, PROBE_MS) != PL_OK)
        result.bytes_per_s = NAN;
    pl_probe_free(probe);
    return result.bytes_per_s > 0 ? result.bytes_per_s : NAN;
}

/* Megabits per second of an interface; virtual ones report none. */
static double megabits(const char *name)
{
    char *path;
    double value = -1;
    if (pl_mem_format(&path, INTERFACES "/%s/speed", name) != PL_OK)
        return -1;
    FILE *file = fopen(path, "re");
    if (file != NULL && fscanf(file, "%lf", &value) != 1)
        value = -1;
    if (file != NULL)
        fclose(file);
    pl_mem_free(path);
    return value;
}

static double interface_speed(void)
{
    char **names = NULL;
    size_t count = 0;
    double most = -1;
    if (pl_file_list(&names, &count, INTERFACES) != PL_OK)
        return NAN;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, megabits(names[i]));
    pl_mem_free(names);
    return most > 0 ? most * 1e6 / 8 : NAN;
}

static void find_link(pl_dense_traffic *t, const pl_traffic_opts *opts)
{
    pl_address address;
    if (opts->shared) {
        snprintf(t->link, sizeof t->link, "shared memory");
        t->link_bytes_per_s = copy_speed();
        return;
    }
    bool here = pl_address_split(&address, opts->address) == PL_OK &&
                pl_address_resolve(&address) == PL_OK &&
                pl_address_is_loopback(&address);
    snprintf(t->link, sizeof t->link, here ? "loopback" : "network");
    t->link_bytes_per_s = here ? loopback_speed() : interface_speed();
}

void pl_traffic_estimate(pl_summary *summary, const pl_traffic_opts *opts)
{
    pl_dense_traffic *t = &summary->dense_traffic;
    int64_t gradients = 0, all = opts->floats * (int64_t)sizeof(float);
    int64_t moved = summary->bytes_sent + summary->bytes_received;
    for (size_t i = 0; i < summary->worker_count; i++) {
        const pl_worker_report *row = &summary->per_worker[i];
        gradients += row->steps > 0 ? row->steps : 0;
        gradients += row->dropped > 0 ? row->dropped : 0;
    }
    summary->has_dense_traffic = gradients > 0;
    if (gradients == 0)
        return;
    find_link(t, opts);
    t->bytes_per_gradient = 2 * all;
    if (opts->fetched) /* that read is not part of gradients */
        moved -= moved > all ? all : moved;
    t->moved_per_gradient = moved / gradients;
    t->seconds_per_gradient =
        (double)t->bytes_per_gradient / t->link_bytes_per_s;
}

void pl_traffic_text(const pl_dense_traffic *t, char *text, size_t room)
{
    char dense[PL_BYTES_TEXT], moved[PL_BYTES_TEXT], speed[PL_BYTES_TEXT];
    int used = snprintf(text, room,
                        "dense traffic would have moved %s per gradient, this "
                        "run moved %s",
                        pl_memory_text(t->bytes_per_gradient, dense),
                        pl_memory_text(t->moved_per_gradient, moved));
    if (used < 0 || used >= (int)room)
        return;
    if (isfinite(t->seconds_per_gradient))
        snprintf(text + used, room - (size_t)used,
                 "; that takes %.2g s over %s (%s/s)", t->seconds_per_gradient,
                 t->link, pl_memory_text((int64_t)t->link_bytes_per_s, speed));
    else
        snprintf(text + used, room - (size_t)used,
                 "; the speed of the %s is not known", t->link);
}
