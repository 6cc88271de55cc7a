/* fuzz_control.c - messages between a task and its supervisor: the input as a
 * task's, and as a supervisor's. */
#include "fuzz/fuzz.h"

#include "base/assert.h"
#include "job/supervise/control.h"
#include "job/supervise/packet.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void say_as_task(const uint8_t *data, size_t bytes)
{
    pl_control_message message;
    int ours, theirs;
    if (pl_packet_pair(&ours, &theirs) != PL_OK)
        abort();
    bool sent = bytes > 0 && send(theirs, data, bytes, MSG_DONTWAIT) >= 0;
    if (sent && pl_packet_receive(ours, &message) == PL_OK) {
        PL_ASSERT(message.status.step >= 0 && message.status.examples >= 0 &&
                  message.task.index >= 0);
        PL_ASSERT(message.kind != PL_CONTROL_ADDRESS ||
                  message.text[0] != '\0');
        pl_control_message_close(&message);
    }
    close(ours);
    close(theirs);
}

/* A task takes the packet, and does not wait for another. */
static void say_as_supervisor(const uint8_t *data, size_t bytes)
{
    int ours, theirs;
    pl_control *control;
    pl_cluster cluster;
    pl_secret secret;
    pl_deadline passed = pl_deadline_in_ms(pl_clock_real(), 0);
    if (pl_packet_pair(&ours, &theirs) != PL_OK ||
        pl_control_new(&control, theirs) != PL_OK)
        abort();
    bool sent = bytes > 0 && send(ours, data, bytes, MSG_DONTWAIT) >= 0;
    close(ours);
    pl_status status = pl_control_secret(control, &secret, passed);
    PL_ASSERT(sent || status == PL_CLOSED);
    status = pl_control_cluster(control, &cluster, passed);
    PL_ASSERT(sent || status == PL_CLOSED);
    if (status == PL_OK)
        pl_cluster_close(&cluster);
    PL_ASSERT(pl_control_ended(control)); /* the supervisor is gone */
    pl_job_counts counts = pl_control_counts(control);
    PL_ASSERT(counts.faults >= 0 && counts.restarts >= 0);
    pl_control_free(control);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    say_as_task(data, bytes);
    say_as_supervisor(data, bytes);
    return 0;
}
