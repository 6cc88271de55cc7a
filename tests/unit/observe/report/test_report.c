#include "support/runs.h"

#include "observe/report/report.h"

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no \"%s\"", part);
}

static void assert_lacks(const char *text, const char *part)
{
    if (strstr(text, part) != NULL)
        fail_msg("there is \"%s\"", part);
}

static pl_status make(pl_page **out, const char *folder)
{
    pl_records records;
    char *paths[] = { (char *)folder };
    PL_TRY(pl_records_init(&records, paths, 1));
    know_flags(&records);
    pl_status status = pl_report_make(out, &records, "Report on <x>");
    pl_records_close(&records);
    return status;
}

static void a_page_is_self_contained_with_tables_and_figures(void **state)
{
    pl_page *page;
    pl_buffer html = { 0 };
    write_run(*state, "a", 10, 1, 1.5, 0.5);
    write_run(*state, "b", 20, 1, 2.5, 0.25);
    assert_ok(make(&page, *state));
    pl_page_html(page, &html);
    assert_ok(pl_buffer_status(&html));
    assert_has(html.data, "<title>Report on &lt;x&gt;</title>");
    assert_has(html.data, "default-src 'none'");
    assert_has(html.data, "<td class=text>a</td>");
    assert_has(html.data, "\"id\":\"accuracy-by-batch\",\"title\":\"Test "
                          "accuracy by batch\",\"x\":\"batch\",\"y\":\"test "
                          "accuracy [%]\"");
    assert_has(html.data, "\"series\":[{\"name\":\"all runs\",\"points\":[[10,"
                          "50],[20,25]],\"runs\":[[0],[1]]}]");
    assert_has(html.data, "const Figures = ");
    assert_lacks(html.data, "<script src");
    assert_lacks(html.data, "<link");
    assert_true(pl_page_tables(page) >= 3 && pl_page_figures(page) >= 2);
    pl_buffer_close(&html);
    pl_page_free(page);
}

/* JSON has no infinity: the page would lose all of its figures. */
static void a_spread_that_overflows_is_left_out(void **state)
{
    pl_page *page;
    pl_buffer html = { 0 };
    write_run(*state, "a", 10, 1, 1e200, 1);
    write_run(*state, "b", 10, 2, -1e200, 1);
    write_run(*state, "c", 20, 1, 1, 1);
    assert_ok(make(&page, *state));
    pl_page_html(page, &html);
    assert_has(html.data, "\"title\":\"Training time by batch\"");
    assert_lacks(html.data, "\"spread\":[inf");
    pl_buffer_close(&html);
    pl_page_free(page);
}

static void lengths_are_drawn_where_the_loss_decided_them(void **state)
{
    pl_page *page;
    pl_buffer html = { 0 };
    write_run(*state, "a", 10, 1, 1, 1);
    write_run(*state, "b", 20, 1, 1, 1);
    assert_ok(make(&page, *state));
    pl_page_html(page, &html);
    assert_lacks(html.data, "Steps to target by batch");
    pl_buffer_close(&html);
    pl_page_free(page);
    write_run_file(*state, "b", "summary.json",
                   "{\"steps\": 70, \"epochs\": 2.5, \"test_loss\": 0.3, "
                   "\"stopped_by\": \"stop_loss\"}");
    write_run_file(*state, "a", "summary.json",
                   "{\"steps\": 90, \"epochs\": 1.5, \"test_loss\": 0.3, "
                   "\"stopped_by\": \"stop_loss\"}");
    assert_ok(make(&page, *state));
    pl_page_html(page, &html);
    assert_has(html.data, "Steps to target by batch");
    assert_has(html.data, "Epochs to target by batch");
    assert_lacks(html.data, "Test loss by batch");
    pl_buffer_close(&html);
    pl_page_free(page);
}

