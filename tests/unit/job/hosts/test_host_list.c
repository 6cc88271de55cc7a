#include "job/hosts/host_list.h"
#include "support/unit.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* The names, joined by blanks. */
static const char *joined(const pl_host_list *hosts)
{
    static char text[512];
    text[0] = '\0';
    for (int32_t i = 0; i < hosts->count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? " " : "",
                 hosts->name[i]);
    }
    return text;
}

static void hosts_are_read_from_a_list(void **state)
{
    (void)state;
    pl_host_list hosts;
    assert_ok(pl_host_list_parse(&hosts, "a,me@b,10.0.0.3"));
    assert_string_equal("a me@b 10.0.0.3", joined(&hosts));
    assert_string_equal("b", pl_host_list_address(&hosts, 1));
    assert_int_equal(1, pl_host_list_find(&hosts, "B:4000"));
    assert_int_equal(-1, pl_host_list_find(&hosts, "c:4000"));
    pl_host_list_close(&hosts);
    assert_int_equal(0, pl_mem_live());
}

static void invalid_hosts_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        { "", "0 characters" },     { "a,", "0 characters" },
        { "a,b,A", "named twice" }, { "-oProxyCommand=x", "not the name" },
        { "a b", "not the name" },  { "a;reboot", "not the name" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_host_list hosts;
        assert_fails(PL_USAGE, cases[i].part,
                     pl_host_list_parse(&hosts, cases[i].text));
    }
    assert_int_equal(0, pl_mem_live());
}

static void hosts_of_slurm_are_expanded(void **state)
{
    (void)state;
    static const struct {
        const char *nodes, *names;
    } cases[] = {
        { "n1", "n1" },
        { "n[1-3]", "n1 n2 n3" },
        { "n[1-2,7],m05", "n1 n2 n7 m05" },
        { "rack[08-11]", "rack08 rack09 rack10 rack11" },
        { "a,b,c[1]", "a b c1" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_host_list hosts;
        assert_ok(pl_host_list_slurm(&hosts, cases[i].nodes));
        assert_string_equal(cases[i].names, joined(&hosts));
        pl_host_list_close(&hosts);
    }
}

static void invalid_hosts_of_slurm_are_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",     "n[",    "n[1",          "n[3-1]",        "n[1-]",
        "n[x]", "n[1]x", "n[1-9999999]", "n[99999999999]"
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_host_list hosts;
        assert_fails(PL_USAGE, "nodes of Slurm",
                     pl_host_list_slurm(&hosts, cases[i]));
    }
    assert_int_equal(0, pl_mem_live());
}

static void hosts_of_a_cluster_are_listed_once(void **state)
{
    (void)state;
    char *workers[] = { "a:1", "b:2", "A:3" }, *ps[] = { "c:1", "b:9" };
    pl_cluster cluster = {
        .workers = 3, .ps = 2, .worker_address = workers, .ps_address = ps
    };
    pl_host_list hosts;
    assert_ok(pl_host_list_of_cluster(&hosts, &cluster));
    assert_string_equal("a b c", joined(&hosts));
    pl_host_list_close(&hosts);
}

static void hosts_survive_each_failed_allocation(void **state)
{
    (void)state;
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        pl_host_list hosts = { 0 };
        pl_mem_fail_at(nth);
        pl_status status = pl_host_list_parse(&hosts, "a,b");
        failed = pl_mem_fail_off();
        assert_int_equal(failed ? PL_NOMEM : PL_OK, status);
        pl_host_list_close(&hosts);
    }
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(hosts_are_read_from_a_list),
           cmocka_unit_test(invalid_hosts_are_refused),
           cmocka_unit_test(hosts_of_slurm_are_expanded),
           cmocka_unit_test(invalid_hosts_of_slurm_are_refused),
           cmocka_unit_test(hosts_of_a_cluster_are_listed_once),
           cmocka_unit_test(hosts_survive_each_failed_allocation))
