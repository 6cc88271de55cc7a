/* assert.h - broken invariants and caller mistakes.
 *
 * Enabled in every build.  Errors of a file, a peer, the user or the machine
 * are a pl_status, never an assertion. */
#ifndef PL_BASE_ASSERT_H
#define PL_BASE_ASSERT_H

_Noreturn void pl_assert_failed(const char *file, int line, const char *text);

#define PL_ASSERT(condition)                                                   \
    ((condition) ? (void)0 : pl_assert_failed(__FILE__, __LINE__, #condition))

#endif
