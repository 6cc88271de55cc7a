#include "job/supervise/messages.h"

#include "support/unit.h"

#include <math.h>
#include <string.h>

static char *const argv[] = { "paceline", "train", NULL };
static char *const environment[] = { "A=1", NULL };

static pl_status decode(pl_control_message *out, const char *text)
{
    pl_json *json;
    assert_ok(pl_json_parse(&json, text, strlen(text), "test"));
    return pl_control_decode(out, json);
}

/* Encode and decode again. */
static void pass(const pl_control_message *message, pl_control_message *out)
{
    pl_json *json;
    assert_ok(pl_control_encode(message, &json));
    assert_ok(pl_control_decode(out, json));
    assert_int_equal(message->kind, out->kind);
}

static void assert_words(char *const *expected, char *const *words)
{
    for (; *expected != NULL; expected++, words++)
        assert_string_equal(*expected, *words);
    assert_null(*words);
}

static void messages_carry_each_member(void **state)
{
    (void)state;
    pl_control_message got;
    pass(&(pl_control_message) { .kind = PL_CONTROL_HELLO, .text = "1.2" },
         &got);
    assert_string_equal("1.2", got.text);
    pl_control_message_close(&got);
    pass(&(pl_control_message) { .kind = PL_CONTROL_STATUS,
                                 .status = { .step = 7,
                                             .loss = NAN,
                                             .test_loss = 0.1,
                                             .test_accuracy = -1e300 } },
         &got);
    assert_int_equal(7, got.status.step);
    assert_true(isnan(got.status.loss));
    assert_true(got.status.test_loss == 0.1);
    assert_true(got.status.test_accuracy == -1e300);
    pl_control_message_close(&got);
    pass(
        &(pl_control_message) { .kind = PL_CONTROL_COUNTS, .counts = { 3, 2 } },
        &got);
    assert_int_equal(3, got.counts.faults);
    assert_int_equal(2, got.counts.restarts);
    pl_control_message_close(&got);
    pass(&(pl_control_message) { .kind = PL_CONTROL_OUTPUT,
                                 .task = { PL_ROLE_PS, 3 },
                                 .error = true,
                                 .text = "a \"line\"" },
         &got);
    assert_true(got.error);
    assert_int_equal(PL_ROLE_PS, got.task.role);
    assert_int_equal(3, got.task.index);
    assert_string_equal("a \"line\"", got.text);
    pl_control_message_close(&got);
    pass(&(pl_control_message) { .kind = PL_CONTROL_ENDED,
                                 .task = { PL_ROLE_WORKER, 1 },
                                 .number = -9,
                                 .text = "" },
         &got);
    assert_int_equal(-9, got.number);
    pl_control_message_close(&got);
    pass(&(pl_control_message) { .kind = PL_CONTROL_SIGNAL, .number = 15 },
         &got);
    assert_int_equal(15, got.number);
    pl_control_message_close(&got);
    assert_int_equal(0, pl_mem_live());
}

static void messages_start_a_task(void **state)
{
    (void)state;
    pl_control_message got;
    pl_control_message start = {
        .kind = PL_CONTROL_START,
        .task = { PL_ROLE_CHIEF, 0 },
        .argv = argv,
        .environment = environment,
        .secret = "abc",
    };
    pass(&start, &got);
    assert_words(argv, got.argv);
    assert_words(environment, got.environment);
    assert_string_equal("abc", got.secret);
    assert_null(got.secret_file);
    pl_control_message_close(&got);
    start.secret_file = "/run/key"; /* then the secret stays here */
    pass(&start, &got);
    assert_null(got.secret);
    assert_string_equal("/run/key", got.secret_file);
    pl_control_message_close(&got);
    assert_int_equal(0, pl_mem_live());
}

static void messages_of_other_kinds_with_an_id_are_questions(void **state)
{
    (void)state;
    pl_control_message got;
    assert_ok(decode(&got, "{\"kind\": \"facts\", \"id\": 4, \"x\": 1}"));
    assert_int_equal(PL_CONTROL_QUESTION, got.kind);
    assert_int_equal(4, got.id);
    assert_true(pl_json_has(got.body, "x"));
    pl_control_message_close(&got);
    assert_fails(PL_UNSUPPORTED, "unknown message \"facts\"",
                 decode(&got, "{\"kind\": \"facts\"}"));
    assert_int_equal(0, pl_mem_live());
}

static void malformed_messages_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{}",
        "[]",
        "{\"kind\": 1}",
        "{\"kind\": \"address\"}",
        "{\"kind\": \"address\", \"address\": \"\"}",
        "{\"kind\": \"status\", \"step\": 1}",
        "{\"kind\": \"status\", \"step\": -1, \"own_steps\": 0, "
        "\"examples\": 0, \"dropped\": 0}",
        "{\"kind\": \"lost\", \"role\": \"boss\", \"index\": 1}",
        "{\"kind\": \"lost\", \"role\": \"worker\", \"index\": -1}",
        "{\"kind\": \"lost\", \"role\": \"worker\", \"index\": 4294967296}",
        "{\"kind\": \"counts\", \"faults\": 0, \"restarts\": -1}",
        "{\"kind\": \"signal\", \"role\": \"ps\", \"index\": 0, "
        "\"signal\": 0}",
        "{\"kind\": \"start\", \"role\": \"ps\", \"index\": 0, \"argv\": "
        "[], \"environment\": [], \"secret\": \"\"}",
        "{\"kind\": \"start\", \"role\": \"ps\", \"index\": 0, \"argv\": "
        "[\"a\", 1], \"environment\": [], \"secret\": \"\"}",
        "{\"kind\": \"ended\", \"role\": \"ps\", \"index\": 0, "
        "\"status\": 256, \"said\": \"\"}",
        "{\"kind\": \"facts\", \"id\": -1}",
    };
    pl_control_message got;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(PL_PEER, decode(&got, bad[i]));
    assert_int_equal(0, pl_mem_live());
}

static pl_status pass_start(pl_control_message *got)
{
    pl_json *json;
    PL_TRY(pl_control_encode(&(pl_control_message) { .kind = PL_CONTROL_START,
                                                     .argv = argv,
                                                     .environment = environment,
                                                     .secret = "abc" },
                             &json));
    return pl_control_decode(got, json);
}

static void messages_survive_each_failed_allocation(void **state)
{
    (void)state;
    pl_control_message got;
    assert_survives_failed_allocations(pass_start(&got),
                                       pl_control_message_close(&got));
}

UNIT_TESTS(cmocka_unit_test(messages_carry_each_member),
           cmocka_unit_test(messages_start_a_task),
           cmocka_unit_test(messages_of_other_kinds_with_an_id_are_questions),
           cmocka_unit_test(malformed_messages_are_refused),
           cmocka_unit_test(messages_survive_each_failed_allocation))
