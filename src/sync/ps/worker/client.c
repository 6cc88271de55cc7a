/* The requests of one task to all servers: what is sent when, what is resent,
 * and when a request is done.
 *
 * A link is the client's view of one server.  A request goes to every link (or
 * to server 0 alone) under one sequence number, and is done when each link has
 * its answer; ticks resend what may have been lost.
 *
 *   IDLE -> ASKING -> DONE            a request without parameters, or
 *   IDLE -> ASKING -> ANSWERING -> DONE
 *
 * Invariants:
 *   Q1  A request is begun only when the one before it is done on all links.
 *   Q2  Sequence numbers rise, and a gradient has the same one on all servers,
 *       which identifies it.
 *   Q3  A message of another incarnation or generation, or with another
 *       sequence number than the current request, is not an answer to it.
 *   Q4  In sync, parameters that a push or pull returns, except for a range of
 *       one server, belong to one step on all servers: those that were behind
 *       are asked again. */
#include "sync/ps/worker/client_priv.h"

#include "base/assert.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PROBE_NS    ((int64_t)PL_PROBE_MS * 1000000)
#define JOIN_NS     INT64_C(200000000) /* between requests to join */
#define REPORT_MOST ((uint32_t)16 << 20)

pl_status pl_ps_client_new(pl_ps_client **out, const pl_ps_client_opts *opts,
                           int64_t now_ns)
{
    PL_ASSERT(opts->ps >= 1);
    pl_ps_client *client;
    PL_TRY(PL_NEW(client, 1));
    client->opts = *opts;
    client->pace = pl_ps_pace_of(opts->mode, false);
    client->view.job = opts->job;
    client->now_ns = now_ns;
    pl_status status;
    PL_TRY_OUT(status, PL_NEW(client->links, (size_t)opts->ps));
    PL_TRY_OUT(status, PL_NEW(client->counts, (size_t)opts->workers + 1));
    for (int32_t j = 0; j < opts->ps; j++) {
        int64_t first, count;
        pl_pieces_shard(opts->count, opts->ps, j, &first, &count);
        PL_TRY_OUT(status, pl_stream_init(&client->links[j].out, first, count,
                                          opts->piece, 1));
        PL_TRY_OUT(status, pl_pieces_init(&client->links[j].in, first, count,
                                          opts->piece, 1));
        int32_t pieces = pl_pieces_total(&client->links[j].in);
        PL_TRY_OUT(status, PL_NEW(client->links[j].wire, (size_t)pieces));
    }
    PL_TRY_OUT(status, pl_coder_init(&client->coder, opts->codec, opts->count));
    *out = client;
    return PL_OK;
out:
    pl_ps_client_free(client);
    return status;
}

void pl_ps_client_free(pl_ps_client *client)
{
    if (client == NULL)
        return;
    for (int32_t j = 0; client->links != NULL && j < client->opts.ps; j++) {
        pl_stream_close(&client->links[j].out);
        pl_pieces_close(&client->links[j].in);
        pl_mem_free(client->links[j].wire);
    }
    pl_coder_close(&client->coder);
    pl_client_close_keys(client);
    pl_mem_free(client->links);
    pl_mem_free(client->counts);
    pl_mem_free(client->report);
    pl_mem_free(client->run);
    pl_mem_free(client);
}

void pl_client_fail(pl_ps_client *client, const char *format, ...)
{
    if (client->failed)
        return;
    client->failed = true;
    va_list args;
    va_start(args, format);
    vsnprintf(client->why, sizeof client->why, format, args);
    va_end(args);
}

void pl_client_send(pl_ps_client *client, int32_t ps, pl_frame frame,
                    const void *payload, bool lasting)
{
    frame.incarnation = client->view.incarnation;
    frame.generation = client->generation;
    client->opts.ops->send(client->opts.context, ps, &frame, payload, lasting);
}

