/* Time from the system or from a test, and the calibration of the
 * processor's tick counter. */
#include "base/clock.h"

#include "base/assert.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double measured_tick_ns;

static int64_t read_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

pl_clock *pl_clock_real(void)
{
    static pl_clock real;
    return &real;
}

void pl_clock_init_fake(pl_clock *clock, int64_t now_ns)
{
    clock->fake = true;
    atomic_init(&clock->fake_ns, now_ns);
}

void pl_clock_advance(pl_clock *clock, int64_t ns)
{
    PL_ASSERT(clock->fake && ns >= 0);
    atomic_fetch_add(&clock->fake_ns, ns);
}

int64_t pl_clock_now_ns(const pl_clock *clock)
{
    if (clock->fake)
        return atomic_load(&clock->fake_ns);
    return read_ns(CLOCK_MONOTONIC);
}

pl_deadline pl_deadline_in_ms(const pl_clock *clock, int64_t ms)
{
    /* An endless wait stays in range. */
    int64_t at_ns;
    if (__builtin_mul_overflow(ms, 1000000, &at_ns) ||
        __builtin_add_overflow(at_ns, pl_clock_now_ns(clock), &at_ns))
        at_ns = ms < 0 ? INT64_MIN : INT64_MAX;
    return (pl_deadline) { clock, at_ns };
}

bool pl_deadline_passed(pl_deadline deadline)
{
    return pl_clock_now_ns(deadline.clock) >= deadline.at_ns;
}

int64_t pl_deadline_left_ns(pl_deadline deadline)
{
    int64_t now_ns = pl_clock_now_ns(deadline.clock);
    return deadline.at_ns > now_ns ? deadline.at_ns - now_ns : 0;
}

int64_t pl_clock_boot_ns(void)
{
    return read_ns(CLOCK_BOOTTIME);
}

void pl_clock_boot_id(char out[PL_BOOT_ID])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, out, PL_BOOT_ID - 1);
    if (fd >= 0)
        close(fd);
    out[got > 0 ? got : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

int64_t pl_clock_processor_ns(void)
{
    return read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t pl_clock_thread_ns(void)
{
    return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

int64_t pl_clock_wall_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}

/* Ticks and time of one moment.  The thread may be preempted between the two
 * readings, so the try that took the fewest ticks is used. */
static void read_both(uint64_t *ticks, int64_t *ns)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 10; i++) {
        uint64_t before = pl_ticks_now();
        int64_t now_ns = read_ns(CLOCK_MONOTONIC);
        uint64_t took = pl_ticks_now() - before;
        if (took < least) {
            least = took;
            *ticks = before + took / 2;
            *ns = now_ns;
        }
    }
}

static void measure_tick(void)
{
    uint64_t begin = 0, end = 0;
    int64_t begin_ns = 0, end_ns = 0;
    read_both(&begin, &begin_ns);
    while (read_ns(CLOCK_MONOTONIC) - begin_ns < 2000000)
        ;
    read_both(&end, &end_ns);
    measured_tick_ns = (double)(end_ns - begin_ns) / (double)(end - begin);
}

double pl_ticks_ns(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, measure_tick);
    return measured_tick_ns;
}
