/* http.c - decides which requests are answered and which connections are kept.
 *
 * Any user of the host can connect, and libmicrohttpd would stop accepting at
 * its limit until a connection times out.  So beyond CONNECTIONS_MOST the
 * oldest connection without the cookie is closed for the new one: strangers
 * displace each other, never the user of the page. */
#include "net/http/http.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/address.h"
#include "net/library.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MOST 64
#define CLOSING_MOST     64  /* further ones, being closed */
#define SILENCE_S        30U /* after which a connection is closed */
#define REQUEST_BYTES    ((size_t)32 << 10) /* of memory per connection */
#define BACKLOG          128

#define SECRET_BYTES 32
#define SECRET_TEXT  (2 * SECRET_BYTES + 1)
#define HOST_BYTES   (PL_ADDRESS_BYTES + 8)
#define METRICS      "/metrics"

/* The functions used. */
typedef struct http_calls {
    struct MHD_Daemon *(*start)(unsigned, uint16_t, MHD_AcceptPolicyCallback,
                                void *, MHD_AccessHandlerCallback, void *, ...);
    void (*stop)(struct MHD_Daemon *);
    const char *(*value)(struct MHD_Connection *, enum MHD_ValueKind,
                         const char *);
    struct MHD_Response *(*response)(size_t, void *,
                                     enum MHD_ResponseMemoryMode);
    enum MHD_Result (*header)(struct MHD_Response *, const char *,
                              const char *);
    enum MHD_Result (*queue)(struct MHD_Connection *, unsigned,
                             struct MHD_Response *);
    void (*destroy)(struct MHD_Response *);
    const union MHD_ConnectionInfo *(*info)(struct MHD_Connection *,
                                            enum MHD_ConnectionInfoType, ...);
} http_calls;

/* A connection; used by the server's thread. */
typedef struct visitor {
    bool here, leaving;
    bool known; /* has shown the cookie */
    int file;
    uint64_t number; /* in order of arrival */
} visitor;

struct pl_http {
    pl_http_opts opts;
    http_calls calls;
    struct MHD_Daemon *daemon;
    visitor visitors[CONNECTIONS_MOST + CLOSING_MOST];
    uint64_t came;
    int listener;
    pl_address address;
    char hosts[2][HOST_BYTES]; /* accepted values of Host */
    char cookie_name[32];
    char cookie[SECRET_TEXT];
    char token[SECRET_TEXT]; /* renewed by the server's thread */
    char url[HOST_BYTES + SECRET_TEXT + 16];
};

static pl_status load(http_calls *calls)
{
    const pl_library_call list[] = {
        { "MHD_start_daemon", &calls->start },
        { "MHD_stop_daemon", &calls->stop },
        { "MHD_lookup_connection_value", &calls->value },
        { "MHD_create_response_from_buffer", &calls->response },
        { "MHD_add_response_header", &calls->header },
        { "MHD_queue_response", &calls->queue },
        { "MHD_destroy_response", &calls->destroy },
        { "MHD_get_connection_info", &calls->info },
    };
    return pl_library_load("libmicrohttpd.so.12", "libmicrohttpd12", list,
                           sizeof list / sizeof *list);
}

static void make_secret(char text[SECRET_TEXT])
{
    unsigned char bytes[SECRET_BYTES];
    randombytes_buf(bytes, sizeof bytes);
    sodium_bin2hex(text, SECRET_TEXT, bytes, sizeof bytes);
}

static bool is_secret(const char *given, const char secret[SECRET_TEXT])
{
    return given != NULL && strlen(given) == SECRET_TEXT - 1 &&
           sodium_memcmp(given, secret, SECRET_TEXT - 1) == 0;
}

static void make_url(const pl_http *http, char *url, size_t room)
{
    if (http->opts.page == NULL)
        snprintf(url, room, "http://%s" METRICS, http->hosts[0]);
    else
        snprintf(url, room, "http://%s/?token=%s", http->hosts[0], http->token);
}

/* Headers of every answer: no caching, no guessing of types, and scripts and
 * data from this server only. */
static const char *const headers[][2] = {
    { "Cache-Control", "no-store" },
    { "X-Content-Type-Options", "nosniff" },
    { "Referrer-Policy", "no-referrer" },
    { "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src "
      "'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri "
      "'none'; form-action 'none'" },
};

