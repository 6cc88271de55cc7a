/* A job of one server and its chief, from joining over a checkpoint to a
 * server that rejoins and reads it: the n-th allocation and the n-th call
 * for I/O fail, for every n until all goes through.  Each time the job gets
 * through, or reports why not; nothing is left behind, and no wait is endless.
 */
#include "sync/ps/core/core.h"
#include "sync/ps/worker/client.h"

#include "base/log.h"
#include "state/partition.h"
#include "support/folder.h"

#include <errno.h>
#include <stdlib.h>

#define FLOATS  10
#define QUEUE   64
#define ROUNDS  40 /* of 100 ms: more than any wait here needs */
#define TICK_NS INT64_C(100000000)
#define STEP    1

typedef struct letter {
    bool to_core;
    pl_frame frame;
    void *payload;
} letter;

typedef struct job {
    const char *folder;
    float server[FLOATS], worker[FLOATS], grad[FLOATS];
    pl_params *shape;
    pl_optim *optim;
    pl_frozen *frozen;
    pl_partition *partition;
    pl_manifest_shard shard;
    pl_schedule schedule;
    pl_ps_core *core;
    pl_ps_client *client;
    uint32_t life;
    int64_t now_ns;
    letter queue[QUEUE];
    int first, last;
    /* What the disk has done and the core does not know yet. */
    bool ended;
    pl_ps_stored stored;
    char why[256];
} job;

static void no_log(void *context, pl_log_level level, const char *line)
{
    (void)context, (void)level, (void)line;
}

static void post(job *j, bool to_core, const pl_frame *frame,
                 const void *payload)
{
    if (j->last - j->first == QUEUE)
        return; /* lost */
    letter *l = &j->queue[j->last++ % QUEUE];
    *l = (letter) { to_core, *frame, malloc(frame->payload_bytes + 1) };
    assert_non_null(l->payload);
    if (frame->payload_bytes > 0)
        memcpy(l->payload, payload, frame->payload_bytes);
}

static void from_core(void *context, pl_peer to, const pl_frame *frame,
                      const void *payload, bool lasting)
{
    (void)to, (void)lasting;
    post(context, false, frame, payload);
}

static void from_client(void *context, int32_t ps, const pl_frame *frame,
                        const void *payload, bool lasting)
{
    (void)ps, (void)lasting;
    post(context, true, frame, payload);
}

/* The disk, at once and in this thread, where calls fail on purpose. */
static bool done(job *j, pl_status status)
{
    snprintf(j->why, sizeof j->why, "%s", pl_error_message());
    j->ended = true;
    j->stored = (pl_ps_stored) {
        .outcome = status == PL_OK ? PL_SAVED_GOOD : PL_SAVED_FAILED,
        .bytes = j->shard.bytes,
        .crc32c = j->shard.crc32c,
        .why = j->why,
    };
    return true;
}

static pl_status read_plan(job *j, const char *plan, size_t bytes)
{
    pl_partition_free(j->partition);
    j->partition = NULL;
    return pl_partition_new(&j->partition, plan, bytes,
                            &(pl_partition_opts) {
                                .of = 1,
                                .count = FLOATS,
                                .planes = pl_optim_planes(j->optim, j->server),
                            });
}

static bool save(void *context, const char *plan, size_t bytes)
{
    static const atomic_bool never;
    job *j = context;
    pl_status status = read_plan(j, plan, bytes);
    if (status == PL_OK) {
        pl_frozen_begin(j->frozen);
        status = pl_partition_write(j->partition, j->frozen, &never, &j->shard);
        pl_frozen_end(j->frozen);
    }
    return done(j, status);
}

static bool commit(void *context, const pl_ps_part *parts)
{
    job *j = context;
    assert_int_equal(j->shard.bytes, parts[0].bytes);
    return done(j, pl_partition_commit(j->partition, &j->shard));
}

static bool load(void *context, const char *plan, size_t bytes)
{
    job *j = context;
    pl_status status = read_plan(j, plan, bytes);
    return done(j, status == PL_OK ? pl_partition_load(j->partition) : status);
}

static void cancel(void *context)
{
    ((job *)context)->ended = false;
}

