#include "job/hosts/agent.h"
#include "job/hosts/agent_channel.h"
#include "support/unit.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A channel whose other end the test holds. */
typedef struct ends {
    pl_agent_channel channel;
    int in, out; /* what the channel reads from, and writes to */
} ends;

static void open_ends(ends *e)
{
    int in[2], out[2];
    assert_int_equal(0, pipe2(in, O_CLOEXEC));
    assert_int_equal(0, pipe2(out, O_CLOEXEC));
    assert_ok(pl_agent_channel_init(&e->channel, in[0], out[1]));
    e->in = in[1];
    e->out = out[0];
}

static void close_ends(ends *e)
{
    pl_agent_channel_close(&e->channel);
    if (e->in >= 0)
        close(e->in);
    if (e->out >= 0)
        close(e->out);
    assert_int_equal(0, pl_mem_live());
}

static void put(const ends *e, const char *text)
{
    assert_int_equal((ssize_t)strlen(text), write(e->in, text, strlen(text)));
}

static void assert_kind(ends *e, const char *kind)
{
    pl_json *message;
    assert_ok(pl_agent_channel_receive(&e->channel, &message));
    assert_string_equal(kind, pl_agent_channel_kind(message));
    pl_json_free(message);
}

static void channel_takes_messages_line_by_line(void **state)
{
    (void)state;
    ends e;
    pl_json *message;
    open_ends(&e);
    assert_int_equal(PL_AGAIN, pl_agent_channel_receive(&e.channel, &message));
    put(&e, "{\"kind\": \"a\"}\n{\"kind\": \"b\"}\n{\"ki");
    assert_kind(&e, "a");
    assert_kind(&e, "b");
    assert_int_equal(PL_AGAIN, pl_agent_channel_receive(&e.channel, &message));
    put(&e, "nd\": \"c\"}\nnot a message\n{}\n");
    assert_kind(&e, "c");
    assert_fails(PL_PEER, "not a message",
                 pl_agent_channel_receive(&e.channel, &message));
    assert_kind(&e, "");
    close(e.in);
    e.in = -1;
    assert_fails(PL_CLOSED, "closed",
                 pl_agent_channel_receive(&e.channel, &message));
    close_ends(&e);
}

static void channel_takes_long_lines_but_not_endless_ones(void **state)
{
    (void)state;
    ends e;
    pl_json *message;
    char part[4096];
    pl_status status = PL_AGAIN;
    open_ends(&e);
    memset(part, 'x', sizeof part);
    put(&e, "{\"kind\": \"");
    for (int i = 0; i < 10; i++) {
        assert_int_equal(sizeof part, write(e.in, part, sizeof part));
        assert_int_equal(PL_AGAIN,
                         pl_agent_channel_receive(&e.channel, &message));
    }
    put(&e, "\"}\n");
    assert_ok(pl_agent_channel_receive(&e.channel, &message));
    assert_int_equal(10 * sizeof part, strlen(pl_agent_channel_kind(message)));
    pl_json_free(message);
    for (size_t sent = 0;
         status == PL_AGAIN && sent < 2 * PL_AGENT_CHANNEL_LINE_MAX;
         sent += sizeof part) {
        assert_int_equal(sizeof part, write(e.in, part, sizeof part));
        status = pl_agent_channel_receive(&e.channel, &message);
    }
    assert_int_equal(PL_PEER, status);
    close_ends(&e);
}

/* Lines of all lengths, many at once, across each growth of the buffer. */
static void channel_takes_every_line_of_a_burst(void **state)
{
    (void)state;
    ends e;
    pl_json *message;
    char line[700];
    int taken = 0;
    open_ends(&e);
    for (int sent = 0; sent < 4000;) {
        for (int burst = 0; burst < 80; burst++, sent++) {
            snprintf(line, sizeof line,
                     "{\"kind\": \"%d\", \"text\": \"%*s\"}\n", sent,
                     sent % 600, "");
            put(&e, line);
        }
        while (pl_agent_channel_receive(&e.channel, &message) == PL_OK) {
            assert_int_equal(taken++, atoi(pl_agent_channel_kind(message)));
            pl_json_free(message);
        }
        assert_int_equal(sent, taken);
    }
    close_ends(&e);
}

