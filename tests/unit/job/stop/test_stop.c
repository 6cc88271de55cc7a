#include "job/stop/stop.h"
#include "job/supervise/packet.h"

#include "support/folder.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static pl_deadline soon(void)
{
    return pl_deadline_in_ms(pl_clock_real(), 60000);
}

static pl_stop *listen_at(const char *run, atomic_bool *interrupt)
{
    pl_stop *stop;
    assert_ok(pl_stop_listen(
        &stop, &(pl_stop_opts) { .run = run, .interrupt = interrupt }));
    return stop;
}

static void stop_request_interrupts_the_run(void **state)
{
    atomic_bool interrupt = false;
    assert_false(pl_stop_is_there(*state));
    pl_stop *stop = listen_at(*state, &interrupt);
    struct stat info;
    assert_int_equal(0, stat(test_path(*state, PL_STOP_SOCKET), &info));
    assert_int_equal(S_IFSOCK | 0600, info.st_mode);
    assert_true(pl_stop_is_there(*state));
    assert_ok(pl_stop_ask(*state, soon()));
    assert_true(atomic_load(&interrupt));
    assert_ok(pl_stop_ask(*state, soon())); /* again: no further effect */
    pl_stop_free(stop);
    assert_false(pl_stop_is_there(*state));
    assert_fails(PL_NOTFOUND, PL_STOP_SOCKET, pl_stop_ask(*state, soon()));
}

/* A path of a socket has at most 107 bytes. */
static void stop_works_in_a_folder_with_a_long_name(void **state)
{
    char name[201];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    const char *run = test_path(*state, name);
    atomic_bool interrupt = false;
    assert_int_equal(0, mkdir(run, 0777));
    pl_stop *stop = listen_at(run, &interrupt);
    assert_ok(pl_stop_ask(run, soon()));
    assert_true(atomic_load(&interrupt));
    pl_stop_free(stop);
}

static void a_leftover_socket_is_replaced(void **state)
{
    atomic_bool interrupt = false;
    const char *path = test_path(*state, PL_STOP_SOCKET);
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    strcpy(at.sun_path, path);
    int dead = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    assert_int_equal(0, bind(dead, (struct sockaddr *)&at, sizeof at));
    close(dead);
    assert_fails(PL_NOTFOUND, "refused", pl_stop_ask(*state, soon()));
    pl_stop *stop;
    assert_fails(PL_CLOSED, "in use",
                 pl_stop_listen(&stop, &(pl_stop_opts) {
                                           .run = *state,
                                           .interrupt = &interrupt,
                                           .keep = true,
                                       }));
    stop = listen_at(*state, &interrupt);
    assert_ok(pl_stop_ask(*state, soon()));
    pl_stop_free(stop);
}

/* Another run's socket must not be reached through this folder. */
static void links_are_not_followed(void **state)
{
    atomic_bool interrupt = false;
    const char *a = test_path(*state, "a"), *b = test_path(*state, "b");
    const char *link = test_path(b, PL_STOP_SOCKET);
    assert_int_equal(0, mkdir(a, 0777));
    assert_int_equal(0, mkdir(b, 0777));
    pl_stop *stop = listen_at(a, &interrupt);
    assert_int_equal(0, symlink("../a/" PL_STOP_SOCKET, link));
    assert_false(pl_stop_is_there(b));
    assert_fails(PL_PEER, "expected a socket", pl_stop_ask(b, soon()));
    assert_int_equal(0, unlink(link));
    assert_int_equal(0, mkfifo(link, 0600));
    assert_false(pl_stop_is_there(b));
    assert_fails(PL_PEER, "expected a socket", pl_stop_ask(b, soon()));
    assert_false(atomic_load(&interrupt));
    pl_stop_free(stop);
}

static void other_messages_do_nothing(void **state)
{
    atomic_bool interrupt = false;
    pl_stop *stop = listen_at(*state, &interrupt);
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    strcpy(at.sun_path, test_path(*state, PL_STOP_SOCKET));
    static const char *const texts[] = { "", "end", "{}",
                                         "{\"kind\": \"final\"}" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char got[8];
        int peer = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        assert_int_equal(0, connect(peer, (struct sockaddr *)&at, sizeof at));
        if (texts[i][0] != '\0')
            assert_true(write(peer, texts[i], strlen(texts[i])) > 0);
        shutdown(peer, SHUT_WR);
        assert_true(read(peer, got, sizeof got) <= 0);
        close(peer);
    }
    assert_false(atomic_load(&interrupt));
    assert_ok(pl_stop_ask(*state, soon()));
    assert_true(atomic_load(&interrupt));
    pl_stop_free(stop);
}

static void a_socket_that_does_not_answer_is_not_waited_for(void **state)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    strcpy(at.sun_path, test_path(*state, PL_STOP_SOCKET));
    int deaf = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    assert_int_equal(0, bind(deaf, (struct sockaddr *)&at, sizeof at));
    assert_int_equal(0, listen(deaf, 1));
    assert_fails(PL_TIMEOUT, "does not confirm",
                 pl_stop_ask(*state, pl_deadline_in_ms(pl_clock_real(), 1)));
    close(deaf);
}

static void stop_listen_survives_each_failed_allocation(void **state)
{
    atomic_bool interrupt = false;
    pl_stop *stop;
    assert_survives_failed_allocations(
        pl_stop_listen(
            &stop, &(pl_stop_opts) { .run = *state, .interrupt = &interrupt }),
        pl_stop_free(stop));
    assert_false(pl_stop_is_there(*state));
}

UNIT_TESTS(TEST_IN_FOLDER(stop_request_interrupts_the_run),
           TEST_IN_FOLDER(stop_works_in_a_folder_with_a_long_name),
           TEST_IN_FOLDER(a_leftover_socket_is_replaced),
           TEST_IN_FOLDER(links_are_not_followed),
           TEST_IN_FOLDER(other_messages_do_nothing),
           TEST_IN_FOLDER(a_socket_that_does_not_answer_is_not_waited_for),
           TEST_IN_FOLDER(stop_listen_survives_each_failed_allocation))
