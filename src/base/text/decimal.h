/* decimal.h - numbers as short decimals, for documents that hold a million of
 * them: several times as fast as printf. */
#ifndef PL_BASE_TEXT_DECIMAL_H
#define PL_BASE_TEXT_DECIMAL_H

#include <stddef.h>

#define PL_DECIMAL 32

/* Whole numbers below 1e15 in full, others with six significant digits, as by
 * %g; returns the length.  The value must be finite. */
size_t pl_decimal_text(double value, char text[PL_DECIMAL]);

#endif
