#include "dist/heart.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/ram.h"
#include "base/thread.h"
#include "net/endpoint.h"

#include <stdio.h>
#include <string.h>

struct pl_heart {
    pl_heart_opts opts;
    char *address;
    char name[32];
    pl_endpoint *endpoint; /* the thread's */
    pl_thread *thread;
    atomic_bool stopping;
    _Atomic int64_t step, progress;
    _Atomic int phase;
    uint64_t sent_number; /* the last heart; the thread's, as the next */
    int64_t sent_ns;
    pl_mutex lock;
    pl_skew skew; /* guarded by lock */
    atomic_bool lost;
    pl_status how; /* guarded by lock, too */
    char why[512]; /* guarded by lock; set once */
};

static void give_up(pl_heart *heart, pl_status how, const char *text,
                    size_t bytes)
{
    pl_mutex_lock(&heart->lock);
    if (heart->why[0] == '\0') {
        snprintf(heart->why, sizeof heart->why, "%.*s", (int)bytes, text);
        heart->how = how;
    }
    pl_mutex_unlock(&heart->lock);
    atomic_store(&heart->lost, true);
}

static void silent(pl_heart *heart, int64_t ns)
{
    char text[256];
    snprintf(text, sizeof text,
             "ps 0 (%s) is lost: nothing was heard of it for %.1f s",
             heart->address, (double)ns * 1e-9);
    give_up(heart, PL_ROLLED, text, strlen(text));
}

static pl_status send_heart(pl_heart *heart, uint64_t number)
{
    heart->sent_number = number;
    heart->sent_ns = pl_clock_now_ns(pl_clock_real());
    pl_frame frame = {
        .kind = PL_FRAME_HEART,
        .incarnation = heart->opts.incarnation,
        .sequence = number,
        .step = atomic_load(&heart->step),
        .first = pl_ram_peak(),
        .value = { atomic_load(&heart->phase), atomic_load(&heart->progress) },
    };
    return pl_endpoint_send(heart->endpoint, 0, &frame, NULL, false);
}

static void judge(pl_heart *heart, const pl_message *message)
{
    static const char rolled[] = "the job begins anew from its last checkpoint";
    const pl_frame *frame = &message->frame;
    bool refused = frame->kind == PL_FRAME_REFUSE;
    if ((refused && (frame->flags & PL_REFUSE_UNKNOWN) != 0) ||
        (frame->kind == PL_FRAME_BEAT &&
         frame->generation > heart->opts.generation))
        give_up(heart, PL_ROLLED, rolled, strlen(rolled));
    else if (refused || (frame->kind == PL_FRAME_BEAT &&
                         (frame->flags & PL_STOP_FAILED) != 0))
        give_up(heart, PL_CLOSED, message->payload, frame->payload_bytes);
}

/* The answer to the last heart tells server 0's clock. */
static void compare_clocks(pl_heart *heart, const pl_frame *frame)
{
    if (frame->kind != PL_FRAME_BEAT || frame->value[0] == 0 ||
        frame->sequence != heart->sent_number)
        return;
    pl_mutex_lock(&heart->lock);
    pl_skew_hear(&heart->skew, heart->sent_ns, pl_clock_now_ns(pl_clock_real()),
                 frame->value[0]);
    pl_mutex_unlock(&heart->lock);
}

/* Read all answers; true when there was one. */
static bool read_beats(pl_heart *heart)
{
    bool heard = false;
    pl_message message;
    while (pl_endpoint_poll(heart->endpoint, &message) == PL_OK) {
        heard = true;
        compare_clocks(heart, &message.frame);
        judge(heart, &message);
    }
    return heard;
}

static pl_status heart_main(void *arg)
{
    pl_heart *heart = arg;
    const pl_clock *clock = pl_clock_real();
    int64_t every_ns = heart->opts.timeout_ms * 1000000 / 5;
    int64_t heard_ns = pl_clock_now_ns(clock), next_ns = heard_ns;
    for (uint64_t number = 1; !atomic_load(&heart->stopping);) {
        int64_t now = pl_clock_now_ns(clock);
        if (now >= next_ns) {
            PL_TRY(send_heart(heart, number++));
            /* Time that we ourselves were stopped is not the server's. */
            if (now - next_ns > every_ns)
                heard_ns += now - next_ns;
            next_ns = now + every_ns;
        }
        if (read_beats(heart))
            heard_ns = now;
        if (now - heard_ns > heart->opts.timeout_ms * 1000000)
            silent(heart, now - heard_ns);
        pl_deadline deadline = { clock, next_ns };
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
