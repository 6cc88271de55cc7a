/* zip.c - reads the directory of a zip archive and unpacks its members
 * (APPNOTE.TXT 6.3.10; comments have its section numbers). */
#include "data/npy/zip.h"

#include "base/bytes.h"
#include "base/mem.h"

#include <string.h>

#define ZLIB_CONST /* what zlib reads is const */
#include <zlib.h>

#define END_BYTES       22 /* 4.3.16, without its comment */
#define END_MAGIC       0x06054b50u
#define LOCATOR_BYTES   20 /* 4.3.15 */
#define LOCATOR_MAGIC   0x07064b50u
#define END64_BYTES     56 /* 4.3.14 */
#define END64_MAGIC     0x06064b50u
#define ENTRY_BYTES     46 /* 4.3.12 */
#define ENTRY_MAGIC     0x02014b50u
#define LOCAL_BYTES     30 /* 4.3.7 */
#define LOCAL_MAGIC     0x04034b50u
#define COMMENT_MOST    65535
#define DIRECTORY_MOST  ((uint64_t)16 << 20)
#define DEFLATE_RATIO   1032 /* bytes from one byte, at most */
#define FLAG_ENCRYPTED  1u
#define METHOD_STORED   0u
#define METHOD_DEFLATED 8u
#define EXTRA_ZIP64     1u /* 4.5.3 */
#define PIECE           ((size_t)1 << 30)

typedef struct directory {
    uint64_t offset, bytes;
    uint8_t *data; /* a copy */
} directory;

