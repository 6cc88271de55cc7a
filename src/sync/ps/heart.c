/* The thread that sends heartbeats to server 0 over a connection of its own;
 * what the answers mean is decided by the pulse (worker/pulse.c). */
#include "sync/ps/heart.h"

#include "base/clock.h"
#include "base/host/ram.h"
#include "base/mem.h"
#include "base/thread.h"
#include "net/endpoint.h"
#include "sync/ps/worker/pulse.h"

#include <stdio.h>
#include <string.h>

struct pl_heart {
    pl_heart_opts opts;
    char *address;
    char name[32];
    pl_pulse pulse;        /* the thread's, as... */
    pl_endpoint *endpoint; /* ... this */
    pl_thread *thread;
    atomic_bool stopping;
    _Atomic int64_t step, progress;
    _Atomic int phase;
    pl_mutex lock;
    pl_skew skew; /* guarded by lock */
    atomic_bool lost;
    pl_status how; /* guarded by lock, too */
    char why[512]; /* guarded by lock; set once */
};

/* What the pulse says of server 0, for the working thread. */
static void pass_on(pl_heart *heart, int64_t now)
{
    pl_status status = pl_pulse_check(&heart->pulse, now);
    if (status == PL_OK || atomic_load(&heart->lost))
        return;
    pl_mutex_lock(&heart->lock);
    snprintf(heart->why, sizeof heart->why, "%s", heart->pulse.why);
    heart->how = status;
    pl_mutex_unlock(&heart->lock);
    atomic_store(&heart->lost, true);
}

static pl_status send_if_due(pl_heart *heart, int64_t now)
{
    pl_frame frame;
    if (!pl_pulse_tick(&heart->pulse, now, &frame))
        return PL_OK;
    frame.step = atomic_load(&heart->step);
    frame.first = pl_ram_peak();
    frame.value[0] = atomic_load(&heart->phase);
    frame.value[1] = atomic_load(&heart->progress);
    return pl_endpoint_send(heart->endpoint, 0, &frame, NULL, false);
}

/* The answer to the last heartbeat tells server 0's clock. */
static void compare_clocks(pl_heart *heart, const pl_frame *frame)
{
    if (frame->kind != PL_FRAME_BEAT || frame->value[0] == 0 ||
        frame->sequence != heart->pulse.number)
        return;
    pl_mutex_lock(&heart->lock);
    pl_skew_hear(&heart->skew, heart->pulse.sent_ns,
                 pl_clock_now_ns(pl_clock_real()), frame->value[0]);
    pl_mutex_unlock(&heart->lock);
}

static void read_answers(pl_heart *heart, int64_t now)
{
    pl_message message;
    while (pl_endpoint_poll(heart->endpoint, &message) == PL_OK) {
        compare_clocks(heart, &message.frame);
        pl_pulse_receive(&heart->pulse, &message, now);
    }
}

static pl_status heart_main(void *arg)
{
    pl_heart *heart = arg;
    const pl_clock *clock = pl_clock_real();
    pl_pulse_init(&heart->pulse,
                  &(pl_pulse_opts) {
                      .address = heart->address,
                      .incarnation = heart->opts.incarnation,
                      .generation = heart->opts.generation,
                      .timeout_ms = heart->opts.timeout_ms,
                  },
                  pl_clock_now_ns(clock));
    while (!atomic_load(&heart->stopping)) {
        int64_t now = pl_clock_now_ns(clock);
        PL_TRY(send_if_due(heart, now));
        read_answers(heart, now);
        pass_on(heart, now);
        pl_deadline deadline = { clock, heart->pulse.next_ns };
        int64_t slice_ns = 100000000; /* to see `stopping` */
        if (pl_deadline_left_ns(deadline) > slice_ns)
            deadline.at_ns = now + slice_ns;
        pl_endpoint_wait(&heart->endpoint, 1, deadline);
    }
    return PL_OK;
}

pl_status pl_heart_start(pl_heart **out, const pl_heart_opts *opts)
{
    pl_heart *heart;
    PL_TRY(PL_NEW(heart, 1));
    heart->opts = *opts;
    snprintf(heart->name, sizeof heart->name, "%s", opts->name);
    pl_mutex_init(&heart->lock);
    pl_status status;
    PL_TRY_OUT(status, pl_mem_copy_text(&heart->address, opts->address));
    PL_TRY_OUT(status, pl_endpoint_connect(&heart->endpoint,
                                           &(pl_endpoint_opts) {
                                               .address = heart->address,
                                               .name = heart->name,
                                               .no_shm = true,
                                               .keys = opts->keys,
                                               .self = opts->self,
                                           }));
    PL_TRY_OUT(status,
               pl_thread_start(&heart->thread, "heart", heart_main, heart));
    *out = heart;
    return PL_OK;
out:
    pl_heart_stop(heart);
    return status;
}

void pl_heart_stop(pl_heart *heart)
{
    if (heart == NULL)
        return;
    atomic_store(&heart->stopping, true);
    /* What it failed of, it told by pl_heart_check. */
    if (pl_thread_join(heart->thread) != PL_OK)
        atomic_store(&heart->lost, true);
    pl_endpoint_free(heart->endpoint, 0);
    pl_mutex_close(&heart->lock);
    pl_mem_free(heart->address);
    pl_mem_free(heart);
}

void pl_heart_tell(pl_heart *heart, int64_t step, pl_phase phase)
{
    if (heart == NULL)
        return;
    atomic_store_explicit(&heart->step, step, memory_order_relaxed);
    atomic_store_explicit(&heart->phase, (int)phase, memory_order_relaxed);
    pl_heart_beat(heart);
}

void pl_heart_beat(pl_heart *heart)
{
    if (heart != NULL)
        atomic_fetch_add_explicit(&heart->progress, 1, memory_order_relaxed);
}

pl_skew pl_heart_skew(pl_heart *heart)
{
    pl_skew skew = { 0 };
    if (heart == NULL)
        return skew;
    pl_mutex_lock(&heart->lock);
    skew = heart->skew;
    pl_mutex_unlock(&heart->lock);
    return skew;
}

pl_status pl_heart_check(pl_heart *heart)
{
    if (heart == NULL ||
        !atomic_load_explicit(&heart->lost, memory_order_relaxed))
        return PL_OK;
    pl_mutex_lock(&heart->lock);
    pl_status status = PL_FAIL(heart->how, "%s", heart->why);
    pl_mutex_unlock(&heart->lock);
    return status;
}
