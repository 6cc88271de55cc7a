/* How a server identifies a sender: by its key, not by its claim; frames of
 * another generation or of a replaced process are ignored. */
#include "support/unit.h"
#include "sync/ps/core/core.h"

#include "base/log.h"

#include <stdlib.h>

#define FLOATS 8

/* A server of two workers and an evaluator, and its last answer. */
typedef struct desk {
    pl_ps_core *core;
    pl_params *shape;
    pl_optim *optim;
    pl_schedule schedule;
    float params[FLOATS];
    int answers;
    pl_peer to;
    pl_frame frame;
    char text[1024];
} desk;

static void keep(void *context, pl_peer to, const pl_frame *frame,
                 const void *payload, bool lasting)
{
    desk *d = context;
    (void)lasting;
    d->answers++;
    d->to = to;
    d->frame = *frame;
    snprintf(d->text, sizeof d->text, "%.*s", (int)frame->payload_bytes,
             payload != NULL ? (const char *)payload : "");
}

static const pl_ps_core_ops ops = { .send = keep };

static void no_log(void *context, pl_log_level level, const char *line)
{
    (void)context;
    (void)level;
    (void)line;
}

static int desk_make(void **state)
{
    desk *d = calloc(1, sizeof *d);
    *state = d;
    pl_log_set(no_log, NULL, PL_LOG_ERROR);
    assert_ok(pl_params_new(&d->shape));
    assert_ok(pl_params_add(d->shape, "part", PL_SHAPE(FLOATS)));
    assert_ok(pl_params_seal(d->shape));
    assert_ok(pl_optim_new(&d->optim, &(pl_optim_opts) { .name = "sgd" },
                           d->shape, pl_kernels_best()));
    assert_ok(pl_ps_core_new(&d->core,
                             &(pl_ps_core_opts) {
                                 .ps = 1,
                                 .workers = 2,
                                 .evaluator = true,
                                 .mode = PL_PS_ASYNC,
                                 .count = FLOATS,
                                 .params = d->params,
                                 .optim = d->optim,
                                 .schedule = &d->schedule,
                                 .kernels = pl_kernels_best(),
                                 .ops = &ops,
                                 .context = d,
                             },
                             0));
    return 0;
}

static int desk_drop(void **state)
{
    desk *d = *state;
    pl_ps_core_free(d->core);
    pl_optim_free(d->optim);
    pl_params_free(d->shape);
    free(d);
    pl_log_set(NULL, NULL, PL_LOG_INFO);
    return 0;
}

static void hand_in(desk *d, pl_peer from, pl_principal who, pl_frame frame,
                    const char *text)
{
    frame.payload_bytes = (uint32_t)strlen(text);
    pl_ps_core_receive(
        d->core,
        &(pl_message) {
            .from = from, .frame = frame, .payload = text, .who = who },
        1);
}

/* Ask to join as `role` `index` from a connection that proved to be `who`. */
static void join_as(desk *d, pl_peer from, pl_principal who, const char *role,
                    int index)
{
    char text[256];
    snprintf(text, sizeof text,
             "{\"role\": \"%s\", \"index\": %d, \"job\": \"\"}", role, index);
    hand_in(d, from, who, (pl_frame) { .kind = PL_FRAME_JOIN }, text);
}

static const pl_principal nobody = { PL_PRINCIPAL_NONE, 0 };
static const pl_principal worker0 = { PL_PRINCIPAL_WORKER, 0 };
static const pl_principal worker1 = { PL_PRINCIPAL_WORKER, 1 };
static const pl_principal evaluator = { PL_PRINCIPAL_EVALUATOR, 0 };

static void proved_identity_may_join(void **state)
{
    desk *d = *state;
    join_as(d, 0, worker0, "worker", 0);
    assert_int_equal(PL_FRAME_WELCOME, d->frame.kind);
    join_as(d, 1, worker1, "worker", 1);
    assert_int_equal(PL_FRAME_WELCOME, d->frame.kind);
    join_as(d, 2, evaluator, "evaluator", 0);
    assert_int_equal(PL_FRAME_WELCOME, d->frame.kind);
}

static void identity_without_keys_is_as_claimed(void **state)
{
    desk *d = *state;
    join_as(d, 0, nobody, "worker", 1);
    assert_int_equal(PL_FRAME_WELCOME, d->frame.kind);
}

static void identity_of_another_is_refused(void **state)
{
    desk *d = *state;
    static const struct {
        pl_principal who;
        const char *role;
        int index;
        const char *says;
    } claims[] = {
        { { PL_PRINCIPAL_WORKER, 1 }, "worker", 0, "those of worker 1" },
        { { PL_PRINCIPAL_EVALUATOR, 0 }, "worker", 0, "those of evaluator 0" },
        { { PL_PRINCIPAL_WORKER, 0 }, "evaluator", 0, "those of worker 0" },
        { { PL_PRINCIPAL_WORKER, 0 }, "ps", 0, "those of worker 0" },
    };
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        join_as(d, 5, claims[i].who, claims[i].role, claims[i].index);
        assert_int_equal(PL_FRAME_REFUSE, d->frame.kind);
        assert_int_equal(5, d->to);
        assert_non_null(strstr(d->text, claims[i].says));
    }
}

/* A heartbeat that is not the member's own does not keep it alive. */
static void identity_is_checked_for_heartbeats(void **state)
{
    desk *d = *state;
    join_as(d, 0, worker0, "worker", 0);
    pl_frame heartbeat = { .kind = PL_FRAME_HEARTBEAT,
                           .incarnation = d->frame.incarnation,
                           .sequence = 1 };
    hand_in(d, 7, worker1, heartbeat, "");
    assert_int_equal(PL_FRAME_REFUSE, d->frame.kind);
    hand_in(d, 7, worker0, heartbeat, "");
    assert_int_equal(PL_FRAME_HEARTBEAT_ACK, d->frame.kind);
}

/* Frames recorded and sent again after a restart, or by a replaced process. */
static void outdated_identity_is_ignored(void **state)
{
    desk *d = *state;
    join_as(d, 0, worker0, "worker", 0);
    pl_frame stop = { .kind = PL_FRAME_STOP,
                      .generation = d->frame.generation,
                      .incarnation = d->frame.incarnation,
                      .sequence = 1 };
    join_as(d, 1, worker0, "worker", 0); /* a new process */
    uint32_t newer = d->frame.incarnation;
    assert_true(newer > stop.incarnation);

    int before = d->answers;
    hand_in(d, 1, worker0, stop, ""); /* from the old one */
    assert_int_equal(before, d->answers);
    stop.incarnation = newer;
    stop.generation++;
    hand_in(d, 1, worker0, stop, ""); /* another generation's */
    assert_int_equal(before, d->answers);
    stop.generation--;
    hand_in(d, 0, worker0, stop, ""); /* the old connection */
    assert_int_equal(PL_FRAME_REFUSE, d->frame.kind);
    before = d->answers;
    hand_in(d, 1, worker0, stop, "");
    assert_true(d->answers > before);
    assert_int_not_equal(PL_FRAME_REFUSE, d->frame.kind);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, desk_make, desk_drop)
UNIT_TESTS(TEST(proved_identity_may_join),
           TEST(identity_without_keys_is_as_claimed),
           TEST(identity_of_another_is_refused),
           TEST(identity_is_checked_for_heartbeats),
           TEST(outdated_identity_is_ignored))
