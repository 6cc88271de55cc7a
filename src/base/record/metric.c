/* Gauges are single atomic words; scalars go through a bounded lock-free
 * queue. A full queue drops and counts: recording never waits for the
 * reader. */
#include "base/record/metric.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <string.h>

/* Design of the queue (D. Vyukov's bounded queue, one reader).
 *
 * Positions only increase; position p is in slot p & mask.  A slot's `turn`
 * names its owner: p means free for the writer of position p, p + 1 means
 * filled for the reader of p, and the reader sets p + size for the writer of
 * the next round.  A writer claims a position by raising `head`, so writers
 * never wait for each other; a slot that still carries the last round's turn
 * means the queue is full. */
#define QUEUE_DEFAULT 16384
#define HISTOGRAMS    1024 /* waiting to be taken, 5 KB each */

struct slot {
    _Atomic uint64_t turn;
    pl_scalar scalar; /* owner: see turn */
};

/* A gauge: the bits of a double, alone on its cache line. */
struct gauge {
    _Alignas(PL_CACHE_LINE) _Atomic uint64_t bits;
};

struct pl_metrics {
    struct gauge gauges[PL_METRICS_TAGS];
    _Alignas(PL_CACHE_LINE) _Atomic uint64_t head; /* next to write */
    _Alignas(PL_CACHE_LINE) uint64_t tail;         /* next to read; reader's */
    _Alignas(PL_CACHE_LINE) _Atomic uint64_t dropped;
    uint64_t mask;
    struct slot *slots;
    atomic_int tag_count; /* read by others while a tag is added */
    char *names[PL_METRICS_TAGS];
    pl_timeline *timeline;
    pl_mutex lock;
    /* Guarded by lock: */
    pl_metrics_histogram *waiting[HISTOGRAMS];
    uint32_t first, waits;
    pl_epoch epochs[PL_METRICS_EPOCHS];
    uint64_t epochs_put, epochs_taken;
};

static uint64_t to_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t resolve(const pl_metrics_opts *opts)
{
    uint32_t queue =
        opts == NULL || opts->queue == 0 ? QUEUE_DEFAULT : opts->queue;
    PL_ASSERT(queue >= 2 && (queue & (queue - 1)) == 0);
    return queue;
}

pl_status pl_metrics_new(pl_metrics **out, const pl_metrics_opts *opts)
{
    uint32_t queue = resolve(opts);
    pl_metrics *metrics;
    PL_TRY(PL_NEW_ALIGNED(metrics, 1));
    pl_mutex_init(&metrics->lock);
    pl_status status = PL_NEW_ALIGNED(metrics->slots, queue);
    if (status != PL_OK) {
        pl_metrics_free(metrics);
        return status;
    }
    metrics->mask = queue - 1;
    for (uint32_t i = 0; i < queue; i++)
        atomic_init(&metrics->slots[i].turn, i);
    *out = metrics;
    return PL_OK;
}

void pl_metrics_free(pl_metrics *metrics)
{
    if (metrics == NULL)
        return;
    for (int tag = 0; tag < metrics->tag_count; tag++)
        pl_mem_free(metrics->names[tag]);
    for (uint32_t i = 0; i < metrics->waits; i++)
        pl_mem_free(metrics->waiting[(metrics->first + i) % HISTOGRAMS]);
    pl_mutex_close(&metrics->lock);
    pl_mem_free(metrics->slots);
    pl_mem_free(metrics);
}

pl_status pl_metrics_tag(pl_metrics *metrics, const char *name, int *tag)
{
    for (int i = 0; i < metrics->tag_count; i++) {
        if (strcmp(metrics->names[i], name) == 0) {
            *tag = i;
            return PL_OK;
        }
    }
    int next = metrics->tag_count;
    if (next == PL_METRICS_TAGS)
        return PL_FAIL(PL_UNSUPPORTED, "metric %s: there are %d already", name,
                       PL_METRICS_TAGS);
    PL_TRY(pl_mem_copy_text(&metrics->names[next], name));
    metrics->tag_count++;
    *tag = next;
    return PL_OK;
}

int pl_metrics_tag_count(const pl_metrics *metrics)
{
    return metrics->tag_count;
}

static int checked(const pl_metrics *metrics, int tag)
{
    PL_ASSERT(tag >= 0 && tag < metrics->tag_count);
    return tag;
}

const char *pl_metrics_tag_name(const pl_metrics *metrics, int tag)
{
    return metrics->names[checked(metrics, tag)];
}

void pl_metrics_set(pl_metrics *metrics, int tag, double value)
{
    atomic_store_explicit(&metrics->gauges[checked(metrics, tag)].bits,
                          to_bits(value), memory_order_relaxed);
}

void pl_metrics_add(pl_metrics *metrics, int tag, double value)
{
    _Atomic uint64_t *bits = &metrics->gauges[checked(metrics, tag)].bits;
    uint64_t old = atomic_load_explicit(bits, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        bits, &old, to_bits(from_bits(old) + value), memory_order_relaxed,
        memory_order_relaxed))
        ;
}

