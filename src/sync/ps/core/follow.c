/* A server other than 0: what it hears from server 0 and tells it. */
#include "sync/ps/core/core_priv.h"

#include "base/mem.h"

#define ASK_NS  INT64_C(500000000) /* between messages to server 0 */
#define BEATS   5                  /* heartbeats in the timeout */
#define JOIN_NS INT64_C(100000000) /* between requests to join it */
#define MS      INT64_C(1000000)

void pl_core_on_coordinator(pl_ps_core *core, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    core->coordinator_ns = core->now_ns;
    const char *text = message->payload;
    int bytes = (int)frame->payload_bytes;
    /* A server 0 that is new may not know how often the job was rolled back:
     * it learns that when we join. */
    if (frame->kind == PL_FRAME_REFUSE &&
        (frame->flags & PL_REFUSE_UNKNOWN) != 0) {
        if (frame->incarnation == core->own_incarnation)
            core->own_incarnation = 0;
        return;
    }
    if (frame->generation > core->generation)
        pl_core_reset(core, frame->generation);
    if (frame->generation != core->generation)
        return;
    switch (frame->kind) {
    case PL_FRAME_WELCOME:
        core->own_incarnation = frame->incarnation;
        core->ever_joined = true;
        break;
    case PL_FRAME_HEARTBEAT_ACK:
        if (frame->value[0] != 0 && frame->sequence == core->heartbeats)
            pl_skew_hear(&core->counts.skew, core->heartbeat_ns, core->now_ns,
                         frame->value[0]);
        /* Not before the last step was made here, too. */
        if ((frame->flags & PL_STOP_NOW) != 0 &&
            ((frame->flags & PL_STOP_FAILED) != 0 ||
             core->opts.mode != PL_PS_SYNC || !core->initialized ||
             frame->step == core->step))
            pl_core_end(core, (frame->flags & PL_STOP_FAILED) != 0, "%.*s",
                        bytes, text);
        break;
    case PL_FRAME_APPLY:
        pl_core_on_apply(core, frame, message->payload);
        break;
    case PL_FRAME_SAVED:
        pl_core_saved_heard(core, frame);
        break;
    case PL_FRAME_OVER:
        if ((frame->flags & PL_STOP_FAILED) != 0)
            pl_core_end(core, true, "%.*s", bytes, text);
        core->finished = true;
        pl_core_send(core, PL_PEER_COORDINATOR,
                     (pl_frame) {
                         .kind = PL_FRAME_BYE,
                         .incarnation = core->own_incarnation,
                         .sequence = ++core->own_sequence,
                     },
                     NULL, false);
        break;
    case PL_FRAME_REFUSE:
        pl_core_end(core, true, "ps 0 refused this server: %.*s", bytes, text);
        core->finished = true;
        break;
    default:
        break;
    }
}

static pl_status join_text(const pl_ps_core *core, char **out)
{
    pl_json *join = NULL, *settings = NULL;
    pl_status status;
    PL_TRY_OUT(status, pl_json_new_object(&join));
    PL_TRY_OUT(status, pl_json_set_text(join, "role", "ps"));
    PL_TRY_OUT(status, pl_json_set_int(join, "index", core->opts.index));
    PL_TRY_OUT(status, pl_json_set_text(join, "job", ""));
    if (core->opts.address != NULL)
        PL_TRY_OUT(status, pl_json_set_text(join, "host", core->opts.address));
    PL_TRY_OUT(status, pl_json_set_int(join, "process", core->opts.process));
    PL_TRY_OUT(status, pl_json_set_int(join, "started", core->opts.started_ms));
    PL_TRY_OUT(status, pl_json_set_text(join, "boot", core->opts.boot));
    if (core->opts.settings != NULL) {
        PL_TRY_OUT(status, pl_json_copy(&settings, core->opts.settings));
        PL_TRY_OUT(status, pl_json_set_take(join, "settings", settings));
    }
    status = pl_json_text(join, 0, out);
out:
    pl_json_free(join);
    return status;
}

static void ask_to_join(pl_ps_core *core)
{
    char *text;
    if (join_text(core, &text) != PL_OK) {
        pl_core_end(core, true, "%s", pl_error_message());
        core->finished = true;
        return;
    }
    pl_core_send_text(core, PL_PEER_COORDINATOR,
                      (pl_frame) { .kind = PL_FRAME_JOIN }, text);
    pl_mem_free(text);
}

void pl_core_show_life(pl_ps_core *core)
{
    if (core->own_incarnation == 0)
        return; /* server 0 itself, or one that it does not know yet */
    core->heartbeat_ns = core->now_ns;
    pl_core_send(core, PL_PEER_COORDINATOR,
                 (pl_frame) {
                     .kind = PL_FRAME_HEARTBEAT,
                     .incarnation = core->own_incarnation,
                     .sequence = ++core->heartbeats,
                     .step = core->step,
                     .first = pl_core_peak(core),
                     .value = { PL_PHASE_WAITING },
                 },
                 NULL, false);
}

void pl_core_ask_stop(pl_ps_core *core, bool failed, const char *why)
{
    pl_core_send_text(core, PL_PEER_COORDINATOR,
                      (pl_frame) {
                          .kind = PL_FRAME_STOP,
                          .flags = failed ? PL_STOP_FAILED : 0,
                          .incarnation = core->own_incarnation,
                          .sequence = ++core->own_sequence,
                      },
                      why);
}

void pl_core_follow(pl_ps_core *core)
{
    const char *where = core->opts.coordinator;
    int64_t silent = core->now_ns - core->coordinator_ns;
    int64_t limit =
        core->ever_joined ? core->opts.rejoin_ms : core->opts.join_ms;
    if (silent > limit * MS) {
        pl_core_end(core, true,
                    "ps 0%s%s%s is lost: nothing was heard of it for %lld s",
                    where != NULL ? " (" : "", where != NULL ? where : "",
                    where != NULL ? ")" : "", (long long)(silent / 1000000000));
        core->finished = true;
        return;
    }
    if (core->wants_stop && core->own_incarnation == 0) {
        pl_core_end(core, true, "interrupted while ps 0 was not there");
        core->finished = true;
        return;
    }
    if (silent > core->opts.heartbeat_ms * MS)
        core->own_incarnation = 0; /* when it comes back it is another */
    int64_t every = core->opts.heartbeat_ms * MS / BEATS;
    every = every > ASK_NS ? ASK_NS : every;
    if (core->now_ns - core->asked_ns <
        (core->own_incarnation == 0 ? JOIN_NS : every))
        return;
    core->asked_ns = core->now_ns;
    if (core->own_incarnation == 0) {
        ask_to_join(core);
        return;
    }
    /* Also when the job is ending: nobody who is lost will come back. */
    if (core->failed)
        pl_core_ask_stop(core, true, core->why);
    else if (core->wants_stop)
        pl_core_ask_stop(core, false, PL_STOP_INTERRUPT);
    pl_core_show_life(core);
    if (core->save.tell)
        pl_core_say_saved(core);
    for (int32_t w = 0; w < core->opts.workers; w++)
        if (core->members[w].fresh)
            pl_core_say_have(core, w);
}