/* Up to two more headers may be given. */
static enum MHD_Result answer(const pl_http *http,
                              struct MHD_Connection *connection, unsigned code,
                              const char *type, const pl_buffer *body,
                              const char *const extra[2][2])
{
    const http_calls *calls = &http->calls;
    struct MHD_Response *response =
        calls->response(body->bytes, body->data, MHD_RESPMEM_MUST_COPY);
    if (response == NULL)
        return MHD_NO;
    enum MHD_Result done =
        calls->header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    for (size_t i = 0; i < sizeof headers / sizeof *headers && done; i++)
        done = calls->header(response, headers[i][0], headers[i][1]);
    for (size_t i = 0; extra != NULL && i < 2 && done; i++)
        done = calls->header(response, extra[i][0], extra[i][1]);
    if (done)
        done = calls->queue(connection, code, response);
    calls->destroy(response);
    return done;
}

static enum MHD_Result say(const pl_http *http,
                           struct MHD_Connection *connection, unsigned code,
                           const char *text)
{
    pl_buffer body = { 0 };
    pl_buffer_format(&body, "%s\n", text);
    enum MHD_Result done = answer(http, connection, code,
                                  "text/plain; charset=utf-8", &body, NULL);
    pl_buffer_close(&body);
    return done;
}

/* The token was right: set the cookie, and issue a new token. */
static enum MHD_Result let_in(pl_http *http, struct MHD_Connection *connection)
{
    char cookie[sizeof http->cookie_name + SECRET_TEXT + 64],
        url[sizeof http->url];
    const pl_buffer nothing = { 0 };
    snprintf(cookie, sizeof cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict",
             http->cookie_name, http->cookie);
    const char *const extra[2][2] = { { MHD_HTTP_HEADER_SET_COOKIE, cookie },
                                      { MHD_HTTP_HEADER_LOCATION, "/" } };
    enum MHD_Result done = answer(http, connection, MHD_HTTP_SEE_OTHER,
                                  "text/plain", &nothing, extra);
    make_secret(http->token);
    make_url(http, url, sizeof url);
    pl_log(PL_LOG_INFO, "opened; for one more browser: %s", url);
    return done;
}

static enum MHD_Result show_page(const pl_http *http,
                                 struct MHD_Connection *connection,
                                 pl_http_page *page, const char *path)
{
    pl_buffer body = { 0 };
    const char *type = "text/plain";
    pl_error why;
    pl_status status = page(http->opts.context, path, &body, &type);
    if (status == PL_OK)
        status = pl_buffer_status(&body);
    pl_error_save(&why, status);
    why.message[pl_error_words(why.message)] = '\0';
    enum MHD_Result done;
    if (status == PL_OK)
        done = answer(http, connection, MHD_HTTP_OK, type, &body, NULL);
    else
        done = say(http, connection,
                   status == PL_NOTFOUND ? MHD_HTTP_NOT_FOUND
                   : status == PL_CLOSED ? MHD_HTTP_CONFLICT
                                         : MHD_HTTP_INTERNAL_SERVER_ERROR,
                   why.message);
    pl_buffer_close(&body);
    return done;
}

static bool is_ours(const pl_http *http, const char *host)
{
    return host != NULL && (strcmp(host, http->hosts[0]) == 0 ||
                            strcmp(host, http->hosts[1]) == 0);
}

#define VISITORS (CONNECTIONS_MOST + CLOSING_MOST)

/* The connection to close when there are too many: the oldest without the
 * cookie, otherwise the oldest; NULL: there is room. */
static visitor *one_too_many(pl_http *http)
{
    visitor *oldest = NULL;
    int count = 0;
    for (int i = 0; i < VISITORS; i++) {
        visitor *v = &http->visitors[i];
        if (!v->here || v->leaving)
            continue;
        count++;
        if (oldest == NULL || v->known < oldest->known ||
            (v->known == oldest->known && v->number < oldest->number))
            oldest = v;
    }
    return count > CONNECTIONS_MOST ? oldest : NULL;
}

