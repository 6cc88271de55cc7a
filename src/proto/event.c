/* Messages are built on the stack (those of a graph, with any number of nodes,
 * in four allocations), measured, and packed into reserved room in the buffer:
 * an event needs no memory of its own. */
#include "proto/event.h"

#include "base/assert.h"
#include "base/mem.h"
#include "event.pb-c.h"
#include "proto/tfrecord.h"

#include <stdlib.h>

/* The producer version that TensorBoard accepts as a current TensorFlow. */
#define PRODUCER 27

/* The library's texts are not const, but it does not write to them. */
static char *text_of(const char *text)
{
    return (char *)text;
}

/* Append the event as a framed record. */
static void put_event(pl_buffer *out, const Pl__Event *event)
{
    size_t bytes = pl__event__get_packed_size(event);
    uint8_t *frame =
        pl_buffer_grow(out, PL_TFRECORD_HEAD + bytes + PL_TFRECORD_TAIL);
    if (frame == NULL)
        return;
    size_t packed = pl__event__pack(event, frame + PL_TFRECORD_HEAD);
    PL_ASSERT(packed == bytes);
    (void)pl_tfrecord_seal(frame, bytes);
}

void pl_event_version(pl_buffer *out, double time)
{
    Pl__Event event = PL__EVENT__INIT;
    event.wall_time = time;
    event.what_case = PL__EVENT__WHAT_FILE_VERSION;
    event.file_version = text_of("brain.Event:2");
    put_event(out, &event);
}

void pl_event_restart(pl_buffer *out, double time, int64_t step)
{
    Pl__SessionLog log = PL__SESSION_LOG__INIT;
    log.status = PL__SESSION_LOG__SESSION_STATUS__START;
    Pl__Event event = PL__EVENT__INIT;
    event.wall_time = time;
    event.step = step;
    event.what_case = PL__EVENT__WHAT_SESSION_LOG;
    event.session_log = &log;
    put_event(out, &event);
}

/* An event of one summary value. */
static void put_value(pl_buffer *out, double time, int64_t step,
                      Pl__Summary__Value *value)
{
    Pl__Summary summary = PL__SUMMARY__INIT;
    summary.n_value = 1;
    summary.value = &value;
    Pl__Event event = PL__EVENT__INIT;
    event.wall_time = time;
    event.step = step;
    event.what_case = PL__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    put_event(out, &event);
}

void pl_event_scalar(pl_buffer *out, double time, int64_t step, const char *tag,
                     double value)
{
    Pl__Summary__Value scalar = PL__SUMMARY__VALUE__INIT;
    scalar.tag = text_of(tag);
    scalar.value_case = PL__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
    scalar.simple_value = (float)value;
    put_value(out, time, step, &scalar);
}

/* Buckets from the first that is not empty to the last; preceded by an empty
 * one whose limit is where the first begins. */
static size_t list_buckets(const pl_histogram *histogram, double *limits,
                           double *counts)
{
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
    return used;
}

void pl_event_histogram(pl_buffer *out, double time, int64_t step,
                        const char *tag, const pl_histogram *histogram)
{
    double limits[PL_HISTOGRAM_BUCKETS], counts[PL_HISTOGRAM_BUCKETS];
    Pl__HistogramProto histo = PL__HISTOGRAM_PROTO__INIT;
    histo.min = histogram->least;
    histo.max = histogram->most;
    histo.num = (double)histogram->count;
    histo.sum = histogram->sum;
    histo.sum_squares = histogram->sum_squares;
    histo.n_bucket = list_buckets(histogram, limits, counts);
    histo.n_bucket_limit = histo.n_bucket;
    histo.bucket_limit = limits;
    histo.bucket = counts;
    Pl__Summary__Value value = PL__SUMMARY__VALUE__INIT;
    value.tag = text_of(tag);
    value.value_case = PL__SUMMARY__VALUE__VALUE_HISTO;
    value.histo = &histo;
    put_value(out, time, step, &value);
}

/* A node with its attributes: the type of its result and its shape. */
typedef struct node {
    Pl__NodeDef def;
    Pl__NodeDef__AttrEntry entries[2], *attr[2];
    Pl__AttrValue type, shapes;
    Pl__AttrValue__ListValue list;
    Pl__TensorShapeProto shape, *shape_list[1];
} node;

