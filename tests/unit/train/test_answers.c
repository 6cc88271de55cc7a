#include "train/answers.h"

#include "base/text/base64.h"
#include "support/unit.h"

#include <string.h>

static pl_batch batch_of(int64_t rows, const uint8_t *pixels, int64_t row,
                         const int32_t *labels)
{
    return (pl_batch) {
        .rows = rows,
        .features = { .data = pixels,
                      .stride = row,
                      .dtype = PL_UINT8,
                      .scale = 1.0f / 255 },
        .labels = { .data = labels, .stride = 1, .dtype = PL_INT32 },
    };
}

static void answers_are_counted_by_label_and_prediction(void **state)
{
    (void)state;
    static const uint8_t pixels[4 * 4];
    static const int32_t labels[] = { 0, 1, 1, 2 };
    static const pl_answer answers[] = {
        { 0, 0 }, { 2, .5f }, { 1, 0 }, { 0, .9f }
    };
    pl_confusion c = { 0 };
    pl_batch batch = batch_of(4, pixels, 4, labels);
    assert_ok(pl_answers_begin(&c, 3));
    assert_ok(pl_answers_add(&c, &batch, 100, PL_SHAPE(2, 2), answers));
    static const int64_t expected[] = { 1, 0, 0, 0, 1, 1, 1, 0, 0 };
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(expected[i], c.counts[i].examples);
    assert_int_equal(2, c.wrong_count);
    assert_int_equal(103, c.wrong[0].index); /* the surest first */
    assert_int_equal(2, c.wrong[0].label);
    assert_int_equal(101, c.wrong[1].index);
    pl_class_result result = pl_confusion_class(&c, 1);
    assert_int_equal(2, result.examples);
    assert_int_equal(1, result.predicted);
    assert_true(result.precision == 1 && result.recall == 0.5);
    assert_int_equal(2, result.taken_for);
    assert_ok(pl_answers_begin(&c, 3)); /* of another test */
    assert_int_equal(0, c.wrong_count + (size_t)c.counts[0].examples);
    pl_confusion_close(&c);
}

/* More than are kept, in an order that replaces most of them. */
static void answers_keep_the_surest_mistakes(void **state)
{
    (void)state;
    static const uint8_t pixels[16];
    static const int32_t label;
    pl_confusion c = { 0 };
    pl_batch batch = batch_of(1, pixels, 4, &label);
    assert_ok(pl_answers_begin(&c, 2));
    for (int i = 0; i < 100; i++) {
        pl_answer answer = { 1, (float)(i * 37 % 100) / 100 };
        assert_ok(pl_answers_add(&c, &batch, i, PL_SHAPE(2, 2), &answer));
    }
    assert_int_equal(PL_CONFUSION_EXAMPLES, c.wrong_count);
    for (size_t i = 0; i < c.wrong_count; i++) {
        assert_int_equal(99 - i, c.wrong[i].index * 37 % 100);
        assert_non_null(c.wrong[i].pixels);
    }
    pl_confusion_close(&c);
}

static void assert_pixels(const pl_confusion *c, const uint8_t *expected,
                          size_t count)
{
    uint8_t got[PL_CONFUSION_SIDE * PL_CONFUSION_SIDE * 3];
    size_t bytes;
    assert_ok(pl_base64_decode(got, sizeof got, &bytes, c->wrong[0].pixels));
    assert_int_equal(count, bytes);
    assert_memory_equal(expected, got, count);
}

static void answers_keep_images_as_bytes(void **state)
{
    (void)state;
    static const uint8_t gray[] = { 0, 100, 200, 255 };
    static const float colours[] = { -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 };
    static const uint8_t stretched[] = { 0,   128, 128, 128, 128, 128,
                                         128, 128, 128, 128, 128, 255 };
    static const int32_t label;
    static const pl_answer answer = { 1, .5f };
    pl_confusion c = { 0 };
    pl_batch batch = batch_of(1, gray, 4, &label);
    assert_ok(pl_answers_begin(&c, 2));
    assert_ok(pl_answers_add(&c, &batch, 0, PL_SHAPE(2, 2), &answer));
    assert_pixels(&c, gray, 4);
    batch.features = (pl_view) {
        .data = colours, .stride = 12, .dtype = PL_FLOAT32, .scale = 1
    };
    assert_ok(pl_answers_begin(&c, 2));
    assert_ok(pl_answers_add(&c, &batch, 0, PL_SHAPE(3, 2, 2), &answer));
    assert_int_equal(3, c.channels);
    assert_pixels(&c, stretched, 12);
    assert_ok(pl_answers_begin(&c, 2)); /* not an image */
    assert_ok(pl_answers_add(&c, &batch, 0, PL_SHAPE(12), &answer));
    assert_null(c.wrong[0].pixels);
    pl_confusion_close(&c);
}

static void answers_make_large_images_smaller(void **state)
{
    (void)state;
    static uint8_t large[130 * 200];
    static const int32_t label;
    static const pl_answer answer = { 1, .5f };
    static uint8_t expected[32 * 50];
    pl_confusion c = { 0 };
    pl_batch batch = batch_of(1, large, sizeof large, &label);
    memset(large, 40, sizeof large);
    memset(expected, 40, sizeof expected);
    for (int y = 0; y < 4; y++) /* one square of 4 by 4 */
        memset(large + y * 200 + 4, 80, 4);
    expected[1] = 80;
    assert_ok(pl_answers_begin(&c, 2));
    assert_ok(pl_answers_add(&c, &batch, 0, PL_SHAPE(130, 200), &answer));
    assert_int_equal(50, c.width);
    assert_int_equal(32, c.height);
    assert_pixels(&c, expected, sizeof expected);
    pl_confusion_close(&c);
}

static void answers_of_yes_or_no_are_two_classes(void **state)
{
    (void)state;
    static const int32_t labels[] = { 0, 1, 1, 0 };
    static const float probs[] = { .4f, .5f, .1f, .9f };
    pl_confusion c = { 0 };
    pl_batch batch = batch_of(4, NULL, 0, labels);
    assert_ok(pl_answers_begin(&c, 2));
    pl_answers_binary(&c, &batch, probs);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(1, c.counts[i].examples);
    pl_confusion_close(&c);
}

static pl_status fill(pl_confusion *c)
{
    static const uint8_t pixels[4];
    static const int32_t label;
    static const pl_answer answer = { 1, .5f };
    pl_batch batch = batch_of(1, pixels, 4, &label);
    pl_status status = pl_answers_begin(c, 2);
    if (status == PL_OK)
        status = pl_answers_add(c, &batch, 0, PL_SHAPE(2, 2), &answer);
    if (status != PL_OK)
        pl_confusion_close(c);
    return status;
}

static void answers_survive_failed_allocations(void **state)
{
    (void)state;
    pl_confusion c = { 0 };
    assert_survives_failed_allocations(fill(&c), pl_confusion_close(&c));
}

UNIT_TESTS(cmocka_unit_test(answers_are_counted_by_label_and_prediction),
           cmocka_unit_test(answers_keep_the_surest_mistakes),
           cmocka_unit_test(answers_keep_images_as_bytes),
           cmocka_unit_test(answers_make_large_images_smaller),
           cmocka_unit_test(answers_of_yes_or_no_are_two_classes),
           cmocka_unit_test(answers_survive_failed_allocations))
