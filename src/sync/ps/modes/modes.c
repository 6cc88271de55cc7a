/* The list of modes. */
#include "sync/ps/modes/mode.h"

const pl_ps_mode_ops *pl_ps_mode_of(pl_ps_mode mode)
{
    static const pl_ps_mode_ops *const modes[] = {
        [PL_PS_SYNC] = &pl_ps_mode_sync,
        [PL_PS_ASYNC] = &pl_ps_mode_async,
        [PL_PS_SSP] = &pl_ps_mode_ssp,
    };
    return modes[mode];
}