double pl_metrics_get(const pl_metrics *metrics, int tag)
{
    return from_bits(atomic_load_explicit(
        &metrics->gauges[checked(metrics, tag)].bits, memory_order_relaxed));
}

/* Claim the next position; NULL when its slot has not been read yet. */
static struct slot *claim(pl_metrics *metrics, uint64_t *position)
{
    uint64_t at = atomic_load_explicit(&metrics->head, memory_order_relaxed);
    for (;;) {
        struct slot *slot = &metrics->slots[at & metrics->mask];
        uint64_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);
        int64_t ahead = (int64_t)(turn - at);
        if (ahead < 0)
            return NULL;
        if (ahead > 0) { /* another writer was faster */
            at = atomic_load_explicit(&metrics->head, memory_order_relaxed);
            continue;
        }
        if (atomic_compare_exchange_weak_explicit(&metrics->head, &at, at + 1,
                                                  memory_order_relaxed,
                                                  memory_order_relaxed)) {
            *position = at;
            return slot;
        }
    }
}

void pl_metrics_scalar(pl_metrics *metrics, int tag, int64_t step, double value)
{
    pl_metrics_set(metrics, tag, value);
    uint64_t position = 0;
    struct slot *slot = claim(metrics, &position);
    if (slot == NULL) {
        atomic_fetch_add_explicit(&metrics->dropped, 1, memory_order_relaxed);
        return;
    }
    slot->scalar = (pl_scalar) { tag, step, value, pl_clock_wall_ns() };
    atomic_store_explicit(&slot->turn, position + 1, memory_order_release);
}

bool pl_metrics_take(pl_metrics *metrics, pl_scalar *out)
{
    struct slot *slot = &metrics->slots[metrics->tail & metrics->mask];
    if (atomic_load_explicit(&slot->turn, memory_order_acquire) !=
        metrics->tail + 1)
        return false;
    *out = slot->scalar;
    atomic_store_explicit(&slot->turn, metrics->tail + metrics->mask + 1,
                          memory_order_release);
    metrics->tail++;
    return true;
}

void pl_metrics_histogram_put(pl_metrics *metrics,
                              const pl_metrics_histogram *histogram)
{
    pl_metrics_histogram *copy = pl_mem_alloc(1, sizeof *copy);
    if (copy != NULL) {
        *copy = *histogram;
        copy->wall_ns = pl_clock_wall_ns();
    }
    pl_mutex_lock(&metrics->lock);
    bool put = copy != NULL && metrics->waits < HISTOGRAMS;
    if (put)
        metrics->waiting[(metrics->first + metrics->waits++) % HISTOGRAMS] =
            copy;
    pl_mutex_unlock(&metrics->lock);
    if (put)
        return;
    pl_mem_free(copy);
    atomic_fetch_add_explicit(&metrics->dropped, 1, memory_order_relaxed);
}

pl_metrics_histogram *pl_metrics_histogram_take(pl_metrics *metrics)
{
    pl_metrics_histogram *taken = NULL;
    pl_mutex_lock(&metrics->lock);
    if (metrics->waits > 0) {
        taken = metrics->waiting[metrics->first];
        metrics->first = (metrics->first + 1) % HISTOGRAMS;
        metrics->waits--;
    }
    pl_mutex_unlock(&metrics->lock);
    return taken;
}

void pl_metrics_epoch_put(pl_metrics *metrics, const pl_epoch *epoch)
{
    pl_mutex_lock(&metrics->lock);
    metrics->epochs[metrics->epochs_put++ % PL_METRICS_EPOCHS] = *epoch;
    if (metrics->epochs_put - metrics->epochs_taken > PL_METRICS_EPOCHS)
        metrics->epochs_taken = metrics->epochs_put - PL_METRICS_EPOCHS;
    pl_mutex_unlock(&metrics->lock);
}

bool pl_metrics_epoch_take(pl_metrics *metrics, pl_epoch *out)
{
    pl_mutex_lock(&metrics->lock);
    bool some = metrics->epochs_taken < metrics->epochs_put;
    if (some)
        *out = metrics->epochs[metrics->epochs_taken++ % PL_METRICS_EPOCHS];
    pl_mutex_unlock(&metrics->lock);
    return some;
}

const char *pl_activity_text(pl_activity activity)
{
    static const char *const texts[PL_ACTIVITIES] = {
        [PL_ACTIVITY_TEST] = "testing",
        [PL_ACTIVITY_SAVE] = "saving",
        [PL_ACTIVITY_JOIN] = "waiting for the other tasks",
    };
    return activity < PL_ACTIVITIES ? texts[activity] : NULL;
}

void pl_metrics_set_timeline(pl_metrics *metrics, pl_timeline *timeline)
{
    metrics->timeline = timeline;
}

pl_timeline *pl_metrics_timeline(const pl_metrics *metrics)
{
    return metrics->timeline;
}

uint64_t pl_metrics_dropped(const pl_metrics *metrics)
{
    return atomic_load_explicit(&metrics->dropped, memory_order_relaxed);
}
