#include "support/runs.h"

#include "observe/live/live.h"
#include "proto/event.h"

#include <time.h>
#include <unistd.h>
#include <utime.h>

static int asked; /* runs that were asked to end */

static bool can_stop(const char *run)
{
    return strstr(run, "/a") != NULL;
}

static pl_status stop(const char *run)
{
    asked++;
    return can_stop(run) ? PL_OK : PL_FAIL(PL_NOTFOUND, "nothing listens");
}

static pl_status ask(void *folder, const char *path, pl_buffer *body)
{
    const char *type;
    pl_status status = pl_live_page(
        &(pl_live) { .folder = folder, .can_stop = can_stop, .stop = stop },
        path, body, &type);
    return status == PL_OK ? pl_buffer_status(body) : status;
}

static void assert_page(void *folder, const char *path, const char *part)
{
    pl_buffer body = { 0 };
    assert_ok(ask(folder, path, &body));
    if (strstr(body.data, part) == NULL)
        fail_msg("no \"%s\" on %s", part, path);
    pl_buffer_close(&body);
}

static void runs_are_listed_and_shown(void **state)
{
    pl_buffer body = { 0 };
    write_run(*state, "a", 10, 1, 1.5, 0.5);
    write_run(*state, "b", 20, 1, 2.5, 0.25);
    assert_page(*state, "/",
                "<td class=\"text state\">done<td class=text>"
                "<a href=\"/run/a\">a</a><td class=\"text \">softmax");
    assert_page(*state, "/", "<td data-sort=\"0.25\">25.00 %");
    assert_page(*state, "/run/b", "<h1>b</h1>");
    assert_page(*state, "/run/b", "<b>25.00 %</b> <span>test accuracy</span>");
    assert_page(*state, "/live.js", "data-changing");
    assert_fails(PL_NOTFOUND, "no page /run/c", ask(*state, "/run/c", &body));
    assert_fails(PL_NOTFOUND, "no page /x", ask(*state, "/x", &body));
    pl_buffer_close(&body);
}

static void runs_are_overlaid(void **state)
{
    pl_buffer body = { 0 };
    write_run(*state, "a", 10, 1, 1.5, 0.5);
    write_run(*state, "a:b", 20, 1, 2.5, 0.25);
    write_run(*state, "c", 30, 1, 2.5, 0.125);
    assert_ok(ask(*state, "/overlay/a:b:c", &body));
    assert_non_null(strstr(body.data, "<td class=text>a:b<"));
    assert_non_null(strstr(body.data, "<td class=text>c<"));
    assert_null(strstr(body.data, "<td class=text>a<"));
    assert_null(strstr(body.data, "-by-batch")); /* they were picked */
    pl_buffer_close(&body);
    assert_fails(PL_NOTFOUND, "no runs", ask(*state, "/overlay/", &body));
    assert_fails(PL_NOTFOUND, "found \"d\"",
                 ask(*state, "/overlay/a:d", &body));
    pl_buffer_close(&body);
}

/* A run without a summary, last written this many seconds ago. */
static void write_silent(const char *folder, const char *name,
                         const char *since, time_t seconds)
{
    char text[256];
    snprintf(text, sizeof text,
             "{\"format\": 1, \"model\": \"softmax\", \"args\": {}, "
             "\"started\": \"2026-11-%sT00:00:00Z\"}",
             since);
    write_run_file(folder, name, "run.json", text);
    struct utimbuf then = { .modtime = time(NULL) - seconds };
    assert_int_equal(
        0, utime(test_path(test_path(folder, name), "run.json"), &then));
}

static void a_crashed_run_does_not_stay_on_top(void **state)
{
    static const char *const order[] = { "going", "waiting", "newest",
                                         "crashed", "older" };
    pl_buffer body = { 0 };
    const char *last;
    write_silent(*state, "older", "01", 100 * 86400 + 60);
    write_silent(*state, "crashed", "02", 10 * 86400 + 60);
    write_silent(*state, "newest", "05", 7265);
    write_silent(*state, "waiting", "03", 25);
    write_silent(*state, "going", "04", 0);
    assert_ok(ask(*state, "/", &body));
    last = body.data;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        char link[64];
        snprintf(link, sizeof link, "<a href=\"/run/%s\">", order[i]);
        const char *found = strstr(body.data, link);
        assert_true(found > last);
        last = found;
    }
    assert_non_null(strstr(body.data, "silent for 100 days<"));
    assert_non_null(strstr(body.data, "silent for 10 days<"));
    assert_non_null(strstr(body.data, "silent for 2:01:"));
    pl_buffer_close(&body);
}

