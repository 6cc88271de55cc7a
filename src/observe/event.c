#include "observe/event.h"

#include "proto/tfrecord.h"

#include <stdlib.h>

/* Field numbers, by message: those of tensorflow/core/framework and
 * tensorboard/plugins/hparams. */
enum {
    EVENT_WALL_TIME = 1,
    EVENT_STEP = 2,
    EVENT_FILE_VERSION = 3,
    EVENT_GRAPH_DEF = 4,
    EVENT_SUMMARY = 5,
    EVENT_SESSION_LOG = 7,

    SESSION_LOG_STATUS = 1,
    SESSION_LOG_START = 1,

    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2,
    VALUE_HISTO = 5,
    VALUE_TENSOR = 8,
    VALUE_METADATA = 9,

    HISTO_MIN = 1,
    HISTO_MAX = 2,
    HISTO_NUM = 3,
    HISTO_SUM = 4,
    HISTO_SUM_SQUARES = 5,
    HISTO_BUCKET_LIMIT = 6,
    HISTO_BUCKET = 7,

    GRAPH_NODE = 1,
    GRAPH_VERSIONS = 4,
    VERSIONS_PRODUCER = 1,
    NODE_NAME = 1,
    NODE_OP = 2,
    NODE_INPUT = 3,
    NODE_DEVICE = 4,
    NODE_ATTR = 5,
    MAP_KEY = 1,
    MAP_VALUE = 2,
    ATTR_LIST = 1,
    ATTR_TYPE = 6,
    LIST_SHAPE = 7,
    SHAPE_DIM = 2,
    DIM_SIZE = 1,
    DT_FLOAT = 1,
    DT_INT32 = 3,

    TENSOR_DTYPE = 1,
    TENSOR_SHAPE = 2,
    METADATA_PLUGIN = 1,
    PLUGIN_NAME = 1,
    PLUGIN_CONTENT = 2,
    HPARAMS_START = 3,
    HPARAMS_END = 4,
    START_HPARAMS = 1,
    START_TIME = 5,
    END_STATUS = 1,
    END_TIME = 2,
    STATUS_SUCCESS = 1,
    STATUS_FAILURE = 2,
    JSON_NUMBER = 2,
    JSON_STRING = 3,
};

/* The producer that TensorBoard takes for a TensorFlow of today. */
#define PRODUCER 27

/* Begin a record; `end_record` wants what this gives. */
static size_t begin_record(pl_wire *out, double time, int64_t step)
{
    size_t begin = out->bytes;
    pl_wire_skip(out, PL_TFRECORD_HEAD);
    pl_wire_double(out, EVENT_WALL_TIME, time);
    if (step != 0)
        pl_wire_int(out, EVENT_STEP, step);
    return begin;
}

static void end_record(pl_wire *out, size_t begin)
{
    size_t bytes = out->bytes - begin - PL_TFRECORD_HEAD;
    pl_wire_skip(out, PL_TFRECORD_TAIL);
    if (pl_wire_status(out) == PL_OK)
        (void)pl_tfrecord_seal(out->data + begin, bytes);
}

void pl_event_version(pl_wire *out, double time)
{
    size_t record = begin_record(out, time, 0);
    pl_wire_text(out, EVENT_FILE_VERSION, "brain.Event:2");
    end_record(out, record);
}

void pl_event_restart(pl_wire *out, double time, int64_t step)
{
    size_t record = begin_record(out, time, step);
    size_t log = pl_wire_begin(out, EVENT_SESSION_LOG);
    pl_wire_int(out, SESSION_LOG_STATUS, SESSION_LOG_START);
    pl_wire_end(out, log);
    end_record(out, record);
}

/* A record of one summary value; the caller fills it and closes all three. */
typedef struct summary {
    size_t record, summary, value;
} summary;

static summary begin_summary(pl_wire *out, double time, int64_t step,
                             const char *tag)
{
    summary s;
    s.record = begin_record(out, time, step);
    s.summary = pl_wire_begin(out, EVENT_SUMMARY);
    s.value = pl_wire_begin(out, SUMMARY_VALUE);
    pl_wire_text(out, VALUE_TAG, tag);
    return s;
}

static void end_summary(pl_wire *out, summary s)
{
    pl_wire_end(out, s.value);
    pl_wire_end(out, s.summary);
    end_record(out, s.record);
}

void pl_event_scalar(pl_wire *out, double time, int64_t step, const char *tag,
                     double value)
{
    summary s = begin_summary(out, time, step, tag);
    pl_wire_float(out, VALUE_SIMPLE, (float)value);
    end_summary(out, s);
}

/* Buckets from the first that is not empty to the last; the one before the
 * first, empty, says where that begins. */
static void put_buckets(pl_wire *out, const pl_histogram *histogram)
{
    double limits[PL_HISTOGRAM_BUCKETS], counts[PL_HISTOGRAM_BUCKETS];
    size_t used = 0;
    int first = 0, last = PL_HISTOGRAM_BUCKETS - 1;
    while (first < last && histogram->buckets[first] == 0)
        first++;
    while (last > first && histogram->buckets[last] == 0)
        last--;
    for (int b = first > 0 ? first - 1 : 0; b <= last; b++) {
        limits[used] = pl_histogram_limit(b);
        counts[used++] = (double)histogram->buckets[b];
    }
    pl_wire_doubles(out, HISTO_BUCKET_LIMIT, limits, used);
    pl_wire_doubles(out, HISTO_BUCKET, counts, used);
}

