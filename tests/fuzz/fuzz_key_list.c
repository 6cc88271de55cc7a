/* fuzz_key_list.c - lists of keys: two bytes their count, two the width of
 * their range, then the list. */
#include "base/assert.h"
#include "fuzz/fuzz.h"
#include "sync/ps/messages/key_list.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 4)
        return 0;
    int64_t count = data[0] | data[1] << 8;
    uint64_t limit = (uint64_t)(data[2] | 1) << data[3] % 40;
    uint64_t *keys = malloc((size_t)(count + 1) * sizeof *keys);
    uint8_t *again = malloc(pl_key_list_room(count));
    size_t used;
    if (keys == NULL || again == NULL)
        abort();
    if (pl_key_list_read(count, data + 4, bytes - 4, limit, keys, &used) ==
        PL_OK) {
        PL_ASSERT(used <= bytes - 4);
        for (int64_t i = 0; i < count; i++)
            PL_ASSERT(keys[i] < limit && (i == 0 || keys[i] > keys[i - 1]));
        /* Ours may be shorter, never longer. */
        PL_ASSERT(pl_key_list_write(count, keys, 0, again) <= used);
    }
    free(keys);
    free(again);
    return 0;
}
