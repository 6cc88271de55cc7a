/* The blocking side of the worker machine (worker/worker.h): opens sockets and
 * the heartbeat, passes it messages and the time until the caller's wish is
 * done, and finds checkpoints on the disk.  Makes no decisions. */
#include "sync/ps/sync.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/address.h"
#include "sync/ps/heartbeat.h"
#include "sync/ps/messages/pieces.h"
#include "sync/ps/worker/worker.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINGER_MS 1000 /* for the last message to leave */
#define WRITERS   4    /* threads that connect and write to all servers */
#define SAY_NS    INT64_C(5000000000)
/* Shared memory for messages about sparse parameters, to all servers
 * together. */
#define MESSAGE_BYTES ((size_t)16 << 20)

struct pl_ps_sync {
    pl_sync base;
    pl_ps_sync_opts opts;
    char name[32];
    char host[256];
    int32_t ps;
    pl_endpoint **ends; /* one a server */
    pl_area *area;      /* the gradient or, with keyed parameters, messages;
                           NULL: an evaluator, which sends neither */
    pl_ps_worker *worker;
    pl_heartbeat *heartbeat;
    const pl_progress *progress; /* of the current save or join */
    int64_t next_tick_ns;
};

static int64_t now_ns(void)
{
    return pl_clock_now_ns(pl_clock_real());
}

static void send_out(void *context, int32_t ps, const pl_frame *frame,
                     const void *payload, bool lasting)
{
    pl_ps_sync *self = context;
    if (pl_endpoint_send(self->ends[ps], 0, frame, payload, lasting) != PL_OK)
        pl_log(PL_LOG_WARN, "%s: %s", self->name, pl_error_message());
}

static void make_offer(void *context, int32_t ps, char offer[PL_OFFER_BYTES])
{
    pl_ps_sync *self = context;
    if (pl_endpoint_offer(self->ends[ps], offer) != PL_OK)
        pl_log(PL_LOG_WARN, "%s: %s", self->name, pl_error_message());
}

static void take_answer(void *context, int32_t ps, const char *answer)
{
    pl_ps_sync *self = context;
    if (pl_endpoint_complete(self->ends[ps], answer) != PL_OK)
        pl_log(PL_LOG_WARN, "%s: %s", self->name, pl_error_message());
}

static const pl_ps_client_ops client_ops = {
    .send = send_out,
    .offer = make_offer,
    .shared = take_answer,
};

static pl_status check_transport(const pl_ps_sync *self)
{
    for (int32_t j = 0; j < self->ps; j++) {
        char what[PL_ADDRESS_BYTES + 32];
        snprintf(what, sizeof what, "ps %d at %s", j,
                 self->opts.cluster->ps_address[j]);
        PL_TRY(pl_endpoint_check(self->ends[j], 0, what));
    }
    return PL_OK;
}

/* The principal of this task. */
static pl_principal principal(const pl_ps_sync *self)
{
    if (self->opts.task.role == PL_ROLE_EVALUATOR)
        return (pl_principal) { PL_PRINCIPAL_EVALUATOR, 0 };
    return (pl_principal) { PL_PRINCIPAL_WORKER,
                            pl_cluster_worker(self->opts.cluster,
                                              self->opts.task) };
}

static pl_status on_joined(void *context)
{
    pl_ps_sync *self = context;
    PL_TRY(check_transport(self));
    if (self->opts.joined != NULL)
        self->opts.joined(self->opts.context);
    pl_ps_client_view view = pl_ps_worker_look(self->worker).client;
    return pl_heartbeat_start(&self->heartbeat,
                              &(pl_heartbeat_opts) {
                                  .address = self->opts.cluster->ps_address[0],
                                  .name = self->name,
                                  .incarnation = view.incarnation,
                                  .generation = view.generation,
                                  .keys = self->opts.keys,
                                  .self = principal(self),
                                  .timeout_ms = self->opts.heartbeat_ms > 0
                                                    ? self->opts.heartbeat_ms
                                                    : 5000,
                              });
}

static void on_parted(void *context)
{
    pl_ps_sync *self = context;
    pl_heartbeat_stop(self->heartbeat);
    self->heartbeat = NULL;
}

static void on_tell(void *context, int64_t step, pl_phase phase)
{
    pl_heartbeat_phase(((pl_ps_sync *)context)->heartbeat, step, phase);
}

