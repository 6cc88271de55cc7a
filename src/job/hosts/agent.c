/* The agent of a launcher on another host: decides only when the launcher is
 * gone, and that no task of this host outlives it.
 *
 *   WORK -> TERM   the launcher has closed, is silent, or requested the end:
 *                  SIGTERM to all tasks
 *   TERM -> KILL   SIGKILL to all tasks
 *
 * A1  The agent ends only when none of its tasks is running, or reports how
 *     many survived SIGKILL.
 * A2  A launcher that closed its end, or was silent for too long, stays gone,
 *     and phases only move forward. */
#include "job/hosts/agent.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "job/hosts/agent_task.h"
#include "job/hosts/records/place.h"
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
#define RECORDS   16 /* messages at once */

typedef enum phase {
    WORK,
    TERM,
    KILL,
} phase;

typedef struct agent {
    const pl_agent_opts *opts;
    pl_agent_channel channel;
    pl_agent_task *tasks;
    int count, room;
    struct pollfd *polls; /* two for the launcher, then for each task */
    int secret;           /* a file in memory; -1: none yet */
    int64_t heard_ns, said_ns;
    phase phase;
    pl_deadline deadline; /* of the phase */
    bool asked;           /* the launcher requested the end */
    bool gone;            /* ... or is gone */
    pl_run_place place;   /* the run folder */
    bool sending;         /* there are records to send */
    int64_t all_id;       /* the question to answer when all were sent; 0:
                             none */
} agent;

static int64_t now_ns(void)
{
    return pl_clock_now_ns(pl_clock_real());
}

/* --- sending ---------------------------------------------------------- */

/* The launcher may be gone: reading from it shows that, too. */
static void say_json(agent *a, const pl_json *json)
{
    if (pl_agent_channel_send(&a->channel, json) != PL_OK)
        a->gone = true;
}

static void say(agent *a, const pl_control_message *message)
{
    pl_json *json;
    if (pl_control_encode(message, &json) != PL_OK)
        return;
    say_json(a, json);
    pl_json_free(json);
}

/* --- records ---------------------------------------------------------- */

static pl_status send_record(void *context, const pl_control_message *message)
{
    agent *a = context;
    say(a, message);
    return a->gone ? PL_FAIL(PL_CLOSED, "the connection to the launcher was "
                                        "lost")
                   : PL_OK;
}

/* Whether a message can be sent without blocking. */
static bool is_writable(const agent *a)
{
    struct pollfd ready = { .fd = a->channel.out, .events = POLLOUT };
    return !a->gone && poll(&ready, 1, 0) == 1 &&
           (ready.revents & POLLOUT) != 0;
}

static void say_all_sent(agent *a)
{
    a->place.sent = true;
    say(a,
        &(pl_control_message) { .kind = PL_CONTROL_ANSWER, .id = a->all_id });
    a->all_id = 0;
}

/* Send a few records; output and ends of tasks must not wait for long. */
static void send_records(agent *a)
{
    pl_status status = PL_OK;
    a->sending = a->place.source != NULL;
    for (int i = 0; i < RECORDS && a->sending && is_writable(a); i++) {
        status =
            pl_record_source_step(a->place.source, a->all_id != 0, &a->sending);
        if (status != PL_OK)
            a->sending = false; /* no memory, or no launcher */
    }
    if (a->all_id != 0 && !a->sending && !a->gone)
        say_all_sent(a);
}

static void send_heartbeat(agent *a)
{
    if (now_ns() - a->said_ns < (int64_t)PL_AGENT_HEARTBEAT_MS * 1000000)
        return;
    a->said_ns = now_ns();
    say(a, &(pl_control_message) { .kind = PL_CONTROL_HEARTBEAT });
}

static void say_output(void *context, const pl_agent_task *task, bool error,
                       char *line)
{
    pl_agent_channel_clean(line);
    say(context, &(pl_control_message) {
                     .kind = PL_CONTROL_OUTPUT,
                     .task = task->task,
                     .error = error,
                     .text = line,
                 });
}

