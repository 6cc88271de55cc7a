/* http.h - pages for one user of this host, and metrics for programs.
 *
 * It listens on loopback and serves pages only to browsers that opened the URL
 * it printed: the token in it is valid once and becomes a cookie that no script
 * can read and no other site can make the browser send.  A request with another
 * Host (a site whose name resolves to 127.0.0.1) is refused, as is a POST whose
 * Origin is not this server.
 *
 * Programs have no cookie: GET /metrics is answered on loopback and, where a
 * bearer token is set, to requests with that token, also beyond loopback.
 *
 * It keeps 64 connections; beyond that the oldest without the cookie is closed
 * for a new one, so idle connections shut out no other.
 *
 * Uses libmicrohttpd, loaded at first use.
 *
 * Threads: pages are made by one thread of the server, one at a time; the calls
 * below are for one thread. */
#ifndef PL_NET_HTTP_HTTP_H
#define PL_NET_HTTP_HTTP_H

#include "base/buffer.h"

typedef struct pl_http pl_http;

/* Append the content of `path` ("/runs/a", without its query) to `body` and set
 * its type ("text/html").  PL_NOTFOUND: 404, other failures: 500, with the
 * message as the body. */
typedef pl_status pl_http_page(void *context, const char *path, pl_buffer *body,
                               const char **type);

typedef struct pl_http_opts {
    int port;            /* on loopback; 0: any free one */
    const char *address; /* "HOST:PORT" instead; NULL: loopback */
    pl_http_page *page;  /* NULL: metrics only */
    pl_http_page *post;  /* for a POST, whose own body must be empty: likewise,
                            and PL_CLOSED is 409; NULL: none is answered */
    pl_http_page *metrics; /* content of /metrics; NULL: none */
    const char *bearer;    /* required as "Authorization: Bearer"; borrowed.
                              NULL: not required, which beyond loopback is
                              PL_USAGE */
    void *context;
} pl_http_opts;

/* Start serving; PL_IO when the port is taken. */
pl_status pl_http_new(pl_http **out, const pl_http_opts *opts) PL_MUST_CHECK;
void pl_http_free(pl_http *http); /* NULL is fine */

/* The URL to open first; it works once, and its successor is logged after use.
 * Without pages, the URL of the metrics. */
const char *pl_http_url(const pl_http *http);

#endif
