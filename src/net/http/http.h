/* http.h - pages for one person at this host, and metrics for programs.
 *
 * It listens on loopback, and shows pages only to browsers that came by the URL
 * it gave out: the token in it is good once and becomes a cookie that no script
 * reads and no other site makes the browser send.  A request whose Host is
 * another name (a site that lets its own name mean 127.0.0.1) is refused, and a
 * POST that does not come from a page of this server (its Origin).
 *
 * Programs have no cookie: GET /metrics is answered on loopback, and where a
 * bearer token is set to whoever sends it, also beyond loopback.
 *
 * It keeps 64 connections; beyond that the oldest that showed no cookie makes
 * room for a new one, so idle ones shut out no other.
 *
 * By libmicrohttpd, which is loaded when it is first needed.
 *
 * Threads: the pages are made by a thread of the server, one at a time; the
 * rest is called from one. */
#ifndef PL_NET_HTTP_HTTP_H
#define PL_NET_HTTP_HTTP_H

#include "base/buffer.h"

typedef struct pl_http pl_http;

/* Append what is at `path` ("/runs/a", without its query) to `body` and name
 * its type ("text/html").  PL_NOTFOUND: 404, other failures: 500, with the
 * message as the body. */
typedef pl_status pl_http_page(void *context, const char *path, pl_buffer *body,
                               const char **type);

typedef struct pl_http_opts {
    int port;            /* of loopback; 0: any that is free */
    const char *address; /* "HOST:PORT" instead; NULL: loopback */
    pl_http_page *page;  /* NULL: there are only metrics */
    pl_http_page *post;  /* for a POST, whose own body must be empty: likewise,
                            and PL_CLOSED is 409; NULL: none is answered */
    pl_http_page *metrics; /* what /metrics is for programs; NULL: nothing */
    const char *bearer;    /* what they must send as "Authorization: Bearer";
                              borrowed.  NULL: nothing, which beyond loopback is
                              PL_USAGE */
    void *context;
} pl_http_opts;

/* Begin to serve; PL_IO when the port is taken. */
pl_status pl_http_new(pl_http **out, const pl_http_opts *opts) PL_MUST_CHECK;
void pl_http_free(pl_http *http); /* NULL is fine */

/* To be opened first, once; the next one is logged when it was.  Without pages
 * the place of the metrics. */
const char *pl_http_url(const pl_http *http);

#endif
