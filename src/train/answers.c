/* Selects the misclassified examples of a test that are kept, those with the
 * highest probability, and shrinks large images by averaging squares of
 * pixels. */
#include "train/answers.h"

#include "base/mem.h"
#include "base/text/base64.h"
#include "tensor/shape.h"

#include <math.h>
#include <string.h>

#define CHANNELS_MAX 3

/* An example as [channels, height, width], after averaging squares of
 * pixels. */
typedef struct image {
    int64_t channels, height, width;
    int64_t square; /* pixels per side */
} image;

/* channels is 0 if the examples are not images. */
static image image_of(pl_shape shape)
{
    image im = { 0 };
    bool gray = shape.rank == 2;
    bool planes =
        shape.rank == 3 && (shape.dim[0] == 1 || shape.dim[0] == CHANNELS_MAX);
    if (!gray && !planes)
        return im;
    im.channels = gray ? 1 : shape.dim[0];
    im.height = shape.dim[shape.rank - 2];
    im.width = shape.dim[shape.rank - 1];
    int64_t side = im.height > im.width ? im.height : im.width;
    im.square = (side + PL_CONFUSION_SIDE - 1) / PL_CONFUSION_SIDE;
    im.height /= im.square;
    im.width /= im.square;
    if (im.height < 2 || im.width < 2)
        im.channels = 0;
    return im;
}

static float value_at(const pl_view *view, int64_t row, int64_t at)
{
    return view->dtype == PL_UINT8 ? (float)pl_view_row_u8(view, row)[at]
                                   : pl_view_row_f32(view, row)[at];
}

/* The mean of the square that begins at element `at`. */
static float mean_of_square(const pl_view *view, int64_t row, int64_t at,
                            int64_t across, int64_t square)
{
    float sum = 0;
    for (int64_t i = 0; i < square; i++)
        for (int64_t j = 0; j < square; j++)
            sum += value_at(view, row, at + i * across + j);
    return sum / (float)(square * square);
}

static void read_pixels(const pl_view *view, int64_t row, pl_shape shape,
                        image im, float *out)
{
    int64_t across = shape.dim[shape.rank - 1];
    int64_t plane = across * shape.dim[shape.rank - 2];
    for (int64_t c = 0; c < im.channels; c++)
        for (int64_t y = 0; y < im.height; y++)
            for (int64_t x = 0; x < im.width; x++)
                *out++ = mean_of_square(
                    view, row, c * plane + (y * across + x) * im.square, across,
                    im.square);
}

/* Bytes are copied; other numbers are scaled so that the smallest becomes 0 and
 * the largest 255. */
static void to_bytes(const float *values, int64_t count, bool plain,
                     uint8_t *bytes)
{
    float low = 0, high = 255;
    for (int64_t i = 0; i < count && !plain; i++) {
        low = i == 0 || values[i] < low ? values[i] : low;
        high = i == 0 || values[i] > high ? values[i] : high;
    }
    float scale = high > low ? 255 / (high - low) : 0;
    for (int64_t i = 0; i < count; i++) {
        float v = (values[i] - low) * scale;
        bytes[i] = v > 0 ? (uint8_t)(v < 255 ? v + 0.5f : 255) : 0;
    }
}

/* *pixels stays NULL if the example is not an image. */
static pl_status keep_pixels(pl_confusion *c, const pl_view *view, int64_t row,
                             pl_shape shape, char **pixels)
{
    float values[CHANNELS_MAX * PL_CONFUSION_SIDE * PL_CONFUSION_SIDE];
    uint8_t bytes[sizeof values / sizeof *values];
    image im = image_of(shape);
    int64_t count = im.channels * im.height * im.width;
    if (count == 0 || (view->dtype != PL_UINT8 && view->dtype != PL_FLOAT32))
        return PL_OK;
    read_pixels(view, row, shape, im, values);
    to_bytes(values, count, view->dtype == PL_UINT8, bytes);
    PL_TRY(PL_NEW(*pixels, PL_BASE64_TEXT((size_t)count)));
    pl_base64_encode(*pixels, bytes, (size_t)count);
    c->channels = (int32_t)im.channels;
    c->height = (int32_t)im.height;
    c->width = (int32_t)im.width;
    return PL_OK;
}

/* Position of an answer among those kept; ties keep the earlier one first. */
static size_t place_of(const pl_confusion *c, double probability)
{
    size_t at = c->wrong_count;
    while (at > 0 && c->wrong[at - 1].probability < probability)
        at--;
    return at;
}

static pl_status keep(pl_confusion *c, const pl_misclassified *wrong,
                      const pl_batch *batch, int64_t row, pl_shape shape)
{
    size_t at = place_of(c, wrong->probability);
    pl_misclassified own = *wrong;
    if (at == PL_CONFUSION_EXAMPLES)
        return PL_OK;
    PL_TRY(keep_pixels(c, &batch->features, row, shape, &own.pixels));
    if (c->wrong_count == PL_CONFUSION_EXAMPLES)
        pl_mem_free(c->wrong[--c->wrong_count].pixels);
    memmove(&c->wrong[at + 1], &c->wrong[at],
            (c->wrong_count - at) * sizeof *c->wrong);
    c->wrong[at] = own;
    c->wrong_count++;
    return PL_OK;
}

pl_status pl_answers_begin(pl_confusion *confusion, int64_t classes)
{
    pl_confusion_close(confusion);
    if (classes == 0)
        return PL_OK;
    size_t cells = (size_t)classes * (size_t)classes;
    PL_TRY(PL_NEW(confusion->counts, cells));
    confusion->count_count = cells;
    confusion->classes = (int32_t)classes;
    return PL_NEW(confusion->wrong, PL_CONFUSION_EXAMPLES);
}

static bool count(pl_confusion *c, int64_t label, int64_t predicted)
{
    if (label < 0 || label >= c->classes)
        return false;
    c->counts[label * c->classes + predicted].examples++;
    return true;
}

pl_status pl_answers_add(pl_confusion *confusion, const pl_batch *batch,
                         int64_t first, pl_shape shape,
                         const pl_answer *answers)
{
    for (int64_t r = 0; r < batch->rows; r++) {
        int64_t label = pl_view_label(&batch->labels, r);
        const pl_answer *answer = &answers[r];
        if (!count(confusion, label, answer->predicted) ||
            label == answer->predicted)
            continue;
        pl_misclassified wrong = { .index = first + r,
                                   .label = (int32_t)label,
                                   .predicted = answer->predicted,
                                   .probability = (double)answer->probability };
        PL_TRY(keep(confusion, &wrong, batch, r, shape));
    }
    return PL_OK;
}

void pl_answers_binary(pl_confusion *confusion, const pl_batch *batch,
                       const float *probs)
{
    for (int64_t r = 0; r < batch->rows; r++)
        (void)count(confusion, pl_view_label(&batch->labels, r) != 0,
                    probs[r] >= 0.5f);
}
