/* plan_priv.h - what plan.c decides and exec.c follows. */
#ifndef PL_GRAPH_PLAN_PRIV_H
#define PL_GRAPH_PLAN_PRIV_H

#include "graph/plan.h"

typedef enum pl_place {
    PL_PLACE_NONE,  /* not needed */
    PL_PLACE_VIEW,  /* an input, bound at run time */
    PL_PLACE_PARAM, /* offset counts in the parameter block */
    PL_PLACE_DIFF,  /* offset counts in the gradient block */
    PL_PLACE_ARENA, /* offset counts in the execution's memory */
} pl_place;

/* Where a node's result lies; offsets and sizes in floats. */
typedef struct pl_value {
    pl_place place;
    int root; /* the node whose memory this is: itself, or what it aliases */
    int64_t offset;
    int64_t count;     /* in the arena: result, then workspace */
    int64_t workspace; /* offset of the workspace, -1: none */
    int64_t loaded;    /* a view read by others: its float32 copy, -1: none */
    int last;          /* step of the last use; output: after the end */
    int input;         /* a view: which of the graph's inputs */
} pl_value;

/* One operator, or (load) the conversion of a view. */
typedef struct pl_step {
    int node;
    bool load;
} pl_step;

struct pl_plan {
    const pl_graph *graph;
    const pl_kernels *kernels;
    int64_t batch;
    pl_value *values; /* one per node */
    int value_count;
    pl_step *steps;
    int step_count;
    int *outputs;
    int output_count;
    int input_count; /* of the graph */
    int64_t arena;   /* floats */
    int64_t unshared;
};

/* True when `node` must have input j as plain float32. */
bool pl_plan_wants_loaded(const pl_plan *plan, const pl_node *node, int j);

#endif
