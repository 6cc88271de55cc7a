/* layout.c - decides which parts of a training's state fit on a line of a given
 * width. Each part of a line has an order in which it is shortened and dropped
 * when the line is too long.  The bar takes the remaining room. */
#include "app/view/layout.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define GAP        2 /* columns between two parts */
#define MARGIN     2 /* on the right, for the "^C" that a terminal echoes */
#define BAR_LEAST  8 /* columns, with brackets */
#define BAR_MOST   32
#define PARTS_MOST 8
#define ORDERS     16
#define OTHER_ROWS 4 /* rows of the terminal not used for workers */

/* A part of a line.  Order 0: never shortened or dropped. */
typedef struct part {
    char text[80], brief[48];
    int brief_at, drop_at;
    bool bar; /* stretches */
} part;

typedef struct parts {
    part list[PARTS_MOST];
    int count;
} parts;

static part *add(parts *p, int brief_at, int drop_at)
{
    part *new = &p->list[p->count++];
    *new = (part) { .brief_at = brief_at, .drop_at = drop_at };
    return new;
}

static void put(parts *p, int drop_at, const char *format, ...) PL_PRINTF(3, 4);

static void put(parts *p, int drop_at, const char *format, ...)
{
    part *new = add(p, 0, drop_at);
    va_list args;
    va_start(args, format);
    vsnprintf(new->text, sizeof new->text, format, args);
    va_end(args);
}

static void brief(parts *p, int brief_at, const char *format, ...)
    PL_PRINTF(3, 4);

/* A shorter form of the last part. */
static void brief(parts *p, int brief_at, const char *format, ...)
{
    part *last = &p->list[p->count - 1];
    va_list args;
    va_start(args, format);
    vsnprintf(last->brief, sizeof last->brief, format, args);
    va_end(args);
    last->brief_at = brief_at;
}

static int width_of(const parts *p)
{
    int width = 0;
    for (int i = 0; i < p->count; i++)
        width += (i > 0 ? GAP : 0) +
                 (p->list[i].bar ? BAR_LEAST : (int)strlen(p->list[i].text));
    return width;
}

static void drop(parts *p, int index)
{
    memmove(&p->list[index], &p->list[index + 1],
            (size_t)(p->count - index - 1) * sizeof *p->list);
    p->count--;
}

/* Make the line fit, in the order of its parts. */
static void fit(parts *p, int columns)
{
    for (int order = 1; order < ORDERS && width_of(p) > columns; order++)
        for (int i = p->count - 1; i >= 0; i--) {
            part *this = &p->list[i];
            if (this->brief_at == order)
                memcpy(this->text, this->brief, sizeof this->brief);
            if (this->drop_at == order)
                drop(p, i);
        }
}

static void draw_bar(double share, int width, char *text)
{
    int inside = width - 2;
    int done = (int)(share * inside);
    text[0] = '[';
    for (int i = 0; i < inside; i++)
        text[1 + i] = i < done ? '=' : i == done && share > 0 ? '>' : ' ';
    text[width - 1] = ']';
    text[width] = '\0';
}

/* Write the parts, at most `columns` wide. */
static void join(const parts *p, int columns, double share, char *text)
{
    int spare = columns - width_of(p), used = 0;
    int room = columns < PL_VIEW_BYTES ? columns + 1 : PL_VIEW_BYTES;
    char bar[BAR_MOST + 1];
    int width = BAR_LEAST + (spare > 0 ? spare : 0);
    draw_bar(share, width < BAR_MOST ? width : BAR_MOST, bar);
    text[0] = '\0';
    for (int i = 0; i < p->count && used < room; i++)
        used += snprintf(text + used, (size_t)(room - used), "%*s%s",
                         i > 0 ? GAP : 0, "",
                         p->list[i].bar ? bar : p->list[i].text);
}

const char *pl_layout_number(double value, char text[16])
{
    static const char *const units[] = { "", " k", " M", " G", " T" };
    int unit = 0;
    while (fabs(value) >= 999.5 && unit < 4) {
        value /= 1000;
        unit++;
    }
    double size = fabs(value);
    int digits = unit == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
    snprintf(text, 16, "%.*f%s", digits, value, units[unit]);
    return text;
}

