/* element.c - reads single numbers of every type that array files have, and
 * decides which of them are labels. */
#include "data/dense/element.h"

#include <stdio.h>
#include <string.h>

const char *pl_element_name(pl_element element, char text[PL_ELEMENT_TEXT])
{
    static const char *const kinds[] = { "uint", "int", "float" };
    snprintf(text, PL_ELEMENT_TEXT, "%s%d", kinds[element.kind],
             8 * element.bytes);
    return text;
}

static bool is_host_order(pl_element element)
{
    bool big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    return element.bytes == 1 || element.big == big;
}

bool pl_element_in_place(pl_element element, const void *at, pl_dtype *dtype)
{
    if (element.kind == PL_ELEMENT_UNSIGNED && element.bytes == 1) {
        *dtype = PL_UINT8;
        return true;
    }
    *dtype = PL_FLOAT32;
    return element.kind == PL_ELEMENT_FLOAT && element.bytes == 4 &&
           is_host_order(element) && (uintptr_t)at % sizeof(float) == 0;
}

static uint64_t load_bits(pl_element element, const uint8_t *at)
{
    uint64_t bits = 0;
    for (int i = 0; i < element.bytes; i++)
        bits |= (uint64_t)at[element.big ? element.bytes - 1 - i : i]
                << (8 * i);
    return bits;
}

static int64_t load_signed(pl_element element, const uint8_t *at)
{
    unsigned unused = 64 - 8 * (unsigned)element.bytes;
    return (int64_t)(load_bits(element, at) << unused) >> unused;
}

static float load_float(pl_element element, const uint8_t *at)
{
    uint64_t bits = load_bits(element, at);
    if (element.bytes == 8) {
        double value;
        memcpy(&value, &bits, 8);
        return (float)value;
    }
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, 4);
    return value;
}

void pl_element_floats(pl_element element, const uint8_t *from, size_t count,
                       float *to)
{
    size_t bytes = (size_t)element.bytes;
    if (element.kind == PL_ELEMENT_FLOAT)
        for (size_t i = 0; i < count; i++)
            to[i] = load_float(element, from + i * bytes);
    else if (element.kind == PL_ELEMENT_SIGNED)
        for (size_t i = 0; i < count; i++)
            to[i] = (float)load_signed(element, from + i * bytes);
    else
        for (size_t i = 0; i < count; i++)
            to[i] = (float)load_bits(element, from + i * bytes);
}

pl_status pl_element_labels(pl_element element, const uint8_t *from,
                            size_t count, int32_t *to)
{
    char type[PL_ELEMENT_TEXT];
    if (element.kind == PL_ELEMENT_FLOAT)
        return PL_FAIL(PL_USAGE,
                       "labels of type %s, expected integers; convert them "
                       "(in NumPy: labels.astype('int64')); for numbers to "
                       "predict: --loss squared-error, or --labels numbers of "
                       "data",
                       pl_element_name(element, type));
    for (size_t i = 0; i < count; i++) {
        const uint8_t *at = from + i * (size_t)element.bytes;
        int64_t label = load_signed(element, at);
        if (element.kind == PL_ELEMENT_UNSIGNED && element.bytes < 8)
            label = (int64_t)load_bits(element, at);
        if (label < 0 || label >= INT32_MAX)
            return PL_FAIL(PL_FORMAT,
                           "row %zu: label %lld, expected 0 to the number of "
                           "classes less 1; number the classes from 0",
                           i, (long long)label);
        to[i] = (int32_t)label;
    }
    return PL_OK;
}