static void names_cannot_break_out(void **state)
{
    pl_page *page;
    pl_buffer html = { 0 }, commands = { 0 };
    write_run(*state, "<b>'`x", 10, 1, 1, 1);
    write_run(*state, "b", 20, 1, 1, 0.5);
    write_run(*state, "c", 10, 1, 1, 0.5);
    write_run_file(*state, "c", "run.json",
                   "{\"format\": 1, \"model\": \"m\", \"args\": {\"batch\": "
                   "\"30\", \"mode\": \"</script>'`date`\"}}");
    assert_ok(make(&page, *state));
    pl_page_html(page, &html);
    assert_lacks(html.data, "<b>");
    assert_lacks(html.data, "</script>'`");
    pl_page_gnuplot(page, &commands);
    assert_lacks(commands.data, "`");
    pl_buffer_close(&html);
    pl_buffer_close(&commands);
    pl_page_free(page);
}

static void omissions_are_reported(void **state)
{
    pl_page *page;
    pl_buffer html = { 0 };
    write_run(*state, "a", 10, 1, 1, 1);
    write_run_file(*state, "newer", "run.json", "{\"format\": 99}");
    write_run_file(*state, "a/events/worker-0", "x.tfevents.1",
                   "this is no event file at all");
    write_run_file(*state, "a/resources", "host.csv", "no,table\n");
    assert_ok(make(&page, *state));
    pl_page_html(page, &html);
    assert_has(html.data, ">Left out</h2>");
    assert_has(html.data, "newer paceline (format 99)");
    assert_has(html.data, "damaged at byte 0");
    assert_has(html.data, "not a table of resources");
    pl_buffer_close(&html);
    pl_page_free(page);
}

static void tables_become_files(void **state)
{
    pl_page *page;
    char *text;
    write_run(*state, "a", 10, 1, 1, 1);
    assert_ok(make(&page, *state));
    assert_ok(pl_page_write_tables(page, *state));
    assert_ok(pl_file_read_text(&text, test_path(*state, "runs.csv"), 4096));
    assert_has(text, "run,steps,seconds,test_accuracy,stopped_by\r\na,100,");
    pl_mem_free(text);
    pl_page_free(page);
}

static void resources_become_a_table_and_figures(void **state)
{
    pl_page *page;
    pl_buffer html = { 0 }, commands = { 0 };
    write_run(*state, "a", 10, 1, 1, 1);
    write_run_file(*state, "a/resources", "host.csv",
                   "time,job_cpu,job_rss_mb\n1,50,100\n2,150,300\n");
    assert_ok(make(&page, *state));
    pl_page_html(page, &html);
    assert_has(html.data, "<td>100.0</td><td>150.0</td>");
    assert_has(html.data, "\"title\":\"CPU of the job\",\"x\":\"time [s]\"");
    pl_page_gnuplot(page, &commands);
    assert_has(commands.data, "set output 'curve-cpu'.'.svg'");
    assert_has(commands.data, "set xlabel 'time [s]'");
    pl_buffer_close(&html);
    pl_buffer_close(&commands);
    pl_page_free(page);
}

static void a_job_over_two_hosts_is_drawn_as_a_whole(void **state)
{
    pl_page *page;
    pl_buffer html = { 0 }, commands = { 0 };
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "a" : "b";
        write_run(*state, name, 10 * (i + 1), 1, 1, 1);
        write_run_file(*state, test_path(name, "resources"), "x.csv",
                       "time,job_cpu\n1,50\n2,150\n");
        write_run_file(*state, test_path(name, "resources"), "y.csv",
                       "time,job_cpu\n1,20\n2,23\n");
    }
    assert_ok(make(&page, *state));
    pl_page_html(page, &html);
    pl_page_gnuplot(page, &commands);
    assert_has(commands.data, "\n1 173 ");
    assert_lacks(commands.data, "\n1 150 ");
    assert_has(html.data, "<td class=text>x</td>"); /* of each host */
    assert_lacks(html.data, "<td class=text>all hosts</td>");
    pl_buffer_close(&html);
    pl_buffer_close(&commands);
    pl_page_free(page);
}

