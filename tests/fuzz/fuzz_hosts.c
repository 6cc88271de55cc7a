#include "fuzz/fuzz.h"

#include "base/mem.h"
#include "job/hosts/host_list.h"

#include <string.h>

/* The hosts of --hosts, and the nodes that Slurm names. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    pl_host_list hosts;
    char *text = pl_mem_alloc(bytes + 1, 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, bytes);
    for (int slurm = 0; slurm < 2; slurm++) {
        pl_status status = slurm ? pl_host_list_slurm(&hosts, text)
                                 : pl_host_list_parse(&hosts, text);
        if (status != PL_OK)
            continue;
        for (int32_t i = 0; i < hosts.count; i++)
            if (hosts.name[i][0] == '\0' || hosts.name[i][0] == '-')
                __builtin_trap();
        pl_host_list_close(&hosts);
    }
    pl_mem_free(text);
    return 0;
}