const char *pl_layout_time(double seconds, char text[16])
{
    double most = 3600.0 * 99999;
    unsigned s = seconds > 0 ? (unsigned)fmin(seconds + 0.5, most) : 0;
    if (s >= 3600)
        snprintf(text, 16, "%u:%02u:%02u", s / 3600 % 100000, s / 60 % 60,
                 s % 60);
    else
        snprintf(text, 16, "%u:%02u", s / 60, s % 60);
    return text;
}

/* Total number of epochs; 0: not known. */
static int64_t epochs_of(const pl_progress_view *view)
{
    return view->per_epoch > 0 && view->end_step > 0
               ? (view->end_step - 1) / view->per_epoch + 1
               : 0;
}

static void put_epoch(parts *p, const pl_progress_view *view, int64_t epoch,
                      int brief_at, int drop_at)
{
    char all[32] = "";
    int64_t epochs = epochs_of(view);
    if (epochs > 0)
        snprintf(all, sizeof all, "/%lld", (long long)epochs);
    put(p, drop_at, "epoch %lld%s", (long long)epoch, all);
    if (brief_at > 0)
        brief(p, brief_at, "%lld%s", (long long)epoch, all);
}

/* The epoch that a step belongs to. */
static int64_t epoch_at(const pl_progress_view *view)
{
    return view->step > 0 ? (view->step - 1) / view->per_epoch + 1 : 1;
}

static void put_step(parts *p, const pl_progress_view *view)
{
    if (view->end_step > 0)
        put(p, 0, "%lld/%lld", (long long)view->step,
            (long long)view->end_step);
    else
        put(p, 0, "step %lld", (long long)view->step);
    brief(p, 14, "%lld", (long long)view->step);
}

static bool has_test(const pl_progress_view *view)
{
    return !isnan(view->test_loss);
}

static double share_of(const pl_progress_view *view)
{
    double share =
        view->end_step > 0 ? (double)view->step / (double)view->end_step : 0;
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* Rate and ETA during training, otherwise the current activity. */
static void put_pace(parts *p, const pl_progress_view *view)
{
    char text[16];
    if (view->doing[0] != '\0') {
        put(p, 11, "%s", view->doing);
        return;
    }
    pl_layout_number(view->rate, text);
    put(p, 5, "%s ex/s", text);
    brief(p, 1, "%s/s", text);
    if (!isnan(view->left_s))
        put(p, 8, "ETA %s", pl_layout_time(view->left_s, text));
}

static void write_main(const pl_progress_view *view, int columns, char *text)
{
    parts p = { .count = 0 };
    if (view->per_epoch > 0)
        put_epoch(&p, view, epoch_at(view), 2, 7);
    put_step(&p, view);
    if (view->end_step > 0)
        add(&p, 0, 3)->bar = true;
    if (!isnan(view->loss))
        put(&p, 10, "loss %.4f", view->loss);
    if (has_test(view) && isnan(view->test_accuracy)) {
        put(&p, 6, "test loss %.4g", view->test_loss);
    } else if (has_test(view)) {
        put(&p, 6, "test %.2f %%", 100 * view->test_accuracy);
        brief(&p, 4, "%.2f %%", 100 * view->test_accuracy);
    }
    put_pace(&p, view);
    fit(&p, columns);
    join(&p, columns, share_of(view), text);
}

static void write_worker(const pl_progress_worker *worker, int columns,
                         char *text)
{
    parts p = { .count = 0 };
    char number[16];
    put(&p, 0, "  worker %-3d", worker->index);
    brief(&p, 2, "  w%-3d", worker->index);
    put(&p, 8, "step %-8lld", (long long)worker->steps);
    brief(&p, 3, "%-8lld", (long long)worker->steps);
    if (worker->state[0] != '\0') {
        put(&p, 7, "%s", worker->state);
    } else {
        pl_layout_number(worker->rate, number);
        put(&p, 6, "%6s ex/s", number);
        brief(&p, 4, "%6s/s", number);
        if (!isnan(worker->waiting))
            put(&p, 5, "waiting %3.0f %%", 100 * worker->waiting);
    }
    if (worker->restarts > 0)
        put(&p, 1, "%d restart%s", worker->restarts,
            worker->restarts == 1 ? "" : "s");
    fit(&p, columns);
    join(&p, columns, 0, text);
}

/* The row for the remaining workers and dropped gradients. */
static void write_rest(const pl_progress_view *view, int shown, int columns,
                       char *text)
{
    parts p = { .count = 0 };
    int32_t more = view->workers - shown;
    if (more > 0)
        put(&p, 0, "  and %d more worker%s", more, more == 1 ? "" : "s");
    if (view->dropped > 0)
        put(&p, 0, "%s%lld gradient%s dropped", more > 0 ? "" : "  ",
            (long long)view->dropped, view->dropped == 1 ? "" : "s");
    fit(&p, columns);
    join(&p, columns, 0, text);
}

int pl_layout_block(const pl_progress_view *view, int columns, int rows,
                    char text[PL_VIEW_BLOCK_BYTES], int widths[PL_VIEW_ROWS])
{
    char row[PL_VIEW_BYTES];
    int room = columns - MARGIN > 1 ? columns - MARGIN : 1, count = 0;
    int shown = rows - OTHER_ROWS;
    shown = shown < view->workers ? shown : view->workers;
    shown = shown < PL_VIEW_WORKERS ? shown : PL_VIEW_WORKERS;
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i <= (shown > 0 ? shown : 0) + 1; i++) {
        bool last = i > 0 && i > shown;
        if (i == 0)
            write_main(view, room, row);
        else if (!last)
            write_worker(&view->worker[i - 1], room, row);
        else
            write_rest(view, shown, room, row);
        if (i > 0 && (view->workers == 0 || shown <= 0 || row[0] == '\0'))
            break;
        widths[count] = (int)strlen(row);
        used += (size_t)snprintf(text + used, PL_VIEW_BLOCK_BYTES - used,
                                 "%s%s", count++ > 0 ? "\n" : "", row);
    }
    return count;
}

