/* Server 0 declares losses, waits for absent members and ends the job.
 *
 * Invariants:
 *   L1  Only server 0 declares a task lost; the others follow (follow.c).
 *   L2  A task is lost by silence or by being stuck (job/member/liveness.h), or
 *       by L3, and in no other way.
 *   L3  Server 0 waits for a task that must join no longer than --join-timeout,
 *       and for a lost task no longer than --rejoin-timeout.  If a supervisor
 *       can restart it, a task that does not rejoin after a rollback is
 *       declared lost after half of --join-timeout, once, and the time starts
 *       again.
 *   L4  The other servers are notified of the end only when the job has failed,
 *       or when no worker is waited for and the chief is done.
 *   L5  Server 0 ends only after all other servers have left, or, when the job
 *       failed, after a grace period. */
#include "sync/ps/core/core_priv.h"
#include "sync/ps/modes/mode.h"

#include "base/log.h"

#include <stdio.h>

#define SAY_NS   INT64_C(5000000000) /* between log lines about missing tasks */
#define ASK_NS   INT64_C(500000000)  /* between messages about the end */
#define GRACE_NS INT64_C(2000000000) /* for goodbyes after a failure */
#define MS       INT64_C(1000000)

static bool is_server(const pl_ps_core *core, const pl_member *member)
{
    return pl_core_id(core, member) > core->opts.workers;
}

/* What the job does after the loss of this member. */
static const char *next_of(const pl_ps_core *core, const pl_member *member)
{
    bool waits = member == core->members ||
                 (core->opts.supervised && !core->mode->lock_step);
    if (is_server(core, member))
        return "waiting for it to come back, then continuing from the last "
               "checkpoint";
    if (!pl_core_is_worker(core, member))
        return "training continues";
    if (core->opts.on_loss == PL_ON_LOSS_CONTINUE && waits)
        return pl_loss_next(PL_ON_LOSS_WAIT);
    return pl_loss_next(core->opts.on_loss);
}

static void say_loss(const pl_ps_core *core, const pl_member *member,
                     pl_life_state state, char text[PL_LOSS_TEXT])
{
    char name[32], task[PL_MEMBER_TEXT + 40];
    snprintf(task, sizeof task, "%s (%s)", pl_core_name(core, member, name),
             member->where);
    pl_loss_text(text, &(pl_loss) { .task = task,
                                    .life = &member->life,
                                    .state = state,
                                    .with_step = !is_server(core, member),
                                    .next = next_of(core, member),
                                    .now_ns = core->now_ns });
}

static void lose(pl_ps_core *core, pl_member *member, pl_life_state state)
{
    char text[PL_LOSS_TEXT];
    bool worker = pl_core_is_worker(core, member);
    bool server = is_server(core, member);
    int32_t index = pl_core_id(core, member);
    say_loss(core, member, state, text);
    if (member->fresh)
        pl_core_keep(core, member);
    pl_core_set_state(core, member,
                      worker || (server && !core->told) ? PL_MEMBER_LOST
                                                        : PL_MEMBER_LEFT);
    member->lost_ns = core->now_ns;
    pl_core_grant(core, member, false);
    core->counts.lost += worker;
    if (server && core->told) /* its goodbye was lost */
        return;
    pl_log(PL_LOG_WARN, "%s", text);
    if (worker && core->opts.on_loss == PL_ON_LOSS_ABORT) {
        pl_core_end(core, true, "%s", text);
        return;
    }
    if ((worker || server) && core->opts.ops->lost != NULL)
        core->opts.ops->lost(core->opts.context, server,
                             server ? index - core->opts.workers - 1 : index);
    if (!server)
        pl_core_release(core);
}

static void watch_here(pl_ps_core *core, pl_member *member)
{
    pl_life_state state =
        pl_liveness_judge(&member->life, core->opts.heartbeat_ms, core->now_ns);
    if (state != PL_ALIVE)
        lose(core, member, state);
}

/* A server's partition is needed until the chief has left; once all have left,
 * no request needs it. */
static bool server_is_needed(pl_ps_core *core, pl_member *server)
{
    char name[32];
    if (core->told)
        pl_core_set_state(core, server, PL_MEMBER_LEFT);
    if (core->told || core->members[0].state == PL_MEMBER_LEFT)
        return false;
    if (core->interrupted)
        pl_core_end(core, true,
                    "%s (%s) was lost while the job was interrupted: its "
                    "partition of the parameters is lost",
                    pl_core_name(core, server, name), server->where);
    return !core->failed;
}

