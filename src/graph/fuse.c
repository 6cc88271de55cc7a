/* Design.
 *
 * A chain is found from its end. A result that is no longer written must have
 * no reader outside the chain: a convolution is read only by the activation, an
 * activation only by the pooling and by two gradients that need no more than
 * the pooling's result and the cell it came from:
 *
 *   conv2d -> relu -> max_pool           max_pool_grad(relu, max_pool, diff)
 *   one step, keeps cells in a      ->   relu_grad(relu, max_pool_grad)
 *   workspace                            one step
 *
 * The gradients of an activation before an average pooling need the whole
 * result of the activation; there the chain ends with the activation. */
#include "graph/fuse.h"

#include "base/mem.h"

#define MOST_READERS 3

/* The readers of a node's result among the needed nodes. */
typedef struct readers {
    int count;
    const pl_node *first[MOST_READERS];
} readers;

typedef struct fuser {
    const pl_fuse_opts *opts;
    readers *readers; /* one per node */
    const pl_node **nodes;
    pl_fused *fused;
    int count;
} fuser;

static const struct {
    const pl_op *op, *grad;
    pl_activation kind;
} activations[] = {
    { &pl_op_relu, &pl_op_relu_grad, PL_ACTIVATION_RELU },
    { &pl_op_tanh, &pl_op_tanh_grad, PL_ACTIVATION_TANH },
    { &pl_op_sigmoid, &pl_op_sigmoid_grad, PL_ACTIVATION_SIGMOID },
};
#define ACTIVATIONS (sizeof activations / sizeof *activations)

/* Its index in the list above, or -1. */
static int activation_of(const pl_node *node)
{
    for (int i = 0; i < (int)ACTIVATIONS; i++)
        if (node->op == activations[i].op)
            return i;
    return -1;
}

static void find_readers(fuser *f)
{
    for (int i = 0; i < pl_graph_count(f->opts->graph); i++) {
        const pl_node *node = pl_graph_get(f->opts->graph, i);
        for (int j = 0; f->opts->needed[i] && j < node->input_count; j++) {
            readers *r = &f->readers[node->in[j]->id];
            if (r->count < MOST_READERS)
                r->first[r->count] = node;
            r->count++;
        }
    }
}

/* Is `reader` the only reader of the node's result? */
static bool only_for(const fuser *f, const pl_node *node, const pl_node *reader)
{
    const readers *r = &f->readers[node->id];
    return !f->opts->kept[node->id] && r->count == 1 && r->first[0] == reader;
}

/* The reader of `node` with this operator, or NULL. */
static const pl_node *reader_of(const fuser *f, const pl_node *node,
                                const pl_op *op)
{
    const readers *r = &f->readers[node->id];
    for (int i = 0; i < r->count && i < MOST_READERS; i++)
        if (r->first[i]->op == op)
            return r->first[i];
    return NULL;
}

/* conv2d, activation (NULL: none) and pooling (NULL: none), and the gradients
 * of the latter two, both set or both NULL. */
typedef struct chain {
    const pl_node *conv, *activation, *pool;
    const pl_node *unpool, *slope;
    int kind; /* activation's index in the list above; -1: none */
} chain;

/* The pooling's input is read only by the pooling and the gradients. */
static bool find_gradients(const fuser *f, chain *c)
{
    const pl_node *src = c->pool->in[0];
    if (f->opts->kept[src->id])
        return false;
    if (only_for(f, src, c->pool))
        return true;
    if (c->pool->op != &pl_op_max_pool)
        return false;
    c->unpool = reader_of(f, src, &pl_op_max_pool_grad);
    if (c->unpool == NULL || c->unpool->in[1] != c->pool ||
        c->unpool->in[2] == src)
        return false;
    if (c->activation == NULL)
        return f->readers[src->id].count == 2;
    c->slope = reader_of(f, src, activations[c->kind].grad);
    return c->slope != NULL && f->readers[src->id].count == 3 &&
           c->slope->in[1] == c->unpool && only_for(f, c->unpool, c->slope);
}

static bool find_chain(const fuser *f, const pl_node *end, chain *c)
{
    *c = (chain) { .kind = -1 };
    const pl_node *node = end;
    if (end->op == &pl_op_max_pool || end->op == &pl_op_avg_pool) {
        if (end->size != end->stride)
            return false;
        c->pool = end;
        node = end->in[0];
    }
    c->kind = activation_of(node);
    if (c->kind >= 0) {
        c->activation = node;
        node = node->in[0];
    }
    c->conv = node;
    if (node == end || node->op != &pl_op_conv2d)
        return false;
    if (c->activation != NULL && !only_for(f, node, c->activation))
        return false;
    return c->pool == NULL || find_gradients(f, c);
}

