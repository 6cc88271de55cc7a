#include "support/folder.h"
#include "support/unit.h"

#include "base/hash/crc32c.h"
#include "base/log.h"
#include "base/thread.h"
#include "data/digits/digits.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAYLOAD (PL_DIGITS_TEST * (PL_DIGITS_PIXELS + 1))
#define CACHE   "digits-test.cache"

static uint32_t checksum_of(uint32_t first, uint32_t count)
{
    uint32_t crc = 0;
    for (uint32_t i = first; i < first + count; i++) {
        uint8_t image[PL_DIGITS_PIXELS + 1];
        image[PL_DIGITS_PIXELS] = pl_digits_draw(image, i);
        crc = pl_crc32c(crc, image, sizeof image);
    }
    return crc;
}

/* The same bytes on every machine.  When drawing changes on purpose, raise
 * PL_DIGITS_GENERATOR, too. */
static void digits_are_the_golden_ones(void **state)
{
    (void)state;
    assert_int_equal(0x02827f4e, checksum_of(0, 100));
    assert_int_equal(0xe075d9dc, checksum_of(PL_DIGITS_TRAIN, 100));
}

static void digits_have_equal_shares_of_each_class(void **state)
{
    (void)state;
    pl_dataset *set;
    int counts[10] = { 0 }, repeats = 0;
    assert_ok(pl_digits_open(&set, PL_SPLIT_TEST, &(pl_source_opts) { 0 }));
    assert_int_equal(10000, set->count);
    assert_int_equal(10, set->classes);
    assert_true(pl_shape_equal(PL_SHAPE(28, 28), set->shape));
    for (int64_t i = 0; i < set->count; i++) {
        counts[pl_view_label(&set->labels, i)]++;
        repeats += i >= 10 && pl_view_label(&set->labels, i) ==
                                  pl_view_label(&set->labels, i - 10);
    }
    for (int c = 0; c < 10; c++)
        assert_int_equal(1000, counts[c]);
    assert_in_range(repeats, 800, 1200); /* no period of 10 */
    pl_dataset_free(set);
}

static void digits_stay_clear_of_an_empty_or_full_image(void **state)
{
    (void)state;
    uint8_t image[PL_DIGITS_PIXELS];
    for (uint32_t i = 0; i < 2000; i++) {
        int bright = 0;
        pl_digits_draw(image, i);
        for (int p = 0; p < PL_DIGITS_PIXELS; p++)
            bright += image[p] > 127;
        assert_in_range(bright, 15, 400);
    }
}

static void digits_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    pl_dataset *one, *three;
    assert_ok(pl_digits_open(&one, PL_SPLIT_TEST,
                             &(pl_source_opts) { .threads = 1 }));
    assert_ok(pl_digits_open(&three, PL_SPLIT_TEST,
                             &(pl_source_opts) { .threads = 3 }));
    assert_memory_equal(one->features.data, three->features.data,
                        PL_DIGITS_TEST * PL_DIGITS_PIXELS);
    assert_memory_equal(one->labels.data, three->labels.data, PL_DIGITS_TEST);
    uint8_t image[PL_DIGITS_PIXELS];
    uint8_t label = pl_digits_draw(image, PL_DIGITS_TRAIN + 777);
    assert_int_equal(label, pl_view_label(&one->labels, 777));
    assert_memory_equal(image, pl_view_row_u8(&one->features, 777),
                        sizeof image);
    pl_dataset_free(one);
    pl_dataset_free(three);
    assert_int_equal(0, pl_mem_live());
}

static uint32_t open_and_check(const char *folder)
{
    pl_dataset *set;
    assert_ok(pl_digits_open(&set, PL_SPLIT_TEST,
                             &(pl_source_opts) { .cache_dir = folder }));
    uint32_t crc =
        pl_crc32c(0, set->features.data, PL_DIGITS_TEST * PL_DIGITS_PIXELS);
    crc = pl_crc32c(crc, set->labels.data, PL_DIGITS_TEST);
    pl_dataset_free(set);
    return crc;
}

/* No temporary file is left. */
static void assert_only_the_cache(const char *folder)
{
    size_t count;
    char **names;
    assert_ok(pl_file_list(&names, &count, folder));
    assert_int_equal(1, count);
    assert_string_equal(CACHE, names[0]);
    pl_mem_free(names);
}

static ino_t identity(const char *path)
{
    struct stat info;
    assert_int_equal(0, stat(path, &info));
    return info.st_ino;
}

static void digits_cache_is_used_again(void **state)
{
    const char *folder = test_path(*state, "new/folder");
    const char *path = test_path(folder, CACHE);
    uint32_t crc = open_and_check(folder);
    ino_t before = identity(path);
    assert_int_equal(crc, open_and_check(folder));
    assert_int_equal(before, identity(path));
    struct stat info;
    assert_int_equal(0, stat(path, &info));
    assert_int_equal(64 + PAYLOAD, info.st_size);
}

