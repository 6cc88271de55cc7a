/* base.h - status codes and error messages.
 *
 * A function that can fail returns pl_status: a code for the program.  The
 * message for the user is kept per thread: the function that detects the cause
 * writes it (PL_FAIL), callers prepend context (pl_context), and the code that
 * reports it reads pl_error_message().
 *
 * Threads: everything here may be called from any thread. */
#ifndef PACELINE_BASE_H
#define PACELINE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define PL_MUST_CHECK   __attribute__((warn_unused_result))
#define PL_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Grouped by how a caller can respond. */
#define PL_STATUS_LIST(X)                                                      \
    X(OK, "no error")                                                          \
    /* try again */                                                            \
    X(AGAIN, "not yet")                                                        \
    X(TIMEOUT, "timed out")                                                    \
    /* drop the peer */                                                        \
    X(PEER, "peer broke the protocol")                                         \
    X(CLOSED, "connection closed")                                             \
    X(ROLLED, "rolled back")                                                   \
    /* tell the user to change the command (exit status 2) */                  \
    X(USAGE, "wrong usage")                                                    \
    /* fail the run (exit status 1) */                                         \
    X(NOMEM, "out of memory")                                                  \
    X(IO, "input or output failed")                                            \
    X(NOTFOUND, "not found")                                                   \
    X(FORMAT, "malformed data")                                                \
    X(SHAPE, "shapes do not fit")                                              \
    X(NUMERIC, "number out of range")                                          \
    X(INTERRUPTED, "interrupted")                                              \
    X(UNSUPPORTED, "not supported")

typedef enum pl_status {
#define PL_STATUS_ENUM(name, text) PL_##name,
    PL_STATUS_LIST(PL_STATUS_ENUM)
#undef PL_STATUS_ENUM
} pl_status;

/* "timed out"; a static string. */
const char *pl_status_text(pl_status status);

/* The full message of this thread's last failure, outermost place first:
 * "IDX file a.idx: header: magic 0x1f8b0800 is not IDX
 * [src/data/idx/idx.c:18]". Valid until the thread's next failure. */
const char *pl_error_message(void);
/* The same without the place in the library's source, for users. */
const char *pl_error_sentence(void);

/* Write the cause; control characters in quoted text become \xNN, so the
 * message is one line of plain text.  Use through PL_FAIL, which returns
 * `status` where the compiler can see it, so that it knows which variables a
 * failure leaves unset. */
void pl_fail_at(const char *file, int line, const char *format, ...)
    PL_PRINTF(3, 4);
#define PL_FAIL(status, ...)                                                   \
    (pl_fail_at(__FILE__, __LINE__, __VA_ARGS__), (pl_status)(status))

/* Put "where: " before the message; returns `status` unchanged. */
pl_status pl_context(pl_status status, const char *format, ...) PL_PRINTF(2, 3);

/* Return from this function when `call` failed. */
#define PL_TRY(call)                                                           \
    do {                                                                       \
        pl_status pl_try_status = (call);                                      \
        if (pl_try_status != PL_OK)                                            \
            return pl_try_status;                                              \
    } while (0)

/* Go to `out:` when `call` failed; `status` holds the result either way. */
#define PL_TRY_OUT(status, call)                                               \
    do {                                                                       \
        (status) = (call);                                                     \
        if ((status) != PL_OK)                                                 \
            goto out;                                                          \
    } while (0)

/* "0.1.0" */
const char *pl_version(void);

/* Log lines for the user: what a training does, warnings.  They are discarded
 * until a program calls pl_log_to; pl_app_main sends them to standard error. */
typedef enum pl_log_level {
    PL_LOG_ERROR,
    PL_LOG_WARN,
    PL_LOG_INFO,
    PL_LOG_DEBUG,
    PL_LOG_TRACE,
} pl_log_level;

/* Receives one line without its newline, from any thread but only one at a
 * time.  Text from files and peers is quoted.  Must not call the library. */
typedef void pl_log_callback(void *context, pl_log_level level,
                             const char *line);

/* Send the lines of all levels up to `most` to `callback`; NULL discards them.
 * This is the library's only process-wide setting. */
void pl_log_to(pl_log_callback *callback, void *context, pl_log_level most);

/* One field of an options struct: its flag, range, default and help.  Tables
 * of these make the command line, its help and the record of a run. */

/* How often: "100" (steps), "20000ex", "1ep", "60s", "never"; "auto" where that
 * is the default. */
typedef enum pl_every_unit {
    PL_EVERY_NEVER,
    PL_EVERY_STEPS,
    PL_EVERY_EXAMPLES,
    PL_EVERY_EPOCHS,
    PL_EVERY_SECONDS,
    PL_EVERY_AUTO,
} pl_every_unit;

typedef struct pl_every {
    pl_every_unit unit;
    int64_t count; /* >= 1 unless never or auto */
} pl_every;

typedef enum pl_param_kind {
    PL_PARAM_INT,    /* int64_t */
    PL_PARAM_REAL,   /* double */
    PL_PARAM_TEXT,   /* const char *, borrowed from argv; NULL: not given */
    PL_PARAM_FLAG,   /* bool; --name sets it */
    PL_PARAM_CHOICE, /* int: the index in `choices`; -1: not given */
    PL_PARAM_EVERY,  /* pl_every */
} pl_param_kind;

/* Traits of a flag.  A flag without any is a setting of the training, as a
 * model's own flags are: it is written to run.json and read back on resume,
 * where it must not change; it is equal in all tasks of a job; and it is one of
 * the values that distinguish runs. */
typedef enum pl_param_trait {
    PL_PARAM_MAY_CHANGE = 1 << 0,   /* a resumed run may have another value */
    PL_PARAM_LOCAL = 1 << 1,        /* may differ among the tasks of a job */
    PL_PARAM_NOT_RECORDED = 1 << 2, /* is not in run.json */
    PL_PARAM_NOT_HPARAM = 1 << 3,   /* is not in TensorBoard's HParams */
    PL_PARAM_NOT_COMPARED = 1 << 4, /* `compare` does not show it */
    PL_PARAM_REPEATS = 1 << 5,      /* runs that differ only in these repeat
                                       each other */
    PL_PARAM_INTERNAL = 1 << 6,     /* set by the program: not in --help */
    PL_PARAM_OF_MODEL = 1 << 7,     /* each model has its own default */
    PL_PARAM_COMMON = 1 << 8,       /* most people need it: in the short help */
} pl_param_trait;

typedef struct pl_param {
    const char *name; /* "batch" for --batch */
    pl_param_kind kind;
    size_t offset;        /* of the field in the struct */
    const char *fallback; /* the default as typed; NULL: none, as for every
                             FLAG */
    double least, most;   /* INT, REAL: inclusive, INFINITY is open;
                             both 0: no limit */
    const char *choices;  /* CHOICE: "mean|sum" */
    const char *value;    /* what --help calls the value; default "N", "X",
                             "TEXT", "E" or the choices */
    const char *help;     /* one line, no full stop */
    const char *needs;    /* where it has an effect, as conditions on other
                             flags: "mode=ssp", "mode!=async|ssp", "run" (is
                             given), "mode=ssp, run" (both); elsewhere it is
                             refused; NULL: everywhere */
    const char *follows;  /* the flag that usually determines this one's value;
                             NULL: none */
    unsigned traits;      /* of pl_param_trait */
    const char *why;      /* when and why to use it: sentences for `--help
                             FLAG`; NULL: the help suffices */
} pl_param;

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
