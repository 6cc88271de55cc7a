#include "app/view/layout.h"

#include "support/unit.h"

#include <math.h>

static const pl_progress_view trained = {
    .step = 3120,
    .end_step = 7500,
    .per_epoch = 1875,
    .loss = 0.30274,
    .test_loss = 0.2803,
    .test_accuracy = 0.9216,
    .rate = 658000,
    .left_s = 12.2,
};

static int block(const pl_progress_view *view, int columns, int rows,
                 char text[PL_VIEW_BLOCK_BYTES])
{
    int widths[PL_VIEW_ROWS];
    int count = pl_layout_block(view, columns, rows, text, widths);
    const char *row = text;
    for (int i = 0; i < count; i++) {
        size_t length = strcspn(row, "\n");
        assert_int_equal(widths[i], length);
        assert_true((int)length < columns);
        row += length + 1;
    }
    return count;
}

static void layout_shows_everything_at_80_columns(void **state)
{
    (void)state;
    char text[PL_VIEW_BLOCK_BYTES];
    assert_int_equal(1, block(&trained, 80, 24, text));
    assert_string_equal("epoch 2/4  3120/7500  [===>    ]  loss 0.3027  "
                        "test 92.16 %  658 k/s  ETA 0:12",
                        text);
    assert_int_equal(1, block(&trained, 120, 24, text));
    assert_string_equal("epoch 2/4  3120/7500  "
                        "[============>                 ]  loss 0.3027  test "
                        "92.16 %  658 k ex/s  ETA 0:12",
                        text);
    assert_int_equal(1, block(&trained, 40, 24, text));
    assert_string_equal("2/4  3120/7500  loss 0.3027  ETA 0:12", text);
}

static void layout_fits_any_width(void **state)
{
    (void)state;
    char text[PL_VIEW_BLOCK_BYTES], line[PL_VIEW_BYTES];
    pl_progress_view view = trained;
    view.step = view.end_step = view.dropped = INT64_MAX;
    view.loss = view.test_loss = view.test_accuracy = view.rate = 1e300;
    view.left_s = 1e300;
    view.workers = 1000;
    for (int i = 0; i < PL_VIEW_WORKERS; i++)
        view.worker[i] = (pl_progress_worker) { .index = 1000000,
                                                .steps = INT64_MAX,
                                                .rate = 1e300,
                                                .waiting = 1e300,
                                                .restarts = INT32_MAX };
    pl_epoch epoch = { .epoch = INT64_MAX,
                       .seconds = 1e300,
                       .loss = 1e300,
                       .test_loss = 1e300,
                       .test_accuracy = 1e300 };
    for (int columns = 3; columns < PL_VIEW_BYTES; columns++) {
        assert_true(block(&view, columns, 50, text) >= 1);
        pl_layout_epoch(&view, &epoch, columns, line);
        assert_true((int)strlen(line) <= columns);
    }
    pl_layout_line(&view, line);
    assert_true(strlen(line) < PL_VIEW_BYTES);
}

static void layout_names_activities_other_than_training(void **state)
{
    (void)state;
    char text[PL_VIEW_BLOCK_BYTES], line[PL_VIEW_BYTES];
    pl_progress_view view = trained;
    snprintf(view.doing, sizeof view.doing, "testing");
    block(&view, 80, 24, text);
    assert_non_null(strstr(text, "test 92.16 %  testing"));
    assert_null(strstr(text, "ETA"));
    block(&view, 40, 24, text);
    assert_non_null(strstr(text, "testing"));
    pl_layout_line(&view, line);
    assert_string_equal("step 3120/7500  epoch 2/4  loss 0.3027  test loss "
                        "0.2803  accuracy 92.16 %  testing",
                        line);
}

static void layout_omits_unknown_values(void **state)
{
    (void)state;
    char text[PL_VIEW_BLOCK_BYTES], line[PL_VIEW_BYTES];
    pl_progress_view view = {
        .loss = NAN, .test_loss = NAN, .test_accuracy = NAN, .left_s = NAN
    };
    block(&view, 80, 24, text);
    assert_string_equal("step 0  0 ex/s", text);
    pl_layout_line(&view, line);
    assert_string_equal("step 0  0 ex/s", line);
}

static void layout_counts_a_finished_epoch_as_such(void **state)
{
    (void)state;
    char text[PL_VIEW_BLOCK_BYTES];
    pl_progress_view view = trained;
    view.step = 1875;
    block(&view, 80, 24, text);
    assert_int_equal(0, strncmp(text, "epoch 1/4", 9));
    view.step = 1876;
    block(&view, 80, 24, text);
    assert_int_equal(0, strncmp(text, "epoch 2/4", 9));
    view.step = 0;
    block(&view, 80, 24, text);
    assert_int_equal(0, strncmp(text, "epoch 1/4", 9));
}

