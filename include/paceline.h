/* paceline.h - the one header a program includes.
 *
 * A program with its own model describes it as a pl_model (paceline/nn.h).  It
 * hands it to pl_app_main (paceline/cli.h), which is the whole command line, or
 * trains it itself: paceline/train.h, with examples of its own
 * (paceline/data.h), predictions (paceline/predict.h) and the records of a run
 * (paceline/run.h).  docs/library.md and examples/ have programs that do. */
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
