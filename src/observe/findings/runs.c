/* runs.c - rules about single runs: what happened to their tasks, and whether
 * their times are meaningful: not if a run was too short, or if other processes
 * used the cores. */
#include "observe/findings/findings_priv.h"

#include <string.h>

/* Seconds of training: below this, other load on the machine determines the
 * speed. */
#define SHORT 0.5

/* --- faults ----------------------------------------------------------- */

typedef struct faults {
    size_t runs, lost;
    int64_t restarts, rollbacks, undone;
} faults;

static size_t count_lost(const pl_summary *s)
{
    size_t lost = 0;
    for (size_t i = 0; i < s->incident_count; i++)
        lost += s->incidents[i].kind == PL_EVENT_LOST;
    return lost;
}

static int64_t known(int64_t count)
{
    return count > 0 ? count : 0;
}

static faults count_faults(const pl_records *r)
{
    faults all = { 0 };
    for (size_t i = 0; i < r->count; i++) {
        const pl_summary *s = &r->list[i].summary;
        size_t lost = r->list[i].ended ? count_lost(s) : 0;
        all.runs += lost > 0;
        all.lost += lost;
        if (lost == 0)
            continue;
        all.restarts += known(s->restarts);
        all.rollbacks += known(s->rollbacks);
        all.undone += known(s->rolled_back);
    }
    return all;
}

static void put_count(const pl_finding *f, const char *before, int64_t count,
                      const char *one, const char *several)
{
    pl_buffer_format(f->out, "%s%lld %s", before, (long long)count,
                     count == 1 ? one : several);
}

void pl_finding_faults(const pl_finding *f)
{
    faults all = count_faults(f->records);
    if (all.runs == 0)
        return;
    if (f->records->count > 1)
        pl_buffer_format(f->out,
                         "In %zu of %zu runs tasks were lost: ", all.runs,
                         f->records->count);
    else
        pl_buffer_text(f->out, "Tasks were lost: ");
    put_count(f, "", (int64_t)all.lost, "loss", "losses");
    put_count(f, ", ", all.restarts, "restart", "restarts");
    if (all.rollbacks > 0) {
        put_count(f, ", ", all.rollbacks, "rollback", "rollbacks");
        put_count(f, ", which undid ", all.undone, "step", "steps");
    }
    pl_buffer_text(f->out, ".\n");
}

/* --- doubtful times --------------------------------------------------- */

static bool is_crowded(const pl_record *record)
{
    const pl_summary *s = &record->summary;
    return record->ended && s->has_bottleneck &&
           strncmp(s->bottleneck.text, PL_BOTTLENECK_CROWDED,
                   strlen(PL_BOTTLENECK_CROWDED)) == 0;
}

static void find_crowded(const pl_finding *f)
{
    const pl_records *r = f->records;
    size_t crowded = 0;
    for (size_t i = 0; i < r->count; i++)
        crowded += is_crowded(&r->list[i]);
    if (crowded > 0)
        pl_buffer_format(f->out,
                         "In %zu of %zu runs other processes had the cores: "
                         "their times and speeds are not those of the runs "
                         "alone.\n",
                         crowded, r->count);
}

static void find_short(const pl_finding *f)
{
    const pl_records *r = f->records;
    size_t brief = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (pl_records_first_like(r, i) != i)
            return; /* the spread of repetitions shows it */
        brief += r->list[i].ended && r->list[i].summary.seconds < SHORT;
    }
    if (brief > 0)
        pl_buffer_format(f->out,
                         "%zu of %zu runs trained for less than %g s: their "
                         "times and speeds differ from run to run, and "
                         "--repeat tells by how much.\n",
                         brief, r->count, SHORT);
}

void pl_finding_doubts(const pl_finding *f)
{
    find_crowded(f);
    find_short(f);
}
