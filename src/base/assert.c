/* Ends the process on a broken invariant, with the place and the condition. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void pl_assert_failed(const char *file, int line, const char *text)
{
    fprintf(stderr, "paceline: %s:%d: assertion failed: %s\n", file, line,
            text);
    abort();
}
