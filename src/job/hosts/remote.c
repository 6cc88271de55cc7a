/* The connection to one agent: decides when it is established, what its end
 * means, and which command reaches its host. */
#include "job/hosts/remote.h"

#include "base/clock.h"
#include "base/mem.h"
#include "job/hosts/agent.h"
#include "job/supervise/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEAVE_MS      3000 /* for ssh to end when its input is closed */
#define LOOK_MS       20
#define WORDS_AT_MOST 64 /* of --ssh */
#define SSH_FAILED    255

static int64_t now_ns(void)
{
    return pl_clock_now_ns(pl_clock_real());
}

/* --- starting --------------------------------------------------------- */

typedef struct pipes {
    int in[2], out[2], err[2];
} pipes;

static void close_pipes(pipes *p)
{
    int *all[] = { p->in, p->out, p->err };
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++)
            if (all[i][k] >= 0)
                close(all[i][k]);
}

static pl_status open_pipes(pipes *p)
{
    *p = (pipes) { { -1, -1 }, { -1, -1 }, { -1, -1 } };
    if (pipe2(p->in, O_CLOEXEC) == 0 && pipe2(p->out, O_CLOEXEC) == 0 &&
        pipe2(p->err, O_CLOEXEC) == 0)
        return PL_OK;
    pl_status status = PL_FAIL(PL_IO, "make a pipe: %s", strerror(errno));
    close_pipes(p);
    return status;
}

pl_status pl_remote_init(pl_remote *remote, const char *host, char *const *argv)
{
    pipes p;
    int64_t unused;
    *remote = (pl_remote) { .host = host, .heard_ns = now_ns() };
    PL_TRY(open_pipes(&p));
    pl_status status = pl_child_start(&remote->pid, &unused,
                                      &(pl_child_opts) {
                                          .program = argv[0],
                                          .argv = argv,
                                          .in = p.in[0],
                                          .out = p.out[1],
                                          .err = p.err[1],
                                          .search = true,
                                      });
    if (status != PL_OK) {
        close_pipes(&p);
        return status;
    }
    close(p.in[0]);
    close(p.out[1]);
    close(p.err[1]);
    fcntl(p.err[0], F_SETFL, O_NONBLOCK);
    remote->err = p.err[0];
    status = pl_agent_channel_init(&remote->channel, p.out[0], p.in[1]);
    if (status != PL_OK)
        pl_remote_close(remote);
    return status;
}

static bool reap(pl_remote *remote)
{
    if (remote->pid > 0 &&
        waitpid(remote->pid, &remote->ended, WNOHANG) == remote->pid)
        remote->pid = 0;
    return remote->pid == 0;
}

void pl_remote_leave(pl_remote *remote)
{
    if (remote->channel.out >= 0)
        close(remote->channel.out);
    remote->channel.out = -1;
}

void pl_remote_close(pl_remote *remote)
{
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), LEAVE_MS);
    pl_agent_channel_close(&remote->channel);
    while (!reap(remote) && !pl_deadline_passed(deadline))
        poll(NULL, 0, LOOK_MS);
    if (remote->pid > 0) {
        kill(remote->pid, SIGKILL);
        waitpid(remote->pid, &remote->ended, 0); /* was killed: no wait */
        remote->pid = 0;
    }
    if (remote->err >= 0)
        close(remote->err);
    remote->err = -1;
    pl_json_free(remote->answer);
    remote->answer = NULL;
}

/* --- messages --------------------------------------------------------- */

pl_status pl_remote_say(pl_remote *remote, const pl_control_message *message)
{
    pl_json *json;
    PL_TRY(pl_control_encode(message, &json));
    pl_status status = pl_agent_channel_send(&remote->channel, json);
    pl_json_free(json);
    return status;
}

pl_status pl_remote_ask(pl_remote *remote, pl_json *take)
{
    pl_json_free(remote->answer);
    remote->answer = NULL;
    pl_status status = pl_json_set_int(take, "id", ++remote->next_id);
    if (status == PL_OK)
        status = pl_agent_channel_send(&remote->channel, take);
    pl_json_free(take);
    return status;
}

