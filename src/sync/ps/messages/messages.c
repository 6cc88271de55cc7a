/* The layout of each message of a parameter-server job in a frame: only this
 * file knows what `first`, `value` and the flags mean for a kind.  Decoding
 * neither allocates nor copies a payload. */
#include "sync/ps/messages/messages.h"

#include <string.h>

/* Whether a received 64-bit number is a possible worker number. */
static bool is_worker(int64_t worker)
{
    return worker >= 0 && worker <= INT32_MAX;
}

static bool is_count(int64_t count)
{
    return count >= 0 && count <= PL_COUNT_MOST;
}

static bool has_flag(const pl_frame *frame, unsigned flag)
{
    return (frame->flags & flag) != 0;
}

static uint64_t float_bytes(const pl_frame *frame)
{
    return (uint64_t)frame->count * sizeof(float);
}

/* The kind of the frame, and the flags that distinguish requests of one frame
 * kind. */
static const struct {
    pl_frame_kind frame;
    uint8_t flags;
    const char *text;
} requests[] = {
    [PL_REQUEST_NONE] = { PL_FRAME_NONE, 0, "none" },
    [PL_REQUEST_INIT] = { PL_FRAME_INIT, 0, "init" },
    [PL_REQUEST_LOAD] = { PL_FRAME_LOAD, 0, "load" },
    [PL_REQUEST_PULL] = { PL_FRAME_PULL, 0, "pull" },
    [PL_REQUEST_PUSH] = { PL_FRAME_PUSH, 0, "push" },
    [PL_REQUEST_PAUSE] = { PL_FRAME_PAUSE, 0, "pause" },
    [PL_REQUEST_FREEZE] = { PL_FRAME_PAUSE, PL_PAUSE_FREEZE, "freeze" },
    [PL_REQUEST_THAW] = { PL_FRAME_PAUSE, PL_PAUSE_THAW, "thaw" },
    [PL_REQUEST_SAVE] = { PL_FRAME_SAVE, 0, "save" },
    [PL_REQUEST_SAVE_STATUS] = { PL_FRAME_SAVE, PL_SAVE_LOOK, "save status" },
    [PL_REQUEST_SHARE] = { PL_FRAME_SHARE, 0, "share" },
    [PL_REQUEST_DEAL] = { PL_FRAME_SHARE, PL_SHARE_DEAL, "deal" },
    [PL_REQUEST_STOP] = { PL_FRAME_STOP, 0, "stop" },
    [PL_REQUEST_BYE] = { PL_FRAME_BYE, 0, "bye" },
};

const char *pl_ps_request_text(pl_ps_request_kind kind)
{
    return requests[kind].text;
}

static void encode_push(const pl_ps_push *push, pl_frame *frame)
{
    frame->flags = (uint8_t)((push->has_data ? PL_PUSH_DATA : 0) |
                             (push->with_list ? PL_PUSH_LIST : 0));
    frame->step = push->step;
    frame->first = push->first;
    frame->count = push->count;
    frame->key_count = push->key_count;
    frame->value[0] = push->of;
    frame->value[1] = push->want;
}

static void encode_pull(const pl_ps_pull *pull, pl_frame *frame)
{
    bool range = (pull->flags & PL_PULL_RANGE) != 0;
    frame->flags = (uint8_t)pull->flags;
    frame->first = pull->first;
    frame->key_count = pull->key_count;
    frame->value[0] = pull->step;
    frame->value[1] = range ? pull->count : pull->list;
}

