/* plan_priv.h - what plan.c decides and exec.c follows. */
#ifndef PL_GRAPH_PLAN_PRIV_H
#define PL_GRAPH_PLAN_PRIV_H

#include "graph/fuse.h"
#include "graph/plan.h"

/* How a batch lies in memory; see kernels/backend.h. */
typedef enum pl_layout {
    PL_LAYOUT_PLAIN, /* row after row */
    PL_LAYOUT_LANES, /* `lanes` rows side by side */
    PL_LAYOUTS,
} pl_layout;

typedef enum pl_place {
    PL_PLACE_NONE,  /* not needed */
    PL_PLACE_VIEW,  /* an input, bound at run time */
    PL_PLACE_PARAM, /* offset counts in the parameter block */
    PL_PLACE_DIFF,  /* offset counts in the gradient block */
    PL_PLACE_ARENA, /* offset counts in the execution's memory */
} pl_place;

/* A piece of the execution's memory, in floats. */
typedef struct pl_piece {
    int64_t offset;
    int64_t count; /* 0: there is none */
    int last;      /* step of the last use; output: after the end */
} pl_piece;

/* Where a node's result lies. */
typedef struct pl_value {
    pl_place place;
    pl_layout layout;          /* of the result; plain where no batch */
    int root;                  /* the node whose memory this is */
    int input;                 /* a view: which of the graph's inputs */
    pl_piece result;           /* with its workspace behind it */
    int64_t workspace;         /* offset, -1: none */
    pl_piece copy[PL_LAYOUTS]; /* the same, converted for others */
    pl_piece scratch;          /* during its own step only */
} pl_value;

typedef enum pl_step_kind {
    PL_STEP_RUN,
    PL_STEP_TO_PLAIN, /* fill copy[PL_LAYOUT_PLAIN] */
    PL_STEP_TO_LANES,
} pl_step_kind;

typedef struct pl_step {
    int node;
    pl_step_kind kind;
} pl_step;

struct pl_plan {
    const pl_graph *graph;
    const pl_kernels *kernels;
    int64_t batch;
    const pl_node **nodes; /* the graph's, or what stands for them */
    pl_fused *fused;       /* some of them */
    pl_value *values;      /* one per node */
    int value_count;
    pl_step *steps;
    int step_count;
    int *outputs;
    int output_count;
    int input_count; /* of the graph */
    bool lanes;      /* some result is in lanes */
    int64_t arena;   /* floats */
    int64_t unshared;
};

/* In which form `node` reads its input j. */
typedef enum pl_form {
    PL_FORM_RESULT, /* where the input was written */
    PL_FORM_VIEW,   /* where the data set has it */
    PL_FORM_PLAIN,  /* its copies */
    PL_FORM_LANES,
} pl_form;
pl_form pl_plan_form(const pl_plan *plan, const pl_node *node, int j);

/* `rows` filled up to whole groups of lanes. */
int64_t pl_plan_padded(const pl_plan *plan, int64_t rows);

#endif
