/* model.h - the built-in models, and a model built for a data set.
 *
 * Threads: the list is constant; a network is built by one thread, then
 * read. */
#ifndef PL_NN_MODEL_H
#define PL_NN_MODEL_H

#include "graph/graph.h"
#include "paceline/nn.h"
#include "tensor/params.h"

/* A file from which a model was read (nn/onnx). */
typedef struct pl_model_file pl_model_file;
struct pl_model_file {
    const char *path;        /* as given */
    char sha256[65];         /* of the file ... */
    char weights_sha256[65]; /* ... and of its external weights; "": none */
    /* The initial values of a parameter. */
    pl_status (*values)(const pl_model_file *file, const char *parameter,
                        int64_t count, float *to);
};

/* The name of its copy in a run folder. */
#define PL_MODEL_FILE "model.onnx"

/* Initial values of such a model's parameters: those in its file. */
#define PL_INIT_FILE "file"

/* What is minimized if a model sets no loss. */
typedef enum pl_objective {
    PL_OBJECTIVE_CROSS_ENTROPY, /* labels are classes; otherwise numbers */
    PL_OBJECTIVE_SQUARED_ERROR,
    PL_OBJECTIVE_HUBER,
} pl_objective;

/* The name of the model on a command line: its name or its file's. */
const char *pl_model_word(const pl_model *model);

/* NULL-terminated. */
const pl_model *const *pl_model_list(void);

/* A model as a graph with its gradients and parameters. */
typedef struct pl_network {
    const pl_model *model;
    pl_graph *graph;
    pl_node *logits;
    pl_node *loss;     /* scalar: the mean over the batch */
    pl_node *accuracy; /* scalar: the share of right answers; NULL: numeric */
    pl_params *params;
    pl_node **diff;      /* the gradient of each parameter */
    double average_rate; /* of running averages */
    int forward;  /* number of nodes before those of loss and gradients */
    bool numeric; /* labels are as many numbers as there are logits */
    /* A sparse network has only parameters: the graph has no other nodes, and
     * of the above only params and graph are set. */
    bool sparse;
    int table, bias; /* indices of parameters */
} pl_network;

typedef struct pl_network_opts {
    pl_shape example;    /* of the data: [28, 28], sparse: [features];
                            required */
    int32_t classes;     /* of the data, or numbers per label; required */
    pl_objective loss;   /* default: the cross-entropy */
    double huber_delta;  /* of PL_OBJECTIVE_HUBER; default 1 */
    const char *init;    /* default: the model's, else glorot */
    const void *options; /* the model's own flags; NULL: their defaults */
    uint64_t seed;
    bool
        weighted; /* examples have weights, which their loss is multiplied by */
    bool no_values; /* the parameters get no memory: for planning only */
} pl_network_opts;

/* Build, differentiate, and initialize the parameters. */
pl_status pl_network_new(pl_network **out, const pl_model *model,
                         const pl_network_opts *opts) PL_MUST_CHECK;
void pl_network_free(pl_network *network); /* NULL is fine */

/* Input order of every network's graph. */
enum {
    PL_INPUT_FEATURES,
    PL_INPUT_LABELS,
    PL_INPUT_WEIGHTS, /* of the examples, float32; if weighted */
    PL_INPUT_COUNT,
};

#endif
