/* compare_text.c - runs side by side for people: a table for each sweep, its
 * findings in words, and notes on published values. */
#include "base/text/quote.h"
#include "observe/compare/compare_priv.h"
#include "observe/findings/findings.h"
#include "observe/runs/experiment.h"

#include <math.h>
#include <string.h>

#define TITLE_BYTES 512

static bool is_published(const pl_records *part, const char *result)
{
    for (size_t i = 0; i < part->count; i++)
        if (!isnan(pl_experiment_published(&part->list[i], result)))
            return true;
    return false;
}

/* "Published values that depend on the machine: seconds, peak_rss_mb." */
static void put_machine_bound(const pl_records *part, pl_buffer *out)
{
    bool any = false;
    for (const char *const *r = pl_compare_results(); *r != NULL; r++) {
        if (!is_published(part, *r) || !pl_experiment_machine_bound(part, *r))
            continue;
        pl_buffer_format(
            out, "%s%s",
            any ? ", " : "Published values that depend on the machine: ", *r);
        any = true;
    }
    pl_buffer_text(out, any ? ".\n" : "");
}

void pl_compare_notes(const pl_records *part, pl_buffer *out)
{
    const pl_experiment *e = part->list[0].experiment;
    bool any = false;
    if (e == NULL)
        return;
    put_machine_bound(part, out);
    for (size_t i = 0; i < pl_json_length(e->about.notes); i++) {
        const char *note;
        if (pl_json_as_text(pl_json_at(e->about.notes, i), "", &note) == PL_OK)
            pl_buffer_format(out, "%s\n", note);
    }
    for (const char *const *r = pl_compare_results(); *r != NULL; r++)
        any = any || is_published(part, *r);
    if (any && e->about.other)
        pl_buffer_text(out,
                       "Published values belong to the original experiment, "
                       "so no differences are shown.\n");
}

/* Quote texts from a file, except line ends. */
static void put_quoted(pl_buffer *out, char *text)
{
    for (char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        *end = '\0';
        pl_quote_terminal(out, text);
        pl_buffer_text(out, "\n");
    }
}

static void print_table(pl_table *table, size_t width, pl_buffer *out)
{
    pl_table_print_within(table, width, out);
    pl_table_free(table);
}

static void print_common(const pl_records *part, pl_buffer *out)
{
    pl_buffer common = { 0 };
    pl_compare_common(part, &common);
    if (common.bytes > 0)
        put_quoted(out, common.data);
    pl_buffer_close(&common);
    pl_buffer_text(out, "\n");
}

static pl_status print_part(const pl_records *part, bool mean, bool titled,
                            size_t width, pl_buffer *out)
{
    char title[TITLE_BYTES];
    pl_table *table;
    pl_buffer notes = { 0 };
    PL_TRY(pl_compare(&table, part, mean));
    pl_experiment_title(&part->list[0], title, sizeof title);
    if (titled && title[0] != '\0') {
        pl_quote_terminal(out, title);
        pl_buffer_text(out, "\n");
    }
    print_common(part, out);
    print_table(table, width, out);
    if (pl_compare_has_tasks(part)) {
        PL_TRY(pl_compare_tasks(&table, part, mean));
        pl_buffer_text(out, "\n");
        print_table(table, width, out);
    }
    pl_status status = pl_findings(part, &notes);
    if (status == PL_OK)
        status = pl_findings_operators(part, &notes);
    pl_compare_notes(part, &notes);
    if (notes.bytes > 0) {
        pl_buffer_text(out, "\n");
        put_quoted(out, notes.data);
    }
    if (status == PL_OK)
        status = pl_buffer_status(&notes);
    pl_buffer_close(&notes);
    return status;
}

pl_status pl_compare_print(const pl_records *records, bool mean, size_t width,
                           pl_buffer *out)
{
    pl_records part;
    for (size_t first = 0, end; first < records->count; first = end) {
        end = pl_experiment_part(records, first, &part);
        const pl_experiment *e = part.list[0].experiment;
        bool alone = part.count == records->count;
        pl_buffer_text(out, first > 0 ? "\n" : "");
        PL_TRY(print_part(&part, mean,
                          !alone || (e != NULL && e->about.question != NULL),
                          width, out));
    }
    return pl_buffer_status(out);
}
