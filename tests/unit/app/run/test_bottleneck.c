#include "app/run/bottleneck.h"

#include "support/unit.h"

#include <math.h>

/* What is the same in all rows. */
#define SECONDS 10.0
#define STEPS   100

/* A worker's steps, its shares of the time, its median step without waiting,
 * and other known values. */
#define ROW(where, made, in, compute, send, wait, usual, ...)                  \
    {                                                                          \
        .reported = true, .host = (where), .steps = (made),                    \
        .seconds = SECONDS, .input_share = (in), .computing_share = (compute), \
        .sending_share = (send), .waiting_share = (wait),                      \
        .usual_step_seconds = (usual), __VA_ARGS__                             \
    }
#define USE(bytes, queued)                                                     \
    .usage = { .alive_seconds = SECONDS,                                       \
               .queued_seconds = (queued),                                     \
               .bytes_sent = (bytes),                                          \
               .bytes_received = (bytes) }
#define FEW  1000
#define MANY 100000000

static const pl_worker_report busy[] = {
    ROW("a", STEPS, 0.25, 0.75, 0, 0, 0.1, USE(FEW, 0)),
};
static const pl_worker_report cramped[] = {
    ROW("a", STEPS, 0.25, 0.75, 0, 0, 0.1, USE(FEW, 9)),
};
/* So many bytes came from a disk, and a core was busy for so long, while 6 of
 * 10 s were spent on reading and 4 on computing. */
#define READ(bytes, busy)                                                      \
    ROW("a", STEPS, 0.6, 0.4, 0, 0, 0.1,                                       \
        .usage = { .alive_seconds = SECONDS,                                   \
                   .disk_read_bytes = (bytes),                                 \
                   .user_seconds = (busy) })
static const pl_worker_report reads[] = { READ(-1, 9) };
static const pl_worker_report reads_disk[] = { READ(120000000, 4) };
static const pl_worker_report parses[] = { READ(3000000, 9) };
static const pl_worker_report fetches[] = { READ(3000000, 4) };

/* Three workers of which the last computes longer than the others. */
#define FAST ROW("node1", STEPS, 0, 0.25, 0, 0.75, 0.025, USE(FEW, 0))
#define LATE(usual, ...)                                                       \
    ROW("node3", STEPS, 0, 0.75, 0, 0.25, usual, __VA_ARGS__)
static const pl_worker_report hardware[] = {
    FAST,
    FAST,
    LATE(0.075, USE(FEW, 0)),
};
static const pl_worker_report starved[] = {
    FAST,
    FAST,
    LATE(0.075, USE(FEW, 5)),
};
static const pl_worker_report stolen[] = {
    FAST,
    FAST,
    LATE(0.075, USE(FEW, 0), .stolen_share = 0.66),
};
/* Of all alike. */
#define OWN(compute, wait, usual)                                              \
    ROW("node1", STEPS, 0, compute, 0, wait, usual, USE(FEW, 0),               \
        .stolen_share = 0.3)
static const pl_worker_report stolen_of_all[] = {
    OWN(0.25, 0.75, 0.025),
    OWN(0.25, 0.75, 0.025),
    OWN(0.75, 0.25, 0.075),
};
static const pl_worker_report stopping[] = {
    FAST,
    FAST,
    LATE(0.025, USE(FEW, 0)),
};
static const pl_worker_report throttled[] = {
    FAST,
    FAST,
    LATE(0.075, USE(FEW, 0), .throttled_seconds = 6),
};
static const pl_worker_report reading[] = {
    FAST,
    FAST,
    ROW("node3", STEPS, 0.6, 0.25, 0, 0.15, 0.08, USE(FEW, 0)),
};
/* All wait equally; server 0 has recorded for which worker. */
#define ALIKE(where, held, in_steps)                                           \
    ROW(where, STEPS, 0, 0.3, 0, 0.7, 0.03, USE(FEW, 0),                       \
        .held_seconds = (held), .held_steps = (in_steps))
