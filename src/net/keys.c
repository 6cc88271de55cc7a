/* keys.c - makes, reads and writes a job's secret, refuses key files that other
 * users can read, and derives each task's key from it. */
#include "net/keys.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER "paceline job key 1\n"

static const char *const role_texts[] = { "none", "worker", "ps", "evaluator" };

pl_status pl_secret_make(pl_secret *out)
{
    if (sodium_init() < 0)
        return PL_FAIL(PL_IO, "libsodium finds no source of random numbers");
    randombytes_buf(out->bytes, sizeof out->bytes);
    return PL_OK;
}

void pl_secret_text(const pl_secret *secret, char out[PL_SECRET_TEXT])
{
    sodium_bin2hex(out, PL_SECRET_TEXT, secret->bytes, sizeof secret->bytes);
}

pl_status pl_secret_parse(pl_secret *out, const char *text)
{
    size_t length = strlen(text), bytes = 0;
    pl_secret found;
    if (length != PL_SECRET_TEXT - 1)
        return PL_FAIL(PL_FORMAT,
                       "a secret of %zu characters, expected %d hexadecimal "
                       "digits",
                       length, PL_SECRET_TEXT - 1);
    if (sodium_hex2bin(found.bytes, sizeof found.bytes, text, length, NULL,
                       &bytes, NULL) != 0 ||
        bytes != sizeof found.bytes)
        return PL_FAIL(PL_FORMAT, "a secret with other characters than "
                                  "hexadecimal digits");
    *out = found;
    pl_keys_wipe(&found, sizeof found);
    return PL_OK;
}

static pl_status write_all(int fd, const char *text, const char *path)
{
    for (size_t left = strlen(text); left > 0;) {
        ssize_t wrote = write(fd, text, left);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return PL_FAIL(PL_IO, "write %s: %s", path, strerror(errno));
        text += wrote;
        left -= (size_t)wrote;
    }
    if (fsync(fd) != 0)
        return PL_FAIL(PL_IO, "write %s: %s", path, strerror(errno));
    return PL_OK;
}

pl_status pl_secret_write(const pl_secret *secret, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return PL_FAIL(PL_USAGE,
                       "%s already exists and is not replaced: a job may be "
                       "using it; choose another name or remove it",
                       path);
    if (fd < 0)
        return PL_FAIL(PL_IO, "make %s: %s", path, strerror(errno));
    pl_status status = pl_secret_put(secret, fd, path);
    if (close(fd) != 0 && status == PL_OK)
        status = PL_FAIL(PL_IO, "write %s: %s", path, strerror(errno));
    if (status != PL_OK)
        unlink(path); /* half a key is useless */
    return status;
}

pl_status pl_secret_put(const pl_secret *secret, int fd, const char *path)
{
    char hex[PL_SECRET_TEXT], text[PL_SECRET_FILE_MAX];
    pl_secret_text(secret, hex);
    snprintf(text, sizeof text, HEADER "%s\n", hex);
    pl_status status = write_all(fd, text, path);
    sodium_memzero(hex, sizeof hex);
    sodium_memzero(text, sizeof text);
    return status;
}

/* No other user may read or choose the secret. */
static pl_status check_private(int fd, const char *path)
{
    struct stat file;
    if (fstat(fd, &file) != 0)
        return PL_FAIL(PL_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(file.st_mode))
        return PL_FAIL(PL_USAGE, "key file %s is not a file", path);
    if ((file.st_mode & 077) != 0)
        return PL_FAIL(PL_USAGE,
                       "key file %s is accessible to users other than its "
                       "owner (mode %04o): chmod 600 %s",
                       path, file.st_mode & 07777u, path);
    if (file.st_uid != geteuid() && file.st_uid != 0)
        return PL_FAIL(PL_USAGE,
                       "key file %s belongs to user %u, expected %u: make a "
                       "copy of your own with mode 600",
                       path, file.st_uid, geteuid());
    return PL_OK;
}

