/* What every codec must guarantee, and that ring and parameter servers send
 * gradients through the table, and nothing else. */
#include "sync/codec.h"

#include "support/codec.h"
#include "support/ps.h"
#include "support/ring.h"
#include "sync/ps/worker/client.h"

#include <math.h>
#include <stdlib.h>

#define COUNT  100
#define PIECE  16
#define SENT   64
#define CLIENT 10 /* as the server knows it */

/* --- the table --------------------------------------------------------- */

static void check_codec(const pl_codec *codec)
{
    float floats[COUNT], room[COUNT], back[COUNT], sum[COUNT];
    pl_coder coder;
    assert_ok(pl_coder_init(&coder, codec, COUNT));
    for (int i = 0; i < COUNT; i++) {
        floats[i] = (float)(i - 40) * 0.37f;
        sum[i] = 1;
    }
    for (int64_t n = 1; n <= COUNT; n++)
        assert_true(codec->encoded_most(codec, n) <= (size_t)n * sizeof(float));
    pl_encoded data = pl_coder_encode(&coder, 0, COUNT, floats, room);
    assert_true(data.size <= codec->encoded_most(codec, COUNT));
    assert_true((data.bytes == floats) == codec->in_place);
    const float *got = pl_codec_decode(codec, COUNT, data, back);
    assert_non_null(got);
    assert_true((got == data.bytes) == codec->in_place);
    assert_true(
        pl_codec_combine(codec, pl_kernels_best(), COUNT, data, false, sum));
    for (int i = 0; i < COUNT; i++) {
        assert_true(codec->may_change_bits || got[i] == floats[i]);
        assert_true(sum[i] == 1 + got[i]);
    }
    /* Longer than any piece of so many floats. */
    data.size = codec->encoded_most(codec, COUNT) + 1;
    assert_null(pl_codec_decode(codec, COUNT, data, back));
    assert_false(
        pl_codec_combine(codec, pl_kernels_best(), COUNT, data, false, sum));
    pl_coder_close(&coder);
    assert_int_equal(0, pl_mem_live());
}

static void codecs_round_trip(void **state)
{
    (void)state;
    for (int i = 0; pl_codecs[i] != NULL; i++)
        check_codec(pl_codecs[i]);
    check_codec(&halves);
    assert_string_equal("plain", pl_codecs[0]->name);
}

static void plain_refuses_a_piece_of_another_size(void **state)
{
    (void)state;
    float floats[4] = { 0 }, own[4] = { 0 };
    for (size_t size = 0; size < sizeof floats; size++) {
        pl_encoded data = { floats, size };
        assert_null(pl_codec_decode(&pl_codec_plain, 4, data, NULL));
        assert_false(pl_codec_combine(&pl_codec_plain, pl_kernels_best(), 4,
                                      data, false, own));
    }
}

static float bits_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void bf16_rounds_to_the_nearest_even(void **state)
{
    (void)state;
    static const struct {
        uint32_t from, to;
    } cases[] = {
        { 0x3f800000, 0x3f800000 },                             /* 1 */
        { 0x3f807fff, 0x3f800000 }, { 0x3f808000, 0x3f800000 }, /* tie, down */
        { 0x3f808001, 0x3f810000 }, { 0x3f818000, 0x3f820000 }, /* tie, up */
        { 0xbf818000, 0xbf820000 }, { 0x80000000, 0x80000000 }, /* -0 */
        { 0x00000001, 0x00000000 }, { 0x7f7fffff, 0x7f800000 }, /* infinity */
        { 0xff800000, 0xff800000 }, { 0x7f800001, 0x7fc00000 }, /* no number */
        { 0x7fffffff, 0x7fff0000 },
    };
    pl_coder coder;
    assert_ok(pl_coder_init(&coder, &pl_codec_bf16, 1));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float from = bits_of(cases[i].from), to = bits_of(cases[i].to), room;
        float back;
        pl_encoded data = pl_coder_encode(&coder, 0, 1, &from, &room);
        assert_int_equal(2, data.size);
        assert_non_null(pl_codec_decode(&pl_codec_bf16, 1, data, &back));
        assert_memory_equal(&to, &back, sizeof to);
    }
    pl_coder_close(&coder);
}

