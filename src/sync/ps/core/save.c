/* Checkpoints: when a server may begin its shard, when a checkpoint counts, and
 * when it is given up.
 *
 * The chief stops all workers between two gradients (PAUSE), then sends every
 * server a SAVE request with each worker's count: a server begins when it has
 * applied these gradients, all of which it has (async.c).  From then on its
 * shard is written in the state of this moment, while updates continue
 * (ops.touch); when all servers have begun, the chief lets the workers
 * continue.  Each server notifies server 0 that its shard is written (SAVED,
 * repeated until acknowledged); when all are, server 0 writes the manifest,
 * which completes the checkpoint.  If one failed, or the chief was lost before
 * all had begun, the checkpoint is given up; earlier ones still count.
 *
 * A rolled-back job reads its parameters by LOAD, the same plan for all.
 *
 * What a server does on its disk:
 *   NOTHING -> PART -> NOTHING       its shard is written, or was cancelled
 *   NOTHING -> MANIFEST -> NOTHING   server 0: the checkpoint is completed
 *   NOTHING -> LOAD -> NOTHING       its shard is read, or was cancelled
 *
 * Invariants:
 *   K1  A server begins its shard only when it has applied as many gradients of
 *       each worker as the chief's request states.
 *   K2  From the time the chief got these numbers until the workers continue,
 *       no gradient is applied at server 0.
 *   K3  The manifest is written only when every server has reported a good
 *       shard of this save.
 *   K4  A save that was given up is never completed; a manifest that is being
 *       written is not given up.
 *   K5  A server repeats the outcome of its shard until server 0 acknowledges
 *       it. */
#include "sync/ps/core/core_priv.h"
#include "sync/ps/modes/mode.h"
#include "sync/ps/store/store.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

pl_status pl_core_save_init(pl_ps_core *core)
{
    PL_TRY(PL_NEW(core->save.counts, (size_t)core->opts.workers));
    return PL_NEW(core->save.parts, (size_t)core->opts.ps);
}

static void drop_plan(pl_core_save *save)
{
    pl_mem_free(save->plan);
    save->plan = NULL;
}

void pl_core_save_close(pl_ps_core *core)
{
    drop_plan(&core->save);
    pl_mem_free(core->save.counts);
    pl_mem_free(core->save.parts);
}

/* Server 0: the current save has ended. */
static void end_save(pl_ps_core *core, pl_saved outcome, const char *why)
{
    pl_core_save *save = &core->save;
    save->active = false;
    save->outcome = outcome;
    if (why != save->why)
        snprintf(save->why, sizeof save->why, "%s", why);
    pl_log(PL_LOG_DEBUG, "checkpoint of step %lld: %s", (long long)save->step,
           outcome == PL_SAVED_GOOD ? "complete" : save->why);
    pl_core_release(core);
}

/* Cancel the operation under way; not a manifest, which may count already. */
static void cancel(pl_ps_core *core)
{
    pl_storing what = core->save.storing;
    if (what == PL_STORING_NOTHING || what == PL_STORING_MANIFEST)
        return;
    core->opts.ops->cancel(core->opts.context);
    core->save.storing = PL_STORING_NOTHING;
}

static bool plan_is_here(const pl_core_save *save)
{
    return save->plan != NULL;
}

/* Keep the counts and the plan of a request; false: it was refused. */
static bool take_plan(pl_ps_core *core, pl_member *member,
                      const pl_message *message)
{
    pl_core_save *save = &core->save;
    pl_ps_plan plan = { 0 };
    const char *why = NULL;
    if (member != core->members)
        why = "only the chief saves and loads";
    else if (core->opts.ops->save == NULL)
        why = "this server keeps no checkpoints";
    else if (!pl_ps_plan_decode(&plan, message, core->opts.workers))
        why = "not a checkpoint of this job's workers";
    drop_plan(save);
    if (why == NULL && PL_NEW(save->plan, plan.text_bytes) != PL_OK)
        why = pl_error_message();
    if (why != NULL) {
        pl_core_refuse(core, member, why);
        member->stage = PL_STAGE_NONE;
        return false;
    }
    memcpy(save->counts, plan.counts, pl_ps_counts_bytes(core->opts.workers));
    memcpy(save->plan, plan.text, plan.text_bytes);
    save->plan_bytes = plan.text_bytes;
    member->stage = PL_STAGE_WAITING;
    return true;
}

void pl_core_begin_save(pl_ps_core *core, pl_member *member,
                        const pl_message *message)
{
    pl_core_save *save = &core->save;
    if (!core->initialized) {
        pl_core_refuse(core, member, "there is nothing to save yet");
        member->stage = PL_STAGE_NONE;
        return;
    }
    if (!take_plan(core, member, message))
        return;
    /* Cancel a save that an earlier chief began on some servers only. */
    cancel(core);
    save->tell = false;
    if (save->active)
        end_save(core, PL_SAVED_FAILED, "another one was begun");
    pl_core_release(core);
}

void pl_core_begin_load(pl_ps_core *core, pl_member *member,
                        const pl_message *message)
{
    if (core->ready) {
        pl_core_answer(core, member, 0);
        return;
    }
    if (!take_plan(core, member, message))
        return;
    core->initialized = false;
    cancel(core);
    pl_core_release(core);
}