pl_frame pl_ps_request_encode(const pl_ps_request *request, uint64_t sequence,
                              uint32_t payload_bytes)
{
    pl_frame frame = { .kind = requests[request->kind].frame,
                       .flags = requests[request->kind].flags,
                       .sequence = sequence,
                       .payload_bytes = payload_bytes };
    switch (request->kind) {
    case PL_REQUEST_PUSH:
        encode_push(&request->push, &frame);
        break;
    case PL_REQUEST_PULL:
        encode_pull(&request->pull, &frame);
        break;
    case PL_REQUEST_INIT:
        frame.step = request->init.step;
        frame.first = request->init.first;
        frame.count = request->init.count;
        break;
    case PL_REQUEST_LOAD:
        frame.step = request->load.step;
        break;
    case PL_REQUEST_SAVE:
        frame.step = request->save.step;
        frame.value[0] = request->save.number;
        break;
    case PL_REQUEST_SAVE_STATUS:
        frame.flags = request->save_status.wait ? PL_SAVE_WAIT : PL_SAVE_LOOK;
        break;
    case PL_REQUEST_SHARE:
        frame.flags = request->share.wait ? PL_SHARE_WAIT : 0;
        frame.value[0] = request->share.count;
        frame.value[1] = request->share.worker;
        break;
    case PL_REQUEST_DEAL:
        frame.value[0] = request->deal.step;
        frame.value[1] = request->deal.epoch;
        break;
    case PL_REQUEST_STOP:
        frame.flags = request->stop.failed ? PL_STOP_FAILED : 0;
        break;
    default:
        break;
    }
    return frame;
}

static bool decode_push(pl_ps_push *out, const pl_frame *frame)
{
    *out = (pl_ps_push) {
        .step = frame->step,
        .first = frame->first,
        .count = frame->count,
        .has_data = frame->count > 0 || has_flag(frame, PL_PUSH_DATA),
        .with_list = has_flag(frame, PL_PUSH_LIST),
        .of = frame->value[0],
        .want = frame->value[1],
        .key_count = frame->key_count,
    };
    return out->of >= 0 && out->want >= 0;
}

static bool decode_pull(pl_ps_pull *out, const pl_frame *frame)
{
    bool range = has_flag(frame, PL_PULL_RANGE);
    *out = (pl_ps_pull) {
        .flags = frame->flags,
        .step = frame->value[0],
        .list = range ? 0 : frame->value[1],
        .key_count = range ? 0 : frame->key_count,
        .first = frame->first,
        .count = range ? frame->value[1] : 0,
    };
    return frame->value[1] >= 0;
}

/* `value` selected an optimizer slot in earlier versions; slots are no longer
 * sent. */
static bool decode_init(pl_ps_init *out, const pl_frame *frame)
{
    *out = (pl_ps_init) { .step = frame->step,
                          .first = frame->first,
                          .count = frame->count };
    return is_count(out->step) && frame->key_count == 0 &&
           frame->value[0] == 0 && float_bytes(frame) <= frame->payload_bytes;
}

static bool decode_share(pl_ps_request *out, const pl_frame *frame)
{
    if (has_flag(frame, PL_SHARE_DEAL)) {
        out->kind = PL_REQUEST_DEAL;
        out->deal = (pl_ps_deal) { frame->value[0], frame->value[1] };
        return out->deal.step >= -1 && is_count(out->deal.epoch);
    }
    out->kind = PL_REQUEST_SHARE;
    out->share = (pl_ps_share) {
        .count = frame->value[0],
        .worker = (int32_t)frame->value[1],
        .wait = has_flag(frame, PL_SHARE_WAIT),
    };
    return is_count(out->share.count) && is_worker(frame->value[1]);
}

static bool decode_save(pl_ps_request *out, const pl_frame *frame)
{
    if (has_flag(frame, PL_SAVE_LOOK | PL_SAVE_WAIT)) {
        out->kind = PL_REQUEST_SAVE_STATUS;
        out->save_status.wait = has_flag(frame, PL_SAVE_WAIT);
        return true;
    }
    out->kind = PL_REQUEST_SAVE;
    out->save = (pl_ps_save) { frame->step, frame->value[0] };
    return is_count(out->save.step);
}

