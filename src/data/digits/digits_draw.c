/* digits_draw.c - draws one digit from its strokes, in integer arithmetic only,
 * so that every machine draws the same bytes. */
#include "data/digits/digits.h"

#include "base/assert.h"
#include "base/rng.h"
#include "data/digits/digits_priv.h"

#include <string.h>

/* Design.  The points of a glyph are moved at random - each a little, then
 * all by one affine map, then by a smooth field - which bends and slants the
 * digit.  A Catmull-Rom spline through them gives short lines, and the pen is
 * a disc that moves along each: a pixel is as bright as the disc covers it.
 * Lengths are in 1/256 pixel while points move and in 1/32 pixel (UNIT) while
 * lines are drawn.  Negative numbers are divided, not shifted, so that every
 * compiler rounds them alike. */

#define SIDE  PL_DIGITS_SIDE
#define STEPS 6    /* lines between two points of a stroke */
#define ONE   4096 /* 1.0 in a matrix */
#define GRID  4    /* points per side of the bending field */
#define UNIT  32
#define LINES (PL_GLYPH_STROKES * PL_GLYPH_POINTS * STEPS)

/* The variation; chosen so that softmax regression is right on about 90 % of
 * the test images and a small convolutional net on about 98 %. */
#define JITTER    15   /* of a point, in glyph units */
#define HEIGHT    50   /* 1/256 pixel a glyph unit */
#define HEIGHT_BY 12   /* more or less */
#define WIDTH_BY  20   /* more or less than the height */
#define SLANT     1900 /* of ONE: sideways a unit of height */
#define SLANT_MID 400  /* a little to the right */
#define TURN      1000 /* of ONE: radians */
#define BEND      500  /* 1/256 pixel */
#define SHIFT     400  /* 1/256 pixel */
#define PEN_LEAST 24   /* radius in UNITs */
#define PEN_MOST  56
#define EDGE      20 /* UNITs on either side of the radius that fade */
#define NOISE     48 /* of 256: the most that a pixel loses */

typedef struct point {
    int32_t x, y;
} point;

typedef struct line {
    point from, to;
    int32_t radius; /* of the pen */
} line;

/* The random numbers of one image. */
typedef struct dice {
    uint64_t key, counter;
} dice;

static int32_t between(dice *d, int32_t least, int32_t most)
{
    uint32_t span = (uint32_t)(most - least + 1);
    return least + (int32_t)pl_rng_below(d->key, d->counter++, span);
}

/* Mostly near 0, never beyond +-most. */
static int32_t around(dice *d, int32_t most)
{
    return (between(d, -most, most) + between(d, -most, most)) / 2;
}

/* How the points of one image move. */
typedef struct warp {
    int32_t matrix[2][2];
    point field[GRID][GRID];
} warp;

static void make_warp(warp *w, dice *d)
{
    int32_t height = HEIGHT + around(d, HEIGHT_BY);
    int32_t width = height + around(d, WIDTH_BY);
    int32_t slant = SLANT_MID + around(d, SLANT);
    int32_t turn = around(d, TURN);

    /* Sine and cosine of a small angle, by their first terms. */
    int32_t square = turn * turn / ONE;
    int32_t sine = turn - square * turn / ONE / 6;
    int32_t cosine = ONE - square / 2;

    /* Scale, then slant to the right (y is down), then turn. */
    int32_t lean = -slant * height / ONE;
    w->matrix[0][0] = cosine * width;
    w->matrix[0][1] = cosine * lean - sine * height;
    w->matrix[1][0] = sine * width;
    w->matrix[1][1] = sine * lean + cosine * height;
    for (int row = 0; row < GRID; row++)
        for (int column = 0; column < GRID; column++) {
            w->field[row][column].x = around(d, BEND);
            w->field[row][column].y = around(d, BEND);
        }
}

