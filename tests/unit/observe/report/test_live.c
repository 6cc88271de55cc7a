#include "support/runs.h"

#include "observe/report/live.h"

static pl_status ask(void *folder, const char *path, pl_buffer *body)
{
    const char *type;
    pl_status status = pl_live_page(folder, path, body, &type);
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
    assert_page(*state, "/", "<a href=\"/run/a\">a</a> softmax: ended (");
    assert_page(*state, "/run/b", "<h1>b</h1>");
    assert_page(*state, "/live.js", "data-changing");
    assert_fails(PL_NOTFOUND, "no page /run/c", ask(*state, "/run/c", &body));
    assert_fails(PL_NOTFOUND, "no page /x", ask(*state, "/x", &body));
    pl_buffer_close(&body);
}

static void pages_survive_failed_allocations(void **state)
{
    static const char *const paths[] = { "/", "/run/a", "/page.js" };
    write_run(*state, "a", 10, 1, 1.5, 0.5);
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
           TEST_IN_FOLDER(pages_survive_failed_allocations))
