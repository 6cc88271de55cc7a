/* Decides how an MPI job is started by mpirun and ended: first by a signal that
 * mpirun forwards to its ranks, then by SIGTERM, on which mpirun ends them,
 * then by SIGKILL, after which they end themselves.  We wait until mpirun has
 * ended, so that no process is left behind. */
#include "job/supervise/mpirun.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MS   50
#define END_MS    60000
#define KILL_MS   10000
#define NOT_FOUND 127
#define OWN_ARGS  16 /* arguments before the ranks' command, and the NULL */

/* Between fork and exec: only async-signal-safe functions may be called.  A
 * process group of its own: Ctrl-C must reach only us, so that the job saves a
 * checkpoint before it ends. */
static void become(char *const *argv, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent)
        execvp(argv[0], argv);
    _exit(NOT_FOUND);
}

/* The progress of ending mpirun. */
typedef struct ending {
    int asked; /* signals sent so far */
    pl_deadline next;
} ending;

static bool is_set(const atomic_bool *flag)
{
    return flag != NULL && atomic_load(flag);
}

static void press(ending *end, pid_t child, const pl_mpirun_opts *opts)
{
    static const int signals[] = { SIGUSR1, SIGTERM, SIGKILL };
    const pl_clock *clock = pl_clock_real();
    bool hurry = is_set(opts->hurry) && end->asked <= 1;
    if (end->asked > 0 && !pl_deadline_passed(end->next) && !hurry)
        return;
    if (hurry)
        end->asked = 1;
    if (end->asked == sizeof signals / sizeof *signals)
        return; /* it is dying, or waits for a disk */
    int number = signals[end->asked++];
    kill(number == SIGKILL ? -child : child, number);
    end->next = pl_deadline_in_ms(clock, number != SIGUSR1  ? KILL_MS
                                         : opts->end_ms > 0 ? opts->end_ms
                                                            : END_MS);
}

static pl_status watch(pid_t child, const pl_mpirun_opts *opts,
                       int *exit_status)
{
    ending end = { 0 };
    int how;
    for (;;) {
        pid_t ended = waitpid(child, &how, WNOHANG);
        if (ended == child)
            break;
        if (ended < 0 && errno != EINTR)
            return PL_FAIL(PL_IO, "wait for mpirun: %s", strerror(errno));
        if (is_set(opts->interrupt))
            press(&end, child, opts);
        poll(NULL, 0, TICK_MS);
    }
    *exit_status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    return PL_OK;
}

/* The path of this program, under whatever name it was started. */
static pl_status own_path(char *path, size_t room)
{
    ssize_t length = readlink("/proc/self/exe", path, room - 1);
    if (length < 0)
        return PL_FAIL(PL_IO, "read /proc/self/exe: %s", strerror(errno));
    path[length] = '\0';
    return PL_OK;
}

static pl_status start(const pl_mpirun_opts *opts, char **argv, pid_t *child)
{
    char ranks[16], program[PATH_MAX];
    const char *launcher = opts->launcher != NULL ? opts->launcher : "mpirun";
    PL_TRY(own_path(program, sizeof program));
    snprintf(ranks, sizeof ranks, "%d", opts->ranks);
    const char *own[OWN_ARGS] = { launcher,   "--bind-to", "none",
                                  "-n",       ranks,       "--oversubscribe",
                                  "--map-by", "node" };
    size_t count = 8;
    if (geteuid() == 0) /* mpirun refuses root by default */
        own[count++] = "--allow-run-as-root";
    if (opts->hosts != NULL) {
        own[count++] = "--host";
        own[count++] = opts->hosts;
    }
    if (opts->ssh != NULL) {
        own[count++] = "--mca";
        own[count++] = "plm_rsh_agent";
        own[count++] = opts->ssh;
    }
    own[count++] = opts->program != NULL ? opts->program : program;
    memcpy(argv, own, count * sizeof *argv);
    for (size_t i = 1; opts->argv[i] != NULL; i++)
        argv[count++] = opts->argv[i];
    pid_t parent = getpid();
    *child = fork();
    if (*child == 0)
        become(argv, parent);
    if (*child < 0)
        return PL_FAIL(PL_IO, "start a process: %s", strerror(errno));
    return PL_OK;
}

pl_status pl_mpirun_run(const pl_mpirun_opts *opts, int *exit_status)
{
    size_t args = 0;
    char **argv;
    pid_t child;
    while (opts->argv[args] != NULL)
        args++;
    PL_TRY(PL_NEW(argv, args + OWN_ARGS));
    pl_status status = start(opts, argv, &child);
    pl_mem_free(argv);
    PL_TRY(status);
    PL_TRY(watch(child, opts, exit_status));
    if (*exit_status == NOT_FOUND)
        return PL_FAIL(PL_NOTFOUND,
                       "%s cannot be started; install MPI (Debian: "
                       "openmpi-bin), or use --engine ring",
                       opts->launcher != NULL ? opts->launcher : "mpirun");
    return PL_OK;
}
