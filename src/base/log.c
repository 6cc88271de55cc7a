/* log.c - formats a log line, applies the level and hands the whole line to one
 * sink. */
#include "base/log.h"

#include "base/text/console.h"
#include "base/text/quote.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pl_log_sink *current_sink;  /* guarded by lock; NULL: standard error */
static void *current_context;      /* guarded by lock */
static pl_log_sink *copy_sink;     /* guarded by lock; NULL: none */
static void *copy_context;         /* guarded by lock */
static atomic_int most_shown = -1; /* none */

void pl_log_set(pl_log_sink *sink, void *context, pl_log_level most)
{
    pthread_mutex_lock(&lock);
    current_sink = sink;
    current_context = context;
    pthread_mutex_unlock(&lock);
    atomic_store(&most_shown, (int)most);
}

void pl_log_to(pl_log_callback *callback, void *context, pl_log_level most)
{
    pl_log_set(callback, context, most);
    if (callback == NULL)
        atomic_store(&most_shown, -1);
}

void pl_log_copy(pl_log_sink *sink, void *context)
{
    pthread_mutex_lock(&lock);
    copy_sink = sink;
    copy_context = context;
    pthread_mutex_unlock(&lock);
}

static void put(pl_log_level level, const char *prefix, const char *format,
                va_list args) PL_PRINTF(3, 0);

static void put(pl_log_level level, const char *prefix, const char *format,
                va_list args)
{
    if ((int)level > atomic_load_explicit(&most_shown, memory_order_relaxed))
        return;

    char text[PL_CONSOLE_BYTES], line[PL_CONSOLE_BYTES];
    int used = snprintf(text, sizeof text, "%s", prefix);
    vsnprintf(text + used, sizeof text - (size_t)used, format, args);
    /* Foreign text is quoted; one byte is left for the newline. */
    pl_quote_line(line, sizeof line - 1, text);

    pthread_mutex_lock(&lock);
    if (current_sink != NULL)
        current_sink(current_context, level, line);
    else
        pl_console_print("%s\n", line);
    if (copy_sink != NULL)
        copy_sink(copy_context, level, line);
    pthread_mutex_unlock(&lock);
}

void pl_log(pl_log_level level, const char *format, ...)
{
    static const char *const prefixes[] = { "error: ", "warning: ", "", "",
                                            "" };
    va_list args;
    va_start(args, format);
    put(level, prefixes[level], format, args);
    va_end(args);
}

void pl_log_more(pl_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put(level, "", format, args);
    va_end(args);
}
