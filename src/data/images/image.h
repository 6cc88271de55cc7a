/* image.h - PNG and JPEG files, to pixels and back.
 *
 * Pixels are rows of interleaved channels, 1 (gray) or 3 (RGB), a byte each.
 * Transparent ones are drawn on black.  Files are untrusted input: sizes are
 * bounded before memory is allocated.
 *
 * Threads: any. */
#ifndef PL_DATA_IMAGES_IMAGE_H
#define PL_DATA_IMAGES_IMAGE_H

#include "base/buffer.h"

#define PL_IMAGE_PIXELS ((int64_t)1 << 26) /* the most of an image */

typedef struct pl_image {
    uint8_t *pixels; /* [height, width, channels]; pl_mem_free */
    int32_t width, height;
    int32_t channels;
} pl_image;

/* True when these bytes are the start of a PNG or JPEG file. */
bool pl_image_is(const uint8_t *data, size_t bytes);

/* Size and channels without the pixels, which stay NULL. */
pl_status pl_image_measure(pl_image *out, const uint8_t *data,
                           size_t bytes) PL_MUST_CHECK;

/* The pixels with so many channels (0: its own).  When the image will be shrunk
 * to `width` x `height` (0: it will not), a JPEG may be decoded to any size in
 * between. */
pl_status pl_image_decode(pl_image *out, const uint8_t *data, size_t bytes,
                          int32_t channels, int32_t width,
                          int32_t height) PL_MUST_CHECK;
void pl_image_close(pl_image *image); /* a zeroed one is fine */

/* The image at another size, channels first: to[channels, height, width].
 * Filtered by a triangle as wide as a source pixel or, when it shrinks, a
 * target pixel. */
pl_status pl_image_resize(const pl_image *image, int32_t width, int32_t height,
                          uint8_t *to) PL_MUST_CHECK;

/* Append a PNG file. */
pl_status pl_image_encode(const pl_image *image, pl_buffer *out) PL_MUST_CHECK;

#endif