/* The counts, then the plan, of a save or load. */
static pl_status plan_payload(const pl_ps_client *client, char **out,
                              uint32_t *bytes)
{
    size_t counts = pl_ps_counts_bytes(client->opts.workers);
    size_t text = strlen(client->text);
    if (counts + text > PL_FRAME_PAYLOAD_MAX)
        return PL_FAIL(
            PL_UNSUPPORTED,
            "the save request of a checkpoint has %zu bytes: too many "
            "tensors",
            text);
    PL_TRY(PL_NEW(*out, counts + text));
    memcpy(*out, client->counts, counts);
    memcpy(*out + counts, client->text, text);
    *bytes = (uint32_t)(counts + text);
    return PL_OK;
}

/* Send or resend the request, without its pieces. */
static void ask(pl_ps_client *client, int32_t ps)
{
    pl_link *l = &client->links[ps];
    pl_ps_request_kind kind = l->request.kind;
    const void *payload = NULL;
    uint32_t bytes = 0;
    char *plan = NULL;
    if (kind == PL_REQUEST_STOP || kind == PL_REQUEST_BYE ||
        (kind == PL_REQUEST_INIT && client->opts.params == NULL)) {
        payload = client->text;
        bytes = (uint32_t)strlen(client->text);
    } else if (kind == PL_REQUEST_LOAD || kind == PL_REQUEST_SAVE) {
        if (plan_payload(client, &plan, &bytes) != PL_OK) {
            pl_client_fail(client, "%s", pl_error_message());
            return;
        }
        payload = plan;
    } else if (kind == PL_REQUEST_PULL) { /* possibly with keys */
        payload = l->message;
        bytes = l->message_bytes;
    }
    pl_client_send(client, ps,
                   pl_ps_request_encode(&l->request, l->sequence, bytes),
                   payload, false);
    pl_mem_free(plan);
    l->asked_ns = client->now_ns;
}

/* A request about sparse parameters is one message. */
static void begin_keyed(pl_ps_client *client, int32_t ps)
{
    pl_link *l = &client->links[ps];
    l->message_bytes = 0;
    if (l->request.kind == PL_REQUEST_PUSH) {
        pl_client_send_push(client, ps, false);
        return;
    }
    if (l->request.kind == PL_REQUEST_PULL &&
        (l->request.pull.flags & PL_PULL_RANGE) == 0)
        pl_client_make_pull(client, ps);
    ask(client, ps);
}

/* Begin request client->sequence: the number is the same on all servers and
 * identifies a gradient. */
static void begin_on(pl_ps_client *client, int32_t ps,
                     const pl_ps_request *request)
{
    pl_link *l = &client->links[ps];
    l->request = *request;
    l->sequence = client->sequence;
    l->stage = PL_LINK_ASKING;
    l->answer = 0;
    l->asked_ns = client->now_ns;
    if (client->opts.params == NULL) {
        begin_keyed(client, ps);
        return;
    }
    switch (request->kind) {
    case PL_REQUEST_PUSH:
        pl_pieces_reset(&l->in, 1);
        pl_stream_start(&l->out, 1, true);
        memset(l->wire, 0,
               (size_t)pl_pieces_total(&l->out.acked) * sizeof *l->wire);
        break;
    case PL_REQUEST_INIT:
        pl_stream_start(&l->out, 1, false);
        pl_client_pump(client, ps);
        break;
    case PL_REQUEST_PULL:
        pl_pieces_reset(&l->in, 1);
        ask(client, ps);
        break;
    default:
        ask(client, ps);
        break;
    }
}

static void begin_all(pl_ps_client *client, pl_ps_request request)
{
    PL_ASSERT(!pl_ps_client_busy(client));
    client->sequence++;
    for (int32_t j = 0; j < client->opts.ps; j++)
        begin_on(client, j, &request);
}

static void begin_first(pl_ps_client *client, pl_ps_request request)
{
    PL_ASSERT(!pl_ps_client_busy(client));
    client->sequence++;
    begin_on(client, 0, &request);
}

/* When every server has answered: in sync all answers must belong to one step,
 * so pull again from servers that were behind. */
