/* Names and sizes of element types, from the one list in paceline/tensor.h. */
#include "paceline/tensor.h"

#include "base/assert.h"

#include <stddef.h>

static const struct {
    const char *name;
    int64_t bytes;
} dtypes[] = {
#define DTYPE_ROW(name, text, bytes) { text, bytes },
    PL_DTYPE_LIST(DTYPE_ROW)
#undef DTYPE_ROW
};

#define DTYPES (sizeof dtypes / sizeof dtypes[0])

const char *pl_dtype_name(pl_dtype dtype)
{
    PL_ASSERT((size_t)dtype < DTYPES);
    return dtypes[dtype].name;
}

int64_t pl_dtype_bytes(pl_dtype dtype)
{
    PL_ASSERT((size_t)dtype < DTYPES);
    return dtypes[dtype].bytes;
}
