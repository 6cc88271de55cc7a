#include "app/view/job_progress.h"

#include "support/unit.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
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

/* The kernel delivers written bytes with a delay. */
static void read_until(int leader, const char *end, char *text, size_t room)
{
    size_t used = 0, length = strlen(end);
    struct pollfd ready = { .fd = leader, .events = POLLIN };
    while (used < length || strcmp(text + used - length, end) != 0) {
        assert_int_equal(1, poll(&ready, 1, 60000));
        ssize_t bytes = read(leader, text + used, room - 1 - used);
        assert_true(bytes > 0);
        used += (size_t)bytes;
        text[used] = '\0';
    }
}

/* ps 0 and two workers. */
static const pl_job_task begin[] = {
    { .task = { PL_ROLE_PS, 0 }, .worker = -1, .running = true, .starts = 1 },
    { .task = { PL_ROLE_WORKER, 0 },
      .worker = 0,
      .running = true,
      .starts = 1 },
    { .task = { PL_ROLE_WORKER, 1 },
      .worker = 1,
      .running = true,
      .starts = 1 },
};

static pl_status start(pl_job_progress **out, FILE *file)
{
    return pl_job_progress_start(out, &(pl_job_progress_opts) {
                                          .workers = 2,
                                          .file = file,
                                          .kind = PL_PROGRESS_BAR,
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
                                         .loss_examples = 300,
                                         .test_loss = 0.5,
                                         .test_accuracy = 0.75 };
    tasks[2].status = (pl_task_status) { .step = 119,
                                         .own_steps = 60,
                                         .examples = 6000,
                                         .dropped = 2,
                                         .loss = 0.125,
                                         .loss_examples = 100,
                                         .test_loss = NAN,
                                         .test_accuracy = NAN };
    tasks[2].earlier_dropped = 1;
    tasks[0].reported = true;
    tasks[2].running = false;
    pl_job_progress_show(progress, tasks, 3);
    assert_int_equal(120, pl_job_progress_step(progress));
    pl_job_progress_epoch(progress, &(pl_epoch) { .epoch = 1,
                                                  .step = 100,
                                                  .loss = 0.375,
                                                  .test_loss = 0.5,
                                                  .test_accuracy = 0.75 });
    /* Once the job is over the last line stays, and nothing more is drawn. */
    tasks[1].final = true;
    pl_job_progress_show(progress, tasks, 3);
    fflush(file);
    read_until(leader, "waiting for worker 1\n", text, sizeof text);
    assert_non_null(strstr(text, "epoch 1/2  loss 0.3750  test loss 0.5000  "
                                 "accuracy 75.00 %"));
    const char *last = strrchr(text, '\r');
    assert_non_null(strstr(last, "epoch 2/2  120/200  ["));
    assert_non_null(strstr(last, "loss 0.2188  test 75.00 %  waiting for "
                                 "worker 1\n"));
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
            .running = true,
            .starts = 1,
            .status = { .step = INT64_MAX,
                        .own_steps = INT64_MAX,
                        .examples = INT64_MAX / MANY,
                        .dropped = INT64_MAX / MANY,
                        .loss = 1e300,
                        .loss_examples = 1,
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