/* Change one byte of a file, or cut it there. */
static void damage(const char *path, long at, bool cut)
{
    if (cut) {
        assert_int_equal(0, truncate(path, at));
        return;
    }
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(0, fseek(file, at, SEEK_SET));
    int byte = fgetc(file);
    assert_int_equal(0, fseek(file, at, SEEK_SET));
    fputc(byte ^ 1, file);
    assert_int_equal(0, fclose(file));
}

static void digits_cache_that_is_broken_or_old_is_regenerated(void **state)
{
    const char *path = test_path(*state, CACHE);
    static const struct {
        long at;
        bool cut;
    } cases[] = {
        { 0, false },            /* magic */
        { 12, false },           /* generator */
        { 40, false },           /* checksum */
        { 63, false },           /* padding */
        { 64 + 5000, false },    /* an image */
        { 63 + PAYLOAD, false }, /* a label */
        { 0, true },
        { 40, true },
        { 63 + PAYLOAD, true },
    };
    uint32_t crc = open_and_check(*state);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        damage(path, cases[c].at, cases[c].cut);
        assert_int_equal(crc, open_and_check(*state));
        ino_t fresh = identity(path);
        assert_int_equal(crc, open_and_check(*state));
        assert_int_equal(fresh, identity(path)); /* whole again */
    }
}

static void open_once(void *arg, int item, int thread)
{
    (void)item, (void)thread;
    pl_dataset *set;
    pl_source_opts opts = { .cache_dir = arg, .threads = 1 };
    if (pl_digits_open(&set, PL_SPLIT_TEST, &opts) == PL_OK)
        pl_dataset_free(set);
}

static void digits_cache_may_be_made_twice_at_once(void **state)
{
    pl_pool *pool;
    assert_ok(pl_pool_new(&pool, 3));
    pl_pool_run(pool, 3, open_once, *state);
    pl_pool_free(pool);

    const char *path = test_path(*state, CACHE);
    ino_t whole = identity(path);
    open_and_check(*state);
    assert_int_equal(whole, identity(path));
    assert_only_the_cache(*state);
}

static void count_warnings(void *context, pl_log_level level, const char *line)
{
    if (level == PL_LOG_WARN && strstr(line, "cache") != NULL)
        ++*(int *)context;
}

static void digits_do_without_a_cache_and_warn_once(void **state)
{
    const char *file = test_path(*state, "a-file");
    assert_ok(pl_file_replace(file, "x", 1));
    const char *folder = test_path(file, "cache"); /* cannot be made */
    int warnings = 0;
    pl_log_set(count_warnings, &warnings, PL_LOG_DEBUG);
    for (pl_split split = PL_SPLIT_TRAIN; split <= PL_SPLIT_TEST; split++) {
        pl_dataset *set;
        assert_ok(pl_digits_open(&set, split,
                                 &(pl_source_opts) { .cache_dir = folder }));
        pl_dataset_free(set);
    }
    pl_log_set(NULL, NULL, PL_LOG_INFO);
    assert_int_equal(1, warnings);
}

/* Whichever call to the system fails, the images come. */
static void digits_survive_each_failed_system_call(void **state)
{
    uint32_t crc = open_and_check(*state);
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        assert_ok(pl_file_remove_all(test_path(*state, CACHE)));
        pl_file_fail_at(nth, ENOSPC);
        uint32_t found = open_and_check(*state);
        failed = pl_file_fail_off();
        assert_int_equal(crc, found);
    }
    assert_only_the_cache(*state);
}

static void digits_open_survives_each_failed_allocation(void **state)
{
    pl_dataset *set;
    pl_source_opts opts = { .threads = 2 };
    assert_survives_failed_allocations(
        pl_digits_open(&set, PL_SPLIT_TEST, &opts), pl_dataset_free(set));
    opts.cache_dir = *state;
    assert_survives_failed_allocations(
        pl_digits_open(&set, PL_SPLIT_TEST, &opts), pl_dataset_free(set));
}

UNIT_TESTS(cmocka_unit_test(digits_are_the_golden_ones),
           cmocka_unit_test(digits_have_equal_shares_of_each_class),
           cmocka_unit_test(digits_stay_clear_of_an_empty_or_full_image),
           cmocka_unit_test(digits_do_not_depend_on_the_number_of_threads),
           TEST_IN_FOLDER(digits_cache_is_used_again),
           TEST_IN_FOLDER(digits_cache_that_is_broken_or_old_is_regenerated),
           TEST_IN_FOLDER(digits_cache_may_be_made_twice_at_once),
           TEST_IN_FOLDER(digits_do_without_a_cache_and_warn_once),
           TEST_IN_FOLDER(digits_survive_each_failed_system_call),
           TEST_IN_FOLDER(digits_open_survives_each_failed_allocation))
