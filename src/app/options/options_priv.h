/* options_priv.h - shared by the files that read the flags of `train`: their
 * tables, and the traits that only these flags have. */
#ifndef PL_APP_OPTIONS_OPTIONS_PRIV_H
#define PL_APP_OPTIONS_OPTIONS_PRIV_H

#include "app/options/options.h"

/* In addition to those of pl_param_trait. */
enum {
    /* On resume. */
    PL_OPTION_TASKS = 1 << 16,    /* defines the tasks: where one of these is
                                     given, none is recalled */
    PL_OPTION_OF_TASKS = 1 << 17, /* depends on those and on --mode: not
                                     recalled where one of them is given */
    PL_OPTION_LENGTH = 1 << 18,   /* the length of the training: where one of
                                     these is given, none is recalled */
    PL_OPTION_NOT_RECALLED = 1 << 19, /* fits the machine, not the run */
    /* On the command line of tasks. */
    PL_OPTION_FILLED = 1 << 20, /* passed on even if left out: tasks could not
                                   choose it, or not equally */
    PL_OPTION_NOT_FORWARDED = 1 << 21,
    PL_OPTION_LAUNCH = 1 << 23,   /* `launch` turns it into the cluster */
    PL_OPTION_BY_TESTS = 1 << 24, /* tests decide it, so there must be some */
    PL_OPTION_COMMAND = 1 << 25,  /* is about the terminal or processes */
    /* A sweep sets it, or it is meaningless in one. */
    PL_OPTION_NOT_SWEPT = 1 << 22,
};

/* The tables without their targets. */
#define PL_OPTION_TABLES 5
extern const pl_param_group pl_options_tables[PL_OPTION_TABLES];

#endif
