/* libsvm_write.c - writes examples as libsvm text: a label, then ID:VALUE
 * pairs. */
#include "base/mem.h"
#include "data/sparse/formats/writer.h"

#include <stdio.h>

#define LINE_BYTES 65536
#define PAIR_BYTES 48 /* the most for " ID:VALUE" */

typedef struct libsvm_writer {
    pl_sparse_writer base;
    char line[LINE_BYTES];
    size_t used;
} libsvm_writer;

static void release(pl_sparse_writer *base)
{
    (void)base;
}

static pl_status flush(libsvm_writer *writer)
{
    size_t used = writer->used;
    writer->used = 0;
    return pl_sparse_writer_bytes(&writer->base, writer->line, used);
}

static size_t put_integer(char *to, uint64_t value)
{
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    for (size_t i = 0; i < count; i++)
        to[i] = digits[count - 1 - i];
    return count;
}

static pl_status put_pair(libsvm_writer *writer, uint64_t id, float value)
{
    if (writer->used + PAIR_BYTES > LINE_BYTES)
        PL_TRY(flush(writer));
    char *line = writer->line;
    line[writer->used++] = ' ';
    writer->used += put_integer(line + writer->used, id);
    line[writer->used++] = ':';
    if (value == 1)
        line[writer->used++] = '1';
    else /* nine digits restore every float */
        writer->used +=
            (size_t)snprintf(line + writer->used, LINE_BYTES - writer->used,
                             "%.9g", (double)value);
    return PL_OK;
}

static pl_status put(pl_sparse_writer *base, const pl_batch *batch)
{
    libsvm_writer *writer = (libsvm_writer *)base;
    for (int64_t r = 0; r < batch->rows; r++) {
        int64_t s = batch->row_index != NULL ? batch->row_index[r] : r;
        if (writer->used + PAIR_BYTES > LINE_BYTES)
            PL_TRY(flush(writer));
        writer->line[writer->used++] =
            pl_view_label(&batch->labels, r) == 1 ? '1' : '0';
        for (int64_t i = batch->row_start[s]; i < batch->row_start[s + 1]; i++)
            PL_TRY(put_pair(writer, batch->ids[i],
                            batch->values != NULL ? batch->values[i] : 1));
        if (writer->used + PAIR_BYTES > LINE_BYTES)
            PL_TRY(flush(writer));
        writer->line[writer->used++] = '\n';
    }
    return PL_OK;
}

static pl_status finish(pl_sparse_writer *base)
{
    return flush((libsvm_writer *)base);
}

const pl_sparse_writer_ops pl_libsvm_writer = {
    .bytes = sizeof(libsvm_writer),
    .put = put,
    .finish = finish,
    .close = release,
};
