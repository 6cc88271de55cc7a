/* form.c - the size and number of channels of all images of a set: as
 * requested, or those of the first image. */
#include "data/images/image_set.h"

#include "tensor/shape.h"

#include <stdio.h>

pl_status pl_image_form_init(pl_image_form *form, const pl_source_opts *opts)
{
    *form = (pl_image_form) { .channels = opts->colors == PL_COLORS_GRAY  ? 1
                                          : opts->colors == PL_COLORS_RGB ? 3
                                                                          : 0 };
    const char *text = opts->image_size;
    if (opts->unlabelled && opts->shape.rank == 2)
        form->channels = 1; /* as in training */
    else if (opts->unlabelled && opts->shape.rank == 3 &&
             opts->shape.dim[0] == 3)
        form->channels = 3;
    int width = 0, height = 0;
    char rest;
    if (text == NULL)
        return PL_OK;
    int found = sscanf(text, "%5dx%5d%c", &width, &height, &rest);
    if (found == 1 && sscanf(text, "%5d%c", &width, &rest) == 1) {
        height = width;
        found = 2;
    }
    if (found != 2 || width < 1 || height < 1 || width > 16384 ||
        height > 16384)
        return PL_FAIL(PL_USAGE,
                       "--image-size %s: expected WIDTHxHEIGHT, such as 64x64",
                       text);
    form->width = width;
    form->height = height;
    form->given = true;
    return PL_OK;
}

pl_status pl_image_form_measure(pl_image_form *form, const uint8_t *data,
                                size_t bytes)
{
    pl_image image;
    PL_TRY(pl_image_measure(&image, data, bytes));
    if (form->width == 0) {
        form->width = image.width;
        form->height = image.height;
    }
    if (form->channels == 0)
        form->channels = image.channels;
    return PL_OK;
}

pl_shape pl_image_form_shape(const pl_image_form *form)
{
    return form->channels == 1
               ? PL_SHAPE(form->height, form->width)
               : PL_SHAPE(form->channels, form->height, form->width);
}

pl_status pl_image_form_decode(const pl_image_form *form, const uint8_t *data,
                               size_t bytes, uint8_t *to)
{
    pl_image image;
    PL_TRY(pl_image_decode(&image, data, bytes, form->channels,
                           form->given ? form->width : 0,
                           form->given ? form->height : 0));
    pl_status status;
    if (!form->given &&
        (image.width != form->width || image.height != form->height))
        status = PL_FAIL(PL_UNSUPPORTED,
                         "%d x %d pixels, but the first image has %d x %d; "
                         "resize all images with --image-size %dx%d",
                         image.width, image.height, form->width, form->height,
                         form->width, form->height);
    else
        status = pl_image_resize(&image, form->width, form->height, to);
    pl_image_close(&image);
    return status;
}
