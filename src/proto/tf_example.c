/* Reads and writes tf.train.Example without a message object: the lists wanted
 * are found by name in one walk and unpacked directly into the caller's arrays,
 * since training reads millions of them per second. */
#include "proto/tf_example.h"

#include "proto/field.h"

#include <stdbool.h>
#include <string.h>

/* Feature: one of three lists; the last one counts. */
static pl_status read_feature(pl_proto_span in, pl_tf_list *list)
{
    static const pl_tf_kind kinds[] = { PL_TF_EMPTY, PL_TF_BYTES, PL_TF_FLOATS,
                                        PL_TF_INTS };
    list->kind = PL_TF_EMPTY;
    while (in.at < in.end) {
        pl_proto_field f;
        PL_TRY(pl_proto_next(&in, &f));
        if (f.wire != PL_PROTO_LENGTH || f.number > 3)
            continue;
        list->kind = kinds[f.number];
        list->data = f.body.at;
        list->bytes = (size_t)(f.body.end - f.body.at);
    }
    return PL_OK;
}

/* One entry of the map: key and feature. */
static pl_status read_entry(pl_proto_span in, pl_tf_list *lists, int count)
{
    pl_proto_span key = { in.at, in.at }, value = { in.at, in.at };
    while (in.at < in.end) {
        pl_proto_field f;
        PL_TRY(pl_proto_next(&in, &f));
        if (pl_proto_holds(&f, 1))
            key = f.body;
        else if (pl_proto_holds(&f, 2))
            value = f.body;
    }
    size_t bytes = (size_t)(key.end - key.at);
    for (int i = 0; i < count; i++)
        if (lists[i].name_bytes == bytes &&
            memcmp(lists[i].name, key.at, bytes) == 0)
            return read_feature(value, &lists[i]);
    return PL_OK;
}

pl_status pl_tf_example_find(const uint8_t *data, size_t bytes,
                             pl_tf_list *lists, int count)
{
    pl_proto_span in = { data, data + bytes };
    for (int i = 0; i < count; i++)
        lists[i].kind = PL_TF_NONE;
    while (in.at < in.end) {
        pl_proto_field features, entry;
        PL_TRY(pl_proto_next(&in, &features));
        while (pl_proto_holds(&features, 1) &&
               features.body.at < features.body.end) {
            PL_TRY(pl_proto_next(&features.body, &entry));
            if (pl_proto_holds(&entry, 1))
                PL_TRY(read_entry(entry.body, lists, count));
        }
    }
    return PL_OK;
}

/* The varint in the low bytes of `word` that ends with the bit `stop`: the
 * seven bits of each byte are moved together in three steps. */
static inline int64_t squeeze(uint64_t word, uint64_t stop)
{
    word &= (stop ^ (stop - 1)) & 0x7f7f7f7f7f7f7f7fu;
    word = (word & 0x007f007f007f007fu) | (word & 0x7f007f007f007f00u) >> 1;
    word = (word & 0x00003fff00003fffu) | (word & 0x3fff00003fff0000u) >> 2;
    word = (word & 0x000000000fffffffu) | (word & 0x0fffffff00000000u) >> 4;
    return (int64_t)word;
}

/* Varints of up to eight bytes, two at once where eight bytes hold them. */
static const uint8_t *unpack_fast(const uint8_t *at, const uint8_t *end,
                                  int64_t **out)
{
    int64_t *to = *out;
    while (end - at >= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        uint64_t stop = ~word & 0x8080808080808080u;
        uint64_t second = stop & (stop - 1);
        if (second != 0) {
            unsigned first = (unsigned)__builtin_ctzll(stop) + 1;
            *to++ = squeeze(word, stop & (0 - stop));
            *to++ = squeeze(word >> first, (second & (0 - second)) >> first);
            at += __builtin_ctzll(second) / 8 + 1;
        } else if (stop != 0) {
            *to++ = squeeze(word, stop);
            at += __builtin_ctzll(stop) / 8 + 1;
        } else {
            break;
        }
    }
    *out = to;
    return at;
}

static pl_status unpack_ints(pl_proto_span in, int64_t **out)
{
    while (in.at < in.end) {
        uint64_t value;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        in.at = unpack_fast(in.at, in.end, out);
        if (in.at == in.end)
            break;
#endif
        if (!pl_proto_varint(&in, &value))
            return pl_proto_cut_short();
        *(*out)++ = (int64_t)value;
    }
    return PL_OK;
}

