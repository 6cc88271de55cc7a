/* plan_priv.h - the decisions of plan.c that exec.c follows. */
#ifndef PL_GRAPH_PLAN_PRIV_H
#define PL_GRAPH_PLAN_PRIV_H

#include "graph/fuse.h"
#include "graph/plan.h"

/* The layout of a batch in memory; see kernels/backend.h. */
typedef enum pl_layout {
    PL_LAYOUT_PLAIN,   /* row by row */
    PL_LAYOUT_LANES,   /* `lanes` consecutive rows are interleaved */
    PL_LAYOUT_BLOCKED, /* `lanes` channels are interleaved; kernels/cpu/dnn.h */
    PL_LAYOUTS,
} pl_layout;

typedef enum pl_value_place {
    PL_PLACE_NONE,  /* not needed */
    PL_PLACE_VIEW,  /* an input, bound at run time */
    PL_PLACE_PARAM, /* offset counts in the parameter block */
    PL_PLACE_DIFF,  /* offset counts in the gradient block */
    PL_PLACE_ARENA, /* offset counts in the execution's memory */
} pl_value_place;

/* A piece of the execution's memory, in floats. */
typedef struct pl_piece {
    int64_t offset;
    int64_t count; /* 0: none */
    int last;      /* step of the last use; output: after the end */
} pl_piece;

/* Place of a node's result. */
typedef struct pl_value {
    pl_value_place place;
    pl_layout layout;          /* of the result; plain if not a batch */
    int root;                  /* the node whose memory this is */
    int input;                 /* a view: which of the graph's inputs */
    pl_piece result;           /* including its workspace */
    int64_t workspace;         /* offset, -1: none */
    pl_piece copy[PL_LAYOUTS]; /* copies in other layouts */
    pl_piece scratch;          /* during its own step only */
    /* Of large layers; see large.h. */
    bool large;    /* computed by oneDNN */
    bool joined;   /* computed by the step of another node */
    bool relu;     /* applied to the result */
    int bias;      /* the node whose result is the gradient of the bias */
    pl_dnn_op *op; /* of the node; NULL: run or run_large */
    pl_dnn_op *to[PL_LAYOUTS]; /* fill copy[] from or to blocked */
} pl_value;

typedef enum pl_step_kind {
    PL_STEP_RUN,
    PL_STEP_TO_PLAIN, /* fill copy[PL_LAYOUT_PLAIN] */
    PL_STEP_TO_LANES,
    PL_STEP_TO_BLOCKED,
} pl_step_kind;

typedef struct pl_step {
    int node;
    pl_step_kind kind;
} pl_step;

/* A parameter that is needed before a step, or whose gradient is ready after
 * it. */
typedef struct pl_event {
    int step;
    int param;
} pl_event;

struct pl_plan {
    const pl_graph *graph;
    const pl_kernels *kernels;
    int64_t batch;
    const pl_node **nodes; /* of the graph, or their replacements */
    pl_fused *fused;       /* the replacements */
    pl_value *values;      /* one per node */
    int value_count;
    pl_step *steps;
    int step_count;
    pl_event *needs;   /* one per parameter, by step; with gradients only */
    pl_event *readies; /* likewise */
    int param_count;
    int *outputs;
    int output_count;
    int input_count; /* of the graph */
    bool lanes;      /* some result is in lanes */
    bool large;      /* some node is computed by oneDNN */
    bool bf16;       /* ... from numbers rounded to bfloat16 */
    bool training;   /* there are gradients */
    int threads;     /* of an operator, if the plan is large */
    int64_t arena;   /* floats */
    int64_t unshared;
};

/* The form in which `node` reads its input j. */
typedef enum pl_form {
    PL_FORM_RESULT, /* the input's own result */
    PL_FORM_VIEW,   /* in the data set */
    PL_FORM_PLAIN,  /* copies in each layout */
    PL_FORM_LANES,
    PL_FORM_BLOCKED,
} pl_form;
pl_form pl_plan_form(const pl_plan *plan, const pl_node *node, int j);
/* The layout in which an operator works; that of its result, if it is a
 * batch. */
pl_layout pl_plan_layout(const pl_plan *plan, const pl_node *node);
/* The form of the node's result that a conversion reads, and the form it
 * writes. */
pl_form pl_plan_source(const pl_plan *plan, int id, pl_layout to);
pl_layout pl_plan_target(const pl_step *step);

/* Does `node` read its input j, or write its result, in blocks? */
bool pl_plan_blocks(const pl_plan *plan, const pl_node *node, pl_shape shape);
/* Floats of images [batch, channels, height, width] in blocks. */
int64_t pl_plan_blocked_count(const pl_kernels *kernels, pl_shape shape,
                              int64_t rows);

/* Find when parameters are needed, and when gradients are ready: of those done
 * in the same step, the last first. */
pl_status pl_plan_events(pl_plan *plan, const pl_plan_opts *opts) PL_MUST_CHECK;

/* `rows` rounded up to whole groups of lanes. */
int64_t pl_plan_padded(const pl_plan *plan, int64_t rows);

#endif
