/* fuzz_probe.c - bytes that reach the port of a probe, and how a measuring host
 * reads a probe's answer.
 *
 * The first byte is the setting.  With SET_ANSWER the rest is the number of
 * bytes that were sent and the answer.  Otherwise it is what a client sends
 * before it closes its side; with SET_TOKEN the token comes before it.
 *
 * A client without the token gets nothing; an echo is what was sent, in whole
 * pings; a sink reports how much arrived, which is no more than was sent.  On a
 * busy host the probe may time out: less is correct, too. */
#include "base/assert.h"
#include "base/bytes.h"
#include "fuzz/fuzz.h"
#include "fuzz/loopback.h"
#include "net/probe/probe_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOKEN "0123456789abcdef0123456789abcdef"
#define MOST  4096
#define PING  8

/* The setting. */
#define SET_ANSWER 0x01
#define SET_TOKEN  0x02

static pl_probe *probe;

static void end(void)
{
    pl_probe_free(probe);
}

static int connect_there(void)
{
    if (probe == NULL) {
        if (pl_probe_new(&probe, "127.0.0.1:0", TOKEN) != PL_OK)
            abort();
        atexit(end);
    }
    return fuzz_connect((uint16_t)pl_probe_port(probe));
}

/* Send all, and read until the probe closes. */
static size_t exchange(const uint8_t *data, size_t bytes, uint8_t *answer)
{
    int fd = connect_there();
    size_t taken = 0, got;
    if (fuzz_send(fd, data, bytes))
        shutdown(fd, SHUT_WR);
    while (taken < MOST &&
           (got = fuzz_receive(fd, answer + taken, MOST - taken)) > 0)
        taken += got;
    close(fd);
    return taken;
}

/* `data` follows the token. */
static void check(const uint8_t *data, size_t bytes, const uint8_t *answer,
                  size_t taken)
{
    if (bytes > 0 && data[0] == 'e') {
        PL_ASSERT(taken <= (bytes - 1) / PING * PING && taken % PING == 0);
        PL_ASSERT(memcmp(answer, data + 1, taken) == 0);
    } else if (bytes > 0 && data[0] == 's') {
        double speed;
        PL_ASSERT(taken == PL_PROBE_ANSWER || taken == 0);
        PL_ASSERT(taken == 0 ||
                  pl_probe_speed(&speed, answer, bytes - 1, "probe") == PL_OK);
    } else {
        PL_ASSERT(taken == 0);
    }
}

static void talk(const uint8_t *data, size_t bytes, bool known)
{
    const size_t token = strlen(TOKEN);
    uint8_t request[MOST], answer[MOST];
    size_t used = 0;
    bytes = bytes < MOST - token ? bytes : MOST - token;
    if (known)
        memcpy(request, TOKEN, used = token);
    memcpy(request + used, data, bytes);
    used += bytes;
    size_t taken = exchange(request, used, answer);
    if (used >= token && memcmp(request, TOKEN, token) == 0)
        check(request + token, used - token, answer, taken);
    else
        PL_ASSERT(taken == 0);
}

static void read_answer(const uint8_t *data)
{
    double speed;
    if (pl_probe_speed(&speed, data + 8, pl_get_u64(data), "probe") == PL_OK)
        PL_ASSERT(isfinite(speed) && speed >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0)
        return 0;
    if ((data[0] & SET_ANSWER) == 0)
        talk(data + 1, bytes - 1, (data[0] & SET_TOKEN) != 0);
    else if (bytes == 1 + 8 + PL_PROBE_ANSWER)
        read_answer(data + 1);
    return 0;
}
