#include "cli/doctor.h"
#include "cli/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FREE_LEAST   ((int64_t)1 << 30) /* of memory */
#define DISK_LEAST   ((int64_t)1 << 30)
#define SHM_LEAST    ((int64_t)64 << 20)
#define FILES_LEAST  1024
#define CLOCK_MS     1000 /* logs and records of hosts differ by that */
#define SLOW_BYTES   (100e6 / 8 * 0.8)
#define FAR_US       10000
#define FOUND_BYTES  160
#define ADVICE_BYTES 400

static const char *const names[] = { "ok", "warn", "bad" };

static pl_status fill_line(pl_json *line, const char *host, const char *check,
                           const char *found, const char *verdict)
{
    PL_TRY(pl_json_set_text(line, "host", host));
    PL_TRY(pl_json_set_text(line, "check", check));
    PL_TRY(pl_json_set_text(line, "found", found));
    return pl_json_set_text(line, "verdict", verdict);
}

pl_status pl_diagnosis_add(pl_diagnosis *d, const char *host, const char *check,
                           pl_verdict verdict, const char *found,
                           const char *advice)
{
    pl_json *line;
    PL_TRY(pl_json_new_object(&line));
    pl_status status = fill_line(line, host, check, found, names[verdict]);
    if (status == PL_OK && verdict != PL_VERDICT_OK)
        status = pl_json_set_text(line, "advice", advice);
    if (status != PL_OK) {
        pl_json_free(line);
        return status;
    }
    d->worst = verdict > d->worst ? verdict : d->worst;
    return pl_json_append_take(d->lines, line);
}

/* A number of the facts, or -1. */
static int64_t number(const pl_json *facts, const char *key)
{
    int64_t value;
    return pl_json_get_int(facts, key, INT64_MIN, INT64_MAX, &value) == PL_OK
               ? value
               : -1;
}

static const char *text(const pl_json *facts, const char *key)
{
    const char *value;
    return pl_json_get_text(facts, key, &value) == PL_OK ? value : "";
}

static pl_status judge_version(pl_diagnosis *d, const char *host,
                               const pl_json *facts)
{
    char found[FOUND_BYTES];
    bool same = strcmp(text(facts, "version"), pl_version()) == 0;
    snprintf(found, sizeof found, "paceline %s, kernels %s",
             text(facts, "version"), text(facts, "kernels"));
    return pl_diagnosis_add(d, host, "version",
                            same ? PL_VERDICT_OK : PL_VERDICT_BAD, found,
                            "install the same version everywhere, or launch "
                            "with --copy");
}

static pl_status judge_cores(pl_diagnosis *d, const char *host,
                             const pl_json *facts)
{
    char found[FOUND_BYTES];
    double load = 0;
    int64_t cores = number(facts, "cores");
    if (pl_json_get_real(facts, "load", &load) != PL_OK)
        load = 0;
    snprintf(found, sizeof found, "%lld, %.1f of them busy", (long long)cores,
             load);
    return pl_diagnosis_add(
        d, host, "cores",
        load > (double)cores * 0.5 ? PL_VERDICT_WARN : PL_VERDICT_OK, found,
        "others compute here: see `top`; a training waits for its slowest "
        "worker");
}

typedef struct space {
    const char *check, *key;
    int64_t least;
    pl_verdict verdict;
    const char *advice;
} space;

static pl_status judge_space(pl_diagnosis *d, const char *host,
                             const pl_json *facts, const space *s)
{
    char number_text[PL_BYTES_TEXT], found[FOUND_BYTES];
    int64_t bytes = number(facts, s->key);
    bool known = bytes >= 0 && bytes < INT64_MAX / 2;
    snprintf(found, sizeof found, "%s%s",
             known ? pl_memory_text(bytes, number_text) : "not known",
             known ? " free" : "");
    return pl_diagnosis_add(d, host, s->check,
                            known && bytes < s->least ? s->verdict
                                                      : PL_VERDICT_OK,
                            found, s->advice);
}

static pl_status judge_spaces(pl_diagnosis *d, const char *host,
                              const pl_json *facts)
{
    static const space spaces[] = {
        { "memory", "memory_free", FREE_LEAST, PL_VERDICT_WARN,
          "end what takes it; `models MODEL` tells what a training needs" },
        { "disk", "disk_free", DISK_LEAST, PL_VERDICT_WARN,
          "free some, or work in another folder: checkpoints are written "
          "here" },
        { "shared memory", "shm_free", SHM_LEAST, PL_VERDICT_WARN,
          "tasks on one host then move all by TCP: mount a larger /dev/shm" },
    };
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        PL_TRY(judge_space(d, host, facts, &spaces[i]));
    return PL_OK;
}