/* The job is done and the server will not rejoin: dismiss the tasks that still
 * wait for its partition. */
static void send_away(pl_ps_core *core, const pl_member *server)
{
    char name[32], why[PL_MEMBER_TEXT + 96];
    snprintf(why, sizeof why, "the job is over, and %s (%s) was lost",
             pl_core_name(core, server, name), server->where);
    for (int32_t i = 0; i <= core->opts.workers; i++) {
        pl_member *member = &core->members[i];
        if (member->state != PL_MEMBER_HERE)
            continue;
        pl_core_refuse(core, member, why);
        pl_core_set_state(core, member, PL_MEMBER_LEFT);
    }
}

/* Whether the job was rolled back to its end after this worker had been
 * dismissed: no remaining step needs it. */
static bool did_its_part(const pl_ps_core *core, const pl_member *member)
{
    return member->dismissed && pl_core_is_worker(core, member) &&
           member != core->members && core->ready && core->opts.end_step > 0 &&
           core->step >= core->opts.end_step;
}

static void leave(pl_ps_core *core, pl_member *member)
{
    pl_core_set_state(core, member, PL_MEMBER_LEFT);
    pl_core_release(core);
}

static void watch_lost(pl_ps_core *core, pl_member *member)
{
    int64_t gone = core->now_ns - member->lost_ns;
    char name[32];
    if (pl_core_id(core, member) > core->opts.workers) {
        if (!server_is_needed(core, member)) {
            if (gone > core->opts.rejoin_ms * MS)
                send_away(core, member);
            return;
        }
    } else if (core->stopping && member != core->members &&
               !pl_core_counts(core, member)) {
        return; /* only the chief has anything left to do */
    }
    if (did_its_part(core, member)) {
        leave(core, member);
        return;
    }
    if (gone <= core->opts.rejoin_ms * MS && !member->gone)
        return;
    if (core->opts.on_loss == PL_ON_LOSS_CONTINUE && member != core->members &&
        pl_core_is_worker(core, member)) {
        leave(core, member);
        return;
    }
    char task[PL_MEMBER_TEXT + 80], text[PL_LOSS_TEXT];
    snprintf(task, sizeof task, "%s (%s) was lost at step %lld and",
             pl_core_name(core, member, name), member->where,
             (long long)member->life.last.step);
    pl_absence_text(text, task, true, core->opts.rejoin_ms);
    pl_core_end(core, true, "%s", text);
}

/* Whether this task must join before training can begin. */
static bool expected(const pl_ps_core *core, int32_t id)
{
    if (id < core->opts.workers)
        return true;
    return pl_core_leads(core) && id > core->opts.workers + 1;
}

/* The job was rolled back after a worker had finished and exited: continue
 * without it. */
static void go_on_without(pl_ps_core *core)
{
    char name[32];
    for (int32_t w = 1; w < core->opts.workers; w++) {
        pl_member *member = &core->members[w];
        if (member->state != PL_MEMBER_ABSENT)
            continue;
        pl_log(PL_LOG_WARN, "%s did not rejoin; continuing without it",
               pl_core_name(core, member, name));
        pl_core_set_state(core, member, PL_MEMBER_LEFT);
    }
    pl_core_release(core);
}

/* Tasks that were frozen when server 0 was lost are not members of its new
 * process, which cannot detect their silence. */
static bool restart_absent(pl_ps_core *core)
{
    char name[32];
    bool some = false;
    if (!core->opts.supervised || core->generation <= 1 ||
        core->restarted == core->generation || core->opts.ops->lost == NULL ||
        core->opts.on_loss == PL_ON_LOSS_ABORT)
        return false;
    for (int32_t i = 0; i < core->member_count; i++) {
        const pl_member *member = &core->members[i];
        if (!expected(core, i) || member->state != PL_MEMBER_ABSENT ||
            member->gone)
            continue;
        pl_log(PL_LOG_WARN, "%s did not rejoin: it is declared lost",
               pl_core_name(core, member, name));
        bool server = is_server(core, member);
        core->opts.ops->lost(core->opts.context, server,
                             server ? i - core->opts.workers - 1 : i);
        some = true;
    }
    core->restarted = core->generation;
    if (some)
        core->begin_ns = core->now_ns;
    return some;
}

