/* A program that plays a task of a job for a supervisor.
 *
 *   fake_task PS CHIEF OTHERS FOLDER --role R --index I --control FD
 *
 * The first three say what a server, worker 0 and all others do, a letter
 * for each act:
 *
 *   a  report an address            c  wait for the cluster, look at it
 *   s  send a status                f  say that this is final
 *   e  wait until told to end       p  wait for ever
 *   g  wait for the fifo FOLDER/go  l  wait for FOLDER/lost, lose worker 1
 *   h  wait for FOLDER/later        b  as a, but the first process has a port
 *   F  say that this closes            that no other has
 *   w  make FOLDER/closed           q  exit with 0, before anything is said
 *   r  wait until told of three restarts
 *   G  wait until told that worker 1 is gone
 *   m  write to standard error      o  write to standard output
 *   T  ignore SIGTERM               S  stop by SIGSTOP
 *   K, A  die by SIGKILL, by SIGABRT
 *   1  skip the next act unless this is the first process of the task
 *   0, 2 .. 9  exit with it;  x, i  exit with 1, with 130
 *
 * Whatever happens, it ends after a while. */
#include "base/clock.h"
#include "job/supervise/control.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_S 100

typedef struct actor {
    const char *folder;
    pl_control *control;
    int fd;
    pl_task task;
    bool first; /* process of this task */
} actor;

static void fail(const char *what)
{
    fprintf(stderr, "fake_task: %s: %s\n", what, pl_error_message());
    exit(9);
}

static void path_of(const actor *a, const char *name, char path[512])
{
    snprintf(path, 512, "%s/%s", a->folder, name);
}

/* Wait until the other end writes. */
static void wait_fifo(const actor *a, const char *name)
{
    char path[512], byte;
    path_of(a, name, path);
    int fifo = open(path, O_RDONLY);
    if (fifo < 0 || read(fifo, &byte, 1) != 1)
        fail(path);
    close(fifo);
}

static void report(const actor *a, int port)
{
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%d", port + a->task.index);
    if (pl_control_address(a->control, address) != PL_OK)
        fail("address");
}

static void make_closed(const actor *a)
{
    char path[512];
    path_of(a, "closed", path);
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    if (file < 0)
        fail(path);
    close(file);
}

static void look_at_cluster(const actor *a)
{
    pl_cluster cluster;
    if (pl_control_cluster(
            a->control, &cluster,
            pl_deadline_in_ms(pl_clock_real(), LIMIT_S * 1000)) != PL_OK)
        fail("cluster");
    for (int i = 0; i < cluster.ps; i++)
        if (atoi(strrchr(cluster.ps_address[i], ':') + 1) != 1000 + i)
            fail("addresses");
    for (int i = 0; cluster.worker_address != NULL && i < cluster.workers; i++)
        if (atoi(strrchr(cluster.worker_address[i], ':') + 1) != 1000 + i)
            fail("addresses of workers");
    pl_cluster_close(&cluster);
}

static void wait_end(const actor *a)
{
    struct pollfd ready = { .fd = a->fd, .events = POLLIN };
    while (!pl_control_ended(a->control))
        poll(&ready, 1, -1);
}

static void send_status(const actor *a)
{
    pl_control_status(a->control, &(pl_task_status) {
                                      .step = 10,
                                      .own_steps = 5,
                                      .examples = 100,
                                      .loss = 0.5,
                                      .test_loss = NAN,
                                      .test_accuracy = NAN,
                                  });
}

static void wait_restarts(const actor *a, int64_t restarts)
{
    struct pollfd ready = { .fd = a->fd, .events = POLLIN };
    while (pl_control_counts(a->control).restarts < restarts)
        poll(&ready, 1, -1);
}

static void wait_gone(const actor *a)
{
    struct pollfd ready = { .fd = a->fd, .events = POLLIN };
    pl_task gone;
    while (!pl_control_gone(a->control, &gone))
        poll(&ready, 1, -1);
    if (gone.role != PL_ROLE_WORKER || gone.index != 1)
        fail("gone");
}

static void die(int number)
{
    kill(getpid(), number);
}

static void act(actor *a, char letter)
{
    switch (letter) {
    case 'a':
        return report(a, 1000);
    case 'c':
        return look_at_cluster(a);
    case 's':
        return send_status(a);
    case 'f':
        return pl_control_final(a->control);
    case 'F':
        return pl_control_closing(a->control);
    case 'w':
        return make_closed(a);
    case 'b':
        return report(a, a->first ? 3000 : 1000);
    case 'e':
        return wait_end(a);
    case 'G':
        return wait_gone(a);
    case 'r':
        return wait_restarts(a, 3);
    case 'p':
        for (;;)
            pause();
    case 'g':
        return wait_fifo(a, "go");
    case 'h':
        return wait_fifo(a, "later");
    case 'l':
        wait_fifo(a, "lost");
        return pl_control_lost(a->control, (pl_task) { PL_ROLE_WORKER, 1 });
    case 'm':
        fprintf(stderr, "one\ntwo\nfake_task: the disk is full [src/a.c:1]\n");
        return;
    case 'o':
        puts("printed");
        return;
    case 'S':
        return die(SIGSTOP);
    case 'i':
        exit(130);
    case 'T':
        signal(SIGTERM, SIG_IGN);
        return;
    case 'K':
        return die(SIGKILL);
    case 'A':
        return die(SIGABRT);
    case 'x':
        exit(1);
    default:
        exit(letter - '0');
    }
}

/* The first process of a task makes a file. */
static bool is_first(const actor *a)
{
    char name[64], path[512];
    snprintf(name, sizeof name, "%s-%d", pl_role_text(a->task.role),
             a->task.index);
    path_of(a, name, path);
    int file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0666);
    if (file >= 0)
        close(file);
    return file >= 0;
}

int main(int argc, char **argv)
{
    if (argc != 11 || strcmp(argv[5], "--role") != 0 ||
        strcmp(argv[7], "--index") != 0 || strcmp(argv[9], "--control") != 0)
        return 8;
    alarm(LIMIT_S);
    actor a = { .folder = argv[4], .fd = atoi(argv[10]) };
    bool ps = strcmp(argv[6], "ps") == 0;
    a.task = (pl_task) { ps                                  ? PL_ROLE_PS
                         : strcmp(argv[6], "evaluator") == 0 ? PL_ROLE_EVALUATOR
                                                             : PL_ROLE_WORKER,
                         atoi(argv[8]) };
    a.first = is_first(&a);
    bool chief = a.task.role == PL_ROLE_WORKER && a.task.index == 0;
    const char *acts = argv[ps ? 1 : chief ? 2 : 3];
    if (acts[0] == 'q')
        return 0;
    if (pl_control_new(&a.control, a.fd) != PL_OK)
        fail("control");
    for (const char *at = acts; *at != '\0'; at++) {
        if (*at == '1' && !a.first)
            at++;
        else if (*at != '1')
            act(&a, *at);
    }
    return 7;
}