static void channel_sends_a_line(void **state)
{
    (void)state;
    ends e;
    pl_json *message;
    char text[64];
    signal(SIGPIPE, SIG_IGN); /* as the program does */
    open_ends(&e);
    assert_ok(pl_agent_channel_new(&message, "beat"));
    assert_ok(pl_agent_channel_send(&e.channel, message));
    ssize_t got = read(e.out, text, sizeof text);
    assert_int_equal(strlen("{\"kind\":\"beat\"}\n"), got);
    assert_memory_equal("{\"kind\":\"beat\"}\n", text, (size_t)got);
    close(e.out);
    e.out = -1;
    assert_fails(PL_CLOSED, "was lost",
                 pl_agent_channel_send(&e.channel, message));
    pl_json_free(message);
    close_ends(&e);
}

static void channel_replaces_invalid_utf8(void **state)
{
    (void)state;
    char text[] = "a\xc3\xa4\xff\xe2\x82z\xf0\x9f\x98\x80\xed\xa0\x80";
    pl_agent_channel_clean(text);
    assert_string_equal("a\xc3\xa4???z\xf0\x9f\x98\x80???", text);
}

static pl_status no_answer(void *context, const pl_json *question,
                           pl_json *answer)
{
    (void)context;
    (void)question;
    (void)answer;
    return PL_FAIL(PL_UNSUPPORTED, "nothing is known here");
}

/* An agent on a thread, and the launcher's end. */
typedef struct pair {
    pl_agent_channel launcher;
    pl_agent_opts opts;
    pl_thread *thread;
} pair;

static pl_status be_agent(void *arg)
{
    return pl_agent_run(arg);
}

static void open_pair(pair *p, int64_t silent_ms)
{
    int to[2], from[2];
    assert_int_equal(0, pipe2(to, O_CLOEXEC));
    assert_int_equal(0, pipe2(from, O_CLOEXEC));
    p->opts = (pl_agent_opts) {
        .in = to[0], .out = from[1], .answer = no_answer, .silent_ms = silent_ms
    };
    assert_ok(pl_agent_channel_init(&p->launcher, from[0], to[1]));
    assert_ok(pl_thread_start(&p->thread, "agent", be_agent, &p->opts));
}

/* The next message that is not a heartbeat. */
static pl_json *next(pair *p)
{
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), 60000);
    for (;;) {
        pl_json *message;
        pl_status status = pl_agent_channel_receive(&p->launcher, &message);
        if (status == PL_OK &&
            strcmp(pl_agent_channel_kind(message), "beat") != 0)
            return message;
        if (status == PL_OK)
            pl_json_free(message);
        assert_true(status == PL_OK || status == PL_AGAIN);
        assert_false(pl_deadline_passed(deadline));
        struct pollfd ready = { .fd = p->launcher.in, .events = POLLIN };
        poll(&ready, 1, 100);
    }
}

static void agent_sends_its_version_and_replies(void **state)
{
    (void)state;
    pair p;
    const char *text;
    open_pair(&p, 0);
    pl_json *message = next(&p);
    assert_ok(pl_json_get_text(message, "version", &text));
    assert_string_equal(pl_version(), text);
    pl_json_free(message);
    assert_ok(pl_agent_channel_new(&message, "riddle"));
    assert_ok(pl_json_set_int(message, "id", 7));
    assert_ok(pl_agent_channel_send(&p.launcher, message));
    pl_json_free(message);
    message = next(&p);
    assert_string_equal("answer", pl_agent_channel_kind(message));
    assert_ok(pl_json_get_text(message, "error", &text));
    assert_non_null(strstr(text, "nothing is known here"));
    pl_json_free(message);
    assert_ok(pl_agent_channel_new(&message, "end"));
    assert_ok(pl_agent_channel_send(&p.launcher, message));
    pl_json_free(message);
    pl_agent_channel_close(&p.launcher);
    assert_ok(pl_thread_join(p.thread));
    assert_int_equal(0, pl_mem_live());
}

/* agent A2 */
static void agent_ends_when_the_launcher_is_gone_or_silent(void **state)
{
    (void)state;
    for (int silent = 0; silent < 2; silent++) {
        pair p;
        open_pair(&p, silent ? 1 : 0);
        if (!silent)
            pl_agent_channel_close(&p.launcher);
        assert_fails(PL_CLOSED, "the connection to the launcher was lost",
                     pl_thread_join(p.thread));
        if (silent)
            pl_agent_channel_close(&p.launcher);
    }
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(channel_takes_messages_line_by_line),
           cmocka_unit_test(channel_takes_long_lines_but_not_endless_ones),
           cmocka_unit_test(channel_takes_every_line_of_a_burst),
           cmocka_unit_test(channel_sends_a_line),
           cmocka_unit_test(channel_replaces_invalid_utf8),
           cmocka_unit_test(agent_sends_its_version_and_replies),
           cmocka_unit_test(agent_ends_when_the_launcher_is_gone_or_silent))