static void bf16_refuses_a_piece_of_another_size(void **state)
{
    (void)state;
    float own[4] = { 0 }, room[4];
    uint16_t halves_of[4] = { 0 };
    for (size_t size = 0; size < sizeof halves_of; size++) {
        pl_encoded data = { halves_of, size };
        assert_null(pl_codec_decode(&pl_codec_bf16, 4, data, room));
        assert_false(pl_codec_combine(&pl_codec_bf16, pl_kernels_best(), 4,
                                      data, false, own));
    }
}

/* Three of ten numbers. */
static void topk_sends_the_largest_and_keeps_the_rest(void **state)
{
    (void)state;
    static const float first[10] = { 1, -4, 2, 0, 2, -2, 0.5f, 0, 1, -0.25f };
    static const float zero[10] = { 0 };
    pl_codec_topk topk = pl_codec_topk_of(0.3);
    float room[10], back[10], expected[10] = { 0 };
    pl_coder coder;
    assert_ok(pl_coder_init(&coder, &topk.base, 10));
    pl_encoded data = pl_coder_encode(&coder, 0, 10, first, room);
    assert_int_equal(24, data.size);
    assert_non_null(pl_codec_decode(&topk.base, 10, data, back));
    expected[1] = -4, expected[2] = 2, expected[4] = 2; /* the first two 2s */
    assert_memory_equal(expected, back, sizeof back);
    /* As long as that does not count, it is the same again. */
    data = pl_coder_encode(&coder, 0, 10, first, room);
    assert_non_null(pl_codec_decode(&topk.base, 10, data, back));
    assert_memory_equal(expected, back, sizeof back);
    pl_coder_keep(&coder);
    data = pl_coder_encode(&coder, 0, 10, zero, room);
    assert_non_null(pl_codec_decode(&topk.base, 10, data, back));
    assert_true(back[5] == -2 && back[0] == 1 && back[8] == 1);
    pl_coder_keep(&coder);
    const float *rest = pl_coder_slot(&coder, 0);
    assert_true(rest[6] == 0.5f && rest[9] == -0.25f && rest[1] == 0);
    assert_null(pl_coder_slot(&coder, 1));
    pl_coder_close(&coder);
}

static void topk_sends_nan(void **state)
{
    (void)state;
    float floats[10] = { 3, INFINITY, 2, -1, 0, 0, 0, NAN, 0, 0 };
    pl_codec_topk topk = pl_codec_topk_of(0.2);
    float room[10], back[10];
    pl_coder coder;
    assert_ok(pl_coder_init(&coder, &topk.base, 10));
    pl_encoded data = pl_coder_encode(&coder, 0, 10, floats, room);
    assert_non_null(pl_codec_decode(&topk.base, 10, data, back));
    assert_true(isinf(back[1]) && isnan(back[7]) && back[0] == 0);
    pl_coder_keep(&coder);
    assert_true(pl_coder_slot(&coder, 0)[7] == 0);
    pl_coder_close(&coder);
}

static void topk_refuses_places_that_do_not_rise_or_are_outside(void **state)
{
    (void)state;
    static const uint32_t wrong[][2] = { { 1, 1 }, { 2, 1 }, { 0, 10 } };
    pl_codec_topk topk = pl_codec_topk_of(0.2);
    float own[10] = { 0 }, room[10];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint32_t piece[4] = { wrong[i][0], wrong[i][1], 0x3f800000,
                              0x3f800000 };
        pl_encoded data = { piece, sizeof piece };
        assert_null(pl_codec_decode(&topk.base, 10, data, room));
        assert_false(pl_codec_combine(&topk.base, pl_kernels_best(), 10, data,
                                      false, own));
        data.size -= 4;
        assert_null(pl_codec_decode(&topk.base, 10, data, room));
        assert_true(own[0] == 0 && own[1] == 0);
    }
}

/* Here the sum itself lies where the places are: the first number changes the
 * second place. */
static void topk_piece_that_changes_while_it_is_read_stays_inside(void **state)
{
    (void)state;
    static const uint32_t piece[4] = { 1, 7, 0x3f800000, 0x40000000 };
    pl_codec_topk topk = pl_codec_topk_of(0.2);
    float own[10] = { 0 }, before[10] = { 0 };
    memcpy(own, piece, sizeof piece);
    memcpy(before, piece, sizeof piece);
    assert_true(pl_codec_combine(&topk.base, pl_kernels_best(), 10,
                                 (pl_encoded) { own, sizeof piece }, false,
                                 own));
    assert_true(own[1] >= 1);
    before[1] = own[1];
    assert_memory_equal(before, own, sizeof own);
}