static void on_located(void *context, uint64_t job, const char *run)
{
    pl_ps_sync *self = context;
    if (self->opts.located != NULL)
        self->opts.located(self->opts.context, job, run);
}

static pl_status find_checkpoint(void *context, pl_ps_checkpoint *out)
{
    pl_ps_sync *self = context;
    pl_progress progress = { 0 };
    if (self->opts.snapshot == NULL)
        return PL_NOTFOUND;
    PL_TRY(pl_snapshot_find(self->opts.snapshot, &progress, &out->plan));
    out->step = progress.step;
    out->counts = pl_snapshot_counts(self->opts.snapshot);
    return PL_OK;
}

static pl_status plan_checkpoint(void *context, int64_t step,
                                 const int64_t *counts, char **plan)
{
    pl_ps_sync *self = context;
    pl_progress saved = *self->progress;
    size_t bytes = (size_t)self->opts.cluster->workers * sizeof *counts;
    memcpy(pl_snapshot_counts(self->opts.snapshot), counts, bytes);
    saved.step = step;
    return pl_snapshot_request(self->opts.snapshot, &saved, plan);
}

/* Servers make the first keyed parameters themselves. */
static pl_status describe_first(void *context, char **text)
{
    pl_ps_sync *self = context;
    pl_json *description;
    PL_TRY(pl_first_describe(&description, self->opts.sparse, self->opts.seed));
    pl_status status = pl_json_text(description, 0, text);
    pl_json_free(description);
    return status;
}

static const pl_ps_worker_ops worker_ops = {
    .joined = on_joined,
    .parted = on_parted,
    .tell = on_tell,
    .located = on_located,
    .find = find_checkpoint,
    .plan = plan_checkpoint,
    .describe = describe_first,
};

/* Handle all waiting messages; *some: there were any. */
static pl_status take_messages(pl_ps_sync *self, bool *some)
{
    pl_message message;
    *some = false;
    for (int32_t j = 0; j < self->ps; j++)
        for (;;) {
            pl_status status = pl_endpoint_poll(self->ends[j], &message);
            if (status == PL_AGAIN)
                break;
            PL_TRY(status);
            *some = true;
            if (j == 0)
                pl_heartbeat_heard(self->heartbeat);
            pl_ps_worker_receive(self->worker, j, &message, now_ns());
        }
    return PL_OK;
}

/* Messages, the clock, the heartbeat: one turn of every wait. */
static pl_status turn(pl_ps_sync *self)
{
    bool some;
    PL_TRY(take_messages(self, &some));
    if (some)
        return PL_OK;
    int64_t now = now_ns();
    if (now >= self->next_tick_ns) {
        self->next_tick_ns = now + PL_TICK_MS * INT64_C(1000000);
        pl_ps_worker_tick(self->worker, now);
        pl_status status = pl_heartbeat_check(self->heartbeat);
        if (status != PL_OK)
            pl_ps_worker_lost(self->worker, status);
        return PL_OK;
    }
    pl_endpoint_wait(self->ends, self->ps,
                     (pl_deadline) { pl_clock_real(), self->next_tick_ns });
    return PL_OK;
}

/* Wait until the wish is done. */
static pl_status run(pl_ps_sync *self)
{
    while (pl_ps_worker_busy(self->worker))
        PL_TRY(turn(self));
    return pl_ps_worker_outcome(self->worker);
}

/* The same for a wish to join: every few seconds, log the server it waits
 * for. */
static pl_status run_join(pl_ps_sync *self)
{
    int64_t said = now_ns();
    while (pl_ps_worker_busy(self->worker)) {
        PL_TRY(turn(self));
        pl_ps_worker_view view = pl_ps_worker_look(self->worker);
        int64_t now = now_ns();
        if (view.joining && self->opts.interrupt != NULL &&
            atomic_load_explicit(self->opts.interrupt, memory_order_relaxed))
            pl_ps_worker_interrupt(self->worker);
        if (view.absent < 0 || now - said < SAY_NS)
            continue;
        said = now;
        pl_log(PL_LOG_INFO, "%s waits for ps %d at %s (%lld s)", self->name,
               view.absent, self->opts.cluster->ps_address[view.absent],
               (long long)((now - view.joining_ns) / 1000000000));
    }
    return pl_ps_worker_outcome(self->worker);
}

