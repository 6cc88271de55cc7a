/* proc.c - reads counters of host and processes from /proc. Missing or
 * unreadable values stay 0. */
#include "observe/resources/proc.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES   ((size_t)256 << 10) /* maximum size of a file in /proc */
#define SMALL_BYTES  4096
#define PATH_BYTES   256
#define SECTOR_BYTES 512
#define TREE_MOST    4096 /* processes searched for children */

/* Read the file as text; empty if it cannot be read. */
static void read_text(const char *root, const char *name, char *text,
                      size_t room)
{
    char path[PATH_BYTES];
    size_t used = 0;
    ssize_t got = 0;
    snprintf(path, sizeof path, "%s/%s", root, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    while (file >= 0 && used < room - 1) {
        got = read(file, text + used, room - 1 - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    if (file >= 0)
        close(file);
    text[used] = '\0';
}

/* The next line; NULL at the end. */
static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end != NULL && end[1] != '\0' ? end + 1 : NULL;
}

/* The number after "name" at the start of a line; 0 if missing. */
static uint64_t number_of(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = text; line != NULL; line = next_line(line))
        if (strncmp(line, name, length) == 0)
            return strtoull(line + length, NULL, 10);
    return 0;
}

/* "cpu0 user nice system idle iowait irq softirq steal ..." */
static bool parse_core(const char *line, pl_core *core)
{
    uint64_t t[8] = { 0 };
    const char *at = line + strcspn(line, " \n");
    char *end;
    *core = (pl_core) { 0 };
    for (int i = 0; i < 8; i++, at = end) {
        t[i] = strtoull(at, &end, 10);
        if (end == at)
            return i >= 4;
        core->all += t[i];
        if (i != 3 && i != 4) /* idle and iowait */
            core->busy += t[i];
    }
    return true;
}

/* The number in "cpu3 "; -1 for the sum of all, -2 for another line. */
static int core_number(const char *line)
{
    char *end;
    if (strncmp(line, "cpu", 3) != 0)
        return -2;
    if (line[3] == ' ')
        return -1;
    long number = strtol(line + 3, &end, 10);
    return end == line + 3 || *end != ' ' || number < 0 || number > 65535
               ? -2
               : (int)number;
}

static void read_stat(pl_host_stats *host, const char *text)
{
    for (const char *line = text; line != NULL; line = next_line(line)) {
        int number = core_number(line);
        pl_core core;
        if (number < -1 || number >= host->core_count ||
            !parse_core(line, &core))
            continue;
        if (number < 0)
            host->all = core;
        else
            host->cores[number] = core;
    }
    host->switches = number_of(text, "ctxt");
}

/* "  eth0: bytes packets errs drop fifo frame compressed multicast bytes
 * packets ..." */
static bool parse_interface(const char *line, pl_interface *net)
{
    line += strspn(line, " ");
    size_t length = strcspn(line, ":\n");
    uint64_t values[10];
    if (line[length] != ':' || length == 0 || length >= sizeof net->name)
        return false;
    memcpy(net->name, line, length);
    net->name[length] = '\0';
    const char *at = line + length + 1;
    for (int i = 0; i < 10; i++) {
        char *end;
        values[i] = strtoull(at, &end, 10);
        if (end == at)
            return false;
        at = end;
    }
    net->received_bytes = values[0];
    net->received_packets = values[1];
    net->sent_bytes = values[8];
    net->sent_packets = values[9];
    return true;
}

static void read_nets(pl_host_stats *host, const char *text)
{
    host->net_count = 0;
    for (const char *line = text;
         line != NULL && host->net_count < PL_HOST_NETS; line = next_line(line))
        if (parse_interface(line, &host->nets[host->net_count]))
            host->net_count++;
}

/* Whole disks, not partitions or devices on top of disks: sda, vda, xvda,
 * nvme0n1, mmcblk0. */
static bool is_disk(const char *name)
{
    size_t length = strlen(name);
    if (strncmp(name, "nvme", 4) == 0 || strncmp(name, "mmcblk", 6) == 0)
        return strchr(name, 'p') == NULL;
    return (strncmp(name, "sd", 2) == 0 || strncmp(name, "vd", 2) == 0 ||
            strncmp(name, "xvd", 3) == 0 || strncmp(name, "hd", 2) == 0) &&
           (name[length - 1] < '0' || name[length - 1] > '9');
}

static void read_disks(pl_host_stats *host, const char *text)
{
    uint64_t reads, writes;
    char name[32];
    host->disk_read_bytes = host->disk_written_bytes = 0;
    for (const char *line = text; line != NULL; line = next_line(line)) {
        if (sscanf(line,
                   "%*u %*u %31s %*u %*u %" SCNu64 " %*u %*u %*u %" SCNu64,
                   name, &reads, &writes) != 3 ||
            !is_disk(name))
            continue;
        host->disk_read_bytes += reads * SECTOR_BYTES;
        host->disk_written_bytes += writes * SECTOR_BYTES;
    }
}

pl_status pl_host_stats_init(pl_host_stats *host, const char *root)
{
    *host = (pl_host_stats) { 0 };
    PL_TRY(PL_NEW(host->text, FILE_BYTES));
    read_text(root, "stat", host->text, FILE_BYTES);
    for (const char *line = host->text; line != NULL; line = next_line(line))
        if (core_number(line) >= host->core_count)
            host->core_count = core_number(line) + 1;
    pl_status status = PL_NEW(host->cores, (size_t)host->core_count);
    if (status != PL_OK)
        pl_host_stats_close(host);
    return status;
}

void pl_host_stats_close(pl_host_stats *host)
{
    pl_mem_free(host->cores);
    pl_mem_free(host->text);
    *host = (pl_host_stats) { 0 };
}

void pl_host_stats_read(pl_host_stats *host, const char *root)
{
    char *text = host->text;
    read_text(root, "stat", text, FILE_BYTES);
    read_stat(host, text);
    read_text(root, "net/dev", text, FILE_BYTES);
    read_nets(host, text);
    read_text(root, "diskstats", text, FILE_BYTES);
    read_disks(host, text);
    read_text(root, "loadavg", text, FILE_BYTES);
    host->load = strtod(text, NULL);
    read_text(root, "meminfo", text, FILE_BYTES);
    host->memory_total_kb = (int64_t)number_of(text, "MemTotal:");
    host->memory_kb =
        host->memory_total_kb - (int64_t)number_of(text, "MemAvailable:");
}

/* "pid (name) state parent ... utime stime": the name may contain anything, so
 * fields are counted from its last bracket. */
static bool parse_stat(pl_process *process, const char *text)
{
    const char *at = strrchr(text, ')');
    int parent;
    uint64_t user, system, began = 0;
    if (at == NULL ||
        sscanf(at + 1,
               " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64
               " %" SCNu64 " %*d %*d %*d %*d %*d %*d %" SCNu64,
               &parent, &user, &system, &began) < 3)
        return false;
    process->parent = parent;
    process->began = began;
    process->ticks = user + system;
    return true;
}

static uint64_t switches_of(const char *status)
{
    return number_of(status, "voluntary_ctxt_switches:") +
           number_of(status, "nonvoluntary_ctxt_switches:");
}

/* Sum over all threads, which are counted separately. */
static uint64_t read_switches(const char *root, pid_t pid)
{
    char path[PATH_BYTES], text[SMALL_BYTES];
    uint64_t sum = 0;
    snprintf(path, sizeof path, "%s/%d/task", root, pid);
    DIR *folder = opendir(path);
    for (struct dirent *entry;
         folder != NULL && (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%d/task/%.20s/status", pid, entry->d_name);
        read_text(root, path, text, sizeof text);
        sum += switches_of(text);
    }
    if (folder != NULL)
        closedir(folder);
    return sum;
}

static bool read_process_stat(pl_process *process, const char *root, pid_t pid)
{
    char name[PATH_BYTES], text[SMALL_BYTES];
    *process = (pl_process) { .pid = pid };
    snprintf(name, sizeof name, "%d/stat", pid);
    read_text(root, name, text, sizeof text);
    return parse_stat(process, text);
}

bool pl_process_read(pl_process *process, const char *root, pid_t pid)
{
    char name[PATH_BYTES], text[SMALL_BYTES];
    if (!read_process_stat(process, root, pid))
        return false;
    snprintf(name, sizeof name, "%d/status", pid);
    read_text(root, name, text, sizeof text);
    process->rss_kb = (int64_t)number_of(text, "VmRSS:");
    process->peak_kb = (int64_t)number_of(text, "VmHWM:");
    process->switches = read_switches(root, pid);
    snprintf(name, sizeof name, "%d/io", pid);
    read_text(root, name, text, sizeof text);
    process->read_bytes = number_of(text, "read_bytes:");
    process->written_bytes = number_of(text, "write_bytes:");
    return true;
}

/* All processes with their parents; returns how many. */
static int list_processes(const char *root, pl_process *out, int room)
{
    int count = 0;
    DIR *folder = opendir(root);
    for (struct dirent *entry;
         folder != NULL && count < room && (entry = readdir(folder)) != NULL;) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        if (*end == '\0' && pid > 0 &&
            read_process_stat(&out[count], root, (pid_t)pid))
            count++;
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

int pl_process_tree(const char *root, pid_t pid, pid_t *out, int room)
{
    pl_process *all = pl_mem_alloc(TREE_MOST, sizeof *all);
    int count = 0;
    if (all == NULL || room < 1)
        goto out;
    int there = list_processes(root, all, TREE_MOST);
    for (int i = 0; i < there; i++)
        if (all[i].pid == pid)
            out[count++] = pid;
    /* Children of the processes found so far, until there are no more. */
    for (int parent = 0; parent < count; parent++)
        for (int i = 0; i < there && count < room; i++)
            if (all[i].parent == out[parent])
                out[count++] = all[i].pid;
out:
    pl_mem_free(all);
    return count;
}

double pl_proc_ticks_per_s(void)
{
    long ticks = sysconf(_SC_CLK_TCK);
    return ticks > 0 ? (double)ticks : 100;
}
