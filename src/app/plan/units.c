/* units.c - parses rates, times and factors: their units and limits. */
#include "app/plan/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct unit {
    const char *name; /* NULL: the end */
    double factor;
} unit;

static const unit rates[] = {
    { "kbit", 1e3 / 8 },   { "mbit", 1e6 / 8 },   { "gbit", 1e9 / 8 },
    { "kbit/s", 1e3 / 8 }, { "mbit/s", 1e6 / 8 }, { "gbit/s", 1e9 / 8 },
    { NULL, 0 },
};
static const unit times[] = {
    { "us", 1e-6 }, { "ms", 1e-3 }, { "s", 1 }, { NULL, 0 }
};
static const unit factors[] = { { "", 1 }, { "x", 1 }, { NULL, 0 } };

/* A number and one of the units, optionally separated by a space. */
static pl_status parse(double *out, const char *flag, const char *text,
                       const unit *units, double least, double most,
                       const char *expected)
{
    char *end;
    double number = strtod(text, &end);
    while (end != text && *end == ' ')
        end++;
    for (const unit *u = units; end != text && u->name != NULL; u++) {
        double value = number * u->factor;
        if (strcasecmp(end, u->name) == 0 && value >= least && value <= most) {
            *out = value;
            return PL_OK;
        }
    }
    return PL_FAIL(PL_USAGE, "--%s: expected %s, found \"%s\"", flag, expected,
                   text);
}

pl_status pl_units_rate(double *bytes_per_s, const char *flag, const char *text)
{
    if (strcmp(text, "unlimited") == 0) {
        *bytes_per_s = 0;
        return PL_OK;
    }
    return parse(bytes_per_s, flag, text, rates, 1, 1e15,
                 "a rate such as 100Mbit or 1Gbit, or unlimited");
}

const char *pl_units_rate_text(double bytes_per_s, char text[PL_UNITS_TEXT])
{
    static const struct {
        double bits;
        const char *name;
    } steps[] = { { 1e9, "Gbit/s" }, { 1e6, "Mbit/s" }, { 1e3, "kbit/s" } };
    double bits = 8 * bytes_per_s;
    size_t i = 0;
    while (i + 1 < sizeof steps / sizeof *steps && bits < steps[i].bits)
        i++;
    if (bytes_per_s > 0)
        snprintf(text, PL_UNITS_TEXT, "%.4g %s", bits / steps[i].bits,
                 steps[i].name);
    else
        snprintf(text, PL_UNITS_TEXT, "unlimited");
    return text;
}

pl_status pl_units_time(double *seconds, const char *flag, const char *text)
{
    return parse(seconds, flag, text, times, 0, 60,
                 "a time of at most 60 s, such as 200us or 0.2ms");
}

pl_status pl_units_factor(double *factor, const char *flag, const char *text)
{
    return parse(factor, flag, text, factors, 1, 1e6,
                 "a speed-up of 1 or more, such as 10x");
}
