/* stats.c - `data stats`: counts examples, labels, ids and values of a sparse
 * source, and prints the most frequent ids. */
#include "app/data/dense.h"
#include "base/json/json.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

#define TOP        10
#define MOST_TABLE ((uint64_t)1 << 28) /* ids with a counter each */

typedef struct top {
    uint64_t id;
    uint32_t count;
} top;

typedef struct stats {
    int64_t examples, ones, non_zeros;
    int64_t least_row, most_row;
    uint64_t largest;
    float least_value, most_value;
    uint32_t *counts; /* of each id that has a counter */
    uint64_t room;
    bool beyond; /* some ids have no counter */
    top top[TOP];
    int tops;
} stats;

static pl_status make_room(stats *s, uint64_t id)
{
    uint64_t room = s->room == 0 ? 1024 : s->room;
    while (room <= id)
        room *= 2;
    uint32_t *grown = pl_mem_resize(s->counts, room, sizeof *grown);
    PL_TRY(pl_mem_check(grown, room, sizeof *grown));
    memset(grown + s->room, 0, (room - s->room) * sizeof *grown);
    s->counts = grown;
    s->room = room;
    return PL_OK;
}

static pl_status count_id(stats *s, uint64_t id)
{
    s->largest = id > s->largest ? id : s->largest;
    if (id >= s->room) {
        if (id >= MOST_TABLE) {
            s->beyond = true;
            return PL_OK;
        }
        PL_TRY(make_room(s, id));
    }
    s->counts[id] += s->counts[id] < UINT32_MAX;
    return PL_OK;
}

static void count_value(stats *s, float value, bool first)
{
    s->least_value = first || value < s->least_value ? value : s->least_value;
    s->most_value = first || value > s->most_value ? value : s->most_value;
}

static pl_status count_batch(void *context, const pl_batch *batch)
{
    stats *s = context;
    for (int64_t r = 0; r < batch->rows; r++) {
        int64_t at = batch->row_index != NULL ? batch->row_index[r] : r;
        int64_t begin = batch->row_start[at], end = batch->row_start[at + 1];
        int64_t length = end - begin;
        s->least_row =
            s->examples == 0 || length < s->least_row ? length : s->least_row;
        s->most_row = length > s->most_row ? length : s->most_row;
        s->examples++;
        s->ones += pl_view_label(&batch->labels, r) == 1;
        for (int64_t i = begin; i < end; i++) {
            count_value(s, batch->values != NULL ? batch->values[i] : 1,
                        s->non_zeros == 0);
            PL_TRY(count_id(s, batch->ids[i]));
            s->non_zeros++;
        }
    }
    return PL_OK;
}

/* The most frequent ids, in descending order. */
static void find_top(stats *s)
{
    for (uint64_t id = 0; id < s->room; id++) {
        uint32_t count = s->counts[id];
        int at = s->tops;
        if (count == 0 || (at == TOP && count <= s->top[TOP - 1].count))
            continue;
        if (at == TOP)
            at--;
        else
            s->tops++;
        for (; at > 0 && s->top[at - 1].count < count; at--)
            s->top[at] = s->top[at - 1];
        s->top[at] = (top) { id, count };
    }
}

static double per_example(const stats *s, double value)
{
    return s->examples > 0 ? value / (double)s->examples : 0;
}

static void print_text(const stats *s, const pl_data_pass *pass)
{
    printf("%s\n", pass->source);
    printf("  examples    %lld\n", (long long)s->examples);
    printf("  label 1     %lld (%.2f %%)\n", (long long)s->ones,
           100 * per_example(s, (double)s->ones));
    printf("  non-zeros   %lld (%.2f an example, %lld to %lld)\n",
           (long long)s->non_zeros, per_example(s, (double)s->non_zeros),
           (long long)s->least_row, (long long)s->most_row);
    if (s->non_zeros > 0) {
        printf("  features    %llu (largest id + 1)\n",
               (unsigned long long)s->largest + 1);
        printf("  values      %g to %g\n", (double)s->least_value,
               (double)s->most_value);
    }
    if (pass->bad > 0)
        printf("  malformed   %lld (skipped)\n", (long long)pass->bad);
    for (int i = 0; i < s->tops; i++)
        printf("  %s %llu: %u (%.2f %% of the non-zeros)\n",
               i == 0 ? "frequent    id" : "            id",
               (unsigned long long)s->top[i].id, s->top[i].count,
               100.0 * s->top[i].count / (double)s->non_zeros);
    if (s->beyond)
        printf("  ids from %llu on were not counted one by one\n",
               (unsigned long long)MOST_TABLE);
}

static pl_status top_json(const stats *s, pl_json *json)
{
    pl_json *list;
    PL_TRY(pl_json_new_array(&list));
    pl_status status = PL_OK;
    for (int i = 0; i < s->tops && status == PL_OK; i++) {
        pl_json *each;
        status = pl_json_new_object(&each);
        if (status != PL_OK)
            break;
        status = pl_json_set_int(each, "id", (int64_t)s->top[i].id);
        if (status == PL_OK)
            status = pl_json_set_int(each, "count", s->top[i].count);
        if (status == PL_OK)
            status = pl_json_append_take(list, each);
        else
            pl_json_free(each);
    }
    if (status == PL_OK)
        return pl_json_set_take(json, "frequent", list);
    pl_json_free(list);
    return status;
}

static pl_status fill_json(const stats *s, const pl_data_pass *pass,
                           pl_json *json)
{
    PL_TRY(pl_json_set_text(json, "source", pass->source));
    PL_TRY(pl_json_set_int(json, "examples", s->examples));
    PL_TRY(pl_json_set_int(json, "ones", s->ones));
    PL_TRY(pl_json_set_int(json, "non_zeros", s->non_zeros));
    PL_TRY(pl_json_set_int(json, "features",
                           s->non_zeros > 0 ? (int64_t)s->largest + 1 : 0));
    PL_TRY(pl_json_set_int(json, "bad", pass->bad));
    PL_TRY(pl_json_set_real(json, "seconds", pass->seconds));
    return top_json(s, json);
}

static pl_status print_json(const stats *s, const pl_data_pass *pass)
{
    pl_json *json;
    PL_TRY(pl_json_new_object(&json));
    pl_status status = fill_json(s, pass, json);
    if (status == PL_OK)
        status = pl_json_print(json, stdout);
    pl_json_free(json);
    return status;
}

pl_status pl_data_stats(const pl_data_stats_opts *opts)
{
    stats s = { 0 };
    pl_data_pass pass = {
        .source = opts->source,
        .verb = "read",
        .opts = opts->opts,
        .quiet = opts->quiet,
        .use = count_batch,
        .context = &s,
    };
    if (pl_source_is_dense(opts->source, opts->opts))
        return pl_data_stats_dense(opts);
    if (opts->picture != NULL)
        return PL_FAIL(PL_USAGE,
                       "--picture is for images, but %s has sparse examples",
                       opts->source);
    pl_status status = pl_data_pass_run(&pass);
    if (status == PL_OK) {
        find_top(&s);
        if (opts->json)
            status = print_json(&s, &pass);
        else
            print_text(&s, &pass);
    }
    pl_mem_free(s.counts);
    return status;
}