/* --- the ring ---------------------------------------------------------- */

static float term(int32_t rank, int64_t i)
{
    return (float)((i * 37 + rank * 1009) % 513) * 0.37f + 1.3f;
}

static void sum_block(ring_net *net, bool exact)
{
    for (int32_t w = 0; w < net->workers; w++)
        for (int64_t i = 0; i < net->floats; i++)
            net->node[w].memory[i] = term(w, i);
    net->piece_bytes = net->piece_floats = 0;
    pl_sum_range range = { .count = net->floats, .exact = exact };
    for (int32_t w = 0; w < net->workers; w++)
        assert_int_equal(0, pl_ring_core_start(net->node[w].core, &range));
    ring_settle(net);
    for (int32_t w = 0; w < net->workers; w++) {
        assert_true(pl_ring_core_is_quiet(net->node[w].core));
        pl_ring_core_quiet(net->node[w].core);
        assert_int_equal(0, pl_ring_core_refused(net->node[w].core));
        assert_memory_equal(net->node[0].memory, net->node[w].memory,
                            (size_t)net->floats * sizeof(float));
    }
}

/* Upper halves lose up to 2^-7 of a number at each hop. */
static void check_close(const ring_net *net)
{
    for (int64_t i = 0; i < net->floats; i++) {
        double exact = 0;
        for (int32_t w = 0; w < net->workers; w++)
            exact += (double)term(w, i);
        assert_true(fabs((double)net->node[0].memory[i] - exact) <=
                    exact * net->workers / 64);
    }
}

static void ring_sends_gradients_through_the_codec(void **state)
{
    (void)state;
    static const int64_t sizes[] = { 1, 100, 5000, 300000 };
    ring_net *net = malloc(sizeof *net);
    for (int32_t n = 2; n <= RING_FEW; n++)
        for (size_t s = 0; s < 2 * sizeof sizes / sizeof *sizes; s++) {
            ring_init(net, n, sizes[s / 2], (uint64_t)n * 10 + s);
            net->shared = s % 2 == 1;
            net->codec = &halves;
            ring_form(net);
            for (int round = 0; round < 3; round++) {
                sum_block(net, false);
                assert_int_equal(2 * net->piece_floats, net->piece_bytes);
                check_close(net);
            }
            ring_close(net);
        }
    free(net);
    assert_int_equal(0, pl_mem_live());
}

/* What was added up over all rounds, and what ranks still hold back, is what
 * they were given: numbers here are small and whole, so that is exact. */
static void check_nothing_is_lost(ring_net *net, int64_t floats)
{
    double *left = calloc((size_t)floats, sizeof *left);
    assert_non_null(left);
    for (int round = 0; round < 4; round++) {
        pl_sum_range range = { .count = floats };
        for (int32_t w = 0; w < net->workers; w++) {
            for (int64_t i = 0; i < floats; i++) {
                float value = (float)((i * 7 + w * 3 + round) % 11 - 5);
                net->node[w].memory[i] = value;
                left[i] += (double)value;
            }
            pl_ring_core_start(net->node[w].core, &range);
        }
        ring_settle(net);
        for (int32_t w = 0; w < net->workers; w++) {
            pl_ring_core_quiet(net->node[w].core);
            pl_ring_core_keep(net->node[w].core);
            assert_memory_equal(net->node[0].memory, net->node[w].memory,
                                (size_t)floats * sizeof(float));
        }
        for (int64_t i = 0; i < floats; i++)
            left[i] -= (double)net->node[0].memory[i];
    }
    for (int64_t i = 0; i < floats; i++) {
        double held = 0;
        for (int32_t w = 0; w < net->workers; w++)
            held += (double)pl_ring_core_slot(net->node[w].core, 0)[i];
        assert_true(held == left[i]);
    }
    free(left);
}

