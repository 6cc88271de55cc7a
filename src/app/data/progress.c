/* progress.c - one line of progress while a source is read; only the last one
 * when the output is not a terminal. */
#include "app/data/progress.h"

#include "base/text/console.h"

#include <stdbool.h>
#include <unistd.h>

void pl_data_progress(const char *what, int64_t done, int64_t all)
{
    bool terminal = isatty(STDERR_FILENO) == 1, last = done == all;
    if (!terminal && !last)
        return;
    pl_console_print("%s%s %lld of %lld (%.0f %%)%s", terminal ? "\r" : "",
                     what, (long long)done, (long long)all,
                     100.0 * (double)done / (double)all,
                     last ? "\n" : "\033[K");
}
