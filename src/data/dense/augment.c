/* augment.c - a reader around the shuffling one that copies each image of a
 * batch through a map of coordinates: target pixel to source position. */
#include "data/dense/augment.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/shuffle.h"
#include "tensor/shape.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct augment_reader {
    pl_reader base;
    pl_reader *inner;
    pl_augment augment;
    pl_shape shape;
    uint64_t key;
    uint8_t *rows; /* of a batch, in the set's type */
} augment_reader;

/* The source of the pixel (0, 0) and the distance of its neighbors. */
typedef struct mapping {
    float x, y, dx, dy;
} mapping;

static pl_status parse_word(pl_augment *out, const char *word, size_t bytes)
{
    char copy[32] = "", *end;
    if (bytes < sizeof copy)
        memcpy(copy, word, bytes);
    if (strcmp(copy, "flip") == 0) {
        out->flip = true;
        return PL_OK;
    }
    bool shift = strncmp(copy, "shift:", 6) == 0;
    bool crop = strncmp(copy, "crop:", 5) == 0;
    double value = shift || crop ? strtod(strchr(copy, ':') + 1, &end) : 0;
    if (shift && *end == '\0' && value >= 1 && value <= 1024 &&
        value == floor(value))
        out->shift = (int32_t)value;
    else if (crop && *end == '\0' && value >= 0.1 && value < 1)
        out->crop = (float)value;
    else
        return PL_FAIL(PL_USAGE,
                       "--augment %.*s: expected flip, shift:PIXELS or "
                       "crop:FRACTION (0.1 to less than 1), separated by "
                       "commas",
                       (int)bytes, word);
    return PL_OK;
}

pl_status pl_augment_parse(pl_augment *out, const char *text)
{
    *out = (pl_augment) { .flip = false };
    for (;;) {
        size_t bytes = strcspn(text, ",");
        PL_TRY(parse_word(out, text, bytes));
        if (text[bytes] == '\0')
            return PL_OK;
        text += bytes + 1;
    }
}

static mapping draw(const pl_augment *augment, uint64_t key, int64_t height,
                    int64_t width)
{
    mapping m = { .dx = 1, .dy = 1 };
    if (augment->crop > 0) {
        double side = (double)augment->crop +
                      (1 - (double)augment->crop) * pl_rng_uniform(key, 0);
        m.dx = m.dy = (float)side;
        m.x = (float)((1 - side) * (double)width * pl_rng_uniform(key, 1));
        m.y = (float)((1 - side) * (double)height * pl_rng_uniform(key, 2));
        m.x += (m.dx - 1) / 2; /* centers of pixels, not corners */
        m.y += (m.dy - 1) / 2;
    }
    if (augment->shift > 0) {
        uint32_t room = 2 * (uint32_t)augment->shift + 1;
        m.x += (float)pl_rng_below(key, 3, room) - (float)augment->shift;
        m.y += (float)pl_rng_below(key, 4, room) - (float)augment->shift;
    }
    if (augment->flip && pl_rng_below(key, 5, 2) == 1) {
        m.x += m.dx * (float)(width - 1);
        m.dx = -m.dx;
    }
    return m;
}

static float load(pl_dtype dtype, const void *from, int64_t at)
{
    return dtype == PL_UINT8 ? (float)((const uint8_t *)from)[at]
                             : ((const float *)from)[at];
}

/* Interpolate between four pixels; 0 outside the image. */
static float sample(pl_dtype dtype, const void *plane, int64_t height,
                    int64_t width, float y, float x)
{
    int64_t top = (int64_t)floorf(y), left = (int64_t)floorf(x);
    float down = y - (float)top, right = x - (float)left, sum = 0;
    for (int64_t v = 0; v < 2; v++)
        for (int64_t h = 0; h < 2; h++) {
            float weight =
                (v == 1 ? down : 1 - down) * (h == 1 ? right : 1 - right);
            int64_t row = top + v, column = left + h;
            if (weight > 0 && row >= 0 && row < height && column >= 0 &&
                column < width)
                sum += weight * load(dtype, plane, row * width + column);
        }
    return sum;
}

