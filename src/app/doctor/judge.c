/* judge.c - turns facts into findings: what would fail, what would be slow, and
 * the advice. */
#include "app/doctor/doctor.h"
#include "app/train/memory.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FREE_LEAST   ((int64_t)1 << 30) /* of memory */
#define DISK_LEAST   ((int64_t)1 << 30)
#define SHM_LEAST    ((int64_t)64 << 20)
#define FILES_LEAST  1024
#define CLOCK_MS     1000 /* a larger offset mixes up logs */
#define SLOW_BYTES   (100e6 / 8 * 0.8)
#define FAR_US       10000
#define FOUND_BYTES  160
#define ADVICE_BYTES 400

const char *const pl_verdict_names[] = { [PL_SEVERITY_OK] = "ok",
                                         [PL_SEVERITY_WARN] = "warn",
                                         [PL_SEVERITY_BAD] = "bad",
                                         NULL };

static const pl_field finding_rows[] = {
    { "host", PL_FIELD_OWN_TEXT(pl_doctor_line, host) },
    { "check", PL_FIELD_TEXT(pl_doctor_line, check) },
    { "found", PL_FIELD_OWN_TEXT(pl_doctor_line, found) },
    { "verdict", PL_FIELD_CHOICE(pl_doctor_line, verdict, pl_verdict_names) },
    { "advice", PL_FIELD_OWN_TEXT(pl_doctor_line, advice),
      .when = PL_WHEN_SET },
};
static const pl_fields finding_fields = PL_FIELDS(pl_doctor_line, finding_rows);

static const pl_field way_rows[] = {
    { "from", PL_FIELD_OWN_TEXT(pl_way, from) },
    { "to", PL_FIELD_OWN_TEXT(pl_way, to) },
    { "round_trip_us", PL_FIELD_REAL(pl_way, round_trip_us) },
    { "bytes_per_s", PL_FIELD_REAL(pl_way, bytes_per_s) },
};
static const pl_fields way_fields = PL_FIELDS(pl_way, way_rows);

#define MOST 1000000 /* lines, links */

static const pl_field diagnosis_rows[] = {
    { "ok", PL_FIELD_BOOL(pl_diagnosis, ok) },
    { "lines", PL_FIELD_LIST(pl_diagnosis, lines, line_count, &finding_fields),
      .most = MOST },
    { "ways", PL_FIELD_LIST(pl_diagnosis, ways, way_count, &way_fields),
      .most = MOST },
};
const pl_fields pl_diagnosis_fields = PL_FIELDS(pl_diagnosis, diagnosis_rows);

pl_status pl_diagnosis_add(pl_diagnosis *d, const char *host, const char *check,
                           pl_severity verdict, const char *found,
                           const char *advice)
{
    PL_TRY(PL_RESIZE(d->lines, d->line_count + 1));
    pl_doctor_line *line = &d->lines[d->line_count++];
    *line = (pl_doctor_line) { .check = check, .verdict = verdict };
    PL_TRY(pl_mem_copy_text(&line->host, host));
    PL_TRY(pl_mem_copy_text(&line->found, found));
    if (verdict != PL_SEVERITY_OK)
        PL_TRY(pl_mem_copy_text(&line->advice, advice));
    d->ok = d->ok && verdict != PL_SEVERITY_BAD;
    return PL_OK;
}

static pl_status keep_way(pl_diagnosis *d, const pl_way *given)
{
    PL_TRY(PL_RESIZE(d->ways, d->way_count + 1));
    pl_way *way = &d->ways[d->way_count++];
    *way = *given;
    way->from = way->to = NULL;
    PL_TRY(pl_mem_copy_text(&way->from, given->from));
    return pl_mem_copy_text(&way->to, given->to);
}

static const char *known(const char *text)
{
    return text != NULL ? text : "";
}

static pl_status judge_version(pl_diagnosis *d, const char *host,
                               const pl_facts *facts)
{
    char found[FOUND_BYTES];
    bool same = strcmp(known(facts->version), pl_version()) == 0;
    snprintf(found, sizeof found, "paceline %s, kernels %s",
             known(facts->version), known(facts->kernels));
    return pl_diagnosis_add(d, host, "version",
                            same ? PL_SEVERITY_OK : PL_SEVERITY_BAD, found,
                            "install the same version everywhere, or launch "
                            "with --copy");
}

static pl_status judge_cores(pl_diagnosis *d, const char *host,
                             const pl_facts *facts)
{
    char found[FOUND_BYTES];
    snprintf(found, sizeof found, "%d, %.1f of them busy", facts->cores,
             facts->load);
    return pl_diagnosis_add(
        d, host, "cores",
        facts->load > facts->cores * 0.5 ? PL_SEVERITY_WARN : PL_SEVERITY_OK,
        found,
        "other processes compute here (see `top`); a job waits for its "
        "slowest worker");
}

typedef struct space {
    const char *check;
    int64_t bytes, least;
    pl_severity verdict;
    const char *advice;
} space;

static pl_status judge_space(pl_diagnosis *d, const char *host, const space *s)
{
    char number_text[PL_BYTES_TEXT], found[FOUND_BYTES];
    bool told = s->bytes >= 0 && s->bytes < INT64_MAX / 2;
    snprintf(found, sizeof found, "%s%s",
             told ? pl_memory_text(s->bytes, number_text) : "not known",
             told ? " free" : "");
    return pl_diagnosis_add(d, host, s->check,
                            told && s->bytes < s->least ? s->verdict
                                                        : PL_SEVERITY_OK,
                            found, s->advice);
}