static pl_status join(pl_sync *sync, pl_standing *at)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    pl_progress start = at->start;
    self->progress = &start;
    pl_ps_worker_join(self->worker);
    PL_TRY(run_join(self));
    pl_ps_worker_view view = pl_ps_worker_look(self->worker);
    *at = (pl_standing) {
        .step = view.client.step,
        .own = view.gone ? view.left_own : view.client.own,
        .over = view.over,
        .restored = view.restored >= 0 ? view.restored : view.client.step,
        .dealt = self->opts.deals && !view.gone,
        .ahead = pl_ps_worker_ahead(self->worker),
    };
    if (at->dealt)
        at->deal = *pl_ps_worker_dealt(self->worker, &at->present);
    return PL_OK;
}

static pl_status need(pl_sync *sync, int param, const pl_keys *keys)
{
    (void)keys; /* all parameters arrive */
    pl_ps_sync *self = (pl_ps_sync *)sync;
    const pl_params_item *item = pl_params_get(self->opts.params, param);
    while (!pl_ps_worker_have(self->worker, item->offset, item->count)) {
        PL_TRY(turn(self));
        PL_TRY(pl_ps_worker_check(self->worker));
    }
    return PL_OK;
}

/* Copy a gradient to where it is sent from: it was computed elsewhere only for
 * a sparse model, whose other keys are 0. */
static void place_gradient(float *to, const pl_params_item *item,
                           const float *grad, const pl_keys *keys)
{
    if (grad == to)
        return;
    if (keys == NULL) {
        memcpy(to, grad, (size_t)item->count * sizeof *to);
        return;
    }
    memset(to, 0, (size_t)item->count * sizeof *to);
    for (int64_t k = 0; k < keys->count; k++)
        to[keys->ids[k]] = grad[k];
}

static pl_status ready(pl_sync *sync, int param, const float *grad,
                       const pl_keys *keys)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    const pl_params_item *item = pl_params_get(self->opts.params, param);
    float *block = pl_area_data(self->area);
    place_gradient(block + item->offset, item, grad, keys);
    pl_ps_worker_ready(self->worker, pl_area_data(self->area), item->offset);
    bool some;
    return pl_ps_worker_windowed(self->worker) ? take_messages(self, &some)
                                               : PL_OK;
}

static pl_status commit(pl_sync *sync, pl_commit *out)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    pl_ps_worker_commit(self->worker);
    PL_TRY(run(self));
    pl_ps_worker_view view = pl_ps_worker_look(self->worker);
    *out = (pl_commit) {
        .step = view.client.step,
        .dropped = view.dropped,
        .stop = view.stop,
        .unsent = view.unsent,
    };
    return PL_OK;
}

/* The places of a batch in the block: the table's, then the bias. */
static pl_status set_batch(const pl_ps_sync *self, const pl_keys *keys,
                           pl_key_batch *batch)
{
    const pl_params *params = self->opts.params;
    uint64_t table =
        (uint64_t)pl_params_get(params, self->opts.sparse->table)->offset;
    int64_t bias = pl_params_get(params, self->opts.sparse->bias)->offset;
    PL_ASSERT(self->opts.sparse->bias > self->opts.sparse->table);
    PL_TRY(pl_key_batch_resize(batch, keys->count + 1));
    for (int64_t k = 0; k < keys->count; k++)
        batch->keys[k] = table + keys->ids[k];
    batch->keys[keys->count] = (uint64_t)bias;
    return pl_key_batch_cut(batch, pl_params_block_count(params));
}

static pl_values values_of(const pl_ps_sync *self, const pl_key_batch *batch)
{
    return (pl_values) { batch->values, batch->values + batch->count - 1,
                         pl_ps_worker_look(self->worker).client.step };
}

static pl_status keys_ask(pl_sync *sync, const pl_keys *keys, bool later)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    PL_TRY(set_batch(self, keys, pl_ps_worker_next_batch(self->worker)));
    pl_ps_worker_ask(self->worker, later);
    return run(self);
}

static pl_status keys_take(pl_sync *sync, pl_values *out)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    pl_ps_worker_take(self->worker);
    PL_TRY(run(self));
    *out = values_of(self, pl_ps_worker_taken(self->worker));
    return PL_OK;
}

static pl_status keys_look(pl_sync *sync, const pl_keys *keys, pl_values *out)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    pl_key_batch *batch = pl_ps_worker_look_batch(self->worker);
    PL_TRY(set_batch(self, keys, batch));
    pl_ps_worker_peek(self->worker);
    PL_TRY(run(self));
    *out = values_of(self, batch);
    return PL_OK;
}

