/* image.c - decodes PNG by libpng and JPEG by libjpeg-turbo, and converts
 * channels: alpha is dropped, colors become gray by ITU-R BT.601. */
#include "data/images/image.h"

#include "base/mem.h"

#include <png.h>
#include <string.h>
#include <turbojpeg.h>

void pl_image_close(pl_image *image)
{
    pl_mem_free(image->pixels);
    *image = (pl_image) { .pixels = NULL };
}

static bool is_png(const uint8_t *data, size_t bytes)
{
    return bytes >= 8 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static bool is_jpeg(const uint8_t *data, size_t bytes)
{
    return bytes >= 3 && memcmp(data, "\xff\xd8\xff", 3) == 0;
}

bool pl_image_is(const uint8_t *data, size_t bytes)
{
    return is_png(data, bytes) || is_jpeg(data, bytes);
}

static pl_status check_size(int64_t width, int64_t height)
{
    if (width < 1 || height < 1 || width > PL_IMAGE_PIXELS / height)
        return PL_FAIL(PL_UNSUPPORTED,
                       "an image of %lld x %lld, expected 1 to %lld pixels",
                       (long long)width, (long long)height,
                       (long long)PL_IMAGE_PIXELS);
    return PL_OK;
}

static pl_status new_pixels(pl_image *image)
{
    PL_TRY(check_size(image->width, image->height));
    return PL_NEW(image->pixels, (size_t)image->width * (size_t)image->height *
                                     (size_t)image->channels);
}

/* --- PNG ---------------------------------------------------------------- */

static pl_status open_png(png_image *png, pl_image *out, const uint8_t *data,
                          size_t bytes)
{
    *png = (png_image) { .version = PNG_IMAGE_VERSION };
    if (png_image_begin_read_from_memory(png, data, bytes) == 0)
        return PL_FAIL(PL_FORMAT, "damaged PNG file: %s", png->message);
    bool color = (png->format & PNG_FORMAT_FLAG_COLOR) != 0;
    pl_status status = check_size(png->width, png->height);
    if (status != PL_OK) {
        png_image_free(png);
        return status;
    }
    *out = (pl_image) { .width = (int32_t)png->width,
                        .height = (int32_t)png->height,
                        .channels = color ? 3 : 1 };
    return PL_OK;
}

static pl_status decode_png(pl_image *out, const uint8_t *data, size_t bytes)
{
    static const png_color black = { 0, 0, 0 };
    png_image png;
    PL_TRY(open_png(&png, out, data, bytes));
    png.format = out->channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
    pl_status status = new_pixels(out);
    if (status == PL_OK &&
        png_image_finish_read(&png, &black, out->pixels, 0, NULL) == 0)
        status = PL_FAIL(PL_FORMAT, "damaged PNG file: %s", png.message);
    png_image_free(&png);
    return status;
}

pl_status pl_image_encode(const pl_image *image, pl_buffer *out)
{
    png_image png = {
        .version = PNG_IMAGE_VERSION,
        .width = (png_uint_32)image->width,
        .height = (png_uint_32)image->height,
        .format = image->channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY,
    };
    png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(png);
    char *file;
    PL_TRY(PL_NEW(file, bytes));
    pl_status status = PL_OK;
    if (png_image_write_to_memory(&png, file, &bytes, 0, image->pixels, 0,
                                  NULL) == 0)
        status = PL_FAIL(PL_NOMEM, "packing PNG: %s", png.message);
    else
        pl_buffer_put(out, file, bytes);
    pl_mem_free(file);
    return status == PL_OK ? pl_buffer_status(out) : status;
}

/* --- JPEG --------------------------------------------------------------- */

static pl_status open_jpeg(tjhandle jpeg, pl_image *out, const uint8_t *data,
                           size_t bytes)
{
    int width, height, sampling, space;
    if (tjDecompressHeader3(jpeg, data, bytes, &width, &height, &sampling,
                            &space) != 0)
        return PL_FAIL(PL_FORMAT, "damaged JPEG file: %s",
                       tjGetErrorStr2(jpeg));
    if (space == TJCS_CMYK || space == TJCS_YCCK)
        return PL_FAIL(PL_UNSUPPORTED,
                       "a JPEG file of four inks (CMYK), expected gray or RGB");
    *out = (pl_image) { .width = width,
                        .height = height,
                        .channels = space == TJCS_GRAY ? 1 : 3 };
    return check_size(width, height);
}

/* The decoder can shrink by simple fractions: choose the smallest size that
 * still leaves the filter two pixels for one. */
static void shrink_jpeg(pl_image *out, int32_t width, int32_t height)
{
    int count;
    const tjscalingfactor *factors = tjGetScalingFactors(&count);
    int32_t full_width = out->width, full_height = out->height;
    for (int i = 0; i < count; i++) {
        int32_t w = TJSCALED(full_width, factors[i]);
        int32_t h = TJSCALED(full_height, factors[i]);
        if (w >= 2 * width && h >= 2 * height && w <= out->width &&
            h <= out->height) {
            out->width = w;
            out->height = h;
        }
    }
}

static pl_status decode_jpeg(tjhandle jpeg, pl_image *out, const uint8_t *data,
                             size_t bytes, int32_t width, int32_t height)
{
    PL_TRY(open_jpeg(jpeg, out, data, bytes));
    if (width > 0 && height > 0)
        shrink_jpeg(out, width, height);
    PL_TRY(new_pixels(out));
    if (tjDecompress2(jpeg, data, bytes, out->pixels, out->width, 0,
                      out->height, out->channels == 3 ? TJPF_RGB : TJPF_GRAY,
                      TJFLAG_STOPONWARNING) != 0)
        return PL_FAIL(PL_FORMAT, "damaged JPEG file: %s",
                       tjGetErrorStr2(jpeg));
    return PL_OK;
}

/* --- either ------------------------------------------------------------- */

static pl_status no_decoder(void)
{
    return PL_FAIL(PL_NOMEM, "out of memory: reading JPEG");
}

static pl_status unknown(const uint8_t *data, size_t bytes)
{
    if (bytes == 0)
        return PL_FAIL(PL_FORMAT, "empty, expected a PNG or JPEG file");
    return PL_FAIL(PL_FORMAT,
                   "neither a PNG nor a JPEG file: it begins with 0x%02x",
                   data[0]);
}

pl_status pl_image_measure(pl_image *out, const uint8_t *data, size_t bytes)
{
    if (is_png(data, bytes)) {
        png_image png;
        PL_TRY(open_png(&png, out, data, bytes));
        png_image_free(&png);
        return PL_OK;
    }
    if (!is_jpeg(data, bytes))
        return unknown(data, bytes);
    tjhandle jpeg = tjInitDecompress();
    if (jpeg == NULL)
        return no_decoder();
    pl_status status = open_jpeg(jpeg, out, data, bytes);
    tjDestroy(jpeg);
    return status;
}

/* In place: fewer bytes per pixel. */
static void to_gray(pl_image *image)
{
    int64_t pixels = (int64_t)image->width * image->height;
    for (int64_t i = 0; i < pixels; i++) {
        const uint8_t *p = image->pixels + 3 * i;
        /* 16-bit fractions of 0.299, 0.587 and 0.114 */
        image->pixels[i] =
            (uint8_t)((19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 0x8000) >>
                      16);
    }
    image->channels = 1;
}

static pl_status to_color(pl_image *image)
{
    int64_t pixels = (int64_t)image->width * image->height;
    uint8_t *color;
    PL_TRY(PL_NEW(color, (size_t)pixels * 3));
    for (int64_t i = 0; i < pixels; i++)
        memset(color + 3 * i, image->pixels[i], 3);
    pl_mem_free(image->pixels);
    image->pixels = color;
    image->channels = 3;
    return PL_OK;
}

static pl_status decode_any(pl_image *out, const uint8_t *data, size_t bytes,
                            int32_t width, int32_t height)
{
    if (is_png(data, bytes))
        return decode_png(out, data, bytes);
    if (!is_jpeg(data, bytes))
        return unknown(data, bytes);
    tjhandle jpeg = tjInitDecompress();
    if (jpeg == NULL)
        return no_decoder();
    pl_status status = decode_jpeg(jpeg, out, data, bytes, width, height);
    tjDestroy(jpeg);
    return status;
}

pl_status pl_image_decode(pl_image *out, const uint8_t *data, size_t bytes,
                          int32_t channels, int32_t width, int32_t height)
{
    pl_image image = { .pixels = NULL };
    pl_status status = decode_any(&image, data, bytes, width, height);
    if (status == PL_OK && channels == 1 && image.channels == 3)
        to_gray(&image);
    else if (status == PL_OK && channels == 3 && image.channels == 1)
        status = to_color(&image);
    if (status == PL_OK)
        *out = image;
    else
        pl_image_close(&image);
    return status;
}