static pl_status judge_spaces(pl_diagnosis *d, const char *host,
                              const pl_facts *facts)
{
    const space spaces[] = {
        { "memory", facts->memory_free, FREE_LEAST, PL_SEVERITY_WARN,
          "stop the processes that use it; `models MODEL` shows how much a "
          "training needs" },
        { "disk", facts->disk_free, DISK_LEAST, PL_SEVERITY_WARN,
          "free some space, or work in another folder: checkpoints are "
          "written here" },
        { "shared memory", facts->shm_free, SHM_LEAST, PL_SEVERITY_WARN,
          "without it tasks on one host communicate over TCP: mount a larger "
          "/dev/shm" },
    };
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        PL_TRY(judge_space(d, host, &spaces[i]));
    return PL_OK;
}

static pl_status judge_limits(pl_diagnosis *d, const char *host,
                              const pl_facts *facts)
{
    char found[FOUND_BYTES];
    const char *huge = known(facts->huge_pages);
    PL_TRY(pl_diagnosis_add(
        d, host, "huge pages",
        strcmp(huge, "never") == 0 ? PL_SEVERITY_WARN : PL_SEVERITY_OK, huge,
        "large models are slower: echo madvise > "
        "/sys/kernel/mm/transparent_hugepage/enabled"));
    snprintf(found, sizeof found, "%d", facts->files_most);
    return pl_diagnosis_add(d, host, "open files",
                            facts->files_most < FILES_LEAST ? PL_SEVERITY_WARN
                                                            : PL_SEVERITY_OK,
                            found,
                            "a server of many workers needs more: "
                            "ulimit -n 4096");
}

static pl_status judge_keys(pl_diagnosis *d, const char *host,
                            const pl_facts *facts)
{
    bool wrong = facts->keys_problem != NULL;
    if (facts->keys == NULL)
        return pl_diagnosis_add(d, host, "keys", PL_SEVERITY_OK,
                                "no PACELINE_KEYS; launch makes its own", NULL);
    return pl_diagnosis_add(d, host, "keys",
                            wrong ? PL_SEVERITY_BAD : PL_SEVERITY_OK,
                            facts->keys, known(facts->keys_problem));
}

static pl_status judge_tasks(pl_diagnosis *d, const char *host,
                             const pl_facts *facts)
{
    char found[FOUND_BYTES], advice[ADVICE_BYTES];
    size_t count = facts->task_count;
    const char *first = count > 0 ? facts->tasks[0].line : "";
    snprintf(found, sizeof found, "%zu running", count);
    snprintf(advice, sizeof advice,
             "if you do not know the job, end it: kill "
             "%s",
             first);
    return pl_diagnosis_add(d, host, "tasks",
                            count > 0 ? PL_SEVERITY_WARN : PL_SEVERITY_OK,
                            found, advice);
}

static pl_status judge(pl_diagnosis *d, const char *host, const pl_facts *facts)
{
    PL_TRY(judge_version(d, host, facts));
    PL_TRY(judge_cores(d, host, facts));
    PL_TRY(judge_spaces(d, host, facts));
    PL_TRY(judge_limits(d, host, facts));
    PL_TRY(judge_keys(d, host, facts));
    return judge_tasks(d, host, facts);
}

pl_status pl_doctor_judge(pl_diagnosis *d, const char *host,
                          const pl_json *json)
{
    pl_facts facts;
    pl_status status = pl_fields_read(&pl_facts_fields, json, &facts);
    if (status != PL_OK)
        return pl_context(status, "facts of %s", host);
    status = judge(d, host, &facts);
    pl_fields_close(&pl_facts_fields, &facts);
    return status;
}

pl_status pl_doctor_judge_clock(pl_diagnosis *d, const char *host,
                                double offset_ms, double within_ms)
{
    char found[FOUND_BYTES];
    snprintf(found, sizeof found, "%+.1f ms, to within %.1f", offset_ms,
             within_ms);
    return pl_diagnosis_add(d, host, "clock",
                            fabs(offset_ms) - within_ms > CLOCK_MS
                                ? PL_SEVERITY_WARN
                                : PL_SEVERITY_OK,
                            found,
                            "times in logs and records of the hosts will not "
                            "agree: set the clock with chrony or "
                            "systemd-timesyncd");
}

pl_status pl_doctor_judge_way(pl_diagnosis *d, const pl_way *way)
{
    char name[2 * 64], found[FOUND_BYTES];
    pl_severity verdict =
        way->bytes_per_s < SLOW_BYTES || way->round_trip_us > FAR_US
            ? PL_SEVERITY_WARN
            : PL_SEVERITY_OK;
    snprintf(name, sizeof name, "%.60s > %.60s", way->from, way->to);
    snprintf(found, sizeof found, "%.0f Mbit/s, round trip %.3f ms",
             way->bytes_per_s * 8e-6, way->round_trip_us * 1e-3);
    PL_TRY(keep_way(d, way));
    return pl_diagnosis_add(d, name, "network", verdict, found,
                            "slow for gradients: use larger batches or --mode "
                            "async; check cable, switch and VPN");
}
