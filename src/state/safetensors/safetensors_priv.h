/* safetensors_priv.h - shared by the reader and the writer of safetensors.
 *
 * Threads: constants. */
#ifndef PL_STATE_SAFETENSORS_SAFETENSORS_PRIV_H
#define PL_STATE_SAFETENSORS_SAFETENSORS_PRIV_H

#include <stddef.h>
#include <stdint.h>

#define METADATA "__metadata__"

/* The format's name and size of each pl_dtype. */
struct pl_safetensors_type {
    const char *name;
    uint64_t bytes;
};
extern const struct pl_safetensors_type pl_safetensors_types[];
extern const size_t pl_safetensors_type_count;

#endif