static void layout_gives_workers_rows_where_there_is_room(void **state)
{
    (void)state;
    char text[PL_VIEW_BLOCK_BYTES];
    pl_progress_view view = trained;
    view.workers = 3;
    view.dropped = 1;
    for (int i = 0; i < 3; i++)
        view.worker[i] = (pl_progress_worker) {
            .index = i, .steps = 1040, .rate = 21000, .waiting = 0.25
        };
    view.worker[1].restarts = 1;
    snprintf(view.worker[2].state, sizeof view.worker[2].state, "restarting");
    assert_int_equal(5, block(&view, 80, 24, text));
    assert_non_null(
        strstr(text, "\n  worker 0    step 1040      21.0 k ex/s  waiting  "
                     "25 %\n"));
    assert_non_null(strstr(text, "waiting  25 %  1 restart\n"));
    assert_non_null(
        strstr(text, "\n  worker 2    step 1040      restarting\n"));
    assert_non_null(strstr(text, "\n  1 gradient dropped"));
    /* Of 6 rows 2 are for workers; of 3, none. */
    assert_int_equal(4, block(&view, 80, 6, text));
    assert_non_null(strstr(text, "\n  and 1 more worker  1 gradient dropped"));
    assert_int_equal(1, block(&view, 80, 3, text));
    assert_null(strstr(text, "worker"));
}

static void layout_of_an_epoch_stays_short(void **state)
{
    (void)state;
    char line[PL_VIEW_BYTES];
    const pl_epoch epoch = { .epoch = 2,
                             .step = 3750,
                             .seconds = 3.04,
                             .examples_per_s = 19700,
                             .loss = 0.3912,
                             .test_loss = 0.3011,
                             .test_accuracy = 0.9157 };
    pl_layout_epoch(&trained, &epoch, 80, line);
    assert_string_equal("epoch 2/4  loss 0.3912  test loss 0.3011  accuracy "
                        "91.57 %  19.7 k ex/s  3.0 s",
                        line);
    pl_layout_epoch(&trained, &epoch, 40, line);
    assert_string_equal("epoch 2/4  loss 0.3912  91.57 %", line);
    /* The epoch's own rate, also where the job's at this moment is another. */
    pl_progress_view job = trained;
    job.workers = 2;
    job.rate = 1e6;
    pl_layout_epoch(&job, &epoch, 80, line);
    assert_non_null(strstr(line, "19.7 k ex/s"));
}

static void layout_writes_numbers_and_times(void **state)
{
    (void)state;
    char text[16];
    assert_string_equal("950", pl_layout_number(950, text));
    assert_string_equal("12.5 k", pl_layout_number(12500, text));
    assert_string_equal("3.21 M", pl_layout_number(3.21e6, text));
    assert_string_equal("0:00", pl_layout_time(-3, text));
    assert_string_equal("0:07", pl_layout_time(7.2, text));
    assert_string_equal("12:30", pl_layout_time(750, text));
    assert_string_equal("3:04:05", pl_layout_time(11045, text));
}

static void layout_breaks_lines_between_words(void **state)
{
    (void)state;
    assert_int_equal(11, pl_layout_break("one two six", 11));
    assert_int_equal(7, pl_layout_break("one two six", 10));
    assert_int_equal(7, pl_layout_break("one two six", 7));
    assert_int_equal(3, pl_layout_break("one two six", 6));
    assert_int_equal(6, pl_layout_break("longer word", 4));
    assert_int_equal(6, pl_layout_break("longer", 4));
    assert_int_equal(11, pl_layout_break("one two six", 0));
    assert_int_equal(0, pl_layout_break("", 10));
    assert_int_equal(2, pl_layout_break("of 17 % of", 6));
    assert_int_equal(7, pl_layout_break("of 17 % of", 8));
    assert_int_equal(1, pl_layout_break(": 2.6 x as", 6));
    assert_int_equal(2, pl_layout_break("17 % of", 3)); /* no other place */
}

UNIT_TESTS(cmocka_unit_test(layout_shows_everything_at_80_columns),
           cmocka_unit_test(layout_fits_any_width),
           cmocka_unit_test(layout_names_activities_other_than_training),
           cmocka_unit_test(layout_omits_unknown_values),
           cmocka_unit_test(layout_counts_a_finished_epoch_as_such),
           cmocka_unit_test(layout_gives_workers_rows_where_there_is_room),
           cmocka_unit_test(layout_of_an_epoch_stays_short),
           cmocka_unit_test(layout_breaks_lines_between_words),
           cmocka_unit_test(layout_writes_numbers_and_times))
