/* Checkpoints written by several holders of the parameters, and read by others.
 */
#include "state/partition.h"

#include "support/checkpoint.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* The block: weight [2, 3] at 0, a gap, bias [3] at 16; a velocity beside. */
#define FLOATS       19
#define WEIGHT       6
#define BIAS         3
#define BIAS_AT      16
#define HOLDERS_MOST 4
#define STEP_1       "step-0000000001"
#define STEP_2       "step-0000000002"

static warnings seen;

static int set_up(void **state)
{
    seen = (warnings) { 0 };
    pl_log_set(warnings_sink, &seen, PL_LOG_INFO);
    return test_folder_make(state);
}

static int tear_down(void **state)
{
    pl_log_set(NULL, NULL, PL_LOG_INFO);
    return test_folder_remove(state);
}

#define PARTITION_TEST(test)                                                   \
    cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* One holder of the elements [first, first + count) of the block. */
typedef struct holder {
    int64_t first, count;
    float params[FLOATS], velocity[FLOATS];
    pl_frozen *frozen;
    pl_partition *partition;
} holder;

static pl_planes planes_of(holder *h)
{
    return (pl_planes) { .count = 2,
                         .data = { h->params, h->velocity },
                         .slots = { NULL, "velocity" } };
}

/* Parameter i of step s is 1000 s + i, its velocity half of that. */
static void fill(holder *h, int64_t step)
{
    for (int64_t i = 0; i < h->count; i++) {
        h->params[i] = (float)(1000 * step + h->first + i);
        h->velocity[i] = h->params[i] / 2;
    }
}

static bool is_gap(int64_t i)
{
    return i >= WEIGHT && i < BIAS_AT;
}

static void assert_filled(holder *h, int64_t step)
{
    for (int64_t i = 0; i < h->count; i++) {
        float value = (float)(1000 * step + h->first + i);
        if (is_gap(h->first + i))
            continue;
        assert_true(h->params[i] == value);
        assert_true(h->velocity[i] == value / 2);
    }
}

/* The bounds of holder `index` of `of`: any cut will do. */
static int64_t bound(int32_t index, int32_t of)
{
    return (int64_t)FLOATS * index / of;
}

static pl_status open_memory(holder *h, int32_t index, int32_t of)
{
    *h = (holder) { .first = bound(index, of) };
    h->count = bound(index + 1, of) - h->first;
    return pl_frozen_new(&h->frozen, &(pl_frozen_opts) {
                                         .planes = planes_of(h),
                                         .count = h->count,
                                         .piece = 2,
                                     });
}

static void close_holder(holder *h)
{
    pl_partition_free(h->partition);
    pl_frozen_free(h->frozen);
}

static pl_status open_partition(holder *h, int32_t index, int32_t of,
                                const char *request)
{
    return pl_partition_new(&h->partition, request, strlen(request),
                            &(pl_partition_opts) {
                                .index = index,
                                .of = of,
                                .first = h->first,
                                .count = h->count,
                                .planes = planes_of(h),
                            });
}

static const char *request_of(char text[1024], const char *checkpoints,
                              int64_t step)
{
    snprintf(text, 1024,
             "{\"checkpoints\": \"%s\", \"folder\": \"step-%010lld\", "
             "\"step\": %lld, \"keep\": 3, \"model\": \"m\", \"settings\": "
             "{}, \"state\": {}, \"tensors\": [{\"name\": \"weight\", "
             "\"shape\": [2, 3], \"first\": 0}, {\"name\": \"bias\", "
             "\"shape\": [3], \"first\": 16}]}",
             checkpoints, (long long)step, (long long)step);
    return text;
}

static void open_holder(holder *h, int32_t index, int32_t of,
                        const char *checkpoints, int64_t step)
{
    char text[1024];
    assert_ok(open_memory(h, index, of));
    assert_ok(
        open_partition(h, index, of, request_of(text, checkpoints, step)));
}

static pl_status write_partition(holder *h, pl_manifest_shard *shard)
{
    static const atomic_bool never;
    pl_frozen_begin(h->frozen);
    pl_status status =
        pl_partition_write(h->partition, h->frozen, &never, shard);
    pl_frozen_end(h->frozen);
    return status;
}

/* A checkpoint of `of` partitions; the memory changes while they are written.
 */
static void write_partitions(const char *checkpoints, int64_t step, int32_t of)
{
    holder h[HOLDERS_MOST];
    pl_manifest_shard shards[HOLDERS_MOST];
    char *folder;
    assert_ok(pl_checkpoint_begin(&folder, checkpoints, step));
    for (int32_t i = of - 1; i >= 0; i--) {
        open_holder(&h[i], i, of, checkpoints, step);
        fill(&h[i], step);
        assert_ok(write_partition(&h[i], &shards[i]));
    }
    assert_ok(pl_partition_commit(h[0].partition, shards));
    for (int32_t i = 0; i < of; i++)
        close_holder(&h[i]);
    pl_mem_free(folder);
}

