/* share.c - names a process's shared memory so that another process of the same
 * user can open it through /proc, and verifies that the opened file is the one
 * named. */
#include "net/shm/share.h"

#include "net/shm/area_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORD "plshm1" /* prefix of a text; a change raises the number */

/* "boot id:inode of the process namespace" */
static pl_status describe_host(char out[64])
{
    char boot[40] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, boot, sizeof boot - 1);
    if (fd >= 0)
        close(fd);
    struct stat namespace;
    if (got <= 0 || stat("/proc/self/ns/pid", &namespace) != 0)
        return PL_FAIL(PL_UNSUPPORTED, "this host's /proc: %s",
                       strerror(errno));
    boot[strcspn(boot, "\n")] = 0;
    snprintf(out, 64, "%s:%" PRIu64, boot, (uint64_t) namespace.st_ino);
    return PL_OK;
}

pl_status pl_share_file_of(pl_share_file *out, int fd)
{
    struct stat stat;
    if (fstat(fd, &stat) != 0)
        return PL_FAIL(PL_IO, "descriptor %d: %s", fd, strerror(errno));
    *out = (pl_share_file) { fd, stat.st_ino, (uint64_t)stat.st_size };
    return PL_OK;
}

pl_status pl_share_init(pl_share_offer *out, const pl_area *area, int bell_fd)
{
    *out = (pl_share_offer) {
        .pid = getpid(), .channel.fd = -1, .area.fd = -1, .bell.fd = -1
    };
    PL_TRY(describe_host(out->host));
    if (area != NULL)
        PL_TRY(pl_share_file_of(&out->area, pl_area_fd(area)));
    return pl_share_file_of(&out->bell, bell_fd);
}

void pl_share_write(const pl_share_offer *share, char out[PL_SHARE_BYTES])
{
    const pl_share_file *files[] = { &share->channel, &share->area,
                                     &share->bell };
    int used = snprintf(out, PL_SHARE_BYTES, WORD " %s %" PRIx32, share->host,
                        (uint32_t)share->pid);
    for (size_t i = 0; i < 3; i++)
        used += snprintf(out + used, PL_SHARE_BYTES - (size_t)used,
                         " %" PRIx32 " %" PRIx64 " %" PRIx64,
                         (uint32_t)(files[i]->fd + 1), files[i]->inode,
                         files[i]->bytes);
    out[used++] = ' ';
    for (size_t i = 0; i < PL_NONCE_BYTES; i++)
        used += snprintf(out + used, PL_SHARE_BYTES - (size_t)used, "%02x",
                         share->nonce[i]);
}

/* The next word of a text, cut at the blank; "" when none is left. */
static const char *next_word(char **text)
{
    char *begin = *text;
    char *end = begin + strcspn(begin, " ");
    *text = *end == 0 ? end : end + 1;
    *end = 0;
    return begin;
}

static bool next_number(char **text, uint64_t most, uint64_t *out)
{
    const char *word = next_word(text);
    size_t digits = strspn(word, "0123456789abcdef");
    if (digits == 0 || digits > 16 || word[digits] != 0)
        return false;
    *out = strtoull(word, NULL, 16);
    return *out <= most;
}

static bool next_file(char **text, pl_share_file *out)
{
    uint64_t fd;
    if (!next_number(text, INT32_MAX, &fd) ||
        !next_number(text, UINT64_MAX, &out->inode) ||
        !next_number(text, INT64_MAX, &out->bytes))
        return false;
    out->fd = (int32_t)fd - 1;
    return true;
}