static bool decode_pause(pl_ps_request *out, const pl_frame *frame)
{
    out->kind = has_flag(frame, PL_PAUSE_FREEZE) ? PL_REQUEST_FREEZE
                : has_flag(frame, PL_PAUSE_THAW) ? PL_REQUEST_THAW
                                                 : PL_REQUEST_PAUSE;
    return !has_flag(frame, PL_PAUSE_FREEZE) || !has_flag(frame, PL_PAUSE_THAW);
}

bool pl_ps_request_decode(pl_ps_request *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    switch (frame->kind) {
    case PL_FRAME_PUSH:
        out->kind = PL_REQUEST_PUSH;
        return decode_push(&out->push, frame);
    case PL_FRAME_PULL:
        out->kind = PL_REQUEST_PULL;
        return decode_pull(&out->pull, frame);
    case PL_FRAME_INIT:
        out->kind = PL_REQUEST_INIT;
        return decode_init(&out->init, frame);
    case PL_FRAME_LOAD:
        out->kind = PL_REQUEST_LOAD;
        out->load.step = frame->step;
        return is_count(frame->step);
    case PL_FRAME_SAVE:
        return decode_save(out, frame);
    case PL_FRAME_SHARE:
        return decode_share(out, frame);
    case PL_FRAME_PAUSE:
        return decode_pause(out, frame);
    case PL_FRAME_STOP:
        out->kind = PL_REQUEST_STOP;
        out->stop.failed = has_flag(frame, PL_STOP_FAILED);
        return true;
    case PL_FRAME_BYE:
        out->kind = PL_REQUEST_BYE;
        return true;
    default:
        out->kind = PL_REQUEST_NONE;
        return false;
    }
}

bool pl_ps_request_has_data(const pl_ps_request *request)
{
    return request->kind == PL_REQUEST_PUSH   ? request->push.has_data
           : request->kind == PL_REQUEST_INIT ? request->init.count > 0
                                              : false;
}

bool pl_ps_plan_decode(pl_ps_plan *out, const pl_message *message,
                       int32_t workers)
{
    size_t counts = pl_ps_counts_bytes(workers);
    size_t bytes = message->frame.payload_bytes;
    if (bytes <= counts)
        return false;
    *out = (pl_ps_plan) {
        .counts = message->payload,
        .text = (const char *)message->payload + counts,
        .text_bytes = bytes - counts,
    };
    return true;
}

pl_frame pl_ps_params_encode(const pl_ps_params *params)
{
    return (pl_frame) {
        .kind = PL_FRAME_PARAMS,
        .flags = (uint8_t)params->answer,
        .step = params->step,
        .first = params->first,
        .count = params->count,
        .value = { params->made, params->own },
        .payload_bytes = params->bytes > 0
                             ? params->bytes
                             : params->count * (uint32_t)sizeof(float),
    };
}

bool pl_ps_params_decode(pl_ps_params *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    *out = (pl_ps_params) {
        .answer = frame->flags,
        .step = frame->step,
        .first = frame->first,
        .count = frame->count,
        .made = frame->value[0],
        .own = frame->value[1],
        .bytes = frame->payload_bytes,
    };
    return frame->kind == PL_FRAME_PARAMS &&
           frame->payload_bytes <= float_bytes(frame) && out->made >= 0 &&
           out->own >= 0;
}

pl_frame pl_ps_ack_encode(const pl_ps_ack *ack)
{
    static const uint8_t flags[] = {
        [PL_ACKED_PIECE] = 0,
        [PL_ACKED_COMPLETE] = PL_ACK_COMPLETE,
        [PL_ACKED_NEED] = PL_ACK_NEED,
        [PL_ACKED_DONE] = PL_ACK_DONE,
    };
    return (pl_frame) {
        .kind = PL_FRAME_ACK,
        .flags = flags[ack->kind],
        .step = ack->step,
        .first = ack->first,
        .value = { 0, ack->count },
    };
}

