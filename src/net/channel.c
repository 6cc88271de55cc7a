#include "net/channel.h"

void pl_channel_free(pl_channel *channel)
{
    (void)channel;
}
