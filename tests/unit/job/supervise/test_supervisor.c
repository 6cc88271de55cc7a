#include "job/supervise/supervisor.h"

#include "base/log.h"
#include "support/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_MS 60000
#define MOST     8 /* tasks */

/* A job of two workers and a server, and what happened to it. */
typedef struct job {
    const char *folder;
    pl_cluster cluster;
    char *argv[6];
    pl_supervisor_opts opts;
    atomic_bool interrupt;
    void (*drive)(struct job *job, const pl_job_task *tasks, int count);
    bool acted;             /* of drive */
    int turns, faults;      /* of drive */
    pl_job_task seen[MOST]; /* the last */
    int count;
    pid_t pids[MOST][2]; /* the first two processes of each task */
    char log[8192];      /* the supervisor's log */
} job;

static void keep_line(void *context, pl_log_level level, const char *line)
{
    job *j = context;
    (void)level;
    size_t used = strlen(j->log);
    snprintf(j->log + used, sizeof j->log - used, "%s\n", line);
}

static void watch(void *context, const pl_job_task *tasks, int count)
{
    job *j = context;
    j->count = count;
    for (int i = 0; i < count; i++) {
        j->seen[i] = tasks[i];
        if (tasks[i].pid > 0 && tasks[i].starts <= 2)
            j->pids[i][tasks[i].starts - 1] = tasks[i].pid;
    }
    if (j->drive != NULL)
        j->drive(j, tasks, count);
}

static void make_fifo(const job *j, const char *name)
{
    assert_int_equal(0, mkfifo(test_path(j->folder, name), 0600));
}

static void open_job(job *j, void **state, char *ps, char *chief, char *others)
{
    *j = (job) { .folder = *state };
    assert_ok(pl_cluster_local(&j->cluster, 2, 1, false));
    char *argv[] = { "fake_task", ps, chief, others, *state, NULL };
    memcpy(j->argv, argv, sizeof argv);
    j->opts = (pl_supervisor_opts) {
        .cluster = &j->cluster,
        .program = FAKE_TASK,
        .argv = j->argv,
        .logs = *state,
        .restarts = 2,
        .join_ms = LIMIT_MS,
        .end_ms = LIMIT_MS,
        .kill_ms = LIMIT_MS,
        .interrupt = &j->interrupt,
        .show = watch,
        .context = j,
    };
    make_fifo(j, "go");
    make_fifo(j, "lost");
    make_fifo(j, "later");
    pl_log_set(keep_line, j, PL_LOG_INFO);
}

/* No process of the job is left, not even as a zombie. */
static void close_job(job *j)
{
    pl_log_set(NULL, NULL, PL_LOG_INFO);
    assert_int_equal(-1, waitpid(-1, NULL, WNOHANG));
    assert_int_equal(ECHILD, errno);
    pl_cluster_close(&j->cluster);
    assert_int_equal(0, pl_mem_live());
}

/* Release the task that waits for the fifo; false: none does yet. */
static bool release(const job *j, const char *name)
{
    int fifo = open(test_path(j->folder, name), O_WRONLY | O_NONBLOCK);
    if (fifo < 0)
        return false;
    assert_int_equal(1, write(fifo, "x", 1));
    close(fifo);
    return true;
}

static void assert_said(const job *j, const char *part)
{
    if (strstr(j->log, part) == NULL)
        fail_msg("\"%s\" is not in: %s", part, j->log);
}

/* Tasks in the order of a job: ps 0, worker 0, worker 1. */
enum {
    PS,
    CHIEF,
    OTHER
};

/* The chief ends when the other has reported: a task that is asked to end first
 * need not report. */
static void release_when_reported(job *j, const pl_job_task *tasks, int count)
{
    (void)count;
    if (!j->acted && tasks[OTHER].reported)
        j->acted = release(j, "go");
}

static void supervisor_job_runs_to_its_end(void **state)
{
    job j;
    open_job(&j, state, "ace0", "csg0", "cse0");
    j.drive = release_when_reported;
    assert_ok(pl_supervisor_run(&j.opts));
    assert_int_equal(3, j.count);
    assert_int_equal(PL_ROLE_PS, j.seen[PS].task.role);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(1, j.seen[i].starts);
        assert_int_equal(0, j.seen[i].pid);
        assert_int_equal(i - 1, j.seen[i].worker);
    }
    assert_int_equal(10, j.seen[CHIEF].status.step);
    assert_int_equal(100, j.seen[OTHER].status.examples);
    assert_string_equal("", j.log);
    close_job(&j);
}