typedef struct graph {
    node *nodes;
    Pl__NodeDef **defs;
    Pl__TensorShapeProto__Dim *dims; /* of all nodes */
    Pl__TensorShapeProto__Dim **dim_list;
} graph;

static void close_graph(graph *g)
{
    pl_mem_free(g->nodes);
    pl_mem_free(g->defs);
    pl_mem_free(g->dims);
    pl_mem_free(g->dim_list);
}

static pl_status open_graph(graph *g, size_t nodes, size_t dims)
{
    *g = (graph) { 0 };
    pl_status status = PL_NEW(g->nodes, nodes);
    if (status == PL_OK)
        status = PL_NEW(g->defs, nodes);
    if (status == PL_OK)
        status = PL_NEW(g->dims, dims);
    if (status == PL_OK)
        status = PL_NEW(g->dim_list, dims);
    if (status != PL_OK)
        close_graph(g);
    return status;
}

static void set_attributes(node *n, bool integers)
{
    n->type = (Pl__AttrValue)PL__ATTR_VALUE__INIT;
    n->type.value_case = PL__ATTR_VALUE__VALUE_TYPE;
    n->type.type = integers ? PL__DATA_TYPE__DT_INT32 : PL__DATA_TYPE__DT_FLOAT;
    n->list = (Pl__AttrValue__ListValue)PL__ATTR_VALUE__LIST_VALUE__INIT;
    n->shape_list[0] = &n->shape;
    n->list.n_shape = 1;
    n->list.shape = n->shape_list;
    n->shapes = (Pl__AttrValue)PL__ATTR_VALUE__INIT;
    n->shapes.value_case = PL__ATTR_VALUE__VALUE_LIST;
    n->shapes.list = &n->list;
    for (int i = 0; i < 2; i++) {
        n->entries[i] = (Pl__NodeDef__AttrEntry)PL__NODE_DEF__ATTR_ENTRY__INIT;
        n->entries[i].key = text_of(i == 0 ? "T" : "_output_shapes");
        n->entries[i].value = i == 0 ? &n->type : &n->shapes;
        n->attr[i] = &n->entries[i];
    }
    n->def.n_attr = 2;
    n->def.attr = n->attr;
}

/* Node number `index`, whose sizes go to `dims` and `dim_list`. */
static void set_node(graph *g, int index, const pl_event_node *from,
                     size_t first_dim)
{
    node *n = &g->nodes[index];
    n->def = (Pl__NodeDef)PL__NODE_DEF__INIT;
    n->def.name = text_of(from->name);
    n->def.op = text_of(from->op);
    n->def.n_input = (size_t)from->input_count;
    n->def.input = (char **)from->inputs;
    n->def.device = text_of(from->device);
    n->shape = (Pl__TensorShapeProto)PL__TENSOR_SHAPE_PROTO__INIT;
    n->shape.n_dim = (size_t)from->rank;
    n->shape.dim = g->dim_list + first_dim;
    for (int d = 0; d < from->rank; d++) {
        Pl__TensorShapeProto__Dim *dim = &g->dims[first_dim + (size_t)d];
        *dim = (Pl__TensorShapeProto__Dim)PL__TENSOR_SHAPE_PROTO__DIM__INIT;
        dim->size = from->sizes[d];
        n->shape.dim[d] = dim;
    }
    set_attributes(n, from->integers);
    g->defs[index] = &n->def;
}

void pl_event_graph(pl_buffer *out, double time, const pl_event_node *nodes,
                    int count)
{
    graph g;
    size_t dims = 0;
    for (int i = 0; i < count; i++)
        dims += (size_t)nodes[i].rank;
    if (open_graph(&g, (size_t)count, dims + 1) != PL_OK) {
        out->failed = true;
        return;
    }
    dims = 0;
    for (int i = 0; i < count; i++) {
        set_node(&g, i, &nodes[i], dims);
        dims += (size_t)nodes[i].rank;
    }
    Pl__VersionDef versions = PL__VERSION_DEF__INIT;
    versions.producer = PRODUCER;
    Pl__GraphDef def = PL__GRAPH_DEF__INIT;
    def.n_node = (size_t)count;
    def.node = g.defs;
    def.versions = &versions;
    Pl__Event event = PL__EVENT__INIT;
    event.wall_time = time;
    event.what_case = PL__EVENT__WHAT_GRAPH_DEF;
    event.graph_def = &def;
    put_event(out, &event);
    close_graph(&g);
}