pl_status pl_tf_list_ints(const pl_tf_list *list, int64_t *out, size_t *count)
{
    pl_proto_span in = { list->data, list->data + list->bytes };
    int64_t *to = out;
    while (in.at < in.end) {
        pl_proto_field f;
        pl_proto_span before = in;
        PL_TRY(pl_proto_next(&in, &f));
        if (pl_proto_holds(&f, 1)) {
            PL_TRY(unpack_ints(f.body, &to));
        } else if (f.number == 1 && f.wire == PL_PROTO_VARINT) {
            uint64_t tag, value = 0;
            if (!pl_proto_varint(&before, &tag) ||
                !pl_proto_varint(&before, &value))
                return pl_proto_cut_short();
            *to++ = (int64_t)value;
        }
    }
    *count = (size_t)(to - out);
    return PL_OK;
}

static float load_float(const uint8_t *at)
{
    uint32_t bits = (uint32_t)at[0] | (uint32_t)at[1] << 8 |
                    (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

pl_status pl_tf_list_floats(const pl_tf_list *list, float *out, size_t *count)
{
    pl_proto_span in = { list->data, list->data + list->bytes };
    float *to = out;
    while (in.at < in.end) {
        pl_proto_field f;
        PL_TRY(pl_proto_next(&in, &f));
        if (f.number != 1 ||
            (f.wire != PL_PROTO_LENGTH && f.wire != PL_PROTO_FIXED32))
            continue;
        if ((f.body.end - f.body.at) % 4 != 0)
            return pl_proto_cut_short();
        for (const uint8_t *at = f.body.at; at < f.body.end; at += 4)
            *to++ = load_float(at);
    }
    *count = (size_t)(to - out);
    return PL_OK;
}

static size_t varint_bytes(uint64_t value)
{
    size_t bytes = 1;
    for (; value >= 0x80; value >>= 7)
        bytes++;
    return bytes;
}

static uint8_t *put_varint(uint8_t *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

/* The size of a field with a length. */
static size_t framed(size_t bytes)
{
    return 1 + varint_bytes(bytes) + bytes;
}

static uint8_t *put_frame(uint8_t *to, unsigned number, size_t bytes)
{
    *to++ = (uint8_t)(number << 3 | PL_PROTO_LENGTH);
    return put_varint(to, bytes);
}

/* Write the head of an entry whose list is field `number` of the feature and
 * has packed elements of so many bytes. */
static uint8_t *put_entry(uint8_t *to, const char *name, unsigned number,
                          size_t packed)
{
    size_t list = packed > 0 ? framed(packed) : 0;
    size_t key = strlen(name);
    to = put_frame(to, 1, framed(key) + framed(framed(list)));
    to = put_frame(to, 1, key);
    for (size_t i = 0; i < key; i++)
        *to++ = (uint8_t)name[i];
    to = put_frame(to, 2, framed(list));
    to = put_frame(to, number, list);
    return packed > 0 ? put_frame(to, 1, packed) : to;
}

static size_t entry_bytes(const char *name, size_t packed)
{
    size_t list = packed > 0 ? framed(packed) : 0;
    return framed(framed(strlen(name)) + framed(framed(list)));
}

static size_t ids_bytes(const pl_tf_example *example)
{
    size_t bytes = 0;
    for (size_t i = 0; i < example->count; i++)
        bytes += varint_bytes(example->ids[i]);
    return bytes;
}

size_t pl_tf_example_room(const pl_tf_example *example)
{
    size_t bytes = entry_bytes(example->label_name, 10) +
                   entry_bytes(example->index_name, ids_bytes(example)) +
                   entry_bytes(example->value_name, 4 * example->count);
    return framed(bytes);
}

size_t pl_tf_example_write(const pl_tf_example *example, uint8_t *out)
{
    size_t ids = ids_bytes(example);
    size_t values = example->values != NULL ? 4 * example->count : 0;
    size_t label = varint_bytes((uint64_t)example->label);
    size_t bytes = entry_bytes(example->label_name, label) +
                   entry_bytes(example->index_name, ids);
    if (example->values != NULL)
        bytes += entry_bytes(example->value_name, values);
    uint8_t *to = put_frame(out, 1, bytes);
    to = put_entry(to, example->label_name, 3, label);
    to = put_varint(to, (uint64_t)example->label);
    to = put_entry(to, example->index_name, 3, ids);
    for (size_t i = 0; i < example->count; i++)
        to = put_varint(to, example->ids[i]);
    if (example->values != NULL) {
        to = put_entry(to, example->value_name, 2, values);
        for (size_t i = 0; i < example->count; i++) {
            uint32_t bits;
            memcpy(&bits, &example->values[i], 4);
            for (int b = 0; b < 4; b++)
                *to++ = (uint8_t)(bits >> (8 * b));
        }
    }
    return (size_t)(to - out);
}
