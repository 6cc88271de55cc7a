/* raw_tcp.h - a plain TCP connection to an answering process.
 *
 * The limit of TCP on this host: blocking reads and writes on one connection,
 * no framing beyond three numbers.
 *
 * Threads: one. */
#ifndef BENCH_RAW_TCP_H
#define BENCH_RAW_TCP_H

#include "paceline/base.h"

#include <sys/types.h>

typedef struct raw_tcp {
    int fd; /* 0: not open */
    uint8_t *buffer;
} raw_tcp;

/* Start the answering process; the caller waits for *child. */
pl_status raw_tcp_open(raw_tcp *raw, pid_t *child) PL_MUST_CHECK;
void raw_tcp_close(raw_tcp *raw);

/* `count` times `out` bytes sent and `in` bytes received.  When one of them is
 * 0 the other is streamed, without turns. */
pl_status raw_tcp_exchange(raw_tcp *raw, int64_t count, size_t out,
                           size_t in) PL_MUST_CHECK;

#endif
