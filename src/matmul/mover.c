/* The mover and its thread: decides when to request blocks, how the job's
 * phases reach the computing thread, and how long worker 0 stays. */
#include "matmul/mover.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "matmul/mover_priv.h"

#include <stdio.h>
#include <string.h>

#define JOIN_MS    60000
#define SILENCE_MS 5000
#define TICK_MS    5
#define LEAVE_MS   2000 /* for the last answers to be sent */
#define CHECK_MS   50   /* a wait for the other thread checks this often */

static void set_defaults(pl_mover_opts *opts)
{
    if (opts->join_ms <= 0)
        opts->join_ms = JOIN_MS;
    if (opts->silence_ms <= 0)
        opts->silence_ms = SILENCE_MS;
}

static pl_status listen_there(pl_mover *m)
{
    char name[32];
    const pl_mover_opts *opts = &m->opts;
    int32_t workers = opts->placement->job.workers;
    snprintf(name, sizeof name, "worker %d", opts->worker);
    m->keys = (pl_job_keys) { .workers = workers, .ps = workers };
    if (opts->secret != NULL)
        m->keys.secret = *opts->secret;
    /* The listener authenticates as server `worker` of the job. */
    return pl_endpoint_listen(
        &m->server, &(pl_endpoint_opts) {
                        .address = opts->address,
                        .name = name,
                        .area = pl_store_area(opts->store),
                        .transport = opts->transport,
                        .keys = opts->secret != NULL ? &m->keys : NULL,
                        .self = { PL_PRINCIPAL_PS, opts->worker },
                    });
}

static pl_status make_room(pl_mover *m)
{
    const pl_matmul_plan *plan = m->opts.plan;
    PL_TRY(PL_NEW(m->others, (size_t)m->opts.placement->job.workers));
    for (int i = 0; i < PL_MATMUL_SLOTS; i++) {
        m->slots[i].step = -1;
        if (plan->slot_floats > 0)
            PL_TRY(
                PL_NEW_ALIGNED(m->slots[i].memory, (size_t)plan->slot_floats));
    }
    return PL_OK;
}

pl_status pl_mover_init(pl_mover *m, const pl_mover_opts *opts,
                        const pl_mover_net *net)
{
    m->opts = *opts;
    m->net = net;
    set_defaults(&m->opts);
    pl_mutex_init(&m->lock);
    pl_cond_init(&m->moved);
    PL_TRY(make_room(m));
    return pl_mover_members_init(m);
}

void pl_mover_close(pl_mover *m)
{
    for (int32_t w = 0; m->others != NULL && w < m->opts.placement->job.workers;
         w++)
        pl_mem_free(m->others[w].address);
    pl_mem_free(m->others);
    pl_membership_free(m->membership);
    for (int i = 0; i < PL_MATMUL_SLOTS; i++)
        pl_mem_free(m->slots[i].memory);
    pl_mem_free(m->report);
    pl_keys_wipe(&m->keys, sizeof m->keys);
    pl_cond_close(&m->moved);
    pl_mutex_close(&m->lock);
}

pl_status pl_mover_new(pl_mover **out, const pl_mover_opts *opts)
{
    static const pl_mover_net net = { pl_endpoint_send, pl_endpoint_offer,
                                      pl_endpoint_accept,
                                      pl_endpoint_complete };
    pl_mover *m;
    PL_TRY(PL_NEW(m, 1));
    pl_status status = pl_mover_init(m, opts, &net);
    if (status == PL_OK)
        status = listen_there(m);
    if (status != PL_OK) {
        pl_mover_free(m);
        return status;
    }
    *out = m;
    return PL_OK;
}

static void stop(pl_mover *m)
{
    atomic_store(&m->stop, true);
    pl_status status = pl_thread_join(m->thread);
    PL_ASSERT(status == PL_OK); /* a failure of the thread is in m->failed */
    m->thread = NULL;
}

