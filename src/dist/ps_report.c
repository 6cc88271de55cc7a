#include "dist/ps_core_priv.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

#define LOST_BYTES   128 /* of the row of a worker that made no report */
#define MEMORY_BYTES 64  /* of the row of a server or evaluator */

/* "peak_rss_mb", rounded up; null: not known. */
static char *put_peak(char *at, int64_t bytes)
{
    at = stpcpy(at, "\"peak_rss_mb\": ");
    if (bytes <= 0)
        return stpcpy(at, "null}");
    int64_t mb = bytes / (1 << 20) + (bytes % (1 << 20) != 0);
    return at + sprintf(at, "%lld}", (long long)mb);
}

/* The memory of who makes no report. */
static char *put_memory(const pl_ps_core *core, char *at)
{
    const pl_member *evaluator = &core->members[core->opts.workers];
    for (int32_t j = 0; j < core->opts.ps; j++) {
        at += sprintf(at, "%s{\"index\": %d, ", j > 0 ? "," : "", j);
        at = put_peak(at, j == 0 ? pl_core_peak(core)
                                 : evaluator[1 + j].peak_bytes);
    }
    *at++ = ']';
    if (core->opts.evaluator)
        at = put_peak(stpcpy(at, ", \"evaluator\": {"), evaluator->peak_bytes);
    return at;
}

/* What the chief needs for the summary, as JSON: the reports of all workers
 * (of those that said none, what is known of them), the memory of the others,
 * and what only server 0 knows. */
void pl_core_send_reports(pl_ps_core *core, const pl_member *chief)
{
    size_t bytes = 256 + (size_t)(core->opts.ps + 1) * MEMORY_BYTES;
    for (int32_t w = 0; w < core->opts.workers; w++)
        bytes += core->members[w].report_bytes + LOST_BYTES;
    char *text;
    if (PL_NEW(text, bytes) != PL_OK) {
        pl_core_end(core, true, "%s", pl_error_message());
        return;
    }
    char *at = text;
    at += sprintf(at,
                  "{\"restarts\": %d, \"mixed\": %s, \"dropped\": %lld, "
                  "\"workers\": [",
                  core->rejoins, core->counts.mixed ? "true" : "false",
                  (long long)core->counts.dropped);
    for (int32_t w = 0; w < core->opts.workers; w++) {
        const pl_member *member = &core->members[w];
        if (w > 0)
            *at++ = ',';
        if (member->report == NULL) {
            at += snprintf(at, LOST_BYTES,
                           "{\"index\": %d, \"steps\": %lld, \"dropped\": "
                           "%lld, \"lost\": true}",
                           w, (long long)member->made,
                           (long long)member->dropped);
        } else {
            memcpy(at, member->report, member->report_bytes);
            at += member->report_bytes;
        }
    }
    at = stpcpy(at, "], \"servers\": [");
    stpcpy(put_memory(core, at), "}");
    pl_frame frame = pl_core_reply(chief, PL_FRAME_REPORT, 0);
    frame.step = core->step;
    frame.value[0] = core->counts.dropped;
    frame.value[1] = core->counts.last_update_ns - core->counts.first_update_ns;
    pl_core_send_text(core, chief->peer, frame, text);
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
    pl_frame frame = pl_core_reply(chief, PL_FRAME_ACK, PL_ACK_DONE);
    frame.step = core->step;
    frame.payload_bytes =
        (uint32_t)((size_t)core->opts.workers * sizeof *counts);
    pl_core_send(core, chief->peer, frame, counts, false);
}
