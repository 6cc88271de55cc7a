/* The parameter server as an object: its creation, how it sends, how a job
 * ends.
 *
 *   EMPTY --INIT or LOAD is complete--> INITIALIZED --> STOPPING --> FINISHED
 *     ^                                      |             |
 *     +------------- rolled back ------------+-------------+
 *
 * EMPTY: no parameters; pushes are refused.  INITIALIZED: has parameters, which
 * server 0 hands out once it is READY, that is, once the chief has sent a
 * further request.  STOPPING: server 0 applies no further gradient, and the
 * others only those that server 0 has applied; FAILED is STOPPING with a
 * reason.  FINISHED: the server may end.
 *
 * Invariants, which the tests and the simulator name (the files of the core
 * have their own: J members.c, R request.c, L watch.c, K save.c, D deal.c):
 *   P1  A failure is final, and its first reason is kept; a rollback does not
 *       undo it.
 *   P2  A new generation keeps no parameters, requests, gradients or counts of
 *       the previous one, and no save whose manifest was not being written.
 *   P3  Server 0 answers no pull before all servers have joined and have
 *       parameters.
 *   P4  A job cannot succeed unless all servers have parameters: until then
 *       server 0 turns a stop into a failure.
 *   P5  Memory leased from another task is held at least as long as a gradient
 *       in it is needed. */
#include "sync/ps/core/core_priv.h"
#include "sync/ps/modes/mode.h"
#include "sync/ps/store/store.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static pl_ps_core_opts resolve(const pl_ps_core_opts *opts)
{
    pl_ps_core_opts r = *opts;
    if (r.replicas <= 0 || r.replicas > r.workers)
        r.replicas = r.workers;
    if (r.heartbeat_ms <= 0)
        r.heartbeat_ms = 5000;
    if (r.rejoin_ms <= 0)
        r.rejoin_ms = 60000;
    if (r.join_ms <= 0)
        r.join_ms = 600000;
    if (r.codec == NULL)
        r.codec = pl_codecs[0];
    return r;
}

static pl_status init_members(pl_ps_core *core)
{
    const pl_ps_core_opts *opts = &core->opts;
    core->member_count = opts->workers + 1 + opts->ps;
    PL_TRY(PL_NEW(core->members, (size_t)core->member_count));
    core->guess_mask = 63;
    while (core->guess_mask < 2 * (uint32_t)core->member_count)
        core->guess_mask = 2 * core->guess_mask + 1;
    PL_TRY(PL_NEW(core->by_peer, (size_t)core->guess_mask + 1));
    PL_TRY(PL_NEW(core->by_incarnation, (size_t)core->guess_mask + 1));
    for (int32_t i = 0; i < core->member_count; i++) {
        pl_member *member = &core->members[i];
        member->peer = -1;
        member->reads = member->reader = i;
        PL_TRY(pl_pieces_init(&member->in, opts->first, opts->count,
                              opts->piece, 1));
        PL_TRY(pl_stream_init(&member->out, opts->first, opts->count,
                              opts->piece, 1));
    }
    return PL_OK;
}

pl_status pl_ps_core_new(pl_ps_core **out, const pl_ps_core_opts *opts,
                         int64_t now_ns)
{
    PL_ASSERT(opts->ps >= 1 && opts->workers >= 1 && opts->count >= 1);
    pl_ps_core *core;
    PL_TRY(PL_NEW(core, 1));
    core->opts = resolve(opts);
    core->mode = pl_ps_mode_of(opts->mode);
    core->store =
        opts->table_count > 0 ? &pl_ps_store_keyed : &pl_ps_store_dense;
    core->now_ns = core->begin_ns = core->said_ns = now_ns;
    core->coordinator_ns = now_ns;
    core->generation = core->opts.index == 0 ? 1 : 0;
    /* Each process of server 0 assigns different numbers. */
    core->base_incarnation = pl_core_life(opts->life << 16);
    core->last_incarnation = core->base_incarnation;
    pl_core_reset_deal(core);
    pl_status status = init_members(core);
    if (status == PL_OK)
        status = pl_core_update_init(core);
    if (status == PL_OK)
        status = pl_core_save_init(core);
    if (status == PL_OK && core->store->open != NULL)
        status = core->store->open(core);
    if (status != PL_OK) {
        pl_ps_core_free(core);
        return status;
    }
    *out = core;
    return PL_OK;
}

