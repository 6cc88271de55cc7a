/* output.c - distinguishes an output file from standard output, so that "-"
 * works and a closing line never ends up in the data. */
#include "app/view/output.h"

#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

const char *pl_output_path(const char *given)
{
    fflush(stdout);
    return strcmp(given, "-") == 0 ? "/dev/stdout" : given;
}

FILE *pl_output_notices(const char *path)
{
    struct stat file, out;
    bool same = stat(path, &file) == 0 && fstat(STDOUT_FILENO, &out) == 0 &&
                file.st_dev == out.st_dev && file.st_ino == out.st_ino;
    return same ? stderr : stdout;
}

int pl_output_columns(FILE *file)
{
    struct winsize size;
    bool terminal =
        isatty(fileno(file)) && ioctl(fileno(file), TIOCGWINSZ, &size) == 0;
    return terminal ? size.ws_col : 0;
}
