/* hall.h - an engine for tests: several ranks in one process, on threads.
 *
 * Ranks meet in a hall.  A sum is made by the last rank that starts it, in the
 * order of ranks; it takes effect at once, so a read or write that is too early
 * shows in the bits. */
#ifndef PL_TESTS_HALL_H
#define PL_TESTS_HALL_H

#include "base/thread.h"
#include "support/unit.h"
#include "sync/allreduce/collective.h"

#define HALL_MOST 4

typedef struct hall_rank {
    pl_collective base;
    struct hall *hall;
    int32_t rank;
    float *memory;
    int32_t sums;   /* started since the last quiet */
    int32_t waited; /* ... of them, those up to the last that was waited for */
    int64_t beside; /* sums that were not, whenever the rank went to compute */
    int64_t first[PL_COLLECTIVE_SUMS_MOST], count[PL_COLLECTIVE_SUMS_MOST];
    int32_t from[PL_COLLECTIVE_SUMS_MOST]; /* of a broadcast; -1: a sum */
    uint64_t heard;                        /* gathers */
    uint8_t word[PL_COLLECTIVE_BYTES_MOST];
    uint64_t told;
    pl_combine *combine;
    uint64_t life; /* of the hall, as it joined */
} hall_rank;

typedef struct hall {
    pl_mutex lock;
    pl_cond changed;
    int32_t ranks, meeting; /* meeting: ranks that wait to join */
    int64_t floats, grain;
    uint64_t life; /* rises when all have met */
    bool lost;     /* a rank is lost: all must meet again */
    bool closed;
    char why[256];
    int32_t done; /* sums since all were quiet */
    int32_t quiet;
    uint64_t quiets;
    size_t bytes;
    int64_t total_sums;
    hall_rank rank[HALL_MOST];
} hall;

static inline pl_status hall_state(const hall_rank *r)
{
    const hall *h = r->hall;
    if (h->closed)
        return PL_FAIL(PL_CLOSED, "%s", h->why);
    if (h->lost || r->life != h->life)
        return PL_FAIL(PL_ROLLED, "a worker is lost");
    return PL_OK;
}

static inline pl_status hall_pause(hall *h, pl_deadline deadline)
{
    return pl_cond_wait_until(&h->changed, &h->lock, deadline);
}

static inline pl_status hall_meet(hall_rank *r, pl_ranks *out)
{
    hall *h = r->hall;
    pl_status status = PL_OK;
    pl_mutex_lock(&h->lock);
    uint64_t life = h->life;
    r->sums = r->waited = 0;
    if (++h->meeting == h->ranks) {
        h->meeting = 0;
        h->life++;
        h->lost = false;
        h->done = h->quiet = 0;
        for (int32_t i = 0; i < h->ranks; i++)
            h->rank[i].told = h->rank[i].heard = 0;
        pl_cond_broadcast(&h->changed);
    }
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), 20000);
    while (h->life == life && status == PL_OK && !h->closed)
        status = hall_pause(h, deadline);
    r->life = h->life;
    if (status == PL_OK)
        status = hall_state(r);
    pl_mutex_unlock(&h->lock);
    *out = (pl_ranks) { r->rank, h->ranks, h->grain };
    return status;
}

static inline pl_status hall_join(pl_collective *c, pl_ranks *out)
{
    return hall_meet((hall_rank *)c, out);
}

static inline float *hall_memory(pl_collective *c)
{
    return ((hall_rank *)c)->memory;
}

/* Ranks that have started sum number `ticket` since they were last quiet. */
static inline bool hall_all_started(const hall *h, int32_t ticket)
{
    for (int32_t i = 0; i < h->ranks; i++)
        if (h->rank[i].sums <= ticket)
            return false;
    return true;
}

static inline void hall_sum(hall *h, int32_t ticket)
{
    int64_t first = h->rank[0].first[ticket], count = h->rank[0].count[ticket];
    for (int32_t i = 1; i < h->ranks; i++) {
        assert_int_equal(first, h->rank[i].first[ticket]);
        assert_int_equal(count, h->rank[i].count[ticket]);
    }
    int32_t from = h->rank[0].from[ticket];
    for (int64_t k = first; k < first + count; k++) {
        float sum = h->rank[from >= 0 ? from : 0].memory[k];
        for (int32_t i = 1; from < 0 && i < h->ranks; i++)
            sum += h->rank[i].memory[k];
        for (int32_t i = 0; i < h->ranks; i++)
            h->rank[i].memory[k] = sum;
    }
    h->total_sums++;
}

static inline pl_status hall_start(pl_collective *c, const pl_sum_range *range,
                                   int32_t *ticket)
{
    hall_rank *r = (hall_rank *)c;
    hall *h = r->hall;
    assert_int_equal(0, range->first % h->grain);
    pl_mutex_lock(&h->lock);
    pl_status status = hall_state(r);
    if (status == PL_OK) {
        *ticket = r->sums;
        r->first[r->sums] = range->first;
        r->from[r->sums] = range->kind == PL_SUM_BROADCAST ? range->from : -1;
        r->count[r->sums++] = range->count;
        if (hall_all_started(h, *ticket)) {
            hall_sum(h, *ticket);
            h->done = *ticket + 1;
            pl_cond_broadcast(&h->changed);
        }
    }
    pl_mutex_unlock(&h->lock);
    return status;
}

