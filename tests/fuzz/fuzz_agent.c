#include "fuzz/fuzz.h"

#include "job/hosts/agent.h"

#include <fcntl.h>
#include <unistd.h>

#define MOST 60000 /* bytes that a pipe takes at once */

static pl_status answer(void *context, const pl_json *question, pl_json *out)
{
    (void)context;
    return pl_json_set_bool(out, "known", pl_json_has(question, "kind"));
}

/* What a launcher sends to its agent, which must not start anything it does not
 * understand. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int to[2];
    if (bytes > MOST || pipe2(to, O_CLOEXEC) != 0)
        return 0;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    bool sent = write(to[1], data, bytes) == (ssize_t)bytes;
    close(to[1]);
    pl_status status = pl_agent_run(
        &(pl_agent_opts) { .in = to[0], .out = null, .answer = answer });
    if (sent && status != PL_OK && status != PL_CLOSED)
        __builtin_trap();
    return 0;
}
