#include "base/text/quote.h"

#include "support/unit.h"

/* What a quoting function makes of a text. */
static void assert_quoted(void (*quote)(pl_buffer *, const char *),
                          const char *text, const char *expected)
{
    pl_buffer out = { 0 };
    pl_buffer_text(&out, "");
    quote(&out, text);
    assert_ok(pl_buffer_status(&out));
    assert_string_equal(expected, out.data == NULL ? "" : out.data);
    pl_buffer_close(&out);
}

static void a_line_stays_one_line(void **state)
{
    (void)state;
    assert_quoted(pl_quote_terminal, "plain \xc3\xa4 'it' \\x1b",
                  "plain \xc3\xa4 'it' \\x1b");
    assert_quoted(pl_quote_terminal, "a\nwarning: b\r\t\x1b[31m\x7f",
                  "a\\x0awarning: b\\x0d\\x09\\x1b[31m\\x7f");
    /* CSI as one character of UTF-8, and as one byte of Latin-1. */
    assert_quoted(pl_quote_terminal,
                  "\xc2\x9b"
                  "2J \x9b"
                  "2J",
                  "\\xc2\\x9b2J \\x9b2J");
    assert_quoted(pl_quote_terminal, "\xe2\x80\xa8|\xe2\x80\xa9",
                  "\\xe2\\x80\\xa8|\\xe2\\x80\\xa9");
    /* Overlong, a surrogate, beyond Unicode, cut off. */
    assert_quoted(pl_quote_terminal, "\xc0\x9b", "\\xc0\\x9b");
    assert_quoted(pl_quote_terminal, "\xe0\x80\x9b", "\\xe0\\x80\\x9b");
    assert_quoted(pl_quote_terminal, "\xed\xa0\x80", "\\xed\\xa0\\x80");
    assert_quoted(pl_quote_terminal, "\xf4\x90\x80\x80",
                  "\\xf4\\x90\\x80\\x80");
    assert_quoted(pl_quote_terminal, "\xf0\x9f\x98", "\\xf0\\x9f\\x98");
    assert_quoted(pl_quote_terminal, "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80");
}

static void a_short_room_cuts_between_characters(void **state)
{
    (void)state;
    char to[8];
    assert_string_equal("a\\x1b", pl_quote_line(to, sizeof to, "a\x1b\x1b"));
    assert_string_equal("123456",
                        pl_quote_line(to, sizeof to, "123456\xc3\xa4"));
    assert_string_equal("", pl_quote_line(to, 1, "abc"));
}

static void a_shell_reads_a_word_back(void **state)
{
    (void)state;
    assert_quoted(pl_quote_shell, "--lr=0.1", "--lr=0.1");
    assert_quoted(pl_quote_shell, "", "''");
    assert_quoted(pl_quote_shell, "a b", "'a b'");
    assert_quoted(pl_quote_shell, "it's $HOME", "'it'\\''s $HOME'");
    assert_quoted(pl_quote_shell, "a\n\\'\x1b", "$'a\\x0a\\\\\\'\\x1b'");
}

static void html_holds_no_markup(void **state)
{
    (void)state;
    assert_quoted(pl_quote_html, "</script>\"'&\n\t",
                  "&lt;/script&gt;&quot;&#39;&amp;\n\t");
    assert_quoted(pl_quote_html, "\x1b\xff", "\xef\xbf\xbd\xef\xbf\xbd");
}

static void a_label_is_one_text_of_openmetrics(void **state)
{
    (void)state;
    assert_quoted(pl_quote_label, "a\"b\\c\nd", "\"a\\\"b\\\\c\\nd\"");
    assert_quoted(pl_quote_label, "\x1b\xff\xc3\xa4",
                  "\"\xef\xbf\xbd\xef\xbf\xbd\xc3\xa4\"");
}

static void json_fits_a_script_element(void **state)
{
    (void)state;
    assert_quoted(pl_quote_json, "</script><!--&\"\\\n",
                  "\"\\u003c/script\\u003e\\u003c!--\\u0026\\u0022\\u005c"
                  "\\u000a\"");
    assert_quoted(pl_quote_json, "\xe2\x80\xa8\xc2\x9b\xff\xc3\xa4",
                  "\"\\u2028\\u009b\\ufffd\xc3\xa4\"");
}

static void csv_holds_no_formula(void **state)
{
    (void)state;
    assert_quoted(pl_quote_csv, "plain", "plain");
    assert_quoted(pl_quote_csv, "a,\"b\"", "\"a,\"\"b\"\"\"");
    assert_quoted(pl_quote_csv, "=cmd|'/c calc'!A1", "'=cmd|'/c calc'!A1");
    assert_quoted(pl_quote_csv, "@SUM(1,2)", "\"'@SUM(1,2)\"");
    assert_quoted(pl_quote_csv, "+1+2", "'+1+2");
    assert_quoted(pl_quote_csv, "-", "'-");
    assert_quoted(pl_quote_csv, "-1e-3", "-1e-3");
    assert_quoted(pl_quote_csv, "\t=1", "\\x09=1");
    assert_quoted(pl_quote_csv, "a\r\n=1", "a\\x0d\\x0a=1");
}

static void gnuplot_sees_one_string(void **state)
{
    (void)state;
    assert_quoted(pl_quote_gnuplot, "x'; system(\"id\"); '`id`\\\n$(id)",
                  "'x_; system(\"id\"); __id___$(id)'");
    /* U+0127 ends in the byte of an apostrophe. */
    assert_quoted(pl_quote_gnuplot, "\xc4\xa7", "'\xc4\xa7'");
}

static void a_file_name_stays_in_its_folder(void **state)
{
    (void)state;
    char name[] = "../../etc/x y'\n.svg";
    pl_quote_file_name(name);
    assert_string_equal("-.-..-etc-x-y--.svg", name);
}

UNIT_TESTS(cmocka_unit_test(a_line_stays_one_line),
           cmocka_unit_test(a_short_room_cuts_between_characters),
           cmocka_unit_test(a_shell_reads_a_word_back),
           cmocka_unit_test(html_holds_no_markup),
           cmocka_unit_test(a_label_is_one_text_of_openmetrics),
           cmocka_unit_test(json_fits_a_script_element),
           cmocka_unit_test(csv_holds_no_formula),
           cmocka_unit_test(gnuplot_sees_one_string),
           cmocka_unit_test(a_file_name_stays_in_its_folder))