static void supervisor_job_of_many_servers_gets_all_addresses(void **state)
{
    job j;
    open_job(&j, state, "ace0", "cs0", "cse0");
    pl_cluster_close(&j.cluster);
    assert_ok(pl_cluster_local(&j.cluster, 2, 3, true));
    assert_ok(pl_supervisor_run(&j.opts));
    assert_int_equal(6, j.count);
    close_job(&j);
}

static void supervisor_workers_that_listen_get_all_addresses(void **state)
{
    job j;
    open_job(&j, state, "", "ac0", "ace0");
    pl_cluster_close(&j.cluster);
    assert_ok(pl_cluster_local(&j.cluster, 3, 0, false));
    j.opts.workers_listen = true;
    assert_ok(pl_supervisor_run(&j.opts));
    assert_int_equal(3, j.count);
    close_job(&j);
}

static void supervisor_worker_that_does_not_report_ends_the_job(void **state)
{
    job j;
    open_job(&j, state, "", "ac0", "e0");
    pl_cluster_close(&j.cluster);
    assert_ok(pl_cluster_local(&j.cluster, 3, 0, false));
    j.opts.workers_listen = true;
    j.opts.join_ms = 1;
    assert_fails(PL_TIMEOUT, "worker 1, worker 2", pl_supervisor_run(&j.opts));
    close_job(&j);
}

/* Only the chief's standard output is the supervisor's. */
static void supervisor_chief_alone_prints(void **state)
{
    job j;
    open_job(&j, state, "aoce0", "oc0", "oce0");
    int out[2], before = dup(STDOUT_FILENO);
    assert_int_equal(0, pipe(out));
    fflush(stdout);
    dup2(out[1], STDOUT_FILENO);
    pl_status status = pl_supervisor_run(&j.opts);
    dup2(before, STDOUT_FILENO);
    close(before);
    close(out[1]);
    assert_ok(status);
    char text[64] = "";
    assert_int_equal(8, read(out[0], text, sizeof text));
    assert_string_equal("printed\n", text);
    close(out[0]);
    close_job(&j);
}

static void release_when_started_again(job *j, const pl_job_task *tasks,
                                       int count)
{
    (void)count;
    if (!j->acted && tasks[OTHER].starts == 2 && tasks[OTHER].reported)
        j->acted = release(j, "go");
}

static void supervisor_worker_that_crashes_is_restarted(void **state)
{
    job j;
    open_job(&j, state, "ace0", "csg0", "csm1Ae0");
    j.drive = release_when_started_again;
    assert_ok(pl_supervisor_run(&j.opts));
    assert_int_equal(2, j.seen[OTHER].starts);
    assert_int_equal(100, j.seen[OTHER].earlier_examples);
    assert_int_equal(1, j.seen[CHIEF].starts);
    assert_said(&j, "worker 1 was killed by signal 6 (Aborted)");
    assert_said(&j, "started again (1 of 2)");
    assert_said(&j, "/worker-1.log");
    assert_said(&j, "  fake_task: the disk is full");
    char *log;
    assert_ok(pl_file_read_text(&log, test_path(*state, "worker-1.log"), 4096));
    assert_non_null(strstr(log, "[src/a.c:1]\n--- worker 1, start 2\n"));
    pl_mem_free(log);
    close_job(&j);
}

static void supervisor_worker_that_keeps_crashing_ends_the_job(void **state)
{
    job j;
    open_job(&j, state, "ace0", "cse0", "cmK");
    assert_fails(PL_PEER,
                 "worker 1 was killed by signal 9 (Killed) (start 3); its log:",
                 pl_supervisor_run(&j.opts));
    assert_int_equal(3, j.seen[OTHER].starts);
    assert_said(&j, "started again (2 of 2)");
    close_job(&j);
}

static void release_when_given_up(job *j, const pl_job_task *tasks, int count)
{
    (void)count;
    if (!j->acted && tasks[OTHER].starts == 3 && tasks[OTHER].pid == 0)
        j->acted = release(j, "go");
}

