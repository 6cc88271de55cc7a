/* paceline.h - the one header a program includes.
 *
 * A program with its own model describes it as a pl_model (paceline/nn.h) and
 * hands it to pl_app_main (paceline/cli.h), which is the whole command line.
 * examples/ has programs that do. */
#ifndef PACELINE_H
#define PACELINE_H

#include <paceline/base.h>
#include <paceline/cli.h>
#include <paceline/graph.h>
#include <paceline/nn.h>
#include <paceline/tensor.h>

#endif
