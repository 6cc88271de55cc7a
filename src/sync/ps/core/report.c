/* What is sent to the chief at the end of a job: the reports of all tasks, and
 * how many gradients of each worker the parameters hold.  A worker whose report
 * is missing or malformed counts as lost.  The chief's goodbye is answered when
 * the other servers have reported their usage and the evaluator has left, or
 * after half of the heartbeat timeout: then their last heartbeats count. */
#include "sync/ps/core/core_priv.h"

#include "base/mem.h"
#include "sync/ps/modes/mode.h"

#define MS INT64_C(1000000)

void pl_core_take_usage(pl_member *member, const pl_message *message)
{
    pl_task_report told;
    if (message->frame.payload_bytes == 0 ||
        pl_fields_parse(&pl_evaluator_report_fields, message->payload,
                        message->frame.payload_bytes, "usage", &told) != PL_OK)
        return;
    int64_t peak = member->told_usage ? member->usage.usage.peak_rss_mb : -1;
    if (peak > told.usage.peak_rss_mb)
        told.usage.peak_rss_mb = peak;
    member->usage = told;
    member->told_usage = true;
}

bool pl_core_wants_usage(const pl_ps_core *core, const pl_member *server)
{
    return core->asked_usage_ns > 0 && !server->told_final &&
           pl_core_id(core, server) > core->opts.workers + 1 &&
           server->state == PL_MEMBER_HERE;
}

void pl_core_ask_usage(pl_ps_core *core)
{
    core->asked_usage_ns = core->now_ns;
    pl_ps_heartbeat_ack ack = {
        .final = true,
        .stopping = core->stopping,
        .step = core->step,
    };
    for (int32_t i = core->opts.workers + 2; i < core->member_count; i++) {
        pl_member *server = &core->members[i];
        server->told_final = false;
        if (server->state == PL_MEMBER_HERE)
            pl_core_send_text(core, server->peer,
                              pl_core_stamp(pl_ps_heartbeat_ack_encode(&ack),
                                            server->incarnation),
                              core->why);
    }
}

bool pl_core_knows_usage(const pl_ps_core *core)
{
    /* Short enough that a waiting chief is not considered lost. */
    int64_t most = core->opts.heartbeat_ms * MS / 2;
    if (core->failed || core->now_ns - core->asked_usage_ns > most)
        return true;
    for (int32_t i = core->opts.workers + 2; i < core->member_count; i++)
        if (pl_core_wants_usage(core, &core->members[i]))
            return false;
    return core->members[core->opts.workers].state != PL_MEMBER_HERE;
}

static pl_worker_report row_of(const pl_ps_core *core, int32_t worker)
{
    const pl_member *member = &core->members[worker];
    pl_worker_report row;
    if (member->report != NULL &&
        pl_worker_report_parse(&row, member->report, member->report_bytes) ==
            PL_OK) {
        row.index = worker; /* whatever index it reports */
        if (core->mode->lock_step) {
            row.held_seconds = member->held_s;
            row.held_steps =
                member->held_squares > 0
                    ? member->held_s * member->held_s / member->held_squares
                    : 0;
        }
        return row;
    }
    row = pl_worker_report_lost(worker, member->made, member->dropped);
    if (member->told_usage)
        row.usage = member->usage.usage;
    return row;
}

static pl_task_report usage_of(const pl_member *member)
{
    pl_task_report row = member->usage;
    if (!member->told_usage)
        pl_task_report_clear(&row);
    return row;
}

/* Collect the reports of the workers and the usage of the other tasks. */
static pl_status gather(const pl_ps_core *core, pl_job_reports *out)
{
    const pl_member *evaluator = &core->members[core->opts.workers];
    PL_TRY(PL_NEW(out->workers, (size_t)core->opts.workers));
    PL_TRY(PL_NEW(out->servers, (size_t)core->opts.ps));
    for (int32_t w = 0; w < core->opts.workers; w++)
        out->workers[out->worker_count++] = row_of(core, w);
    for (int32_t j = 0; j < core->opts.ps; j++) {
        pl_task_report *row = &out->servers[out->server_count++];
        *row = j == 0 ? pl_core_usage(core) : usage_of(&evaluator[1 + j]);
        row->index = j;
    }
    out->has_evaluator = core->opts.evaluator;
    out->evaluator = usage_of(evaluator);
    return PL_OK;
}

/* Send the chief what it needs for the summary, as JSON. */
void pl_core_send_reports(pl_ps_core *core, const pl_member *chief)
{
    pl_job_reports reports = {
        .restarts = core->rejoins,
        .mixed = core->counts.mixed,
        .dropped = core->counts.dropped,
    };
    int64_t span = core->counts.last_update_ns - core->counts.first_update_ns;
    char *text;
    pl_status status = gather(core, &reports);
    if (status == PL_OK)
        status = pl_fields_text(&pl_job_reports_fields, &reports, 0, &text);
    pl_fields_close(&pl_job_reports_fields, &reports);
    if (status != PL_OK) {
        pl_core_end(core, true, "%s", pl_error_message());
        return;
    }
    pl_ps_report report = {
        .step = core->step,
        .dropped = core->counts.dropped,
        .update_ns = span > 0 ? span : 0, /* the clock may step back */
    };
    pl_core_reply_text(core, chief, pl_ps_report_encode(&report), text);
    pl_mem_free(text);
}

/* Send how many gradients of each worker the frozen parameters include. */
void pl_core_send_counts(pl_ps_core *core, const pl_member *chief)
{
    int64_t counts[PL_CLUSTER_WORKERS_MAX];
    for (int32_t w = 0; w < core->opts.workers; w++)
        counts[w] = core->members[w].state == PL_MEMBER_LOST
                        ? ~core->members[w].own
                        : core->members[w].own;
    pl_core_reply(core, chief,
                  pl_ps_counts_encode(core->step, core->opts.workers), counts,
                  false);
}
