/* fake_proc.h - a /proc of our own: two cores, two interfaces, two disks, and
 * processes as a test makes them. */
#ifndef PL_TESTS_FAKE_PROC_H
#define PL_TESTS_FAKE_PROC_H

#include "support/folder.h"

#include <stdarg.h>

static inline void proc_put(const char *root, const char *name,
                            const char *format, ...) PL_PRINTF(3, 4);
static inline void proc_put(const char *root, const char *name,
                            const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert_true(bytes >= 0 && bytes < (int)sizeof text);
    assert_ok(pl_file_replace(test_path(root, name), text, (size_t)bytes));
}

/* After `n` seconds in which core 0 was half busy, core 1 idle, and every
 * counter grew by 1000 a second. */
static inline void proc_host(const char *root, int n)
{
    int k = 1000 * n;
    proc_put(root, "stat",
             "cpu  %d 0 0 %d 0 0 0 0 0 0\ncpu0 %d 0 0 %d 0 0 0 0 0 0\n"
             "cpu1 0 0 0 %d 0 0 0 0 0 0\nintr 5 6\nctxt %d\nbtime 1\n",
             50 * n, 150 * n, 50 * n, 50 * n, 100 * n, k);
    assert_ok(pl_file_make_folder(test_path(root, "net")));
    proc_put(root, "net/dev",
             "Inter-|   Receive |  Transmit\n face |bytes    packets errs\n"
             "    lo: %d %d 0 0 0 0 0 0 %d %d 0 0 0 0 0 0\n"
             "  eth0:%d %d 0 0 0 0 0 0 %d %d 0 0 0 0 0 0\n",
             k, n, 2 * k, 2 * n, 3 * k, 3 * n, 4 * k, 4 * n);
    proc_put(root, "diskstats",
             "   8       0 sda 1 1 %d 1 1 1 %d 1 0 0 0\n"
             "   8       1 sda1 1 1 %d 1 1 1 %d 1 0 0 0\n"
             "   7       0 loop0 1 1 %d 1 1 1 %d 1 0 0 0\n"
             " 259       0 nvme0n1 1 1 %d 1 1 1 %d 1 0 0 0\n"
             " 259       1 nvme0n1p1 1 1 %d 1 1 1 %d 1 0 0 0\n",
             k, 2 * k, k, 2 * k, k, k, k, 0, k, k);
    proc_put(root, "loadavg", "1.50 1.25 1.00 2/300 999\n");
    proc_put(root, "meminfo",
             "MemTotal:        2048 kB\nMemFree:          100 kB\n"
             "MemAvailable:    1024 kB\n");
}

static inline void proc_process(const char *root, int pid, int parent, int n)
{
    char name[64];
    snprintf(name, sizeof name, "%d/task/%d", pid, pid);
    assert_ok(pl_file_make_folder(test_path(root, name)));
    snprintf(name, sizeof name, "%d/stat", pid);
    proc_put(root, name,
             "%d (a) b (c)) S %d 1 1 0 -1 4194304 1 0 0 0 %d %d 0 0 20 0\n",
             pid, parent, 100 * n, 50 * n);
    snprintf(name, sizeof name, "%d/status", pid);
    proc_put(root, name, "Name:\tx\nVmHWM:\t 4096 kB\nVmRSS:\t 3072 kB\n");
    snprintf(name, sizeof name, "%d/task/%d/status", pid, pid);
    proc_put(root, name,
             "voluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t%d\n",
             10 * n, 5 * n);
    snprintf(name, sizeof name, "%d/io", pid);
    proc_put(root, name, "rchar: 1\nread_bytes: %d\nwrite_bytes: %d\n", 100 * n,
             200 * n);
}

#endif