/* libmicrohttpd's callback for a connection opened or closed. */
static void notice(void *context, struct MHD_Connection *connection,
                   void **slot, enum MHD_ConnectionNotificationCode code)
{
    pl_http *http = context;
    visitor *v = *slot;
    if (code != MHD_CONNECTION_NOTIFY_STARTED) {
        if (v != NULL)
            *v = (visitor) { .here = false };
        return;
    }
    const union MHD_ConnectionInfo *info =
        http->calls.info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    for (int i = 0; v == NULL && i < VISITORS; i++)
        if (!http->visitors[i].here)
            v = &http->visitors[i];
    if (v == NULL || info == NULL)
        return;
    *v = (visitor) { .here = true,
                     .file = info->connect_fd,
                     .number = http->came++ };
    *slot = v;
    visitor *out = one_too_many(http);
    if (out != NULL) {
        out->leaving = true;
        shutdown(out->file, SHUT_RDWR); /* its end is noticed and closed */
    }
}

static void know(pl_http *http, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        http->calls.info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    visitor *v = info != NULL ? info->socket_context : NULL;
    if (v != NULL)
        v->known = true;
}

/* Cookies are shared by all ports, so a page of another server on this host can
 * make the browser send ours; the Origin of a POST tells them apart. */
static bool is_from_our_page(const pl_http *http, const char *origin)
{
    const char scheme[] = "http://";
    size_t length = strlen(scheme);
    return origin != NULL && strncmp(origin, scheme, length) == 0 &&
           is_ours(http, origin + length);
}

/* "Authorization: Bearer <the configured token>" */
static bool bears(const pl_http *http, struct MHD_Connection *connection)
{
    const char scheme[] = "Bearer ", *wanted = http->opts.bearer;
    const char *given = http->calls.value(connection, MHD_HEADER_KIND,
                                          MHD_HTTP_HEADER_AUTHORIZATION);
    size_t length = strlen(scheme);
    return given != NULL && strncasecmp(given, scheme, length) == 0 &&
           strlen(given + length) == strlen(wanted) &&
           sodium_memcmp(given + length, wanted, strlen(wanted)) == 0;
}

/* For programs.  Where a token is required, a page cannot make a browser send
 * it, so Host is not checked. */
static enum MHD_Result show_metrics(const pl_http *http,
                                    struct MHD_Connection *connection)
{
    if (http->opts.bearer != NULL && !bears(http, connection))
        return say(http, connection, MHD_HTTP_UNAUTHORIZED,
                   "The metrics are for clients that send the token of "
                   "--metrics-token\nas \"Authorization: Bearer TOKEN\".");
    if (http->opts.bearer == NULL &&
        !is_ours(http, http->calls.value(connection, MHD_HEADER_KIND,
                                         MHD_HTTP_HEADER_HOST)))
        return say(http, connection, MHD_HTTP_MISDIRECTED_REQUEST,
                   "this server has another name");
    return show_page(http, connection, http->opts.metrics, METRICS);
}

/* libmicrohttpd's callback: first when the headers are complete, then when the
 * body is. */