static void supervisor_job_may_continue_without_a_worker(void **state)
{
    job j;
    open_job(&j, state, "ace0", "csg0", "csK");
    j.opts.go_on = true;
    j.drive = release_when_given_up;
    assert_ok(pl_supervisor_run(&j.opts));
    assert_said(&j, "the job continues without it");
    close_job(&j);
}

static void release_when_server_knows(job *j, const pl_job_task *tasks,
                                      int count)
{
    (void)count;
    if (!j->acted && tasks[PS].reported)
        j->acted = release(j, "go");
}

/* supervisor I5.  Also a server that was restarted. */
static void supervisor_notifies_the_server_of_lost_workers(void **state)
{
    job j;
    open_job(&j, state, "acG1Kse0", "csg0", "csK");
    j.opts.go_on = true;
    j.opts.restarts = 1;
    j.drive = release_when_server_knows;
    assert_ok(pl_supervisor_run(&j.opts));
    assert_int_equal(2, j.seen[PS].starts);
    assert_said(&j, "the job continues without it");
    close_job(&j);
}

/* Freeze worker 1, let ps 0 notice, and see a new one. */
static void freeze(job *j, const pl_job_task *tasks, int count)
{
    if (!j->acted && tasks[OTHER].reported && tasks[OTHER].starts == 1) {
        kill(tasks[OTHER].pid, SIGSTOP);
        j->acted = release(j, "lost");
    }
    if (tasks[OTHER].starts == 2) {
        j->acted = false;
        release_when_started_again(j, tasks, count);
        j->acted = true;
    }
}

static void supervisor_worker_declared_lost_is_killed_and_restarted(
    void **state)
{
    job j;
    open_job(&j, state, "acle0", "csg0", "cse0");
    j.drive = freeze;
    assert_ok(pl_supervisor_run(&j.opts));
    assert_int_equal(2, j.seen[OTHER].starts);
    assert_said(&j, "worker 1 was declared lost and killed; started again (1 "
                    "of 2)");
    close_job(&j);
}

/* The restarted task reports no more than the first did, but may take as long
 * as the others take to end. */
static void release_when_server_is_back(job *j, const pl_job_task *tasks,
                                        int count)
{
    (void)count;
    if (tasks[PS].starts == 2)
        j->opts.silence_ms = 0;
    if (!j->acted && tasks[PS].starts == 2 && tasks[PS].reported)
        j->acted = release(j, "go");
}

/* No other task would report that it is lost. */
static void supervisor_first_server_that_is_silent_is_started_again(
    void **state)
{
    job j;
    open_job(&j, state, "acs1pe0", "csg0", "cse0");
    j.opts.silence_ms = 300;
    j.drive = release_when_server_is_back;
    assert_ok(pl_supervisor_run(&j.opts));
    assert_int_equal(2, j.seen[PS].starts);
    assert_said(&j, "ps 0 was declared lost and killed; started again (1 of "
                    "2)");
    close_job(&j);
}

/* Faults one to five, then the end: as often as chaos lets it come. */
static void release_after_faults(job *j, const pl_job_task *tasks, int count)
{
    (void)tasks;
    (void)count;
    if (strstr(j->log, "chaos: fault 5,") != NULL)
        release(j, "go");
}

/* --restarts is used up by other deaths alone. */
static void supervisor_chaos_is_repaired_and_not_counted(void **state)
{
    job j;
    open_job(&j, state, "acse0", "csgFf0", "cse0");
    j.opts.restarts = 0;
    j.opts.chaos = 20;
    j.opts.chaos_seed = 1;
    j.opts.freeze_ms = 100;
    j.drive = release_after_faults;
    assert_ok(pl_supervisor_run(&j.opts));
    assert_said(&j, "chaos: fault 1, ");
    assert_said(&j, "was killed by signal 9 (Killed); started again\n");
    close_job(&j);
}

static int count_faults(const job *j)
{
    int count = 0;
    for (const char *at = j->log; (at = strstr(at, "chaos: fault ")) != NULL;)
        count++, at++;
    return count;
}

/* From the moment the chief knows that it closes, for some turns. */
static void look_for_faults(job *j, const pl_job_task *tasks, int count)
{
    (void)tasks, (void)count;
    if (access(test_path(j->folder, "closed"), F_OK) != 0)
        return;
    if (j->turns == 0)
        j->faults = count_faults(j);
    if (++j->turns == 20)
        assert_true(release(j, "go"));
}

