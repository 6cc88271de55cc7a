/* The connections to all hosts: decides how long to wait for their answers, and
 * how several failures become one message. */
#include "job/hosts/hosts.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"

#include <string.h>

#define CONNECT_MS 20000
#define TICK_MS    100

/* The first failure, and how many there were. */
typedef struct failures {
    pl_error first;
    int32_t count;
} failures;

/* The caller reports a single failure; several are logged here first. */
static void note(failures *f, pl_status status)
{
    f->count++;
    if (f->count == 1) {
        pl_error_save(&f->first, status);
        return;
    }
    if (f->count == 2)
        pl_log(PL_LOG_ERROR, "%.*s", (int)pl_error_words(f->first.message),
               f->first.message);
    pl_log(PL_LOG_ERROR, "%s", pl_error_message());
}

static pl_status raise(const failures *f, const pl_hosts *hosts)
{
    if (f->count == 0)
        return PL_OK;
    pl_status status = pl_error_raise(&f->first);
    return f->count == 1 ? status
                         : pl_context(status, "%d of %d hosts", f->count,
                                      hosts->list->count);
}

static bool interrupted(const pl_hosts *hosts)
{
    return hosts->interrupt != NULL && atomic_load(hosts->interrupt);
}

static pl_status start_one(pl_hosts *hosts, const pl_hosts_opts *opts,
                           int32_t host)
{
    char **command;
    pl_reach reach = *opts->reach;
    if (opts->programs != NULL)
        reach.program = opts->programs[host];
    PL_TRY(pl_reach_command(&command, &reach, hosts->list->name[host]));
    pl_status status =
        pl_remote_init(&hosts->remotes[host], hosts->list->name[host], command);
    pl_reach_free(command);
    return status;
}

static pl_status start_all(pl_hosts *hosts, const pl_hosts_opts *opts)
{
    size_t count = (size_t)hosts->list->count;
    PL_TRY(PL_NEW(hosts->remotes, count));
    PL_TRY(PL_NEW(hosts->all, count));
    PL_TRY(PL_NEW(hosts->asked, count));
    for (int32_t h = 0; h < hosts->list->count; h++) {
        PL_TRY(start_one(hosts, opts, h));
        hosts->all[h] = &hosts->remotes[h];
        hosts->started++;
    }
    return PL_OK;
}

/* Whether the hello, or an answer, of this host is missing. */
static bool is_awaited(const pl_hosts *hosts, int32_t host, bool hello)
{
    const pl_remote *remote = &hosts->remotes[host];
    if (remote->closed)
        return false;
    return hello ? !remote->hello
                 : hosts->asked[host] && remote->answer == NULL;
}

/* Poll all hosts once; returns the number of those still awaited. */
static int32_t look(pl_hosts *hosts, bool hello, failures *f)
{
    int32_t waiting = 0;
    for (int32_t h = 0; h < hosts->list->count; h++) {
        pl_remote *remote = &hosts->remotes[h];
        bool awaited = is_awaited(hosts, h, hello);
        pl_status status =
            remote->closed ? PL_OK : pl_remote_turn(remote, NULL, NULL);
        if (status != PL_OK) {
            note(f, status);
            remote->closed = true;
        } else if (awaited) {
            waiting += is_awaited(hosts, h, hello);
        }
    }
    return waiting;
}

static void name_silent(pl_hosts *hosts, bool hello, int64_t limit_ms,
                        failures *f)
{
    for (int32_t h = 0; h < hosts->list->count; h++)
        if (is_awaited(hosts, h, hello))
            note(f, PL_FAIL(PL_TIMEOUT, "%s does not answer within %lld s%s%s",
                            hosts->list->name[h], (long long)(limit_ms / 1000),
                            hosts->remotes[h].words[0] != '\0' ? ": " : "",
                            hosts->remotes[h].words));
}

static pl_status wait_all(pl_hosts *hosts, bool hello, int64_t limit_ms)
{
    failures f = { .count = 0 };
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), limit_ms);
    while (look(hosts, hello, &f) > 0) {
        if (interrupted(hosts))
            return PL_FAIL(PL_INTERRUPTED, "interrupted");
        if (pl_deadline_passed(deadline)) {
            name_silent(hosts, hello, limit_ms, &f);
            break;
        }
        pl_remotes_wait(hosts->all, hosts->list->count, TICK_MS);
    }
    return raise(&f, hosts);
}

pl_status pl_hosts_init(pl_hosts *hosts, const pl_hosts_opts *opts)
{
    *hosts = (pl_hosts) { .list = opts->list, .interrupt = opts->interrupt };
    pl_status status = start_all(hosts, opts);
    if (status == PL_OK)
        status = wait_all(hosts, true,
                          opts->connect_ms > 0 ? opts->connect_ms : CONNECT_MS);
    if (status != PL_OK)
        pl_hosts_close(hosts);
    return status;
}

void pl_hosts_close(pl_hosts *hosts)
{
    /* Close all inputs first, so that the agents end at the same time. */
    for (int32_t h = 0; h < hosts->started; h++)
        pl_remote_leave(&hosts->remotes[h]);
    for (int32_t h = 0; h < hosts->started; h++)
        pl_remote_close(&hosts->remotes[h]);
    pl_mem_free(hosts->remotes);
    pl_mem_free(hosts->all);
    pl_mem_free(hosts->asked);
    *hosts = (pl_hosts) { 0 };
}

pl_status pl_hosts_ask(pl_hosts *hosts, int32_t host, pl_json *take)
{
    hosts->asked[host] = true;
    pl_status status = pl_remote_ask(&hosts->remotes[host], take);
    return status == PL_OK ? PL_OK
                           : pl_context(status, "%s", hosts->list->name[host]);
}

pl_status pl_hosts_wait(pl_hosts *hosts, int64_t limit_ms)
{
    failures f = { .count = 0 };
    PL_TRY(wait_all(hosts, false, limit_ms));
    for (int32_t h = 0; h < hosts->list->count; h++) {
        const pl_json *answer;
        pl_status status = hosts->asked[h]
                               ? pl_remote_answer(&hosts->remotes[h], &answer)
                               : PL_OK;
        hosts->asked[h] = false;
        if (status != PL_OK)
            note(&f, status);
    }
    return raise(&f, hosts);
}

pl_status pl_hosts_answer(const pl_hosts *hosts, int32_t host,
                          const pl_json **out)
{
    return pl_remote_answer(&hosts->remotes[host], out);
}