static pl_status post(void *folder, const char *path, pl_buffer *body)
{
    const char *type;
    return pl_live_post(
        &(pl_live) { .folder = folder, .can_stop = can_stop, .stop = stop },
        path, body, &type);
}

static void write_going(const char *folder, const char *name, const char *host)
{
    char text[256];
    snprintf(text, sizeof text,
             "{\"format\": 1, \"model\": \"softmax\", \"args\": {}, "
             "\"machine\": {\"host\": \"%s\", \"cores\": 1, "
             "\"kernels\": \"ref\"}}",
             host);
    write_run_file(folder, name, "run.json", text);
}

static void a_running_job_is_stopped(void **state)
{
    pl_buffer body = { 0 };
    char own[256] = "";
    gethostname(own, sizeof own - 1);
    write_going(*state, "a <b>", own);
    write_going(*state, "here", own);
    write_going(*state, "there", "an<b>other");
    write_run(*state, "ended", 10, 1, 1.5, 0.5);
    assert_page(*state, "/run/a <b>",
                "<button type=button data-stop=\"/stop/a%20%3Cb%3E\">");
    assert_page(*state, "/run/there",
                "<b>an&lt;b&gt;other</b> <span>where it can be stopped");
    asked = 0;
    assert_ok(post(*state, "/stop/a <b>", &body));
    assert_string_equal("a <b> saves and ends\n", body.data);
    assert_int_equal(1, asked);
    assert_fails(PL_CLOSED, "no process of this host runs here",
                 post(*state, "/stop/here", &body));
    assert_fails(PL_CLOSED, "started on an<b>other, not on this host",
                 post(*state, "/stop/there", &body));
    asked = 0;
    assert_fails(PL_CLOSED, "ended has already ended (epochs)",
                 post(*state, "/stop/ended", &body));
    assert_fails(PL_NOTFOUND, "no run ../a", post(*state, "/stop/../a", &body));
    assert_fails(PL_NOTFOUND, "there is no action /run/here",
                 post(*state, "/run/here", &body));
    assert_int_equal(0, asked);
    pl_buffer_close(&body);
}

static void write_task(const char *folder, const char *name, const char *file)
{
    char *events;
    assert_ok(pl_mem_format(&events, "a/events/%s", name));
    write_run_file(folder, events, file, "");
    pl_mem_free(events);
}

/* The timeline shows which task was lost and which rejoined. */
static void a_lost_task_is_red(void **state)
{
    write_going(*state, "a", "h");
    write_task(*state, "worker-0", "events.out.tfevents.7.old");
    write_task(*state, "worker-0", "events.out.tfevents.70.node-<1>");
    write_task(*state, "worker-1", "events.out.tfevents.7.node-2");
    write_task(*state, "worker-10", "events.out.tfevents.7.node-3");
    write_run_file(*state, "a", "timeline.jsonl",
                   "{\"time\": 1, \"event\": \"start\", \"task\": \"x\"}\n"
                   "{\"time\": 9e9, \"event\": \"lost\", \"task\": "
                   "\"worker 0\", \"text\": \"was killed\"}\n"
                   "{\"time\": 9e9, \"event\": \"restart\", \"task\": "
                   "\"worker 0\"}\n"
                   "{\"time\": 9e9, \"event\": \"lost\", \"task\": "
                   "\"worker 1\", \"text\": \"<b>\"}\n");
    assert_page(*state, "/run/a",
                "<tr><td class=text>worker-0<td class=text>node-&lt;1&gt;"
                "<td class=text>running<td><td><td><td><td data-sort=\"1\">1");
    assert_page(*state, "/run/a",
                "<tr class=missing><td class=text>worker-1<td class=text>node-2"
                "<td class=text>lost: it &lt;b&gt;; its restart is awaited");
    assert_page(*state, "/run/a", "<li>worker 0 was lost: it was killed.</li>");
    assert_page(*state, "/run/a",
                "<tr><td class=text>worker-10<td class=text>node-3"
                "<td class=text>running");
}

/* Events of a task, as they were written just now. */
static void write_events(const char *folder, const char *task,
                         const pl_buffer *events)
{
    char *path;
    assert_ok(pl_mem_format(&path, "a/events/%s", task));
    assert_ok(pl_file_make_folder(test_path(folder, path)));
    pl_mem_free(path);
    assert_ok(pl_mem_format(&path, "a/events/%s/x.tfevents.7.h", task));
    assert_ok(
        pl_file_replace(test_path(folder, path), events->data, events->bytes));
    pl_mem_free(path);
}