static uint32_t get_u16(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static pl_status read_end64(directory *d, const pl_map *file, uint64_t end)
{
    uint8_t locator[LOCATOR_BYTES], record[END64_BYTES];
    if (end < LOCATOR_BYTES)
        return PL_OK;
    PL_TRY(pl_map_copy(file, end - LOCATOR_BYTES, locator, LOCATOR_BYTES));
    if (pl_get_u32(locator) != LOCATOR_MAGIC)
        return PL_OK;
    uint64_t at = pl_get_u64(locator + 8);
    if (at > end || end - at < END64_BYTES)
        return PL_FAIL(PL_FORMAT,
                       "damaged zip archive: its end record is said "
                       "to be at byte %llu",
                       (unsigned long long)at);
    PL_TRY(pl_map_copy(file, at, record, END64_BYTES));
    if (pl_get_u32(record) != END64_MAGIC)
        return PL_FAIL(PL_FORMAT,
                       "damaged zip archive: no end record at byte "
                       "%llu",
                       (unsigned long long)at);
    d->bytes = pl_get_u64(record + 40);
    d->offset = pl_get_u64(record + 48);
    return PL_OK;
}

/* Locate the directory by the record at the end of the file. */
static pl_status find_directory(directory *d, const pl_map *file)
{
    size_t most = file->bytes < END_BYTES + COMMENT_MOST
                      ? file->bytes
                      : END_BYTES + COMMENT_MOST;
    uint8_t *tail;
    PL_TRY(PL_NEW(tail, most + 1));
    pl_status status = pl_map_copy(file, file->bytes - most, tail, most);
    bool found = false;
    for (size_t back = END_BYTES; status == PL_OK && back <= most && !found;
         back++) {
        const uint8_t *at = tail + most - back;
        if (pl_get_u32(at) != END_MAGIC || get_u16(at + 20) != back - END_BYTES)
            continue;
        found = true;
        d->bytes = pl_get_u32(at + 12);
        d->offset = pl_get_u32(at + 16);
        status = read_end64(d, file, file->bytes - back);
    }
    pl_mem_free(tail);
    if (status == PL_OK && !found)
        status = PL_FAIL(PL_FORMAT, "not a zip archive, as .npz files are: it "
                                    "has no end record; write it by "
                                    "numpy.savez");
    return status;
}

static pl_status load_directory(directory *d, const pl_map *file)
{
    PL_TRY(find_directory(d, file));
    if (d->offset > file->bytes || d->bytes > file->bytes - d->offset ||
        d->bytes > DIRECTORY_MOST)
        return PL_FAIL(PL_FORMAT,
                       "damaged zip archive: a directory of %llu bytes at byte "
                       "%llu of %zu",
                       (unsigned long long)d->bytes,
                       (unsigned long long)d->offset, file->bytes);
    PL_TRY(PL_NEW(d->data, (size_t)d->bytes + 1));
    return pl_map_copy(file, (size_t)d->offset, d->data, (size_t)d->bytes);
}

/* An extra field has the sizes that do not fit 32 bits, and only those. */
static void read_zip64(const uint8_t *extra, size_t bytes,
                       pl_zip_member *member, uint64_t *local)
{
    uint64_t *wide[] = { &member->bytes, &member->packed, local };
    while (bytes >= 4) {
        size_t length = get_u16(extra + 2);
        if (length > bytes - 4)
            return;
        const uint8_t *at = extra + 4, *end = at + length;
        for (int i = 0; get_u16(extra) == EXTRA_ZIP64 && i < 3; i++)
            if (*wide[i] == UINT32_MAX && end - at >= 8) {
                *wide[i] = pl_get_u64(at);
                at += 8;
            }
        extra += 4 + length;
        bytes -= 4 + length;
    }
}

/* Locate the bytes of a member: after its local header. */
static pl_status find_bytes(pl_zip_member *member, const pl_map *file,
                            uint64_t local)
{
    uint8_t head[LOCAL_BYTES];
    if (local > file->bytes || file->bytes - local < LOCAL_BYTES)
        return PL_FAIL(PL_FORMAT,
                       "%s starts, by the directory, at byte %llu "
                       "of %zu",
                       member->name, (unsigned long long)local, file->bytes);
    PL_TRY(pl_map_copy(file, (size_t)local, head, LOCAL_BYTES));
    member->offset =
        local + LOCAL_BYTES + get_u16(head + 26) + get_u16(head + 28);
    if (pl_get_u32(head) != LOCAL_MAGIC || member->offset > file->bytes ||
        member->packed > file->bytes - member->offset)
        return PL_FAIL(PL_FORMAT,
                       "%s is said to have %llu bytes at byte %llu of %zu",
                       member->name, (unsigned long long)member->packed,
                       (unsigned long long)member->offset, file->bytes);
    return PL_OK;
}

static pl_status check_method(const pl_zip_member *member, unsigned flags,
                              unsigned method)
{
    if ((flags & FLAG_ENCRYPTED) != 0)
        return PL_FAIL(PL_UNSUPPORTED, "%s is encrypted", member->name);
    if (method != METHOD_STORED && method != METHOD_DEFLATED)
        return PL_FAIL(PL_UNSUPPORTED,
                       "%s is compressed by method %u, expected 0 (stored) or "
                       "8 (deflate), as numpy.savez writes",
                       member->name, method);
    uint64_t most = method == METHOD_STORED
                        ? member->packed
                        : member->packed * DEFLATE_RATIO + DEFLATE_RATIO;
    if (member->bytes > most ||
        (method == METHOD_STORED && member->bytes != member->packed))
        return PL_FAIL(PL_FORMAT,
                       "%s is said to have %llu bytes, which %llu packed ones "
                       "cannot hold",
                       member->name, (unsigned long long)member->bytes,
                       (unsigned long long)member->packed);
    return PL_OK;
}

/* The entry at `at`, with `left` bytes up to the end; *used is its size. */
static pl_status read_entry(pl_zip_member *member, const pl_map *file,
                            const uint8_t *at, size_t left, size_t *used)
{
    if (left < ENTRY_BYTES || pl_get_u32(at) != ENTRY_MAGIC)
        return PL_FAIL(PL_FORMAT, "no entry where one was expected");
    size_t name = get_u16(at + 28), extra = get_u16(at + 30);
    size_t all = ENTRY_BYTES + name + extra + get_u16(at + 32);
    if (all > left)
        return PL_FAIL(PL_FORMAT, "an entry of %zu bytes where %zu are left",
                       all, left);
    size_t kept = name < PL_ZIP_NAME - 1 ? name : PL_ZIP_NAME - 1;
    memcpy(member->name, at + ENTRY_BYTES, kept);
    member->name[kept] = '\0';
    member->crc = pl_get_u32(at + 16);
    member->packed = pl_get_u32(at + 20);
    member->bytes = pl_get_u32(at + 24);
    uint64_t local = pl_get_u32(at + 42);
    read_zip64(at + ENTRY_BYTES + name, extra, member, &local);
    unsigned method = get_u16(at + 10);
    member->deflated = method == METHOD_DEFLATED;
    PL_TRY(find_bytes(member, file, local));
    *used = all;
    return check_method(member, get_u16(at + 8), method);
}

static pl_status read_entries(pl_zip_member **out, size_t *count,
                              const pl_map *file, const directory *d)
{
    pl_zip_member *list = NULL;
    size_t used = 0, room = 0;
    pl_status status = PL_OK;
    for (uint64_t at = 0; at < d->bytes && status == PL_OK;) {
        size_t entry = 0;
        status = PL_GROW(list, used, room);
        if (status == PL_OK)
            status = read_entry(&list[used], file, d->data + at,
                                (size_t)(d->bytes - at), &entry);
        at += entry;
        used++;
    }
    if (status != PL_OK) {
        pl_mem_free(list);
        return pl_context(status, "damaged zip archive");
    }
    *out = list;
    *count = used;
    return PL_OK;
}

pl_status pl_zip_list(pl_zip_member **out, size_t *count, const pl_map *file)
{
    directory d = { 0 };
    pl_status status = load_directory(&d, file);
    if (status == PL_OK)
        status = read_entries(out, count, file, &d);
    pl_mem_free(d.data);
    return status;
}

/* Inflate the whole member, and nothing more. */
static pl_status inflate_all(z_stream *stream, uint8_t *out,
                             const uint8_t *from, const pl_zip_member *member)
{
    uint64_t in = member->packed, room = member->bytes;
    int code = Z_OK;
    stream->next_in = from;
    stream->next_out = out;
    while (code == Z_OK) {
        if (stream->avail_in == 0) {
            stream->avail_in = (unsigned)(in < PIECE ? in : PIECE);
            in -= stream->avail_in;
        }
        if (stream->avail_out == 0) {
            stream->avail_out = (unsigned)(room < PIECE ? room : PIECE);
            room -= stream->avail_out;
        }
        code = inflate(stream, Z_NO_FLUSH);
    }
    if (code == Z_MEM_ERROR)
        return PL_FAIL(PL_NOMEM, "out of memory: unpacking a zip archive");
    uint64_t left = room + stream->avail_out;
    if (code != Z_STREAM_END || left != 0)
        return PL_FAIL(PL_FORMAT, "%s: damaged: %s", member->name,
                       stream->msg != NULL ? stream->msg
                                           : "not as long as stated");
    return PL_OK;
}

static uint32_t sum_of(const uint8_t *data, uint64_t bytes)
{
    uLong sum = crc32(0, NULL, 0);
    while (bytes > 0) {
        unsigned piece = (unsigned)(bytes < PIECE ? bytes : PIECE);
        sum = crc32(sum, data, piece);
        data += piece;
        bytes -= piece;
    }
    return (uint32_t)sum;
}

pl_status pl_zip_unpack(uint8_t **out, const pl_map *file,
                        const pl_zip_member *member)
{
    z_stream stream = { .zalloc = pl_mem_zlib_alloc,
                        .zfree = pl_mem_zlib_free };
    uint8_t *data;
    PL_TRY(PL_NEW_ALIGNED(data, (size_t)member->bytes + 1));
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
        pl_mem_free(data);
        return PL_FAIL(PL_NOMEM, "out of memory: unpacking a zip archive");
    }
    pl_status status =
        inflate_all(&stream, data, file->data + member->offset, member);
    inflateEnd(&stream);
    if (status == PL_OK && sum_of(data, member->bytes) != member->crc)
        status = PL_FAIL(PL_FORMAT,
                         "%s: damaged: its checksum is not the one "
                         "stated",
                         member->name);
    pl_status whole = pl_map_check(file);
    status = whole != PL_OK ? whole : status;
    if (status == PL_OK)
        *out = data;
    else
        pl_mem_free(data);
    return status;
}
