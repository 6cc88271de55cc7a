/* events_read.c - reads the scalars of TensorBoard event files into curves; a
 * torn last record ends the file without an error. */
#include "observe/runs/curve_read.h"

#include "base/bytes.h"
#include "proto/field.h"
#include "proto/tfrecord.h"

#include <math.h>
#include <string.h>

/* Fields of Event, SessionLog, Summary and Summary.Value
 * (tensorflow/core/util/event.proto, framework/summary.proto). */
enum {
    EVENT_WALL_TIME = 1,
    EVENT_STEP = 2,
    EVENT_SUMMARY = 5,
    EVENT_SESSION_LOG = 7,
    LOG_STATUS = 1,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2,
};

#define LOG_START 1

typedef struct event {
    double time; /* seconds since 1970; 0: not known */
    int64_t step;
    bool start;            /* the run continued from `step` */
    pl_proto_span summary; /* empty: none */
} event;

static pl_status read_log(pl_proto_span in, bool *start)
{
    while (in.at < in.end) {
        pl_proto_field f;
        PL_TRY(pl_proto_next(&in, &f));
        if (f.number == LOG_STATUS && f.wire == PL_PROTO_VARINT)
            *start = f.value == LOG_START;
    }
    return PL_OK;
}

static double read_time(const pl_proto_field *field)
{
    uint64_t bits = pl_get_u64(field->body.at);
    double time;
    memcpy(&time, &bits, sizeof time);
    return isfinite(time) && time > 0 ? time : 0;
}

static pl_status read_event(pl_proto_span in, event *out)
{
    *out = (event) { 0 };
    while (in.at < in.end) {
        pl_proto_field f;
        PL_TRY(pl_proto_next(&in, &f));
        if (f.number == EVENT_STEP && f.wire == PL_PROTO_VARINT)
            out->step = (int64_t)f.value;
        else if (f.number == EVENT_WALL_TIME && f.wire == PL_PROTO_FIXED64)
            out->time = read_time(&f);
        else if (pl_proto_holds(&f, EVENT_SUMMARY))
            out->summary = f.body;
        else if (pl_proto_holds(&f, EVENT_SESSION_LOG))
            PL_TRY(read_log(f.body, &out->start));
    }
    return PL_OK;
}

static pl_status read_value(pl_curves *curves, pl_proto_span in, const event *e)
{
    pl_proto_span tag = { 0 };
    float value = NAN;
    while (in.at < in.end) {
        pl_proto_field f;
        PL_TRY(pl_proto_next(&in, &f));
        if (pl_proto_holds(&f, VALUE_TAG))
            tag = f.body;
        else if (f.number == VALUE_SIMPLE && f.wire == PL_PROTO_FIXED32) {
            uint32_t bits = pl_get_u32(f.body.at);
            memcpy(&value, &bits, sizeof value);
        }
    }
    size_t bytes = (size_t)(tag.end - tag.at);
    if (bytes == 0 || !isfinite(value))
        return PL_OK;
    return pl_curves_add(
        curves, (const char *)tag.at, bytes,
        (pl_point) { (double)e->step, (double)value, e->time });
}

static pl_status read_summary(pl_curves *curves, const event *e)
{
    pl_proto_span in = e->summary;
    while (in.at < in.end) {
        pl_proto_field f;
        PL_TRY(pl_proto_next(&in, &f));
        if (pl_proto_holds(&f, SUMMARY_VALUE))
            PL_TRY(read_value(curves, f.body, e));
    }
    return PL_OK;
}

static pl_status read_record(pl_curves *curves, const uint8_t *data,
                             size_t bytes)
{
    event e;
    PL_TRY(read_event((pl_proto_span) { data, data + bytes }, &e));
    if (e.start)
        pl_curves_cut(curves, (double)e.step);
    return read_summary(curves, &e);
}

pl_status pl_events_read(pl_curves *curves, const uint8_t *data, size_t bytes,
                         const char *what)
{
    size_t frame = PL_TFRECORD_HEAD + PL_TFRECORD_TAIL;
    for (size_t at = 0; bytes - at >= frame;) {
        const uint8_t *head = data + at, *record = head + PL_TFRECORD_HEAD;
        if (pl_tfrecord_sum(head, 8) != pl_get_u32(head + 8))
            return PL_FAIL(PL_FORMAT,
                           "%s: damaged at byte %zu: the checksum of a length "
                           "is wrong",
                           what, at);
        uint64_t length = pl_get_u64(head);
        if (length > bytes - at - frame)
            return PL_OK; /* still being written */
        if (pl_tfrecord_sum(record, length) != pl_get_u32(record + length))
            return PL_FAIL(PL_FORMAT,
                           "%s: damaged at byte %zu: the checksum of a record "
                           "is wrong",
                           what, at);
        pl_status status = read_record(curves, record, length);
        if (status != PL_OK)
            return pl_context(status, "%s: record at byte %zu", what, at);
        at += frame + length;
    }
    return PL_OK;
}

/* Found by the checksum of a length, which other bytes match once in 4e9
 * positions. */
size_t pl_events_first(const uint8_t *data, size_t bytes)
{
    for (size_t at = 0; bytes - at >= PL_TFRECORD_HEAD; at++)
        if (pl_tfrecord_sum(data + at, 8) == pl_get_u32(data + at + 8))
            return at;
    return bytes;
}