static bool next_nonce(char **text, uint8_t out[PL_NONCE_BYTES])
{
    const char *word = next_word(text);
    if (strspn(word, "0123456789abcdef") != 2 * PL_NONCE_BYTES)
        return false;
    for (size_t i = 0; i < PL_NONCE_BYTES; i++) {
        char pair[3] = { word[2 * i], word[2 * i + 1], 0 };
        out[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return word[2 * (size_t)PL_NONCE_BYTES] == 0;
}

pl_status pl_share_read(pl_share_offer *out, const char *text)
{
    char copy[PL_SHARE_BYTES];
    pl_share_offer share = { .pid = 0 };
    uint64_t pid = 0;
    char *rest = copy;
    int length = snprintf(copy, sizeof copy, "%s", text);
    if (length < (int)sizeof copy && strcmp(next_word(&rest), WORD) == 0) {
        const char *host = next_word(&rest);
        size_t bytes = strlen(host) + 1;
        bool fits = bytes <= sizeof share.host;
        if (fits)
            memcpy(share.host, host, bytes);
        if (fits && next_number(&rest, INT32_MAX, &pid) &&
            next_file(&rest, &share.channel) && next_file(&rest, &share.area) &&
            next_file(&rest, &share.bell) && next_nonce(&rest, share.nonce) &&
            *rest == 0 && pid > 0) {
            share.pid = (int32_t)pid;
            *out = share;
            return PL_OK;
        }
    }
    return PL_FAIL(PL_FORMAT, "\"%.64s\" does not describe shared memory",
                   text);
}

/* Open a descriptor of another process, after checking its type: a path from a
 * peer must not make us open a device. */
static pl_status open_theirs(int *out, const pl_share_offer *from,
                             const pl_share_file *file, mode_t type, int flags)
{
    char path[64];
    struct stat stat;
    snprintf(path, sizeof path, "/proc/%" PRId32 "/fd/%" PRId32, from->pid,
             file->fd);
    int look = open(path, O_PATH | O_CLOEXEC);
    if (look < 0)
        return PL_FAIL(PL_IO, "%s: %s", path, strerror(errno));
    bool same = fstat(look, &stat) == 0 && stat.st_ino == file->inode &&
                (stat.st_mode & S_IFMT) == type && stat.st_uid == geteuid() &&
                (uint64_t)stat.st_size == file->bytes;
    int fd = -1;
    if (same) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", look);
        fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
    }
    int error = errno;
    close(look);
    if (!same)
        return PL_FAIL(PL_PEER, "%s is not the file that process %d named",
                       path, (int)from->pid);
    if (fd < 0)
        return PL_FAIL(PL_IO, "%s: %s", path, strerror(error));
    *out = fd;
    return PL_OK;
}

pl_status pl_share_map(void **out, const pl_share_offer *from,
                       const pl_share_file *file, bool writable)
{
    int fd = -1;
    PL_TRY(open_theirs(&fd, from, file, S_IFREG, writable ? O_RDWR : O_RDONLY));
    /* Check the size after the seal: it can no longer shrink. */
    struct stat stat;
    int seals = fcntl(fd, F_GET_SEALS);
    bool sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0 &&
                  fstat(fd, &stat) == 0 &&
                  (uint64_t)stat.st_size >= file->bytes;
    void *memory = MAP_FAILED;
    if (sealed)
        memory = mmap(NULL, file->bytes,
                      writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                      fd, 0);
    int error = errno;
    close(fd);
    if (!sealed)
        return PL_FAIL(PL_PEER, "memory of process %d is not sealed",
                       (int)from->pid);
    if (memory == MAP_FAILED)
        return PL_FAIL(PL_NOMEM, "map %" PRIu64 " bytes of process %d: %s",
                       file->bytes, (int)from->pid, strerror(error));
    *out = memory;
    return PL_OK;
}

pl_status pl_share_open_bell(int *out, const pl_share_offer *from)
{
    /* Read and write: we count as a reader too, so the pipe never breaks. */
    return open_theirs(out, from, &from->bell, S_IFIFO, O_RDWR);
}

pl_status pl_share_watch(int *out, const pl_share_offer *from)
{
    long fd = syscall(SYS_pidfd_open, (pid_t)from->pid, 0);
    if (fd < 0)
        return PL_FAIL(PL_UNSUPPORTED, "watch process %d: %s", (int)from->pid,
                       strerror(errno));
    *out = (int)fd;
    return PL_OK;
}