static const pl_worker_report linked[] = {
    ALIKE("node1", 0.1, 3),
    ALIKE("node2", 5, 95),
    ALIKE("node3", 0.1, 3),
};
/* Stopped while it waited: few steps took long. */
static const pl_worker_report paused[] = {
    ALIKE("node1", 0.1, 3),
    ALIKE("node2", 5, 5),
};
/* Without lock step the slow worker has made fewer steps. */
static const pl_worker_report behind[] = {
    ROW("node1", STEPS, 0, 0.9, 0, 0.1, 0.09, USE(FEW, 0)),
    ROW("node2", STEPS, 0, 0.9, 0, 0.1, 0.09, USE(FEW, 0)),
    ROW("node3", 25, 0, 0.95, 0, 0.05, 0.38, USE(FEW, 0)),
};
static const pl_worker_report far[] = {
    ROW("node1", STEPS, 0, 0.5, 0, 0.5, 0.05, USE(FEW, 0)),
    ROW("node2", STEPS, 0, 0.5, 0, 0.5, 0.05, USE(FEW, 0)),
    ROW("node3", 20, 0, 0.1, 0, 0.9, 0.05, USE(FEW, 0)),
};
#define EVEN(bytes, queued)                                                    \
    ROW("node1", STEPS, 0, 0.2, 0.1, 0.7, 0.03, USE(bytes, queued),            \
        .link_busy_seconds = NAN)
static const pl_worker_report small[] = { EVEN(FEW, 0), EVEN(FEW, 0) };
static const pl_worker_report large[] = { EVEN(MANY, 0), EVEN(MANY, 0) };
/* All wait equally for one link of a ring, or for the links of one worker. */
#define LINKED(where, busy)                                                    \
    ROW(where, STEPS, 0, 0.1, 0, 0.9, 0.01, USE(MANY, 0),                      \
        .link_busy_seconds = (busy))
static const pl_worker_report sender[] = {
    LINKED("node1", 0.5),
    LINKED("node2", 8),
    LINKED("node3", 0.5),
    LINKED("node4", 0.6),
};
static const pl_worker_report both_ways[] = {
    LINKED("node1", 0.5),
    LINKED("node2", 8),
    LINKED("node3", 7.8),
};
static const pl_worker_report around[] = {
    LINKED("node1", 8),
    LINKED("node2", 0.5),
    LINKED("node3", 7.8),
};
static const pl_worker_report alike[] = {
    LINKED("node1", 7.5),
    LINKED("node2", 8),
    LINKED("node3", 7),
};
/* Other processes have the cores, but that is not what takes the time. */
#define LINKED_LATE                                                            \
    ROW("node1", STEPS, 0, 0.2, 0, 0.8, 0.02, USE(MANY, 6),                    \
        .link_busy_seconds = 7)
static const pl_worker_report carried[] = { LINKED_LATE, LINKED_LATE };
static const pl_worker_report idle[] = {
    LINKED("node1", 1),
    LINKED("node2", 3.5),
};
static const pl_worker_report shared[] = {
    LINKED("node1", NAN),
    LINKED("node1", 8),
    LINKED("node2", NAN),
    LINKED("node2", 0.5),
};
static const pl_worker_report crowded[] = { EVEN(MANY, 4), EVEN(MANY, 4) };
/* The chief's gradients came late while it tested. */
static const pl_worker_report tested[] = {
    ALIKE("node1", 5, 10),
    ALIKE("node2", 0.1, 3),
};
/* All wait for the same links, for one worker a little longer. */
static const pl_worker_report lagging[] = {
    ROW("node1", STEPS, 0, 0.1, 0, 0.9, 0.01, USE(MANY, 0), .held_seconds = 0.3,
        .held_steps = 20),
    ROW("node2", STEPS, 0, 0.12, 0, 0.88, 0.012, USE(MANY, 0),
        .held_seconds = 1.2, .held_steps = 50),
};
#define LATELY ROW("node1", STEPS, 0, 0.9, 0, 0.1, 0.09, USE(FEW, 2))
static const pl_worker_report hurried[] = { LATELY, LATELY };
#define WORKS ROW("node1", STEPS, 0, 0.9, 0, 0.1, 0.09, USE(MANY, 0))
static const pl_worker_report computing[] = { WORKS, WORKS };

#define SINGLE .strategy = "single", .workers = 1
#define SYNC   .strategy = "ps", .mode = "sync", .ps = 1
#define ASYNC  .strategy = "ps", .mode = "async", .ps = 1
#define SSP    .strategy = "ps", .mode = "ssp", .ps = 1
#define RING   .strategy = "allreduce"

#define SERVER(cpu)                                                            \
    (const pl_task_report[])                                                   \
    {                                                                          \
        {                                                                      \
            .host = "node9", .usage = {                                        \
                .alive_seconds = SECONDS,                                      \
                .user_seconds = (cpu)*SECONDS,                                 \
                .system_seconds = 0                                            \
            }                                                                  \
        }                                                                      \
    }