void pl_event_histogram(pl_wire *out, double time, int64_t step,
                        const char *tag, const pl_histogram *histogram)
{
    summary s = begin_summary(out, time, step, tag);
    size_t histo = pl_wire_begin(out, VALUE_HISTO);
    pl_wire_double(out, HISTO_MIN, histogram->least);
    pl_wire_double(out, HISTO_MAX, histogram->most);
    pl_wire_double(out, HISTO_NUM, (double)histogram->count);
    pl_wire_double(out, HISTO_SUM, histogram->sum);
    pl_wire_double(out, HISTO_SUM_SQUARES, histogram->sum_squares);
    put_buckets(out, histogram);
    pl_wire_end(out, histo);
    end_summary(out, s);
}

/* Attributes of a node: the type of its result and its shape. */
static void put_attributes(pl_wire *out, const pl_event_node *node)
{
    size_t type = pl_wire_begin(out, NODE_ATTR);
    pl_wire_text(out, MAP_KEY, "T");
    size_t value = pl_wire_begin(out, MAP_VALUE);
    pl_wire_int(out, ATTR_TYPE, node->integers ? DT_INT32 : DT_FLOAT);
    pl_wire_end(out, value);
    pl_wire_end(out, type);

    size_t shapes = pl_wire_begin(out, NODE_ATTR);
    pl_wire_text(out, MAP_KEY, "_output_shapes");
    value = pl_wire_begin(out, MAP_VALUE);
    size_t list = pl_wire_begin(out, ATTR_LIST);
    size_t shape = pl_wire_begin(out, LIST_SHAPE);
    for (int d = 0; d < node->rank; d++) {
        size_t dim = pl_wire_begin(out, SHAPE_DIM);
        pl_wire_int(out, DIM_SIZE, node->sizes[d]);
        pl_wire_end(out, dim);
    }
    pl_wire_end(out, shape);
    pl_wire_end(out, list);
    pl_wire_end(out, value);
    pl_wire_end(out, shapes);
}

void pl_event_graph(pl_wire *out, double time, const pl_event_node *nodes,
                    int count)
{
    size_t record = begin_record(out, time, 0);
    size_t graph = pl_wire_begin(out, EVENT_GRAPH_DEF);
    for (int i = 0; i < count; i++) {
        size_t node = pl_wire_begin(out, GRAPH_NODE);
        pl_wire_text(out, NODE_NAME, nodes[i].name);
        pl_wire_text(out, NODE_OP, nodes[i].op);
        for (int j = 0; j < nodes[i].input_count; j++)
            pl_wire_text(out, NODE_INPUT, nodes[i].inputs[j]);
        pl_wire_text(out, NODE_DEVICE, nodes[i].device);
        put_attributes(out, &nodes[i]);
        pl_wire_end(out, node);
    }
    size_t versions = pl_wire_begin(out, GRAPH_VERSIONS);
    pl_wire_int(out, VERSIONS_PRODUCER, PRODUCER);
    pl_wire_end(out, versions);
    pl_wire_end(out, graph);
    end_record(out, record);
}

/* A value that has no number of its own but what the plugin reads. */
typedef struct plugin {
    summary summary;
    size_t metadata, plugin, content;
} plugin;

static plugin begin_hparams(pl_wire *out, double time, const char *tag)
{
    plugin p = { .summary = begin_summary(out, time, 0, tag) };
    size_t tensor = pl_wire_begin(out, VALUE_TENSOR); /* of no elements */
    pl_wire_int(out, TENSOR_DTYPE, DT_FLOAT);
    size_t shape = pl_wire_begin(out, TENSOR_SHAPE);
    pl_wire_end(out, pl_wire_begin(out, SHAPE_DIM));
    pl_wire_end(out, shape);
    pl_wire_end(out, tensor);
    p.metadata = pl_wire_begin(out, VALUE_METADATA);
    p.plugin = pl_wire_begin(out, METADATA_PLUGIN);
    pl_wire_text(out, PLUGIN_NAME, "hparams");
    p.content = pl_wire_begin(out, PLUGIN_CONTENT);
    return p;
}

static void end_hparams(pl_wire *out, plugin p)
{
    pl_wire_end(out, p.content);
    pl_wire_end(out, p.plugin);
    pl_wire_end(out, p.metadata);
    end_summary(out, p.summary);
}

/* A google.protobuf.Value. */
static void put_value(pl_wire *out, unsigned field, const char *text)
{
    char *end = NULL;
    size_t value = pl_wire_begin(out, field);
    double number = strtod(text, &end);
    if (end != text && *end == '\0')
        pl_wire_double(out, JSON_NUMBER, number);
    else
        pl_wire_text(out, JSON_STRING, text);
    pl_wire_end(out, value);
}

void pl_event_hparams(pl_wire *out, double time, const pl_event_hparam *hparams,
                      int count)
{
    plugin p = begin_hparams(out, time, "_hparams_/session_start_info");
    size_t start = pl_wire_begin(out, HPARAMS_START);
    for (int i = 0; i < count; i++) {
        size_t entry = pl_wire_begin(out, START_HPARAMS);
        pl_wire_text(out, MAP_KEY, hparams[i].name);
        put_value(out, MAP_VALUE, hparams[i].text);
        pl_wire_end(out, entry);
    }
    pl_wire_double(out, START_TIME, time);
    pl_wire_end(out, start);
    end_hparams(out, p);
}

void pl_event_end(pl_wire *out, double time, bool success)
{
    plugin p = begin_hparams(out, time, "_hparams_/session_end_info");
    size_t end = pl_wire_begin(out, HPARAMS_END);
    pl_wire_int(out, END_STATUS, success ? STATUS_SUCCESS : STATUS_FAILURE);
    pl_wire_double(out, END_TIME, time);
    pl_wire_end(out, end);
    end_hparams(out, p);
}