bool pl_ps_ack_decode(pl_ps_ack *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    *out = (pl_ps_ack) {
        .kind = has_flag(frame, PL_ACK_DONE)       ? PL_ACKED_DONE
                : has_flag(frame, PL_ACK_COMPLETE) ? PL_ACKED_COMPLETE
                : has_flag(frame, PL_ACK_NEED)     ? PL_ACKED_NEED
                                                   : PL_ACKED_PIECE,
        .first = frame->first,
        .count = frame->value[1],
        .step = frame->step,
    };
    return frame->kind == PL_FRAME_ACK &&
           (out->kind != PL_ACKED_PIECE || frame->value[0] == 0);
}

static pl_frame done(void)
{
    return pl_ps_ack_encode(&(pl_ps_ack) { .kind = PL_ACKED_DONE });
}

pl_frame pl_ps_counts_encode(int64_t step, int32_t workers)
{
    pl_frame frame = done();
    frame.step = step;
    frame.payload_bytes = (uint32_t)pl_ps_counts_bytes(workers);
    return frame;
}

bool pl_ps_counts_decode(int64_t *step, const pl_message *message,
                         int32_t workers)
{
    *step = message->frame.step;
    return message->frame.payload_bytes == pl_ps_counts_bytes(workers);
}

pl_frame pl_ps_share_answer_encode(const pl_ps_share_answer *answer)
{
    pl_frame frame = done();
    frame.value[0] = answer->own;
    frame.value[1] = answer->worker;
    return frame;
}

bool pl_ps_share_answer_decode(pl_ps_share_answer *out,
                               const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    *out = (pl_ps_share_answer) { .worker = (int32_t)frame->value[1],
                                  .own = frame->value[0] };
    return is_worker(frame->value[1]) && is_count(out->own);
}

static size_t set_bytes(int32_t workers)
{
    return ((size_t)workers + 63) / 64 * sizeof(uint64_t);
}

pl_frame pl_ps_deal_answer_encode(const pl_ps_deal_answer *answer,
                                  int32_t workers,
                                  uint8_t payload[PL_DEAL_ANSWER_MOST])
{
    size_t bytes = set_bytes(workers);
    pl_frame frame = done();
    memcpy(payload, answer->deal.workers.bits, bytes);
    memcpy(payload + bytes, answer->present.bits, bytes);
    frame.value[0] = answer->deal.step;
    frame.value[1] = answer->deal.epoch;
    frame.payload_bytes = (uint32_t)(2 * bytes);
    return frame;
}

/* Whether a deal has at least one worker, and only workers of this job. */
static bool is_deal(const pl_workers *set, int32_t workers)
{
    int32_t count = 0;
    for (int32_t w = 0; w < workers; w++)
        count += pl_workers_has(set, w);
    return count > 0 && count == pl_workers_count(set);
}

bool pl_ps_deal_answer_decode(pl_ps_deal_answer *out, const pl_message *message,
                              int32_t workers)
{
    const pl_frame *frame = &message->frame;
    const uint8_t *payload = message->payload;
    size_t bytes = set_bytes(workers);
    *out = (pl_ps_deal_answer) {
        .deal = { .step = frame->value[0], .epoch = frame->value[1] },
    };
    if (frame->payload_bytes != 2 * bytes || out->deal.step < 0 ||
        out->deal.epoch < 0)
        return false;
    memcpy(out->deal.workers.bits, payload, bytes);
    memcpy(out->present.bits, payload + bytes, bytes);
    return is_deal(&out->deal.workers, workers);
}

pl_frame pl_ps_save_answer_encode(int64_t step, pl_saved outcome)
{
    pl_frame frame = done();
    frame.step = step;
    frame.value[0] = outcome;
    return frame;
}

/* An unknown outcome is a failure. */
static pl_saved outcome_of(int64_t value)
{
    return value == PL_SAVED_GOOD || value == PL_SAVED_WRITING ||
                   value == PL_SAVED_NUMERIC
               ? (pl_saved)value
               : PL_SAVED_FAILED;
}

bool pl_ps_save_answer_decode(pl_saved *outcome, const pl_message *message)
{
    *outcome = outcome_of(message->frame.value[0]);
    return message->frame.kind == PL_FRAME_ACK;
}