/* Keep the last line that ssh has printed so far. */
static void read_words(pl_remote *remote)
{
    char bytes[PL_REMOTE_WORDS];
    ssize_t got;
    while (remote->err >= 0 &&
           (got = read(remote->err, bytes, sizeof bytes - 1)) != 0) {
        if (got < 0)
            return;
        bytes[got] = '\0';
        while (got > 0 && (bytes[got - 1] == '\n' || bytes[got - 1] == '\r'))
            bytes[--got] = '\0';
        const char *last = strrchr(bytes, '\n');
        last = last != NULL ? last + 1 : bytes;
        if (*last != '\0')
            snprintf(remote->words, sizeof remote->words, "%s", last);
    }
}

static pl_status take_hello(pl_remote *remote, const char *version)
{
    if (strcmp(version, pl_version()) != 0)
        return PL_FAIL(PL_PEER,
                       "%s has paceline %.40s, this is %s: install the same, "
                       "or give --copy",
                       remote->host, version, pl_version());
    remote->hello = true;
    return PL_OK;
}

static pl_status take_message(pl_remote *remote,
                              const pl_control_message *message,
                              pl_remote_hear *hear, void *context)
{
    remote->heard_ns = now_ns();
    if (message->kind == PL_CONTROL_HELLO)
        return take_hello(remote, message->text);
    if (message->kind == PL_CONTROL_ANSWER && message->id == remote->next_id &&
        remote->answer == NULL)
        return pl_json_copy(&remote->answer, message->body);
    if ((message->kind == PL_CONTROL_OUTPUT ||
         message->kind == PL_CONTROL_ENDED ||
         message->kind == PL_CONTROL_RECORD) &&
        hear != NULL)
        hear(context, message);
    return PL_OK;
}

/* The reason why the agent is not connected, or no longer. */
static pl_status explain(pl_remote *remote)
{
    char how[96] = "does not end";
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), LEAVE_MS);
    remote->closed = true;
    while (!reap(remote) && !pl_deadline_passed(deadline))
        poll(NULL, 0, LOOK_MS);
    read_words(remote);
    bool exited = remote->pid == 0 && WIFEXITED(remote->ended);
    int status = exited ? WEXITSTATUS(remote->ended) : -1;
    if (remote->pid == 0)
        pl_child_how(remote->ended, how, sizeof how);
    if (status == PL_CHILD_NO_EXEC || status == 126)
        return PL_FAIL(PL_CLOSED,
                       "%s has no paceline there (%s): install it, give its "
                       "path with --program, or give --copy",
                       remote->host, remote->words);
    if (status == SSH_FAILED && !remote->hello)
        return PL_FAIL(PL_CLOSED, "%s does not answer: %s", remote->host,
                       remote->words[0] != '\0' ? remote->words
                                                : "ssh says nothing");
    return PL_FAIL(PL_CLOSED, "the connection to %s was lost: it %s%s%s",
                   remote->host, how, remote->words[0] != '\0' ? ": " : "",
                   remote->words);
}

static pl_status send_heartbeat(pl_remote *remote)
{
    if (now_ns() - remote->said_ns < (int64_t)PL_AGENT_HEARTBEAT_MS * 1000000)
        return PL_OK;
    remote->said_ns = now_ns();
    return pl_remote_say(
        remote, &(pl_control_message) { .kind = PL_CONTROL_HEARTBEAT });
}

/* The next message; unknown kinds are skipped. */
static pl_status next_message(pl_remote *remote, pl_control_message *out)
{
    pl_json *json;
    pl_status status;
    do {
        PL_TRY(pl_agent_channel_receive(&remote->channel, &json));
        status = pl_control_decode(out, json);
    } while (status == PL_UNSUPPORTED || (status == PL_PEER && remote->hello));
    return status;
}