static pl_status keys_ready(pl_sync *sync, int param, const float *grad,
                            const pl_keys *keys)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    int64_t count = pl_ps_worker_taken(self->worker)->count;
    float *to;
    PL_TRY(pl_ps_worker_gradient(self->worker, &to));
    PL_ASSERT(keys == NULL || keys->count == count - 1);
    if (param == self->opts.sparse->table && keys->count > 0)
        memcpy(to, grad, (size_t)keys->count * sizeof *grad);
    else if (param == self->opts.sparse->bias)
        to[count - 1] = *grad;
    return PL_OK;
}

static float *gradient(pl_sync *sync)
{
    return pl_area_data(((pl_ps_sync *)sync)->area);
}

static pl_status settle(pl_ps_sync *self, int64_t *step)
{
    pl_ps_worker_settle(self->worker);
    PL_TRY(run(self));
    pl_ps_worker_view view = pl_ps_worker_look(self->worker);
    if (!view.gone)
        *step = view.client.step;
    return PL_OK;
}

static pl_status pause_job(pl_sync *sync, bool over, int64_t *step)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    if (over)
        return settle(self, step);
    pl_ps_worker_pause(self->worker);
    PL_TRY(run(self));
    pl_ps_worker_view view = pl_ps_worker_look(self->worker);
    if (view.paused)
        *step = view.client.step;
    return PL_OK;
}

static void testing(pl_sync *sync, int64_t step, bool begins)
{
    pl_heartbeat_phase(((pl_ps_sync *)sync)->heartbeat, step,
                       begins ? PL_PHASE_EVALUATING : PL_PHASE_COMPUTING);
}

static void progress(void *sync)
{
    pl_heartbeat_progress(((pl_ps_sync *)sync)->heartbeat);
}

static pl_status save(pl_sync *sync, const pl_progress *progress, bool last)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    if (self->opts.snapshot == NULL)
        return PL_OK;
    self->progress = progress;
    pl_ps_worker_save(self->worker, last);
    return run(self);
}

static pl_status stop(pl_sync *sync, const char *why)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    pl_ps_worker_stop(self->worker, why);
    return run(self);
}

static pl_status share(pl_sync *sync, int64_t own, bool wait, pl_share *out)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    *out = (pl_share) { .worker = principal(self).index, .own = own };
    pl_ps_worker_share(self->worker, own, wait);
    PL_TRY(run(self));
    pl_ps_worker_view view = pl_ps_worker_look(self->worker);
    if (!view.gone)
        *out = (pl_share) { view.client.share, view.client.share_own };
    return PL_OK;
}

static pl_status deal(pl_sync *sync, int64_t step, int64_t epoch,
                      pl_standing *at)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    pl_ps_worker_deal(self->worker, step, epoch);
    PL_TRY(run(self));
    at->deal = *pl_ps_worker_dealt(self->worker, &at->present);
    return PL_OK;
}

static pl_status finish(pl_sync *sync)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    char *text = NULL;
    if (pl_ps_worker_look(self->worker).gone)
        return PL_OK;
    if (self->opts.report != NULL) /* may read parameters */
        PL_TRY(self->opts.report(self->opts.context, &text));
    pl_ps_worker_leave(self->worker, text != NULL ? text : "null");
    pl_status status = run(self);
    pl_mem_free(text);
    return status;
}

static void traffic(const pl_sync *sync, int64_t *sent_bytes,
                    int64_t *received_bytes)
{
    const pl_ps_sync *self = (const pl_ps_sync *)sync;
    *sent_bytes = *received_bytes = 0;
    for (int32_t j = 0; j < self->ps; j++) {
        pl_endpoint_counts counts = pl_endpoint_count(self->ends[j]);
        *sent_bytes += counts.sent_bytes;
        *received_bytes += counts.received_bytes;
    }
}

/* Notify the job, if it still listens, why this task ends. */
static void abort_job(pl_sync *sync, const char *why)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    pl_error before;
    pl_error_save(&before, PL_CLOSED);
    if (pl_heartbeat_check(self->heartbeat) == PL_OK) {
        char text[400];
        snprintf(text, sizeof text, "%s", why);
        pl_ps_worker_abort(self->worker, text);
    }
    (void)pl_error_raise(&before);
}

