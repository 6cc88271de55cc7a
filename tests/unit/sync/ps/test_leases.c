/* Gradients that are read in another task's memory: it stays mapped as long as
 * they are needed, and nothing beside it is read.
 *
 * Invariants and the tests that check them:
 *   core P5  ps_leases_keep_a_gradient_until_its_step */
#include "support/ps.h"

#include <sys/mman.h>
#include <unistd.h>

/* Memory of another process, for one gradient of `count` floats at the end of
 * it: what follows it is not mapped. */
typedef struct theirs {
    pl_lease *lease;
    char *memory;
    size_t bytes;
    float *gradient;
} theirs;

static theirs map_theirs(int64_t count, float value)
{
    theirs t = { .bytes = (size_t)sysconf(_SC_PAGESIZE) };
    t.memory =
        mmap(NULL, 3 * t.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(MAP_FAILED, t.memory);
    t.memory += t.bytes; /* between two pages that cannot be read */
    assert_int_equal(0, mprotect(t.memory, t.bytes, PROT_READ | PROT_WRITE));
    t.gradient = (float *)(void *)(t.memory + t.bytes) - count;
    for (int64_t i = 0; i < count; i++)
        t.gradient[i] = value;
    assert_ok(pl_lease_new_take(&t.lease, t.memory, t.bytes));
    return t;
}

static bool is_mapped(const theirs *t)
{
    unsigned char there;
    return mincore(t->memory, t->bytes, &there) == 0;
}

static void unmap_guards(const theirs *t)
{
    munmap(t->memory - t->bytes, t->bytes);
    munmap(t->memory + t->bytes, t->bytes);
}

/* A piece of the worker's request, read where it lies. */
static void piece_at(ps_rig *rig, int32_t worker, pl_frame frame, int64_t first,
                     uint32_t count, const float *at, pl_lease *lease)
{
    frame.first = first;
    frame.count = count;
    frame.payload_bytes = count * (uint32_t)sizeof(float);
    frame.generation = rig->generation;
    pl_ps_core_receive(rig->core,
                       &(pl_message) { .from = rig->peer[worker],
                                       .frame = frame,
                                       .payload = at,
                                       .lease = lease },
                       rig->now_ns);
}

/* P5 */
static void ps_leases_keep_a_gradient_until_its_step(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { 0 }, 0);
    theirs t = map_theirs(4, -2.0f);
    pl_frame frame = ps_request(rig, 0, PL_FRAME_PUSH);
    piece_at(rig, 0, frame, 0, 4, t.gradient, t.lease);
    pl_lease_release(t.lease); /* its channel is closed */
    ps_tick(rig, 1);
    assert_true(is_mapped(&t));
    ps_push(rig, 1, 0, -4.0f);
    ps_answer_of(rig, 0, 0, 1, 3.0f);
    ps_answer_of(rig, 1, 0, 1, 3.0f);
    ps_tick(rig, 1);
    assert_false(is_mapped(&t));
    unmap_guards(&t);
    ps_close(rig);
}

static void ps_leases_end_with_the_server(void **state)
{
    (void)state;
    ps_rig *rig = ps_start((pl_ps_core_opts) { 0 }, 0);
    theirs t = map_theirs(4, -2.0f);
    pl_frame frame = ps_request(rig, 0, PL_FRAME_PUSH);
    piece_at(rig, 0, frame, 0, 4, t.gradient, t.lease);
    pl_lease_release(t.lease);
    ps_close(rig);
    assert_false(is_mapped(&t));
    unmap_guards(&t);
}

/* The last piece lies at the beginning of the memory: the first would lie
 * before it.  The same the other way round.  What comes over the network then
 * must not make the server read there. */
static void ps_leases_cover_the_whole_gradient_or_none(void **state)
{
    (void)state;
    static const float grad[4] = { -2.0f, -2.0f, -2.0f, -2.0f };
    for (int late = 0; late <= 1; late++) {
        ps_rig *rig = ps_open(
            (pl_ps_core_opts) { .workers = 1, .count = 8, .piece = 4 }, "sgd");
        ps_join(rig, 0, 0);
        pl_frame init = ps_request(rig, 0, PL_FRAME_INIT);
        ps_piece(rig, 0, init, 0, 4, rig->params);
        ps_piece(rig, 0, init, 4, 4, rig->params);
        ps_forget(rig);
        theirs t = map_theirs(4, -2.0f);
        float *begin = (float *)(void *)t.memory;
        memcpy(begin, grad, sizeof grad);
        pl_frame push = ps_request(rig, 0, PL_FRAME_PUSH);
        if (late != 0)
            piece_at(rig, 0, push, 0, 4, t.gradient, t.lease);
        else
            piece_at(rig, 0, push, 4, 4, begin, t.lease);
        ps_piece(rig, 0, push, late != 0 ? 4 : 0, 4, grad);
        assert_int_equal(1, ps_look(rig, 0).step);
        for (int i = 0; i < 8; i++)
            assert_true(rig->params[i] == 2.0f);
        pl_lease_release(t.lease);
        unmap_guards(&t);
        ps_close(rig);
    }
}

UNIT_TESTS(cmocka_unit_test(ps_leases_keep_a_gradient_until_its_step),
           cmocka_unit_test(ps_leases_end_with_the_server),
           cmocka_unit_test(ps_leases_cover_the_whole_gradient_or_none))
