#include "support/unit.h"

#include "observe/runs/table.h"

#include <math.h>
#include <string.h>

static pl_status make(pl_table **out)
{
    pl_table *table;
    PL_TRY(pl_table_new(&table, "runs", "Runs & <more>"));
    pl_table_add_column(table, &(pl_table_column) { .key = "run" });
    pl_table_add_column(table, &(pl_table_column) { .key = "test_accuracy",
                                                    .label = "accuracy",
                                                    .unit = "%",
                                                    .digits = 2 });
    pl_table_add_column(table, &(pl_table_column) { .key = "seconds",
                                                    .unit = "s",
                                                    .digits = 1,
                                                    .spread = true });
    pl_table_add_row(table);
    pl_table_put_text(table, "a,\"b\"");
    pl_table_put_number(table, 0.90625);
    pl_table_put_mean(table, 12.25, 0.5);
    pl_table_add_row(table);
    pl_table_put_text(table, "<i>x</i>");
    pl_table_put_number(table, NAN);
    pl_table_put_mean(table, NAN, 0);
    pl_status status = pl_table_status(table);
    if (status != PL_OK)
        pl_table_free(table);
    else
        *out = table;
    return status;
}

static void assert_made(void (*print)(const pl_table *, pl_buffer *),
                        const char *expected)
{
    pl_table *table;
    pl_buffer text = { 0 };
    assert_ok(make(&table));
    print(table, &text);
    assert_ok(pl_buffer_status(&text));
    assert_string_equal(expected, text.data);
    pl_buffer_close(&text);
    pl_table_free(table);
}

static void columns_are_aligned_in_a_terminal(void **state)
{
    (void)state;
    assert_made(pl_table_print, "run       accuracy [%]  seconds [s]\n"
                                "a,\"b\"            90.62   12.2 \xc2\xb1 0.5\n"
                                "<i>x</i>                           \n");
}

static void csv_has_every_digit_and_quotes(void **state)
{
    (void)state;
    assert_made(pl_table_csv, "run,test_accuracy,seconds,seconds_spread\r\n"
                              "\"a,\"\"b\"\"\",0.90625,12.25,0.5\r\n"
                              "<i>x</i>,,,0\r\n");
}

static void html_is_escaped(void **state)
{
    (void)state;
    assert_made(
        pl_table_html,
        "<table><caption>Runs &amp; &lt;more&gt;</caption><thead><tr><th "
        "class=text>run</th><th>accuracy [%]</th><th>seconds [s]</th></tr>\n"
        "</thead><tbody><tr><td class=text>a,&quot;b&quot;</td><td>90.62</td>"
        "<td>12.2 \xc2\xb1 0.5</td></tr>\n<tr><td class=text>&lt;i&gt;x&lt;/i"
        "&gt;</td><td></td><td></td></tr>\n</tbody></table>\n");
}

static void numbers_on_a_page_are_easy_to_compare(void **state)
{
    (void)state;
    pl_table *table;
    pl_buffer text = { 0 };
    assert_ok(pl_table_new(&table, "t", "t"));
    pl_table_add_column(table, &(pl_table_column) { .key = "batch" });
    pl_table_add_column(table, &(pl_table_column) { .key = "rate" });
    pl_table_add_column(
        table, &(pl_table_column) { .key = "s", .digits = 5, .spread = true });
    pl_table_add_row(table);
    pl_table_put_text(table, "500");
    pl_table_put_number(table, 1168177);
    pl_table_put_mean(table, 12345, 0);
    pl_table_html(table, &text);
    assert_non_null(strstr(text.data, "<tr><td>500</td><td>1,168,177</td>"
                                      "<td>12,345.00000</td></tr>"));
    pl_buffer_close(&text);
    pl_table_free(table);
}

