#include "support/folder.h"

#include "base/thread.h"
#include "net/http/download.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILE_BYTES  1000
#define DEADLINE_MS 30000

/* What the server does with one request, in order. */
typedef enum answer {
    WHOLE,     /* 200 and the file; no ranges */
    RANGE,     /* 206 from the requested byte */
    BREAK_OFF, /* 206 or 200, then half of the announced bytes */
    MISSING,   /* 404 */
    BUSY,      /* 503 */
    NO_MORE,   /* 416 */
    END,
} answer;

typedef struct server {
    const answer *answers;
    int listener;
    int port;
    int64_t asked[8]; /* the first byte of each request */
    pl_thread *thread;
} server;

static uint8_t byte_at(int64_t i)
{
    return (uint8_t)(i * 7 % 251);
}

static int64_t read_request(int peer)
{
    char text[4096];
    size_t used = 0;
    while (used < sizeof text - 1) {
        ssize_t got = read(peer, text + used, sizeof text - 1 - used);
        if (got <= 0)
            break;
        used += (size_t)got;
        text[used] = '\0';
        if (strstr(text, "\r\n\r\n") != NULL)
            break;
    }
    const char *range = strstr(text, "Range: bytes=");
    return range != NULL ? strtoll(range + 13, NULL, 10) : 0;
}

static void send_file(int peer, int64_t from, bool partial, bool half)
{
    char body[FILE_BYTES];
    size_t bytes = (size_t)(FILE_BYTES - from);
    for (size_t i = 0; i < bytes; i++)
        body[i] = (char)byte_at(from + (int64_t)i);
    if (partial)
        dprintf(peer,
                "HTTP/1.1 206 Partial\r\nContent-Range: bytes %lld-%d/%d\r\n",
                (long long)from, FILE_BYTES - 1, FILE_BYTES);
    else
        dprintf(peer, "HTTP/1.1 200 OK\r\n");
    dprintf(peer, "Content-Length: %zu\r\nConnection: close\r\n\r\n", bytes);
    assert_true(write(peer, body, half ? bytes / 2 : bytes) > 0);
}

