/* What only the chief hears at the end of a job: the reports of all tasks, and
 * how many gradients of each worker the parameters hold.  A worker whose report
 * is missing or malformed counts as lost. */
#include "sync/ps/core/core_priv.h"

#include "base/mem.h"

static pl_worker_report row_of(const pl_member *member, int32_t worker)
{
    pl_worker_report row;
    if (member->report != NULL &&
        pl_worker_report_parse(&row, member->report, member->report_bytes) ==
            PL_OK) {
        row.index = worker; /* not what it says of itself */
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

/* The reports of the workers, and what the other tasks used. */
static pl_status gather(const pl_ps_core *core, pl_job_reports *out)
{
    const pl_member *evaluator = &core->members[core->opts.workers];
    PL_TRY(PL_NEW(out->workers, (size_t)core->opts.workers));
    PL_TRY(PL_NEW(out->servers, (size_t)core->opts.ps));
    for (int32_t w = 0; w < core->opts.workers; w++)
        out->workers[out->worker_count++] = row_of(&core->members[w], w);
    for (int32_t j = 0; j < core->opts.ps; j++) {
        pl_task_report *row = &out->servers[out->server_count++];
        *row = j == 0 ? pl_core_usage(core) : usage_of(&evaluator[1 + j]);
        row->index = j;
    }
    out->has_evaluator = core->opts.evaluator;
    out->evaluator = usage_of(evaluator);
    return PL_OK;
}

/* What the chief needs for the summary, as JSON. */
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

/* How many gradients of each worker the frozen parameters hold. */
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