void pl_mover_free(pl_mover *m)
{
    if (m == NULL)
        return;
    stop(m);
    for (int32_t w = 0; m->others != NULL && w < m->opts.placement->job.workers;
         w++)
        pl_endpoint_free(m->others[w].end, w == 0 ? LEAVE_MS : 0);
    pl_endpoint_free(m->server, LEAVE_MS);
    pl_mover_close(m);
    pl_mem_free(m);
}

const char *pl_mover_address(const pl_mover *m)
{
    return pl_endpoint_address(m->server);
}

/* --- the thread ------------------------------------------------------- */

static pl_matmul_phase job_phase(pl_mover *m)
{
    pl_mutex_lock(&m->lock);
    pl_matmul_phase phase = m->job;
    pl_mutex_unlock(&m->lock);
    return phase;
}

static pl_status take_all(pl_mover *m)
{
    pl_message message;
    pl_status status;
    while ((status = pl_endpoint_poll(m->server, &message)) == PL_OK)
        PL_TRY(pl_mover_take_request(m, &message));
    if (status != PL_AGAIN)
        return status;
    for (int32_t w = 0; w < m->opts.placement->job.workers; w++) {
        if (m->others[w].end == NULL)
            continue;
        while ((status = pl_endpoint_poll(m->others[w].end, &message)) == PL_OK)
            PL_TRY(pl_mover_take_answer(m, w, &message));
        if (status != PL_AGAIN)
            return pl_context(status, "worker %d", w);
    }
    return PL_OK;
}

static void wait_messages(pl_mover *m)
{
    pl_endpoint *all[PL_MATMUL_WORKERS_MAX + 1];
    int count = 0;
    all[count++] = m->server;
    for (int32_t w = 0; w < m->opts.placement->job.workers; w++)
        if (m->others[w].end != NULL)
            all[count++] = m->others[w].end;
    pl_endpoint_wait(all, count, pl_deadline_in_ms(pl_clock_real(), TICK_MS));
}

static pl_status turn(pl_mover *m)
{
    wait_messages(m);
    PL_TRY(take_all(m));
    PL_TRY(pl_mover_tend(m));
    if (job_phase(m) == PL_MATMUL_RUNS)
        PL_TRY(pl_mover_ask(m));
    if (m->opts.ended != NULL && m->opts.ended(m->opts.context))
        return PL_FAIL(PL_INTERRUPTED, "interrupted");
    return PL_OK;
}

/* Worker 0 stays until all have acknowledged the end, or for LEAVE_MS. */
static void say_good_bye(pl_mover *m)
{
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), LEAVE_MS);
    while (m->opts.worker == 0 && job_phase(m) >= PL_MATMUL_OVER &&
           !pl_membership_all_told(m->membership) &&
           !pl_deadline_passed(deadline)) {
        wait_messages(m);
        if (take_all(m) != PL_OK)
            return;
    }
}

static pl_status run(void *arg)
{
    pl_mover *m = arg;
    pl_status status = PL_OK;
    while (status == PL_OK && !atomic_load(&m->stop) &&
           job_phase(m) != PL_MATMUL_OVER)
        status = turn(m);
    if (status != PL_OK) {
        pl_error failed;
        pl_error_save(&failed, status);
        pl_membership_abort(m->membership, pl_error_message());
        pl_mutex_lock(&m->lock);
        m->failed = failed;
        m->job = PL_MATMUL_FAILED;
        pl_cond_broadcast(&m->moved);
        pl_mutex_unlock(&m->lock);
    }
    say_good_bye(m);
    return PL_OK;
}

/* --- the computing thread's side -------------------------------------- */

/* Whether this worker fetches from, or reports to, that one. */
static bool needs(const pl_mover *m, int32_t worker)
{
    const pl_matmul_plan *plan = m->opts.plan;
    if (worker == m->opts.worker)
        return false;
    for (int32_t i = 0; i < plan->want_count; i++)
        if (plan->wants[i].owner == worker)
            return true;
    return worker == 0;
}

