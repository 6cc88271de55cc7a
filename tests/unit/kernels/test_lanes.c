/* The batch-in-lanes layout: conversion in both directions, and padding. */
#include "support/kernels.h"

#include <math.h>

#define MOST_ROWS 40
#define MOST_ROW  70

typedef struct fixture {
    uint8_t bytes[MOST_ROWS][MOST_ROW];
    float values[MOST_ROWS][MOST_ROW];
    uint32_t index[MOST_ROWS];
} fixture;

static fixture f;

static int setup(void **state)
{
    (void)state;
    for (int r = 0; r < MOST_ROWS; r++) {
        f.index[r] = (uint32_t)((r * 7 + 3) % MOST_ROWS);
        for (int i = 0; i < MOST_ROW; i++) {
            f.bytes[r][i] = (uint8_t)(r * 31 + i * 7);
            f.values[r][i] = (float)(r * 100 + i) - 50.5f;
        }
    }
    return 0;
}

static double value_at(const pl_view *view, int64_t r, int64_t i)
{
    double x = view->dtype == PL_UINT8 ? (double)pl_view_row_u8(view, r)[i]
                                       : (double)pl_view_row_f32(view, r)[i];
    return (double)(float)((float)x * view->scale);
}

static void check(const pl_kernels *table, const pl_view *view, int64_t rows,
                  int64_t row)
{
    static float lanes[2 * MOST_ROWS * MOST_ROW], plain[MOST_ROWS * MOST_ROW];
    int64_t width = table->lanes;
    int64_t groups = (rows + width - 1) / width;
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++)
        lanes[i] = -1;
    table->to_lanes(rows, row, view, lanes);
    for (int64_t r = 0; r < groups * width; r++)
        for (int64_t i = 0; i < row; i++) {
            double expected = r < rows ? value_at(view, r, i) : 0;
            float got = lanes[(r / width * row + i) * width + r % width];
            assert_true((double)got == expected);
        }
    assert_true(lanes[groups * row * width] == -1); /* nothing beyond */

    plain[rows * row] = -1;
    table->from_lanes(rows, row, lanes, plain);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < row; i++)
            assert_true((double)plain[r * row + i] == value_at(view, r, i));
    assert_true(plain[rows * row] == -1);
}

static void lanes_hold_every_row_and_zeros(void **state)
{
    (void)state;
    static const int64_t some_rows[] = { 1, 3, 8, 15, 16, 17, 32, 39 };
    FOR_EACH_TABLE(table)
    for (size_t i = 0; i < sizeof some_rows / sizeof *some_rows; i++)
        for (int64_t row = 1; row < MOST_ROW; row += row < 20 ? 1 : 13)
            for (int v = 0; v < 4; v++) {
                pl_view view = {
                    .data =
                        v & 1 ? (const void *)f.bytes : (const void *)f.values,
                    .index = v & 2 ? f.index : NULL,
                    .stride = MOST_ROW,
                    .dtype = v & 1 ? PL_UINT8 : PL_FLOAT32,
                    .scale = v & 1 ? 1.0f / 255 : 1.0f,
                };
                check(table, &view, some_rows[i], row);
            }
}

/* A blow-up must reach the loss, wherever in a window it is. */
static void max_pool_propagates_nan(void **state)
{
    (void)state;
    const pl_window w = { 1, 2, 2, 1, 1, 2, 2 };
    FOR_EACH_TABLE(table)
    for (int at = 0; at < 4; at++) {
        float src[4 * 16], dst[16];
        for (int i = 0; i < 4 * table->lanes; i++)
            src[i] = i / table->lanes == at ? NAN : (float)i;
        table->max_pool(&w, 1, src, dst);
        for (int l = 0; l < table->lanes; l++)
            assert_true(isnan(dst[l]));
    }
}

/* Likewise where pooling is one step with the convolution before it. */
static void conv_block_propagates_nan(void **state)
{
    (void)state;
    const pl_conv_block block = {
        .conv = { 1, 2, 2, 1, 2, 2, 1, 1, 1, 0 },
        .activation = PL_ACTIVATION_RELU,
        .pooling = PL_POOLING_MAX,
        .window = { 1, 2, 2, 1, 1, 2, 2 },
    };
    FOR_EACH_TABLE(table)
    for (int at = 0; at < 4 && table->conv_block != NULL; at++) {
        float src[4 * 16], dst[16], scratch[1024], weight = 1;
        int32_t index[16];
        assert_true(pl_conv_block_scratch(&block, table->lanes) <= 1024);
        for (int i = 0; i < 4 * table->lanes; i++)
            src[i] = i / table->lanes == at ? NAN : (float)i;
        table->conv_block(&block, 1, src, &weight, NULL, scratch, dst, index);
        for (int l = 0; l < table->lanes; l++) {
            assert_true(isnan(dst[l]));
            assert_int_equal(at, index[l]);
        }
    }
}

UNIT_TESTS(cmocka_unit_test_setup_teardown(lanes_hold_every_row_and_zeros,
                                           setup, NULL),
           cmocka_unit_test(max_pool_propagates_nan),
           cmocka_unit_test(conv_block_propagates_nan))