#define STARVED_SERVER                                                         \
    .per_server = (pl_task_report[]) { { .host = "node9",                      \
                                         .usage = { .alive_seconds = SECONDS,  \
                                                    .user_seconds = 0.1,       \
                                                    .queued_seconds = 9 } } }, \
    .server_count = 1
#define ROWS(list)                                                             \
    .per_worker = (pl_worker_report *)(list),                                  \
    .worker_count = sizeof(list) / sizeof *(list), .seconds = SECONDS,         \
    .steps = STEPS
#define WITH(cpu) .per_server = (pl_task_report *)SERVER(cpu), .server_count = 1

/* One row per cause: what was recorded, and the text that is reported. */
static const struct {
    const char *name;
    pl_summary summary;
    const char *what, *task, *part;
    bool spells;
} cases[] = {
    { "computing",
      { SINGLE, ROWS(busy) },
      "computing",
      "",
      "computing: 75 % of the time (reading 25 %)",
      false },
    { "reading",
      { SINGLE, ROWS(reads) },
      "reading",
      "",
      "reading data: 60 % of the time (computing 40 %). Cures: a cache "
      "(`data convert`), or a faster disk: 2.5 x as fast",
      false },
    { "reading from a disk",
      { SINGLE, ROWS(reads_disk) },
      "reading",
      "",
      "reading data from the disk: 60 % of the time (computing 40 %). Cures: "
      "a cache (`data convert`), or a faster disk: 2.5 x as fast",
      false },
    { "reading from elsewhere",
      { SINGLE, ROWS(fetches) },
      "reading",
      "",
      "reading data: 60 % of the time",
      false },
    { "parsing",
      { SINGLE, ROWS(parses) },
      "reading",
      "",
      "parsing data that was already in memory: 60 % of the time (computing "
      "40 %). Cures: a cache (`data convert`): 2.5 x as fast",
      false },
    { "slower hardware in a ring",
      { RING, ROWS(hardware) },
      "slow worker",
      "worker 2",
      "waiting for worker 2 on node3: 50 % of the time; it "
      "computes 3.0 x as long as they do on a slower processor",
      false },
    { "slower hardware in ssp",
      { SSP, ROWS(hardware), WITH(0.1) },
      "slow worker",
      "worker 2",
      "on a slower processor",
      false },
    { "a processor that others use",
      { SYNC, ROWS(starved), WITH(0.1) },
      "slow worker",
      "worker 2",
      "had no processor 50 % of the time",
      false },
    { "a processor that other machines use",
      { RING, ROWS(stolen) },
      "slow worker",
      "worker 2",
      "it computes 3.0 x as long as they do, since the hypervisor of its host "
      "gave 66 % of the processor time to other machines. Cures: a host that "
      "it need not share: 2.0 x as fast",
      false },
    { "slower hardware where other machines use all processors",
      { RING, ROWS(stolen_of_all) },
      "slow worker",
      "worker 2",
      "on a slower processor",
      false },
    { "a quota",
      { RING, ROWS(throttled) },
      "slow worker",
      "worker 2",
      "its quota of processor time was used up 60 % of the time",
      false },
    { "stops in a ring",
      { RING, ROWS(stopping) },
      "slow worker",
      "worker 2",
      "it stops now and then",
      true },
    { "stops while it waits",
      { SYNC, ROWS(paused), WITH(0.1) },
      "slow worker",
      "worker 1",
      "it stops now and then",
      true },
    { "slow input of one",
      { RING, ROWS(reading) },
      "slow worker",
      "worker 2",
      "it takes longer to read data",
      false },
    { "a slow link of one",
      { SYNC, ROWS(linked), WITH(0.1) },
      "slow worker",
      "worker 1",
      "waiting for worker 1 on node2: 50 % of the time; it "
      "computes as fast as they do, but its link is slow",
      false },
    { "slower without lock step",
      { ASYNC, ROWS(behind), WITH(0.1) },
      "slow worker",
      "worker 2",
      "worker 2 on node3 is slower",
      false },
    { "a slow link without lock step",
      { ASYNC, ROWS(far), WITH(0.1) },
      "slow worker",
      "worker 2",
      "its link is slow",
      false },
    { "a busy server",
      { SYNC, ROWS(large), WITH(0.95) },
      "server processor",
      "ps 0",
      "waiting for ps 0 on node9, which uses 95 % of a core: 80 %",
      false },
    { "a server without a processor",
      { SYNC, ROWS(large), STARVED_SERVER },
      "server processor",
      "ps 0",
      "waiting for ps 0 on node9, which had no processor 90 % of the time: "
      "80 % of the step (computing 20 %",
      false },
    { "a little slower beside slow links",
      { SYNC, ROWS(lagging), WITH(0.2) },
      "server link",
      "",
      "waiting for the links of the parameter servers",
      false },
    { "a server's link",
      { SYNC, ROWS(large), WITH(0.2) },
      "server link",
      "",
      "waiting for the links of the parameter servers: 80 %",
      false },
    { "the links of a ring",
      { RING, ROWS(large) },
      "link",
      "",
      "waiting for the links of the ring: 80 %",
      false },
    { "a slow link of a ring",
      { RING, ROWS(sender) },
      "slow worker",
      "worker 1",
      "waiting for worker 1 on node2: 75 % of the time; it computes as fast "
      "as they do, but its link is slow",
      false },
    { "the slow links of one worker of a ring",
      { RING, ROWS(both_ways) },
      "slow worker",
      "worker 2",
      "its link is slow",
      false },
    { "the slow links of the first worker of a ring",
      { RING, ROWS(around) },
      "slow worker",
      "worker 0",
      "its link is slow",
      false },
    { "links of a ring that are alike",
      { RING, ROWS(alike) },
      "link",
      "",
      "waiting for the links of the ring: 90 %",
      false },
    { "busy links of a ring on hosts without a free core",
      { RING, ROWS(carried) },
      "link",
      "",
      "waiting for the links of the ring: 80 %",
      false },
    { "links of a ring that carry little",
      { RING, ROWS(idle) },
      "other workers",
      "",
      "while the links of the ring were idle: 90 %",
      false },
    { "links of a ring of which some are memory",
      { RING, ROWS(shared) },
      "link",
      "",
      "waiting for the links of the ring: 90 %",
      false },
    { "latency",
      { SYNC, ROWS(small), WITH(0.2) },
      "latency",
      "",
      "waiting for small messages: 80 %",
      false },
    { "too few cores",
      { SYNC, ROWS(crowded), WITH(0.2) },
      "cores",
      "",
      "tasks without a free core: 80 % of the time (computing 20 %",
      false },
    { "tests",
      { SINGLE, ROWS(busy), .eval_seconds = 40 },
      "evaluation",
      "",
      "testing at the chief: 80 % of the time (reading 5 %, computing 15 %)",
      false },
    { "tests that all wait for",
      { SYNC, ROWS(tested), WITH(0.1), .eval_seconds = 20 },
      "evaluation",
      "",
      "testing at the chief: 67 % of the time",
      false },
    { "computing beside tests and checkpoints",
      { SINGLE, ROWS(busy), .eval_seconds = 4, .checkpoint_seconds = 6 },
      "computing",
      "",
      "computing: 38 % of the time (reading 12 %, testing 20 %, checkpoints "
      "30 %)",
      false },
    { "no core to compute on",
      { SINGLE, ROWS(cramped), .eval_seconds = 4 },
      "cores",
      "",
      "tasks without a free core: 54 % of the time (reading 18 %, testing "
      "29 %)",
      false },
    { "computing that waits for a core now and then",
      { SYNC, ROWS(hurried), WITH(0.1) },
      "computing",
      "",
      "computing: 90 % of the time",
      false },
    { "checkpoints",
      { SINGLE, ROWS(busy), .checkpoint_seconds = 30 },
      "checkpoints",
      "",
      "writing checkpoints: 75 % of the time (reading 6 %, computing 19 %)",
      false },
    { "stale gradients",
      { SSP, ROWS(small), WITH(0.1), .dropped_gradients = 900 },
      "staleness",
      "",
      "90 % were dropped",
      false },
    { "equal workers that compute",
      { SYNC, ROWS(computing), WITH(0.2) },
      "computing",
      "",
      "computing: 90 % of the time (waiting 10 %). Cures: "
      "--workers 4 on as many more hosts: ",
      false },
};

