/* Loss and accuracy of a test; for binary models also precision, recall and
 * the area under the ROC curve, from the sorted probabilities of both
 * classes. */
#include "train/score.h"

#include "base/assert.h"
#include "base/mem.h"

#include <stdlib.h>

/* The probabilities of all examples with one label. */
typedef struct pile {
    float *probs;
    int64_t count, room;
} pile;

struct pl_tally {
    pile piles[2]; /* by label */
    int64_t right; /* answers */
    int64_t found; /* correct positive answers */
    int64_t yes;   /* positive answers */
    double sum;    /* of all probabilities */
};

pl_status pl_tally_new(pl_tally **out)
{
    pl_tally *tally;
    PL_TRY(PL_NEW(tally, 1));
    *out = tally;
    return PL_OK;
}

void pl_tally_free(pl_tally *tally)
{
    if (tally == NULL)
        return;
    pl_mem_free(tally->piles[0].probs);
    pl_mem_free(tally->piles[1].probs);
    pl_mem_free(tally);
}

static pl_status make_room(pile *p, int64_t more)
{
    if (p->room - p->count >= more)
        return PL_OK;
    int64_t room =
        2 * p->room > p->count + more ? 2 * p->room : p->count + more;
    PL_TRY(PL_RESIZE(p->probs, (size_t)room));
    p->room = room;
    return PL_OK;
}

pl_status pl_tally_add(pl_tally *tally, int64_t rows, const float *probs,
                       const pl_view *labels)
{
    PL_TRY(make_room(&tally->piles[0], rows));
    PL_TRY(make_room(&tally->piles[1], rows));
    for (int64_t r = 0; r < rows; r++) {
        bool label = pl_view_label(labels, r) != 0;
        bool yes = probs[r] >= 0.5f;
        pile *p = &tally->piles[label];
        p->probs[p->count++] = probs[r];
        tally->yes += yes;
        tally->right += yes == label;
        tally->found += yes && label;
        tally->sum += (double)probs[r];
    }
    return PL_OK;
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void sort(pile *p)
{
    if (p->count > 0)
        qsort(p->probs, (size_t)p->count, sizeof *p->probs, by_value);
}

/* The area under the ROC curve is the share of pairs of a positive and a
 * negative that are ranked correctly, counting ties half (Hanley and McNeil
 * 1982). */
static double area(pile *no, pile *yes)
{
    if (no->count == 0 || yes->count == 0)
        return 0.5;
    sort(no);
    sort(yes);
    double pairs = 0;
    int64_t below = 0, not_above = 0; /* negatives, for each positive */
    for (int64_t i = 0; i < yes->count; i++) {
        while (below < no->count && no->probs[below] < yes->probs[i])
            below++;
        while (not_above < no->count && no->probs[not_above] <= yes->probs[i])
            not_above++;
        pairs += 0.5 * (double)(below + not_above);
    }
    return pairs / ((double)no->count * (double)yes->count);
}

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

void pl_tally_score(pl_tally *tally, pl_score *out)
{
    int64_t yes = tally->piles[1].count, all = yes + tally->piles[0].count;
    PL_ASSERT(all > 0);
    out->binary = true;
    out->accuracy = share(tally->right, all);
    out->auc = area(&tally->piles[0], &tally->piles[1]);
    out->precision = share(tally->found, tally->yes);
    out->recall = share(tally->found, yes);
    out->calibration = yes > 0 ? tally->sum / (double)yes : 0;
}