/* All shards of a checkpoint have the same state: each server waits until it
 * has applied the gradients that server 0 had applied. */
static bool counts_agree(const pl_ps_core *core)
{
    for (int32_t w = 0; w < core->opts.workers; w++) {
        int64_t count = core->save.counts[w];
        if (core->members[w].own < (count < 0 ? ~count : count))
            return false;
    }
    return true;
}

static void start_save(pl_ps_core *core, pl_member *chief)
{
    pl_core_save *save = &core->save;
    const pl_ps_core_ops *ops = core->opts.ops;
    if (!counts_agree(core) || save->storing != PL_STORING_NOTHING ||
        !ops->save(core->opts.context, save->plan, save->plan_bytes))
        return;
    drop_plan(save);
    save->storing = PL_STORING_PART;
    save->number = chief->request.save.number;
    save->step = chief->request.save.step;
    save->own = (pl_ps_part) { 0 };
    save->why[0] = '\0';
    if (pl_core_leads(core)) {
        save->active = true;
        save->all_begun = false;
        memset(save->parts, 0, (size_t)core->opts.ps * sizeof *save->parts);
    }
    pl_core_answer(core, chief, 0);
}

static void start_load(pl_ps_core *core, const pl_member *chief)
{
    pl_core_save *save = &core->save;
    const pl_ps_core_ops *ops = core->opts.ops;
    if (save->storing != PL_STORING_NOTHING ||
        !ops->load(core->opts.context, save->plan, save->plan_bytes))
        return;
    drop_plan(save);
    save->storing = PL_STORING_LOAD;
    save->loading = chief->request.load.step;
}

void pl_core_try_store(pl_ps_core *core, pl_member *chief)
{
    pl_core_save *save = &core->save;
    const pl_ps_request *request = &chief->request;
    if (request->kind == PL_REQUEST_SAVE_STATUS) {
        if (!save->active || !request->save_status.wait)
            pl_core_answer(core, chief, 0);
    } else if (plan_is_here(save)) {
        if (request->kind == PL_REQUEST_SAVE)
            start_save(core, chief);
        else
            start_load(core, chief);
    }
}

void pl_core_send_saved(pl_ps_core *core, const pl_member *chief)
{
    const pl_core_save *save = &core->save;
    pl_saved outcome = save->active ? PL_SAVED_WRITING : save->outcome;
    pl_core_reply_text(
        core, chief, pl_ps_save_answer_encode(core->step, outcome), save->why);
}

/* Server 0: complete the checkpoint when all shards are written. */
static void try_commit(pl_ps_core *core)
{
    pl_core_save *save = &core->save;
    if (!save->active || save->storing != PL_STORING_NOTHING)
        return;
    pl_saved outcome = PL_SAVED_GOOD;
    for (int32_t j = 0; j < core->opts.ps; j++) {
        if (!save->parts[j].done)
            return;
        if (save->parts[j].outcome > outcome)
            outcome = save->parts[j].outcome;
    }
    if (outcome != PL_SAVED_GOOD)
        end_save(core, outcome, save->why);
    else if (core->opts.ops->commit(core->opts.context, save->parts))
        save->storing = PL_STORING_MANIFEST;
}

/* The first reason is kept. */
static void note_part(pl_ps_core *core, int32_t server, pl_ps_part part,
                      const char *who, const char *why, size_t bytes)
{
    pl_core_save *save = &core->save;
    bool first = true;
    for (int32_t j = 0; j < core->opts.ps; j++)
        first = first && save->parts[j].outcome == PL_SAVED_GOOD;
    save->parts[server] = part;
    save->parts[server].done = true;
    if (part.outcome != PL_SAVED_GOOD && first)
        snprintf(save->why, sizeof save->why, "%s: %.*s", who, (int)bytes, why);
    try_commit(core);
}

void pl_core_on_saved(pl_ps_core *core, const pl_member *from,
                      const pl_message *message)
{
    pl_core_save *save = &core->save;
    int32_t server = pl_core_id(core, from) - core->opts.workers - 1;
    pl_ps_saved saved;
    if (!pl_core_leads(core) || server < 1 ||
        !pl_ps_saved_decode(&saved, message) || saved.number > save->number)
        return; /* it is repeated until we have begun */
    pl_frame heard =
        pl_ps_saved_encode(&(pl_ps_saved) { .number = saved.number });
    pl_core_send(core, from->peer, pl_core_stamp(heard, from->incarnation),
                 NULL, false);
    if (!save->active || saved.number != save->number ||
        save->parts[server].done)
        return;
    pl_ps_part part = {
        .outcome = saved.outcome,
        .bytes = saved.bytes,
        .crc32c = saved.crc32c,
    };
    char name[32], who[PL_MEMBER_TEXT + 64];
    snprintf(who, sizeof who, "%s (%s)", pl_core_name(core, from, name),
             from->where);
    note_part(core, server, part, who, message->payload,
              message->frame.payload_bytes);
}

