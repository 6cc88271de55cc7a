/* fuzz_image.c - PNG and JPEG files, and their sizes. */
#include "base/assert.h"
#include "data/images/image.h"
#include "fuzz/fuzz.h"

#define SIDE 5

static void check(const pl_image *image)
{
    uint8_t small[3 * SIDE * SIDE];
    PL_ASSERT(image->width >= 1 && image->height >= 1);
    PL_ASSERT(image->channels == 1 || image->channels == 3);
    if (pl_image_resize(image, SIDE, SIDE, small) != PL_OK)
        return;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    pl_image image;
    /* Large images take longer, but reach no other code. */
    if (pl_image_measure(&image, data, bytes) != PL_OK ||
        (int64_t)image.width * image.height > 1 << 16)
        return 0;
    for (int32_t channels = 0; channels <= 3; channels += 3)
        if (pl_image_decode(&image, data, bytes, channels, SIDE, SIDE) ==
            PL_OK) {
            check(&image);
            pl_image_close(&image);
        }
    return 0;
}