static pl_conv_block block_of(const chain *c)
{
    pl_conv conv = pl_conv2d_sizes(c->conv);
    pl_conv_block block = {
        .conv = conv,
        .activation =
            c->kind >= 0 ? activations[c->kind].kind : PL_ACTIVATION_NONE,
        .window = { .channels = conv.outs,
                    .height = conv.out_height,
                    .width = conv.out_width,
                    .out_height = conv.out_height,
                    .out_width = conv.out_width,
                    .size = 1,
                    .stride = 1 },
    };
    if (c->pool == NULL)
        return block;
    block.pooling =
        c->pool->op == &pl_op_max_pool ? PL_POOLING_MAX : PL_POOLING_AVG;
    block.window.size = c->pool->size;
    block.window.stride = c->pool->stride;
    block.window.out_height = c->pool->shape.dim[2];
    block.window.out_width = c->pool->shape.dim[3];
    return block;
}

/* Replace `node` by a new node. */
static pl_fused *stand_for(fuser *f, const pl_node *node, const pl_op *op)
{
    pl_fused *fused = &f->fused[f->count++];
    *fused = (pl_fused) { .node = *node };
    fused->node.op = op;
    f->nodes[node->id] = &fused->node;
    return fused;
}

/* If windows do not reach the edge of the image, the gradient there is zero.
 * The convolution's own gradients need not read it: crop `back`, which replaces
 * `diff`, to the area of the windows. */
static void crop(fuser *f, const pl_node *diff, pl_fused *back)
{
    static const pl_op *const those[] = { &pl_op_conv2d_src,
                                          &pl_op_conv2d_weights,
                                          &pl_op_conv2d_bias };
    pl_window *w = &back->block.window;
    const readers *r = &f->readers[diff->id];
    int64_t height = w->out_height * w->size, width = w->out_width * w->size;
    const pl_node *found[3] = { NULL };
    int count = 0;
    for (int i = 0; i < 3; i++) {
        found[i] = reader_of(f, diff, those[i]);
        count += found[i] != NULL && found[i]->in[0] == diff;
    }
    if (f->opts->kept[diff->id] || count != r->count ||
        (height == w->height && width == w->width))
        return;
    back->node.shape.dim[2] = w->height = height;
    back->node.shape.dim[3] = w->width = width;
    for (int i = 0; i < 3; i++)
        if (found[i] != NULL)
            stand_for(f, found[i], found[i]->op)->node.in[0] = &back->node;
}

static void fuse_chain(fuser *f, const chain *c)
{
    const pl_node *end = c->pool != NULL ? c->pool : c->activation;
    pl_fused *forward = stand_for(f, end, &pl_op_conv_block);
    forward->block = block_of(c);
    forward->indexed = c->unpool != NULL;
    forward->node.name = c->conv->name;
    forward->node.input_count = c->conv->input_count;
    for (int j = 0; j < c->conv->input_count; j++)
        forward->node.in[j] = c->conv->in[j];
    if (c->unpool == NULL)
        return;
    const pl_node *diff = c->slope != NULL ? c->slope : c->unpool;
    pl_fused *back = stand_for(f, diff, &pl_op_unpool);
    back->block = forward->block;
    back->node.input_count = 2;
    back->node.in[0] = c->unpool->in[1];
    back->node.in[1] = c->unpool->in[2];
    crop(f, diff, back);
}

pl_status pl_fuse(const pl_fuse_opts *opts, const pl_node **nodes,
                  pl_fused *fused, int *count)
{
    int all = pl_graph_count(opts->graph);
    fuser f = { .opts = opts, .nodes = nodes, .fused = fused };
    PL_TRY(PL_NEW(f.readers, (size_t)all));
    find_readers(&f);
    /* The longest first: a pooling comes after its inputs. */
    for (int i = all - 1; i >= 0; i--) {
        chain c;
        const pl_node *node = pl_graph_get(opts->graph, i);
        bool inside = /* part of a chain that is already fused */
            activation_of(node) >= 0 && f.readers[i].count > 0 &&
            nodes[f.readers[i].first[0]->id]->op == &pl_op_conv_block;
        if (opts->needed[i] && !inside && find_chain(&f, node, &c))
            fuse_chain(&f, &c);
    }
    pl_mem_free(f.readers);
    *count = f.count;
    return PL_OK;
}