static inline pl_status hall_wait(pl_collective *c, int32_t ticket,
                                  pl_deadline deadline)
{
    hall_rank *r = (hall_rank *)c;
    hall *h = r->hall;
    pl_mutex_lock(&h->lock);
    pl_status status = hall_state(r);
    while (status == PL_OK && h->done <= ticket) {
        status = hall_pause(h, deadline);
        if (status == PL_OK)
            status = hall_state(r);
    }
    if (status == PL_OK && r->waited <= ticket)
        r->waited = ticket + 1;
    pl_mutex_unlock(&h->lock);
    return status;
}

static inline void hall_background(pl_collective *c)
{
    hall_rank *r = (hall_rank *)c;
    r->beside += r->sums - r->waited;
}

static inline pl_status hall_quiet(pl_collective *c, pl_deadline deadline)
{
    hall_rank *r = (hall_rank *)c;
    hall *h = r->hall;
    pl_mutex_lock(&h->lock);
    pl_status status = hall_state(r);
    uint64_t quiets = h->quiets;
    if (status == PL_OK && ++h->quiet == h->ranks) {
        for (int32_t i = 0; i < h->ranks; i++)
            h->rank[i].sums = h->rank[i].waited = 0;
        h->done = h->quiet = 0;
        h->quiets++;
        pl_cond_broadcast(&h->changed);
    }
    while (status == PL_OK && h->quiets == quiets) {
        status = hall_pause(h, deadline);
        if (status == PL_OK)
            status = hall_state(r);
    }
    if (status == PL_TIMEOUT)
        h->quiet--;
    pl_mutex_unlock(&h->lock);
    return status;
}

static inline pl_status hall_offer(pl_collective *c, const void *word,
                                   size_t bytes, pl_combine *combine)
{
    hall_rank *r = (hall_rank *)c;
    hall *h = r->hall;
    assert_true(bytes <= PL_COLLECTIVE_BYTES_MOST);
    pl_mutex_lock(&h->lock);
    pl_status status = hall_state(r);
    /* All ranks must have read the previous text: copies are kept apart. */
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), 20000);
    bool free = false;
    while (status == PL_OK && !free) {
        free = true;
        for (int32_t i = 0; i < h->ranks; i++)
            free = free && h->rank[i].heard == r->told;
        if (!free)
            status = hall_pause(h, deadline);
        if (status == PL_OK)
            status = hall_state(r);
    }
    if (status == PL_OK) {
        memcpy(r->word, word, bytes);
        h->bytes = bytes;
        r->combine = combine;
        r->told++;
        pl_cond_broadcast(&h->changed);
    }
    pl_mutex_unlock(&h->lock);
    return status;
}

static inline pl_status hall_exchange(pl_collective *c, void *all,
                                      pl_deadline deadline)
{
    hall_rank *r = (hall_rank *)c;
    hall *h = r->hall;
    pl_mutex_lock(&h->lock);
    pl_status status = hall_state(r);
    for (int32_t i = 0; i < h->ranks && status == PL_OK;) {
        if (h->rank[i].told > r->heard) {
            if (i == 0 || (r->combine == NULL && r->rank == 0))
                memcpy((uint8_t *)all + (size_t)i * h->bytes, h->rank[i].word,
                       h->bytes);
            else if (r->combine != NULL)
                r->combine(all, h->rank[i].word);
            i++;
            continue;
        }
        status = hall_pause(h, deadline);
        if (status == PL_OK)
            status = hall_state(r);
    }
    if (status == PL_OK)
        r->heard++;
    pl_cond_broadcast(&h->changed);
    pl_mutex_unlock(&h->lock);
    return status;
}

static inline void hall_abort(pl_collective *c, const char *why)
{
    hall *h = ((hall_rank *)c)->hall;
    pl_mutex_lock(&h->lock);
    if (!h->closed)
        snprintf(h->why, sizeof h->why, "%s", why);
    h->closed = true;
    pl_cond_broadcast(&h->changed);
    pl_mutex_unlock(&h->lock);
}

static inline pl_collective_view hall_look(pl_collective *c)
{
    (void)c;
    return (pl_collective_view) { .restarts = 0 };
}

static inline void hall_rank_free(pl_collective *c)
{
    (void)c; /* the hall's */
}

static const pl_collective_ops hall_ops = {
    .name = "hall",
    .ordered = true,
    .join = hall_join,
    .memory = hall_memory,
    .start = hall_start,
    .wait = hall_wait,
    .quiet = hall_quiet,
    .background = hall_background,
    .offer = hall_offer,
    .exchange = hall_exchange,
    .abort = hall_abort,
    .look = hall_look,
    .free = hall_rank_free,
};

static inline void hall_init(hall *h, int32_t ranks, int64_t floats,
                             int64_t grain)
{
    memset(h, 0, sizeof *h);
    h->ranks = ranks;
    h->floats = floats;
    h->grain = grain;
    pl_mutex_init(&h->lock);
    pl_cond_init(&h->changed);
    for (int32_t i = 0; i < ranks; i++) {
        h->rank[i] =
            (hall_rank) { .base = { &hall_ops }, .hall = h, .rank = i };
        assert_ok(PL_NEW_ALIGNED(h->rank[i].memory, (size_t)floats));
    }
}

static inline void hall_close(hall *h)
{
    for (int32_t i = 0; i < h->ranks; i++)
        pl_mem_free(h->rank[i].memory);
    pl_cond_close(&h->changed);
    pl_mutex_close(&h->lock);
}

/* A rank is lost: all calls fail until all have met again. */
static inline void hall_lose(hall *h)
{
    pl_mutex_lock(&h->lock);
    h->lost = true;
    pl_cond_broadcast(&h->changed);
    pl_mutex_unlock(&h->lock);
}

#endif
