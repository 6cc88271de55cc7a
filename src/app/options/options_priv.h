/* options_priv.h - what the files that read the flags of `train` share: their
 * tables, and the traits that only these have. */
#ifndef PL_APP_OPTIONS_OPTIONS_PRIV_H
#define PL_APP_OPTIONS_OPTIONS_PRIV_H

#include "app/options/options.h"

/* Beside those of pl_param_trait. */
enum {
    /* On resume. */
    PL_OPTION_TASKS = 1 << 16,    /* says which tasks there are: where one of
                                     these is given, none is recalled */
    PL_OPTION_OF_TASKS = 1 << 17, /* follows from those and from --mode: not
                                     recalled where one of them is given */
    PL_OPTION_LENGTH = 1 << 18,   /* how long to train: where one of these is
                                     given, none is recalled */
    PL_OPTION_NOT_RECALLED = 1 << 19, /* suits the machine, not the run */
    /* On the command line of tasks. */
    PL_OPTION_FILLED = 1 << 20, /* passed on also where it was left out: tasks
                                   could not work it out, or not equally */
    PL_OPTION_NOT_FORWARDED = 1 << 21,
    PL_OPTION_LAUNCH = 1 << 23,   /* `launch` turns it into the cluster */
    PL_OPTION_BY_TESTS = 1 << 24, /* tests decide it, so there must be some */
    PL_OPTION_COMMAND = 1 << 25,  /* is about the terminal or about processes */
    /* A sweep chooses it, or it has no meaning in one. */
    PL_OPTION_NOT_SWEPT = 1 << 22,
};

/* The tables without their targets. */
#define PL_OPTION_TABLES 5
extern const pl_param_group pl_options_tables[PL_OPTION_TABLES];

#endif
