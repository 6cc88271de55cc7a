/* Design.  One loop: wait a moment for messages, take them, reap who ended,
 * look at the interrupt and at the deadline of the phase, show.  A socket
 * that closes wakes the loop when a process ends, so no signal handler is
 * needed.
 *
 * Phases only move forward:
 *
 *   RUN   -> OVER    a server or the chief ended well: nobody is started
 *                    again; the chief may take its time, but once it has
 *                    ended the others must
 *   RUN   -> ASKED   interrupted: all were told to end
 *   any   -> TERM    SIGTERM to all: something failed, or a limit passed
 *   TERM  -> KILL    SIGKILL to all
 *
 * The first failure is kept and is the result. */
#include "dist/launch/local.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "dist/launch/chaos.h"
#include "dist/launch/child.h"
#include "dist/launch/control_host.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MS     50
#define JOIN_MS     60000
#define END_MS      60000
#define KILL_MS     10000
#define GONE_MS     30000 /* from SIGKILL to the end of a process */
#define SHOWN_LINES 5     /* of a log */
#define LOG_BYTES   2048
#define HOW_BYTES   96
#define EXTRA_ARGS  7 /* behind the command, with the NULL */

typedef enum phase {
    RUN,
    OVER,
    ASKED,
    TERM,
    KILL,
} phase;

typedef struct task {
    char *log;
    int control;      /* -1: closed */
    int64_t log_from; /* where this process's part begins */
    bool lost;        /* declared so; it was killed */
    int64_t heard_ns; /* its last message */
    int32_t excused;  /* starts that take none of --restarts */
    bool there;       /* this process has said that it is a task */
    bool joined;      /* a process of this task was in the job */
    bool closing;     /* the chief takes leave of the others */
} task;

typedef struct local {
    const pl_local_opts *opts;
    pl_cluster cluster; /* with the addresses reported so far */
    int32_t missing;    /* addresses */
    int count;
    pl_local_task *seen; /* [count], servers first */
    task *own;           /* [count] */
    struct pollfd *polls;
    pl_chaos *chaos; /* NULL: none */
    char **argv;     /* the command with room for what is added */
    size_t args;
    char **environment; /* ours, and who the task is */
    char task[64];
    phase phase;
    pl_deadline deadline; /* of the phase, where it has a limit */
    bool done;            /* the chief ended well */
    pl_error failed;      /* the first failure; PL_OK: none */
} local;

static const char *role_of(const local *l, int i)
{
    return pl_role_text(l->seen[i].task.role);
}

static pl_deadline in_ms(int64_t ms, int64_t otherwise)
{
    return pl_deadline_in_ms(pl_clock_real(), ms > 0 ? ms : otherwise);
}

/* --- building up ------------------------------------------------------ */

static pl_status add_task(local *l, pl_task id, int32_t worker)
{
    task *own = &l->own[l->count];
    own->control = -1;
    l->seen[l->count++] = (pl_local_task) { .task = id, .worker = worker };
    return pl_mem_format(&own->log, "%s/%s-%d.log", l->opts->logs,
                         pl_role_text(id.role), id.index);
}

static pl_status add_tasks(local *l)
{
    const pl_cluster *cluster = l->opts->cluster;
    size_t count =
        (size_t)cluster->ps + (size_t)cluster->workers + cluster->evaluator;
    PL_TRY(PL_NEW(l->seen, count));
    PL_TRY(PL_NEW(l->own, count));
    PL_TRY(PL_NEW(l->polls, count));
    for (int32_t i = 0; i < cluster->ps; i++)
        PL_TRY(add_task(l, (pl_task) { PL_ROLE_PS, i }, -1));
    for (int32_t i = 0; i < cluster->workers; i++)
        PL_TRY(add_task(l, pl_cluster_task(cluster, i), i));
    if (cluster->evaluator)
        PL_TRY(add_task(l, (pl_task) { PL_ROLE_EVALUATOR, 0 }, -1));
    return PL_OK;
}

static pl_status copy_command(local *l)
{
    char *const *argv = l->opts->argv;
    while (argv[l->args] != NULL)
        l->args++;
    PL_TRY(PL_NEW(l->argv, l->args + EXTRA_ARGS));
    memcpy(l->argv, argv, l->args * sizeof *argv);
    return PL_OK;
}

static pl_status copy_environment(local *l)
{
    size_t count = 0;
    while (environ[count] != NULL)
        count++;
    PL_TRY(PL_NEW(l->environment, count + 2));
    memcpy(l->environment, environ, count * sizeof *environ);
    l->environment[count] = l->task;
    return PL_OK;
}

