/* graph_read.c - reads the graph among the first records of an event file: its
 * nodes with their operators, devices, shapes and inputs. */
#include "observe/runs/graph_read.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/quote.h"
#include "proto/field.h"
#include "proto/tfrecord.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BEGIN_BYTES ((size_t)4 << 20) /* of a file; the graph comes first */
#define NODES_MOST  5000
#define TEXT_MOST   512

/* Fields of Event, GraphDef, NodeDef, its attributes and shapes
 * (proto/event.proto). */
enum {
    EVENT_GRAPH = 4,
    GRAPH_NODE = 1,
    NODE_NAME = 1,
    NODE_OP = 2,
    NODE_INPUT = 3,
    NODE_DEVICE = 4,
    NODE_ATTR = 5,
    ATTR_VALUE = 2,
    VALUE_LIST = 1,
    LIST_SHAPE = 7,
    SHAPE_DIM = 2,
    DIM_SIZE = 1,
};

/* The body of a field of a message; empty: not present. */
static pl_status find(pl_proto_span in, uint64_t number, pl_proto_span *out)
{
    *out = (pl_proto_span) { 0 };
    while (in.at < in.end) {
        pl_proto_field f;
        PL_TRY(pl_proto_next(&in, &f));
        if (pl_proto_holds(&f, number))
            *out = f.body;
    }
    return PL_OK;
}

static void put_text(pl_buffer *out, pl_proto_span text)
{
    char copy[TEXT_MOST + 1];
    size_t bytes = (size_t)(text.end - text.at);
    bytes = bytes < TEXT_MOST ? bytes : TEXT_MOST;
    if (bytes > 0)
        memcpy(copy, text.at, bytes);
    copy[bytes] = '\0';
    pl_quote_json(out, copy);
}

static pl_status put_texts(pl_buffer *out, pl_proto_span in, uint64_t number)
{
    bool any = false;
    pl_buffer_text(out, ",[");
    while (in.at < in.end) {
        pl_proto_field f;
        PL_TRY(pl_proto_next(&in, &f));
        if (!pl_proto_holds(&f, number))
            continue;
        pl_buffer_text(out, any ? "," : "");
        put_text(out, f.body);
        any = true;
    }
    pl_buffer_text(out, "]");
    return PL_OK;
}

static pl_status put_size(pl_buffer *out, pl_proto_span in, bool first)
{
    int64_t size = 0;
    while (in.at < in.end) {
        pl_proto_field f;
        PL_TRY(pl_proto_next(&in, &f));
        if (f.number == DIM_SIZE && f.wire == PL_PROTO_VARINT)
            size = (int64_t)f.value;
    }
    pl_buffer_format(out, "%s%lld", first ? "" : ",", (long long)size);
    return PL_OK;
}

/* The attribute with a list of shapes has the shape of the result. */
static pl_status put_shape(pl_buffer *out, pl_proto_span node)
{
    pl_proto_span shape = { 0 };
    bool first = true;
    while (node.at < node.end) {
        pl_proto_field f;
        pl_proto_span part;
        PL_TRY(pl_proto_next(&node, &f));
        if (!pl_proto_holds(&f, NODE_ATTR))
            continue;
        PL_TRY(find(f.body, ATTR_VALUE, &part));
        PL_TRY(find(part, VALUE_LIST, &part));
        PL_TRY(find(part, LIST_SHAPE, &part));
        shape = part.at != NULL ? part : shape;
    }
    pl_buffer_text(out, ",[");
    while (shape.at < shape.end) {
        pl_proto_field f;
        PL_TRY(pl_proto_next(&shape, &f));
        if (!pl_proto_holds(&f, SHAPE_DIM))
            continue;
        PL_TRY(put_size(out, f.body, first));
        first = false;
    }
    pl_buffer_text(out, "]");
    return PL_OK;
}

static pl_status put_node(pl_buffer *out, pl_proto_span node)
{
    static const uint64_t texts[] = { NODE_NAME, NODE_OP, NODE_DEVICE };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        pl_proto_span text;
        PL_TRY(find(node, texts[i], &text));
        pl_buffer_text(out, i == 0 ? "[" : ",");
        put_text(out, text);
    }
    PL_TRY(put_shape(out, node));
    PL_TRY(put_texts(out, node, NODE_INPUT));
    pl_buffer_text(out, "]");
    return PL_OK;
}

static pl_status put_graph(pl_buffer *out, pl_proto_span graph)
{
    size_t count = 0;
    pl_buffer_text(out, "[");
    while (graph.at < graph.end) {
        pl_proto_field f;
        PL_TRY(pl_proto_next(&graph, &f));
        if (!pl_proto_holds(&f, GRAPH_NODE) || count == NODES_MOST)
            continue;
        pl_buffer_text(out, count++ > 0 ? ",\n" : "");
        PL_TRY(put_node(out, f.body));
    }
    pl_buffer_text(out, "]");
    return pl_buffer_status(out);
}

pl_status pl_graph_read(const uint8_t *data, size_t bytes, pl_buffer *out)
{
    size_t frame = PL_TFRECORD_HEAD + PL_TFRECORD_TAIL;
    for (size_t at = 0; bytes - at >= frame;) {
        const uint8_t *record = data + at + PL_TFRECORD_HEAD;
        uint64_t length = pl_get_u64(data + at);
        pl_proto_span graph;
        if (length > bytes - at - frame)
            break;
        PL_TRY(find((pl_proto_span) { record, record + length }, EVENT_GRAPH,
                    &graph));
        if (graph.at != NULL)
            return put_graph(out, graph);
        at += frame + length;
    }
    return PL_FAIL(PL_NOTFOUND, "no graph was recorded");
}

static pl_status read_file(const char *path, pl_buffer *out)
{
    uint8_t *data;
    struct stat info;
    /* Opening a file that is not regular might block. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 || fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
        if (file >= 0)
            close(file);
        return PL_FAIL(PL_NOTFOUND, "%s cannot be read", path);
    }
    size_t room =
        info.st_size < (off_t)BEGIN_BYTES ? (size_t)info.st_size : BEGIN_BYTES;
    pl_status status = PL_NEW(data, room + 1);
    if (status == PL_OK) {
        ssize_t bytes = read(file, data, room);
        status = pl_graph_read(data, bytes > 0 ? (size_t)bytes : 0, out);
    }
    pl_mem_free(data);
    close(file);
    return status;
}

static pl_status read_task(const char *run, const char *task, pl_buffer *out)
{
    char *folder, *path, **names;
    size_t count;
    PL_TRY(pl_mem_format(&folder, "%s/events/%s", run, task));
    pl_status status = pl_file_list(&names, &count, folder);
    if (status == PL_OK) {
        status = PL_FAIL(PL_NOTFOUND, "%s has no event files", folder);
        for (size_t i = 0; i < count && status == PL_NOTFOUND; i++) {
            if (strstr(names[i], ".tfevents.") == NULL)
                continue;
            status = pl_file_join(&path, folder, names[i]);
            if (status == PL_OK) {
                status = read_file(path, out);
                pl_mem_free(path);
            }
        }
        pl_mem_free(names);
    }
    pl_mem_free(folder);
    return status;
}

pl_status pl_graph_of_run(const char *run, pl_buffer *out)
{
    pl_status status = read_task(run, "worker-0", out);
    return status == PL_NOTFOUND ? read_task(run, "chief-0", out) : status;
}