/* supervisor I2.  Once the chief leaves, a fault would hit a job that cannot be
 * repaired: its servers may have ended. */
static void supervisor_chaos_spares_a_job_that_closes(void **state)
{
    job j;
    open_job(&j, state, "acse0", "csFwgf0", "cse0");
    j.opts.chaos = 20;
    j.opts.chaos_seed = 1;
    j.opts.freeze_ms = 1;
    j.drive = look_for_faults;
    assert_ok(pl_supervisor_run(&j.opts));
    assert_true(j.turns >= 20);
    assert_int_equal(j.faults, count_faults(&j));
    close_job(&j);
}

static void release_when_other_is_back(job *j, const pl_job_task *tasks,
                                       int count)
{
    (void)count;
    if (!j->acted && tasks[1].starts == 2)
        j->acted = release(j, "go");
    if (tasks[1].reported)
        release(j, "later");
}

/* No task knew its first address yet: the second one counts. */
static void supervisor_task_that_reported_and_died_listens_elsewhere(
    void **state)
{
    job j;
    open_job(&j, state, "", "gachs0", "b1Kcse0");
    pl_cluster_close(&j.cluster);
    assert_ok(pl_cluster_local(&j.cluster, 2, 0, false));
    j.opts.workers_listen = true;
    j.drive = release_when_other_is_back;
    assert_ok(pl_supervisor_run(&j.opts));
    assert_int_equal(2, j.seen[1].starts);
    close_job(&j);
}

/* supervisor I3.  A job cannot go on without a worker that never was in it. */
static void supervisor_worker_killed_before_it_joined_is_started_again(
    void **state)
{
    job j;
    open_job(&j, state, "ace0", "csg0", "c1Kse0");
    j.opts.restarts = 0;
    j.opts.go_on = true;
    j.drive = release_when_reported;
    assert_ok(pl_supervisor_run(&j.opts));
    assert_int_equal(2, j.seen[OTHER].starts);
    assert_said(&j, "worker 1 was killed by signal 9 (Killed); started again");
    close_job(&j);
}

static void supervisor_worker_that_never_joins_ends_the_job(void **state)
{
    job j;
    open_job(&j, state, "ace0", "cse0", "cK");
    j.opts.restarts = 0;
    j.opts.go_on = true;
    assert_fails(PL_PEER, "worker 1 was killed by signal 9 (Killed) (start 2)",
                 pl_supervisor_run(&j.opts));
    close_job(&j);
}

/* A program that does not pass its arguments on to pl_app_main. */
static void supervisor_task_that_did_not_train_ends_the_job(void **state)
{
    static char *const acts[][2] = { { "q", "cse0" }, { "cse0", "q" } };
    for (size_t i = 0; i < 2; i++) {
        job j;
        open_job(&j, state, "ace0", acts[i][0], acts[i][1]);
        char says[128];
        snprintf(says, sizeof says,
                 "worker %zu ended with exit status 0 but did not train", i);
        assert_fails(PL_PEER, says, pl_supervisor_run(&j.opts));
        close_job(&j);
        unlink(test_path(*state, "go"));
        unlink(test_path(*state, "lost"));
        unlink(test_path(*state, "later"));
    }
}

/* A server is started again like a worker: the job is rolled back. */
static void supervisor_job_ends_with_its_server(void **state)
{
    job j;
    open_job(&j, state, "acK", "cse0", "cse0");
    assert_fails(PL_PEER,
                 "ps 0 at 127.0.0.1:1000 was killed by signal 9 (Killed) "
                 "(start 3); its log:",
                 pl_supervisor_run(&j.opts));
    assert_int_equal(3, j.seen[PS].starts);
    assert_said(&j, "ps 0 was killed by signal 9 (Killed); started again (2 "
                    "of 2)");
    close_job(&j);
}

static void end_one_by_one(job *j, const pl_job_task *tasks, int count)
{
    (void)count;
    if (!j->acted && tasks[PS].pid == 0)
        j->acted = release(j, "later");
    if (tasks[PS].pid == 0 && tasks[OTHER].pid == 0)
        release(j, "go");
}

/* Once a server has ended successfully no task is restarted, and the chief may
 * take any time. */