static const pl_bottleneck_opts plain = { .may_use_bf16 = true,
                                          .topk_bytes = 0.02,
                                          .factors_bytes = 0.25,
                                          .factors_s = 0.01,
                                          .planes = 2 };
static const pl_bottleneck_opts two_cores = { .cores = 2 };

static void bottleneck_names_cause_and_culprit(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_summary s = cases[i].summary;
        assert_ok(pl_bottleneck_find(&s, &plain));
        const pl_bottleneck *b = &s.bottleneck;
        assert_true(s.has_bottleneck);
        if (strcmp(cases[i].what, b->what) != 0 ||
            strcmp(cases[i].task, b->task) != 0 ||
            cases[i].spells != b->spells ||
            strstr(b->text, cases[i].part) == NULL)
            fail_msg("%s: found %s, \"%s\", %d: %s", cases[i].name, b->what,
                     b->task, b->spells, b->text);
        pl_mem_free(s.bottleneck.cures);
    }
}

/* The first cure is the best, and each gains enough to be named. */
static void bottleneck_cures_are_above_five_percent(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_summary s = cases[i].summary;
        assert_ok(pl_bottleneck_find(&s, &plain));
        const pl_bottleneck *b = &s.bottleneck;
        for (size_t c = 0; c < b->cure_count; c++) {
            assert_true(b->cures[c].gain > 1.05);
            assert_true(c == 0 || b->cures[c].gain <= b->cures[c - 1].gain);
        }
        pl_mem_free(s.bottleneck.cures);
    }
}