void pl_ps_core_free(pl_ps_core *core)
{
    if (core == NULL)
        return;
    for (int32_t i = 0; core->members != NULL && i < core->member_count; i++) {
        pl_pieces_close(&core->members[i].in);
        pl_stream_close(&core->members[i].out);
        pl_lease_release(core->members[i].lease);
        pl_mem_free(core->members[i].staging);
        pl_mem_free(core->members[i].report);
    }
    pl_core_update_close(core);
    pl_core_save_close(core);
    if (core->store->close != NULL)
        core->store->close(core);
    pl_mem_free(core->members);
    pl_mem_free(core->by_peer);
    pl_mem_free(core->by_incarnation);
    pl_mem_free(core->run);
    pl_mem_free(core);
}

int32_t pl_core_id(const pl_ps_core *core, const pl_member *member)
{
    return (int32_t)(member - core->members);
}

bool pl_core_is_worker(const pl_ps_core *core, const pl_member *member)
{
    return pl_core_id(core, member) < core->opts.workers;
}

void pl_core_set_state(pl_ps_core *core, pl_member *member,
                       pl_member_state state)
{
    if (pl_core_is_worker(core, member))
        core->here +=
            (state == PL_MEMBER_HERE) - (member->state == PL_MEMBER_HERE);
    member->state = state;
}

const char *pl_core_name(const pl_ps_core *core, const pl_member *member,
                         char text[32])
{
    int32_t id = pl_core_id(core, member), workers = core->opts.workers;
    if (id == 0 && core->opts.named_chief)
        snprintf(text, 32, "chief");
    else if (id < workers)
        snprintf(text, 32, "worker %d", id - core->opts.named_chief);
    else if (id == workers)
        snprintf(text, 32, "evaluator");
    else
        snprintf(text, 32, "ps %d", id - workers - 1);
    return text;
}

void pl_core_send(pl_ps_core *core, pl_peer to, pl_frame frame,
                  const void *payload, bool lasting)
{
    if (to == PL_PEER_NONE)
        return;
    frame.generation = core->generation;
    core->opts.ops->send(core->opts.context, to, &frame, payload, lasting);
}

void pl_core_send_text(pl_ps_core *core, pl_peer to, pl_frame frame,
                       const char *text)
{
    frame.payload_bytes = (uint32_t)strlen(text);
    pl_core_send(core, to, frame, text, false);
}

void pl_core_forget(pl_ps_core *core, pl_member *member)
{
    member->sequence = 0;
    member->stage = PL_STAGE_NONE;
    member->paused = false;
    pl_core_grant(core, member, false);
    core->slowest_known = false;
    member->held = false;
    pl_core_share_own(core, member);
    if (member == core->members) {
        core->frozen = false;
        pl_core_save_abandon(core);
    }
    if (!member->fresh)
        member->gradient = NULL;
    if (core->store->forget != NULL)
        core->store->forget(core, member);
}

void pl_core_lose_residuals(pl_ps_core *core)
{
    if (core->opts.codec->slots > 0)
        core->counts.mixed = true;
}

void pl_core_reset(pl_ps_core *core, uint32_t generation)
{
    size_t workers = (size_t)core->opts.workers;
    core->generation = generation;
    core->initialized = core->ready = core->told = core->frozen = false;
    core->stopping = core->failed;
    core->hollow = NULL;
    core->step = core->asked_usage_ns = core->test_step = 0;
    pl_core_reset_deal(core);
    pl_core_save_reset(core);
    core->begin_ns = core->said_ns = core->now_ns;
    memset(core->chosen, 0, workers);
    for (int32_t w = 0; w < core->opts.workers; w++)
        pl_core_forget_have(core, w);
    core->ready_count = 0;
    core->slowest_known = false;
    for (size_t i = 0; i <= workers; i++) {
        pl_member *member = &core->members[i];
        member->fresh = false;
        pl_core_forget(core, member);
        member->gradient = NULL;
        member->own = member->made = member->pace = 0;
        member->settled = member->applied = 0;
        member->applied_incarnation = 0;
        if (!pl_core_leads(core)) /* server 0 may restart its numbers */
            member->incarnation = 0;
        member->life.heard_ns = core->now_ns;
        /* A worker that said goodbye still waits for the answer. */
        if (member->state == PL_MEMBER_LEFT && i < workers)
            pl_core_set_state(core, member, PL_MEMBER_HERE);
    }
}

/* A lease may outlive its gradient, never the reverse: code that handles
 * gradients can ignore leases. */
void pl_core_end_leases(pl_ps_core *core)
{
    for (int32_t w = 0; w < core->opts.workers; w++) {
        pl_member *member = &core->members[w];
        bool there = pl_lease_covers(member->lease, member->gradient, 1);
        bool wanted =
            member->fresh || member->held || member->stage == PL_STAGE_ARRIVING;
        if (there && wanted)
            continue;
        if (there)
            member->gradient = NULL; /* it was used */
        pl_lease_release(member->lease);
        member->lease = NULL;
    }
}