static void ring_loses_nothing_with_topk(void **state)
{
    (void)state;
    static const int64_t sizes[] = { 100, 5000, 300000 };
    pl_codec_topk topk = pl_codec_topk_of(0.05);
    ring_net *net = malloc(sizeof *net);
    for (int32_t n = 2; n <= RING_FEW; n++)
        for (size_t s = 0; s < 2 * sizeof sizes / sizeof *sizes; s++) {
            ring_init(net, n, sizes[s / 2], (uint64_t)n * 10 + s);
            net->shared = s % 2 == 1;
            net->codec = &topk.base;
            ring_form(net);
            check_nothing_is_lost(net, sizes[s / 2]);
            ring_close(net);
        }
    free(net);
    assert_int_equal(0, pl_mem_live());
}

static void ring_sums_parameters_exactly_with_any_codec(void **state)
{
    (void)state;
    ring_net *plain = malloc(sizeof *plain), *lossy = malloc(sizeof *lossy);
    for (int shared = 0; shared < 2; shared++) {
        ring_init(plain, 3, 5000, 1);
        ring_init(lossy, 3, 5000, 2);
        plain->shared = lossy->shared = shared == 1;
        lossy->codec = &halves;
        ring_form(plain);
        ring_form(lossy);
        sum_block(plain, false);
        sum_block(lossy, false);
        sum_block(lossy, true);
        assert_int_equal(4 * lossy->piece_floats, lossy->piece_bytes);
        assert_memory_equal(plain->node[0].memory, lossy->node[0].memory,
                            5000 * sizeof(float));
        ring_close(plain);
        ring_close(lossy);
    }
    free(plain);
    free(lossy);
    assert_int_equal(0, pl_mem_live());
}

/* --- a worker and its parameter server --------------------------------- */

typedef struct letter {
    pl_frame frame;
    const void *payload; /* as it was given */
    void *copy;          /* of a payload that is not lasting; or NULL */
} letter;

typedef struct pair {
    ps_rig *server;
    pl_ps_client *client;
    float params[PS_FLOATS], grad[PS_FLOATS], encoded[PS_FLOATS];
    letter sent[SENT];
    int made, taken;
    int pushes; /* pieces of gradients that the worker sent */
} pair;

static void on_send(void *context, int32_t ps, const pl_frame *frame,
                    const void *payload, bool lasting)
{
    pair *p = context;
    assert_int_equal(0, ps);
    assert_true(p->made < SENT);
    letter *l = &p->sent[p->made++];
    *l = (letter) { .frame = *frame, .payload = payload };
    p->pushes += frame->kind == PL_FRAME_PUSH && frame->count > 0;
    if (!lasting && frame->payload_bytes > 0) {
        l->copy = malloc(frame->payload_bytes);
        assert_non_null(l->copy);
        memcpy(l->copy, payload, frame->payload_bytes);
        l->payload = l->copy;
    }
}

/* `encoded`: memory of the server for parameters that it encodes; or NULL. */
static void open_pair_with(pair *p, const pl_codec *codec, float *encoded)
{
    static const pl_ps_client_ops ops = { .send = on_send };
    *p = (pair) { 0 };
    p->server = ps_open((pl_ps_core_opts) { .mode = PL_PS_ASYNC,
                                            .workers = 1,
                                            .count = PS_FLOATS,
                                            .piece = PIECE,
                                            .codec = codec,
                                            .encoded = encoded },
                        "sgd");
    assert_ok(pl_ps_client_new(&p->client,
                               &(pl_ps_client_opts) {
                                   .role = "worker",
                                   .ps = 1,
                                   .workers = 1,
                                   .mode = PL_PS_ASYNC,
                                   .count = PS_FLOATS,
                                   .piece = PIECE,
                                   .params = p->params,
                                   .codec = codec,
                                   .encoded = p->encoded,
                                   .host = "here",
                                   .ops = &ops,
                                   .context = p,
                               },
                               p->server->now_ns));
}

static void open_pair(pair *p, const pl_codec *codec)
{
    open_pair_with(p, codec, NULL);
}

static void close_pair(pair *p)
{
    pl_ps_client_free(p->client);
    ps_close(p->server);
}

static void drop(pair *p)
{
    for (; p->taken < p->made; p->taken++)
        free(p->sent[p->taken].copy);
    p->taken = p->made = 0;
}

