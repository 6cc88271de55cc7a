/* csv_write.c - writes a table: the label first, numbers with enough digits to
 * read back the same float32. */
#include "base/buffer.h"
#include "base/file/file.h"
#include "base/text/quote.h"
#include "data/dense/writer.h"
#include "data/pack/pack.h"
#include "tensor/shape.h"

#include <stdio.h>

#define FLUSH_BYTES ((size_t)1 << 20)

typedef struct output {
    pl_file_writer *file;
    pl_packer *packer; /* NULL: not packed */
    pl_buffer text;
} output;

static pl_status flush(output *o)
{
    PL_TRY(pl_buffer_status(&o->text));
    pl_status status =
        o->packer != NULL
            ? pl_packer_put(o->packer, o->text.data, o->text.bytes)
            : pl_file_writer_put(o->file, o->text.data, o->text.bytes);
    pl_buffer_clear(&o->text);
    return status;
}

static void put_header(output *o, const pl_dataset *set)
{
    if (set->labels.data != NULL)
        pl_buffer_text(&o->text, "label,");
    int64_t row = pl_shape_row(set->shape);
    for (int64_t c = 0; c < row; c++)
        pl_buffer_format(&o->text, "f%lld%s", (long long)c,
                         c + 1 < row ? "," : "\n");
}

static void put_label(output *o, const pl_dataset *set, int64_t row,
                      const pl_encoding *encoding)
{
    if (set->numeric) {
        pl_buffer_format(&o->text, "%.9g,",
                         (double)*pl_view_row_f32(&set->labels, row));
        return;
    }
    int64_t label = pl_view_label(&set->labels, row);
    const char *name =
        encoding != NULL ? pl_encoding_class(encoding, label) : NULL;
    if (name != NULL)
        pl_quote_csv(&o->text, name);
    else
        pl_buffer_format(&o->text, "%lld", (long long)label);
    pl_buffer_text(&o->text, ",");
}

/* A row of bytes or floats; a missing number is an empty cell. */
static void put_row(output *o, const pl_dataset *set, int64_t row)
{
    int64_t columns = pl_shape_row(set->shape);
    const pl_view *view = &set->features;
    for (int64_t c = 0; c < columns; c++) {
        const char *end = c + 1 < columns ? "," : "\n";
        double value = 0;
        if (view->dtype == PL_UINT8) {
            pl_buffer_format(&o->text, "%d%s", pl_view_row_u8(view, row)[c],
                             end);
            continue;
        }
        value = (double)pl_view_row_f32(view, row)[c];
        if (value == value)
            pl_buffer_format(&o->text, "%.9g%s", value, end);
        else
            pl_buffer_text(&o->text, end);
    }
}

static pl_status write_rows(output *o, const pl_dataset *set,
                            const pl_encoding *encoding)
{
    put_header(o, set);
    for (int64_t r = 0; r < set->count; r++) {
        if (set->labels.data != NULL)
            put_label(o, set, r, encoding);
        put_row(o, set, r);
        if (o->text.bytes > FLUSH_BYTES)
            PL_TRY(flush(o));
    }
    PL_TRY(flush(o));
    if (o->packer != NULL)
        PL_TRY(pl_packer_finish(o->packer));
    return pl_file_writer_commit(o->file);
}

pl_status pl_csv_write(const pl_dataset *set, const char *place, pl_split split,
                       const pl_encoding *encoding)
{
    (void)split;
    output o = { .file = NULL };
    if (set->numeric && set->classes != 1)
        return PL_FAIL(PL_USAGE,
                       "%s has %d numbers as labels of each example, and a "
                       "table has one: write npy:FILE,LABELS or npz:FILE",
                       set->name, set->classes);
    pl_packing packing = pl_packing_of_name(place);
    pl_status status = pl_file_writer_new_output(&o.file, place);
    if (status == PL_OK && packing != PL_PACKING_NONE)
        status = pl_packer_new(&o.packer, packing, o.file);
    if (status == PL_OK)
        status = write_rows(&o, set, encoding);
    pl_buffer_close(&o.text);
    pl_packer_free(o.packer);
    pl_file_writer_free(o.file);
    return status;
}