static void say_ended(agent *a, pl_task task, int ended, const char *line)
{
    char said[PL_HOST_SAID];
    snprintf(said, sizeof said, "%.*s", PL_HOST_SAID - 1, line);
    pl_agent_channel_clean(said);
    say(a,
        &(pl_control_message) {
            .kind = PL_CONTROL_ENDED,
            .task = task,
            .number = WIFEXITED(ended) ? WEXITSTATUS(ended) : -WTERMSIG(ended),
            .text = said,
        });
}

/* --- tasks ------------------------------------------------------------ */

/* The secret is in the message or, if the transport must not see it, in a
 * file. */
static pl_status find_secret(const pl_control_message *message, pl_secret *out)
{
    if (message->secret_file == NULL)
        return pl_secret_parse(out, message->secret);
    pl_status status = pl_secret_read(out, message->secret_file);
    return status == PL_OK
               ? PL_OK
               : pl_context(status, "the job's secret, which launch wrote for "
                                    "all nodes: do they share its folder?");
}

/* Keep the secret in an unnamed file for all tasks. */
static pl_status keep_secret(agent *a, const pl_control_message *message)
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
    PL_TRY(PL_RESIZE(a->tasks, room));
    PL_TRY(PL_RESIZE(a->polls, 2 + 2 * room));
    a->room = (int)room;
    return PL_OK;
}

static pl_status start_task(agent *a, const pl_control_message *message)
{
    if (a->phase != WORK)
        return PL_OK;
    PL_TRY(make_room(a));
    PL_TRY(keep_secret(a, message));
    PL_TRY(pl_agent_task_start(&a->tasks[a->count], message, a->secret));
    a->count++;
    a->place.sent = false;
    return PL_OK;
}

/* A task that could not be started is reported as ended. */
static void take_start(agent *a, const pl_control_message *message)
{
    char why[PL_ERROR_BYTES];
    if (start_task(a, message) == PL_OK)
        return;
    snprintf(why, sizeof why, "%s", pl_error_message());
    say_ended(a, message->task, PL_CHILD_NO_EXEC << 8, why);
}

static void take_signal(const agent *a, const pl_control_message *message)
{
    for (int i = 0; i < a->count; i++)
        if (a->tasks[i].task.role == message->task.role &&
            a->tasks[i].task.index == message->task.index)
            kill(a->tasks[i].pid, message->number);
}

static void reap(agent *a, int i)
{
    pl_agent_task *task = &a->tasks[i];
    int ended = 0;
    pid_t pid = waitpid(task->pid, &ended, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR))
        return;
    pl_agent_task_read(task, say_output, a); /* its remaining output */
    pl_agent_task_finish(task, say_output, a);
    say_ended(a, task->task, ended, task->said);
    pl_agent_task_close(task);
    a->tasks[i] = a->tasks[--a->count];
}

