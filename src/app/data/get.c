/* Design.  A file is downloaded as .NAME.part and gets its own name only once
 * its digest is right, so any file with that name can be used.  One process at
 * a time works in a folder: it holds a lock on it, which ends with the process;
 * the others wait and then find the files.  A broken download is resumed, by
 * the same process after a pause or by the next command; a file with a wrong
 * digest is discarded.  Mirrors are tried in turn. */
#include "app/data/get.h"

#include "app/train/interrupt.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/console.h"
#include "data/idx/mnist.h"
#include "net/http/download.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define TRIES         5   /* for one file */
#define FIRST_WAIT_MS 250 /* before the second try; then doubled */
#define LOCK_POLL_MS  100
#define REDRAW_NS     ((int64_t)200 * 1000000)
#define PACK_ROOM     4096 /* bytes by which a packed file may be larger */

static const char *const mirrors[] = {
    "https://storage.googleapis.com/cvdf-datasets/mnist",
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    NULL,
};

typedef struct getter {
    const pl_data_get_opts *opts;
    const char *const *from; /* NULL at the end */
    pl_deadline deadline;
    const atomic_bool *interrupt;
    int lock;
    /* Of the file being downloaded. */
    const pl_mnist_file *file;
    bool terminal;
    int64_t shown_ns;
} getter;

static void show(void *context, int64_t bytes, int64_t all)
{
    getter *g = context;
    int64_t now = pl_clock_now_ns(pl_clock_real());
    if (!g->terminal || now - g->shown_ns < REDRAW_NS)
        return;
    char of[64] = "";
    if (all > 0)
        snprintf(of, sizeof of, " of %.1f MB (%.0f %%)", (double)all * 1e-6,
                 100 * (double)bytes / (double)all);
    pl_console_print("\r\033[K%s  %.1f MB%s", g->file->name,
                     (double)bytes * 1e-6, of);
    g->shown_ns = now;
}

static void clear_line(getter *g)
{
    if (g->terminal && g->shown_ns > 0)
        pl_console_print("\r\033[K");
    g->shown_ns = 0;
}

/* Wait, unless interrupted or timed out. */
static pl_status pause_for(const getter *g, int64_t ms)
{
    pl_deadline end = pl_deadline_in_ms(pl_clock_real(), ms);
    while (!pl_deadline_passed(end)) {
        if (atomic_load(g->interrupt))
            return PL_FAIL(PL_INTERRUPTED, "interrupted");
        if (pl_deadline_passed(g->deadline))
            return PL_FAIL(PL_TIMEOUT, "not complete within %lld s (--timeout)",
                           (long long)g->opts->timeout_s);
        poll(NULL, 0, 50);
    }
    return PL_OK;
}

static pl_status lock_folder(getter *g)
{
    const char *out = g->opts->out;
    PL_TRY(pl_file_make_folder(out));
    g->lock = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (g->lock < 0)
        return PL_FAIL(PL_IO, "open %s: %s", out, strerror(errno));
    for (bool said = false; flock(g->lock, LOCK_EX | LOCK_NB) != 0;
         said = true) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return PL_OK; /* some network file systems have no locks */
        if (!said)
            pl_log(PL_LOG_INFO,
                   "waiting for another process that is filling "
                   "%s",
                   out);
        pl_status status = pause_for(g, LOCK_POLL_MS);
        if (status != PL_OK)
            return pl_context(status, "waiting for another process in %s", out);
    }
    return PL_OK;
}

/* One attempt at one mirror. */
static pl_status get_once(getter *g, const char *from, const char *part)
{
    char *url;
    size_t length = strlen(from);
    PL_TRY(pl_mem_format(&url, "%s%s%s", from,
                         length > 0 && from[length - 1] == '/' ? "" : "/",
                         g->file->name));
    pl_status status = pl_download(&(pl_download_opts) {
        .url = url,
        .path = part,
        .most = g->file->bytes + PACK_ROOM,
        .deadline = g->deadline,
        .interrupt = g->interrupt,
        .show = show,
        .context = g,
    });
    clear_line(g);
    if (status == PL_OK) {
        status = pl_mnist_check(g->file, part);
        if (status != PL_OK)
            status = pl_context(status, "%s", url);
    }
    pl_mem_free(url);
    if (status == PL_FORMAT) { /* wrong contents: do not resume */
        pl_error wrong;
        pl_error_save(&wrong, status);
        PL_TRY(pl_file_remove_all(part));
        return pl_error_raise(&wrong);
    }
    return status;
}