/* Any number of holders reads what any other number wrote. */
static void partition_of_any_checkpoint_is_read(void **state)
{
    for (int32_t wrote = 1; wrote <= HOLDERS_MOST; wrote++) {
        write_partitions(*state, wrote, wrote);
        for (int32_t reads = 1; reads <= HOLDERS_MOST; reads++)
            for (int32_t i = 0; i < reads; i++) {
                holder h;
                open_holder(&h, i, reads, *state, wrote);
                assert_ok(pl_partition_load(h.partition));
                assert_filled(&h, wrote);
                close_holder(&h);
            }
    }
    assert_int_equal(0, seen.count);
    assert_int_equal(0, pl_mem_live());
}

/* The whole model, by a reader that knows nothing of partitions; -1: no
 * checkpoint. */
static int64_t found_step(const char *checkpoints)
{
    float weight[WEIGHT], bias[BIAS], fast[WEIGHT], slow[BIAS];
    const pl_checkpoint_tensor all[] = {
        { "weight", PL_SHAPE(2, 3), weight, 0, 0 },
        { "bias", PL_SHAPE(3), bias, 0, 0 },
        { "optimizer.velocity.weight", PL_SHAPE(2, 3), fast, 0, 0 },
        { "optimizer.velocity.bias", PL_SHAPE(3), slow, 0, 0 },
    };
    pl_checkpoint *found;
    pl_status status = pl_checkpoint_find(&found, checkpoints);
    if (status == PL_NOTFOUND)
        return -1;
    assert_int_equal(PL_OK, status);
    int64_t step = pl_checkpoint_manifest(found)->step;
    assert_ok(pl_checkpoint_load(found, all, 4));
    pl_checkpoint_free(found);
    for (int i = 0; i < WEIGHT; i++) {
        assert_true(weight[i] == (float)(1000 * step + i));
        assert_true(fast[i] == weight[i] / 2);
    }
    for (int i = 0; i < BIAS; i++) {
        assert_true(bias[i] == (float)(1000 * step + BIAS_AT + i));
        assert_true(slow[i] == bias[i] / 2);
    }
    return step;
}

/* Change a file of checkpoint 2 by `change`: each time the warning names it,
 * and checkpoint 1 is found. */
static void for_each_damage(const char *checkpoints, const char *path,
                            size_t (*change)(char *bytes, size_t count,
                                             size_t nth))
{
    pl_map map;
    assert_ok(pl_map_init(&map, path));
    char *copy = malloc(map.bytes);
    assert_non_null(copy);
    for (size_t i = 0; i < map.bytes; i++) {
        memcpy(copy, map.data, map.bytes);
        assert_ok(pl_file_replace(path, copy, change(copy, map.bytes, i)));
        seen.count = 0;
        assert_int_equal(1, found_step(checkpoints));
        assert_int_equal(1, seen.count);
        assert_non_null(strstr(seen.last, STEP_2));
    }
    assert_ok(pl_file_replace(path, map.data, map.bytes));
    assert_int_equal(2, found_step(checkpoints));
    free(copy);
    pl_map_close(&map);
}

static size_t cut(char *bytes, size_t count, size_t nth)
{
    (void)bytes, (void)count;
    return nth;
}

static size_t flip(char *bytes, size_t count, size_t nth)
{
    bytes[nth] = (char)(bytes[nth] ^ (1 << nth % 8));
    return count;
}

/* Every byte of every file. */
static void partition_damaged_anywhere_is_skipped(void **state)
{
    char **names;
    size_t count;
    write_partitions(*state, 1, 2);
    write_partitions(*state, 2, 3);
    assert_ok(pl_file_list(&names, &count, test_path(*state, STEP_2)));
    assert_int_equal(4, count);
    for (size_t i = 0; i < count; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/" STEP_2 "/%s", (char *)*state,
                 names[i]);
        for_each_damage(*state, path, cut);
        for_each_damage(*state, path, flip);
    }
    pl_mem_free(names);
}

static void partition_missing_is_reported(void **state)
{
    char **names;
    size_t count;
    write_partitions(*state, 1, 1);
    write_partitions(*state, 2, 3);
    assert_ok(pl_file_list(&names, &count, test_path(*state, STEP_2)));
    for (size_t i = 0; i < count; i++) {
        char path[512], away[560];
        snprintf(path, sizeof path, "%s/" STEP_2 "/%s", (char *)*state,
                 names[i]);
        snprintf(away, sizeof away, "%s.away", path);
        assert_ok(pl_file_rename(path, away));
        assert_int_equal(1, found_step(*state));
        assert_non_null(strstr(seen.last, names[i]));
        assert_ok(pl_file_rename(away, path));
        assert_int_equal(2, found_step(*state));
    }
    pl_mem_free(names);
}