void pl_augment_image(const pl_augment *augment, uint64_t key, pl_shape shape,
                      pl_dtype dtype, const void *from, void *to)
{
    int64_t height = shape.dim[shape.rank - 2];
    int64_t width = shape.dim[shape.rank - 1];
    int64_t planes = pl_shape_row(shape) / (height * width);
    mapping m = draw(augment, key, height, width);
    int64_t bytes = pl_dtype_bytes(dtype);
    for (int64_t p = 0; p < planes; p++) {
        const uint8_t *plane =
            (const uint8_t *)from + p * height * width * bytes;
        for (int64_t y = 0; y < height; y++)
            for (int64_t x = 0; x < width; x++) {
                int64_t at = (p * height + y) * width + x;
                float value =
                    sample(dtype, plane, height, width, m.y + m.dy * (float)y,
                           m.x + m.dx * (float)x);
                if (dtype == PL_UINT8)
                    ((uint8_t *)to)[at] = (uint8_t)(value + 0.5f);
                else
                    ((float *)to)[at] = value;
            }
    }
}

static const void *row_of(const pl_view *view, int64_t row)
{
    return view->dtype == PL_UINT8 ? (const void *)pl_view_row_u8(view, row)
                                   : (const void *)pl_view_row_f32(view, row);
}

static pl_status next(pl_reader *base, pl_batch *out)
{
    augment_reader *reader = (augment_reader *)base;
    uint64_t key = pl_rng_key(reader->key,
                              (uint64_t)pl_shuffle_reader_epoch(reader->inner));
    PL_TRY(pl_reader_next(reader->inner, out));
    const pl_view all = out->features;
    int64_t bytes = pl_shape_row(reader->shape) * pl_dtype_bytes(all.dtype);
    for (int64_t r = 0; r < out->rows; r++)
        pl_augment_image(&reader->augment, pl_rng_key(key, all.index[r]),
                         reader->shape, all.dtype, row_of(&all, r),
                         reader->rows + r * bytes);
    out->features.data = reader->rows;
    out->features.index = NULL;
    out->features.stride = pl_shape_row(reader->shape);
    return PL_OK;
}

static void save(const pl_reader *base, pl_position *out)
{
    pl_reader_position(((const augment_reader *)base)->inner, out);
}

static pl_status restore(pl_reader *base, const pl_position *position)
{
    return pl_reader_seek(((augment_reader *)base)->inner, position);
}

static void go(pl_reader *base, int64_t step)
{
    pl_reader_go(((augment_reader *)base)->inner, step);
}

static void describe(const pl_reader *base, char text[PL_READS_TEXT])
{
    pl_reader_describe(((const augment_reader *)base)->inner, text);
}

static void release(pl_reader *base)
{
    augment_reader *reader = (augment_reader *)base;
    pl_reader_free(reader->inner);
    pl_mem_free(reader->rows);
    pl_mem_free(reader);
}

static const pl_reader_ops augment_ops = {
    .next = next,
    .position = save,
    .seek = restore,
    .go = go,
    .describe = describe,
    .free = release,
};

pl_status pl_augment_reader_new(pl_reader **out, const pl_dataset *set,
                                const pl_reader_opts *opts)
{
    augment_reader *reader;
    if (set->shape.rank != 2 && set->shape.rank != 3) {
        char text[PL_SHAPE_TEXT];
        return PL_FAIL(PL_USAGE,
                       "--augment is for images, and these examples are %s",
                       pl_shape_text(set->shape, text));
    }
    PL_TRY(PL_NEW(reader, 1));
    reader->base.ops = &augment_ops;
    reader->augment = set->augment;
    reader->shape = set->shape;
    reader->key = pl_rng_key_text(opts->seed, "augment");
    int64_t most = opts->batch < set->count ? opts->batch : set->count;
    size_t bytes = (size_t)(most * pl_shape_row(set->shape) *
                            pl_dtype_bytes(set->features.dtype));
    pl_status status = PL_NEW_ALIGNED(reader->rows, bytes);
    if (status == PL_OK)
        status = pl_shuffle_reader_new(&reader->inner, set, opts);
    if (status != PL_OK) {
        release(&reader->base);
        return status;
    }
    reader->base.steps_per_epoch = reader->inner->steps_per_epoch;
    reader->base.left_out = reader->inner->left_out;
    *out = &reader->base;
    return PL_OK;
}
