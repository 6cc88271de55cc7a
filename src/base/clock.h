/* clock.h - time that tests can drive.
 *
 * No code asks the system for the time: each gets a pl_clock as an argument.
 * The real one is stateless; a fake one stands still until a test advances it.
 * Deadlines are points on one clock.
 *
 * Ticks are for measuring spans of nanoseconds to seconds inside a step: the
 * processor's own counter where it is steady, read in a few nanoseconds.
 *
 * Threads: any. */
#ifndef PL_BASE_CLOCK_H
#define PL_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct pl_clock {
    bool fake;
    _Atomic int64_t fake_ns; /* the fake clock's time */
} pl_clock;

/* The machine's monotonic clock. */
pl_clock *pl_clock_real(void);

/* A clock at `now_ns` that only pl_clock_advance moves. */
void pl_clock_init_fake(pl_clock *clock, int64_t now_ns);
void pl_clock_advance(pl_clock *clock, int64_t ns);

int64_t pl_clock_now_ns(const pl_clock *clock);

typedef struct pl_deadline {
    const pl_clock *clock;
    int64_t at_ns;
} pl_deadline;

pl_deadline pl_deadline_in_ms(const pl_clock *clock, int64_t ms);
bool pl_deadline_passed(pl_deadline deadline);
int64_t pl_deadline_left_ns(pl_deadline deadline); /* never negative */

/* Calendar time, for names and records only: it may be set back. */
int64_t pl_clock_wall_ns(void);

/* Time since the machine was booted, sleep included: it orders processes whose
 * boot id is the same. */
int64_t pl_clock_boot_ns(void);
#define PL_BOOT_ID 40
void pl_clock_boot_id(char out[PL_BOOT_ID]); /* "": not known */

/* Processor time of this process, all threads, and of the calling thread. */
int64_t pl_clock_processor_ns(void);
int64_t pl_clock_thread_ns(void);

static inline uint64_t pl_ticks_now(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return (uint64_t)pl_clock_now_ns(pl_clock_real());
#endif
}

/* Nanoseconds one tick takes; measured once (about 2 ms), then kept. */
double pl_ticks_ns(void);

#endif