/* Read at most `room` bytes; the parser detects files that are too long. */
static pl_status read_some(int fd, char *out, size_t room, size_t *count,
                           const char *path)
{
    *count = 0;
    while (*count < room) {
        ssize_t got = read(fd, out + *count, room - *count);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return PL_FAIL(PL_IO, "read %s: %s", path, strerror(errno));
        if (got == 0)
            break;
        *count += (size_t)got;
    }
    return PL_OK;
}

pl_status pl_secret_read(pl_secret *out, const char *path)
{
    char text[PL_SECRET_FILE_MAX];
    size_t count;
    /* O_NONBLOCK: refuse a pipe of that name instead of waiting for it. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return PL_FAIL(errno == ENOENT ? PL_NOTFOUND : PL_IO, "key file %s: %s",
                       path, strerror(errno));
    pl_status status = check_private(fd, path);
    if (status == PL_OK)
        status = read_some(fd, text, sizeof text, &count, path);
    if (status == PL_OK) {
        status = pl_secret_parse_file(out, text, count);
        if (status != PL_OK)
            pl_context(status, "key file %s", path);
    }
    close(fd);
    sodium_memzero(text, sizeof text);
    return status;
}

pl_status pl_secret_parse_file(pl_secret *out, const void *bytes, size_t count)
{
    const size_t head = sizeof HEADER - 1, digits = PL_SECRET_TEXT - 1;
    const char *text = bytes;
    char hex[PL_SECRET_TEXT];
    if (count < head || memcmp(text, HEADER, head) != 0)
        return PL_FAIL(PL_FORMAT,
                       "expected \"%.*s\" in the first line, as "
                       "`paceline keys` writes it",
                       (int)head - 1, HEADER);
    bool newline = count == head + digits + 1 && text[count - 1] == '\n';
    if (count != head + digits && !newline)
        return PL_FAIL(PL_FORMAT,
                       "expected %zu hexadecimal digits in the second line "
                       "and nothing after it",
                       digits);
    memcpy(hex, text + head, digits);
    hex[digits] = '\0';
    pl_status status = pl_secret_parse(out, hex);
    sodium_memzero(hex, sizeof hex);
    return status;
}

void pl_principal_text(pl_principal who, char out[PL_PRINCIPAL_TEXT])
{
    if (who.role == PL_PRINCIPAL_NONE)
        snprintf(out, PL_PRINCIPAL_TEXT, "an unknown task");
    else
        snprintf(out, PL_PRINCIPAL_TEXT, "%s %d", role_texts[who.role],
                 who.index);
}

bool pl_principal_equal(pl_principal a, pl_principal b)
{
    return a.role == b.role && a.index == b.index;
}

bool pl_principal_permits(pl_principal who, pl_principal task)
{
    return who.role == PL_PRINCIPAL_NONE || pl_principal_equal(who, task);
}

bool pl_job_keys_has(const pl_job_keys *keys, pl_principal who)
{
    int32_t count = 0;
    switch (who.role) {
    case PL_PRINCIPAL_NONE:
        break;
    case PL_PRINCIPAL_WORKER:
        count = keys->workers;
        break;
    case PL_PRINCIPAL_PS:
        count = keys->ps;
        break;
    case PL_PRINCIPAL_EVALUATOR:
        count = keys->evaluator;
        break;
    }
    return who.index >= 0 && who.index < count;
}

void pl_keys_proof(const pl_secret *secret, pl_principal who,
                   uint8_t out[PL_PROOF_BYTES])
{
    char label[64];
    PL_ASSERT(who.role != PL_PRINCIPAL_NONE);
    int length = snprintf(label, sizeof label, "paceline/1/proof/%s/%d",
                          role_texts[who.role], who.index);
    crypto_generichash(out, PL_PROOF_BYTES, (const uint8_t *)label,
                       (unsigned long long)length, secret->bytes,
                       sizeof secret->bytes);
}

void pl_keys_wipe(void *memory, size_t bytes)
{
    sodium_memzero(memory, bytes);
}

bool pl_keys_same(const void *a, const void *b, size_t bytes)
{
    return sodium_memcmp(a, b, bytes) == 0;
}