static void supervisor_job_is_over_when_a_server_reports_it(void **state)
{
    job j;
    open_job(&j, state, "ac0", "csg0", "csh3");
    j.drive = end_one_by_one;
    j.opts.end_ms = 1;
    assert_ok(pl_supervisor_run(&j.opts));
    assert_int_equal(1, j.seen[OTHER].starts);
    assert_said(&j, "worker 1 ended with exit status 3; its log:");
    close_job(&j);
}

/* The server has died, and is not restarted: then the chief ends. */
static void release_when_server_is_dead(job *j, const pl_job_task *tasks,
                                        int count)
{
    (void)count;
    if (tasks[CHIEF].final && !j->acted)
        j->acted = release(j, "later");
    if (j->acted && tasks[PS].pid == 0)
        release(j, "go");
}

/* supervisor I1.  It would wait for workers that have ended. */
static void supervisor_server_that_dies_after_the_chief_is_final_stays(
    void **state)
{
    job j;
    open_job(&j, state, "achK", "csfg0", "cs0");
    j.drive = release_when_server_is_dead;
    assert_ok(pl_supervisor_run(&j.opts));
    assert_int_equal(1, j.seen[PS].starts);
    assert_said(&j, "ps 0 was killed by signal 9 (Killed); its log:");
    close_job(&j);
}

/* supervisor I4.  All are killed, so that only the supervisor can know of it.
 */
static void supervisor_notifies_the_chief_of_every_restart(void **state)
{
    job j;
    open_job(&j, state, "ac1Kse0", "c1Ksr0", "c1Kse0");
    assert_ok(pl_supervisor_run(&j.opts));
    for (int i = 0; i < 3; i++)
        assert_int_equal(2, j.seen[i].starts);
    close_job(&j);
}

static void supervisor_chief_that_fails_at_the_end_fails_the_job(void **state)
{
    job j;
    open_job(&j, state, "ac0", "csgmx", "csh0");
    j.drive = end_one_by_one;
    assert_fails(PL_PEER, "worker 0 ended with exit status 1: the disk is full",
                 pl_supervisor_run(&j.opts));
    close_job(&j);
}

static void supervisor_chief_killed_after_its_last_word_names_the_cure(
    void **state)
{
    job j;
    open_job(&j, state, "ac0", "csfK", "cs0");
    assert_fails(PL_PEER,
                 "worker 0 was killed by signal 9 (Killed): the training is "
                 "complete and saved, only the summary is missing: "
                 "--resume prints it",
                 pl_supervisor_run(&j.opts));
    close_job(&j);
}

