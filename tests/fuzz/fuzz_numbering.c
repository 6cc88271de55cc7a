/* fuzz_numbering.c - the file of data convert --renumber. */
#include "fuzz/fuzz.h"

#include "data/sparse/numbering.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    pl_numbering *numbering;
    if (pl_numbering_parse(&numbering, (const char *)data, bytes, "input") !=
        PL_OK)
        return 0;
    if (pl_numbering_size(numbering) < 1 || pl_numbering_mark(numbering) == 0)
        __builtin_trap();
    pl_numbering_free(numbering);
    return 0;
}
