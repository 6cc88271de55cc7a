/* Shows the runs of a folder in a browser while they are running. */
#include "app/train/interrupt.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "job/stop/stop.h"
#include "net/http/http.h"
#include "observe/live/live.h"

#include <poll.h>
#include <stdio.h>

#define SLICE_MS 50   /* how often to check for the end */
#define STOP_MS  2000 /* for a job to confirm that it will stop */
/* Tried first, so that open pages find a server that was restarted. */
#define USUAL_PORT 7223

typedef struct page_options {
    int64_t port;
} page_options;

static const pl_param params[] = {
    { .name = "port",
      .kind = PL_PARAM_INT,
      .offset = offsetof(page_options, port),
      .fallback = "0",
      .most = 65535,
      .help = "port of the loopback interface (default: 7223, or any free "
              "port)",
      .why = "Give it when you forward a port by ssh, or bookmark the page: "
             "7223 may be taken by another `paceline page`. Example: --port "
             "8080." },
};

static char standard_folder[] = "runs";

static pl_status stop_run(const char *run)
{
    return pl_stop_ask(run, pl_deadline_in_ms(pl_clock_real(), STOP_MS));
}

static pl_status start(pl_http **out, const page_options *options,
                       pl_live *live)
{
    pl_http_opts opts = { .port = (int)options->port,
                          .page = pl_live_page,
                          .post = pl_live_post,
                          .metrics = pl_live_metrics,
                          .context = live };
    if (options->port == 0) {
        opts.port = USUAL_PORT;
        if (pl_http_new(out, &opts) == PL_OK)
            return PL_OK;
        opts.port = 0; /* the port is in use */
    }
    return pl_http_new(out, &opts);
}

static pl_status serve(const page_options *options, const pl_words *words)
{
    char *folder = words->count > 0 ? words->list[0] : standard_folder;
    pl_http *http;
    if (words->count > 1)
        return PL_FAIL(PL_USAGE, "page takes one folder, found %d",
                       words->count);
    if (!pl_file_exists(folder))
        return PL_FAIL(PL_NOTFOUND,
                       "%s: there is no such folder; expected a run folder, "
                       "or a folder of them: page [DIR]",
                       folder);
    const atomic_bool *interrupt = pl_interrupt_catch();
    pl_live live = { .folder = folder,
                     .can_stop = pl_stop_is_there,
                     .stop = stop_run };
    PL_TRY(start(&http, options, &live));
    printf("%s\n", pl_http_url(http));
    fflush(stdout);
    pl_log(PL_LOG_INFO, "open this once in a browser; Ctrl-C ends it");
    while (!atomic_load(interrupt))
        poll(NULL, 0, SLICE_MS);
    pl_http_free(http);
    return PL_OK;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    page_options options;
    pl_words words;
    PL_TRY(pl_command_parse(&pl_cmd_page, app, &options, argc, argv, &words));
    if (words.list == NULL)
        return PL_OK;
    pl_status status = serve(&options, &words);
    pl_mem_free(words.list);
    return status;
}

const pl_command pl_cmd_page = {
    .name = "page",
    .usage = "page [DIR]",
    .help = "follow runs in a browser",
    .about =
        "Show the runs of a folder (default: runs) in a browser, live: "
        "curves, resources\nof each host, logs. The page answers only this "
        "host, and only browsers that open\nthe printed URL; from elsewhere: "
        "ssh -L PORT:127.0.0.1:PORT HOST.",
    .examples = {
        { "page", "the runs in ./runs" },
        { "page sweeps/a1-batch", "the runs of a sweep" },
        { "page --port 8080", "at a fixed port" },
    },
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};