static pl_status build(local *l)
{
    const pl_cluster *cluster = l->opts->cluster;
    PL_TRY(pl_cluster_local(&l->cluster, cluster->workers, cluster->ps,
                            cluster->evaluator));
    l->cluster.named_chief = cluster->named_chief;
    l->missing = cluster->ps;
    if (l->opts->workers_listen) {
        PL_TRY(PL_NEW(l->cluster.worker_address, (size_t)cluster->workers));
        l->missing += cluster->workers;
    }
    l->deadline = in_ms(l->opts->join_ms, JOIN_MS);
    PL_TRY(copy_command(l));
    PL_TRY(copy_environment(l));
    PL_TRY(add_tasks(l));
    if (l->opts->chaos <= 0)
        return PL_OK;
    return pl_chaos_new(&l->chaos, &(pl_chaos_opts) {
                                       .rate = l->opts->chaos,
                                       .seed = l->opts->chaos_seed,
                                       .freeze_ms = l->opts->freeze_ms,
                                       .tasks = l->count,
                                   });
}

static void tear_down(local *l)
{
    for (int i = 0; i < l->count; i++) {
        PL_ASSERT(l->seen[i].pid == 0 || l->phase == KILL);
        if (l->own[i].control >= 0)
            close(l->own[i].control);
        pl_mem_free(l->own[i].log);
    }
    pl_mem_free(l->seen);
    pl_mem_free(l->own);
    pl_mem_free(l->polls);
    pl_mem_free(l->argv);
    pl_mem_free(l->environment);
    pl_chaos_free(l->chaos);
    pl_cluster_close(&l->cluster);
}

/* --- ending ----------------------------------------------------------- */

static void signal_all(const local *l, int number)
{
    for (int i = 0; i < l->count; i++)
        if (l->seen[i].pid > 0)
            kill(l->seen[i].pid, number);
}

/* An evaluator may still come to test the end, as long as ps 0 is there. */
static void ask_all(const local *l, bool evaluator)
{
    for (int i = 0; i < l->count; i++)
        if (l->own[i].control >= 0 &&
            (evaluator || l->seen[i].task.role != PL_ROLE_EVALUATOR))
            pl_control_send_end(l->own[i].control);
}

static void enter(local *l, phase next)
{
    if (next <= l->phase)
        return;
    l->phase = next;
    l->deadline = next == KILL   ? in_ms(GONE_MS, 0)
                  : next == TERM ? in_ms(l->opts->kill_ms, KILL_MS)
                                 : in_ms(l->opts->end_ms, END_MS);
    if (next == ASKED || next == TERM)
        ask_all(l, true);
    if (next == TERM) {
        signal_all(l, SIGTERM);
        signal_all(l, SIGCONT); /* who is stopped cannot hear */
    }
    if (next == KILL)
        signal_all(l, SIGKILL);
}

/* Keep the first failure; all tasks are to end. */
static void fail(local *l, pl_status status)
{
    if (l->failed.status == PL_OK)
        pl_error_save(&l->failed, status);
    enter(l, TERM);
}

/* --- starting --------------------------------------------------------- */

static pl_status start_process(local *l, int i, int ours, int theirs)
{
    pl_local_task *seen = &l->seen[i];
    task *own = &l->own[i];
    char index[16], control[16], mark[64];
    snprintf(index, sizeof index, "%d", seen->task.index);
    snprintf(control, sizeof control, "%d", theirs);
    snprintf(l->task, sizeof l->task, PL_LOCAL_TASK "=%s %d", role_of(l, i),
             seen->task.index);
    snprintf(mark, sizeof mark, "--- %s %d, start %d", role_of(l, i),
             seen->task.index, seen->starts + 1);
    const char *extra[EXTRA_ARGS] = { "--role", role_of(l, i), "--index",
                                      index,    "--control",   control,
                                      NULL };
    memcpy(l->argv + l->args, extra, sizeof extra);
    PL_TRY(pl_child_start(&seen->pid, &own->log_from,
                          &(pl_child_opts) {
                              .program = l->opts->program != NULL
                                             ? l->opts->program
                                             : "/proc/self/exe",
                              .argv = l->argv,
                              .log = own->log,
                              .mark = seen->starts > 0 ? mark : NULL,
                              .control = theirs,
                              .keep_stdout = seen->worker == 0,
                              .environment = l->environment,
                          }));
    own->control = ours;
    own->lost = own->there = own->closing = false;
    seen->starts++;
    seen->earlier_examples += seen->status.examples;
    seen->earlier_dropped += seen->status.dropped;
    seen->status.examples = seen->status.dropped = 0;
    seen->reported = false;
    return PL_OK;
}

