/* The handshake by itself: what both ends agree on, its known bytes, and that
 * no byte of it can be changed.
 *
 * Invariants and the tests that check them:
 *   handshake H1  handshake_notices_every_changed_byte,
 *                 handshake_refuses_a_message_of_another_connection
 *   handshake H2  handshake_makes_no_key_for_strangers
 *   handshake H3  handshake_agrees_at_both_ends */
#include "net/tcp/handshake.h"
#include "support/unit.h"

typedef struct pair {
    pl_job_keys keys;
    pl_handshake_config client, server;
    pl_handshake c, s;
    uint8_t said[4][PL_HANDSHAKE_BYTES];
} pair;

static void pair_init(pair *p, pl_mechanism mechanism)
{
    *p = (pair) { .keys = { .workers = 2, .ps = 1 } };
    for (size_t i = 0; i < PL_SECRET_BYTES; i++)
        p->keys.secret.bytes[i] = (uint8_t)i;
    p->server = (pl_handshake_config) {
        .server = true,
        .mechanism = mechanism,
        .port = 4711,
    };
    p->client = (pl_handshake_config) {
        .mechanism = mechanism,
        .port = 4711,
        .identity = "0123456789abcde",
    };
    if (mechanism == PL_MECHANISM_NONE)
        return;
    p->server.keys = p->client.keys = &p->keys;
    p->server.self = p->client.wanted = (pl_principal) { PL_PRINCIPAL_PS, 0 };
    p->client.self = (pl_principal) { PL_PRINCIPAL_WORKER, 1 };
}

/* Run it; byte `at` of message `number` is changed on its way (-1: none).
 * True when both ends are done. */
static bool pair_run(pair *p, int number, size_t at, uint8_t change)
{
    bool answer;
    pl_handshake_result results[2] = { PL_HANDSHAKE_MORE, PL_HANDSHAKE_MORE };
    p->s = (pl_handshake) { .step = 0 };
    assert_ok(pl_handshake_begin(&p->c, &p->client, p->said[0]));
    for (int i = 0; i < 4; i++) {
        bool to_server = i % 2 == 0;
        if (number == i)
            p->said[i][at] ^= change;
        uint8_t *out = p->said[i < 3 ? i + 1 : 0];
        results[to_server] = pl_handshake_take(
            to_server ? &p->s : &p->c, to_server ? &p->server : &p->client,
            PL_VERDICT_WELCOME, p->said[i], out, &answer);
        if (results[to_server] == PL_HANDSHAKE_REFUSED)
            return false;
        if (!answer)
            break;
    }
    return results[0] == PL_HANDSHAKE_DONE && results[1] == PL_HANDSHAKE_DONE;
}

static void handshake_agrees_at_both_ends(void **state)
{
    (void)state;
    for (int mechanism = 0; mechanism < PL_MECHANISMS; mechanism++) {
        pair p, again;
        pair_init(&p, (pl_mechanism)mechanism);
        assert_true(pair_run(&p, -1, 0, 0));
        assert_true(pl_principal_equal(p.client.self, p.s.who));
        assert_true(pl_principal_equal(p.client.wanted, p.c.who));
        assert_memory_equal(p.client.identity, p.s.identity, PL_IDENTITY_BYTES);
        assert_memory_equal(p.c.session, p.s.session, sizeof p.c.session);
        if (mechanism != PL_MECHANISM_ENCRYPTED)
            continue;
        /* Fresh for each connection and each direction. */
        pair_init(&again, (pl_mechanism)mechanism);
        assert_true(pair_run(&again, -1, 0, 0));
        assert_memory_not_equal(p.c.session, again.c.session, 32);
        assert_memory_not_equal(p.c.session[0], p.c.session[1], 16);
        pl_handshake_wipe(&p.c);
        static const uint8_t zeros[sizeof p.c.session];
        assert_memory_equal(zeros, p.c.session, sizeof zeros);
    }
}

/* Every bit of every message counts. */
static void handshake_notices_every_changed_byte(void **state)
{
    (void)state;
    for (int mechanism = PL_MECHANISM_PROOF; mechanism < PL_MECHANISMS;
         mechanism++)
        for (int number = 0; number < 4; number++)
            for (size_t at = 0; at < PL_HANDSHAKE_BYTES; at++) {
                pair p;
                pair_init(&p, (pl_mechanism)mechanism);
                assert_false(pair_run(&p, number, at, 0x40));
            }
}

