/* The thread that sends heartbeats to server 0 over a connection of its own;
 * the pulse (worker/pulse.c) interprets the answers. */
#include "sync/ps/heartbeat.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/record/report.h"
#include "base/thread.h"
#include "net/endpoint.h"
#include "sync/ps/worker/pulse.h"

#include <stdio.h>
#include <string.h>

struct pl_heartbeat {
    pl_heartbeat_opts opts;
    char *address;
    char name[32];
    pl_pulse pulse;        /* owned by the thread, like... */
    pl_endpoint *endpoint; /* ... the endpoint */
    pl_thread *thread;
    atomic_bool stopping;
    _Atomic int64_t step, progress;
    _Atomic int phase;
    atomic_bool heard; /* set by the working thread, cleared by this one */
    pl_mutex lock;
    pl_skew skew; /* guarded by lock */
    atomic_bool lost;
    pl_status how; /* guarded by lock, too */
    char why[512]; /* guarded by lock; set once */
};

/* Pass the pulse's verdict on server 0 to the working thread. */
static void pass_on(pl_heartbeat *heartbeat, int64_t now)
{
    pl_status status = pl_pulse_check(&heartbeat->pulse, now);
    if (status == PL_OK || atomic_load(&heartbeat->lost))
        return;
    pl_mutex_lock(&heartbeat->lock);
    snprintf(heartbeat->why, sizeof heartbeat->why, "%s", heartbeat->pulse.why);
    heartbeat->how = status;
    pl_mutex_unlock(&heartbeat->lock);
    atomic_store(&heartbeat->lost, true);
}

static pl_status send_if_due(pl_heartbeat *heartbeat, int64_t now)
{
    pl_vital vital = {
        .step = atomic_load(&heartbeat->step),
        .phase = (pl_phase)atomic_load(&heartbeat->phase),
        .progress = atomic_load(&heartbeat->progress),
    };
    pl_frame frame;
    if (!pl_pulse_tick(&heartbeat->pulse, now, &vital, &frame))
        return PL_OK;
    char *text;
    pl_task_report usage;
    pl_task_report_read(&usage);
    PL_TRY(pl_fields_text(&pl_evaluator_report_fields, &usage, 0, &text));
    frame.payload_bytes = (uint32_t)strlen(text);
    pl_status status =
        pl_endpoint_send(heartbeat->endpoint, 0, &frame, text, false);
    pl_mem_free(text);
    return status;
}

/* The answer to the last heartbeat has the time of server 0's clock. */
static void compare_clocks(pl_heartbeat *heartbeat, const pl_message *message)
{
    pl_ps_heartbeat_ack ack;
    if (!pl_ps_heartbeat_ack_decode(&ack, message) || ack.clock_ns == 0 ||
        ack.number != heartbeat->pulse.number)
        return;
    pl_mutex_lock(&heartbeat->lock);
    pl_skew_hear(&heartbeat->skew, heartbeat->pulse.sent_ns,
                 pl_clock_now_ns(pl_clock_real()), ack.clock_ns);
    pl_mutex_unlock(&heartbeat->lock);
}

static void read_answers(pl_heartbeat *heartbeat, int64_t now)
{
    pl_message message;
    while (pl_endpoint_poll(heartbeat->endpoint, &message) == PL_OK) {
        compare_clocks(heartbeat, &message);
        pl_pulse_receive(&heartbeat->pulse, &message, now);
    }
}

static pl_status heartbeat_main(void *arg)
{
    pl_heartbeat *heartbeat = arg;
    const pl_clock *clock = pl_clock_real();
    pl_pulse_init(&heartbeat->pulse,
                  &(pl_pulse_opts) {
                      .address = heartbeat->address,
                      .incarnation = heartbeat->opts.incarnation,
                      .generation = heartbeat->opts.generation,
                      .timeout_ms = heartbeat->opts.timeout_ms,
                  },
                  pl_clock_now_ns(clock));
    while (!atomic_load(&heartbeat->stopping)) {
        int64_t now = pl_clock_now_ns(clock);
        PL_TRY(send_if_due(heartbeat, now));
        read_answers(heartbeat, now);
        if (atomic_exchange_explicit(&heartbeat->heard, false,
                                     memory_order_relaxed))
            pl_pulse_heard(&heartbeat->pulse, now);
        pass_on(heartbeat, now);
        pl_deadline deadline = { clock, heartbeat->pulse.next_ns };
        int64_t slice_ns = 100000000; /* to check `stopping` */
        if (pl_deadline_left_ns(deadline) > slice_ns)
            deadline.at_ns = now + slice_ns;
        pl_endpoint_wait(&heartbeat->endpoint, 1, deadline);
    }
    return PL_OK;
}

