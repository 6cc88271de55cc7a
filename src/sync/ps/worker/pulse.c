/* Decides when a heartbeat is due and when server 0 counts as lost.
 *
 *   P1  Time in which this task itself was stopped does not count as silence of
 *       server 0.
 *   P2  The first verdict is kept. */
#include "sync/ps/worker/pulse.h"

#include <stdio.h>
#include <string.h>

static int64_t timeout_ns(const pl_pulse *pulse)
{
    int64_t ms = pulse->opts.timeout_ms;
    return (ms > 0 ? ms : 5000) * 1000000;
}

void pl_pulse_init(pl_pulse *pulse, const pl_pulse_opts *opts, int64_t now_ns)
{
    *pulse =
        (pl_pulse) { .opts = *opts, .heard_ns = now_ns, .next_ns = now_ns };
}

bool pl_pulse_tick(pl_pulse *pulse, int64_t now_ns, const pl_vital *vital,
                   pl_frame *out)
{
    int64_t every_ns = timeout_ns(pulse) / PL_HEARTBEATS_PER_TIMEOUT;
    if (now_ns < pulse->next_ns)
        return false;
    if (now_ns - pulse->next_ns > every_ns) /* P1 */
        pulse->heard_ns += now_ns - pulse->next_ns;
    pulse->next_ns = now_ns + every_ns;
    pulse->sent_ns = now_ns;
    pl_ps_heartbeat heartbeat = {
        .number = ++pulse->number,
        .vital = *vital,
    };
    *out = pl_ps_heartbeat_encode(&heartbeat);
    out->incarnation = pulse->opts.incarnation;
    return true;
}

static void give_up(pl_pulse *pulse, pl_status status, const char *text,
                    size_t bytes)
{
    if (pulse->status != PL_OK) /* P2 */
        return;
    pulse->status = status;
    snprintf(pulse->why, sizeof pulse->why, "%.*s", (int)bytes, text);
}

void pl_pulse_heard(pl_pulse *pulse, int64_t now_ns)
{
    pulse->heard_ns = now_ns;
}

void pl_pulse_receive(pl_pulse *pulse, const pl_message *message,
                      int64_t now_ns)
{
    static const char rolled[] = "the job restarts from its last checkpoint";
    const pl_frame *frame = &message->frame;
    bool refused = frame->kind == PL_FRAME_REFUSE;
    pl_ps_heartbeat_ack ack;
    bool acked = pl_ps_heartbeat_ack_decode(&ack, message);
    pl_pulse_heard(pulse, now_ns);
    if (pl_ps_refuse_is_unknown(message) ||
        (acked && frame->generation > pulse->opts.generation))
        give_up(pulse, PL_ROLLED, rolled, strlen(rolled));
    else if (refused || (acked && ack.failed))
        give_up(pulse, PL_CLOSED, message->payload, frame->payload_bytes);
}

pl_status pl_pulse_check(pl_pulse *pulse, int64_t now_ns)
{
    char task[128], text[PL_LOSS_TEXT];
    if (pulse->status == PL_OK &&
        now_ns - pulse->heard_ns > timeout_ns(pulse)) {
        snprintf(task, sizeof task, "ps 0 (%.100s)", pulse->opts.address);
        pl_loss_text(text,
                     &(pl_loss) {
                         .task = task,
                         .life = &(pl_liveness) { .heard_ns = pulse->heard_ns },
                         .state = PL_SILENT,
                         .now_ns = now_ns,
                     });
        give_up(pulse, PL_ROLLED, text, strlen(text));
    }
    return pulse->status == PL_OK ? PL_OK
                                  : PL_FAIL(pulse->status, "%s", pulse->why);
}