static void a_model_of_numbers_has_its_error(void **state)
{
    write_run_file(*state, "a", "run.json",
                   "{\"format\": 1, \"model\": \"mlp\", \"args\": {}}");
    write_run_file(*state, "a", "summary.json",
                   "{\"model\": \"mlp\", \"steps\": 9, \"stopped_by\": "
                   "\"steps\", \"test_loss\": 4, \"test_rmse\": 2.25}");
    assert_page(*state, "/", "<td data-sort=\"2.25\">RMSE 2.25<td");
    assert_page(*state, "/run/a", "<b>2.25</b> <span>test RMSE</span>");
}

static void a_running_job_shows_what_its_workers_wait_for(void **state)
{
    double now = (double)time(NULL);
    write_going(*state, "a", "h");
    for (int w = 0; w < 2; w++) {
        pl_buffer events = { 0 };
        char task[] = "worker-0";
        task[7] = (char)('0' + w);
        pl_event_scalar(&events, now, 10, "loss", 0.5);
        pl_event_scalar(&events, now, 10, "waiting_share", w == 0 ? 0.4 : 0.5);
        pl_event_scalar(&events, now, 5, "test_rmse", 2);
        pl_event_scalar(&events, now, 10, "test_rmse", 3);
        write_events(*state, task, &events);
        pl_buffer_close(&events);
    }
    assert_page(*state, "/", "<td data-sort=\"3\">RMSE 3<td>");
    assert_page(*state, "/", "<td class=\"text limit\">waiting: 40 to 50 %");
    assert_page(*state, "/run/a",
                "The test RMSE was best at step 5, 2, and is 3 now.");
    pl_buffer events = { 0 };
    pl_event_scalar(&events, now, 10, "loss", 0.5);
    pl_event_scalar(&events, now, 10, "waiting_share", 0.9);
    write_events(*state, "worker-1", &events);
    pl_buffer_close(&events);
    assert_page(*state, "/",
                "<td class=\"text limit\">waiting for worker-0: 90 %");
    assert_page(*state, "/run/a", "worker-0 40 %: the others wait for it.");
}

/* A run of 1,100 steps, the first 900 of which were made an hour before. */
static void the_time_left_counts_from_the_last_start(void **state)
{
    time_t now = time(NULL), started = now - 20;
    char text[256], iso[32];
    strftime(iso, sizeof iso, "%Y-%m-%dT%H:%M:%SZ", gmtime(&started));
    snprintf(text, sizeof text,
             "{\"format\": 1, \"model\": \"softmax\", \"args\": {}, "
             "\"started\": \"%s\", \"end_step\": 1100}",
             iso);
    write_run_file(*state, "a", "run.json", text);
    pl_buffer events = { 0 };
    pl_event_scalar(&events, (double)now - 3700, 1, "loss", 0.5);
    pl_event_scalar(&events, (double)now - 3600, 900, "loss", 0.5);
    write_events(*state, "worker-0", &events);
    assert_page(*state, "/", "<td data-sort=\"900\">900/1100<td><td");
    pl_event_scalar(&events, (double)now - 10, 910, "loss", 0.5);
    pl_event_scalar(&events, (double)now, 1000, "loss", 0.5);
    write_events(*state, "worker-0", &events);
    pl_buffer_close(&events);
    /* 90 steps in 10 s, and 100 to go. */
    assert_page(*state, "/", "1000/1100<td data-sort=\"11.1111");
}

/* The list reads only the end of such a file. */
static void the_page_of_a_run_reads_all_of_a_large_event_file(void **state)
{
    double now = (double)time(NULL);
    pl_buffer events = { 0 };
    write_going(*state, "a", "h");
    pl_event_scalar(&events, now, 1, "test_rmse", 2);
    while (events.bytes < 17 << 20)
        pl_event_scalar(&events, now, 9, "a name of more than a few bytes", 3);
    pl_event_scalar(&events, now, 10, "test_rmse", 3);
    write_events(*state, "worker-0", &events);
    pl_buffer_close(&events);
    assert_page(*state, "/run/a",
                "The test RMSE was best at step 1, 2, and is 3 now.");
}

/* Causes and cures are on the run's own page. */
static void the_bottleneck_is_abbreviated_in_the_list(void **state)
{
    static const struct {
        const char *text, *shown;
    } limits[] = {
        { "computing: 97 % of the time (waiting 3 %). Cures: x: 2.0 x as fast",
          "computing: 97 %<" },
        { "waiting for worker 2 on n: 61 % of the time; its quota was used up",
          "waiting for worker 2 on n: 61 %<" },
        { "latency: 70 % of the time. Cures: --batch 64: 1.5 x as fast",
          "latency: 70 %<" },
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        char text[512];
        write_run(*state, "a", 10, 1, 1.5, 0.5);
        snprintf(text, sizeof text,
                 "{\"steps\": 9, \"stopped_by\": \"steps\", \"bottleneck\": "
                 "{\"what\": \"x\", \"share\": 0.5, \"text\": \"%s\"}}",
                 limits[i].text);
        write_run_file(*state, "a", "summary.json", text);
        snprintf(text, sizeof text, "<td class=\"text limit\">%s",
                 limits[i].shown);
        assert_page(*state, "/", text);
    }
}