static void sync_free(pl_sync *sync)
{
    pl_ps_sync *self = (pl_ps_sync *)sync;
    pl_heartbeat_stop(self->heartbeat);
    for (int32_t j = 0; self->ends != NULL && j < self->ps; j++)
        pl_endpoint_free(self->ends[j], LINGER_MS);
    pl_mem_free(self->ends);
    pl_ps_worker_free(self->worker);
    pl_area_free(self->area);
    pl_mem_free(self);
}

static const pl_sync_data data_ops = { .share = share, .deal = deal };

static const pl_sync_keyed keyed_ops = {
    .ask = keys_ask,
    .take = keys_take,
    .look = keys_look,
};

static const pl_sync_ops ops = {
    .name = "ps",
    .join = join,
    .need = need,
    .ready = ready,
    .commit = commit,
    .save = save,
    .finish = finish,
    .free = sync_free,
    .gradient = gradient,
    .pause = pause_job,
    .testing = testing,
    .progress = progress,
    .stop = stop,
    .traffic = traffic,
    .abort = abort_job,
    .data = &data_ops,
};

/* Sparse parameters: only requested keys are read. */
static const pl_sync_ops keys_ops = {
    .name = "ps",
    .join = join,
    .ready = keys_ready,
    .commit = commit,
    .save = save,
    .finish = finish,
    .free = sync_free,
    .pause = pause_job,
    .testing = testing,
    .progress = progress,
    .stop = stop,
    .traffic = traffic,
    .abort = abort_job,
    .keyed = &keyed_ops,
    .data = &data_ops,
};

static pl_ps_client_opts client_opts(pl_ps_sync *self)
{
    const pl_ps_sync_opts *opts = &self->opts;
    bool worker = opts->task.role != PL_ROLE_EVALUATOR;
    pl_ps_client_opts client = {
        .role = worker ? "worker" : "evaluator",
        .index = worker ? pl_cluster_worker(opts->cluster, opts->task) : 0,
        .ps = self->ps,
        .workers = opts->cluster->workers,
        .mode = opts->mode,
        .count = pl_params_block_count(opts->params),
        .end_step = opts->end_step,
        .run_steps = opts->run_steps,
        .tests = opts->tests,
        .settings = opts->settings,
        .job = opts->job,
        .run = opts->run,
        .host = self->host,
        .process = getpid(),
        .started_ms = pl_clock_boot_ns() / 1000000,
        .ops = &client_ops,
        .context = self,
    };
    pl_clock_boot_id(client.boot);
    if (pl_params_trained(opts->params) < client.count) {
        client.trained = pl_params_trained(opts->params);
        client.average_rate = opts->average_rate;
    }
    if (opts->sparse != NULL) {
        const pl_params_item *table =
            pl_params_get(opts->params, opts->sparse->table);
        client.table_first = table->offset;
        client.table_count = table->count;
        client.messages = pl_area_data(self->area);
        client.message_bytes = MESSAGE_BYTES;
    } else {
        client.params = pl_params_block(opts->params);
        client.codec = opts->codec;
        if (!opts->codec->in_place && self->area != NULL)
            client.encoded = (float *)pl_area_data(self->area) + client.count;
    }
    return client;
}

static pl_status open_worker(pl_ps_sync *self)
{
    const pl_ps_sync_opts *opts = &self->opts;
    return pl_ps_worker_new(
        &self->worker,
        &(pl_ps_worker_opts) {
            .client = client_opts(self),
            .ops = &worker_ops,
            .name = self->name,
            .addresses = (const char *const *)opts->cluster->ps_address,
            .chief = pl_cluster_is_chief(opts->cluster, opts->task),
            .saves = opts->snapshot != NULL,
            .locates = opts->located != NULL,
            .backup = opts->backup,
            .still = opts->still,
            .deals = opts->deals,
            .join_ms = opts->join_ms,
            .rejoin_ms = opts->rejoin_ms,
        },
        now_ns());
}

/* Memory that servers on this host read in place: messages about sparse
 * parameters; or the gradient, followed by its encoded form. */
static pl_status open_area(pl_ps_sync *self)
{
    size_t floats = (size_t)pl_params_block_count(self->opts.params);
    if (self->opts.sparse != NULL)
        return pl_area_new(&self->area, MESSAGE_BYTES);
    if (self->opts.task.role == PL_ROLE_EVALUATOR)
        return PL_OK;
    if (!self->opts.codec->in_place)
        floats *= 2;
    return pl_area_new(&self->area, floats * sizeof(float));
}