/* Only what is taken is read: damage elsewhere does not matter to a partition.
 */
static void partition_checks_the_shards_it_takes_from(void **state)
{
    holder h;
    pl_map map;
    char path[512];
    write_partitions(*state, 2, 2);
    snprintf(path, sizeof path,
             "%s/" STEP_2 "/shard-00001-of-00002.safetensors", (char *)*state);
    assert_ok(pl_map_init(&map, path));
    char *copy = malloc(map.bytes);
    assert_non_null(copy);
    memcpy(copy, map.data, map.bytes);
    copy[map.bytes - 1] ^= 1;
    assert_ok(pl_file_replace(path, copy, map.bytes));
    open_holder(&h, 0, 3, *state, 2); /* within the first shard */
    assert_ok(pl_partition_load(h.partition));
    assert_filled(&h, 2);
    close_holder(&h);
    open_holder(&h, 2, 3, *state, 2);
    fill(&h, 7);
    assert_fails(PL_FORMAT, "shard-00001-of-00002.safetensors: checksum",
                 pl_partition_load(h.partition));
    assert_filled(&h, 7); /* nothing was touched */
    close_holder(&h);
    free(copy);
    pl_map_close(&map);
}

static void partition_that_is_not_finite_is_not_written(void **state)
{
    holder h;
    char *folder;
    pl_manifest_shard shard;
    assert_ok(pl_checkpoint_begin(&folder, *state, 2));
    open_holder(&h, 0, 1, *state, 2);
    fill(&h, 2);
    h.params[BIAS_AT] = INFINITY;
    assert_fails(PL_NUMERIC, "parameter bias is not finite",
                 write_partition(&h, &shard));
    h.params[BIAS_AT] = 0;
    h.params[WEIGHT] = NAN; /* in the gap */
    assert_ok(write_partition(&h, &shard));
    close_holder(&h);
    pl_mem_free(folder);
}

static void partition_cancelled_leaves_no_shard(void **state)
{
    holder h;
    char *folder, **names;
    size_t count;
    pl_manifest_shard shard;
    static const atomic_bool cancelled = true;
    assert_ok(pl_checkpoint_begin(&folder, *state, 2));
    open_holder(&h, 0, 1, *state, 2);
    pl_frozen_begin(h.frozen);
    assert_fails(PL_CLOSED, "no longer usable",
                 pl_partition_write(h.partition, h.frozen, &cancelled, &shard));
    pl_frozen_end(h.frozen);
    assert_ok(pl_file_list(&names, &count, folder));
    assert_int_equal(0, count);
    pl_mem_free(names);
    close_holder(&h);
    pl_mem_free(folder);
}

/* A server on another machine that has a folder of the same name. */
/* Training waited for a disk that took nothing, and would not wait longer. */
static void partition_given_up_leaves_no_shard(void **state)
{
    holder h;
    char *folder, **names;
    size_t count;
    pl_manifest_shard shard;
    assert_ok(pl_checkpoint_begin(&folder, *state, 2));
    open_holder(&h, 0, 1, *state, 2);
    pl_frozen_free(h.frozen);
    assert_ok(pl_frozen_new(&h.frozen, &(pl_frozen_opts) {
                                           .planes = planes_of(&h),
                                           .count = h.count,
                                           .piece = 2,
                                           .pool_bytes = 1,
                                           .patience_ms = 1,
                                       }));
    pl_frozen_begin(h.frozen);
    pl_frozen_before_change(h.frozen, 0, h.count);
    assert_fails(PL_IO, "the disk accepted no data for",
                 pl_partition_write(h.partition, h.frozen, NULL, &shard));
    pl_frozen_end(h.frozen);
    assert_ok(pl_file_list(&names, &count, folder));
    assert_int_equal(0, count);
    pl_mem_free(names);
    close_holder(&h);
    pl_mem_free(folder);
}

static void partition_written_elsewhere_is_noticed(void **state)
{
    holder h[2];
    char *folder;
    pl_manifest_shard shards[2];
    assert_ok(pl_checkpoint_begin(&folder, *state, 2));
    for (int i = 0; i < 2; i++) {
        open_holder(&h[i], i, 2, *state, 2);
        fill(&h[i], 2);
        assert_ok(write_partition(&h[i], &shards[i]));
    }
    assert_ok(pl_file_remove_all(test_path(folder, shards[1].name)));
    assert_fails(PL_NOTFOUND, "choose a --run that all machines share",
                 pl_partition_commit(h[0].partition, shards));
    assert_int_equal(-1, found_step(*state));
    assert_ok(pl_file_remove_all(folder));
    assert_fails(PL_NOTFOUND, "every parameter server must see",
                 write_partition(&h[1], &shards[1]));
    assert_fails(PL_NOTFOUND, "every parameter server must see",
                 pl_partition_load(h[1].partition));
    close_holder(&h[0]);
    close_holder(&h[1]);
    pl_mem_free(folder);
}

