/* net.h - endpoints for tests: short calls that must succeed. */
#ifndef PL_TESTS_NET_H
#define PL_TESTS_NET_H

#include "net/endpoint.h"
#include "support/unit.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Far beyond what anything takes; only a broken program waits that long. */
static inline pl_deadline net_soon(void)
{
    return pl_deadline_in_ms(pl_clock_real(), 60000);
}

static inline pl_deadline net_now(void)
{
    return pl_deadline_in_ms(pl_clock_real(), 0);
}

static inline pl_endpoint *net_listen(const char *address)
{
    pl_endpoint *server = NULL;
    assert_ok(pl_endpoint_listen(
        &server, &(pl_endpoint_opts) { .address = address, .name = "ps 0" }));
    return server;
}

static inline pl_endpoint *net_connect(const char *address)
{
    pl_endpoint *client = NULL;
    assert_ok(pl_endpoint_connect(
        &client,
        &(pl_endpoint_opts) { .address = address, .name = "worker 0" }));
    return client;
}

/* A message of `kind`, identified by its sequence. */
static inline void net_send(pl_endpoint *e, pl_peer to, pl_frame_kind kind,
                            uint64_t sequence, const void *payload,
                            size_t bytes, bool lasting)
{
    pl_frame frame = { .kind = kind,
                       .sequence = sequence,
                       .payload_bytes = (uint32_t)bytes };
    assert_ok(pl_endpoint_send(e, to, &frame, payload, lasting));
}

static inline pl_message net_receive(pl_endpoint *e)
{
    pl_message message;
    assert_ok(pl_endpoint_receive(e, &message, net_soon()));
    assert_int_equal(0, (uintptr_t)message.payload % 8);
    return message;
}

/* The next message is this one. */
static inline pl_message net_expect(pl_endpoint *e, pl_frame_kind kind,
                                    uint64_t sequence, const void *payload,
                                    size_t bytes)
{
    pl_message message = net_receive(e);
    assert_int_equal(kind, message.frame.kind);
    assert_int_equal(sequence, message.frame.sequence);
    assert_int_equal(bytes, message.frame.payload_bytes);
    if (bytes > 0)
        assert_memory_equal(payload, message.payload, bytes);
    return message;
}

/* Answer every message with its payload until a STOP. */
static inline void net_echo(pl_endpoint *e)
{
    for (;;) {
        pl_message message = net_receive(e);
        pl_frame answer = message.frame;
        answer.kind = PL_FRAME_ACK;
        assert_ok(
            pl_endpoint_send(e, message.from, &answer, message.payload, false));
        if (message.frame.kind == PL_FRAME_STOP)
            return;
    }
}

/* The race detector cannot follow a fork of a process with threads; in what
 * forks, threads share nothing that the other tests do not share too. */
#if defined(__SANITIZE_THREAD__)
#define NET_SKIP_FORKS() skip()
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NET_SKIP_FORKS() skip()
#endif
#endif
#ifndef NET_SKIP_FORKS
#define NET_SKIP_FORKS() ((void)0)
#endif

/* A child that runs `body` (0: good) and ends without cleaning up. */
static inline pid_t net_fork(int (*body)(void *), void *arg)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(body(arg));
    return child;
}

static inline void net_wait(pid_t child)
{
    int status = -1;
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_true(WIFEXITED(status));
    assert_int_equal(0, WEXITSTATUS(status));
}

static inline void net_kill(pid_t child)
{
    int status = -1;
    assert_int_equal(0, kill(child, SIGKILL));
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_true(WIFSIGNALED(status));
}

/* Bytes that differ from place to place, for free(). */
static inline uint8_t *net_bytes(size_t bytes, uint8_t seed)
{
    uint8_t *memory = malloc(bytes);
    assert_non_null(memory);
    for (size_t i = 0; i < bytes; i++)
        memory[i] = (uint8_t)(i * 31 + (i >> 8) * 7 + seed);
    return memory;
}

#endif
