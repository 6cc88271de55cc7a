/* The table of modes for workers. */
#include "sync/ps/worker/pace.h"

const pl_ps_pace *pl_ps_pace_of(pl_ps_mode mode, bool backup)
{
    static const pl_ps_pace paces[] = {
        [PL_PS_SYNC] = { .lock_step = true },
        [PL_PS_ASYNC] = { .ahead = 1 },
        [PL_PS_SSP] = { .pauses = true, .ahead = 1 },
    };
    static const pl_ps_pace with_backup = {
        .lock_step = true,
        .whole = true,
        .pauses = true,
    };
    return backup && paces[mode].lock_step ? &with_backup : &paces[mode];
}