static pl_status open_ends(pl_ps_sync *self)
{
    const pl_ps_sync_opts *opts = &self->opts;
    PL_TRY(PL_NEW(self->ends, (size_t)self->ps));
    for (int32_t j = 0; j < self->ps; j++)
        PL_TRY(pl_endpoint_connect(
            &self->ends[j],
            &(pl_endpoint_opts) {
                .address = opts->cluster->ps_address[j],
                .name = self->name,
                .area = self->area,
                .transport = opts->transport,
                .keys = opts->keys,
                .self = principal(self),
                .server = j,
                .beside = j < WRITERS ? NULL : self->ends[j % WRITERS],
            }));
    return PL_OK;
}

pl_status pl_ps_sync_new(pl_ps_sync **out, const pl_ps_sync_opts *opts)
{
    pl_ps_sync *self;
    PL_ASSERT(opts->cluster->ps >= 1);
    PL_TRY(PL_NEW(self, 1));
    self->base.ops = &ops;
    self->opts = *opts;
    if (opts->codec == NULL)
        self->opts.codec = pl_codecs[0];
    self->ps = opts->cluster->ps;
    gethostname(self->host, sizeof self->host - 1);
    snprintf(self->name, sizeof self->name, "%s %d",
             pl_role_text(opts->task.role), opts->task.index);
    if (opts->sparse != NULL)
        self->base.ops = &keys_ops;
    pl_status status;
    PL_TRY_OUT(status, open_area(self));
    PL_TRY_OUT(status, open_ends(self));
    PL_TRY_OUT(status, open_worker(self));
    *out = self;
    return PL_OK;
out:
    sync_free(&self->base);
    return status;
}

pl_sync *pl_ps_sync_base(pl_ps_sync *sync)
{
    return &sync->base;
}

pl_ps_sync_view pl_ps_sync_look(const pl_ps_sync *sync)
{
    pl_ps_worker_view worker = pl_ps_worker_look(sync->worker);
    const pl_ps_client_view *client = &worker.client;
    pl_ps_sync_view view = {
        .step = client->step,
        .made = client->made,
        .dropped = client->report != NULL ? client->dropped : worker.drops,
        .coding_seconds = client->coding_seconds,
        .update_seconds = (double)client->update_ns * 1e-9,
        .reports = client->report,
        .busy_ns = -1,
        .skew = pl_heartbeat_skew(sync->heartbeat),
        .shared = pl_endpoint_shared(sync->ends[0], 0),
        .over = worker.over,
        .broken = worker.broken,
    };
    for (int32_t j = 0; j < sync->ps; j++) {
        pl_endpoint_counts counts = pl_endpoint_count(sync->ends[j]);
        view.sent_bytes += counts.sent_bytes;
        view.received_bytes += counts.received_bytes;
        view.sent_messages += counts.sent_messages;
        view.received_messages += counts.received_messages;
    }
    return view;
}

pl_endpoint_counts pl_ps_sync_link(const pl_ps_sync *sync, int32_t ps)
{
    return pl_endpoint_count(sync->ends[ps]);
}

pl_status pl_ps_sync_read(pl_ps_sync *sync, int64_t first, int64_t count,
                          float *to)
{
    int64_t floats = pl_params_block_count(sync->opts.params);
    while (count > 0) {
        int64_t n = count < PL_KEY_BATCH_MOST ? count : PL_KEY_BATCH_MOST;
        for (int32_t j = 0; j < sync->ps; j++) {
            int64_t begin, have;
            pl_pieces_shard(floats, sync->ps, j, &begin, &have);
            if (first >= begin && first < begin + have)
                n = n < begin + have - first ? n : begin + have - first;
        }
        pl_ps_worker_read(sync->worker, first, n, to);
        PL_TRY(run(sync));
        first += n;
        to += n;
        count -= n;
    }
    return PL_OK;
}

pl_status pl_ps_sync_pull(pl_ps_sync *sync, int64_t step)
{
    pl_ps_worker_pull(sync->worker, step);
    return run_join(sync);
}

pl_status pl_ps_sync_leave(pl_ps_sync *sync)
{
    return finish(&sync->base);
}
