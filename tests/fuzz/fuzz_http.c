/* fuzz_http.c - bytes that reach the port of the live page.
 *
 * The input is what a client sends before it closes its side, except for a few
 * bytes that stand for what it cannot know: 1 is the server's host and port, 2
 * its token, 3 its cookie, 4 the cookie's name, and 5 what programs that ask
 * for the metrics must send.  One server answers all
 * inputs; a token that was used up is replaced by the next.
 *
 * No client gets a page without the cookie, the cookie without the token, or
 * the metrics without the bearer token, and the server answers the next client
 * after any input. */
#include "base/assert.h"
#include "base/file/file.h"
#include "base/log.h"
#include "fuzz/fuzz.h"
#include "fuzz/loopback.h"
#include "net/http/http.h"
#include "observe/live/live.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MOST 128
#define SECRET    64 /* digits */
#define BEARER    "e4d909c290d0fb1ca068ffaddf22cbd0"
#define PAGE      "Runs in " /* the title of the page that lists them */

typedef struct server {
    pl_http *http;
    uint16_t port;
    char host[TEXT_MOST], token[TEXT_MOST], cookie[TEXT_MOST], name[TEXT_MOST];
} server;

static server own;
static atomic_bool stopped; /* a run was asked to end */
static char folder[] = "/tmp/paceline-fuzz-page-XXXXXX";

/* The URL with the next token is logged when one was used. */
static void take_token(const char *line)
{
    const char *at = strstr(line, "?token=");
    if (at != NULL)
        snprintf(own.token, sizeof own.token, "%.*s", SECRET, at + 7);
}

static void on_log(void *context, pl_log_level level, const char *line)
{
    (void)context, (void)level;
    take_token(line);
}

/* --- the client ------------------------------------------------------- */

static void put_request(pl_buffer *out, const uint8_t *data, size_t bytes)
{
    const char *const texts[] = { own.host, own.token, own.cookie, own.name,
                                  BEARER };
    for (size_t i = 0; i < bytes; i++)
        if (data[i] >= 1 && data[i] <= 5)
            pl_buffer_text(out, texts[data[i] - 1]);
        else
            pl_buffer_put(out, data + i, 1);
    if (pl_buffer_status(out) != PL_OK)
        abort();
}

/* Send all of it, and take the answers until the server closes. */
static void exchange(const pl_buffer *request, pl_buffer *answer)
{
    char bytes[4096];
    size_t got;
    int fd = fuzz_connect(own.port);
    if (fuzz_send(fd, request->data, request->bytes))
        shutdown(fd, SHUT_WR);
    while ((got = fuzz_receive(fd, bytes, sizeof bytes)) > 0)
        pl_buffer_put(answer, bytes, got);
    close(fd);
    if (pl_buffer_status(answer) != PL_OK)
        abort();
}

/* --- the server ------------------------------------------------------- */

static void write_run(void)
{
    static const char run[] = "{\"format\": 1, \"model\": \"softmax\", "
                              "\"args\": {\"lr\": \"0.1\"}}";
    char path[TEXT_MOST];
    if (mkdtemp(folder) == NULL)
        abort();
    snprintf(path, sizeof path, "%s/a b", folder);
    if (pl_file_make_folder(path) != PL_OK)
        abort();
    snprintf(path, sizeof path, "%s/a b/run.json", folder);
    if (pl_file_replace(path, run, strlen(run)) != PL_OK)
        abort();
}

static void end(void)
{
    char path[TEXT_MOST];
    pl_http_free(own.http);
    snprintf(path, sizeof path, "%s/a b/run.json", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/a b", folder);
    rmdir(path);
    rmdir(folder);
}

/* The cookie given for the token. */
static void take_cookie(void)
{
    pl_buffer request = { 0 }, answer = { 0 };
    pl_buffer_format(&request,
                     "GET /?token=%s HTTP/1.1\r\nHost: %s\r\n"
                     "Connection: close\r\n\r\n",
                     own.token, own.host);
    exchange(&request, &answer);
    const char *at = strstr(answer.data, own.name);
    PL_ASSERT(at != NULL);
    snprintf(own.cookie, sizeof own.cookie, "%.*s", SECRET,
             at + strlen(own.name) + 1);
    pl_buffer_close(&request);
    pl_buffer_close(&answer);
}

static bool can_stop(const char *run)
{
    (void)run;
    return true;
}

/* Only a request with the cookie and this server's Origin gets here. */
static pl_status stop(const char *run)
{
    (void)run;
    stopped = true;
    return PL_OK;
}

/* False where the library is not installed. */
static bool begin(void)
{
    static pl_live live = { .folder = folder,
                            .can_stop = can_stop,
                            .stop = stop };
    unsigned port;
    write_run();
    atexit(end);
    pl_log_set(on_log, NULL, PL_LOG_INFO);
    if (pl_http_new(&own.http, &(pl_http_opts) { .page = pl_live_page,
                                                 .post = pl_live_post,
                                                 .metrics = pl_live_metrics,
                                                 .bearer = BEARER,
                                                 .context = &live }) != PL_OK)
        return false;
    const char *url = pl_http_url(own.http);
    PL_ASSERT(sscanf(url, "http://127.0.0.1:%u/", &port) == 1);
    own.port = (uint16_t)port;
    snprintf(own.host, sizeof own.host, "127.0.0.1:%u", port);
    snprintf(own.name, sizeof own.name, "paceline-%u", port);
    take_token(url);
    take_cookie();
    return true;
}

static bool holds(const pl_buffer *buffer, const char *text)
{
    return buffer->bytes > 0 &&
           memmem(buffer->data, buffer->bytes, text, strlen(text)) != NULL;
}

/* A browser with the cookie still gets the page. */
static void look(void)
{
    pl_buffer request = { 0 }, answer = { 0 };
    pl_buffer_format(&request,
                     "GET / HTTP/1.1\r\nHost: %s\r\nCookie: %s=%s\r\n"
                     "Connection: close\r\n\r\n",
                     own.host, own.name, own.cookie);
    exchange(&request, &answer);
    PL_ASSERT(holds(&answer, "HTTP/1.1 200 ") && holds(&answer, PAGE));
    pl_buffer_close(&request);
    pl_buffer_close(&answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static bool begun, there;
    static unsigned count;
    if (!begun)
        there = begin();
    begun = true;
    if (!there)
        return 0;
    char token[TEXT_MOST];
    pl_buffer request = { 0 }, answer = { 0 };
    memcpy(token, own.token, sizeof token);
    put_request(&request, data, bytes);
    exchange(&request, &answer);
    if (holds(&answer, PAGE) || holds(&answer, "HTTP/1.1 200 "))
        PL_ASSERT(holds(&request, own.cookie) || holds(&request, BEARER));
    if (holds(&answer, PAGE))
        PL_ASSERT(holds(&request, own.cookie));
    char origin[TEXT_MOST + 16];
    snprintf(origin, sizeof origin, "http://%s", own.host);
    if (atomic_exchange(&stopped, false))
        PL_ASSERT(holds(&request, own.cookie) && holds(&request, origin));
    if (holds(&answer, own.cookie)) /* given out, or a path that is not there */
        PL_ASSERT(holds(&request, token) || holds(&request, own.cookie));
    pl_buffer_close(&request);
    pl_buffer_close(&answer);
    if (count++ % 16 == 0)
        look();
    return 0;
}