void pl_layout_line(const pl_progress_view *view, char text[PL_VIEW_BYTES])
{
    parts p = { .count = 0 };
    put(&p, 0, "step %lld", (long long)view->step);
    if (view->end_step > 0) {
        p.count = 0;
        put(&p, 0, "step %lld/%lld", (long long)view->step,
            (long long)view->end_step);
    }
    if (view->per_epoch > 0)
        put_epoch(&p, view, epoch_at(view), 0, 0);
    if (!isnan(view->loss))
        put(&p, 0, "loss %.4f", view->loss);
    if (has_test(view) && isnan(view->test_accuracy))
        put(&p, 0, "test loss %.4g", view->test_loss);
    else if (has_test(view))
        put(&p, 0, "test loss %.4f  accuracy %.2f %%", view->test_loss,
            100 * view->test_accuracy);
    put_pace(&p, view);
    if (view->dropped > 0)
        put(&p, 0, "%lld dropped", (long long)view->dropped);
    join(&p, PL_VIEW_BYTES - 1, 0, text);
}

void pl_layout_epoch(const pl_progress_view *view, const pl_epoch *epoch,
                     int columns, char text[PL_VIEW_BYTES])
{
    parts p = { .count = 0 };
    char number[16];
    double rate = epoch->examples_per_s;
    put_epoch(&p, view, epoch->epoch, 0, 0);
    if (!isnan(epoch->loss))
        put(&p, 0, "loss %.4f", epoch->loss);
    if (!isnan(epoch->test_loss) && isnan(epoch->test_accuracy)) {
        put(&p, 4, "test loss %.4g", epoch->test_loss);
    } else if (!isnan(epoch->test_loss)) {
        put(&p, 4, "test loss %.4f", epoch->test_loss);
        put(&p, 6, "accuracy %.2f %%", 100 * epoch->test_accuracy);
        brief(&p, 3, "%.2f %%", 100 * epoch->test_accuracy);
    }
    if (isfinite(rate) && rate > 0)
        put(&p, 2, "%s ex/s", pl_layout_number(rate, number));
    put(&p, 1, "%.*f s", epoch->seconds < 9.95 ? 1 : 0, epoch->seconds);
    fit(&p, columns);
    join(&p, columns, 0, text);
}

/* A space, except in "17 %" or "2.6 x". */
static bool may_break(const char *at)
{
    return at[0] == ' ' && at[1] != '%' && strncmp(at, " x ", 3) != 0;
}

size_t pl_layout_break(const char *text, size_t columns)
{
    size_t length = strlen(text), at = columns;
    if (columns == 0 || length <= columns)
        return length;
    while (at > 0 && !may_break(text + at))
        at--;
    return at > 0 ? at : strcspn(text, " ");
}