static void supervisor_task_with_a_final_error_ends_the_job(void **state)
{
    static const struct {
        char *chief;
        pl_status status;
        const char *part;
    } cases[] = {
        { "cmx", PL_PEER,
          "worker 0 ended with exit status 1: the disk is full; its log:" },
        { "cm2", PL_USAGE,
          "worker 0 ended with exit status 2: the disk is full" },
        { "csmfx", PL_PEER,
          "worker 0 ended with exit status 1: the disk is full" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        job j;
        open_job(&j, state, "ace0", cases[i].chief, "cse0");
        assert_fails(cases[i].status, cases[i].part,
                     pl_supervisor_run(&j.opts));
        assert_int_equal(1, j.seen[CHIEF].starts);
        close_job(&j);
        assert_ok(pl_file_remove_all(*state));
        assert_int_equal(0, mkdir(*state, 0700));
    }
}

static void supervisor_missing_program_is_reported(void **state)
{
    job j;
    open_job(&j, state, "", "", "");
    j.opts.program = "/nowhere";
    assert_fails(PL_PEER, "ended with exit status 127",
                 pl_supervisor_run(&j.opts));
    assert_said(&j, "cannot start the program");
    close_job(&j);
}

static void supervisor_server_that_does_not_report_ends_the_job(void **state)
{
    job j;
    open_job(&j, state, "e0", "c0", "c0");
    j.opts.join_ms = 1;
    assert_fails(PL_TIMEOUT, "ps 0 reported no port within 0 s",
                 pl_supervisor_run(&j.opts));
    close_job(&j);
}

static void kill_stubborn(job *j, const pl_job_task *tasks, int count)
{
    (void)count;
    if (!j->acted && tasks[OTHER].reported)
        j->acted = release(j, "go");
}

/* Worker 1 ignores the message and SIGTERM. */
static void supervisor_stubborn_task_is_killed(void **state)
{
    job j;
    open_job(&j, state, "ace0", "cgx", "cTsp");
    j.drive = kill_stubborn;
    j.opts.kill_ms = 1;
    assert_fails(PL_PEER, "worker 0 ended with exit status 1",
                 pl_supervisor_run(&j.opts));
    close_job(&j);
}

/* It is woken to receive the end; SIGKILL would come much later. */
static void supervisor_stopped_task_is_ended(void **state)
{
    job j;
    open_job(&j, state, "ace0", "cgx", "csS");
    j.drive = kill_stubborn;
    j.opts.kill_ms = 3600000;
    assert_fails(PL_PEER, "worker 0 ended with exit status 1",
                 pl_supervisor_run(&j.opts));
    close_job(&j);
}

static void supervisor_task_that_outlives_the_job_is_ended(void **state)
{
    job j;
    open_job(&j, state, "ace0", "cg0", "csp");
    j.drive = kill_stubborn;
    j.opts.end_ms = 1;
    assert_ok(pl_supervisor_run(&j.opts));
    assert_said(&j, "still running, to be ended: ");
    assert_said(&j, "worker 1");
    close_job(&j);
}

static void interrupt_when_all_run(job *j, const pl_job_task *tasks, int count)
{
    (void)count;
    if (tasks[CHIEF].reported && tasks[OTHER].reported)
        atomic_store(&j->interrupt, true);
}

static void supervisor_interrupt_ends_all_tasks_cleanly(void **state)
{
    job j;
    open_job(&j, state, "ace0", "csei", "cse0");
    j.drive = interrupt_when_all_run;
    assert_fails(PL_INTERRUPTED, "interrupted", pl_supervisor_run(&j.opts));
    assert_string_equal("", j.log);
    close_job(&j);
}

/* It had made its last step when the interrupt came. */
static void supervisor_finished_chief_ends_the_job_successfully(void **state)
{
    job j;
    open_job(&j, state, "ace0", "cse0", "cse0");
    j.drive = interrupt_when_all_run;
    assert_ok(pl_supervisor_run(&j.opts));
    close_job(&j);
}

/* Ctrl-C reaches the tasks, too: they must leave it to the supervisor. */
static void signal_when_all_run(job *j, const pl_job_task *tasks, int count)
{
    if (!j->acted && tasks[CHIEF].reported && tasks[OTHER].reported) {
        for (int i = 0; i < count; i++)
            kill(tasks[i].pid, SIGINT);
        j->acted = true;
        atomic_store(&j->interrupt, true);
    }
}

static void supervisor_tasks_leave_ctrl_c_to_the_supervisor(void **state)
{
    job j;
    open_job(&j, state, "ace0", "csei", "cse0");
    j.drive = signal_when_all_run;
    assert_fails(PL_INTERRUPTED, "interrupted", pl_supervisor_run(&j.opts));
    assert_string_equal("", j.log);
    close_job(&j);
}

/* In the supervisor's process: report the running tasks to the test once all
 * run. */
static int report_to;

static void report_pids(job *j, const pl_job_task *tasks, int count)
{
    if (j->acted || !tasks[CHIEF].reported || !tasks[OTHER].reported)
        return;
    pid_t pids[3] = { tasks[PS].pid, tasks[CHIEF].pid, tasks[OTHER].pid };
    j->acted = write(report_to, pids, sizeof pids) == sizeof pids && count == 3;
}

/* Orphans become this process's, so that it sees how they end. */
static void supervisor_killed_supervisor_leaves_no_process(void **state)
{
    job j;
    int pipes[2];
    pid_t pids[3];
    assert_int_equal(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
    assert_int_equal(0, pipe(pipes));
    /* These would stay forever: they ignore messages and SIGTERM. */
    open_job(&j, state, "acTp", "cTsp", "cTsp");
    pid_t supervisor = fork();
    assert_true(supervisor >= 0);
    if (supervisor == 0) {
        close(pipes[0]);
        report_to = pipes[1];
        j.drive = report_pids;
        _exit(pl_supervisor_run(&j.opts) == PL_OK ? 0 : 1);
    }
    close(pipes[1]);
    assert_int_equal(sizeof pids, read(pipes[0], pids, sizeof pids));
    assert_int_equal(0, kill(supervisor, SIGKILL));
    assert_int_equal(supervisor, waitpid(supervisor, NULL, 0));
    for (int i = 0; i < 3; i++) {
        int ended;
        assert_int_equal(pids[i], waitpid(pids[i], &ended, 0));
        assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL);
    }
    close(pipes[0]);
    assert_int_equal(0, prctl(PR_SET_CHILD_SUBREAPER, 0));
    close_job(&j);
}

/* Where memory runs out, what was started is ended. */
static void supervisor_run_survives_each_failed_allocation(void **state)
{
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        job j;
        open_job(&j, state, "ace0", "csei", "cse0");
        j.drive = interrupt_when_all_run;
        pl_mem_fail_at(nth);
        pl_status status = pl_supervisor_run(&j.opts);
        failed = pl_mem_fail_off();
        assert_int_equal(failed ? PL_NOMEM : PL_INTERRUPTED, status);
        close_job(&j);
        assert_ok(pl_file_remove_all(*state));
        assert_int_equal(0, mkdir(*state, 0700));
    }
}