/* A value without elements, with the metadata that the page reads. */
static void put_hparams(pl_buffer *out, double time, const char *tag,
                        Pl__HParamsPluginData *content)
{
    Pl__TensorShapeProto__Dim none = PL__TENSOR_SHAPE_PROTO__DIM__INIT;
    Pl__TensorShapeProto__Dim *dims[] = { &none };
    Pl__TensorShapeProto shape = PL__TENSOR_SHAPE_PROTO__INIT;
    shape.n_dim = 1;
    shape.dim = dims;
    Pl__TensorProto tensor = PL__TENSOR_PROTO__INIT;
    tensor.dtype = PL__DATA_TYPE__DT_FLOAT;
    tensor.tensor_shape = &shape;
    Pl__SummaryMetadata__PluginData plugin =
        PL__SUMMARY_METADATA__PLUGIN_DATA__INIT;
    plugin.plugin_name = text_of("hparams");
    plugin.content = content;
    Pl__SummaryMetadata metadata = PL__SUMMARY_METADATA__INIT;
    metadata.plugin_data = &plugin;
    Pl__Summary__Value value = PL__SUMMARY__VALUE__INIT;
    value.tag = text_of(tag);
    value.value_case = PL__SUMMARY__VALUE__VALUE_TENSOR;
    value.tensor = &tensor;
    value.metadata = &metadata;
    put_value(out, time, 0, &value);
}

/* A hyperparameter as a map entry. */
typedef struct entry {
    Pl__SessionStartInfo__HparamsEntry base;
    Pl__Value value;
} entry;

static void set_entry(entry *e, const pl_event_hparam *from)
{
    char *end = NULL;
    double number = strtod(from->text, &end);
    e->value = (Pl__Value)PL__VALUE__INIT;
    if (end != from->text && *end == '\0') {
        e->value.kind_case = PL__VALUE__KIND_NUMBER_VALUE;
        e->value.number_value = number;
    } else {
        e->value.kind_case = PL__VALUE__KIND_STRING_VALUE;
        e->value.string_value = text_of(from->text);
    }
    e->base = (Pl__SessionStartInfo__HparamsEntry)
        PL__SESSION_START_INFO__HPARAMS_ENTRY__INIT;
    e->base.key = text_of(from->name);
    e->base.value = &e->value;
}

void pl_event_hparams(pl_buffer *out, double time,
                      const pl_event_hparam *hparams, int count)
{
    entry entries[PL_EVENT_HPARAMS];
    Pl__SessionStartInfo__HparamsEntry *list[PL_EVENT_HPARAMS];
    PL_ASSERT(count <= PL_EVENT_HPARAMS);
    for (int i = 0; i < count; i++) {
        set_entry(&entries[i], &hparams[i]);
        list[i] = &entries[i].base;
    }
    Pl__SessionStartInfo start = PL__SESSION_START_INFO__INIT;
    start.n_hparams = (size_t)count;
    start.hparams = list;
    start.start_time_secs = time;
    Pl__HParamsPluginData content = PL__HPARAMS_PLUGIN_DATA__INIT;
    content.data_case = PL__HPARAMS_PLUGIN_DATA__DATA_SESSION_START_INFO;
    content.session_start_info = &start;
    put_hparams(out, time, "_hparams_/session_start_info", &content);
}

void pl_event_end(pl_buffer *out, double time, bool success)
{
    Pl__SessionEndInfo end = PL__SESSION_END_INFO__INIT;
    end.status =
        success ? PL__STATUS__STATUS_SUCCESS : PL__STATUS__STATUS_FAILURE;
    end.end_time_secs = time;
    Pl__HParamsPluginData content = PL__HPARAMS_PLUGIN_DATA__INIT;
    content.data_case = PL__HPARAMS_PLUGIN_DATA__DATA_SESSION_END_INFO;
    content.session_end_info = &end;
    put_hparams(out, time, "_hparams_/session_end_info", &content);
}
