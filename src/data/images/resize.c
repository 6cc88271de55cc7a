/* resize.c - brings an image to another size by a separable triangle filter:
 * first across, then down, in float32, rounded once at the end. */
#include "data/images/image.h"

#include "base/mem.h"

#include <math.h>

/* The source pixels that make one target pixel, and their weights. */
typedef struct taps {
    int32_t first, count;
} taps;

typedef struct filter {
    taps *taps;     /* [to] */
    float *weights; /* [to, most] */
    int32_t most;
} filter;

static void close_filter(filter *f)
{
    pl_mem_free(f->taps);
    pl_mem_free(f->weights);
}

/* The weights of one target pixel, which add up to 1. */
static void fill_taps(filter *f, int32_t i, int32_t from, double step,
                      double reach)
{
    double center = (i + 0.5) * step, sum = 0;
    int32_t first = (int32_t)floor(center - reach + 0.5);
    int32_t end = (int32_t)floor(center + reach + 0.5);
    float *weights = f->weights + (size_t)i * (size_t)f->most;
    first = first < 0 ? 0 : first;
    end = end > from ? from : end;
    for (int32_t s = first; s < end; s++) {
        double weight = 1 - fabs(s + 0.5 - center) / reach;
        weight = weight > 0 ? weight : 0;
        weights[s - first] = (float)weight;
        sum += weight;
    }
    for (int32_t s = first; s < end; s++)
        weights[s - first] /= (float)sum;
    f->taps[i] = (taps) { first, end - first };
}

static pl_status open_filter(filter *f, int32_t from, int32_t to)
{
    double step = (double)from / to, reach = step > 1 ? step : 1;
    *f = (filter) { .most = (int32_t)(2 * reach) + 2 };
    PL_TRY(PL_NEW(f->taps, (size_t)to));
    PL_TRY(PL_NEW(f->weights, (size_t)to * (size_t)f->most));
    for (int32_t i = 0; i < to; i++)
        fill_taps(f, i, from, step, reach);
    return PL_OK;
}

/* rows[height, width, channels] of the source's height. */
static void across(const pl_image *image, const filter *f, int32_t width,
                   float *rows)
{
    int32_t channels = image->channels;
    for (int32_t y = 0; y < image->height; y++) {
        const uint8_t *line =
            image->pixels + (size_t)y * (size_t)(image->width * channels);
        for (int32_t x = 0; x < width; x++) {
            const float *weights = f->weights + (size_t)x * (size_t)f->most;
            for (int32_t c = 0; c < channels; c++) {
                const uint8_t *at = line + f->taps[x].first * channels + c;
                float sum = 0;
                for (int32_t t = 0; t < f->taps[x].count; t++)
                    sum += weights[t] * at[t * channels];
                *rows++ = sum;
            }
        }
    }
}

static uint8_t to_byte(float value)
{
    return (uint8_t)(value < 0 ? 0 : value > 254.5f ? 255 : value + 0.5f);
}

static void down(const float *rows, const filter *f, int32_t width,
                 int32_t height, int32_t channels, uint8_t *to)
{
    size_t line = (size_t)width * (size_t)channels;
    for (int32_t c = 0; c < channels; c++)
        for (int32_t y = 0; y < height; y++) {
            const float *weights = f->weights + (size_t)y * (size_t)f->most;
            for (int32_t x = 0; x < width; x++) {
                const float *at =
                    rows + (size_t)f->taps[y].first * line + x * channels + c;
                float sum = 0;
                for (int32_t t = 0; t < f->taps[y].count; t++)
                    sum += weights[t] * at[(size_t)t * line];
                *to++ = to_byte(sum);
            }
        }
}

/* Nothing to filter: only the channels move. */
static void copy(const pl_image *image, uint8_t *to)
{
    int64_t pixels = (int64_t)image->width * image->height;
    for (int32_t c = 0; c < image->channels; c++)
        for (int64_t p = 0; p < pixels; p++)
            *to++ = image->pixels[p * image->channels + c];
}

pl_status pl_image_resize(const pl_image *image, int32_t width, int32_t height,
                          uint8_t *to)
{
    filter x = { .taps = NULL }, y = { .taps = NULL };
    float *rows = NULL;
    pl_status status = PL_OK;
    if (width == image->width && height == image->height) {
        copy(image, to);
        return PL_OK;
    }
    PL_TRY_OUT(status, open_filter(&x, image->width, width));
    PL_TRY_OUT(status, open_filter(&y, image->height, height));
    PL_TRY_OUT(status, PL_NEW(rows, (size_t)image->height * (size_t)width *
                                        (size_t)image->channels));
    across(image, &x, width, rows);
    down(rows, &y, width, height, image->channels, to);
out:
    close_filter(&x);
    close_filter(&y);
    pl_mem_free(rows);
    return status;
}
