/* A script stands in for mpirun; tests/cli has the real one. */
#include "job/supervise/mpirun.h"

#include "support/folder.h"
#include "support/unit.h"

#include <sys/stat.h>

static char *command[] = { "paceline", "train", "softmax", NULL };

static const char *script(const char *folder, const char *text)
{
    const char *path = test_path(folder, "launcher");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", text);
    assert_int_equal(0, fclose(file));
    assert_int_equal(0, chmod(path, 0700));
    return path;
}

static void mpirun_gets_ranks_and_command(void **state)
{
    char text[256];
    snprintf(text, sizeof text,
             "case \"$*\" in *'-n 3 '*'train softmax') exit 7;; esac");
    int ended = -1;
    assert_ok(pl_mpirun_run(
        &(pl_mpirun_opts) {
            .launcher = script(*state, text), .ranks = 3, .argv = command },
        &ended));
    assert_int_equal(7, ended);
}

static void mpirun_that_was_killed_is_reported_as_by_a_shell(void **state)
{
    int ended = -1;
    assert_ok(pl_mpirun_run(
        &(pl_mpirun_opts) { .launcher = script(*state, "kill -9 $$"),
                            .ranks = 1,
                            .argv = command },
        &ended));
    assert_int_equal(128 + 9, ended);
}

/* It ignores the first signal, and ends on the second. */
static void mpirun_is_pressed_until_it_ends(void **state)
{
    atomic_bool interrupt = true;
    int ended = -1;
    /* The signal may come before the trap: either way it ends by SIGTERM or
     * by SIGUSR1, never by itself. */
    assert_ok(pl_mpirun_run(
        &(pl_mpirun_opts) {
            .launcher =
                script(*state, "trap '' USR1; while :; do sleep 1; done"),
            .ranks = 1,
            .argv = command,
            .end_ms = 1,
            .interrupt = &interrupt },
        &ended));
    assert_true(ended == 128 + 15 || ended == 128 + 10);
}

static void a_missing_mpirun_is_reported(void **state)
{
    (void)state;
    int ended;
    assert_fails(
        PL_NOTFOUND, "openmpi-bin",
        pl_mpirun_run(&(pl_mpirun_opts) { .launcher = "/nowhere/mpirun",
                                          .ranks = 1,
                                          .argv = command },
                      &ended));
}

UNIT_TESTS(TEST_IN_FOLDER(mpirun_gets_ranks_and_command),
           TEST_IN_FOLDER(mpirun_that_was_killed_is_reported_as_by_a_shell),
           TEST_IN_FOLDER(mpirun_is_pressed_until_it_ends),
           cmocka_unit_test(a_missing_mpirun_is_reported))