static bool touch(void *context, int64_t first, int64_t count)
{
    return pl_frozen_touch(((job *)context)->frozen, first, count);
}

static const pl_ps_core_ops core_ops = {
    .send = from_core,
    .save = save,
    .commit = commit,
    .load = load,
    .cancel = cancel,
    .touch = touch,
};
static const pl_ps_client_ops client_ops = { .send = from_client };

/* A server with nothing in its memory. */
static pl_status start_core(job *j)
{
    pl_ps_core_free(j->core);
    j->core = NULL;
    memset(j->server, 0, sizeof j->server);
    return pl_ps_core_new(&j->core,
                          &(pl_ps_core_opts) {
                              .ps = 1,
                              .workers = 1,
                              .count = FLOATS,
                              .params = j->server,
                              .optim = j->optim,
                              .schedule = &j->schedule,
                              .kernels = pl_kernels_best(),
                              .life = ++j->life,
                              .ops = &core_ops,
                              .context = j,
                          },
                          j->now_ns);
}

static pl_status open_job(job *j)
{
    j->schedule = (pl_schedule) { .lr = 1.0 };
    PL_TRY(pl_params_new(&j->shape));
    PL_TRY(pl_params_add(j->shape, "w", PL_SHAPE(FLOATS)));
    PL_TRY(pl_params_seal(j->shape));
    PL_TRY(pl_optim_new(&j->optim, &(pl_optim_opts) { .name = "momentum" },
                        j->shape, pl_kernels_best()));
    PL_TRY(pl_frozen_new(&j->frozen,
                         &(pl_frozen_opts) {
                             .planes = pl_optim_planes(j->optim, j->server),
                             .count = FLOATS,
                         }));
    PL_TRY(start_core(j));
    return pl_ps_client_new(&j->client,
                            &(pl_ps_client_opts) {
                                .role = "worker",
                                .ps = 1,
                                .workers = 1,
                                .count = FLOATS,
                                .params = j->worker,
                                .ops = &client_ops,
                                .context = j,
                            },
                            j->now_ns);
}

static void close_job(job *j)
{
    for (; j->first < j->last; j->first++)
        free(j->queue[j->first % QUEUE].payload);
    pl_ps_client_free(j->client);
    pl_ps_core_free(j->core);
    pl_partition_free(j->partition);
    pl_frozen_free(j->frozen);
    pl_optim_free(j->optim);
    pl_params_free(j->shape);
}

static void deliver(job *j)
{
    while (j->first < j->last) {
        letter l = j->queue[j->first++ % QUEUE];
        pl_message message = { .from = 1,
                               .frame = l.frame,
                               .payload = l.payload };
        if (l.to_core)
            pl_ps_core_receive(j->core, &message, j->now_ns);
        else
            pl_ps_client_receive(j->client, 0, &message, j->now_ns);
        free(l.payload);
    }
    if (j->ended) {
        j->ended = false;
        pl_ps_core_stored(j->core, &j->stored, j->now_ns);
    }
}

/* Until the request is done, or failed with a reason. */
static pl_status finish(job *j)
{
    for (int round = 0; round < ROUNDS; round++) {
        deliver(j);
        PL_TRY(pl_ps_client_outcome(j->client));
        PL_TRY(pl_ps_core_outcome(j->core));
        if (pl_ps_client_rolled(j->client) ||
            (!pl_ps_client_busy(j->client) && j->first == j->last && !j->ended))
            return PL_OK;
        j->now_ns += TICK_NS;
        pl_ps_core_tick(j->core, j->now_ns);
        pl_ps_client_tick(j->client, j->now_ns);
    }
    fail_msg("nothing happens any more");
    return PL_TIMEOUT;
}

static pl_status join(job *j)
{
    pl_ps_client_join(j->client);
    return finish(j);
}

static pl_status push(job *j)
{
    for (int i = 0; i < FLOATS; i++)
        j->grad[i] = -1;
    pl_ps_client_push(j->client, pl_ps_client_look(j->client).step, j->grad);
    pl_ps_client_ready(j->client, 0);
    return finish(j);
}