static void level(pl_ps_client *client)
{
    int64_t newest = 0;
    for (int32_t j = 0; j < client->opts.ps; j++) {
        const pl_link *l = &client->links[j];
        bool all = client->opts.params == NULL
                       ? (l->answer & PL_ANSWER_STOP) == 0
                       : pl_pieces_complete(&l->in);
        if (l->stage != PL_LINK_DONE || !all)
            return;
        newest = l->step > newest ? l->step : newest;
    }
    client->sequence++;
    for (int32_t j = 0; j < client->opts.ps; j++)
        if (client->links[j].step < newest) {
            const pl_link *l = &client->links[j];
            unsigned before = l->answer, flags = 0;
            if (l->request.kind == PL_REQUEST_PULL)
                flags = l->request.pull.flags & (PL_PULL_PEEK | PL_PULL_EXACT);
            begin_on(client, j,
                     &(pl_ps_request) {
                         .kind = PL_REQUEST_PULL,
                         .pull = { .flags = flags, .step = newest },
                     });
            client->links[j].answer = before;
        }
}

static void finish_link(pl_ps_client *client, int32_t ps)
{
    pl_link *l = &client->links[ps];
    bool pull = l->request.kind == PL_REQUEST_PULL;
    bool params = pull || l->request.kind == PL_REQUEST_PUSH;
    l->stage = PL_LINK_DONE;
    if (ps == 0 && client->rest) {
        client->rest = false;
        pl_ps_request request = l->request;
        /* At the end all servers have made the same updates. */
        bool same = client->pace->lock_step ||
                    (request.pull.flags & PL_PULL_FINAL) != 0;
        request.pull.step = same ? l->step : 0;
        for (int32_t j = 1; j < client->opts.ps; j++)
            begin_on(client, j, &request);
    }
    if (params && client->pace->lock_step && client->opts.ps > 1 &&
        !(pull && (l->request.pull.flags & PL_PULL_RANGE) != 0))
        level(client);
}

static void send_ack(pl_ps_client *client, int32_t ps, pl_ps_ack ack)
{
    pl_frame frame = pl_ps_ack_encode(&ack);
    frame.sequence = client->links[ps].sequence;
    pl_client_send(client, ps, frame, NULL, false);
}

static void ack_piece(pl_ps_client *client, int32_t ps,
                      const pl_ps_params *piece)
{
    send_ack(client, ps,
             (pl_ps_ack) { .first = piece->first,
                           .count = piece->count,
                           .step = piece->step });
}

/* Store a piece; false: it does not have `count` floats. */
static bool store_piece(pl_ps_client *client, const pl_ps_params *params,
                        const void *payload)
{
    const pl_codec *codec = client->coder.codec;
    float *to = client->opts.params + params->first;
    pl_encoded piece = { payload, params->bytes };
    if (params->bytes == params->count * sizeof(float)) {
        memcpy(to, payload, piece.size);
        return true;
    }
    return codec->for_parameters &&
           pl_codec_decode(codec, params->count, piece, to) != NULL;
}

static void note_answer(pl_ps_client *client, int32_t ps,
                        const pl_ps_params *params)
{
    pl_link *l = &client->links[ps];
    l->answer |= params->answer;
    if (ps == 0) {
        client->view.step = params->step;
        client->view.made = params->made;
        client->view.own = params->own;
        client->view.answer = l->answer;
    }
}

static bool is_end(const pl_link *l, const pl_ps_params *params)
{
    return l->request.kind == PL_REQUEST_PUSH && params->count == 0 &&
           (params->answer & PL_ANSWER_STOP) != 0;
}