void pl_core_saved_heard(pl_ps_core *core, const pl_message *message)
{
    pl_ps_saved heard;
    if (pl_ps_saved_decode(&heard, message) &&
        heard.number == core->save.number)
        core->save.tell = false;
}

void pl_core_say_saved(pl_ps_core *core)
{
    const pl_core_save *save = &core->save;
    if (core->own_incarnation == 0)
        return; /* sent when we have joined server 0 */
    pl_ps_saved saved = {
        .number = save->number,
        .outcome = save->own.outcome,
        .step = save->step,
        .bytes = save->own.bytes,
        .crc32c = save->own.crc32c,
    };
    pl_core_send_text(
        core, PL_PEER_COORDINATOR,
        pl_core_stamp(pl_ps_saved_encode(&saved), core->own_incarnation),
        save->why);
}

void pl_core_save_begun(pl_ps_core *core)
{
    core->save.all_begun = true;
}

void pl_core_save_abandon(pl_ps_core *core)
{
    const pl_core_save *save = &core->save;
    if (!save->active || save->all_begun ||
        save->storing == PL_STORING_MANIFEST)
        return;
    cancel(core);
    end_save(core, PL_SAVED_FAILED, "the chief was lost while it began");
}

void pl_core_save_reset(pl_ps_core *core)
{
    pl_core_save *save = &core->save;
    cancel(core);
    drop_plan(save);
    save->number = 0;
    save->active = save->tell = save->held = false;
    save->outcome = PL_SAVED_GOOD;
    save->why[0] = '\0';
}

/* Whether the chief was notified that all workers wait, with their counts. */
static bool counts_are_told(const pl_ps_core *core)
{
    const pl_member *chief = core->members;
    return core->frozen && !(chief->request.kind == PL_REQUEST_FREEZE &&
                             chief->stage == PL_STAGE_WAITING);
}

bool pl_core_may_change(pl_ps_core *core, const pl_member *member)
{
    const pl_ps_core_ops *ops = core->opts.ops;
    bool may = !counts_are_told(core);
    if (may && ops->touch != NULL)
        may = core->store->touch(core, member);
    core->save.held = core->save.held || !may;
    return may;
}

void pl_core_watch_save(pl_ps_core *core)
{
    pl_member *chief = core->members;
    if (chief->stage == PL_STAGE_WAITING &&
        (chief->request.kind == PL_REQUEST_SAVE ||
         chief->request.kind == PL_REQUEST_SAVE_STATUS ||
         chief->request.kind == PL_REQUEST_LOAD))
        pl_core_try_store(core, chief);
    try_commit(core);
}

/* The shard of the last checkpoint was read. */
static void finish_load(pl_ps_core *core)
{
    const pl_core_save *save = &core->save;
    pl_member *chief = core->members;
    for (int32_t w = 0; w < core->opts.workers; w++) {
        int64_t own = save->counts[w] < 0 ? ~save->counts[w] : save->counts[w];
        core->members[w].own = own < PL_COUNT_MOST ? own : PL_COUNT_MOST;
        core->members[w].made = core->members[w].pace = core->members[w].own;
    }
    core->initialized = true;
    core->version++;
    core->step = save->loading;
    if (core->step > 0)
        pl_core_lose_residuals(core);
    if (chief->stage == PL_STAGE_WAITING &&
        chief->request.kind == PL_REQUEST_LOAD &&
        chief->request.load.step == save->loading)
        pl_core_answer(core, chief, 0);
    pl_core_release(core);
}

void pl_ps_core_stored(pl_ps_core *core, const pl_ps_stored *stored,
                       int64_t now_ns)
{
    pl_core_save *save = &core->save;
    pl_storing what = save->storing;
    const char *why = stored->why != NULL ? stored->why : "";
    char who[32];
    core->now_ns = now_ns;
    save->storing = PL_STORING_NOTHING;
    snprintf(who, sizeof who, "ps %d", core->opts.index);
    if (what == PL_STORING_MANIFEST) {
        if (save->active) /* the job was not rolled back meanwhile */
            end_save(core, stored->outcome, why);
    } else if (what == PL_STORING_LOAD && stored->outcome == PL_SAVED_GOOD) {
        finish_load(core);
    } else if (what == PL_STORING_LOAD) {
        pl_core_end(core, true, "%s: %s", who, why);
    } else if (what == PL_STORING_PART) {
        save->own = (pl_ps_part) { true, stored->outcome, stored->bytes,
                                   stored->crc32c };
        if (pl_core_leads(core)) {
            note_part(core, 0, save->own, who, why, strlen(why));
            return;
        }
        snprintf(save->why, sizeof save->why, "%s", why);
        save->tell = true;
        pl_core_say_saved(core);
    }
}

bool pl_ps_core_held(const pl_ps_core *core)
{
    return core->save.held;
}

void pl_ps_core_retry(pl_ps_core *core, int64_t now_ns)
{
    core->now_ns = now_ns;
    if (!core->save.held || !pl_core_may_change(core, NULL))
        return;
    core->save.held = false;
    core->mode->retry(core);
    pl_core_release(core); /* also if the gradient's worker is gone */
}
