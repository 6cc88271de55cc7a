#include "fuzz/fuzz.h"

#include "base/mem.h"
#include "dist/launch/control_host.h"

#include <string.h>

/* What a task says to its supervisor. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    pl_control_message message;
    char *text = pl_mem_alloc(bytes + 1, 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, bytes);
    if (pl_control_parse(&message, text) == PL_OK) {
        bool negative = message.status.step < 0 ||
                        message.status.examples < 0 || message.task.index < 0;
        if (negative ||
            (message.kind == PL_CONTROL_ADDRESS && message.address[0] == '\0'))
            __builtin_trap();
    }
    pl_mem_free(text);
    return 0;
}
