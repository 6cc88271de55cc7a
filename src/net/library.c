/* library.c - loads a shared library at its first use and finds its functions;
 * an error names the package that has it. */
#include "net/library.h"

#include <dlfcn.h>
#include <string.h>

pl_status pl_library_load(const char *file, const char *package,
                          const pl_library_call *calls, size_t count)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return PL_FAIL(PL_UNSUPPORTED, "cannot load %s: %s; install %s", file,
                       dlerror(), package);
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(library, calls[i].name);
        if (found == NULL)
            return PL_FAIL(PL_UNSUPPORTED, "%s lacks %s; install %s", file,
                           calls[i].name, package);
        memcpy(calls[i].at, &found, sizeof found);
    }
    return PL_OK;
}
