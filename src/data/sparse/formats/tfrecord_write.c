/* tfrecord_write.c - writes sparse examples as TFRecord files of
 * tf.train.Example, under the feature names that the reader expects. */
#include "base/mem.h"
#include "data/sparse/formats/tfrecord.h"
#include "data/sparse/formats/writer.h"
#include "proto/tf_example.h"
#include "proto/tfrecord.h"

typedef struct tfrecord_writer {
    pl_sparse_writer base;
    uint8_t *record; /* including its frame */
    size_t room;
} tfrecord_writer;

static void release(pl_sparse_writer *base)
{
    pl_mem_free(((tfrecord_writer *)base)->record);
}

static const char *either(const char *given, const char *usual)
{
    return given != NULL ? given : usual;
}

static pl_status put_example(tfrecord_writer *writer,
                             const pl_tf_example *example)
{
    size_t room =
        pl_tf_example_room(example) + PL_TFRECORD_HEAD + PL_TFRECORD_TAIL;
    if (room > writer->room) {
        PL_TRY(PL_RESIZE(writer->record, 2 * room));
        writer->room = 2 * room;
    }
    size_t bytes =
        pl_tf_example_write(example, writer->record + PL_TFRECORD_HEAD);
    return pl_sparse_writer_bytes(&writer->base, writer->record,
                                  pl_tfrecord_seal(writer->record, bytes));
}

static pl_status put(pl_sparse_writer *base, const pl_batch *batch)
{
    const pl_source_opts *opts = base->opts;
    for (int64_t r = 0; r < batch->rows; r++) {
        int64_t s = batch->row_index != NULL ? batch->row_index[r] : r;
        int64_t first = batch->row_start[s];
        pl_tf_example example = {
            .label_name = either(opts->label_feature, PL_TFRECORD_LABEL),
            .index_name = either(opts->index_feature, PL_TFRECORD_INDEX),
            .value_name = either(opts->value_feature, PL_TFRECORD_VALUE),
            .label = pl_view_label(&batch->labels, r),
            .ids = batch->ids + first,
            .values = batch->values != NULL ? batch->values + first : NULL,
            .count = (size_t)(batch->row_start[s + 1] - first),
        };
        PL_TRY(put_example((tfrecord_writer *)base, &example));
    }
    return PL_OK;
}

static pl_status finish(pl_sparse_writer *base)
{
    (void)base;
    return PL_OK;
}

const pl_sparse_writer_ops pl_tfrecord_writer = {
    .bytes = sizeof(tfrecord_writer),
    .put = put,
    .finish = finish,
    .close = release,
};