/* Workers of 65 MB each and a server of 12 MB, on one host. */
static void write_three_tasks(const char *folder, const char *name, int batch,
                              const char *samples)
{
#define TASK                                                                   \
    "\"host\": \"h\", \"alive_seconds\": 1, \"user_seconds\": 1, "             \
    "\"system_seconds\": 0"
    write_run(folder, name, batch, 1, 1, 1);
    write_run_file(folder, name, "summary.json",
                   "{\"steps\": 10, \"seconds\": 1, \"stopped_by\": \"steps\", "
                   "\"per_worker\": [{\"index\": 0, \"peak_rss_mb\": 65, " TASK
                   "}, {\"index\": 1, \"peak_rss_mb\": 65, " TASK "}], "
                   "\"per_server\": [{\"index\": 0, \"peak_rss_mb\": 12, " TASK
                   "}]}");
    write_run_file(folder, test_path(name, "resources"), "h.csv", samples);
}

static void memory_of_a_host_is_that_of_all_its_tasks(void **state)
{
    pl_page *page;
    pl_buffer html = { 0 };
    write_three_tasks(*state, "a", 10,
                      "time,job_tasks,job_rss_mb\n"
                      "1,1,11.5\n2,3,140\n3,3,142\n");
    assert_ok(make(&page, *state));
    pl_page_html(page, &html);
    assert_has(html.data, "<td>141.0</td><td>142.0</td>");
    pl_buffer_close(&html);
    pl_page_free(page);
}

static void memory_of_unsampled_tasks_has_no_mean(void **state)
{
    pl_page *page;
    pl_buffer html = { 0 };
    write_three_tasks(*state, "a", 10, "time,job_tasks,job_rss_mb\n1,1,11.5\n");
    assert_ok(make(&page, *state));
    pl_page_html(page, &html);
    assert_has(html.data, "<td></td><td>142.0</td>");
    assert_lacks(html.data, "<td>11.5</td>");
    pl_buffer_close(&html);
    pl_page_free(page);
}

static void usage_of_servers_is_drawn_by_flag(void **state)
{
    pl_page *page;
    pl_buffer html = { 0 };
    write_three_tasks(*state, "a", 10, "time,job_cpu\n1,1\n");
    write_three_tasks(*state, "b", 20, "time,job_cpu\n1,1\n");
    assert_ok(make(&page, *state));
    pl_page_html(page, &html);
    assert_has(html.data, "\"title\":\"Peak memory, largest server by batch\"");
    assert_has(html.data, "\"points\":[[10,12],[20,12]]");
    assert_has(html.data, "\"title\":\"CPU of a server by batch\"");
    pl_buffer_close(&html);
    pl_page_free(page);
}

/* A run of `workers` workers: one is a single process, without a mode. */
static void write_job(const char *folder, const char *name, int workers,
                      const char *mode, double rate)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"format\": 1, \"model\": \"m\", \"args\": {\"workers\": "
             "\"%d\", \"strategy\": \"%s\", \"mode\": \"%s\"}}",
             workers, workers > 1 ? "ps" : "single", mode);
    write_run_file(folder, name, "run.json", text);
    snprintf(text, sizeof text,
             "{\"steps\": 10, \"seconds\": 1, \"examples_per_s\": %g, "
             "\"stopped_by\": \"steps\"}",
             rate);
    write_run_file(folder, name, "summary.json", text);
}

static void one_worker_is_the_first_point_of_every_mode(void **state)
{
    pl_page *page;
    pl_buffer html = { 0 };
    write_job(*state, "a", 1, "sync", 100);
    write_job(*state, "b", 2, "sync", 150);
    write_job(*state, "c", 2, "async", 180);
    write_job(*state, "d", 4, "sync", 200);
    write_job(*state, "e", 4, "async", 300);
    assert_ok(make(&page, *state));
    pl_page_html(page, &html);
    assert_has(html.data,
               "\"title\":\"Speed-up by workers\",\"x\":\"workers\"");
    assert_has(html.data, "{\"name\":\"mode sync\",\"points\":[[1,1],[2,1.5],"
                          "[4,2]],\"runs\":[[0],[1],[3]]}");
    assert_has(html.data, "{\"name\":\"mode async\",\"points\":[[1,1],[2,1.8],"
                          "[4,3]],\"runs\":[[0],[2],[4]]}");
    assert_has(html.data, "{\"name\":\"ideal\",\"style\":\"ideal\",\"points\":"
                          "[[1,1],[4,4]]");
    assert_has(html.data, "{\"name\":\"mode sync\",\"points\":[[1,100],[2,75],"
                          "[4,50]]");
    pl_buffer_close(&html);
    pl_page_free(page);
}

