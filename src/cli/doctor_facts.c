#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/ram.h"
#include "base/thread.h"
#include "cli/doctor.h"
#include "kernels/backend.h"
#include "net/keys.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define HOST_BYTES 256
#define TEXT_BYTES 512
#define LEFT_MOST  16 /* processes that are listed */

/* The beginning of a small file; "" when it cannot be read.  The NULs of a
 * command line become blanks. */
static void read_some(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, room - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    for (ssize_t i = 0; i + 1 < got; i++)
        if (text[i] == '\0')
            text[i] = ' ';
}

static int64_t free_bytes(const char *folder)
{
    struct statvfs fs;
    return statvfs(folder, &fs) == 0
               ? (int64_t)fs.f_bavail * (int64_t)fs.f_frsize
               : -1;
}

/* "always [madvise] never" is "madvise". */
static void chosen(const char *text, char *out, size_t room)
{
    const char *open = strchr(text, '[');
    const char *close = open != NULL ? strchr(open, ']') : NULL;
    if (close == NULL)
        snprintf(out, room, "unknown");
    else
        snprintf(out, room, "%.*s", (int)(close - open - 1), open + 1);
}

static pl_status add_machine(pl_json *out)
{
    char host[HOST_BYTES] = "", huge[TEXT_BYTES], mode[32], load[TEXT_BYTES];
    struct rlimit files = { 0 };
    pl_ram ram = pl_ram_available();
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        files.rlim_cur = 0;
    read_some("/sys/kernel/mm/transparent_hugepage/enabled", huge, sizeof huge);
    chosen(huge, mode, sizeof mode);
    read_some("/proc/loadavg", load, sizeof load);
    PL_TRY(pl_json_set_text(out, "host", host));
    PL_TRY(pl_json_set_text(out, "version", pl_version()));
    PL_TRY(pl_json_set_text(out, "kernels", pl_kernels_best()->name));
    PL_TRY(pl_json_set_int(out, "cores", pl_thread_cores()));
    PL_TRY(pl_json_set_real(out, "load", strtod(load, NULL)));
    PL_TRY(pl_json_set_int(out, "memory_free", ram.bytes));
    PL_TRY(pl_json_set_text(out, "memory_limit", ram.limit));
    PL_TRY(pl_json_set_int(out, "disk_free", free_bytes(".")));
    PL_TRY(pl_json_set_int(out, "shm_free", free_bytes("/dev/shm")));
    PL_TRY(pl_json_set_text(out, "huge_pages", mode));
    return pl_json_set_int(
        out, "files_most",
        files.rlim_cur > INT32_MAX ? INT32_MAX : (int64_t)files.rlim_cur);
}

/* The key file that tasks here would use, and what is wrong with it. */
static pl_status add_keys(pl_json *out)
{
    const char *file = getenv("PACELINE_KEYS");
    pl_secret secret;
    if (file == NULL || file[0] == '\0')
        return PL_OK;
    PL_TRY(pl_json_set_text(out, "keys", file));
    pl_status status = pl_secret_read(&secret, file);
    pl_keys_wipe(&secret, sizeof secret);
    return status == PL_OK
               ? PL_OK
               : pl_json_set_text(out, "keys_problem", pl_error_message());
}

/* Is this the command line of a task? */
static bool is_task(const char *command)
{
    const char *end = strchr(command, ' ');
    size_t length = end != NULL ? (size_t)(end - command) : strlen(command);
    return length >= 8 && strncmp(command + length - 8, "paceline", 8) == 0 &&
           (strstr(command, " --role ") != NULL ||
            strstr(command, " train ") != NULL);
}

static pl_status add_task(pl_json *list, const char *pid)
{
    char path[64], command[TEXT_BYTES], *line;
    snprintf(path, sizeof path, "/proc/%.20s/cmdline", pid);
    read_some(path, command, sizeof command);
    if (!is_task(command) || atoi(pid) == (int)getpid())
        return PL_OK;
    pl_talk_clean(command);
    PL_TRY(pl_mem_format(&line, "%s %.80s", pid, command));
    pl_status status = pl_json_append_text(list, line);
    pl_mem_free(line);
    return status;
}

static pl_status add_tasks(pl_json *out)
{
    char **names;
    size_t count;
    pl_json *list;
    PL_TRY(pl_file_list(&names, &count, "/proc"));
    pl_status status = pl_json_new_array(&list);
    for (size_t i = 0; status == PL_OK && i < count; i++)
        if (names[i][0] >= '1' && names[i][0] <= '9' &&
            pl_json_length(list) < LEFT_MOST)
            status = add_task(list, names[i]);
    pl_mem_free(names);
    return status == PL_OK ? pl_json_set_take(out, "tasks", list) : status;
}

pl_status pl_doctor_facts(pl_json *out)
{
    PL_TRY(add_machine(out));
    PL_TRY(add_keys(out));
    return add_tasks(out);
}
