/* decimal.c - writes a number with six significant digits: decides which
 * numbers are written by whole-number arithmetic, and leaves the very small and
 * the very large ones to printf. */
#include "base/text/decimal.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define WHOLE_BELOW 1e15
#define LEAST       1e-4 /* smaller ones have an exponent */
#define MOST        1e6
#define DECIMALS    9 /* of the smallest number */

/* `number` with its point before the last `decimals` digits. */
static size_t put(char *text, bool negative, uint64_t number, int decimals)
{
    char back[PL_DECIMAL]; /* from its end */
    size_t at = sizeof back;
    for (int i = 0; number > 0 || i <= decimals; i++) {
        back[--at] = (char)('0' + number % 10);
        number /= 10;
        if (i + 1 == decimals)
            back[--at] = '.';
    }
    if (negative)
        back[--at] = '-';
    size_t length = sizeof back - at;
    memcpy(text, back + at, length);
    text[length] = '\0';
    return length;
}

size_t pl_decimal_text(double value, char text[PL_DECIMAL])
{
    static const double powers[DECIMALS + 1] = { 1,   1e1, 1e2, 1e3, 1e4,
                                                 1e5, 1e6, 1e7, 1e8, 1e9 };
    double size = fabs(value);
    if (size < WHOLE_BELOW && size == (double)(uint64_t)size)
        return put(text, value < 0, (uint64_t)size, 0);
    if (!(size >= LEAST && size < MOST))
        return (size_t)snprintf(text, PL_DECIMAL, "%.6g", value);
    int decimals = DECIMALS;
    double most = 10 * LEAST;
    while (decimals > 0 && size >= most) {
        most *= 10;
        decimals--;
    }
    uint64_t number = (uint64_t)(size * powers[decimals] + 0.5);
    while (decimals > 0 && number % 10 == 0) {
        number /= 10;
        decimals--;
    }
    return put(text, value < 0, number, decimals);
}
