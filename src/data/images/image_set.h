/* image_set.h - "images:DIR": a data set of image files.
 *
 * All are decoded once, by all threads, brought to one size and kept in a cache
 * file, which later runs map.  Adding, changing or removing a file invalidates
 * the cache.
 *
 * Threads: any. */
#ifndef PL_DATA_IMAGES_IMAGE_SET_H
#define PL_DATA_IMAGES_IMAGE_SET_H

#include "data/dataset.h"
#include "data/images/image.h"
#include "data/source.h"

pl_status pl_images_open(pl_dataset **out, const char *folder, pl_split split,
                         const pl_source_opts *opts) PL_MUST_CHECK;

/* The size and colors of all images: as the options request, or those of the
 * first image.  `width` and `channels` are 0 until known. */
typedef struct pl_image_form {
    int32_t width, height, channels;
    bool given; /* by --image-size */
} pl_image_form;
pl_status pl_image_form_init(pl_image_form *form,
                             const pl_source_opts *opts) PL_MUST_CHECK;
/* Take unknown values from an image. */
pl_status pl_image_form_measure(pl_image_form *form, const uint8_t *data,
                                size_t bytes) PL_MUST_CHECK;
/* [H, W] or [3, H, W] */
pl_shape pl_image_form_shape(const pl_image_form *form);
/* Decode a file to such a row. */
pl_status pl_image_form_decode(const pl_image_form *form, const uint8_t *data,
                               size_t bytes, uint8_t *to) PL_MUST_CHECK;

#endif