static int32_t clamp(int32_t value, int32_t least, int32_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* The field at a point, by bilinear interpolation. */
static point bend(const warp *w, point at)
{
    const int32_t cell = SIDE * 256 / (GRID - 1);
    const int32_t most = cell * (GRID - 1) - 1;
    int32_t x = clamp(at.x + SIDE * 128, 0, most);
    int32_t y = clamp(at.y + SIDE * 128, 0, most);
    int32_t column = x / cell, row = y / cell;
    x -= column * cell;
    y -= row * cell;
    const point *above = &w->field[row][column];
    const point *below = &w->field[row + 1][column];
    int32_t above_x = above[0].x + (above[1].x - above[0].x) * x / cell;
    int32_t above_y = above[0].y + (above[1].y - above[0].y) * x / cell;
    int32_t below_x = below[0].x + (below[1].x - below[0].x) * x / cell;
    int32_t below_y = below[0].y + (below[1].y - below[0].y) * x / cell;
    return (point) { at.x + above_x + (below_x - above_x) * y / cell,
                     at.y + above_y + (below_y - above_y) * y / cell };
}

/* A glyph's point in 1/256 pixel from the middle of the image. */
static point move(const warp *w, const int8_t glyph[2], point jitter)
{
    int32_t x = glyph[0] - 35 + jitter.x, y = glyph[1] - 50 + jitter.y;
    point at = { (w->matrix[0][0] * x + w->matrix[0][1] * y) / ONE,
                 (w->matrix[1][0] * x + w->matrix[1][1] * y) / ONE };
    return bend(w, at);
}

/* One coordinate of the spline (Catmull and Rom 1974) through p[1] and p[2],
 * `step` STEPS-ths of the way. */
static int32_t spline(int32_t a, int32_t b, int32_t c, int32_t d, int step)
{
    int32_t linear = c - a;
    int32_t square = 2 * a - 5 * b + 4 * c - d;
    int32_t cube = d - a + 3 * (b - c);
    int32_t sum =
        ((cube * step + square * STEPS) * step + linear * STEPS * STEPS) * step;
    return b + sum / (2 * STEPS * STEPS * STEPS);
}

/* Append the lines along one stroke to the `count` existing ones; returns their
 * new number.  The radius is filled in later. */
static int add_stroke(line *lines, int count, const point *points, int last)
{
    for (int i = 0; i < last; i++) {
        point b = points[i], c = points[i + 1];
        point a = i == 0 ? b : points[i - 1];
        point d = i + 1 == last ? c : points[i + 2];
        point from = b;
        if (b.x == c.x && b.y == c.y)
            continue; /* a corner */
        for (int step = 1; step <= STEPS; step++) {
            point to = { spline(a.x, b.x, c.x, d.x, step),
                         spline(a.y, b.y, c.y, d.y, step) };
            lines[count++] = (line) { .from = from, .to = to };
            from = to;
        }
    }
    return count;
}

/* All lines of a glyph, moved at random. */
static int make_lines(line lines[LINES], const pl_glyph *glyph, dice *d)
{
    warp w;
    make_warp(&w, d);
    int count = 0;
    for (int s = 0; s < PL_GLYPH_STROKES; s++) {
        const struct pl_glyph_stroke *stroke = &glyph->strokes[s];
        point points[PL_GLYPH_POINTS];
        point jitter = { 0, 0 };
        for (int i = 0; i < stroke->count; i++) {
            const int8_t *at = stroke->at[i];
            bool corner = i > 0 && memcmp(at, stroke->at[i - 1], 2) == 0;
            if (!corner) { /* both points of a corner move alike */
                jitter.x = around(d, JITTER);
                jitter.y = around(d, JITTER);
            }
            points[i] = move(&w, at, jitter);
        }
        count = add_stroke(lines, count, points, stroke->count - 1);
    }
    return count;
}

/* From 1/256 pixel around the digit's middle to UNITs in the image. */
static void place(line *lines, int count, dice *d)
{
    PL_ASSERT(count > 0 && count <= LINES);
    point least = lines[0].from, most = least;
    for (int i = 0; i < count; i++) {
        point at = lines[i].to;
        least.x = at.x < least.x ? at.x : least.x;
        least.y = at.y < least.y ? at.y : least.y;
        most.x = at.x > most.x ? at.x : most.x;
        most.y = at.y > most.y ? at.y : most.y;
    }
    int32_t x = SIDE * 128 - (least.x + most.x) / 2 + around(d, SHIFT);
    int32_t y = SIDE * 128 - (least.y + most.y) / 2 + around(d, SHIFT);
    int32_t first = between(d, PEN_LEAST, PEN_MOST);
    int32_t last = clamp(first + around(d, PEN_LEAST / 2), PEN_LEAST, PEN_MOST);
    for (int i = 0; i < count; i++) {
        line *l = &lines[i];
        l->from.x = (l->from.x + x) * UNIT / 256;
        l->from.y = (l->from.y + y) * UNIT / 256;
        l->to.x = (l->to.x + x) * UNIT / 256;
        l->to.y = (l->to.y + y) * UNIT / 256;
        l->radius = first + (last - first) * i / count;
    }
}

/* Square of the distance from a point to a line; `inverse` is 2^24 / the
 * square of its length. */
static int32_t distance(const line *l, int64_t inverse, int32_t x, int32_t y)
{
    int32_t dx = l->to.x - l->from.x, dy = l->to.y - l->from.y;
    int32_t px = x - l->from.x, py = y - l->from.y;
    int32_t along = dx * px + dy * py;
    if (along <= 0)
        return px * px + py * py;
    if (along >= dx * dx + dy * dy) {
        px -= dx;
        py -= dy;
        return px * px + py * py;
    }
    int64_t across = (int64_t)dx * py - (int64_t)dy * px;
    return (int32_t)(across * across * inverse >> 24);
}

/* The pixels of one axis that a line reaches. */
static void reach(int32_t a, int32_t b, int32_t radius, int *from, int *to)
{
    int32_t least = (a < b ? a : b) - radius, most = (a < b ? b : a) + radius;
    *from = clamp(least / UNIT, 0, SIDE);
    *to = clamp(most / UNIT + 1, 0, SIDE);
}

/* Move the pen along a line; a pixel keeps its largest coverage. */
static void draw_line(uint8_t *pixels, const line *l)
{
    int32_t dx = l->to.x - l->from.x, dy = l->to.y - l->from.y;
    int64_t length = dx * dx + dy * dy;
    int64_t inverse = ((int64_t)1 << 24) / (length > 0 ? length : 1);
    int32_t outer = l->radius + EDGE, inner = l->radius - EDGE;
    int32_t none = outer * outer, full = inner > 0 ? inner * inner : 0;
    int32_t slope = (255 << 8) / (none - full);
    int left, right, top, bottom;
    reach(l->from.x, l->to.x, outer, &left, &right);
    reach(l->from.y, l->to.y, outer, &top, &bottom);
    for (int row = top; row < bottom; row++)
        for (int column = left; column < right; column++) {
            int32_t far = distance(l, inverse, column * UNIT + UNIT / 2,
                                   row * UNIT + UNIT / 2);
            if (far >= none)
                continue;
            int32_t light = (none - far) * slope / 256;
            light = light > 255 ? 255 : light;
            uint8_t *pixel = &pixels[row * SIDE + column];
            if (light > *pixel)
                *pixel = (uint8_t)light;
        }
}

/* Uneven ink: each pixel loses up to NOISE / 256 of its light. */
static void roughen(uint8_t *pixels, dice *d)
{
    for (int i = 0; i < PL_DIGITS_PIXELS; i += 8) {
        uint64_t random = pl_rng_u64(d->key, d->counter++);
        for (int k = 0; k < 8; k++) {
            uint32_t loss = (uint32_t)(random >> (8 * k) & 0xff) * NOISE / 256;
            pixels[i + k] = (uint8_t)(pixels[i + k] * (256 - loss) / 256);
        }
    }
}

/* Labels by a permutation: each has the same share of a split, without a
 * period. */
static uint8_t label_of(uint32_t i)
{
    uint64_t key = pl_rng_key_text(PL_DIGITS_SEED, "digits: labels");
    uint32_t place_of_i;
    if (i < PL_DIGITS_TRAIN)
        pl_rng_permute(key, PL_DIGITS_TRAIN, i, 1, &place_of_i);
    else
        pl_rng_permute(key, PL_DIGITS_TEST, i - PL_DIGITS_TRAIN, 1,
                       &place_of_i);
    return (uint8_t)(place_of_i % 10);
}

uint8_t pl_digits_draw(uint8_t pixels[PL_DIGITS_PIXELS], uint32_t i)
{
    PL_ASSERT(i < PL_DIGITS_TRAIN + PL_DIGITS_TEST);
    uint8_t label = label_of(i);
    dice d = { .key =
                   pl_rng_key(pl_rng_key_text(PL_DIGITS_SEED, "digits"), i) };
    int glyphs = 0;
    while (glyphs < PL_GLYPHS && pl_glyphs[label][glyphs].strokes[0].count > 0)
        glyphs++;
    const pl_glyph *glyph = &pl_glyphs[label][between(&d, 0, glyphs - 1)];

    line lines[LINES];
    int count = make_lines(lines, glyph, &d);
    place(lines, count, &d);
    memset(pixels, 0, PL_DIGITS_PIXELS);
    for (int l = 0; l < count; l++)
        draw_line(pixels, &lines[l]);
    roughen(pixels, &d);
    return label;
}
