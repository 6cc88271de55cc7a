/* classes.c - the results of classifiers by class: the confusion matrix, the
 * results of each class and misclassified examples, for the run that the reader
 * selects (figures from the model's "tests"), and the numbers of all runs as a
 * table. */
#include "observe/report/report_priv.h"

#include <math.h>

#define ROWS_MOST 1000 /* of the table: for all runs, or only the best */

static const pl_table_column columns[] = {
    { "class", NULL, NULL, 0, false },
    { "examples", NULL, NULL, 0, false },
    { "predicted", "predictions", NULL, 0, false },
    { "precision", NULL, "%", 2, false },
    { "recall", NULL, "%", 2, false },
    { "f1", "F1", "%", 2, false },
    { "taken_for", "most often mistaken for", NULL, 0, false },
    { "taken", "times", NULL, 0, false },
};

#define COLUMNS (sizeof columns / sizeof *columns)

/* The run with the best accuracy among those with a confusion matrix; *rows:
 * table rows of all of them.  records->count: none. */
static size_t find_best(const pl_report *report, size_t *rows)
{
    const pl_records *records = report->records;
    size_t best = records->count;
    double most = -1;
    *rows = 0;
    for (size_t i = 0; i < records->count; i++) {
        double accuracy = pl_record_number(&records->list[i], "test_accuracy");
        int32_t classes = report->model.runs[i].confusion.classes;
        *rows += (size_t)classes;
        if (classes == 0 || (best < records->count && !(accuracy > most)))
            continue;
        best = i;
        most = isnan(accuracy) ? -1 : accuracy;
    }
    return best;
}

static void add_rows(pl_table *table, const pl_report *report, size_t run)
{
    const pl_confusion *confusion = &report->model.runs[run].confusion;
    for (int32_t c = 0; c < confusion->classes; c++) {
        pl_class_result result = pl_confusion_class(confusion, c);
        pl_table_add_row(table);
        pl_table_put_text(table, report->records->list[run].name);
        for (size_t k = 0; k < COLUMNS; k++)
            pl_table_put_number(table,
                                pl_fields_number(&pl_class_result_fields,
                                                 &result, columns[k].key));
    }
}

static pl_status put_table(pl_report *report, size_t best, bool all)
{
    pl_table *table;
    PL_TRY(pl_table_new(&table, "classes",
                        all ? "Results by class"
                            : "Results by class, of the best run"));
    pl_table_add_column(table, &(pl_table_column) { .key = "run" });
    for (size_t k = 0; k < COLUMNS; k++)
        pl_table_add_column(table, &columns[k]);
    for (size_t i = 0; i < report->records->count; i++)
        if (all || i == best)
            add_rows(table, report, i);
    pl_page_fold(report->page, "All classes");
    pl_page_take_table(report->page, table);
    pl_page_unfold(report->page);
    return PL_OK;
}

static bool has_images(const pl_report *report)
{
    for (size_t i = 0; i < report->records->count; i++)
        if (report->model.runs[i].confusion.channels > 0)
            return true;
    return false;
}

pl_status pl_report_classes(pl_report *report)
{
    size_t rows, best = find_best(report, &rows);
    pl_buffer none = { 0 };
    if (best == report->records->count)
        return PL_OK;
    pl_page_heading(report->page, "Classes");
    pl_page_chooser(report->page, "tested", best);
    pl_page_begin_figures(report->page);
    pl_page_drawing(report->page, "confusion", "Confusion matrix", &none);
    pl_page_drawing(report->page, "classes", "Results by class", &none);
    if (has_images(report))
        pl_page_drawing(report->page, "misclassified", "Misclassified examples",
                        &none);
    pl_page_end_figures(report->page);
    return put_table(report, best, rows <= ROWS_MOST);
}
