/* image_write.c - writes the images of a set as PNG files, a folder for each
 * class, named by number so that they sort. */
#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/quote.h"
#include "data/dense/writer.h"
#include "data/images/image.h"
#include "tensor/shape.h"

#include <math.h>
#include <stdio.h>

/* Whether a number of a table can be written as a byte. */
static bool is_byte(float value)
{
    return value >= 0 && value <= 255 && value == floorf(value);
}

static bool are_bytes(const pl_dataset *set)
{
    int64_t count = pl_shape_row(set->shape);
    for (int64_t r = 0; r < set->count; r++) {
        const float *row = pl_view_row_f32(&set->features, r);
        for (int64_t i = 0; i < count; i++)
            if (!is_byte(row[i]))
                return false;
    }
    return true;
}

static uint8_t byte_at(const pl_dataset *set, int64_t row, int64_t at)
{
    return set->features.dtype == PL_UINT8
               ? pl_view_row_u8(&set->features, row)[at]
               : (uint8_t)pl_view_row_f32(&set->features, row)[at];
}

/* An example as an image; the caller frees its pixels. */
static pl_status take_image(pl_image *image, const pl_dataset *set, int64_t row)
{
    pl_shape shape = set->shape;
    int64_t height = shape.dim[shape.rank - 2];
    int64_t width = shape.dim[shape.rank - 1];
    *image =
        (pl_image) { .width = (int32_t)width,
                     .height = (int32_t)height,
                     .channels = shape.rank == 3 ? (int32_t)shape.dim[0] : 1 };
    PL_TRY(PL_NEW(image->pixels, (size_t)pl_shape_row(shape)));
    for (int64_t p = 0; p < height * width; p++)
        for (int32_t c = 0; c < image->channels; c++)
            image->pixels[p * image->channels + c] =
                byte_at(set, row, c * height * width + p);
    return PL_OK;
}

static pl_status check(const pl_dataset *set)
{
    pl_shape s = set->shape;
    char text[PL_SHAPE_TEXT];
    if ((s.rank == 2 || (s.rank == 3 && (s.dim[0] == 1 || s.dim[0] == 3))) &&
        s.dim[s.rank - 1] <= PL_IMAGE_PIXELS / s.dim[s.rank - 2] &&
        (set->features.dtype == PL_UINT8 || are_bytes(set)))
        return PL_OK;
    return PL_FAIL(PL_UNSUPPORTED,
                   "%s: examples of %s %s are not images, expected whole "
                   "numbers from 0 to 255 of [height, width] or [3, height, "
                   "width]",
                   set->name, pl_dtype_name(set->features.dtype),
                   pl_shape_text(s, text));
}

/* "DIR/cat", or the class by its number, with zeros in front so that names
 * sort as numbers do. */
static pl_status name_folder(char **out, const char *place, int64_t label,
                             int32_t classes, const pl_encoding *encoding)
{
    const char *known =
        encoding != NULL ? pl_encoding_class(encoding, label) : NULL;
    char *name;
    int digits = 1;
    for (int32_t rest = classes - 1; rest >= 10; rest /= 10)
        digits++;
    PL_TRY(known != NULL
               ? pl_mem_copy_text(&name, known)
               : pl_mem_format(&name, "%0*lld", digits, (long long)label));
    pl_quote_file_name(name);
    pl_status status = pl_file_join(out, place, name);
    pl_mem_free(name);
    return status;
}

static pl_status write_image(const pl_dataset *set, const char *folder,
                             int64_t row)
{
    pl_image image = { .pixels = NULL };
    pl_buffer png = { .data = NULL };
    char *path = NULL;
    pl_status status = take_image(&image, set, row);
    if (status == PL_OK)
        status = pl_image_encode(&image, &png);
    if (status == PL_OK)
        status = pl_mem_format(&path, "%s/%07lld.png", folder, (long long)row);
    if (status == PL_OK)
        status = pl_file_output(path, png.data, png.bytes);
    pl_mem_free(path);
    pl_buffer_close(&png);
    pl_image_close(&image);
    return status;
}

/* Make the folders of all classes, including those without images. */
static pl_status make_folders(char **folders, const pl_dataset *set,
                              const char *place, const pl_encoding *encoding)
{
    for (int32_t c = 0; c < set->classes; c++) {
        PL_TRY(name_folder(&folders[c], place, c, set->classes, encoding));
        PL_TRY(pl_file_make_folder(folders[c]));
    }
    return PL_OK;
}

pl_status pl_images_write(const pl_dataset *set, const char *place,
                          pl_split split, const pl_encoding *encoding)
{
    (void)split;
    char **folders;
    bool labelled = set->labels.data != NULL;
    PL_TRY(check(set));
    PL_TRY(pl_file_make_folder(place));
    PL_TRY(PL_NEW(folders, (size_t)set->classes + 1));
    pl_status status =
        labelled ? make_folders(folders, set, place, encoding) : PL_OK;
    for (int64_t r = 0; r < set->count && status == PL_OK; r++)
        status = write_image(
            set, labelled ? folders[pl_view_label(&set->labels, r)] : place, r);
    for (int32_t c = 0; c < set->classes; c++)
        pl_mem_free(folders[c]);
    pl_mem_free(folders);
    return status;
}