static enum MHD_Result serve(void *context, struct MHD_Connection *connection,
                             const char *path, const char *method,
                             const char *version, const char *data,
                             size_t *data_bytes, void **state)
{
    pl_http *http = context;
    const http_calls *calls = &http->calls;
    bool post =
        http->opts.post != NULL && strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    (void)version;
    (void)data;
    if (!post && strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
        strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return say(http, connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                   "only GET and HEAD are answered here");
    if (*state == NULL) {
        *state = http;
        return MHD_YES;
    }
    if (*data_bytes > 0) { /* discarded */
        *data_bytes = 0;
        return MHD_YES;
    }
    if (http->opts.metrics != NULL && !post && strcmp(path, METRICS) == 0)
        return show_metrics(http, connection);
    if (http->opts.page == NULL)
        return say(http, connection, MHD_HTTP_NOT_FOUND,
                   "there is only " METRICS " here");
    if (!is_ours(http, calls->value(connection, MHD_HEADER_KIND,
                                    MHD_HTTP_HEADER_HOST)))
        return say(http, connection, MHD_HTTP_MISDIRECTED_REQUEST,
                   "this server has another name");
    if (is_secret(calls->value(connection, MHD_GET_ARGUMENT_KIND, "token"),
                  http->token))
        return let_in(http, connection);
    if (!is_secret(calls->value(connection, MHD_COOKIE_KIND, http->cookie_name),
                   http->cookie))
        return say(http, connection, MHD_HTTP_FORBIDDEN,
                   "This page is for the person who started its server "
                   "(paceline page).\nOpen the URL that the server printed "
                   "last in this browser: each works once.\nA restarted "
                   "server prints a new one; then pages that are open "
                   "continue.");
    know(http, connection);
    if (post &&
        !is_from_our_page(http, calls->value(connection, MHD_HEADER_KIND,
                                             MHD_HTTP_HEADER_ORIGIN)))
        return say(http, connection, MHD_HTTP_FORBIDDEN,
                   "only a page of this server may do that");
    return show_page(http, connection, post ? http->opts.post : http->opts.page,
                     path);
}

/* Beyond loopback a token is required. */
static pl_status find_address(pl_http *http)
{
    const pl_http_opts *opts = &http->opts;
    char loopback[32];
    snprintf(loopback, sizeof loopback, "127.0.0.1:%d", opts->port);
    PL_TRY(pl_address_split(&http->address,
                            opts->address != NULL ? opts->address : loopback));
    PL_TRY(pl_address_resolve(&http->address));
    if (opts->bearer == NULL && !pl_address_is_loopback(&http->address))
        return PL_FAIL(PL_USAGE,
                       "%s is not on loopback, where others could read the "
                       "metrics: add --metrics-token FILE",
                       opts->address);
    return PL_OK;
}

/* The port that the kernel chose for 0. */
static int port_of(const struct sockaddr_storage *at, bool ipv6)
{
    return ntohs(ipv6 ? ((const struct sockaddr_in6 *)at)->sin6_port
                      : ((const struct sockaddr_in *)at)->sin_port);
}

static pl_status listen_at(pl_http *http)
{
    pl_address *address = &http->address;
    struct sockaddr_storage at;
    socklen_t size;
    int one = 1;
    PL_TRY(find_address(http));
    pl_address_socket(address, &at, &size);
    http->listener = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (http->listener < 0 ||
        setsockopt(http->listener, SOL_SOCKET, SO_REUSEADDR, &one,
                   sizeof one) != 0 ||
        bind(http->listener, (struct sockaddr *)&at, size) != 0 ||
        listen(http->listener, BACKLOG) != 0 ||
        getsockname(http->listener, (struct sockaddr *)&at, &size) != 0)
        return PL_FAIL(PL_IO, "listen at %s:%s: %s", address->numeric,
                       address->port, strerror(errno));
    snprintf(address->port, sizeof address->port, "%d",
             port_of(&at, address->ipv6));
    return PL_OK;
}

static pl_status start(pl_http *http)
{
    PL_TRY(load(&http->calls));
    if (sodium_init() < 0)
        return PL_FAIL(PL_IO, "libsodium finds no source of random numbers");
    PL_TRY(listen_at(http));
    const pl_address *address = &http->address;
    snprintf(http->hosts[0], HOST_BYTES, "%s:%s", address->numeric,
             address->port);
    snprintf(http->hosts[1], HOST_BYTES, "localhost:%s", address->port);
    /* Cookies are shared by all ports. */
    snprintf(http->cookie_name, sizeof http->cookie_name, "paceline-%s",
             address->port);
    make_secret(http->cookie);
    make_secret(http->token);
    make_url(http, http->url, sizeof http->url);
    http->daemon = http->calls.start(
        MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, serve, http,
        MHD_OPTION_LISTEN_SOCKET, http->listener, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)VISITORS, MHD_OPTION_NOTIFY_CONNECTION, notice, http,
        MHD_OPTION_CONNECTION_TIMEOUT, SILENCE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, REQUEST_BYTES, MHD_OPTION_END);
    if (http->daemon == NULL)
        return PL_FAIL(PL_IO, "libmicrohttpd cannot start a server: %s",
                       strerror(errno));
    return PL_OK;
}

pl_status pl_http_new(pl_http **out, const pl_http_opts *opts)
{
    pl_http *http;
    PL_TRY(PL_NEW(http, 1));
    http->opts = *opts;
    http->listener = -1;
    pl_status status = start(http);
    if (status != PL_OK) {
        pl_http_free(http);
        return status;
    }
    *out = http;
    return PL_OK;
}

void pl_http_free(pl_http *http)
{
    if (http == NULL)
        return;
    if (http->daemon != NULL)
        http->calls.stop(http->daemon); /* closes the listener, too */
    else if (http->listener >= 0)
        close(http->listener);
    pl_mem_free(http);
}

const char *pl_http_url(const pl_http *http)
{
    return http->url;
}
