/* A server other than 0: the messages that it exchanges with server 0. */
#include "sync/ps/core/core_priv.h"
#include "sync/ps/modes/mode.h"

#include "base/mem.h"

#include <stdio.h>

#define ASK_NS  INT64_C(500000000) /* between messages to server 0 */
#define JOIN_NS INT64_C(100000000) /* between requests to join it */
#define MS      INT64_C(1000000)

/* Send a request to server 0. */
static void ask(pl_ps_core *core, const pl_ps_request *request,
                const char *text)
{
    pl_frame frame = pl_ps_request_encode(request, ++core->own_sequence, 0);
    pl_core_send_text(core, PL_PEER_COORDINATOR,
                      pl_core_stamp(frame, core->own_incarnation), text);
}

/* NULL without memory: the heartbeat is sent all the same. */
static char *usage_text(const pl_ps_core *core)
{
    pl_task_report report = pl_core_usage(core);
    char *text = NULL;
    return pl_fields_text(&pl_evaluator_report_fields, &report, 0, &text) ==
                   PL_OK
               ? text
               : NULL;
}

/* Send a heartbeat; `final`: server 0 requested the usage of this process. */
static void show_life(pl_ps_core *core, bool final)
{
    if (core->own_incarnation == 0)
        return; /* server 0 itself, or a server that has not joined */
    core->heartbeat_ns = core->now_ns;
    pl_ps_heartbeat heartbeat = {
        .number = ++core->heartbeats,
        .final = final,
        .vital = { .step = core->step, .phase = PL_PHASE_WAITING },
    };
    char *text = usage_text(core);
    pl_core_send_text(core, PL_PEER_COORDINATOR,
                      pl_core_stamp(pl_ps_heartbeat_encode(&heartbeat),
                                    core->own_incarnation),
                      text != NULL ? text : "");
    pl_mem_free(text);
}

static void on_heartbeat_ack(pl_ps_core *core, const pl_message *message)
{
    pl_ps_heartbeat_ack ack;
    if (!pl_ps_heartbeat_ack_decode(&ack, message))
        return;
    if (ack.clock_ns != 0 && ack.number == core->heartbeats)
        pl_skew_hear(&core->counts.skew, core->heartbeat_ns, core->now_ns,
                     ack.clock_ns);
    if (ack.final)
        show_life(core, true);
    /* Only after the last step was made here, too. */
    if (ack.stopping && (ack.failed || !core->mode->lock_step ||
                         !core->initialized || ack.step == core->step))
        pl_core_end(core, ack.failed, "%.*s", (int)message->frame.payload_bytes,
                    (const char *)message->payload);
}

void pl_core_on_coordinator(pl_ps_core *core, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    core->coordinator_ns = core->now_ns;
    const char *text = message->payload;
    int bytes = (int)frame->payload_bytes;
    /* A new process of server 0 may not know the generation: it learns it when
     * we join. */
    if (pl_ps_refuse_is_unknown(message)) {
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
        on_heartbeat_ack(core, message);
        break;
    case PL_FRAME_APPLY:
        core->mode->on_apply(core, message);
        break;
    case PL_FRAME_SAVED:
        pl_core_saved_heard(core, message);
        break;
    case PL_FRAME_OVER:
        if (pl_ps_over_has_failed(message))
            pl_core_end(core, true, "%.*s", bytes, text);
        core->finished = true;
        ask(core, &(pl_ps_request) { .kind = PL_REQUEST_BYE }, "");
        break;
    case PL_FRAME_REFUSE:
        pl_core_end(core, true, "ps 0 refused this server: %.*s", bytes, text);
        core->finished = true;
        break;
    default:
        break;
    }
}

static void ask_to_join(pl_ps_core *core)
{
    pl_ps_join_text join = {
        .role = "ps",
        .index = core->opts.index,
        .job = "",
        .host = core->opts.address,
        .has_process = true,
        .process = core->opts.process,
        .started_ms = core->opts.started_ms,
        .boot = core->opts.boot,
        .settings = core->opts.settings,
    };
    char *text;
    if (pl_fields_text(&pl_ps_join_fields, &join, 0, &text) != PL_OK) {
        pl_core_end(core, true, "%s", pl_error_message());
        core->finished = true;
        return;
    }
    pl_core_send_text(core, PL_PEER_COORDINATOR,
                      pl_ps_join_encode(&(pl_ps_join) { 0 }), text);
    pl_mem_free(text);
}

void pl_core_ask_stop(pl_ps_core *core, bool failed, const char *why)
{
    ask(core, &(pl_ps_request) { .kind = PL_REQUEST_STOP, .stop = { failed } },
        why);
}

static void lose_coordinator(pl_ps_core *core)
{
    const char *where = core->opts.coordinator;
    char task[128], text[PL_LOSS_TEXT];
    snprintf(task, sizeof task, "ps 0%s%.100s%s", where != NULL ? " (" : "",
             where != NULL ? where : "", where != NULL ? ")" : "");
    pl_loss_text(
        text, &(pl_loss) {
                  .task = task,
                  .life = &(pl_liveness) { .heard_ns = core->coordinator_ns },
                  .state = PL_SILENT,
                  .now_ns = core->now_ns,
              });
    pl_core_end(core, true, "%s", text);
    core->finished = true;
}

void pl_core_follow(pl_ps_core *core)
{
    if (core->finished)
        return; /* the goodbye is its last message */
    int64_t silent = core->now_ns - core->coordinator_ns;
    int64_t limit =
        core->ever_joined ? core->opts.rejoin_ms : core->opts.join_ms;
    if (silent > limit * MS) {
        lose_coordinator(core);
        return;
    }
    if (core->wants_stop && core->own_incarnation == 0) {
        pl_core_end(core, true, "interrupted while ps 0 was lost");
        core->finished = true;
        return;
    }
    if (silent > core->opts.heartbeat_ms * MS)
        core->own_incarnation = 0; /* it may come back as a new process */
    int64_t every = core->opts.heartbeat_ms * MS / PL_HEARTBEATS_PER_TIMEOUT;
    every = every > ASK_NS ? ASK_NS : every;
    if (core->now_ns - core->asked_ns <
        (core->own_incarnation == 0 ? JOIN_NS : every))
        return;
    core->asked_ns = core->now_ns;
    if (core->own_incarnation == 0) {
        ask_to_join(core);
        return;
    }
    /* Also when the job is ending: no lost task will rejoin. */
    if (core->failed)
        pl_core_ask_stop(core, true, core->why);
    else if (core->wants_stop)
        pl_core_ask_stop(core, false, PL_STOP_INTERRUPT);
    show_life(core, false);
    if (core->save.tell)
        pl_core_say_saved(core);
    for (int32_t w = 0; w < core->opts.workers; w++)
        if (core->members[w].fresh)
            pl_core_send_have(core, w);
}
