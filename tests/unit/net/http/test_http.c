#include "support/unit.h"

#include "net/http/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static pl_status page(void *context, const char *path, pl_buffer *body,
                      const char **type)
{
    (void)context;
    if (strcmp(path, "/broken") == 0)
        return PL_FAIL(PL_IO, "the disk is gone");
    if (strcmp(path, "/") != 0)
        return PL_FAIL(PL_NOTFOUND, "no %s", path);
    *type = "text/html";
    pl_buffer_text(body, "hello");
    return PL_OK;
}

static pl_status metrics(void *context, const char *path, pl_buffer *body,
                         const char **type)
{
    (void)context;
    (void)path;
    *type = "text/plain";
    pl_buffer_text(body, "# EOF\n");
    return PL_OK;
}

static int port_of(const pl_http *http)
{
    int port = 0;
    assert_int_equal(
        1, sscanf(pl_http_url(http), "http://127.0.0.1:%d/?token=", &port));
    return port;
}

static int connect_to(const pl_http *http)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons((uint16_t)port_of(http));
    int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(0, connect(peer, (struct sockaddr *)&at, sizeof at));
    /* Less than the server's timeout for silent clients. */
    const struct timeval deadline = { .tv_sec = 20 };
    setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
    return peer;
}

/* Send a request, and read until the server closes. */
static void ask(const pl_http *http, const char *path, const char *headers,
                char *answer, size_t room)
{
    char request[1024];
    size_t used = 0;
    int peer = connect_to(http);
    int length = snprintf(request, sizeof request,
                          "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                          "Connection: close\r\n%s\r\n",
                          path, port_of(http), headers);
    assert_int_equal(length, write(peer, request, (size_t)length));
    ssize_t got;
    while ((got = read(peer, answer + used, room - 1 - used)) > 0)
        used += (size_t)got;
    answer[used] = '\0';
    close(peer);
}

static void the_token_becomes_a_cookie_once(void **state)
{
    (void)state;
    char answer[8192], cookie[256], value[128];
    pl_http *http;
    assert_ok(pl_http_new(&http, &(pl_http_opts) { .page = page }));
    ask(http, "/", "", answer, sizeof answer);
    assert_non_null(strstr(answer, " 403 "));
    const char *way_in = strstr(pl_http_url(http), "/?token=");
    ask(http, way_in, "", answer, sizeof answer);
    assert_non_null(strstr(answer, " 303 "));
    const char *set = strstr(answer, "Set-Cookie: ");
    assert_non_null(set);
    assert_int_equal(1, sscanf(set, "Set-Cookie: %127[^;]", value));
    snprintf(cookie, sizeof cookie, "Cookie: %s\r\n", value);
    ask(http, "/", cookie, answer, sizeof answer);
    assert_non_null(strstr(answer, " 200 "));
    assert_non_null(strstr(answer, "hello"));
    ask(http, "/none", cookie, answer, sizeof answer);
    assert_non_null(strstr(answer, " 404 "));
    assert_non_null(strstr(answer, "no /none\n"));
    ask(http, "/broken", cookie, answer, sizeof answer);
    assert_non_null(strstr(answer, " 500 "));
    assert_non_null(strstr(answer, "the disk is gone\n"));
    ask(http, way_in, "", answer, sizeof answer);
    assert_non_null(strstr(answer, " 403 "));
    pl_http_free(http);
}

/* More than are kept, and more than the server's limit. */
static void idle_connections_do_not_block_others(void **state)
{
    (void)state;
    int idle[300];
    char answer[8192];
    pl_http *http;
    assert_ok(pl_http_new(&http, &(pl_http_opts) { .page = page }));
    for (int i = 0; i < 300; i++) {
        idle[i] = connect_to(http);
        assert_int_equal(4, write(idle[i], "GET ", 4));
        if (i % 50 == 49) {
            ask(http, "/", "", answer, sizeof answer);
            assert_non_null(strstr(answer, " 403 "));
        }
    }
    ask(http, strstr(pl_http_url(http), "/?token="), "", answer, sizeof answer);
    assert_non_null(strstr(answer, " 303 "));
    for (int i = 0; i < 300; i++)
        close(idle[i]);
    pl_http_free(http);
}

static void metrics_require_the_token(void **state)
{
    (void)state;
    char answer[8192];
    pl_http *http;
    assert_fails(PL_USAGE, "add --metrics-token FILE",
                 pl_http_new(&http, &(pl_http_opts) { .address = "0.0.0.0:0",
                                                      .metrics = metrics }));
    assert_ok(pl_http_new(
        &http, &(pl_http_opts) { .page = page, .metrics = metrics }));
    ask(http, "/metrics", "", answer, sizeof answer);
    assert_non_null(strstr(answer, " 200 "));
    assert_non_null(strstr(answer, "# EOF"));
    ask(http, "/", "", answer, sizeof answer); /* without the cookie */
    assert_non_null(strstr(answer, " 403 "));
    pl_http_free(http);
    assert_ok(pl_http_new(&http, &(pl_http_opts) { .page = page,
                                                   .metrics = metrics,
                                                   .bearer = "secret" }));
    ask(http, "/metrics", "", answer, sizeof answer);
    assert_non_null(strstr(answer, " 401 "));
    ask(http, "/metrics", "Authorization: Bearer secreT\r\n", answer,
        sizeof answer);
    assert_non_null(strstr(answer, " 401 "));
    ask(http, "/metrics", "Authorization: Bearer secret\r\n", answer,
        sizeof answer);
    assert_non_null(strstr(answer, " 200 "));
    pl_http_free(http);
}

static void a_taken_port_is_named(void **state)
{
    (void)state;
    pl_http *first, *second = NULL;
    assert_ok(pl_http_new(&first, &(pl_http_opts) { .page = page }));
    const pl_http_opts same = { .page = page, .port = port_of(first) };
    assert_fails(PL_IO, "listen at 127.0.0.1:", pl_http_new(&second, &same));
    assert_null(second);
    pl_http_free(first);
    pl_http_free(NULL);
}

static void new_survives_failed_allocations(void **state)
{
    (void)state;
    pl_http *http;
    assert_survives_failed_allocations(
        pl_http_new(&http, &(pl_http_opts) { .page = page }),
        pl_http_free(http));
}

UNIT_TESTS(cmocka_unit_test(the_token_becomes_a_cookie_once),
           cmocka_unit_test(idle_connections_do_not_block_others),
           cmocka_unit_test(metrics_require_the_token),
           cmocka_unit_test(a_taken_port_is_named),
           cmocka_unit_test(new_survives_failed_allocations))
