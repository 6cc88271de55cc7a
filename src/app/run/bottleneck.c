/* bottleneck.c - names what held a run up, from the shares of computing,
 * sending, reading and waiting in its workers' time. */
#include "app/run/bottleneck.h"

#include <math.h>
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
    int32_t busiest; /* the worker that waited least */
    double least_waiting, most_waiting;
} times;

static void add_row(times *t, const pl_worker_report *row, int32_t index)
{
    const double shares[WHATS] = { row->input_share, row->computing_share,
                                   row->sending_share, row->waiting_share };
    double waiting = isnan(row->waiting_share) ? 0 : row->waiting_share;
    if (!(row->seconds > LEAST_S))
        return; /* lost, or there was nothing to do */
    for (int what = 0; what < WHATS; what++)
        if (!isnan(shares[what]))
            t->seconds[what] += row->seconds * shares[what];
    t->all += row->seconds;
    if (t->workers == 0 || waiting < t->least_waiting) {
        t->least_waiting = waiting;
        t->busiest = index;
    }
    if (t->workers == 0 || waiting > t->most_waiting)
        t->most_waiting = waiting;
    t->workers++;
}

static bool is(const char *text, const char *expected)
{
    return text != NULL && strcmp(text, expected) == 0;
}

/* In lock step all wait for the slowest. */
static bool one_lags(const times *t, const pl_summary *summary)
{
    bool lock_step =
        is(summary->mode, "sync") || is(summary->strategy, "allreduce");
    return lock_step && t->workers > 1 &&
           t->most_waiting - t->least_waiting > LAGS;
}

static void describe(const times *t, const pl_summary *summary, int what,
                     char *text, size_t room)
{
    static const char *const plain[WHATS] = {
        "reading data", "computing", "sending gradients",
        "waiting for the parameter servers"
    };
    char whom[64];
    const char *name = plain[what];
    if (what == WAITING && is(summary->strategy, "allreduce"))
        name = "waiting for the other workers' gradients";
    if (what == WAITING && one_lags(t, summary)) {
        snprintf(whom, sizeof whom, "waiting for worker %d, the slowest",
                 t->busiest);
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

void pl_bottleneck_find(pl_summary *summary)
{
    pl_bottleneck *found = &summary->bottleneck;
    times t = { 0 };
    int what = COMPUTING;
    for (size_t i = 0; i < summary->worker_count; i++)
        add_row(&t, &summary->per_worker[i], (int32_t)i);
    summary->has_bottleneck = t.workers > 0;
    if (t.workers == 0)
        return;
    for (int other = 0; other < WHATS; other++)
        if (t.seconds[other] > t.seconds[what])
            what = other;
    snprintf(found->what, sizeof found->what, "%s", words[what]);
    found->share = t.seconds[what] / t.all;
    found->worker = what == WAITING && one_lags(&t, summary) ? t.busiest : -1;
    describe(&t, summary, what, found->text, sizeof found->text);
}