/* Messages both ways until there are none. */
static void settle(pair *p)
{
    ps_rig *server = p->server;
    while (p->taken < p->made || server->taken < server->made) {
        for (; p->taken < p->made; p->taken++) {
            letter *l = &p->sent[p->taken];
            pl_message message = { .from = CLIENT,
                                   .frame = l->frame,
                                   .payload = l->payload };
            pl_ps_core_receive(server->core, &message, server->now_ns);
            free(l->copy);
        }
        p->taken = p->made = 0;
        for (; server->taken < server->made; server->taken++) {
            const ps_sent *s = &server->sent[server->taken];
            pl_message message = { .frame = s->frame, .payload = s->bytes };
            pl_ps_client_receive(p->client, 0, &message, server->now_ns);
        }
        ps_forget(server);
    }
}

static void start(pair *p)
{
    pl_ps_client_join(p->client);
    settle(p);
    for (int i = 0; i < PS_FLOATS; i++)
        p->params[i] = 100;
    pl_ps_client_init(p->client, 0);
    settle(p);
    assert_false(pl_ps_client_busy(p->client));
}

static void begin_push(pair *p, int64_t step, float scale)
{
    for (int i = 0; i < PS_FLOATS; i++)
        p->grad[i] = (float)(i + 1) * scale;
    p->pushes = 0;
    pl_ps_client_push(p->client, step, p->grad);
    pl_ps_client_ready(p->client, 0);
}

static void end_push(pair *p)
{
    settle(p);
    assert_false(pl_ps_client_busy(p->client));
    assert_ok(pl_ps_client_outcome(p->client));
}

/* What a server of its own would have after this push. */
static void apply(pl_coder *coder, const pair *p, float *params)
{
    float room[PIECE], back[PIECE];
    for (int first = 0; first < PS_FLOATS; first += PIECE) {
        pl_encoded data =
            pl_coder_encode(coder, first, PIECE, p->grad + first, room);
        const float *got = pl_codec_decode(coder->codec, PIECE, data, back);
        for (int i = 0; i < PIECE; i++)
            params[first + i] -= got[i];
    }
    pl_coder_keep(coder);
}

/* Three pushes; of the second all messages are lost at first. */
static void push_through(const pl_codec *codec)
{
    pair p;
    pl_coder coder;
    float expected[PS_FLOATS];
    assert_ok(pl_coder_init(&coder, codec, PS_FLOATS));
    open_pair(&p, codec);
    start(&p);
    memcpy(expected, p.params, sizeof expected);
    for (int step = 0; step < 3; step++) {
        begin_push(&p, step, 0.37f + (float)step);
        assert_int_equal(PS_FLOATS / PIECE, p.pushes);
        for (int i = 0; i < p.made; i++)
            assert_int_equal(codec->encoded_most(codec, PIECE),
                             p.sent[i].frame.payload_bytes);
        if (step == 1) {
            drop(&p);
            p.server->now_ns += PL_PROBE_MS * PS_MS;
            pl_ps_client_tick(p.client, p.server->now_ns);
        }
        end_push(&p);
        apply(&coder, &p, expected);
        assert_memory_equal(expected, p.params, sizeof expected);
        assert_memory_equal(expected, p.server->params, sizeof expected);
    }
    pl_coder_close(&coder);
    close_pair(&p);
}

static void ps_pushes_gradients_through_the_codec(void **state)
{
    (void)state;
    push_through(&halves);
    for (int i = 0; pl_codecs[i] != NULL; i++)
        push_through(pl_codecs[i]);
}

/* What `codec` makes of the server's parameters. */
static void assert_rounded(const pair *p, const pl_codec *codec)
{
    float room[PS_FLOATS], back[PS_FLOATS];
    pl_codec_span span = { .count = PS_FLOATS, .floats = p->server->params };
    pl_encoded data = codec->encode(codec, &span, room);
    assert_non_null(pl_codec_decode(codec, PS_FLOATS, data, back));
    assert_memory_equal(back, p->params, sizeof back);
}