static void on_params(pl_ps_client *client, int32_t ps,
                      const pl_message *message)
{
    pl_ps_params params;
    pl_link *l = &client->links[ps];
    if (!pl_ps_params_decode(&params, message) ||
        (client->opts.params == NULL &&
         params.bytes != params.count * sizeof(float))) {
        pl_client_fail(client, "ps %d sent malformed parameters", ps);
        return;
    }
    if ((l->request.kind != PL_REQUEST_PULL &&
         l->request.kind != PL_REQUEST_PUSH) ||
        l->stage == PL_LINK_DONE) {
        if (l->stage == PL_LINK_DONE && client->opts.params != NULL &&
            pl_pieces_windowed(&l->in))
            ack_piece(client, ps, &params);
        return;
    }
    /* In sync the parameters may have changed while they were sent. */
    if (client->pace->lock_step && l->stage == PL_LINK_ANSWERING) {
        if (params.step < l->step)
            return;
        if (params.step > l->step)
            pl_pieces_reset(&l->in, 1);
    }
    l->stage = PL_LINK_ANSWERING;
    l->step = params.step;
    note_answer(client, ps, &params);
    if (is_end(l, &params)) {
        finish_link(client, ps);
        return;
    }
    if (client->opts.params == NULL) {
        if (pl_client_take_values(client, ps, params.count, message->payload))
            finish_link(client, ps);
        else
            pl_client_fail(client,
                           "ps %d sent %u values that were not asked for", ps,
                           params.count);
        return;
    }
    int32_t index = pl_pieces_find(&l->in, 0, params.first, params.count);
    if (index < 0) {
        pl_client_fail(client, "ps %d sent parameters that are not its own",
                       ps);
        return;
    }
    if (pl_pieces_mark(&l->in, index) &&
        !store_piece(client, &params, message->payload)) {
        pl_client_fail(client, "ps %d sent malformed parameters", ps);
        return;
    }
    if (pl_pieces_windowed(&l->in))
        ack_piece(client, ps, &params);
    if (pl_pieces_complete(&l->in))
        finish_link(client, ps);
}

static void note_counts(pl_ps_client *client, const pl_message *message)
{
    int64_t step;
    if (!pl_ps_counts_decode(&step, message, client->opts.workers)) {
        pl_client_fail(client, "ps 0 sent malformed counts of gradients");
        return;
    }
    memcpy(client->counts, message->payload,
           pl_ps_counts_bytes(client->opts.workers));
    client->view.step = step;
}

static void note_deal(pl_ps_client *client, const pl_message *message)
{
    pl_ps_deal_answer answer;
    if (!pl_ps_deal_answer_decode(&answer, message, client->opts.workers)) {
        pl_client_fail(client, "ps 0 dealt the data to none of the workers");
        return;
    }
    client->deal = answer.deal;
    client->present = answer.present;
}

static void note_share(pl_ps_client *client, const pl_message *message)
{
    pl_ps_share_answer answer;
    if (!pl_ps_share_answer_decode(&answer, message) ||
        answer.worker >= client->opts.workers) {
        pl_client_fail(client, "ps 0 gave the share of no worker");
        return;
    }
    client->view.share = answer.worker;
    client->view.share_own = answer.own;
}

static void note_save(pl_ps_client *client, const pl_message *message)
{
    if (!pl_ps_save_answer_decode(&client->view.saved, message))
        return;
    snprintf(client->saved_why, sizeof client->saved_why, "%.*s",
             (int)message->frame.payload_bytes, (const char *)message->payload);
}

/* Read what server 0 sends at the end of a request. */
static void note_done(pl_ps_client *client, const pl_message *message)
{
    switch (client->links[0].request.kind) {
    case PL_REQUEST_FREEZE:
        note_counts(client, message);
        break;
    case PL_REQUEST_DEAL:
        note_deal(client, message);
        break;
    case PL_REQUEST_SHARE:
        note_share(client, message);
        break;
    case PL_REQUEST_SAVE_STATUS:
        note_save(client, message);
        break;
    default:
        break;
    }
}

static void on_done(pl_ps_client *client, int32_t ps, const pl_message *message)
{
    pl_ps_request_kind kind = client->links[ps].request.kind;
    /* Its values would be those of an earlier answer. */
    if (kind == PL_REQUEST_PULL || kind == PL_REQUEST_PUSH) {
        pl_client_fail(client, "ps %d ended a %s without its parameters", ps,
                       pl_ps_request_text(kind));
        return;
    }
    if (ps == 0)
        note_done(client, message);
    finish_link(client, ps);
}