pl_status pl_heartbeat_start(pl_heartbeat **out, const pl_heartbeat_opts *opts)
{
    pl_heartbeat *heartbeat;
    PL_TRY(PL_NEW(heartbeat, 1));
    heartbeat->opts = *opts;
    snprintf(heartbeat->name, sizeof heartbeat->name, "%s", opts->name);
    pl_mutex_init(&heartbeat->lock);
    pl_status status;
    PL_TRY_OUT(status, pl_mem_copy_text(&heartbeat->address, opts->address));
    PL_TRY_OUT(status, pl_endpoint_connect(&heartbeat->endpoint,
                                           &(pl_endpoint_opts) {
                                               .address = heartbeat->address,
                                               .name = heartbeat->name,
                                               .keys = opts->keys,
                                               .self = opts->self,
                                           }));
    PL_TRY_OUT(status, pl_thread_start(&heartbeat->thread, "heartbeat",
                                       heartbeat_main, heartbeat));
    *out = heartbeat;
    return PL_OK;
out:
    pl_heartbeat_stop(heartbeat);
    return status;
}

void pl_heartbeat_stop(pl_heartbeat *heartbeat)
{
    if (heartbeat == NULL)
        return;
    atomic_store(&heartbeat->stopping, true);
    /* Its failure was reported by pl_heartbeat_check. */
    if (pl_thread_join(heartbeat->thread) != PL_OK)
        atomic_store(&heartbeat->lost, true);
    pl_endpoint_free(heartbeat->endpoint, 0);
    pl_mutex_close(&heartbeat->lock);
    pl_mem_free(heartbeat->address);
    pl_mem_free(heartbeat);
}

void pl_heartbeat_phase(pl_heartbeat *heartbeat, int64_t step, pl_phase phase)
{
    if (heartbeat == NULL)
        return;
    atomic_store_explicit(&heartbeat->step, step, memory_order_relaxed);
    atomic_store_explicit(&heartbeat->phase, (int)phase, memory_order_relaxed);
    pl_heartbeat_progress(heartbeat);
}

void pl_heartbeat_progress(pl_heartbeat *heartbeat)
{
    if (heartbeat != NULL)
        atomic_fetch_add_explicit(&heartbeat->progress, 1,
                                  memory_order_relaxed);
}

/* Usually only a read: the other thread clears it a few times a second. */
void pl_heartbeat_heard(pl_heartbeat *heartbeat)
{
    if (heartbeat != NULL &&
        !atomic_load_explicit(&heartbeat->heard, memory_order_relaxed))
        atomic_store_explicit(&heartbeat->heard, true, memory_order_relaxed);
}

pl_skew pl_heartbeat_skew(pl_heartbeat *heartbeat)
{
    pl_skew skew = { 0 };
    if (heartbeat == NULL)
        return skew;
    pl_mutex_lock(&heartbeat->lock);
    skew = heartbeat->skew;
    pl_mutex_unlock(&heartbeat->lock);
    return skew;
}

pl_status pl_heartbeat_check(pl_heartbeat *heartbeat)
{
    if (heartbeat == NULL ||
        !atomic_load_explicit(&heartbeat->lost, memory_order_relaxed))
        return PL_OK;
    pl_mutex_lock(&heartbeat->lock);
    pl_status status = PL_FAIL(heartbeat->how, "%s", heartbeat->why);
    pl_mutex_unlock(&heartbeat->lock);
    return status;
}
