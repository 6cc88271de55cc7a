/* picture.c - puts examples side by side: ten of each of the first classes, or
 * the first hundred.  Bytes are shown unchanged, floats scaled from the
 * smallest to the largest value shown. */
#include "app/data/dense.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "data/images/image.h"
#include "tensor/shape.h"

#include <math.h>

#define ACROSS  10
#define DOWN    10
#define GAP     2
#define GROUND  128 /* gray between the images */
#define NOTHING (-1)

typedef struct sheet {
    const pl_dataset *set;
    int64_t rows[DOWN * ACROSS]; /* example at each place, or NOTHING */
    int64_t height, width, planes;
    double least, most;
} sheet;

static pl_status measure(sheet *s)
{
    pl_shape shape = s->set->shape;
    char text[PL_SHAPE_TEXT];
    if (shape.rank != 2 && (shape.rank != 3 || shape.dim[0] > 4))
        return PL_FAIL(PL_USAGE,
                       "--picture is for images, but examples of %s are %s; "
                       "if they are images, give --example-shape HEIGHT,WIDTH",
                       s->set->name, pl_shape_text(shape, text));
    s->height = shape.dim[shape.rank - 2];
    s->width = shape.dim[shape.rank - 1];
    s->planes = shape.rank == 3 ? shape.dim[0] : 1;
    if (s->height > 2048 || s->width > 2048)
        return PL_FAIL(PL_USAGE,
                       "--picture: images of %lld x %lld are too large to be "
                       "drawn side by side",
                       (long long)s->width, (long long)s->height);
    return PL_OK;
}

static void choose(sheet *s)
{
    int used[DOWN] = { 0 };
    bool labelled = s->set->labels.data != NULL && !s->set->numeric;
    for (int i = 0; i < DOWN * ACROSS; i++)
        s->rows[i] = !labelled && i < s->set->count ? i : NOTHING;
    for (int64_t r = 0; labelled && r < s->set->count; r++) {
        int64_t label = pl_view_label(&s->set->labels, r);
        if (label < DOWN && used[label] < ACROSS)
            s->rows[label * ACROSS + used[label]++] = r;
    }
}

static double value_at(const sheet *s, int64_t row, int64_t at)
{
    const pl_view *view = &s->set->features;
    return view->dtype == PL_UINT8 ? (double)pl_view_row_u8(view, row)[at]
                                   : (double)pl_view_row_f32(view, row)[at];
}

static void find_range(sheet *s)
{
    int64_t row = pl_shape_row(s->set->shape);
    s->least = 0;
    s->most = 255;
    if (s->set->features.dtype == PL_UINT8)
        return;
    s->least = (double)INFINITY;
    s->most = -(double)INFINITY;
    for (int i = 0; i < DOWN * ACROSS; i++)
        for (int64_t at = 0; s->rows[i] != NOTHING && at < row; at++) {
            double value = value_at(s, s->rows[i], at);
            if (isfinite(value)) {
                s->least = fmin(s->least, value);
                s->most = fmax(s->most, value);
            }
        }
}

static void draw(const sheet *s, int place, pl_image *image)
{
    int64_t top = place / ACROSS * (s->height + GAP);
    int64_t left = place % ACROSS * (s->width + GAP);
    double range = s->most > s->least ? s->most - s->least : 1;
    for (int64_t y = 0; y < s->height; y++)
        for (int64_t x = 0; x < s->width; x++)
            for (int32_t c = 0; c < image->channels; c++) {
                int64_t plane = c < s->planes ? c : 0;
                double value = value_at(s, s->rows[place],
                                        (plane * s->height + y) * s->width + x);
                double shade = 255 * (value - s->least) / range;
                image->pixels[((top + y) * image->width + left + x) *
                                  image->channels +
                              c] = isfinite(shade) ? (uint8_t)shade : 0;
            }
}

pl_status pl_data_picture(const pl_dataset *set, const char *path)
{
    sheet s = { .set = set };
    pl_buffer png = { .data = NULL };
    PL_TRY(measure(&s));
    pl_image image = {
        .width = (int32_t)(ACROSS * (s.width + GAP) - GAP),
        .height = (int32_t)(DOWN * (s.height + GAP) - GAP),
        .channels = s.planes >= 3 ? 3 : 1,
    };
    size_t bytes =
        (size_t)image.width * (size_t)image.height * (size_t)image.channels;
    PL_TRY(PL_NEW(image.pixels, bytes));
    for (size_t i = 0; i < bytes; i++)
        image.pixels[i] = GROUND;
    choose(&s);
    find_range(&s);
    for (int i = 0; i < DOWN * ACROSS; i++)
        if (s.rows[i] != NOTHING)
            draw(&s, i, &image);
    pl_status status = pl_image_encode(&image, &png);
    if (status == PL_OK)
        status = pl_file_output(path, png.data, png.bytes);
    pl_buffer_close(&png);
    pl_image_close(&image);
    return status;
}