static pl_status judge_limits(pl_diagnosis *d, const char *host,
                              const pl_json *facts)
{
    char found[FOUND_BYTES];
    const char *huge = text(facts, "huge_pages");
    PL_TRY(pl_diagnosis_add(
        d, host, "huge pages",
        strcmp(huge, "never") == 0 ? PL_VERDICT_WARN : PL_VERDICT_OK, huge,
        "large models are slower: echo madvise > "
        "/sys/kernel/mm/transparent_hugepage/enabled"));
    snprintf(found, sizeof found, "%lld",
             (long long)number(facts, "files_most"));
    return pl_diagnosis_add(d, host, "open files",
                            number(facts, "files_most") < FILES_LEAST
                                ? PL_VERDICT_WARN
                                : PL_VERDICT_OK,
                            found,
                            "a server of many workers needs more: "
                            "ulimit -n 4096");
}

static pl_status judge_keys(pl_diagnosis *d, const char *host,
                            const pl_json *facts)
{
    bool wrong = pl_json_has(facts, "keys_problem");
    if (!pl_json_has(facts, "keys"))
        return pl_diagnosis_add(d, host, "keys", PL_VERDICT_OK,
                                "no PACELINE_KEYS; launch makes its own", NULL);
    return pl_diagnosis_add(d, host, "keys",
                            wrong ? PL_VERDICT_BAD : PL_VERDICT_OK,
                            text(facts, "keys"), text(facts, "keys_problem"));
}

static pl_status judge_tasks(pl_diagnosis *d, const char *host,
                             const pl_json *facts)
{
    const pl_json *list;
    char found[FOUND_BYTES], advice[ADVICE_BYTES];
    const char *first = "";
    PL_TRY(pl_json_get_array(facts, "tasks", &list));
    size_t count = pl_json_length(list);
    if (count > 0)
        PL_TRY(pl_json_as_text(pl_json_at(list, 0), "task", &first));
    snprintf(found, sizeof found, "%zu running", count);
    snprintf(advice, sizeof advice, "not of a job you know? end it: kill %s",
             first);
    return pl_diagnosis_add(d, host, "tasks",
                            count > 0 ? PL_VERDICT_WARN : PL_VERDICT_OK, found,
                            advice);
}

pl_status pl_doctor_judge(pl_diagnosis *d, const char *host,
                          const pl_json *facts)
{
    PL_TRY(judge_version(d, host, facts));
    PL_TRY(judge_cores(d, host, facts));
    PL_TRY(judge_spaces(d, host, facts));
    PL_TRY(judge_limits(d, host, facts));
    PL_TRY(judge_keys(d, host, facts));
    return judge_tasks(d, host, facts);
}

pl_status pl_doctor_judge_clock(pl_diagnosis *d, const char *host,
                                double offset_ms, double within_ms)
{
    char found[FOUND_BYTES];
    snprintf(found, sizeof found, "%+.1f ms, to within %.1f", offset_ms,
             within_ms);
    return pl_diagnosis_add(d, host, "clock",
                            fabs(offset_ms) - within_ms > CLOCK_MS
                                ? PL_VERDICT_WARN
                                : PL_VERDICT_OK,
                            found,
                            "logs and records of the hosts do not agree: set "
                            "the clock, by chrony or systemd-timesyncd");
}

pl_status pl_doctor_judge_way(pl_diagnosis *d, const char *from, const char *to,
                              double round_trip_us, double bytes_per_s)
{
    char way[2 * 64], found[FOUND_BYTES];
    pl_verdict verdict = bytes_per_s < SLOW_BYTES || round_trip_us > FAR_US
                             ? PL_VERDICT_WARN
                             : PL_VERDICT_OK;
    snprintf(way, sizeof way, "%.60s > %.60s", from, to);
    snprintf(found, sizeof found, "%.0f Mbit/s, round trip %.3f ms",
             bytes_per_s * 8e-6, round_trip_us * 1e-3);
    return pl_diagnosis_add(d, way, "network", verdict, found,
                            "slow for gradients: take larger batches, or "
                            "--mode async; look at cable, switch and VPN");
}
