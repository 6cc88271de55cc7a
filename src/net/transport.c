/* The table of transports: all rows, and the one that a flag names. */
#include "net/transport.h"

#include "base/assert.h"

#define ROW(name) &pl_transport_##name,
static const pl_transport *const rows[] = { PL_TRANSPORT_LIST(ROW) NULL };
#undef ROW

const pl_transport *const *pl_transports(void)
{
    return rows;
}

const pl_transport *pl_transport_chosen(int choice)
{
    PL_ASSERT(choice >= 0 && choice < (int)(sizeof rows / sizeof *rows));
    return choice == 0 ? NULL : rows[choice - 1];
}