/* For a push or the first parameters: only these have pieces. */
static void on_piece_ack(pl_ps_client *client, int32_t ps, const pl_ps_ack *ack)
{
    pl_link *l = &client->links[ps];
    if (ack->kind == PL_ACKED_COMPLETE) {
        pl_stream_ack_all(&l->out);
    } else if (client->opts.params == NULL) {
        /* The server lacks the list or the whole message: send everything. */
        if (ack->kind == PL_ACKED_NEED && l->request.kind == PL_REQUEST_PUSH)
            pl_client_send_push(client, ps, true);
    } else if (ack->kind == PL_ACKED_NEED) {
        pl_stream_retry(&l->out);
        pl_client_pump(client, ps);
    } else {
        int32_t index =
            pl_pieces_find(&l->out.acked, 0, ack->first, ack->count);
        if (index >= 0)
            pl_stream_ack(&l->out, index);
        pl_client_pump(client, ps);
    }
}

static void on_ack(pl_ps_client *client, int32_t ps, const pl_message *message)
{
    const pl_link *l = &client->links[ps];
    pl_ps_ack ack;
    if (l->stage == PL_LINK_DONE)
        return;
    if (!pl_ps_ack_decode(&ack, message)) {
        pl_client_fail(client, "ps %d sent a malformed ack", ps);
        return;
    }
    if (ack.kind == PL_ACKED_DONE)
        on_done(client, ps, message);
    else if (l->request.kind == PL_REQUEST_PUSH ||
             l->request.kind == PL_REQUEST_INIT)
        on_piece_ack(client, ps, &ack);
}

static void on_report(pl_ps_client *client, const pl_message *message)
{
    uint32_t bytes = message->frame.payload_bytes;
    pl_ps_report report;
    if (client->report != NULL || client->links[0].stage == PL_LINK_DONE ||
        client->links[0].request.kind != PL_REQUEST_BYE || bytes > REPORT_MOST)
        return;
    if (!pl_ps_report_decode(&report, message)) {
        pl_client_fail(client, "ps 0 sent a malformed report");
        return;
    }
    if (PL_NEW(client->report, bytes + 1) == PL_OK && bytes > 0)
        memcpy(client->report, message->payload, bytes);
    client->view.report = client->report;
    client->view.step = report.step;
    client->view.dropped = report.dropped;
    client->view.update_ns = report.update_ns;
    send_ack(client, 0, (pl_ps_ack) { .kind = PL_ACKED_PIECE });
    finish_link(client, 0);
}

void pl_ps_client_receive(pl_ps_client *client, int32_t ps,
                          const pl_message *message, int64_t now_ns)
{
    const pl_frame *frame = &message->frame;
    pl_link *l = &client->links[ps];
    client->now_ns = now_ns;
    /* Rolled back while we joined: server 0 sends the new state. */
    if (client->joining && client->links[0].joined &&
        frame->generation > client->generation &&
        (frame->kind == PL_FRAME_WELCOME ||
         frame->kind == PL_FRAME_HEARTBEAT_ACK)) {
        pl_ps_client_join(client);
        return;
    }
    if (frame->kind == PL_FRAME_WELCOME) {
        pl_client_on_welcome(client, ps, message);
        return;
    }
    if (frame->incarnation != client->view.incarnation)
        return;
    if (pl_ps_refuse_is_unknown(message)) {
        /* A new process of a server.  One other than server 0 learns from our
         * JOIN what it serves, and joins server 0, which rolls the job back. */
        client->rolled = client->rolled || (ps == 0 && !client->joining);
        /* An incarnation assigned by another process of server 0 is not
         * valid. */
        if (ps == 0 && client->joining && l->joined)
            pl_ps_client_join(client);
        if (ps > 0 && !client->joining)
            pl_client_ask_to_join(client, ps);
        else if (ps == 0 && client->joining && client->links[0].joined)
            pl_ps_client_join(client); /* a new process since it admitted us */
        return;
    }
    if (frame->generation != client->generation &&
        frame->kind != PL_FRAME_REFUSE) {
        if (frame->generation > client->generation && !client->joining)
            client->rolled = true;
        return;
    }
    if (frame->kind == PL_FRAME_REFUSE)
        pl_client_fail(client, "ps %d: %.*s", ps, (int)frame->payload_bytes,
                       (const char *)message->payload);
    if (pl_ps_over_has_failed(message))
        pl_client_fail(client, "the job ended: %.*s", (int)frame->payload_bytes,
                       (const char *)message->payload);
    if (frame->sequence != l->sequence || frame->sequence == 0 ||
        client->joining || l->stage == PL_LINK_IDLE)
        return; /* of an earlier request */
    l->asked_ns = now_ns;
    if (frame->kind == PL_FRAME_PARAMS)
        on_params(client, ps, message);
    else if (frame->kind == PL_FRAME_ACK)
        on_ack(client, ps, message);
    else if (frame->kind == PL_FRAME_REPORT && ps == 0)
        on_report(client, message);
}