/* The chief counts faults in its summary.  One that has gone is told when it
 * is started again. */
static void tell_faults(const local *l, int i, int64_t faults)
{
    if (l->seen[i].worker == 0 && l->own[i].control >= 0 &&
        pl_control_send_faults(l->own[i].control, faults) != PL_OK)
        pl_log(PL_LOG_DEBUG, "%s", pl_error_message());
}

static pl_status start_task(local *l, int i)
{
    int ours, theirs;
    PL_TRY(pl_control_pair(&ours, &theirs));
    pl_status status = start_process(l, i, ours, theirs);
    close(theirs);
    if (status != PL_OK) {
        close(ours);
        return pl_context(status, "%s %d", role_of(l, i),
                          l->seen[i].task.index);
    }
    /* A task that has gone again is reaped with its own message. */
    if (l->opts->secret != NULL &&
        pl_control_send_secret(ours, l->opts->secret) == PL_NOMEM)
        return PL_NOMEM;
    if (l->missing == 0 &&
        pl_control_send_cluster(ours, &l->cluster) == PL_NOMEM)
        return PL_NOMEM;
    if (l->chaos != NULL)
        tell_faults(l, i, pl_chaos_faults(l->chaos));
    return PL_OK;
}

static void start_all(local *l)
{
    for (int i = 0; i < l->count; i++) {
        pl_status status = start_task(l, i);
        if (status != PL_OK) {
            fail(l, status);
            return;
        }
    }
}

/* --- messages --------------------------------------------------------- */

/* All who listen have reported: everybody may know where they are. */
static void send_clusters(local *l)
{
    for (int i = 0; i < l->count; i++)
        if (l->own[i].control >= 0 &&
            pl_control_send_cluster(l->own[i].control, &l->cluster) == PL_NOMEM)
            fail(l, PL_NOMEM);
}

/* Where the address of task i is kept; NULL: it has none. */
static char **address_of(const local *l, int i)
{
    const pl_local_task *seen = &l->seen[i];
    if (seen->task.role == PL_ROLE_PS)
        return &l->cluster.ps_address[seen->task.index];
    return l->opts->workers_listen && seen->worker >= 0
               ? &l->cluster.worker_address[seen->worker]
               : NULL;
}

static void take_address(local *l, int i, const char *address)
{
    char **place = address_of(l, i);
    if (place == NULL || *place != NULL)
        return; /* it does not listen, or was started again */
    pl_status status = pl_mem_copy_text(place, address);
    if (status != PL_OK)
        fail(l, status);
    else if (--l->missing == 0)
        send_clusters(l);
}

/* As long as not all have reported, nobody was told where the others listen: a
 * task that is started again listens elsewhere. */
static void forget_address(local *l, int i)
{
    char **place = address_of(l, i);
    if (l->missing == 0 || place == NULL || *place == NULL)
        return;
    pl_mem_free(*place);
    *place = NULL;
    l->missing++;
}

/* What ps 0 (or, without servers, another worker) lost is killed; it is
 * started again when it has been reaped.  A process that was just started again
 * and has said nothing yet cannot be the one that was lost: that was the one
 * before. */
static void take_lost(local *l, int i, pl_task lost)
{
    bool ps_0 =
        l->seen[i].task.role == PL_ROLE_PS && l->seen[i].task.index == 0;
    if ((l->cluster.ps > 0 && !ps_0) || l->phase != RUN)
        return;
    for (int k = 0; k < l->count; k++) {
        pl_local_task *seen = &l->seen[k];
        bool same =
            seen->task.role == lost.role && seen->task.index == lost.index;
        if (!same || seen->pid == 0 || (seen->starts > 1 && !seen->reported))
            continue;
        l->own[k].lost = true;
        kill(seen->pid, SIGKILL);
    }
}