static void signal_all(const agent *a, int number)
{
    for (int i = 0; i < a->count; i++) {
        kill(a->tasks[i].pid, number);
        kill(a->tasks[i].pid, SIGCONT); /* a stopped task must run */
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

static pl_status answer_place(agent *a, const pl_json *question,
                              pl_json *answer)
{
    return pl_run_place_answer(
        &a->place,
        &(pl_run_place_opts) {
            .cache = a->opts->cache,
            .source = { .send = send_record, .context = a },
        },
        question, answer);
}

static pl_status find_answer(agent *a, const char *kind,
                             const pl_json *question, pl_json *answer)
{
    if (strcmp(kind, "ports") == 0)
        return answer_ports(question, answer);
    if (strcmp(kind, "place") == 0)
        return answer_place(a, question, answer);
    if (strcmp(kind, "stored") == 0)
        return pl_run_place_stored(&a->place);
    return a->opts->answer(a->opts->context, question, answer);
}

static pl_status make_answer(agent *a, const pl_control_message *question,
                             pl_json *answer)
{
    const char *kind = pl_agent_channel_kind(question->body);
    pl_status status = find_answer(a, kind, question->body, answer);
    if (status == PL_OK)
        return PL_OK;
    char why[PL_ERROR_BYTES];
    snprintf(why, sizeof why, "%s", pl_error_message());
    pl_agent_channel_clean(why);
    return pl_json_set_text(answer, "error", why);
}

static void take_question(agent *a, const pl_control_message *question)
{
    pl_json *answer;
    if (strcmp(pl_agent_channel_kind(question->body), "records") == 0) {
        a->all_id = question->id; /* answered later */
        return;
    }
    if (pl_control_encode(&(pl_control_message) { .kind = PL_CONTROL_ANSWER,
                                                  .id = question->id },
                          &answer) != PL_OK)
        return;
    if (make_answer(a, question, answer) == PL_OK)
        say_json(a, answer);
    pl_json_free(answer);
    a->heard_ns = now_ns(); /* an answer may take long */
}

static void take_message(agent *a, const pl_control_message *message)
{
    a->heard_ns = now_ns();
    switch (message->kind) {
    case PL_CONTROL_START:
        take_start(a, message);
        break;
    case PL_CONTROL_SIGNAL:
        take_signal(a, message);
        break;
    case PL_CONTROL_END:
        a->asked = true;
        enter(a, TERM);
        break;
    case PL_CONTROL_RECORD:
        pl_run_place_take(&a->place, message);
        break;
    case PL_CONTROL_QUESTION:
        take_question(a, message);
        break;
    default:
        break; /* a heartbeat, or a kind not for agents */
    }
}

/* Handle the next message; an unknown one that needs no answer is skipped. */
static pl_status take_next(agent *a)
{
    pl_json *json;
    pl_control_message message;
    PL_TRY(pl_agent_channel_receive(&a->channel, &json));
    if (pl_control_decode(&message, json) != PL_OK)
        return PL_OK;
    take_message(a, &message);
    pl_control_message_close(&message);
    return PL_OK;
}

static void take_messages(agent *a)
{
    pl_status status = PL_OK;
    int64_t silent_ms =
        a->opts->silent_ms > 0 ? a->opts->silent_ms : PL_AGENT_SILENT_MS;
    while (!a->gone && status == PL_OK)
        status = take_next(a);
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
    a->polls[count++] = (struct pollfd) { .fd = a->gone ? -1 : a->channel.in,
                                          .events = POLLIN };
    a->polls[count++] =
        (struct pollfd) { .fd = a->sending && !a->gone ? a->channel.out : -1,
                          .events = POLLOUT };
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
    say(a, &(pl_control_message) { .kind = PL_CONTROL_HELLO,
                                   .text = pl_version() });
    while (!a->gone || a->count > 0) {
        wait_a_moment(a);
        take_messages(a);
        for (int i = a->count - 1; i >= 0; i--) {
            pl_agent_task_read(&a->tasks[i], say_output, a);
            reap(a, i);
        }
        if (!a->gone)
            send_heartbeat(a);
        send_records(a);
        if (a->phase == TERM && pl_deadline_passed(a->deadline))
            enter(a, KILL);
        if (a->phase == KILL && pl_deadline_passed(a->deadline))
            return PL_FAIL(PL_TIMEOUT, "%d killed tasks are still running",
                           a->count);
    }
    return a->asked ? PL_OK
                    : PL_FAIL(PL_CLOSED, "the connection to the launcher was "
                                         "lost: all tasks of this host were "
                                         "ended");
}

pl_status pl_agent_run(const pl_agent_opts *opts)
{
    agent a = { .opts = opts, .secret = -1, .heard_ns = now_ns() };
    signal(SIGCHLD, SIG_DFL); /* ignored, the exit statuses would be lost */
    PL_TRY(pl_agent_channel_init(&a.channel, opts->in, opts->out));
    pl_status status = run(&a);
    for (int i = 0; i < a.count; i++)
        pl_agent_task_close(&a.tasks[i]);
    pl_agent_channel_close(&a.channel);
    pl_run_place_close(&a.place);
    if (a.secret >= 0)
        close(a.secret);
    pl_mem_free(a.tasks);
    pl_mem_free(a.polls);
    return status;
}
