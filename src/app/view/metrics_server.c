/* metrics_server.c - serves a run folder as OpenMetrics; decides which token
 * files are acceptable. */
#include "app/view/metrics_server.h"

#include "base/error.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/http/http.h"
#include "observe/live/live.h"

#include <string.h>
#include <sys/stat.h>

#define TOKEN_LEAST 16
#define TOKEN_MOST  1024

struct pl_metrics_server {
    pl_live live;
    char *token; /* NULL: none is required */
    pl_http *http;
};

/* A line of printable characters in a file that only its owner can read. */
static pl_status read_token(char **out, const char *path)
{
    struct stat file;
    char *token;
    pl_status status = pl_file_read_text(&token, path, TOKEN_MOST);
    if (status != PL_OK)
        return pl_context(status, "--metrics-token");
    size_t length = strcspn(token, "\r\n");
    bool ends = token[length + strspn(token + length, "\r\n")] == '\0';
    token[length] = '\0';
    for (size_t i = 0; i < length; i++)
        ends = ends && token[i] > ' ' && token[i] < 0x7f;
    if (!ends || length < TOKEN_LEAST)
        status = PL_FAIL(PL_USAGE,
                         "--metrics-token: %s: expected one line of at least "
                         "%d printable ASCII characters without blanks, as "
                         "made by `openssl rand -hex 32`",
                         path, TOKEN_LEAST);
    else if (stat(path, &file) == 0 && (file.st_mode & 077) != 0)
        status = PL_FAIL(PL_USAGE,
                         "--metrics-token: %s is accessible to users other "
                         "than its owner (mode %04o): chmod 600 %s",
                         path, file.st_mode & 07777u, path);
    if (status == PL_OK)
        *out = token;
    else
        pl_mem_free(token);
    return status;
}

static pl_status start(pl_metrics_server *server, const pl_train_options *train,
                       const char *run)
{
    PL_TRY(pl_mem_copy_text(&server->live.folder, run));
    if (train->metrics_token != NULL)
        PL_TRY(read_token(&server->token, train->metrics_token));
    pl_status status =
        pl_http_new(&server->http, &(pl_http_opts) {
                                       .address = train->metrics,
                                       .metrics = pl_live_metrics,
                                       .bearer = server->token,
                                       .context = &server->live,
                                   });
    if (status != PL_OK)
        return pl_context(status, "--metrics");
    pl_log(PL_LOG_INFO, "metrics: %s%s", pl_http_url(server->http),
           server->token != NULL ? ", for clients with the token" : "");
    return PL_OK;
}

pl_status pl_metrics_server_start(pl_metrics_server **out,
                                  const pl_train_options *train,
                                  const char *run)
{
    pl_metrics_server *server;
    *out = NULL;
    if (train->metrics == NULL)
        return PL_OK;
    PL_TRY(PL_NEW(server, 1));
    pl_status status = start(server, train, run);
    if (status == PL_OK)
        *out = server;
    else
        pl_metrics_server_stop(server);
    return status;
}

void pl_metrics_server_stop(pl_metrics_server *server)
{
    if (server == NULL)
        return;
    pl_http_free(server->http);
    pl_mem_free(server->live.folder);
    pl_mem_free(server->token);
    pl_mem_free(server);
}
