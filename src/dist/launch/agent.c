#include "dist/launch/agent.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "dist/launch/agent_task.h"
#include "net/keys.h"
#include "net/port.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MS   100
#define TERM_MS   10000 /* from SIGTERM to SIGKILL */
#define GONE_MS   10000 /* from SIGKILL to the end of a process */
#define PORTS_MAX 64

typedef enum phase {
    WORK,
    TERM,
    KILL,
} phase;

typedef struct agent {
    const pl_agent_opts *opts;
    pl_talk talk;
    pl_agent_task *tasks;
    int count, room;
    struct pollfd *polls; /* the launcher, then two for each task */
    int secret;           /* a file in memory; -1: none yet */
    int64_t heard_ns, beat_ns;
    phase phase;
    pl_deadline deadline; /* of the phase */
    bool asked;           /* the launcher wanted the end */
    bool gone;            /* ... or is not there any more */
} agent;

static int64_t now_ns(void)
{
    return pl_clock_now_ns(pl_clock_real());
}

/* --- saying ----------------------------------------------------------- */

/* The launcher may be gone: that is seen when it is read from. */
static void say(agent *a, pl_json *take)
{
    if (take != NULL && pl_talk_send(&a->talk, take) != PL_OK)
        a->gone = true;
    pl_json_free(take);
}

static void say_hello(agent *a)
{
    pl_json *hello = NULL;
    if (pl_talk_new(&hello, "hello") == PL_OK &&
        pl_json_set_text(hello, "version", pl_version()) == PL_OK)
        say(a, hello);
    else
        pl_json_free(hello);
}

static void say_beat(agent *a)
{
    pl_json *beat;
    if (now_ns() - a->beat_ns < (int64_t)PL_AGENT_BEAT_MS * 1000000)
        return;
    a->beat_ns = now_ns();
    if (pl_talk_new(&beat, "beat") == PL_OK)
        say(a, beat);
}

static pl_status fill_of_task(pl_json *message, pl_task task)
{
    PL_TRY(pl_json_set_text(message, "role", pl_role_text(task.role)));
    return pl_json_set_int(message, "index", task.index);
}

static void say_output(void *context, const pl_agent_task *task, bool error,
                       char *line)
{
    agent *a = context;
    pl_json *message = NULL;
    pl_talk_clean(line);
    if (pl_talk_new(&message, "output") == PL_OK &&
        fill_of_task(message, task->task) == PL_OK &&
        pl_json_set_bool(message, "error", error) == PL_OK &&
        pl_json_set_text(message, "text", line) == PL_OK)
        say(a, message);
    else
        pl_json_free(message);
}

static void say_ended(agent *a, const pl_agent_task *task, int ended)
{
    char how[96], said[PL_AGENT_SAID];
    pl_json *message = NULL;
    pl_child_how(ended, how, sizeof how);
    snprintf(said, sizeof said, "%s", task->said);
    pl_talk_clean(said);
    if (pl_talk_new(&message, "ended") == PL_OK &&
        fill_of_task(message, task->task) == PL_OK &&
        pl_json_set_int(message, "status",
                        WIFEXITED(ended) ? WEXITSTATUS(ended)
                                         : -WTERMSIG(ended)) == PL_OK &&
        pl_json_set_text(message, "how", how) == PL_OK &&
        pl_json_set_text(message, "said", said) == PL_OK)
        say(a, message);
    else
        pl_json_free(message);
}

/* --- tasks ------------------------------------------------------------ */

/* It comes with the message, or in a file, where what carries messages is not
 * to know it. */
static pl_status find_secret(const pl_json *message, pl_secret *out)
{
    const char *text;
    if (!pl_json_has(message, "secret_file")) {
        PL_TRY(pl_json_get_text(message, "secret", &text));
        return pl_secret_parse(out, text);
    }
    PL_TRY(pl_json_get_text(message, "secret_file", &text));
    pl_status status = pl_secret_read(out, text);
    return status == PL_OK
               ? PL_OK
               : pl_context(status, "the job's secret, which launch wrote for "
                                    "all nodes: is its folder shared by them?");
}