static void handshake_refuses_a_message_of_another_connection(void **state)
{
    (void)state;
    pair first, second;
    bool answer;
    uint8_t out[PL_HANDSHAKE_BYTES], hello[PL_HANDSHAKE_BYTES];
    pair_init(&first, PL_MECHANISM_PROOF);
    assert_true(pair_run(&first, -1, 0, 0));
    pair_init(&second, PL_MECHANISM_PROOF);
    memcpy(hello, first.c.said[0], sizeof hello);
    assert_int_equal(PL_HANDSHAKE_MORE,
                     pl_handshake_take(&second.s, &second.server,
                                       PL_VERDICT_WELCOME, hello, out,
                                       &answer));
    assert_int_equal(PL_HANDSHAKE_REFUSED,
                     pl_handshake_take(&second.s, &second.server,
                                       PL_VERDICT_WELCOME, first.c.said[2], out,
                                       &answer));
    assert_true(answer);
}

/* The server's own key is the first thing that costs anything. */
static void handshake_makes_no_key_for_strangers(void **state)
{
    (void)state;
    static const uint8_t none[32];
    pair p;
    pair_init(&p, PL_MECHANISM_ENCRYPTED);
    assert_false(pair_run(&p, 2, PL_HANDSHAKE_BYTES - 1, 1)); /* the proof */
    assert_memory_equal(none, p.s.ephemeral, sizeof none);
    assert_true(pair_run(&p, -1, 0, 0));
    assert_memory_not_equal(none, p.s.ephemeral, sizeof none);
}

static void hex(char *out, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* Computed by another program (hashlib's BLAKE2b), with nonces of 0x11 and
 * 0x22: tasks of two versions meet, so these bytes never change within one. */
static void handshake_has_known_bytes(void **state)
{
    (void)state;
    static const char expected[] =
        "504c503100000000000000000000000000000000000000000000000000000000"
        "0000000000000000"
        "2dfde3e0092605a8c3b160a55d2db9318c8cebd0024161d5ddec1e61dfa66a48";
    pair p;
    uint8_t hello[PL_HANDSHAKE_BYTES], out[PL_HANDSHAKE_BYTES];
    static const uint8_t server_hello[] = { 'P', 'L', 'H', '1', 2,   0,
                                            1,   0,   2,   0,   103, 18 };
    bool answer;
    char text[2 * PL_HANDSHAKE_BYTES + 1];
    pair_init(&p, PL_MECHANISM_PROOF);
    assert_ok(pl_handshake_begin(&p.c, &p.client, hello));
    static const uint8_t client_hello[] = { 'P', 'L', 'H', '1', 2, 0, 1, 0,
                                            1,   2,   103, 18,  1, 0, 0, 0 };
    assert_memory_equal(client_hello, hello, sizeof client_hello);
    assert_memory_equal("0123456789abcde", hello + 24, 16);
    memset(p.c.said[0] + 40, 0x11, 32);
    memset(hello, 0, sizeof hello);
    memcpy(hello, server_hello, sizeof server_hello);
    memset(hello + 40, 0x22, 32);
    assert_int_equal(PL_HANDSHAKE_MORE,
                     pl_handshake_take(&p.c, &p.client, PL_VERDICT_WELCOME,
                                       hello, out, &answer));
    hex(text, out, sizeof out);
    assert_string_equal(expected, text);
}

static void handshake_recognises_other_programs_early(void **state)
{
    (void)state;
    pl_handshake fresh = { .step = 0 };
    assert_true(pl_handshake_plausible(&fresh, (const uint8_t *)"PL", 2));
    assert_true(pl_handshake_plausible(&fresh, (const uint8_t *)"PLH1", 4));
    assert_false(pl_handshake_plausible(&fresh, (const uint8_t *)"G", 1));
    assert_false(pl_handshake_plausible(&fresh, (const uint8_t *)"PLH2xx", 6));
}

UNIT_TESTS(cmocka_unit_test(handshake_agrees_at_both_ends),
           cmocka_unit_test(handshake_notices_every_changed_byte),
           cmocka_unit_test(handshake_refuses_a_message_of_another_connection),
           cmocka_unit_test(handshake_makes_no_key_for_strangers),
           cmocka_unit_test(handshake_has_known_bytes),
           cmocka_unit_test(handshake_recognises_other_programs_early))