static void partition_of_an_impossible_request_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *request, *says;
    } wrong[] = {
        { "", "request" },
        { "[]", "checkpoints" },
        { "{}", "checkpoints" },
        { "{\"checkpoints\": \"a\", \"folder\": \"../b\"}",
          "the name of a checkpoint" },
        { "{\"checkpoints\": \"a\", \"folder\": \"b/c\"}",
          "the name of a checkpoint" },
        { "{\"checkpoints\": \"a\", \"folder\": \"\"}",
          "the name of a checkpoint" },
        { "{\"checkpoints\": \"a\", \"folder\": \"step-1\", \"tensors\": []}",
          "tensors: 0" },
        { "{\"checkpoints\": \"a\", \"folder\": \"step-1\", \"tensors\": [{}]}",
          "tensors: index 0: name" },
        { "{\"checkpoints\": \"a\", \"folder\": \"step-1\", \"tensors\": [{"
          "\"name\": \"w\", \"shape\": [0], \"first\": 0}]}",
          "shape" },
        { "{\"checkpoints\": \"a\", \"folder\": \"step-1\", \"tensors\": [{"
          "\"name\": \"w\", \"shape\": [9223372036854775807, 2], \"first\": "
          "0}]}",
          "shape" },
        { "{\"checkpoints\": \"a\", \"folder\": \"step-1\", \"tensors\": [{"
          "\"name\": \"w\", \"shape\": [4], \"first\": 2}, {\"name\": \"v\", "
          "\"shape\": [4], \"first\": 5}]}",
          "index 1: first" },
    };
    holder h;
    assert_ok(open_memory(&h, 0, 1));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(PL_FORMAT, wrong[i].says,
                     open_partition(&h, 0, 1, wrong[i].request));
    close_holder(&h);
}

static void partition_survives_each_failed_allocation(void **state)
{
    holder h;
    char text[1024], *folder;
    pl_manifest_shard shard;
    assert_ok(pl_checkpoint_begin(&folder, *state, 2));
    assert_ok(open_memory(&h, 0, 1));
    request_of(text, *state, 2);
    assert_survives_failed_allocations(open_partition(&h, 0, 1, text),
                                       pl_partition_free(h.partition));
    assert_ok(open_partition(&h, 0, 1, text));
    fill(&h, 2);
    assert_survives_failed_allocations(write_partition(&h, &shard), (void)0);
    assert_survives_failed_allocations(pl_partition_commit(h.partition, &shard),
                                       (void)0);
    assert_survives_failed_allocations(pl_partition_load(h.partition), (void)0);
    assert_filled(&h, 2);
    close_holder(&h);
    pl_mem_free(folder);
    pl_partition_free(NULL);
}

/* Whatever call fails, checkpoint 1 or the new one is found whole. */
static void partition_survives_each_failed_call(void **state)
{
    holder h;
    char *folder;
    pl_manifest_shard shard;
    bool failed = true;
    write_partitions(*state, 1, 1);
    for (long nth = 0; failed; nth++) {
        assert_ok(pl_file_remove_all(test_path(*state, STEP_2)));
        assert_ok(pl_checkpoint_begin(&folder, *state, 2));
        open_holder(&h, 0, 1, *state, 2);
        fill(&h, 2);
        pl_file_fail_at(nth, ENOSPC);
        pl_status status = write_partition(&h, &shard);
        if (status == PL_OK)
            status = pl_partition_commit(h.partition, &shard);
        failed = pl_file_fail_off();
        assert_true(status == PL_OK || (failed && status == PL_IO));
        int64_t step = found_step(*state);
        assert_true(step == 2 || (status != PL_OK && step == 1));
        close_holder(&h);
        pl_mem_free(folder);
        assert_true(nth < 200);
    }
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(PARTITION_TEST(partition_of_any_checkpoint_is_read),
           PARTITION_TEST(partition_damaged_anywhere_is_skipped),
           PARTITION_TEST(partition_missing_is_reported),
           PARTITION_TEST(partition_checks_the_shards_it_takes_from),
           PARTITION_TEST(partition_that_is_not_finite_is_not_written),
           PARTITION_TEST(partition_cancelled_leaves_no_shard),
           PARTITION_TEST(partition_given_up_leaves_no_shard),
           PARTITION_TEST(partition_written_elsewhere_is_noticed),
           PARTITION_TEST(partition_of_an_impossible_request_is_refused),
           PARTITION_TEST(partition_survives_each_failed_allocation),
           PARTITION_TEST(partition_survives_each_failed_call))
