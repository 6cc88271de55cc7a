#include "app/view/job_progress.h"

#include "support/unit.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* A terminal of 300 columns: what is written to *file is read from the
 * result. */
static int open_terminal(FILE **file)
{
    struct winsize size = { .ws_row = 25, .ws_col = 300 };
    struct termios raw;
    int leader = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    assert_true(leader >= 0 && grantpt(leader) == 0 && unlockpt(leader) == 0);
    int follower = open(ptsname(leader), O_RDWR | O_NOCTTY);
    assert_int_equal(0, ioctl(follower, TIOCSWINSZ, &size));
    assert_int_equal(0, tcgetattr(follower, &raw));
    cfmakeraw(&raw);
    assert_int_equal(0, tcsetattr(follower, TCSANOW, &raw));
    *file = fdopen(follower, "w");
    assert_non_null(*file);
    return leader;
}

/* ps 0 and two workers. */
static const pl_job_task begin[] = {
    { .task = { PL_ROLE_PS, 0 }, .worker = -1, .pid = 5, .starts = 1 },
    { .task = { PL_ROLE_WORKER, 0 }, .worker = 0, .pid = 6, .starts = 1 },
    { .task = { PL_ROLE_WORKER, 1 }, .worker = 1, .pid = 7, .starts = 1 },
};

static pl_status start(pl_job_progress **out, FILE *file)
{
    return pl_job_progress_start(out, &(pl_job_progress_opts) {
                                          .workers = 2,
                                          .file = file,
                                          .terminal = true,
                                          .end_step = 200,
                                          .per_epoch = 100,
                                      });
}

static void job_progress_sums_up_the_workers(void **state)
{
    (void)state;
    char text[4096] = "";
    FILE *file;
    int leader = open_terminal(&file);
    pl_job_progress *progress;
    pl_job_task tasks[3];
    memcpy(tasks, begin, sizeof tasks);
    assert_ok(start(&progress, file));
    pl_job_progress_show(progress, tasks, 3);
    tasks[1].reported = tasks[2].reported = true;
    tasks[1].status = (pl_task_status) { .step = 120,
                                         .own_steps = 61,
                                         .examples = 6100,
                                         .loss = 0.25,
                                         .test_loss = 0.5,
                                         .test_accuracy = 0.75 };
    tasks[2].status = (pl_task_status) { .step = 119,
                                         .own_steps = 60,
                                         .examples = 6000,
                                         .dropped = 2,
                                         .loss = 0.125,
                                         .test_loss = NAN,
                                         .test_accuracy = NAN };
    tasks[2].earlier_dropped = 1;
    tasks[2].pid = 0;
    pl_job_progress_show(progress, tasks, 3);
    assert_int_equal(120, pl_job_progress_step(progress));
    /* Said to be over, the line is left as it is. */
    tasks[1].final = true;
    pl_job_progress_show(progress, tasks, 3);
    fflush(file);
    ssize_t bytes = read(leader, text, sizeof text - 1);
    assert_true(bytes > 0 && text[bytes - 1] == '\n');
    char *last = strrchr(text, '\r');
    assert_non_null(strstr(last, "step 120/200  epoch 1.20  loss 0.2500  test "
                                 "0.5000, 75.00 %"));
    assert_non_null(strstr(last, "dropped 3  w0 61 "));
    assert_non_null(strstr(last, "w1 60 gone"));
    pl_job_progress_show(progress, tasks, 3);
    pl_job_progress_stop(progress);
    fflush(file);
    assert_int_equal(-1, read(leader, text, sizeof text));
    fclose(file);
    close(leader);
    assert_int_equal(0, pl_mem_live());
}

static void job_progress_of_many_workers_fits(void **state)
{
    (void)state;
    pl_job_progress *progress;
    FILE *file = fopen("/dev/null", "w");
    enum {
        MANY = 1024
    };
    static pl_job_task tasks[MANY];
    for (int i = 0; i < MANY; i++)
        tasks[i] = (pl_job_task) {
            .task = { PL_ROLE_WORKER, i },
            .worker = i,
            .pid = 1,
            .starts = 1,
            .status = { .step = INT64_MAX,
                        .own_steps = INT64_MAX,
                        .examples = INT64_MAX / MANY,
                        .dropped = INT64_MAX / MANY,
                        .loss = 1e300,
                        .test_loss = 1e300,
                        .test_accuracy = 1e300 },
        };
    assert_ok(pl_job_progress_start(
        &progress, &(pl_job_progress_opts) { .workers = MANY, .file = file }));
    pl_job_progress_show(progress, tasks, MANY);
    pl_job_progress_stop(progress);
    fclose(file);
}

static void job_progress_start_survives_each_failed_allocation(void **state)
{
    (void)state;
    pl_job_progress *progress;
    FILE *file = fopen("/dev/null", "w");
    assert_survives_failed_allocations(start(&progress, file),
                                       pl_job_progress_stop(progress));
    fclose(file);
}

UNIT_TESTS(cmocka_unit_test(job_progress_sums_up_the_workers),
           cmocka_unit_test(job_progress_of_many_workers_fits),
           cmocka_unit_test(job_progress_start_survives_each_failed_allocation))