static void take_message(local *l, int i, const pl_control_message *message)
{
    switch (message->kind) {
    case PL_CONTROL_ADDRESS:
        take_address(l, i, message->address);
        break;
    case PL_CONTROL_HELLO:
        l->own[i].there = true;
        break;
    case PL_CONTROL_STATUS:
        l->seen[i].status = message->status;
        l->seen[i].reported = l->own[i].joined = true;
        break;
    case PL_CONTROL_LOST:
        take_lost(l, i, message->task);
        break;
    case PL_CONTROL_CLOSING:
        l->own[i].closing = true;
        if (pl_control_send_closing(l->own[i].control) != PL_OK)
            pl_log(PL_LOG_DEBUG, "%s", pl_error_message());
        break;
    case PL_CONTROL_FINAL:
        l->seen[i].final = true;
        break;
    }
}

/* Everything a task has said. */
static void take_messages(local *l, int i)
{
    pl_control_message message;
    while (l->own[i].control >= 0) {
        pl_status status = pl_control_receive(l->own[i].control, &message);
        if (status == PL_AGAIN)
            return;
        l->own[i].heard_ns = pl_clock_now_ns(pl_clock_real());
        if (status == PL_OK) {
            take_message(l, i, &message);
        } else if (status == PL_PEER) {
            pl_log(PL_LOG_WARN, "%s %d: %s", role_of(l, i),
                   l->seen[i].task.index, pl_error_message());
        } else {
            close(l->own[i].control);
            l->own[i].control = -1;
        }
    }
}

/* --- deaths ----------------------------------------------------------- */

/* Why it ended, in its own words: the last line without "paceline: " before
 * and the place in the source behind. */
static void own_words(const local *l, int i, char *text, size_t room)
{
    char prefix[128];
    snprintf(prefix, sizeof prefix, "%s: ", l->argv[0]);
    pl_child_last_lines(l->own[i].log, l->own[i].log_from, 1, text, room);
    size_t length = strlen(prefix);
    if (strncmp(text, prefix, length) == 0)
        memmove(text, text + length, strlen(text + length) + 1);
    text[pl_error_words(text)] = '\0';
}

static void show_log(const local *l, int i)
{
    char text[LOG_BYTES], *rest = text, *line;
    pl_child_last_lines(l->own[i].log, l->own[i].log_from, SHOWN_LINES, text,
                        sizeof text);
    while ((line = strsep(&rest, "\n")) != NULL)
        if (line[0] != '\0')
            pl_log(PL_LOG_WARN, "  %s", line);
}

static bool said_why(int ended)
{
    return WIFEXITED(ended) && (WEXITSTATUS(ended) == 1);
}

/* A worker that ended by itself before it got anywhere would do so again. */
static bool may_restart(const local *l, int i, int ended)
{
    const pl_local_task *seen = &l->seen[i];
    if (seen->final)
        return false;
    if (said_why(ended) && !seen->reported)
        return false;
    if (WIFEXITED(ended) &&
        (WEXITSTATUS(ended) == 2 || WEXITSTATUS(ended) == PL_CHILD_NO_EXEC))
        return false;
    return seen->starts - l->own[i].excused <= l->opts->restarts;
}

/* The job ends because of task i. */
static void fail_by(local *l, int i, int ended, const char *how)
{
    const pl_local_task *seen = &l->seen[i];
    bool usage = WIFEXITED(ended) && WEXITSTATUS(ended) == 2;
    char words[LOG_BYTES], often[64] = "";
    char **place = address_of(l, i);
    const char *address = place != NULL ? *place : NULL;
    own_words(l, i, words, sizeof words);
    if (!said_why(ended) && !usage)
        show_log(l, i);
    if (seen->starts > 1)
        snprintf(often, sizeof often, " (start %d)", seen->starts);
    bool quote = (said_why(ended) || usage) && words[0] != '\0';
    fail(l,
         PL_FAIL(usage ? PL_USAGE : PL_PEER, "%s %d%s%s %s%s%s%s; its log: %s",
                 role_of(l, i), seen->task.index, address != NULL ? " at " : "",
                 address != NULL ? address : "", how, often, quote ? ": " : "",
                 quote ? words : "", l->own[i].log));
}

static void restart(local *l, int i, const char *how, bool hit)
{
    pl_local_task *seen = &l->seen[i];
    int32_t excused = l->own[i].excused;
    if (hit || seen->starts == excused) {
        pl_log(PL_LOG_INFO, "%s %d %s; started again", role_of(l, i),
               seen->task.index, how);
    } else {
        pl_log(PL_LOG_WARN, "%s %d %s; started again (%d of %d), its log: %s",
               role_of(l, i), seen->task.index, how, seen->starts - excused,
               l->opts->restarts, l->own[i].log);
        show_log(l, i);
    }
    pl_status status = start_task(l, i);
    if (status != PL_OK)
        fail(l, status);
}