static pl_status serve(void *arg)
{
    server *s = arg;
    for (int n = 0; s->answers[n] != END; n++) {
        int peer = accept(s->listener, NULL, NULL);
        if (peer < 0)
            return PL_FAIL(PL_IO, "accept");
        int64_t from = s->asked[n] = read_request(peer);
        switch (s->answers[n]) {
        case WHOLE:
            send_file(peer, 0, false, false);
            break;
        case RANGE:
        case BREAK_OFF:
            send_file(peer, from, from > 0, s->answers[n] == BREAK_OFF);
            break;
        case MISSING:
            dprintf(peer, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
            break;
        case BUSY:
            dprintf(peer, "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n");
            break;
        case NO_MORE:
            dprintf(peer, "HTTP/1.1 416 No\r\nContent-Length: 0\r\n\r\n");
            break;
        case END:
            break;
        }
        close(peer);
    }
    return PL_OK;
}

static void server_start(server *s, const answer *answers)
{
    struct sockaddr_in here = { .sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t bytes = sizeof here;
    *s = (server) { .answers = answers };
    s->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(0, bind(s->listener, (struct sockaddr *)&here, bytes));
    assert_int_equal(0, listen(s->listener, 8));
    assert_int_equal(
        0, getsockname(s->listener, (struct sockaddr *)&here, &bytes));
    s->port = ntohs(here.sin_port);
    assert_ok(pl_thread_start(&s->thread, "server", serve, s));
}

static void server_stop(server *s)
{
    assert_ok(pl_thread_join(s->thread));
    close(s->listener);
}

static pl_status get(const server *s, const char *path, int64_t most)
{
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/file", s->port);
    return pl_download(&(pl_download_opts) {
        .url = url,
        .path = path,
        .most = most,
        .deadline = pl_deadline_in_ms(pl_clock_real(), DEADLINE_MS),
    });
}

static void assert_whole(const char *path)
{
    pl_map map;
    assert_ok(pl_map_init(&map, path));
    assert_int_equal(FILE_BYTES, map.bytes);
    for (int64_t i = 0; i < FILE_BYTES; i++)
        assert_int_equal(byte_at(i), map.data[i]);
    pl_map_close(&map);
}

static void an_interrupted_download_is_resumed(void **state)
{
    server s;
    const char *path = test_path(*state, "file");
    server_start(&s, (const answer[]) { BREAK_OFF, BREAK_OFF, RANGE, END });
    assert_fails(PL_AGAIN, "(500 bytes", get(&s, path, FILE_BYTES));
    assert_fails(PL_AGAIN, "(750 bytes", get(&s, path, FILE_BYTES));
    assert_ok(get(&s, path, FILE_BYTES));
    server_stop(&s);
    assert_int_equal(0, s.asked[0]);
    assert_int_equal(500, s.asked[1]);
    assert_int_equal(750, s.asked[2]);
    assert_whole(path);
}

static void a_server_without_ranges_sends_everything_again(void **state)
{
    server s;
    const char *path = test_path(*state, "file");
    server_start(&s, (const answer[]) { BREAK_OFF, WHOLE, WHOLE, END });
    assert_fails(PL_AGAIN, "(500", get(&s, path, FILE_BYTES));
    assert_fails(PL_AGAIN, "cannot resume", get(&s, path, FILE_BYTES));
    assert_ok(get(&s, path, FILE_BYTES));
    server_stop(&s);
    assert_int_equal(0, s.asked[2]);
    assert_whole(path);
}

static void an_existing_file_is_kept(void **state)
{
    server s;
    const char *path = test_path(*state, "file");
    server_start(&s, (const answer[]) { RANGE, NO_MORE, END });
    assert_ok(get(&s, path, FILE_BYTES));
    assert_ok(get(&s, path, FILE_BYTES));
    server_stop(&s);
    assert_int_equal(FILE_BYTES, s.asked[1]);
    assert_whole(path);
}

static void refusals_indicate_whether_to_retry(void **state)
{
    server s;
    const char *path = test_path(*state, "file");
    server_start(&s, (const answer[]) { MISSING, BUSY, END });
    assert_fails(PL_NOTFOUND, "answered 404", get(&s, path, FILE_BYTES));
    assert_fails(PL_AGAIN, "answered 503", get(&s, path, FILE_BYTES));
    server_stop(&s);
    assert_fails(PL_AGAIN, "127.0.0.1", get(&s, path, FILE_BYTES));
}

static void excess_bytes_are_refused(void **state)
{
    server s;
    const char *path = test_path(*state, "file");
    server_start(&s, (const answer[]) { WHOLE, END });
    assert_fails(PL_FORMAT, "more than 999 bytes", get(&s, path, 999));
    server_stop(&s);
}

static void failures_to_start_are_reported(void **state)
{
    pl_download_opts opts = {
        .url = "gopher://127.0.0.1/file",
        .path = test_path(*state, "file"),
        .most = 1,
        .deadline = pl_deadline_in_ms(pl_clock_real(), DEADLINE_MS),
    };
    assert_fails(PL_USAGE, "gopher", pl_download(&opts));
    opts.url = "http://127.0.0.1:1/file";
    opts.path = test_path(*state, "no/such/file");
    assert_fails(PL_IO, "no/such/file", pl_download(&opts));
}

/* A server that listens and never answers. */
static void a_silent_server_is_abandoned_at_the_deadline_or_interrupt(
    void **state)
{
    struct sockaddr_in here = { .sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t bytes = sizeof here;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(0, bind(listener, (struct sockaddr *)&here, bytes));
    assert_int_equal(0, listen(listener, 8));
    getsockname(listener, (struct sockaddr *)&here, &bytes);
    char url[64];
    atomic_bool interrupt = false;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/file", ntohs(here.sin_port));
    pl_download_opts opts = {
        .url = url,
        .path = test_path(*state, "file"),
        .most = 1,
        .deadline = pl_deadline_in_ms(pl_clock_real(), 20),
        .interrupt = &interrupt,
    };
    assert_fails(PL_TIMEOUT, "not complete in time", pl_download(&opts));
    interrupt = true;
    assert_fails(PL_INTERRUPTED, "interrupted", pl_download(&opts));
    close(listener);
}

int main(void)
{
    setenv("no_proxy", "127.0.0.1", 1);
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(an_interrupted_download_is_resumed),
        TEST_IN_FOLDER(a_server_without_ranges_sends_everything_again),
        TEST_IN_FOLDER(an_existing_file_is_kept),
        TEST_IN_FOLDER(refusals_indicate_whether_to_retry),
        TEST_IN_FOLDER(excess_bytes_are_refused),
        TEST_IN_FOLDER(failures_to_start_are_reported),
        TEST_IN_FOLDER(
            a_silent_server_is_abandoned_at_the_deadline_or_interrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