/* The secret in a file that has no name, for all tasks. */
static pl_status keep_secret(agent *a, const pl_json *message)
{
    pl_secret secret;
    char path[40];
    if (a->secret >= 0)
        return PL_OK;
    PL_TRY(find_secret(message, &secret));
    a->secret = memfd_create("paceline-key", MFD_CLOEXEC);
    if (a->secret < 0 || fchmod(a->secret, 0600) != 0)
        return PL_FAIL(PL_IO, "make a file in memory: %s", strerror(errno));
    snprintf(path, sizeof path, "/proc/self/fd/%d", a->secret);
    pl_status status = pl_secret_put(&secret, a->secret, path);
    pl_keys_wipe(&secret, sizeof secret);
    return status;
}

static pl_status make_room(agent *a)
{
    if (a->count < a->room)
        return PL_OK;
    size_t room = (size_t)a->room * 2 + 8;
    pl_agent_task *more = pl_mem_resize(a->tasks, room, sizeof *more);
    PL_TRY(pl_mem_check(more, room, sizeof *more));
    a->tasks = more;
    struct pollfd *polls = pl_mem_resize(a->polls, 1 + 2 * room, sizeof *polls);
    PL_TRY(pl_mem_check(polls, 1 + 2 * room, sizeof *polls));
    a->polls = polls;
    a->room = (int)room;
    return PL_OK;
}

static pl_status start_task(agent *a, const pl_json *message)
{
    if (a->phase != WORK)
        return PL_OK;
    PL_TRY(make_room(a));
    PL_TRY(keep_secret(a, message));
    PL_TRY(pl_agent_task_start(&a->tasks[a->count], message, a->secret));
    a->count++;
    return PL_OK;
}

/* A task that could not be started has ended. */
static void take_start(agent *a, const pl_json *message)
{
    pl_agent_task none = { .pid = 0 };
    if (start_task(a, message) == PL_OK)
        return;
    snprintf(none.said, sizeof none.said, "%s", pl_error_message());
    if (pl_agent_task_id(&none.task, message) == PL_OK)
        say_ended(a, &none, PL_CHILD_NO_EXEC << 8);
}

static void reap(agent *a, int i)
{
    pl_agent_task *task = &a->tasks[i];
    int ended = 0;
    pid_t pid = waitpid(task->pid, &ended, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR))
        return;
    pl_agent_task_read(task, say_output, a); /* what it said before */
    pl_agent_task_finish(task, say_output, a);
    say_ended(a, task, ended);
    pl_agent_task_close(task);
    a->tasks[i] = a->tasks[--a->count];
}

static void signal_all(const agent *a, int number)
{
    for (int i = 0; i < a->count; i++) {
        kill(a->tasks[i].pid, number);
        kill(a->tasks[i].pid, SIGCONT); /* who is stopped cannot hear */
    }
}

static void enter(agent *a, phase next)
{
    if (next <= a->phase)
        return;
    a->phase = next;
    a->deadline =
        pl_deadline_in_ms(pl_clock_real(), next == TERM ? TERM_MS : GONE_MS);
    signal_all(a, next == TERM ? SIGTERM : SIGKILL);
}

/* --- questions -------------------------------------------------------- */

static pl_status answer_ports(const pl_json *question, pl_json *answer)
{
    const char *host;
    int64_t count;
    int ports[PORTS_MAX];
    pl_json *list;
    PL_TRY(pl_json_get_text(question, "host", &host));
    PL_TRY(pl_json_get_int(question, "count", 1, PORTS_MAX, &count));
    PL_TRY(pl_port_find(host, (int)count, ports));
    PL_TRY(pl_json_new_array(&list));
    for (int64_t i = 0; i < count; i++) {
        pl_status status = pl_json_append_int(list, ports[i]);
        if (status != PL_OK) {
            pl_json_free(list);
            return status;
        }
    }
    return pl_json_set_take(answer, "ports", list);
}