static pl_cure cure_of(const pl_summary *given, const char *text)
{
    pl_summary s = *given;
    pl_cure found = { .gain = 0 };
    assert_ok(pl_bottleneck_find(&s, &plain));
    for (size_t c = 0; c < s.bottleneck.cure_count; c++)
        if (strcmp(text, s.bottleneck.cures[c].text) == 0)
            found = s.bottleneck.cures[c];
    pl_mem_free(s.bottleneck.cures);
    return found;
}

/* A step of 100 ms: 75 ms of the slow worker, 25 ms of exchange; the others
 * compute for 25 ms. */
static void bottleneck_gains_are_those_of_the_step(void **state)
{
    (void)state;
    const pl_summary slow = { RING, ROWS(hardware) };
    double gain = cure_of(&slow, "a host like the others'").gain;
    assert_true(fabs(gain - 100.0 / 50) < 0.01);
    const pl_summary sync = { SYNC, ROWS(starved), WITH(0.1) };
    gain = cure_of(&sync, "--replicas-to-aggregate 2").gain;
    assert_true(fabs(gain - 2.0 / 3 * 2) < 0.01);
    /* Held up for half of the time by a link. */
    const pl_summary late = { SYNC, ROWS(linked), WITH(0.1) };
    gain = cure_of(&late, "a link like the others'").gain;
    assert_true(fabs(gain - 2) < 0.01);
    /* In a ring that link is busy for 8 of 10 s, the others for half of one. */
    const pl_summary slow_link = { RING, ROWS(sender) };
    gain = cure_of(&slow_link, "a link like the others'").gain;
    assert_true(fabs(gain - 1 / (1 - 0.75)) < 0.01);
    /* 20 ms of computing, 80 of links that carry half as much. */
    const pl_summary all = { RING, ROWS(large) };
    gain = cure_of(&all, "--codec bf16 (changes the result)").gain;
    assert_true(fabs(gain - 100.0 / 60) < 0.01);
    gain = cure_of(&all, "--codec topk (changes the result)").gain;
    assert_true(fabs(gain - 100.0 / (20 + 0.02 * 80)) < 0.01);
    /* A quarter of the bytes, and 10 ms of products. */
    gain = cure_of(&all, "--codec factors").gain;
    assert_true(fabs(gain - 100.0 / (20 + 10 + 80 / 4.0)) < 0.01);
    /* Two blocks in one of 8 steps. */
    gain = cure_of(&all, "--local-steps 8 (changes the result)").gain;
    assert_true(fabs(gain - 100.0 / (20 + 2 * 80 / 8.0)) < 0.01);
    const pl_summary often = { RING, ROWS(small) };
    gain = cure_of(&often, "--local-steps 8 (changes the result)").gain;
    assert_true(fabs(gain - 100.0 / (20 + 2 * 80 / 8.0)) < 0.01);
    const pl_summary served = { SYNC, ROWS(large), WITH(0.2) };
    gain = cure_of(&served, "--codec bf16 (changes the result)").gain;
    assert_true(fabs(gain - 100.0 / 60) < 0.01);
}

