/* Decides from heartbeats whether a task is alive, silent or stuck, and how a
 * loss is described.
 *
 * I1  A task that is not computing is never stuck.
 * I2  A task that has not yet ended a step or phase is never stuck: it is
 *     unknown how long its work takes.  Progress counted before the work began
 *     does not count.
 * I3  Time in which the observer did not run makes no task silent or stuck.
 * I4  Progress within a step can only make the observer wait longer. */
#include "job/member/liveness.h"

#include "base/assert.h"

#include <stdio.h>

#define MILLISECOND INT64_C(1000000)

const char *pl_phase_text(pl_phase phase)
{
    static const char *const texts[] = { "joining", "computing",  "sending",
                                         "waiting", "evaluating", "saving" };
    PL_ASSERT(phase < PL_PHASES);
    return texts[phase];
}

void pl_liveness_reset(pl_liveness *life, int64_t now_ns)
{
    *life = (pl_liveness) { .known = true,
                            .heard_ns = now_ns,
                            .progress_ns = now_ns,
                            .step_ns = now_ns };
}

void pl_liveness_restart(pl_liveness *life, int64_t now_ns)
{
    life->known = life->worked = false;
    life->last.phase = PL_PHASE_JOINING;
    life->progress_ns = life->step_ns = now_ns;
}

bool pl_liveness_hear(pl_liveness *life, const pl_vital *vital, int64_t now_ns)
{
    const pl_vital *last = &life->last;
    bool stepped = life->known && vital->step != last->step;
    bool moved = stepped || (life->known && vital->progress != last->progress);
    bool ended = stepped || (moved && vital->phase != last->phase);
    bool outside = vital->phase != PL_PHASE_COMPUTING;
    if (ended && now_ns - life->step_ns > life->longest_ns)
        life->longest_ns = now_ns - life->step_ns;
    life->worked = life->worked || ended;
    life->known = true;
    if (moved || outside)
        life->progress_ns = now_ns;
    if (ended || outside)
        life->step_ns = now_ns;
    life->last = *vital;
    life->heard_ns = now_ns;
    return moved;
}

pl_life_state pl_liveness_judge(const pl_liveness *life, int64_t timeout_ms,
                                int64_t now_ns)
{
    int64_t patience = PL_STUCK_BY * life->longest_ns;
    if (patience < timeout_ms * MILLISECOND)
        patience = timeout_ms * MILLISECOND;
    if (now_ns - life->heard_ns > timeout_ms * MILLISECOND)
        return PL_SILENT;
    if (life->last.phase == PL_PHASE_COMPUTING && life->worked &&
        now_ns - life->progress_ns > patience)
        return PL_STUCK;
    return PL_ALIVE;
}

void pl_liveness_forgive(pl_liveness *life, int64_t gap_ns)
{
    life->heard_ns += gap_ns;
    life->progress_ns += gap_ns;
    life->step_ns += gap_ns;
}

int64_t pl_liveness_gap(int64_t *tick_ns, int64_t timeout_ms, int64_t now_ns)
{
    int64_t gap = *tick_ns > 0 ? now_ns - *tick_ns : 0;
    *tick_ns = now_ns;
    return gap >= timeout_ms * MILLISECOND / 2 ? gap : 0;
}

void pl_loss_how(char *text, size_t room, const pl_liveness *life,
                 pl_life_state state, int64_t now_ns)
{
    if (state == PL_STUCK)
        snprintf(text, room, "it responds, but has made no progress for %.1f s",
                 (double)(now_ns - life->progress_ns) * 1e-9);
    else
        snprintf(text, room, "it has been silent for %.1f s",
                 (double)(now_ns - life->heard_ns) * 1e-9);
}

void pl_loss_text(char text[PL_LOSS_TEXT], const pl_loss *loss)
{
    char where[64] = "", how[96];
    if (loss->with_step)
        snprintf(where, sizeof where, " at step %lld while %s",
                 (long long)loss->life->last.step,
                 pl_phase_text(loss->life->last.phase));
    pl_loss_how(how, sizeof how, loss->life, loss->state, loss->now_ns);
    snprintf(text, PL_LOSS_TEXT, "%.200s is lost%s: %s%s%.100s", loss->task,
             where, how, loss->next != NULL ? "; " : "",
             loss->next != NULL ? loss->next : "");
}

const char *pl_loss_next(pl_on_loss on_loss)
{
    static const char *const next[] = {
        [PL_ON_LOSS_WAIT] = "waiting for it to come back",
        [PL_ON_LOSS_CONTINUE] = "continuing without it",
        [PL_ON_LOSS_ABORT] = "the job ends (--on-worker-loss abort)",
    };
    return next[on_loss];
}

void pl_absence_text(char text[PL_LOSS_TEXT], const char *task, bool again,
                     int64_t limit_ms)
{
    snprintf(text, PL_LOSS_TEXT, "%.300s did not %s within %lld s (--%s)", task,
             again ? "come back" : "join", (long long)limit_ms / 1000,
             again ? "rejoin-timeout" : "join-timeout");
}