/* A gradient that outlives its connection must be copied. */
void pl_core_keep(pl_ps_core *core, pl_member *member)
{
    if (core->store->keep(core, member) != PL_OK)
        pl_core_end(core, true, "%s", pl_error_message());
}

void pl_core_end(pl_ps_core *core, bool failed, const char *format, ...)
{
    if (core->failed || (core->stopping && !failed))
        return;
    if (!failed && core->members[0].state == PL_MEMBER_LEFT)
        return; /* it has ended; others may still read parameters */
    /* Unless all servers have their first parameters the job cannot succeed;
     * server 0 knows whether they do.  A server that is new when the chief has
     * left needs none. */
    bool early = !failed && pl_core_leads(core) &&
                 (!core->ready || !pl_core_servers_here(core));
    failed = failed || early;
    core->stopping = true;
    core->failed = failed;
    va_list args;
    va_start(args, format);
    vsnprintf(core->why, sizeof core->why, format, args);
    va_end(args);
    if (early)
        strncat(core->why, PL_STOP_EARLY,
                sizeof core->why - strlen(core->why) - 1);
    core->interrupted = !failed && strcmp(core->why, PL_STOP_INTERRUPT) == 0;
    core->said_ns = core->now_ns;
    for (int32_t i = 0; i < core->member_count; i++)
        if (core->members[i].state == PL_MEMBER_HERE &&
            (failed || i > core->opts.workers))
            pl_core_send_text(
                core, core->members[i].peer,
                pl_core_stamp(
                    failed ? pl_ps_over_encode(true)
                           : pl_ps_heartbeat_ack_encode(&(pl_ps_heartbeat_ack) {
                                 .stopping = true, .step = core->step }),
                    core->members[i].incarnation),
                core->why);
    if (!failed) {
        pl_core_release(core);
        return;
    }
    if (!pl_core_leads(core))
        pl_core_ask_stop(core, true, core->why);
}

void pl_core_note_interrupt(pl_ps_core *core)
{
    if (!pl_core_leads(core) || !core->stopping || core->failed ||
        core->interrupted)
        return;
    core->interrupted = true;
    pl_core_release(core);
}

void pl_core_reply(pl_ps_core *core, const pl_member *member, pl_frame frame,
                   const void *payload, bool lasting)
{
    frame.incarnation = member->incarnation;
    frame.sequence = member->sequence;
    pl_core_send(core, member->peer, frame, payload, lasting);
}

void pl_core_reply_text(pl_ps_core *core, const pl_member *member,
                        pl_frame frame, const char *text)
{
    frame.payload_bytes = (uint32_t)strlen(text);
    pl_core_reply(core, member, frame, text, false);
}

void pl_ps_core_tick(pl_ps_core *core, int64_t now_ns)
{
    core->now_ns = now_ns;
    int64_t more = pl_burst_rest(&core->refusals, now_ns, false);
    if (more > 0)
        pl_log(PL_LOG_WARN, "... and %lld more were refused", (long long)more);
    pl_ps_core_retry(core, now_ns);
    pl_core_end_leases(core);
    pl_core_watch_save(core);
    pl_core_watch(core);
}

bool pl_ps_core_finished(const pl_ps_core *core)
{
    return core->finished;
}

pl_status pl_ps_core_outcome(const pl_ps_core *core)
{
    if (core->failed && strcmp(core->why, PL_STOP_INTERRUPT PL_STOP_EARLY) == 0)
        return PL_FAIL(PL_INTERRUPTED, "interrupted" PL_STOP_EARLY);
    if (core->failed)
        return PL_FAIL(PL_CLOSED, "%s", core->why);
    return PL_OK;
}

void pl_ps_core_gone(pl_ps_core *core, int32_t worker)
{
    core->members[worker].gone = true;
}

void pl_ps_core_stop(pl_ps_core *core, bool failed, const char *why)
{
    core->dismissed = core->dismissed || !failed;
    /* Server 0 decides which step is the last: other servers send it a
     * request. */
    if (!pl_core_leads(core) && !failed)
        core->wants_stop = true;
    else
        pl_core_end(core, failed, "%s", why);
    if (!failed && strcmp(why, PL_STOP_INTERRUPT) == 0)
        pl_core_note_interrupt(core);
}

pl_ps_core_view pl_ps_core_look(const pl_ps_core *core, int32_t worker)
{
    pl_ps_core_view view = core->counts;
    view.step = core->step;
    view.initialized = core->initialized;
    view.generation = core->generation;
    view.stopping = core->stopping;
    view.run = core->run;
    view.run_job = core->run_job;
    if (worker >= 0 && worker < core->opts.workers) {
        view.applied_of_worker = core->members[worker].own;
        view.pace_of_worker = core->members[worker].pace;
    }
    return view;
}
