#include "dist/launch/crew.h"

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

/* One is said by who reports it; several are listed before. */
static void note(failures *f, pl_status status)
{
    f->count++;
    if (f->count == 1) {
        pl_error_save(&f->first, status);
        return;
    }
    if (f->count == 2)
        pl_log(PL_LOG_ERROR, "%s", f->first.message);
    pl_log(PL_LOG_ERROR, "%s", pl_error_message());
}

static pl_status raise(const failures *f, const pl_crew *crew)
{
    if (f->count == 0)
        return PL_OK;
    pl_status status = pl_error_raise(&f->first);
    return f->count == 1 ? status
                         : pl_context(status, "%d of %d hosts", f->count,
                                      crew->hosts->count);
}

static bool interrupted(const pl_crew *crew)
{
    return crew->interrupt != NULL && atomic_load(crew->interrupt);
}

static pl_status start_one(pl_crew *crew, const pl_crew_opts *opts,
                           int32_t host)
{
    char **command;
    pl_reach reach = *opts->reach;
    if (opts->programs != NULL)
        reach.program = opts->programs[host];
    PL_TRY(pl_reach_command(&command, &reach, crew->hosts->name[host]));
    pl_status status =
        pl_remote_init(&crew->remotes[host], crew->hosts->name[host], command);
    pl_reach_free(command);
    return status;
}

static pl_status start_all(pl_crew *crew, const pl_crew_opts *opts)
{
    size_t count = (size_t)crew->hosts->count;
    PL_TRY(PL_NEW(crew->remotes, count));
    PL_TRY(PL_NEW(crew->all, count));
    PL_TRY(PL_NEW(crew->asked, count));
    for (int32_t h = 0; h < crew->hosts->count; h++) {
        PL_TRY(start_one(crew, opts, h));
        crew->all[h] = &crew->remotes[h];
        crew->started++;
    }
    return PL_OK;
}

/* Whether this host is waited for: for its hello, or for an answer. */
static bool is_awaited(const pl_crew *crew, int32_t host, bool hello)
{
    const pl_remote *remote = &crew->remotes[host];
    if (remote->closed)
        return false;
    return hello ? !remote->hello : crew->asked[host] && remote->answer == NULL;
}

/* One look at all; the number of those that are still waited for. */
static int32_t look(pl_crew *crew, bool hello, failures *f)
{
    int32_t waiting = 0;
    for (int32_t h = 0; h < crew->hosts->count; h++) {
        pl_remote *remote = &crew->remotes[h];
        bool awaited = is_awaited(crew, h, hello);
        pl_status status =
            remote->closed ? PL_OK : pl_remote_turn(remote, NULL, NULL);
        if (status != PL_OK) {
            note(f, status);
            remote->closed = true;
        } else if (awaited) {
            waiting += is_awaited(crew, h, hello);
        }
    }
    return waiting;
}

static void name_silent(pl_crew *crew, bool hello, int64_t limit_ms,
                        failures *f)
{
    for (int32_t h = 0; h < crew->hosts->count; h++)
        if (is_awaited(crew, h, hello))
            note(f, PL_FAIL(PL_TIMEOUT, "%s does not answer within %lld s%s%s",
                            crew->hosts->name[h], (long long)(limit_ms / 1000),
                            crew->remotes[h].words[0] != '\0' ? ": " : "",
                            crew->remotes[h].words));
}

static pl_status wait_all(pl_crew *crew, bool hello, int64_t limit_ms)
{
    failures f = { .count = 0 };
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), limit_ms);
    while (look(crew, hello, &f) > 0) {
        if (interrupted(crew))
            return PL_FAIL(PL_INTERRUPTED, "interrupted");
        if (pl_deadline_passed(deadline)) {
            name_silent(crew, hello, limit_ms, &f);
            break;
        }
        pl_remotes_wait(crew->all, crew->hosts->count, TICK_MS);
    }
    return raise(&f, crew);
}

pl_status pl_crew_init(pl_crew *crew, const pl_crew_opts *opts)
{
    *crew = (pl_crew) { .hosts = opts->hosts, .interrupt = opts->interrupt };
    pl_status status = start_all(crew, opts);
    if (status == PL_OK)
        status = wait_all(crew, true,
                          opts->connect_ms > 0 ? opts->connect_ms : CONNECT_MS);
    if (status != PL_OK)
        pl_crew_close(crew);
    return status;
}

void pl_crew_close(pl_crew *crew)
{
    /* First all inputs, so that they end at the same time. */
    for (int32_t h = 0; h < crew->started; h++)
        pl_remote_leave(&crew->remotes[h]);
    for (int32_t h = 0; h < crew->started; h++)
        pl_remote_close(&crew->remotes[h]);
    pl_mem_free(crew->remotes);
    pl_mem_free(crew->all);
    pl_mem_free(crew->asked);
    *crew = (pl_crew) { 0 };
}

pl_status pl_crew_ask(pl_crew *crew, int32_t host, pl_json *take)
{
    crew->asked[host] = true;
    pl_status status = pl_remote_ask(&crew->remotes[host], take);
    return status == PL_OK ? PL_OK
                           : pl_context(status, "%s", crew->hosts->name[host]);
}

pl_status pl_crew_wait(pl_crew *crew, int64_t limit_ms)
{
    failures f = { .count = 0 };
    PL_TRY(wait_all(crew, false, limit_ms));
    for (int32_t h = 0; h < crew->hosts->count; h++) {
        const pl_json *answer;
        pl_status status = crew->asked[h]
                               ? pl_remote_answer(&crew->remotes[h], &answer)
                               : PL_OK;
        crew->asked[h] = false;
        if (status != PL_OK)
            note(&f, status);
    }
    return raise(&f, crew);
}

pl_status pl_crew_answer(const pl_crew *crew, int32_t host, const pl_json **out)
{
    return pl_remote_answer(&crew->remotes[host], out);
}