/* A job can do without an evaluator, and where it is told so, without a
 * worker that is not the chief.  Not without one that never was in it: the
 * others wait for all to join before they begin. */
static bool can_do_without(const local *l, int i)
{
    if (l->seen[i].final)
        return false;
    return l->seen[i].task.role == PL_ROLE_EVALUATOR ||
           (l->opts->go_on && l->seen[i].worker > 0 && l->own[i].joined);
}

static void ended_badly(local *l, int i, int ended)
{
    char how[HOW_BYTES];
    bool hit = l->chaos != NULL && pl_chaos_ended(l->chaos, i);
    /* Killed before it was in the job, it has not cost the job anything: one
     * more start is no restart. */
    bool early = l->opts->go_on && WIFSIGNALED(ended) && !l->own[i].joined &&
                 l->seen[i].starts == 1 && l->seen[i].worker > 0;
    l->own[i].excused += hit || early;
    if (l->own[i].lost)
        snprintf(how, sizeof how, "was declared lost and killed");
    else
        pl_child_how(ended, how, sizeof how);
    if (l->phase == OVER && l->seen[i].worker == 0) {
        fail_by(l, i, ended, how);
    } else if (l->phase == OVER || l->phase == ASKED) {
        bool as_told = (said_why(ended) && !l->seen[i].reported) ||
                       (WIFEXITED(ended) && WEXITSTATUS(ended) == 130);
        if (!as_told)
            pl_log(PL_LOG_WARN, "%s %d %s; its log: %s", role_of(l, i),
                   l->seen[i].task.index, how, l->own[i].log);
    } else if (l->phase != RUN) {
        return; /* as it was told */
    } else if (may_restart(l, i, ended)) {
        restart(l, i, how, hit);
    } else if (can_do_without(l, i)) {
        pl_log(PL_LOG_WARN,
               "%s %d %s and is not started again; the job goes on without "
               "it, its log: %s",
               role_of(l, i), l->seen[i].task.index, how, l->own[i].log);
        show_log(l, i);
    } else {
        fail_by(l, i, ended, how);
    }
}

/* The chief decides when the job is over; what a server learnt of it, the
 * others learn, too. */
static void ended_well(local *l, int i)
{
    if (!l->own[i].there && l->phase == RUN) {
        fail(l, PL_FAIL(PL_PEER,
                        "%s %d ended with exit status 0 and without having "
                        "trained: the program was started with the arguments "
                        "of a task, and must pass them on to pl_app_main in "
                        "every process; its log: %s",
                        role_of(l, i), l->seen[i].task.index, l->own[i].log));
        return;
    }
    bool chief = l->seen[i].worker == 0;
    if (chief || l->seen[i].task.role == PL_ROLE_PS)
        enter(l, OVER);
    l->done = l->done || (chief && l->phase <= ASKED);
    if (chief && l->phase == OVER)
        l->deadline = in_ms(l->opts->end_ms, END_MS);
    if (l->done && l->phase == OVER)
        ask_all(l, l->seen[0].pid == 0); /* ps 0 */
}

static void reap(local *l, int i)
{
    pl_local_task *seen = &l->seen[i];
    int ended = 0;
    if (seen->pid == 0)
        return;
    pid_t pid = waitpid(seen->pid, &ended, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR))
        return;
    take_messages(l, i); /* what it said before */
    if (l->own[i].control >= 0)
        close(l->own[i].control);
    l->own[i].control = -1;
    seen->pid = 0;
    forget_address(l, i);
    if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0)
        ended_badly(l, i, ended);
    else
        ended_well(l, i);
}

/* --- the loop --------------------------------------------------------- */

static int running(const local *l)
{
    int count = 0;
    for (int i = 0; i < l->count; i++)
        count += l->seen[i].pid > 0;
    return count;
}

/* "ps 1, worker 0": who still runs, or has not reported. */
static void list_tasks(const local *l, bool silent, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < l->count && used < room; i++) {
        pl_task id = l->seen[i].task;
        char **place = address_of(l, i);
        bool listed =
            silent ? place != NULL && *place == NULL : l->seen[i].pid > 0;
        if (!listed)
            continue;
        int wrote =
            snprintf(text + used, room - used, "%s%s %d", used > 0 ? ", " : "",
                     pl_role_text(id.role), id.index);
        used += wrote > 0 ? (size_t)wrote : room;
    }
}