static pl_status connect_to(pl_mover *m, int32_t worker)
{
    char name[32];
    snprintf(name, sizeof name, "worker %d", m->opts.worker);
    return pl_endpoint_connect(
        &m->others[worker].end,
        &(pl_endpoint_opts) {
            .address = m->others[worker].address,
            .name = name,
            .transport = m->opts.transport,
            .keys = m->opts.secret != NULL ? &m->keys : NULL,
            .self = { PL_PRINCIPAL_WORKER, m->opts.worker },
            .server = worker,
            .beside = m->server,
        });
}

pl_status pl_mover_start(pl_mover *m, char *const *addresses)
{
    for (int32_t w = 0; w < m->opts.placement->job.workers; w++) {
        if (w == m->opts.worker)
            continue;
        PL_TRY(pl_mem_copy_text(&m->others[w].address, addresses[w]));
        if (needs(m, w))
            PL_TRY(connect_to(m, w));
    }
    pl_mover_join(m);
    return pl_thread_start(&m->thread, "mover", run, m);
}

/* With the lock held: wait briefly, or return the failure. */
static pl_status wait_a_moment(pl_mover *m)
{
    if (m->failed.status != PL_OK)
        return pl_error_raise(&m->failed);
    pl_status status = pl_cond_wait_until(
        &m->moved, &m->lock, pl_deadline_in_ms(pl_clock_real(), CHECK_MS));
    return status == PL_TIMEOUT ? PL_OK : status;
}

/* The thread checks the deadlines, and fails when they pass. */
static pl_status wait_for_phase(pl_mover *m, pl_matmul_phase phase)
{
    pl_status status = PL_OK;
    pl_mutex_lock(&m->lock);
    while (status == PL_OK && m->job < phase)
        status = wait_a_moment(m);
    if (status == PL_OK && m->failed.status != PL_OK)
        status = pl_error_raise(&m->failed);
    pl_mutex_unlock(&m->lock);
    return status;
}

pl_status pl_mover_ready(pl_mover *m)
{
    pl_mutex_lock(&m->lock);
    m->phase = PL_WORKER_PHASE_READY;
    pl_mutex_unlock(&m->lock);
    return wait_for_phase(m, PL_MATMUL_RUNS);
}

pl_status pl_mover_await(pl_mover *m, int32_t step, const float **wants)
{
    pl_slot *slot = &m->slots[step % PL_MATMUL_SLOTS];
    pl_status status = PL_OK;
    pl_mutex_lock(&m->lock);
    while (status == PL_OK &&
           (slot->step != step || slot->left > 0 || m->failed.status != PL_OK))
        status = wait_a_moment(m);
    pl_mutex_unlock(&m->lock);
    *wants = slot->memory;
    return status;
}

void pl_mover_release(pl_mover *m, int32_t step)
{
    pl_mutex_lock(&m->lock);
    m->released = step + 1;
    pl_mutex_unlock(&m->lock);
}

pl_status pl_mover_finish(pl_mover *m, const char *report)
{
    char *copy;
    PL_TRY(pl_mem_copy_text(&copy, report));
    pl_mutex_lock(&m->lock);
    m->phase = PL_WORKER_PHASE_DONE;
    m->report = copy;
    pl_mutex_unlock(&m->lock);
    PL_TRY(wait_for_phase(m, PL_MATMUL_OVER));
    stop(m);
    return PL_OK;
}

const char *pl_mover_report(const pl_mover *m, int32_t worker)
{
    PL_ASSERT(m->thread == NULL && m->job == PL_MATMUL_OVER);
    return pl_membership_report(m->membership, worker);
}

pl_mover_counts pl_mover_count(pl_mover *m)
{
    pl_mutex_lock(&m->lock);
    pl_mover_counts counts = m->counts;
    pl_mutex_unlock(&m->lock);
    return counts;
}
