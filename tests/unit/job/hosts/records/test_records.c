/* Records of a run folder sent from one host to another.
 *
 * Invariants and the tests that check them:
 *   source I1  records_arrive_while_they_grow
 *   source I2  whole_file_is_sent_again_when_it_was_replaced
 *   source I3  checkpoint_comes_complete_and_goes */
#include "job/hosts/records/record_file.h"
#include "job/hosts/records/sink.h"
#include "job/hosts/records/source.h"
#include "support/folder.h"
#include "support/unit.h"

/* Two run folders; one receives what the other sends. */
typedef struct ends {
    char here[128], there[128];
    pl_record_source *source;
    pl_record_sink *sink;
    int messages;
    char last[PL_RECORD_PATH_MOST]; /* the path of the last message */
} ends;

static pl_status pass(void *context, const pl_control_message *message)
{
    ends *e = context;
    pl_json *json;
    pl_control_message decoded;
    e->messages++;
    snprintf(e->last, sizeof e->last, "%s", message->text);
    PL_TRY(pl_control_encode(message, &json)); /* as it travels */
    PL_TRY(pl_control_decode(&decoded, json));
    pl_status status = pl_record_sink_take(e->sink, &decoded);
    pl_control_message_close(&decoded);
    return status;
}

static void open_ends(ends *e, const char *folder, bool resume)
{
    *e = (ends) { 0 };
    strcpy(e->here, test_path(folder, "here"));
    strcpy(e->there, test_path(folder, "there"));
    assert_ok(pl_file_make_folder(e->here));
    assert_ok(pl_file_make_folder(e->there));
    assert_ok(pl_record_source_new(&e->source, &(pl_record_source_opts) {
                                                   .run = e->there,
                                                   .resume = resume,
                                                   .send = pass,
                                                   .context = e,
                                               }));
    assert_ok(pl_record_sink_new(&e->sink, e->here));
}

static void close_ends(ends *e)
{
    pl_record_source_free(e->source);
    pl_record_sink_free(e->sink);
    assert_int_equal(0, pl_mem_live());
}

/* All that is new. */
static void send_all(ends *e)
{
    bool sent = true;
    while (sent)
        assert_ok(pl_record_source_step(e->source, true, &sent));
}