static void send_heartbeat(pl_ps_client *client, int32_t ps)
{
    pl_ps_heartbeat heartbeat = {
        .vital = { .step = client->view.step, .phase = PL_PHASE_JOINING },
    };
    pl_client_send(client, ps, pl_ps_heartbeat_encode(&heartbeat), NULL, false);
}

/* A request waits for other servers than `ps`.  If `ps` was restarted
 * meanwhile, it needs a worker's JOIN to learn what it serves, and server 0
 * waits for it: a heartbeat makes it reply that it is new. */
static void probe_idle(pl_ps_client *client, int32_t ps)
{
    pl_link *l = &client->links[ps];
    if (ps == 0 || client->joining || pl_ps_client_awaited(client) < 0)
        return;
    send_heartbeat(client, ps);
    l->asked_ns = client->now_ns;
}

void pl_ps_client_tick(pl_ps_client *client, int64_t now_ns)
{
    client->now_ns = now_ns;
    /* While we wait for other servers, server 0 must get our heartbeats. */
    if (client->joining && client->links[0].joined)
        send_heartbeat(client, 0);
    for (int32_t j = 0; j < client->opts.ps; j++) {
        pl_link *l = &client->links[j];
        bool late =
            now_ns - l->asked_ns >= (client->joining ? JOIN_NS : PROBE_NS);
        if (!late)
            continue;
        if (client->joining && !l->joined &&
            (j == 0 || client->links[0].joined))
            pl_client_ask_to_join(client, j);
        else if (l->stage == PL_LINK_ANSWERING ||
                 (l->stage == PL_LINK_ASKING &&
                  (l->request.kind != PL_REQUEST_PUSH || l->out.next > 0 ||
                   client->opts.params == NULL)))
            ask(client, j);
        else if (l->stage == PL_LINK_IDLE || l->stage == PL_LINK_DONE)
            probe_idle(client, j);
    }
}

void pl_ps_client_join(pl_ps_client *client)
{
    client->joining = true;
    client->joins++;
    client->rolled = client->rest = false;
    for (int32_t j = 0; j < client->opts.ps; j++) {
        client->links[j].joined = false;
        client->links[j].offer[0] = '\0';
        client->links[j].stage = PL_LINK_IDLE; /* request numbers continue */
        client->links[j].before = client->sequence;
    }
    pl_client_ask_to_join(client, 0);
}

void pl_ps_client_init(pl_ps_client *client, int64_t step)
{
    begin_all(client, (pl_ps_request) { .kind = PL_REQUEST_INIT,
                                        .init = { .step = step } });
}

void pl_ps_client_pull(pl_ps_client *client, unsigned flags, int64_t step)
{
    begin_first(client,
                (pl_ps_request) { .kind = PL_REQUEST_PULL,
                                  .pull = { .flags = flags, .step = step } });
    client->rest = client->opts.ps > 1;
}

void pl_ps_client_push(pl_ps_client *client, int64_t step, const float *grad)
{
    client->grad = grad;
    if (client->coded == client->coder.floats)
        pl_coder_keep(&client->coder);
    client->coded = 0;
    begin_all(client, (pl_ps_request) { .kind = PL_REQUEST_PUSH,
                                        .push = { .step = step } });
}

void pl_ps_client_ready(pl_ps_client *client, int64_t from)
{
    for (int32_t j = client->opts.ps - 1; j >= 0; j--) {
        client->links[j].out.ready_from = from;
        pl_client_pump(client, j);
    }
}

void pl_ps_client_fill(pl_ps_client *client, int64_t step, const char *text)
{
    client->text = text;
    pl_ps_client_init(client, step);
}

