/* version.c - prints the program's version and the features available here. */
#include "cli/help/version.h"

#include "kernels/backend.h"
#include "kernels/cpu/dnn.h"
#include "sync/allreduce/mpi/mpi.h"

#include <stdio.h>

static void print_kernels(void)
{
    printf("instruction sets ");
    for (const pl_kernels *const *k = pl_kernels_all(); *k != NULL; k++)
        printf(" %s%s", (*k)->name,
               pl_kernels_find((*k)->name) == NULL ? " (not on this host)"
                                                   : "");
    printf("; used here: %s\n", pl_kernels_best()->name);
}

pl_status pl_print_version(void)
{
    char dnn[PL_DNN_VERSION];
    printf("paceline %s%s%s%s\n", pl_version(),
           PL_COMMIT[0] != '\0' ? " (commit " : "", PL_COMMIT,
           PL_COMMIT[0] != '\0' ? ")" : "");
    print_kernels();
    printf("oneDNN            %s\n", pl_dnn_version(dnn));
    printf("MPI               %s\n",
           pl_mpi_check() == PL_OK
               ? "yes"
               : "no: --engine mpi needs the module paceline-mpi and an MPI");
    return PL_OK;
}
