/* digits_priv.h - shared by the files of the digits.
 *
 * A glyph is one way to write a digit: strokes of points in a box 70 wide and
 * 100 high, x to the right, y down.  The pen follows a smooth curve through
 * the points of a stroke; a point given twice is a corner.
 *
 * Threads: constant data. */
#ifndef PL_DATA_DIGITS_DIGITS_PRIV_H
#define PL_DATA_DIGITS_DIGITS_PRIV_H

#include <stdint.h>

#define PL_DIGITS_SEED 1

/* Raise it with any change of glyphs or drawing: caches of another version
 * are drawn again. */
#define PL_DIGITS_GENERATOR 1

#define PL_GLYPH_POINTS  14 /* most points of a stroke */
#define PL_GLYPH_STROKES 2  /* most strokes of a glyph */
#define PL_GLYPHS        4  /* most ways to write a digit */

typedef struct pl_glyph {
    struct pl_glyph_stroke {
        int8_t count; /* 0: no such stroke */
        int8_t at[PL_GLYPH_POINTS][2];
    } strokes[PL_GLYPH_STROKES];
} pl_glyph;

/* A row ends with the first glyph that has no stroke. */
extern const pl_glyph pl_glyphs[10][PL_GLYPHS];

#endif