UNIT_TESTS(
    TEST_IN_FOLDER(supervisor_job_runs_to_its_end),
    TEST_IN_FOLDER(supervisor_job_of_many_servers_gets_all_addresses),
    TEST_IN_FOLDER(supervisor_workers_that_listen_get_all_addresses),
    TEST_IN_FOLDER(supervisor_worker_that_does_not_report_ends_the_job),
    TEST_IN_FOLDER(supervisor_chief_alone_prints),
    TEST_IN_FOLDER(supervisor_worker_that_crashes_is_restarted),
    TEST_IN_FOLDER(supervisor_worker_that_keeps_crashing_ends_the_job),
    TEST_IN_FOLDER(supervisor_job_may_continue_without_a_worker),
    TEST_IN_FOLDER(supervisor_notifies_the_server_of_lost_workers),
    TEST_IN_FOLDER(supervisor_worker_declared_lost_is_killed_and_restarted),
    TEST_IN_FOLDER(supervisor_first_server_that_is_silent_is_started_again),
    TEST_IN_FOLDER(supervisor_chaos_is_repaired_and_not_counted),
    TEST_IN_FOLDER(supervisor_chaos_spares_a_job_that_closes),
    TEST_IN_FOLDER(supervisor_task_that_reported_and_died_listens_elsewhere),
    TEST_IN_FOLDER(supervisor_worker_killed_before_it_joined_is_started_again),
    TEST_IN_FOLDER(supervisor_worker_that_never_joins_ends_the_job),
    TEST_IN_FOLDER(supervisor_task_that_did_not_train_ends_the_job),
    TEST_IN_FOLDER(supervisor_job_ends_with_its_server),
    TEST_IN_FOLDER(supervisor_job_is_over_when_a_server_reports_it),
    TEST_IN_FOLDER(supervisor_server_that_dies_after_the_chief_is_final_stays),
    TEST_IN_FOLDER(supervisor_notifies_the_chief_of_every_restart),
    TEST_IN_FOLDER(supervisor_chief_that_fails_at_the_end_fails_the_job),
    TEST_IN_FOLDER(supervisor_chief_killed_after_its_last_word_names_the_cure),
    TEST_IN_FOLDER(supervisor_task_with_a_final_error_ends_the_job),
    TEST_IN_FOLDER(supervisor_missing_program_is_reported),
    TEST_IN_FOLDER(supervisor_server_that_does_not_report_ends_the_job),
    TEST_IN_FOLDER(supervisor_stubborn_task_is_killed),
    TEST_IN_FOLDER(supervisor_stopped_task_is_ended),
    TEST_IN_FOLDER(supervisor_task_that_outlives_the_job_is_ended),
    TEST_IN_FOLDER(supervisor_interrupt_ends_all_tasks_cleanly),
    TEST_IN_FOLDER(supervisor_finished_chief_ends_the_job_successfully),
    TEST_IN_FOLDER(supervisor_tasks_leave_ctrl_c_to_the_supervisor),
    TEST_IN_FOLDER(supervisor_killed_supervisor_leaves_no_process),
    TEST_IN_FOLDER(supervisor_run_survives_each_failed_allocation))
