#include "cli/bottleneck.h"

#include <stdio.h>
#include <string.h>

/* One worker is waited for when it waits so much less than who waits most. */
#define LAGS 0.2
/* Less than this tells nothing, in seconds. */
#define LEAST_S 0.001

enum {
    READING,
    COMPUTING,
    SENDING,
    WAITING,
    WHATS
};
static const char *const words[WHATS] = { "reading", "computing", "sending",
                                          "waiting" };

/* Where the time went, of all workers together. */
typedef struct times {
    double seconds[WHATS];
    double all;
    int workers;
    int64_t busiest; /* the worker that waited least */
    double least_waiting, most_waiting;
} times;

static double real_of(const pl_json *row, const char *key)
{
    double value;
    return pl_json_has(row, key) && pl_json_get_real(row, key, &value) == PL_OK
               ? value
               : 0;
}

static void add_row(times *t, const pl_json *row, int64_t index)
{
    static const char *const shares[WHATS] = { "input_share", "computing_share",
                                               "sending_share",
                                               "waiting_share" };
    double seconds = real_of(row, "seconds");
    double waiting = real_of(row, "waiting_share");
    if (!(seconds > LEAST_S))
        return; /* lost, or there was nothing to do */
    for (int what = 0; what < WHATS; what++)
        t->seconds[what] += seconds * real_of(row, shares[what]);
    t->all += seconds;
    if (t->workers == 0 || waiting < t->least_waiting) {
        t->least_waiting = waiting;
        t->busiest = index;
    }
    if (t->workers == 0 || waiting > t->most_waiting)
        t->most_waiting = waiting;
    t->workers++;
}

static const char *text_of(const pl_json *summary, const char *key)
{
    const char *text;
    return pl_json_get_text(summary, key, &text) == PL_OK ? text : "";
}

/* In lock step all wait for the slowest. */
static bool one_lags(const times *t, const pl_json *summary)
{
    bool lock_step = strcmp(text_of(summary, "mode"), "sync") == 0 ||
                     strcmp(text_of(summary, "strategy"), "allreduce") == 0;
    return lock_step && t->workers > 1 &&
           t->most_waiting - t->least_waiting > LAGS;
}

static void describe(const times *t, const pl_json *summary, int what,
                     char *text, size_t room)
{
    static const char *const plain[WHATS] = {
        "reading data", "computing", "sending gradients",
        "waiting for the parameter servers"
    };
    char whom[64];
    const char *name = plain[what];
    if (what == WAITING &&
        strcmp(text_of(summary, "strategy"), "allreduce") == 0)
        name = "waiting for the other workers' gradients";
    if (what == WAITING && one_lags(t, summary)) {
        snprintf(whom, sizeof whom, "waiting for worker %lld, the slowest",
                 (long long)t->busiest);
        name = whom;
    }
    int used = snprintf(text, room, "%s: %.0f %% of the time", name,
                        100 * t->seconds[what] / t->all);
    const char *between = " (";
    for (int other = 0; other < WHATS; other++) {
        double share = 100 * t->seconds[other] / t->all;
        if (other == what || share < 0.5 || used >= (int)room)
            continue;
        used += snprintf(text + used, room - (size_t)used, "%s%s %.0f %%",
                         between, words[other], share);
        between = ", ";
    }
    if (between[0] == ',' && used < (int)room)
        snprintf(text + used, room - (size_t)used, ")");
}

static pl_status fill(pl_json *found, const times *t, const pl_json *summary)
{
    char text[256];
    int what = COMPUTING;
    for (int other = 0; other < WHATS; other++)
        if (t->seconds[other] > t->seconds[what])
            what = other;
    describe(t, summary, what, text, sizeof text);
    PL_TRY(pl_json_set_text(found, "what", words[what]));
    PL_TRY(pl_json_set_real(found, "share", t->seconds[what] / t->all));
    if (what == WAITING && one_lags(t, summary))
        PL_TRY(pl_json_set_int(found, "worker", t->busiest));
    return pl_json_set_text(found, "text", text);
}

pl_status pl_bottleneck_put(pl_json *summary)
{
    const pl_json *rows;
    times t = { 0 };
    PL_TRY(pl_json_get_array(summary, "per_worker", &rows));
    for (size_t i = 0; i < pl_json_length(rows); i++)
        add_row(&t, pl_json_at(rows, i), (int64_t)i);
    if (t.workers == 0)
        return pl_json_set_null(summary, "bottleneck");
    pl_json *found;
    PL_TRY(pl_json_new_object(&found));
    pl_status status = fill(found, &t, summary);
    if (status != PL_OK) {
        pl_json_free(found);
        return status;
    }
    return pl_json_set_take(summary, "bottleneck", found);
}