pl_status pl_remote_turn(pl_remote *remote, pl_remote_hear *hear, void *context)
{
    pl_control_message message;
    pl_status status;
    read_words(remote);
    while ((status = next_message(remote, &message)) == PL_OK) {
        status = take_message(remote, &message, hear, context);
        pl_control_message_close(&message);
        PL_TRY(status);
    }
    if (status == PL_PEER && !remote->hello)
        return PL_OK; /* output of a login script */
    if (status == PL_AGAIN && remote->hello)
        status = send_heartbeat(remote);
    return status == PL_CLOSED  ? explain(remote)
           : status == PL_AGAIN ? PL_OK
                                : status;
}

pl_status pl_remote_answer(const pl_remote *remote, const pl_json **out)
{
    const char *error;
    if (remote->answer == NULL)
        return PL_AGAIN;
    if (pl_json_has(remote->answer, "error")) {
        PL_TRY(pl_json_get_text(remote->answer, "error", &error));
        return PL_FAIL(PL_PEER, "%s: %s", remote->host, error);
    }
    *out = remote->answer;
    return PL_OK;
}

int64_t pl_remote_silent_ms(const pl_remote *remote)
{
    return (now_ns() - remote->heard_ns) / 1000000;
}

void pl_remotes_wait(pl_remote *const *remotes, int count, int64_t ms)
{
    struct pollfd polls[256];
    int used = 0;
    for (int i = 0; i < count && used + 2 <= 256; i++) {
        if (remotes[i]->closed)
            continue;
        polls[used++] =
            (struct pollfd) { .fd = remotes[i]->channel.in, .events = POLLIN };
    }
    poll(polls, (nfds_t)used, (int)ms);
}

/* --- commands --------------------------------------------------------- */

static pl_status add_word(char **words, size_t *count, const char *text,
                          size_t length)
{
    PL_TRY(pl_mem_format(&words[*count], "%.*s", (int)length, text));
    (*count)++;
    return PL_OK;
}

static pl_status add_words(char **words, size_t *count, const char *text)
{
    for (;;) {
        text += strspn(text, " ");
        size_t length = strcspn(text, " ");
        if (length == 0)
            return PL_OK;
        if (*count == WORDS_AT_MOST)
            return PL_FAIL(PL_USAGE, "--ssh: more than %d words",
                           WORDS_AT_MOST);
        PL_TRY(add_word(words, count, text, length));
        text += length;
    }
}

static pl_status fill_command(char **words, const pl_reach *reach,
                              const char *host, const char *command)
{
    size_t count = 0;
    if (reach->srun) {
        PL_TRY(add_words(words, &count,
                         "srun --overlap --quiet --nodes=1 --ntasks=1 "
                         "--unbuffered --nodelist"));
        PL_TRY(add_words(words, &count, host));
        PL_TRY(add_words(words, &count, "sh -c"));
    } else {
        PL_TRY(add_words(words, &count, reach->ssh));
        if (strcmp(reach->ssh, "ssh") == 0 ||
            strncmp(reach->ssh, "ssh ", 4) == 0)
            PL_TRY(
                add_words(words, &count,
                          "-T -oBatchMode=yes -oConnectTimeout=10 "
                          "-oServerAliveInterval=2 -oServerAliveCountMax=2"));
        PL_TRY(add_words(words, &count, host));
    }
    return add_word(words, &count, command, strlen(command));
}

pl_status pl_reach_shell(char ***out, const pl_reach *reach, const char *host,
                         const char *command)
{
    PL_TRY(PL_NEW(*out, WORDS_AT_MOST + 16));
    pl_status status = fill_command(*out, reach, host, command);
    if (status != PL_OK)
        pl_reach_free(*out);
    return status;
}

pl_status pl_reach_command(char ***out, const pl_reach *reach, const char *host)
{
    char *command;
    PL_TRY(pl_mem_format(&command, "exec '%s' launch --agent", reach->program));
    pl_status status = pl_reach_shell(out, reach, host, command);
    pl_mem_free(command);
    return status;
}

void pl_reach_free(char **command)
{
    for (size_t i = 0; command != NULL && command[i] != NULL; i++)
        pl_mem_free(command[i]);
    pl_mem_free(command);
}