static void sweeps_have_their_progress(void **state)
{
    pl_buffer body = { 0 };
    write_run(*state, "g <b>/one", 10, 1, 1.5, 0.5);
    write_run(*state, "g <b>/two", 20, 1, 2.5, 0.25);
    write_run_file(*state, "g <b>", "sweep.json",
                   "{\"cells\": [{\"name\": \"one\", \"state\": \"done\", "
                   "\"seconds\": 60}, {\"name\": \"two\", \"state\": "
                   "\"running\"}, {\"state\": \"waiting\"}, {\"state\": "
                   "\"failed\"}, 7, {\"state\": 1}]}");
    assert_page(*state, "/", "<a href=\"/sweep/g%20%3Cb%3E\">g &lt;b&gt;</a>");
    assert_page(*state, "/", "</progress> 1 of 4<td>1<td>1<td>2:00<td>");
    assert_page(*state, "/", "<tr data-sweep=\"g &lt;b&gt;\"><td><input");
    assert_page(*state, "/sweep/g <b>", "<main data-changing=");
    assert_page(*state, "/sweep/g <b>", "<h1>g &lt;b&gt;");
    assert_fails(PL_NOTFOUND, "no sweep x", ask(*state, "/sweep/x", &body));
    pl_buffer_close(&body);
}

static void logs_are_read(void **state)
{
    pl_buffer body = { 0 };
    write_run(*state, "b", 10, 1, 1.5, 0.5);
    write_run(*state, "c", 10, 1, 1.5, 0.5);
    write_run_file(*state, "b/log", "ps-0.log", "<b>\n");
    assert_page(*state, "/run/b",
                "<details class=log data-log=\"/log/b/ps-0.log\"><summary>"
                "ps-0.log</summary>");
    assert_ok(ask(*state, "/log/b/ps-0.log", &body));
    assert_int_equal(4, body.bytes);
    pl_buffer_close(&body);
    static const char *const wrong[] = { "/log/b/", "/log/b", "/log/c/ps-0.log",
                                         "/log/b/../run.json" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(PL_NOTFOUND, "no log", ask(*state, wrong[i], &body));
    pl_buffer_close(&body);
}

static void pages_survive_failed_allocations(void **state)
{
    static const char *const paths[] = { "/", "/run/a", "/overlay/a:b",
                                         "/page.js", "/log/a/worker-0.log" };
    write_run(*state, "a", 10, 1, 1.5, 0.5);
    write_run(*state, "b", 20, 1, 2.5, 0.25);
    write_run_file(*state, "a/log", "worker-0.log", "hello\n");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        pl_buffer body = { 0 };
        long live = pl_mem_live();
        bool failed = true;
        for (long nth = 0; failed; nth++) {
            pl_mem_fail_at(nth);
            pl_status status = ask(*state, paths[i], &body);
            failed = pl_mem_fail_off();
            assert_int_equal(failed ? PL_NOMEM : PL_OK, status);
            pl_buffer_close(&body);
            assert_int_equal(live, pl_mem_live());
        }
    }
}

UNIT_TESTS(TEST_IN_FOLDER(runs_are_listed_and_shown),
           TEST_IN_FOLDER(runs_are_overlaid),
           TEST_IN_FOLDER(a_crashed_run_does_not_stay_on_top),
           TEST_IN_FOLDER(a_running_job_is_stopped),
           TEST_IN_FOLDER(a_lost_task_is_red),
           TEST_IN_FOLDER(a_model_of_numbers_has_its_error),
           TEST_IN_FOLDER(a_running_job_shows_what_its_workers_wait_for),
           TEST_IN_FOLDER(the_time_left_counts_from_the_last_start),
           TEST_IN_FOLDER(the_page_of_a_run_reads_all_of_a_large_event_file),
           TEST_IN_FOLDER(the_bottleneck_is_abbreviated_in_the_list),
           TEST_IN_FOLDER(sweeps_have_their_progress),
           TEST_IN_FOLDER(logs_are_read),
           TEST_IN_FOLDER(pages_survive_failed_allocations))
