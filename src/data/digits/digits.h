/* digits.h - the built-in data set: handwritten-looking digits, 28 x 28.
 *
 * 60,000 images to train and 10,000 to test, drawn from strokes that are bent,
 * slanted, turned, thickened and shifted at random.  The arithmetic is all
 * integers and image i is a function of i, so every machine and every number
 * of threads draws the same bytes.  Each class has the same share of a split.
 *
 * Design.  digits.c makes the set and keeps the cache, digits_draw.c draws one
 * image, digits_glyphs.c holds the strokes of each digit.  Making a split takes
 * a second, so it is written to a cache file and mapped at the next start.  The
 * file appears under its name only when complete, and two processes that make
 * it at once write the same bytes.  A damaged file, or one of another
 * generator, is drawn again; without a writable folder only time is lost.
 *
 * Threads: any. */
#ifndef PL_DATA_DIGITS_DIGITS_H
#define PL_DATA_DIGITS_DIGITS_H

#include "data/source.h"

#define PL_DIGITS_SIDE   28
#define PL_DIGITS_PIXELS (PL_DIGITS_SIDE * PL_DIGITS_SIDE)
#define PL_DIGITS_TRAIN  60000
#define PL_DIGITS_TEST   10000

/* Uses cache_dir and threads. */
pl_status pl_digits_open(pl_dataset **out, pl_split split,
                         const pl_source_opts *opts) PL_MUST_CHECK;

/* Draw image i of the set, 0 <= i < 70,000 (test images from 60,000 on);
 * returns its label. */
uint8_t pl_digits_draw(uint8_t pixels[PL_DIGITS_PIXELS], uint32_t i);

#endif