static void wait_messages(local *l)
{
    for (int i = 0; i < l->count; i++)
        l->polls[i] =
            (struct pollfd) { .fd = l->own[i].control, .events = POLLIN };
    poll(l->polls, (nfds_t)l->count, TICK_MS);
}

/* The limit of the phase has passed; false: nothing more can be done. */
static bool pass_deadline(local *l)
{
    char who[256];
    list_tasks(l, l->phase == RUN, who, sizeof who);
    switch (l->phase) {
    case RUN:
        fail(l, PL_FAIL(PL_TIMEOUT,
                        "no port reported within %lld s by %s; logs in %s",
                        (long long)((l->opts->join_ms > 0 ? l->opts->join_ms
                                                          : JOIN_MS) /
                                    1000),
                        who, l->opts->logs));
        break;
    case OVER:
    case ASKED:
        pl_log(PL_LOG_WARN, "still running, to be ended: %s", who);
        enter(l, TERM);
        break;
    case TERM:
        enter(l, KILL);
        break;
    case KILL:
        fail(l, PL_FAIL(PL_TIMEOUT, "killed, but still there: %s", who));
        return false;
    }
    return true;
}

/* In RUN the addresses must come, in OVER the chief must have ended. */
static bool phase_has_limit(const local *l)
{
    switch (l->phase) {
    case RUN:
        return l->missing > 0;
    case OVER:
        return l->done;
    default:
        return true;
    }
}

/* From the chief's first step until it takes leave of the others. */
static bool training(const local *l)
{
    for (int i = 0; i < l->count; i++)
        if (l->seen[i].worker == 0 && (l->seen[i].status.step == 0 ||
                                       l->own[i].closing || l->seen[i].final))
            return false;
    return l->phase == RUN;
}

static void make_faults(local *l)
{
    int64_t now_ns = pl_clock_now_ns(pl_clock_real());
    bool on = training(l);
    int hit = pl_chaos_due(l->chaos, l->seen, on, now_ns);
    pl_chaos_thaw(l->chaos, l->seen, !on, now_ns);
    if (hit < 0)
        return;
    for (int i = 0; i < l->count; i++)
        tell_faults(l, i, pl_chaos_faults(l->chaos) + 1);
    pl_chaos_hit(l->chaos, l->seen, hit, now_ns);
}

/* ps 0 watches the others and tells of itself all the time: when it is silent,
 * nobody else can say that it is lost. */
static void watch_first(local *l)
{
    pl_local_task *first = &l->seen[0];
    task *own = &l->own[0];
    int64_t now_ns = pl_clock_now_ns(pl_clock_real());
    if (l->phase != RUN || l->opts->silence_ms <= 0 ||
        first->task.role != PL_ROLE_PS || first->pid == 0 || !first->reported ||
        own->lost || now_ns - own->heard_ns <= l->opts->silence_ms * 1000000)
        return;
    own->lost = true;
    kill(first->pid, SIGKILL);
}

static bool interrupted(const local *l)
{
    return l->opts->interrupt != NULL && atomic_load(l->opts->interrupt);
}

static void run_loop(local *l)
{
    bool more = true;
    while (more && running(l) > 0) {
        wait_messages(l);
        for (int i = 0; i < l->count; i++)
            take_messages(l, i);
        if (l->chaos != NULL)
            make_faults(l);
        watch_first(l);
        for (int i = 0; i < l->count; i++)
            reap(l, i);
        if (interrupted(l))
            enter(l, ASKED);
        if (phase_has_limit(l) && pl_deadline_passed(l->deadline))
            more = pass_deadline(l);
        if (l->opts->show != NULL)
            l->opts->show(l->opts->context, l->seen, l->count);
    }
}

static pl_status run(local *l)
{
    start_all(l);
    run_loop(l);
    if (l->failed.status != PL_OK)
        return pl_error_raise(&l->failed);
    if (interrupted(l) && !l->done)
        return PL_FAIL(PL_INTERRUPTED, "interrupted");
    if (!l->done)
        return PL_FAIL(PL_PEER,
                       "all tasks have ended, but not the chief as "
                       "it should; logs in %s",
                       l->opts->logs);
    return PL_OK;
}

pl_status pl_local_run(const pl_local_opts *opts)
{
    local l = { .opts = opts };
    signal(SIGCHLD, SIG_DFL); /* ignored, the exit statuses would be lost */
    pl_status status = build(&l);
    if (status == PL_OK)
        status = run(&l);
    tear_down(&l);
    return status;
}