pl_frame pl_ps_report_encode(const pl_ps_report *report)
{
    return (pl_frame) {
        .kind = PL_FRAME_REPORT,
        .step = report->step,
        .value = { report->dropped, report->update_ns },
    };
}

bool pl_ps_report_decode(pl_ps_report *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    *out = (pl_ps_report) { .step = frame->step,
                            .dropped = frame->value[0],
                            .update_ns = frame->value[1] };
    return frame->kind == PL_FRAME_REPORT && out->dropped >= 0 &&
           out->update_ns >= 0;
}

pl_frame pl_ps_heartbeat_encode(const pl_ps_heartbeat *heartbeat)
{
    return (pl_frame) {
        .kind = PL_FRAME_HEARTBEAT,
        .flags = heartbeat->final ? PL_HEARTBEAT_FINAL : 0,
        .sequence = heartbeat->number,
        .step = heartbeat->vital.step,
        .value = { heartbeat->vital.phase, heartbeat->vital.progress },
    };
}

bool pl_ps_heartbeat_decode(pl_ps_heartbeat *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    if (frame->kind != PL_FRAME_HEARTBEAT || frame->value[0] < 0 ||
        frame->value[0] >= PL_PHASES)
        return false;
    *out = (pl_ps_heartbeat) {
        .number = frame->sequence,
        .final = has_flag(frame, PL_HEARTBEAT_FINAL),
        .vital = { .step = frame->step,
                   .phase = (pl_phase)frame->value[0],
                   .progress = frame->value[1] },
    };
    return true;
}

pl_frame pl_ps_heartbeat_ack_encode(const pl_ps_heartbeat_ack *ack)
{
    return (pl_frame) {
        .kind = PL_FRAME_HEARTBEAT_ACK,
        .flags = (uint8_t)((ack->failed ? PL_STOP_FAILED : 0) |
                           (ack->stopping ? PL_STOP_NOW : 0) |
                           (ack->final ? PL_HEARTBEAT_FINAL : 0)),
        .sequence = ack->number,
        .step = ack->step,
        .value = { ack->clock_ns },
    };
}

bool pl_ps_heartbeat_ack_decode(pl_ps_heartbeat_ack *out,
                                const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    *out = (pl_ps_heartbeat_ack) {
        .number = frame->sequence,
        .failed = has_flag(frame, PL_STOP_FAILED),
        .stopping = has_flag(frame, PL_STOP_NOW),
        .final = has_flag(frame, PL_HEARTBEAT_FINAL),
        .step = frame->step,
        .clock_ns = frame->value[0],
    };
    return frame->kind == PL_FRAME_HEARTBEAT_ACK;
}

pl_frame pl_ps_join_encode(const pl_ps_join *join)
{
    return (pl_frame) {
        .kind = PL_FRAME_JOIN,
        .sequence = join->number,
        .first = (int64_t)join->last_request,
    };
}

bool pl_ps_join_decode(pl_ps_join *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    *out = (pl_ps_join) { .number = frame->sequence,
                          .last_request = (uint64_t)frame->first };
    return frame->kind == PL_FRAME_JOIN && frame->first >= 0;
}

pl_frame pl_ps_welcome_encode(const pl_ps_welcome *welcome)
{
    return (pl_frame) {
        .kind = PL_FRAME_WELCOME,
        .sequence = welcome->number,
        .step = welcome->step,
        .value = { welcome->own, welcome->ready },
    };
}

bool pl_ps_welcome_decode(pl_ps_welcome *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    *out = (pl_ps_welcome) {
        .number = frame->sequence,
        .step = frame->step,
        .own = frame->value[0],
        .ready = frame->value[1] != 0,
    };
    return frame->kind == PL_FRAME_WELCOME && is_count(out->own);
}