/* True when another try, perhaps at another mirror, may succeed. */
static bool may_try(pl_status status)
{
    return status == PL_AGAIN || status == PL_NOTFOUND || status == PL_FORMAT;
}

/* There is at least one. */
static size_t mirror_count(const getter *g)
{
    size_t count = 1;
    while (g->from[count] != NULL)
        count++;
    return count;
}

static pl_status get_file(getter *g, const char *part)
{
    size_t count = mirror_count(g), refused = 0;
    int64_t wait_ms = FIRST_WAIT_MS;
    for (size_t n = 1;; n++) {
        const char *from = g->from[(n - 1) % count];
        pl_status status = get_once(g, from, part);
        if (status == PL_TIMEOUT)
            return pl_context(status, "--timeout %lld s",
                              (long long)g->opts->timeout_s);
        if (!may_try(status))
            return status;
        refused = status == PL_NOTFOUND ? refused + 1 : 0;
        if (n == TRIES || refused == count)
            return status == PL_NOTFOUND
                       ? status
                       : pl_context(status, "gave up after %zu tries", n);
        if (!g->opts->quiet)
            pl_log(PL_LOG_WARN, "%s; trying again", pl_error_message());
        if (refused > 0)
            continue; /* try another mirror immediately */
        PL_TRY(pause_for(g, wait_ms));
        wait_ms *= 2;
    }
}

/* Get one file, unless it already exists. */
static pl_status provide(getter *g)
{
    char *path = NULL, *part = NULL;
    pl_status status;
    PL_TRY_OUT(status, pl_file_join(&path, g->opts->out, g->file->name));
    PL_TRY_OUT(status, pl_mem_format(&part, "%s/.%s.part", g->opts->out,
                                     g->file->name));
    status = pl_mnist_check(g->file, path);
    if (status == PL_OK) {
        printf("%s: already there\n", path);
        goto out;
    }
    if (status == PL_FORMAT)
        pl_log(PL_LOG_WARN, "%s; downloading it again", pl_error_message());
    else if (status != PL_NOTFOUND)
        goto out;
    PL_TRY_OUT(status, get_file(g, part));
    PL_TRY_OUT(status, pl_file_rename(part, path));
    printf("%s: downloaded and verified\n", path);
out:
    fflush(stdout);
    pl_mem_free(path);
    pl_mem_free(part);
    return status;
}

static pl_status provide_all(getter *g)
{
    PL_TRY(lock_folder(g));
    for (size_t i = 0; i < PL_MNIST_FILES; i++) {
        g->file = &pl_mnist_files[i];
        pl_status status = provide(g);
        if (status == PL_INTERRUPTED)
            return PL_FAIL(status, "interrupted; repeat the command to "
                                   "continue");
        PL_TRY(status);
    }
    printf("train with --data mnist:%s\n", g->opts->out);
    return PL_OK;
}

pl_status pl_data_get_mnist(const pl_data_get_opts *opts)
{
    const char *const given[] = { opts->from, NULL };
    getter g = {
        .opts = opts,
        .from = opts->from != NULL ? given : mirrors,
        .deadline = pl_deadline_in_ms(pl_clock_real(), 1000 * opts->timeout_s),
        .interrupt = pl_interrupt_catch(),
        .lock = -1,
        .terminal = !opts->quiet && isatty(STDERR_FILENO) == 1,
    };
    pl_status status = provide_all(&g);
    if (g.lock >= 0)
        close(g.lock);
    return status;
}
