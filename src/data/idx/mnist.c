/* The SHA-256 digests of the four unpacked MNIST files, and the check of a
 * file against its own. */
#include "data/idx/mnist.h"

#include "base/hash/sha256.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define PIECE_BYTES ((unsigned)1 << 17)

const pl_mnist_file pl_mnist_files[PL_MNIST_FILES] = {
    { "train-images-idx3-ubyte.gz", 47040016,
      "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db" },
    { "train-labels-idx1-ubyte.gz", 60008,
      "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5" },
    { "t10k-images-idx3-ubyte.gz", 7840016,
      "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7" },
    { "t10k-labels-idx1-ubyte.gz", 10008,
      "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2" },
};

/* One byte too many is enough to refuse the file. */
static pl_status hash(gzFile gz, const char *path, int64_t most, uint8_t *piece,
                      pl_sha256 *sha)
{
    int64_t all = 0;
    while (all <= most) {
        int got = gzread(gz, piece, PIECE_BYTES), code;
        if (got == 0)
            return PL_OK;
        if (got < 0) {
            const char *why = gzerror(gz, &code);
            return code == Z_ERRNO
                       ? PL_FAIL(PL_IO, "read %s: %s", path, strerror(errno))
                       : PL_FAIL(PL_FORMAT, "%s: broken gzip stream: %s", path,
                                 why);
        }
        pl_sha256_update(sha, piece, (size_t)got);
        all += got;
    }
    return PL_FAIL(PL_FORMAT, "%s: more than %lld bytes unpacked", path,
                   (long long)most);
}

static pl_status hash_file(const char *path, int64_t most,
                           char text[PL_SHA256_TEXT])
{
    pl_sha256 sha;
    uint8_t digest[PL_SHA256_BYTES], *piece = NULL;
    pl_status status = PL_OK;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return PL_FAIL(errno == ENOENT ? PL_NOTFOUND : PL_IO, "open %s: %s",
                       path, strerror(errno));
    gzFile gz = gzdopen(file, "rb");
    if (gz == NULL) {
        close(file);
        return PL_FAIL(PL_NOMEM, "out of memory: unpacking gzip");
    }
    pl_sha256_init(&sha);
    PL_TRY_OUT(status, PL_NEW(piece, PIECE_BYTES));
    PL_TRY_OUT(status, hash(gz, path, most, piece, &sha));
    pl_sha256_final(&sha, digest);
    pl_sha256_text(digest, text);
out:
    pl_mem_free(piece);
    gzclose_r(gz);
    return status;
}

pl_status pl_mnist_check(const pl_mnist_file *file, const char *path)
{
    char text[PL_SHA256_TEXT];
    PL_TRY(hash_file(path, file->bytes, text));
    if (strcmp(text, file->sha256) != 0)
        return PL_FAIL(PL_FORMAT,
                       "%s: SHA-256 %.16s... unpacked, expected %.16s...", path,
                       text, file->sha256);
    return PL_OK;
}
