/* formula.c - parses and evaluates a placement formula, a recursive descent
 * over + - * / % with bounded depth and checked arithmetic. */
#include "matmul/plan/formula.h"

#include <stdbool.h>
#include <stdlib.h>

#define DEPTH_MOST 32
#define LIMIT      ((int64_t)1 << 31) /* of every intermediate value */

typedef struct reader {
    const char *text, *at;
    const pl_formula_values *values;
    int depth;
} reader;

static pl_status sum(reader *r, int64_t *out) PL_MUST_CHECK;

static void skip_blanks(reader *r)
{
    while (*r->at == ' ')
        r->at++;
}

static pl_status wrong(const reader *r, const char *what)
{
    return PL_FAIL(PL_USAGE, "\"%.80s\": %s at place %td", r->text, what,
                   r->at - r->text + 1);
}

static pl_status check(const reader *r, int64_t value)
{
    return value > -LIMIT && value < LIMIT
               ? PL_OK
               : wrong(r, "a value beyond 2^31 before");
}

static pl_status number(reader *r, int64_t *out)
{
    int64_t value = 0;
    for (; *r->at >= '0' && *r->at <= '9'; r->at++) {
        value = value * 10 + (*r->at - '0');
        PL_TRY(check(r, value));
    }
    *out = value;
    return PL_OK;
}

static pl_status inner(reader *r, int64_t *out)
{
    if (r->depth == DEPTH_MOST)
        return wrong(r, "too many parentheses or signs");
    r->depth++;
    r->at++;
    PL_TRY(sum(r, out));
    r->depth--;
    if (*r->at != ')')
        return wrong(r, "expected \")\"");
    r->at++;
    return PL_OK;
}

static pl_status factor(reader *r, int64_t *out)
{
    skip_blanks(r);
    if (*r->at >= '0' && *r->at <= '9')
        return number(r, out);
    switch (*r->at) {
    case '(':
        return inner(r, out);
    case 'i':
        *out = r->values->i;
        break;
    case 'j':
        *out = r->values->j;
        break;
    case 'W':
        *out = r->values->workers;
        break;
    case 'B':
        *out = r->values->blocks;
        break;
    default:
        return wrong(r, "expected a number, i, j, W, B or \"(\"");
    }
    r->at++;
    return PL_OK;
}

/* Rounded down. */
static int64_t quotient(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static pl_status combine(const reader *r, char sign, int64_t right,
                         int64_t *left)
{
    if ((sign == '/' || sign == '%') && right == 0)
        return wrong(r, "a division by zero before");
    int64_t a = *left;
    switch (sign) {
    case '+':
        *left = a + right;
        break;
    case '-':
        *left = a - right;
        break;
    case '*':
        *left = a * right;
        break;
    case '/':
        *left = quotient(a, right);
        break;
    default:
        *left = a - quotient(a, right) * right;
        break;
    }
    return check(r, *left);
}

static pl_status term(reader *r, int64_t *out)
{
    PL_TRY(factor(r, out));
    for (;;) {
        int64_t right;
        skip_blanks(r);
        char sign = *r->at;
        if (sign != '*' && sign != '/' && sign != '%')
            return PL_OK;
        r->at++;
        PL_TRY(factor(r, &right));
        PL_TRY(combine(r, sign, right, out));
    }
}

static pl_status sum(reader *r, int64_t *out)
{
    PL_TRY(term(r, out));
    for (;;) {
        int64_t right;
        skip_blanks(r);
        char sign = *r->at;
        if (sign != '+' && sign != '-')
            return PL_OK;
        r->at++;
        PL_TRY(term(r, &right));
        PL_TRY(combine(r, sign, right, out));
    }
}

pl_status pl_formula_value(const char *formula, const pl_formula_values *values,
                           int64_t *out)
{
    reader r = { .text = formula, .at = formula, .values = values };
    int64_t value;
    PL_TRY(sum(&r, &value));
    if (*r.at != '\0')
        return wrong(&r, "expected + - * / % or the end");
    *out = value;
    return PL_OK;
}