/* By fopen's mode. */
static void put(const char *folder, const char *name, const char *text,
                const char *mode)
{
    char parent[512];
    strcpy(parent, test_path(folder, name));
    *strrchr(parent, '/') = '\0';
    assert_ok(pl_file_make_folder(parent));
    FILE *file = fopen(test_path(folder, name), mode);
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void assert_has(const char *folder, const char *name, const char *text)
{
    char *found;
    assert_ok(pl_file_read_text(&found, test_path(folder, name), 1 << 20));
    assert_string_equal(text, found);
    pl_mem_free(found);
}

static bool is_there(const char *folder, const char *name)
{
    return pl_file_exists(test_path(folder, name));
}

static void only_listed_files_are_records(void **state)
{
    (void)state;
    static const char *const good[] = {
        "run.json",
        "summary.json",
        "timeline.jsonl",
        "events/ps-0/events.out.tfevents.1.a",
        "resources/a.csv",
        "trace/worker-0.json",
        "checkpoints/step-0000000001/manifest.json",
    };
    static const char *const bad[] = {
        "",
        "/etc/passwd",
        "../run.json",
        "run.json/",
        "log/worker-0.log",
        "events/../../a/b",
        "events/a",
        "events/a/b/c",
        "events//b",
        "events/ps-0/.hidden",
        "resources/.a.tasks",
        "resources/a",
        "resources/.csv",
        "resources/a\n.csv",
        "checkpoints/manifest.json",
        "checkpoints/./a",
        "run.json.",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_not_equal(PL_RECORD_NONE, pl_record_kind_of(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(PL_RECORD_NONE, pl_record_kind_of(bad[i]));
    assert_true(pl_record_is_checkpoint("checkpoints/step-0000000001"));
    assert_false(pl_record_is_checkpoint("checkpoints/.."));
    assert_false(pl_record_is_checkpoint("checkpoints"));
    assert_false(pl_record_is_checkpoint("events/worker-0"));
}

static void records_arrive_while_they_grow(void **state)
{
    ends e;
    open_ends(&e, *state, false);
    put(e.there, "events/ps-0/a", "one", "w");
    put(e.there, "timeline.jsonl", "{\"a\":1}\n{\"cut", "w");
    put(e.there, "log/ps-0.log", "not a record", "w");
    send_all(&e);
    assert_has(e.here, "events/ps-0/a", "one");
    assert_has(e.here, "timeline.jsonl", "{\"a\":1}\n");
    put(e.there, "events/ps-0/a", "two", "a");
    put(e.there, "timeline.jsonl", "\":2}\n", "a");
    put(e.here, "timeline.jsonl", "{\"own\":1}\n", "a");
    send_all(&e);
    assert_has(e.here, "events/ps-0/a", "onetwo");
    assert_has(e.here, "timeline.jsonl",
               "{\"a\":1}\n{\"own\":1}\n{\"cut\":2}\n");
    assert_false(is_there(e.here, "log/ps-0.log"));
    int before = e.messages;
    send_all(&e);
    assert_int_equal(before, e.messages); /* nothing is sent twice */
    close_ends(&e);
}

static void whole_file_is_sent_again_when_it_was_replaced(void **state)
{
    ends e;
    open_ends(&e, *state, false);
    char *text = malloc(3 * PL_RECORD_CHUNK);
    memset(text, 'x', 3 * PL_RECORD_CHUNK - 1);
    text[3 * PL_RECORD_CHUNK - 1] = '\0';
    put(e.there, "run.json", "{}", "w");
    put(e.there, "trace/ps-0.json", text, "w");
    send_all(&e);
    assert_has(e.here, "run.json", "{}");
    assert_has(e.here, "trace/ps-0.json", text);
    assert_ok(pl_file_replace(test_path(e.there, "run.json"), "[1]", 3));
    send_all(&e);
    assert_has(e.here, "run.json", "[1]");
    free(text);
    close_ends(&e);
}

static void checkpoint_comes_complete_and_goes(void **state)
{
    ends e;
    open_ends(&e, *state, false);
    put(e.there, "checkpoints/step-1/shard", "s", "w");
    send_all(&e);
    assert_int_equal(0, e.messages); /* it is not complete */
    put(e.there, "checkpoints/step-1/manifest.json", "m", "w");
    send_all(&e);
    assert_string_equal("checkpoints/step-1/manifest.json", e.last);
    assert_has(e.here, "checkpoints/step-1/shard", "s");
    assert_ok(pl_file_remove_all(test_path(e.there, "checkpoints/step-1")));
    send_all(&e);
    assert_false(is_there(e.here, "checkpoints/step-1"));
    close_ends(&e);
}

static void resumed_run_gets_the_newest_checkpoint(void **state)
{
    ends e;
    open_ends(&e, *state, true);
    put(e.there, "run.json", "{}", "w");
    put(e.there, "events/ps-0/a", "one", "w");
    put(e.there, "resources/a.csv", "time\n1\n", "w");
    put(e.there, "checkpoints/step-1/manifest.json", "1", "w");
    put(e.there, "checkpoints/step-2/manifest.json", "2", "w");
    put(e.there, "checkpoints/step-3/shard", "torn", "w");
    send_all(&e);
    assert_has(e.here, "run.json", "{}");
    assert_has(e.here, "resources/a.csv", "time\n1\n");
    assert_has(e.here, "checkpoints/step-2/manifest.json", "2");
    assert_false(is_there(e.here, "checkpoints/step-1"));
    assert_false(is_there(e.here, "checkpoints/step-3"));
    assert_false(is_there(e.here, "events"));
    close_ends(&e);
}

static void skipped_table_continues_where_it_ended(void **state)
{
    ends e;
    open_ends(&e, *state, false);
    put(e.there, "resources/a.csv", "time\n1\n", "w");
    put(e.there, "run.json", "{}", "w");
    put(e.here, "resources/a.csv", "time\n1\n", "w");
    assert_ok(pl_record_source_skip(e.source));
    send_all(&e);
    assert_int_equal(0, e.messages);
    put(e.there, "resources/a.csv", "2\n", "a");
    send_all(&e);
    assert_has(e.here, "resources/a.csv", "time\n1\n2\n");
    close_ends(&e);
}

static void table_of_a_host_of_the_same_name_gets_a_number(void **state)
{
    ends e;
    open_ends(&e, *state, false);
    put(e.here, "resources/a.csv", "other\n", "w");
    put(e.there, "resources/a.csv", "time\n", "w");
    send_all(&e);
    put(e.there, "resources/a.csv", "1\n", "a");
    send_all(&e);
    assert_has(e.here, "resources/a.csv", "other\n");
    assert_has(e.here, "resources/a-2.csv", "time\n1\n");
    close_ends(&e);
}

static void sink_refuses_messages_out_of_order(void **state)
{
    ends e;
    open_ends(&e, *state, false);
    pl_control_message message = { .kind = PL_CONTROL_RECORD,
                                   .text = "../evil",
                                   .data = "Zg==" };
    assert_fails(PL_PEER, "not a record",
                 pl_record_sink_take(e.sink, &message));
    message.text = "events/ps-0/a";
    message.offset = 1;
    assert_fails(PL_PEER, "not the next",
                 pl_record_sink_take(e.sink, &message));
    message.offset = 0;
    assert_ok(pl_record_sink_take(e.sink, &message));
    assert_fails(PL_PEER, "expected 1", pl_record_sink_take(e.sink, &message));
    message.text = "run.json";
    message.offset = 7;
    assert_fails(PL_PEER, "not the next",
                 pl_record_sink_take(e.sink, &message));
    message.text = "events/ps-0";
    message.gone = true;
    assert_fails(PL_PEER, "not a record",
                 pl_record_sink_take(e.sink, &message));
    message.text = "run.json";
    message.gone = false;
    message.offset = 0;
    message.data = "?";
    assert_fails(PL_FORMAT, "base64", pl_record_sink_take(e.sink, &message));
    /* Never complete: nothing stays. */
    message.data = "Zg==";
    assert_ok(pl_record_sink_take(e.sink, &message));
    pl_record_sink_free(e.sink);
    e.sink = NULL;
    char **names;
    size_t count;
    assert_ok(pl_file_list(&names, &count, e.here));
    assert_int_equal(1, count); /* events */
    pl_mem_free(names);
    close_ends(&e);
}

UNIT_TESTS(cmocka_unit_test(only_listed_files_are_records),
           TEST_IN_FOLDER(records_arrive_while_they_grow),
           TEST_IN_FOLDER(whole_file_is_sent_again_when_it_was_replaced),
           TEST_IN_FOLDER(checkpoint_comes_complete_and_goes),
           TEST_IN_FOLDER(resumed_run_gets_the_newest_checkpoint),
           TEST_IN_FOLDER(skipped_table_continues_where_it_ended),
           TEST_IN_FOLDER(table_of_a_host_of_the_same_name_gets_a_number),
           TEST_IN_FOLDER(sink_refuses_messages_out_of_order))