pl_frame pl_ps_refuse_encode(bool unknown, uint64_t sequence)
{
    return (pl_frame) {
        .kind = PL_FRAME_REFUSE,
        .flags = unknown ? PL_REFUSE_UNKNOWN : 0,
        .sequence = sequence,
    };
}

bool pl_ps_refuse_is_unknown(const pl_message *message)
{
    return message->frame.kind == PL_FRAME_REFUSE &&
           has_flag(&message->frame, PL_REFUSE_UNKNOWN);
}

pl_frame pl_ps_over_encode(bool failed)
{
    return (pl_frame) { .kind = PL_FRAME_OVER,
                        .flags = failed ? PL_STOP_FAILED : 0 };
}

bool pl_ps_over_has_failed(const pl_message *message)
{
    return message->frame.kind == PL_FRAME_OVER &&
           has_flag(&message->frame, PL_STOP_FAILED);
}

pl_frame pl_ps_have_encode(const pl_ps_have *have)
{
    return (pl_frame) {
        .kind = PL_FRAME_HAVE,
        .sequence = have->push,
        .step = have->step,
        .first = have->incarnation,
        .value = { have->worker },
    };
}

bool pl_ps_have_decode(pl_ps_have *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    *out = (pl_ps_have) {
        .worker = (int32_t)frame->value[0],
        .step = frame->step,
        .incarnation = (uint32_t)frame->first,
        .push = frame->sequence,
    };
    return frame->kind == PL_FRAME_HAVE && is_worker(frame->value[0]) &&
           frame->first >= 0 && frame->first <= UINT32_MAX &&
           frame->sequence <= INT64_MAX;
}

pl_frame pl_ps_choice_encode(int64_t step, int32_t workers)
{
    return (pl_frame) { .kind = PL_FRAME_APPLY,
                        .step = step,
                        .payload_bytes = (uint32_t)workers };
}

bool pl_ps_choice_decode(int64_t *step, const pl_message *message,
                         int32_t workers)
{
    *step = message->frame.step;
    return message->frame.kind == PL_FRAME_APPLY &&
           message->frame.payload_bytes == (uint32_t)workers;
}

pl_frame pl_ps_verdict_encode(const pl_ps_verdict *verdict)
{
    return (pl_frame) {
        .kind = PL_FRAME_APPLY,
        .flags = verdict->dropped ? PL_APPLY_DROPPED : 0,
        .sequence = verdict->push,
        .first = verdict->incarnation,
        .value = { verdict->worker, verdict->share },
    };
}

bool pl_ps_verdict_decode(pl_ps_verdict *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    *out = (pl_ps_verdict) {
        .worker = (int32_t)frame->value[0],
        .incarnation = (uint32_t)frame->first,
        .push = frame->sequence,
        .dropped = has_flag(frame, PL_APPLY_DROPPED),
        .share = (int32_t)frame->value[1],
    };
    return frame->kind == PL_FRAME_APPLY && is_worker(frame->value[0]) &&
           is_worker(frame->value[1]) && frame->first >= 0 &&
           frame->first <= UINT32_MAX;
}

pl_frame pl_ps_saved_encode(const pl_ps_saved *saved)
{
    return (pl_frame) {
        .kind = PL_FRAME_SAVED,
        .flags = (uint8_t)saved->outcome,
        .step = saved->step,
        .first = saved->bytes,
        .value = { saved->number, saved->crc32c },
    };
}

/* A reported shard is written, or failed. */
bool pl_ps_saved_decode(pl_ps_saved *out, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    pl_saved outcome = outcome_of(frame->flags);
    *out = (pl_ps_saved) {
        .number = frame->value[0],
        .outcome = outcome == PL_SAVED_WRITING ? PL_SAVED_FAILED : outcome,
        .step = frame->step,
        .bytes = frame->first,
        .crc32c = (uint32_t)frame->value[1],
    };
    return frame->kind == PL_FRAME_SAVED && frame->first >= 0 &&
           frame->value[1] >= 0 && frame->value[1] <= UINT32_MAX;
}
