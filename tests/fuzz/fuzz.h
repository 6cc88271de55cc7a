/* fuzz.h - the entry that every fuzz target defines.
 *
 * Returns 0; for any bytes it must not crash, leak or read past their end. */
#ifndef PL_TESTS_FUZZ_H
#define PL_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#endif