/* Not where gradients are rounded already, or cannot be. */
static void bottleneck_names_a_codec_only_where_there_is_one(void **state)
{
    (void)state;
    pl_summary s = { RING, ROWS(large) };
    assert_ok(pl_bottleneck_find(&s, &two_cores));
    assert_null(strstr(s.bottleneck.text, "--codec"));
    assert_null(strstr(s.bottleneck.text, "--local-steps"));
    pl_mem_free(s.bottleneck.cures);
}

/* Two workers that had no core for 40 % of the time, on a host with two. */
static void bottleneck_distinguishes_own_tasks_from_other_processes(
    void **state)
{
    (void)state;
    pl_worker_report rows[] = { EVEN(MANY, 4), EVEN(MANY, 4) };
    pl_summary s = { RING, ROWS(rows) };
    assert_ok(pl_bottleneck_find(&s, &two_cores));
    assert_string_equal("cores", s.bottleneck.what);
    assert_string_equal("stop other processes on these cores",
                        s.bottleneck.cures[0].text);
    assert_non_null(strstr(s.bottleneck.text, "other processes have the"));
    pl_mem_free(s.bottleneck.cures);
    rows[0].usage.user_seconds = rows[1].usage.system_seconds = 0.6 * SECONDS;
    assert_ok(pl_bottleneck_find(&s, &two_cores));
    assert_string_equal("cores", s.bottleneck.what);
    assert_string_equal("fewer --workers or --threads a host",
                        s.bottleneck.cures[0].text);
    pl_mem_free(s.bottleneck.cures);
}

/* All workers lack a processor that other processes have, so that none of them
 * is to blame for its stops. */
static void bottleneck_of_a_crowded_host_blames_no_worker(void **state)
{
    (void)state;
    pl_worker_report rows[] = { ALIKE("node1", 0.1, 3), ALIKE("node1", 9, 3) };
    rows[0].usage.queued_seconds = rows[1].usage.queued_seconds = 7;
    pl_summary s = { SYNC, ROWS(rows) };
    assert_ok(pl_bottleneck_find(&s, &two_cores));
    assert_string_equal("cores", s.bottleneck.what);
    assert_string_equal("", s.bottleneck.task);
    pl_mem_free(s.bottleneck.cures);
    rows[0].usage.queued_seconds = 3; /* beside the other, that one is */
    assert_ok(pl_bottleneck_find(&s, &two_cores));
    assert_string_equal("worker 1", s.bottleneck.task);
    assert_null(strstr(s.bottleneck.text, "mean step")); /* its is no longer */
    pl_mem_free(s.bottleneck.cures);
}

/* Of 20 tests 18 can be left out; the only checkpoint is the last one. */
static void bottleneck_ignores_unavoidable_tests_and_checkpoints(void **state)
{
    (void)state;
    const pl_summary tests = { SINGLE, ROWS(busy), .eval_seconds = 40,
                               .tests = 20 };
    double gain = cure_of(&tests, "--eval-every 10 times less often").gain;
    assert_true(fabs(gain - 50.0 / 14) < 0.01);
    pl_summary once = { SINGLE, ROWS(busy), .checkpoint_seconds = 40,
                        .checkpoints = 1 };
    assert_ok(pl_bottleneck_find(&once, &plain));
    assert_string_equal("checkpoints", once.bottleneck.what);
    assert_int_equal(0, once.bottleneck.cure_count);
}

static void bottleneck_of_nothing_is_null(void **state)
{
    (void)state;
    pl_worker_report row = pl_worker_report_lost(0, 3, 0);
    pl_summary summary = { .stopped_by = "steps",
                           .per_worker = &row,
                           .worker_count = 1 };
    pl_json *json;
    assert_ok(pl_bottleneck_find(&summary, &plain));
    assert_false(summary.has_bottleneck);
    assert_ok(pl_fields_write(&pl_summary_fields, &summary, &json));
    assert_true(pl_json_has(json, "bottleneck"));
    pl_json_free(json);
}

UNIT_TESTS(
    cmocka_unit_test(bottleneck_names_cause_and_culprit),
    cmocka_unit_test(bottleneck_cures_are_above_five_percent),
    cmocka_unit_test(bottleneck_gains_are_those_of_the_step),
    cmocka_unit_test(bottleneck_names_a_codec_only_where_there_is_one),
    cmocka_unit_test(bottleneck_distinguishes_own_tasks_from_other_processes),
    cmocka_unit_test(bottleneck_of_a_crowded_host_blames_no_worker),
    cmocka_unit_test(bottleneck_ignores_unavoidable_tests_and_checkpoints),
    cmocka_unit_test(bottleneck_of_nothing_is_null))
