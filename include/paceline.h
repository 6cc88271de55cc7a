/* paceline.h - the one header a program includes.
 *
 * A program defines its own model as a pl_model (paceline/nn.h).  It passes the
 * model to pl_app_main (paceline/cli.h), which is the whole command line, or
 * trains it itself (paceline/train.h), with its own examples (paceline/data.h),
 * predictions (paceline/predict.h) and the records of a run (paceline/run.h).
 * See docs/library.md and examples/. */
#ifndef PACELINE_H
#define PACELINE_H

#include <paceline/base.h>
#include <paceline/cli.h>
#include <paceline/data.h>
#include <paceline/graph.h>
#include <paceline/model.h>
#include <paceline/nn.h>
#include <paceline/predict.h>
#include <paceline/run.h>
#include <paceline/tensor.h>
#include <paceline/train.h>

#endif