static void usage_of_runs_that_differ_in_words_is_drawn(void **state)
{
    static const char *const modes[] = { "sync", "async" };
    pl_page *page;
    pl_buffer html = { 0 };
    for (int i = 0; i < 2; i++) {
        write_job(*state, modes[i], 4, modes[i], 100);
        write_run_file(*state, modes[i], "summary.json",
                       "{\"steps\": 10, \"seconds\": 1, \"cpu_percent\": 90, "
                       "\"total_rss_mb\": 70, \"bytes_sent\": 3000000, "
                       "\"stopped_by\": \"steps\"}");
        write_run_file(*state, test_path(modes[i], "resources"), "x.csv",
                       "time,job_rss_mb,job_sent_bytes_per_s\n1,5,1000\n"
                       "2,6,2000\n");
    }
    assert_ok(make(&page, *state));
    pl_page_html(page, &html);
    assert_has(html.data, "\"title\":\"Peak memory, all tasks\"");
    assert_has(html.data, "\"title\":\"CPU of all tasks\"");
    assert_has(html.data, "\"title\":\"Bytes sent by all tasks\"");
    assert_has(html.data, "\"title\":\"Memory of the job\"");
    assert_has(html.data, "\"title\":\"Sent by the job\"");
    pl_buffer_close(&html);
    pl_page_free(page);
}

static void a_report_of_many_runs_has_few_figures(void **state)
{
    pl_page *page;
    char name[16];
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "r%d", i);
        write_run(*state, name, 10 * (i + 1), 1, i + 1, 0.5);
        write_run_file(*state, test_path(name, "resources"), "host.csv",
                       "time,job_cpu,job_rss_mb\n1,50,100\n2,150,300\n");
    }
    assert_ok(make(&page, *state));
    assert_in_range(pl_page_figures(page), 2, 12);
    pl_page_free(page);
}

static void a_report_survives_failed_allocations(void **state)
{
    pl_page *page;
    write_run(*state, "a", 10, 1, 1, 1);
    write_run(*state, "b", 20, 1, 1, 1);
    write_run_file(*state, "a/resources", "host.csv", "time,cpu\n1,2\n");
    assert_survives_failed_allocations(make(&page, *state), pl_page_free(page));
}

UNIT_TESTS(TEST_IN_FOLDER(a_page_is_self_contained_with_tables_and_figures),
           TEST_IN_FOLDER(a_spread_that_overflows_is_left_out),
           TEST_IN_FOLDER(lengths_are_drawn_where_the_loss_decided_them),
           TEST_IN_FOLDER(names_cannot_break_out),
           TEST_IN_FOLDER(omissions_are_reported),
           TEST_IN_FOLDER(tables_become_files),
           TEST_IN_FOLDER(resources_become_a_table_and_figures),
           TEST_IN_FOLDER(a_job_over_two_hosts_is_drawn_as_a_whole),
           TEST_IN_FOLDER(memory_of_a_host_is_that_of_all_its_tasks),
           TEST_IN_FOLDER(memory_of_unsampled_tasks_has_no_mean),
           TEST_IN_FOLDER(usage_of_servers_is_drawn_by_flag),
           TEST_IN_FOLDER(one_worker_is_the_first_point_of_every_mode),
           TEST_IN_FOLDER(usage_of_runs_that_differ_in_words_is_drawn),
           TEST_IN_FOLDER(a_report_of_many_runs_has_few_figures),
           TEST_IN_FOLDER(a_report_survives_failed_allocations))
