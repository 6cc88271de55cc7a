/* Ends the process on a broken invariant, with the place and the condition. */
#include "base/assert.h"

#include "base/text/console.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void pl_assert_failed(const char *file, int line_number,
                                const char *text)
{
    char line[1024];
    int used =
        snprintf(line, sizeof line, "paceline: %s:%d: assertion failed: %s\n",
                 file, line_number, text);
    pl_console_last(line,
                    used < (int)sizeof line ? (size_t)used : sizeof line - 1);
    abort();
}