/* Only lists that a gradient may name have rising numbers. */
static void number_list(pl_ps_client *client, unsigned flags,
                        pl_key_batch *want)
{
    client->want = want;
    if (want != NULL)
        want->number =
            (flags & PL_PULL_PEEK) != 0 ? client->lists : ++client->lists;
}

void pl_ps_client_ask(pl_ps_client *client, unsigned flags, int64_t step,
                      pl_key_batch *want)
{
    number_list(client, flags, want);
    pl_ps_client_pull(client, flags, step);
}

void pl_ps_client_push_keys(pl_ps_client *client, int64_t step,
                            const pl_key_batch *of, const float *grad,
                            pl_key_batch *want)
{
    number_list(client, 0, want);
    client->of = of;
    pl_ps_client_push(client, step, grad);
}

void pl_ps_client_read(pl_ps_client *client, int64_t first, int64_t count,
                       float *to)
{
    int32_t ps = client->opts.ps - 1;
    while (client->links[ps].in.first > first)
        ps--;
    PL_ASSERT(!pl_ps_client_busy(client));
    client->want = NULL;
    client->range = to;
    client->sequence++;
    begin_on(client, ps,
             &(pl_ps_request) {
                 .kind = PL_REQUEST_PULL,
                 .pull = { .flags = PL_PULL_PEEK | PL_PULL_RANGE,
                           .first = first,
                           .count = count },
             });
}

void pl_ps_client_pause(pl_ps_client *client)
{
    begin_first(client, (pl_ps_request) { .kind = PL_REQUEST_PAUSE });
}

void pl_ps_client_freeze(pl_ps_client *client)
{
    begin_first(client, (pl_ps_request) { .kind = PL_REQUEST_FREEZE });
}

void pl_ps_client_thaw(pl_ps_client *client)
{
    begin_first(client, (pl_ps_request) { .kind = PL_REQUEST_THAW });
}

void pl_ps_client_save(pl_ps_client *client, int64_t step, const char *plan)
{
    /* Later saves of this and of later processes have higher numbers. */
    int64_t number = (int64_t)client->view.incarnation << 32 | ++client->saves;
    client->text = plan;
    begin_all(client, (pl_ps_request) { .kind = PL_REQUEST_SAVE,
                                        .save = { step, number } });
}

void pl_ps_client_look_saved(pl_ps_client *client, bool wait)
{
    begin_first(client, (pl_ps_request) { .kind = PL_REQUEST_SAVE_STATUS,
                                          .save_status = { wait } });
}

void pl_ps_client_load(pl_ps_client *client, int64_t step,
                       const int64_t *counts, const char *plan)
{
    memcpy(client->counts, counts,
           (size_t)client->opts.workers * sizeof *counts);
    client->text = plan;
    begin_all(client,
              (pl_ps_request) { .kind = PL_REQUEST_LOAD, .load = { step } });
}

void pl_ps_client_share(pl_ps_client *client, int64_t count, bool wait)
{
    begin_first(client, (pl_ps_request) {
                            .kind = PL_REQUEST_SHARE,
                            .share = { .count = count,
                                       .worker = client->opts.index,
                                       .wait = wait },
                        });
}

void pl_ps_client_deal(pl_ps_client *client, int64_t step, int64_t epoch)
{
    begin_first(client, (pl_ps_request) { .kind = PL_REQUEST_DEAL,
                                          .deal = { step, epoch } });
}

void pl_ps_client_stop(pl_ps_client *client, bool failed, const char *why)
{
    client->text = why; /* server 0 notifies the others */
    begin_first(client, (pl_ps_request) { .kind = PL_REQUEST_STOP,
                                          .stop = { failed } });
}

void pl_ps_client_bye(pl_ps_client *client, const char *report)
{
    client->text = report;
    begin_first(client, (pl_ps_request) { .kind = PL_REQUEST_BYE });
}

void pl_ps_client_abort(pl_ps_client *client, const char *why)
{
    pl_ps_request stop = { .kind = PL_REQUEST_STOP, .stop = { true } };
    pl_client_send(client, 0,
                   pl_ps_request_encode(&stop, client->links[0].sequence + 1,
                                        (uint32_t)strlen(why)),
                   why, false);
}