static pl_status make_answer(agent *a, const pl_json *question, int64_t id,
                             pl_json *answer)
{
    PL_TRY(pl_json_set_int(answer, "id", id));
    pl_status status =
        strcmp(pl_talk_kind(question), "ports") == 0
            ? answer_ports(question, answer)
            : a->opts->answer(a->opts->context, question, answer);
    if (status == PL_OK)
        return PL_OK;
    char why[PL_ERROR_BYTES];
    snprintf(why, sizeof why, "%s", pl_error_message());
    pl_talk_clean(why);
    return pl_json_set_text(answer, "error", why);
}

static void take_question(agent *a, const pl_json *question)
{
    int64_t id;
    pl_json *answer = NULL;
    if (pl_json_get_int(question, "id", 0, INT64_MAX, &id) != PL_OK)
        return; /* a word of a newer launcher that wants no answer */
    if (pl_talk_new(&answer, "answer") == PL_OK &&
        make_answer(a, question, id, answer) == PL_OK)
        say(a, answer);
    else
        pl_json_free(answer);
    a->heard_ns = now_ns(); /* an answer may take its time */
}

static void take_message(agent *a, const pl_json *message)
{
    const char *kind = pl_talk_kind(message);
    a->heard_ns = now_ns();
    if (strcmp(kind, "start") == 0) {
        take_start(a, message);
    } else if (strcmp(kind, "end") == 0) {
        a->asked = true;
        enter(a, TERM);
    } else if (strcmp(kind, "beat") != 0) {
        take_question(a, message);
    }
}

static void take_messages(agent *a)
{
    pl_json *message;
    pl_status status = PL_OK;
    while (!a->gone &&
           (status = pl_talk_receive(&a->talk, &message)) == PL_OK) {
        take_message(a, message);
        pl_json_free(message);
    }
    int64_t silent_ms =
        a->opts->silent_ms > 0 ? a->opts->silent_ms : PL_AGENT_SILENT_MS;
    if (status != PL_OK && status != PL_AGAIN)
        a->gone = true;
    if (now_ns() - a->heard_ns > silent_ms * 1000000)
        a->gone = true;
    if (a->gone)
        enter(a, TERM);
}

/* --- the loop --------------------------------------------------------- */

static void wait_a_moment(agent *a)
{
    nfds_t count = 0;
    a->polls[count++] =
        (struct pollfd) { .fd = a->gone ? -1 : a->talk.in, .events = POLLIN };
    for (int i = 0; i < a->count; i++) {
        a->polls[count++] =
            (struct pollfd) { .fd = a->tasks[i].out.fd, .events = POLLIN };
        a->polls[count++] =
            (struct pollfd) { .fd = a->tasks[i].err.fd, .events = POLLIN };
    }
    poll(a->polls, count, TICK_MS);
}

static pl_status run(agent *a)
{
    PL_TRY(make_room(a));
    say_hello(a);
    while (!a->gone || a->count > 0) {
        wait_a_moment(a);
        take_messages(a);
        for (int i = a->count - 1; i >= 0; i--) {
            pl_agent_task_read(&a->tasks[i], say_output, a);
            reap(a, i);
        }
        if (!a->gone)
            say_beat(a);
        if (a->phase == TERM && pl_deadline_passed(a->deadline))
            enter(a, KILL);
        if (a->phase == KILL && pl_deadline_passed(a->deadline))
            return PL_FAIL(PL_TIMEOUT, "%d killed tasks are still there",
                           a->count);
    }
    return a->asked ? PL_OK
                    : PL_FAIL(PL_CLOSED, "the launcher is gone: all tasks of "
                                         "this host were ended");
}

pl_status pl_agent_run(const pl_agent_opts *opts)
{
    agent a = { .opts = opts, .secret = -1, .heard_ns = now_ns() };
    signal(SIGCHLD, SIG_DFL); /* ignored, the exit statuses would be lost */
    PL_TRY(pl_talk_init(&a.talk, opts->in, opts->out));
    pl_status status = run(&a);
    for (int i = 0; i < a.count; i++)
        pl_agent_task_close(&a.tasks[i]);
    pl_talk_close(&a.talk);
    if (a.secret >= 0)
        close(a.secret);
    pl_mem_free(a.tasks);
    pl_mem_free(a.polls);
    return status;
}
