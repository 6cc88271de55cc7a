/* The message of the calling thread's last failure. The first failure writes
 * the sentence with its source line at the end; callers put context in front
 * of it; an error from another thread or process keeps its own place. */
#include "base/error.h"

#include "base/text/quote.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[PL_ERROR_BYTES];
static atomic_bool places = true; /* shown in messages */

const char *pl_status_text(pl_status status)
{
    static const char *const texts[] = {
#define PL_STATUS_TEXT(name, text) text,
        PL_STATUS_LIST(PL_STATUS_TEXT)
#undef PL_STATUS_TEXT
    };
    unsigned index = (unsigned)status;
    return index < sizeof texts / sizeof *texts ? texts[index] : "unknown";
}

void pl_error_places(bool shown)
{
    atomic_store(&places, shown);
}

const char *pl_error_message(void)
{
    return atomic_load(&places) ? message : pl_error_sentence();
}

const char *pl_error_sentence(void)
{
    static _Thread_local char shown[PL_ERROR_BYTES];
    size_t words = pl_error_words(message);
    memcpy(shown, message, words);
    shown[words] = '\0';
    return shown;
}

size_t pl_error_words(const char *text)
{
    const char *open = strrchr(text, '[');
    if (open == NULL || open == text || open[-1] != ' ')
        return strlen(text);
    const char *colon = strchr(open, ':');
    const char *close = strchr(open, ']');
    bool place = colon != NULL && close != NULL && close[1] == '\0' &&
                 close - colon > 1 &&
                 strspn(colon + 1, "0123456789") == (size_t)(close - colon - 1);
    return place ? (size_t)(open - text) - 1 : strlen(text);
}

/* True for an error passed on from another thread or process: its own place is
 * the useful one. */
static bool has_place(const char *text)
{
    return text[pl_error_words(text)] != '\0';
}

void pl_fail_at(const char *file, int line, const char *format, ...)
{
    char found[PL_ERROR_BYTES], text[PL_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(found, sizeof found, format, args);
    va_end(args);
    pl_quote_line(text, sizeof text, found); /* it may hold foreign text */

    /* The place is kept when the text is too long. */
    char place[256] = "";
    int room = has_place(text)
                   ? 0
                   : snprintf(place, sizeof place, " [%s:%d]", file, line);
    if (room < 0 || room >= (int)sizeof place)
        room = (int)sizeof place - 1;
    snprintf(message, sizeof message, "%.*s%s", PL_ERROR_BYTES - 1 - room, text,
             place);
}

pl_status pl_context(pl_status status, const char *format, ...)
{
    char found[PL_ERROR_BYTES], where[PL_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    int formatted = vsnprintf(found, sizeof found, format, args);
    va_end(args);
    if (formatted < 0)
        return status;
    pl_quote_line(where, sizeof where - 2, found);
    size_t length = strlen(where);
    where[length++] = ':';
    where[length++] = ' ';

    size_t kept = strlen(message);
    if (kept > sizeof message - 1 - length)
        kept = sizeof message - 1 - length;
    memmove(message + length, message, kept);
    memcpy(message, where, length);
    message[length + kept] = '\0';
    return status;
}

const char *pl_version(void)
{
    return PL_VERSION;
}

void pl_error_save(pl_error *error, pl_status status)
{
    error->status = status;
    if (status == PL_OK)
        error->message[0] = '\0';
    else
        memcpy(error->message, message, sizeof message);
}

pl_status pl_error_raise(const pl_error *error)
{
    if (error->status != PL_OK)
        memcpy(message, error->message, sizeof message);
    return error->status;
}