static void watch_absent(pl_ps_core *core)
{
    char names[256] = "", name[32];
    size_t used = 0;
    bool gone = true; /* all absent tasks are gone */
    for (int32_t i = 0; i < core->member_count; i++) {
        if (!expected(core, i) || core->members[i].state != PL_MEMBER_ABSENT)
            continue;
        gone = gone && core->members[i].gone;
        int wrote = snprintf(names + used, sizeof names - used, "%s%s",
                             used > 0 ? ", " : "",
                             pl_core_name(core, &core->members[i], name));
        used += wrote > 0 ? (size_t)wrote : 0;
        if (used >= sizeof names)
            break;
    }
    if (names[0] == '\0' || core->stopping)
        return;
    int64_t waited = core->now_ns - core->begin_ns;
    if (waited > core->opts.join_ms * MS / 2 && restart_absent(core))
        return;
    if ((gone || waited > core->opts.join_ms * MS) && core->ready &&
        core->generation > 1 && core->opts.on_loss == PL_ON_LOSS_CONTINUE) {
        go_on_without(core);
    } else if (waited > core->opts.join_ms * MS) {
        char text[PL_LOSS_TEXT];
        pl_absence_text(text, names, false, core->opts.join_ms);
        pl_core_end(core, true, "%s", text);
    } else if (core->now_ns - core->said_ns > SAY_NS) {
        core->said_ns = core->now_ns;
        pl_log(PL_LOG_INFO, "ps %d waits for %s to join (%lld s)",
               core->opts.index, names, (long long)(waited / 1000000000));
    }
}

/* Whether an evaluator that was started with the job has yet to join. */
static bool evaluator_comes(const pl_ps_core *core)
{
    return core->members[core->opts.workers].state == PL_MEMBER_ABSENT &&
           core->opts.evaluator && core->opts.supervised &&
           !core->interrupted && !core->failed &&
           core->now_ns - core->begin_ns <= core->opts.join_ms * MS;
}

/* Server 0: notify the other servers when all tasks have left. */
static void watch_end(pl_ps_core *core)
{
    bool servers = false, tasks = false;
    int32_t workers = core->opts.workers;
    for (int32_t i = 0; i < core->member_count; i++) {
        const pl_member *member = &core->members[i];
        if (i > workers)
            servers = servers || member->state == PL_MEMBER_HERE ||
                      member->state == PL_MEMBER_LOST ||
                      (member->state == PL_MEMBER_ABSENT && expected(core, i));
        else if (i < workers && !core->failed)
            tasks = tasks || pl_core_counts(core, member) ||
                    (i == 0 && member->state == PL_MEMBER_LEFT &&
                     !pl_core_chief_is_done(core));
        else
            tasks = tasks || member->state == PL_MEMBER_HERE ||
                    (i == workers && evaluator_comes(core));
    }
    bool late = core->failed && core->now_ns - core->said_ns > GRACE_NS;
    /* A chief that dies before it reported the end, or a worker, is restarted
     * and rejoins. */
    bool stays = core->opts.held && !core->failed && !core->dismissed;
    if (stays || (tasks && !late))
        return;
    if (late || !servers) {
        core->finished = true;
        return;
    }
    if (core->now_ns - core->asked_ns < ASK_NS)
        return;
    core->asked_ns = core->now_ns;
    core->told = true;
    for (int32_t i = workers + 1; i < core->member_count; i++)
        if (core->members[i].state == PL_MEMBER_HERE)
            pl_core_send_text(core, core->members[i].peer,
                              pl_core_stamp(pl_ps_over_encode(core->failed),
                                            core->members[i].incarnation),
                              core->why);
}

void pl_core_watch(pl_ps_core *core)
{
    if (!pl_core_leads(core)) {
        pl_core_follow(core);
        return;
    }
    for (int32_t i = 0; i < core->member_count && !core->failed; i++) {
        pl_member *member = &core->members[i];
        if (member->state == PL_MEMBER_HERE)
            watch_here(core, member);
        else if (member->state == PL_MEMBER_LOST)
            watch_lost(core, member);
    }
    watch_absent(core);
    pl_core_answer_goodbyes(core);
    watch_end(core);
}