static void json_has_an_object_a_row(void **state)
{
    (void)state;
    pl_table *table;
    pl_json *rows;
    char *text;
    assert_ok(make(&table));
    assert_ok(pl_table_json(table, &rows));
    assert_ok(pl_json_text(rows, 0, &text));
    assert_string_equal(
        "[{\"run\":\"a,\\\"b\\\"\",\"test_accuracy\":0.90625,\"seconds\":12.25,"
        "\"seconds_spread\":0.5},{\"run\":\"<i>x</i>\",\"test_accuracy\":null,"
        "\"seconds\":null,\"seconds_spread\":0.0}]",
        text);
    pl_mem_free(text);
    pl_json_free(rows);
    pl_table_free(table);
}

static void a_wide_table_is_cut_by_columns(void **state)
{
    (void)state;
    pl_table *table;
    pl_buffer text = { 0 };
    assert_ok(make(&table));
    pl_table_print_within(table, 22, &text);
    assert_string_equal("run       accuracy [%]\n"
                        "a,\"b\"            90.62\n"
                        "<i>x</i>              \n"
                        "\n"
                        "run       seconds [s]\n"
                        "a,\"b\"      12.2 \xc2\xb1 0.5\n"
                        "<i>x</i>             \n",
                        text.data);
    pl_buffer_close(&text);
    pl_table_free(table);
}

static void a_terminal_gets_no_control_characters(void **state)
{
    (void)state;
    pl_table *table;
    pl_buffer text = { 0 };
    assert_ok(pl_table_new(&table, "t", "t"));
    pl_table_add_column(table, &(pl_table_column) { .key = "k" });
    pl_table_add_row(table);
    pl_table_put_text(table, "a\033[2Jb\n");
    pl_table_print(table, &text);
    assert_string_equal("k\na\\x1b[2Jb\\x0a\n", text.data);
    pl_buffer_close(&text);
    pl_table_csv(table, &text);
    assert_string_equal("k\r\na\\x1b[2Jb\\x0a\r\n", text.data);
    pl_buffer_close(&text);
    pl_table_free(table);
}

static void a_spreadsheet_gets_no_formula(void **state)
{
    (void)state;
    pl_table *table;
    pl_buffer text = { 0 };
    assert_ok(pl_table_new(&table, "t", "t"));
    pl_table_add_column(table, &(pl_table_column) { .key = "k" });
    pl_table_add_row(table);
    pl_table_put_text(table, "=1+2");
    pl_table_csv(table, &text);
    assert_string_equal("k\r\n'=1+2\r\n", text.data);
    pl_buffer_close(&text);
    pl_table_free(table);
}

/* A row costs the same, however many there are: 10^5 take no minutes. */
static void a_long_table_is_written_row_by_row(void **state)
{
    (void)state;
    const int rows = 100000;
    pl_table *table;
    pl_buffer text = { 0 };
    assert_ok(pl_table_new(&table, "rows", "Rows"));
    for (int c = 0; c < 8; c++)
        pl_table_add_column(table, &(pl_table_column) { .key = "value" });
    for (int r = 0; r < rows; r++) {
        pl_table_add_row(table);
        for (int c = 0; c < 8; c++)
            pl_table_put_number(table, r);
    }
    pl_table_print(table, &text);
    pl_table_html(table, &text);
    assert_ok(pl_buffer_status(&text));
    assert_true(text.bytes > (size_t)rows * 8);
    pl_buffer_close(&text);
    pl_table_free(table);
}

static void a_table_survives_failed_allocations(void **state)
{
    (void)state;
    pl_table *table;
    assert_survives_failed_allocations(make(&table), pl_table_free(table));
}

UNIT_TESTS(cmocka_unit_test(columns_are_aligned_in_a_terminal),
           cmocka_unit_test(csv_has_every_digit_and_quotes),
           cmocka_unit_test(html_is_escaped),
           cmocka_unit_test(numbers_on_a_page_are_easy_to_compare),
           cmocka_unit_test(json_has_an_object_a_row),
           cmocka_unit_test(a_wide_table_is_cut_by_columns),
           cmocka_unit_test(a_terminal_gets_no_control_characters),
           cmocka_unit_test(a_spreadsheet_gets_no_formula),
           cmocka_unit_test(a_long_table_is_written_row_by_row),
           cmocka_unit_test(a_table_survives_failed_allocations))