/* ... but for those that are asked for as they are. */
static void ps_answers_with_encoded_parameters(void **state)
{
    (void)state;
    pair p;
    float encoded[PS_FLOATS];
    const pl_codec *codec = &pl_codec_bf16;
    open_pair_with(&p, codec, encoded);
    start(&p);
    for (int step = 0; step < 3; step++) {
        begin_push(&p, step, 0.37f + (float)step);
        end_push(&p);
        assert_rounded(&p, codec);
        assert_memory_not_equal(p.server->params, p.params, sizeof p.params);
    }
    pl_ps_client_pull(p.client, PL_PULL_EXACT, 0);
    settle(&p);
    assert_memory_equal(p.server->params, p.params, sizeof p.params);
    pl_ps_client_pull(p.client, 0, 0);
    settle(&p);
    assert_rounded(&p, codec);
    /* dense D3: the same version is not encoded again. */
    float before[PS_FLOATS];
    memcpy(before, p.params, sizeof before);
    p.server->params[0] += 1;
    pl_ps_client_pull(p.client, 0, 0);
    settle(&p);
    assert_memory_equal(before, p.params, sizeof before);
    close_pair(&p);
}

/* Half of a piece is no piece of plain floats, nor of a codec that does not
 * encode parameters. */
static void ps_client_refuses_parameters_of_another_size(void **state)
{
    (void)state;
    const pl_codec *const codecs[] = { &pl_codec_plain, &pl_codec_bf16,
                                       &pl_codec_topk_default.base };
    for (size_t c = 0; c < sizeof codecs / sizeof *codecs; c++)
        for (uint32_t bytes = 1; bytes < PIECE * sizeof(float); bytes++) {
            pair p;
            if (codecs[c] == &pl_codec_bf16 && bytes == PIECE * 2)
                continue;
            open_pair(&p, codecs[c]);
            start(&p);
            begin_push(&p, 0, 1);
            for (; p.taken < p.made; p.taken++) {
                pl_message message = { .from = CLIENT,
                                       .frame = p.sent[p.taken].frame,
                                       .payload = p.sent[p.taken].payload };
                pl_ps_core_receive(p.server->core, &message, p.server->now_ns);
                free(p.sent[p.taken].copy);
            }
            p.taken = p.made = 0;
            p.server->sent[p.server->taken].frame.payload_bytes = bytes;
            settle(&p);
            assert_fails(PL_CLOSED, "ps 0 sent malformed parameters",
                         pl_ps_client_outcome(p.client));
            close_pair(&p);
        }
}

static void ps_pushes_plain_gradients_in_place(void **state)
{
    (void)state;
    pair p;
    open_pair(&p, NULL);
    start(&p);
    begin_push(&p, 0, 1);
    for (int i = 0; i < p.made; i++)
        assert_ptr_equal(p.grad + p.sent[i].frame.first, p.sent[i].payload);
    end_push(&p);
    close_pair(&p);
}

static void ps_refuses_what_the_codec_cannot_decode(void **state)
{
    (void)state;
    pair p;
    open_pair(&p, &halves);
    start(&p);
    begin_push(&p, 0, 1);
    p.sent[0].frame.payload_bytes--;
    settle(&p);
    assert_fails(PL_CLOSED,
                 "push of 16 floats at 32: 31 bytes are not a halves piece of "
                 "a gradient",
                 pl_ps_client_outcome(p.client));
    for (int i = 0; i < PS_FLOATS; i++)
        assert_true(p.server->params[i] == 100);
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codecs_round_trip),
        cmocka_unit_test(plain_refuses_a_piece_of_another_size),
        cmocka_unit_test(bf16_rounds_to_the_nearest_even),
        cmocka_unit_test(bf16_refuses_a_piece_of_another_size),
        cmocka_unit_test(topk_sends_the_largest_and_keeps_the_rest),
        cmocka_unit_test(topk_sends_nan),
        cmocka_unit_test(topk_refuses_places_that_do_not_rise_or_are_outside),
        cmocka_unit_test(topk_piece_that_changes_while_it_is_read_stays_inside),
        cmocka_unit_test(ring_loses_nothing_with_topk),
        cmocka_unit_test(ring_sends_gradients_through_the_codec),
        cmocka_unit_test(ring_sums_parameters_exactly_with_any_codec),
        cmocka_unit_test(ps_pushes_gradients_through_the_codec),
        cmocka_unit_test(ps_answers_with_encoded_parameters),
        cmocka_unit_test(ps_client_refuses_parameters_of_another_size),
        cmocka_unit_test(ps_pushes_plain_gradients_in_place),
        cmocka_unit_test(ps_refuses_what_the_codec_cannot_decode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