static void make_plan(const job *j, char text[512])
{
    snprintf(text, 512,
             "{\"checkpoints\": \"%s\", \"folder\": \"step-0000000001\", "
             "\"step\": 1, \"keep\": 1, \"model\": \"m\", \"settings\": {}, "
             "\"state\": {}, \"tensors\": [{\"name\": \"w\", \"shape\": [10], "
             "\"first\": 0}]}",
             j->folder);
}

static pl_status save_all(job *j)
{
    char plan[512], *folder;
    make_plan(j, plan);
    pl_ps_client_freeze(j->client);
    PL_TRY(finish(j));
    PL_TRY(pl_checkpoint_begin(&folder, j->folder, STEP));
    pl_mem_free(folder);
    pl_ps_client_save(j->client, STEP, plan);
    PL_TRY(finish(j));
    pl_ps_client_thaw(j->client);
    PL_TRY(finish(j));
    pl_ps_client_look_saved(j->client, true);
    PL_TRY(finish(j));
    pl_ps_client_view view = pl_ps_client_look(j->client);
    return view.saved == PL_SAVED_GOOD ? PL_OK : PL_FAIL(PL_IO, "%s", view.why);
}

/* The server dies and rejoins; the chief lets it read the checkpoint. */
static pl_status recover(job *j)
{
    const int64_t counts[1] = { STEP };
    char plan[512];
    make_plan(j, plan);
    PL_TRY(start_core(j));
    pl_ps_client_pull(j->client, 0, 0);
    PL_TRY(finish(j));
    assert_true(pl_ps_client_rolled(j->client));
    PL_TRY(join(j));
    pl_ps_client_load(j->client, STEP, counts, plan);
    PL_TRY(finish(j));
    pl_ps_client_pull(j->client, 0, 0);
    return finish(j);
}

static pl_status train(job *j)
{
    PL_TRY(open_job(j));
    PL_TRY(join(j));
    pl_ps_client_init(j->client, 0);
    PL_TRY(finish(j));
    pl_ps_client_pull(j->client, 0, 0);
    PL_TRY(finish(j));
    PL_TRY(push(j));
    PL_TRY(save_all(j));
    PL_TRY(recover(j));
    PL_TRY(push(j));
    pl_ps_client_bye(j->client, "{}");
    return finish(j);
}

/* True: a fault was met. */
static bool run_with(const char *folder, void (*arm)(long nth),
                     bool (*disarm)(void), long nth)
{
    job j = { .folder = folder, .now_ns = TICK_NS };
    long live = pl_mem_live();
    assert_ok(pl_file_remove_all(folder));
    assert_ok(pl_file_make_folder(folder));
    arm(nth);
    pl_status status = train(&j);
    bool failed = disarm();
    if (status == PL_OK) { /* 1 of the first step, 1.9 of the second */
        for (int i = 0; i < FLOATS; i++)
            assert_true(j.worker[i] > 2.85f && j.worker[i] < 2.95f);
        assert_int_equal(2, pl_ps_core_look(j.core, 0).step);
    } else {
        assert_true(failed);
        assert_true(pl_error_message()[0] != '\0');
    }
    close_job(&j);
    assert_int_equal(live, pl_mem_live());
    return failed;
}

static void fail_file_at(long nth)
{
    pl_file_fail_at(nth, EIO);
}

static void ps_faults_at_each_allocation_are_survived(void **state)
{
    const char *folder = test_path(*state, "checkpoints");
    long nth = 0;
    while (run_with(folder, pl_mem_fail_at, pl_mem_fail_off, nth))
        nth++;
    assert_true(nth > 100); /* there are that many */
}

static void ps_faults_at_each_call_for_io_are_survived(void **state)
{
    const char *folder = test_path(*state, "checkpoints");
    long nth = 0;
    while (run_with(folder, fail_file_at, pl_file_fail_off, nth))
        nth++;
    assert_true(nth > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            ps_faults_at_each_allocation_are_survived, test_folder_make,
            test_folder_remove),
        cmocka_unit_test_setup_teardown(
            ps_faults_at_each_call_for_io_are_survived, test_folder_make,
            test_folder_remove),
    };
    pl_log_set(no_log, NULL, PL_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
