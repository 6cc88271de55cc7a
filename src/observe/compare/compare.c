/* compare.c - the table of runs side by side: which flags distinguish them,
 * which runs repeat each other, their means, and published results. */
#include "observe/compare/compare_priv.h"

#include "observe/runs/experiment.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PER_STEP "seconds_per_step" /* shown if published */

static const pl_table_column results[] = {
    { "steps", NULL, NULL, 0, false },
    { "epochs", NULL, NULL, 2, false },
    { "seconds", "time", "s", 2, false },
    { "examples_per_s", "examples/s", NULL, 0, false },
    { "train_loss", "train loss", NULL, 4, false },
    { "test_loss", "test loss", NULL, 4, false },
    { "test_accuracy", "test accuracy", "%", 2, false },
    { "test_auc", "test AUC", NULL, 4, false },
    { "test_precision", "test precision", "%", 2, false },
    { "test_rmse", "test RMSE", NULL, 4, false },
    { "test_r2", "test R2", NULL, 4, false },
    { "peak_rss_mb", "peak memory", "MB", 0, false },
    { PER_STEP, "time per step", "s", 4, false },
    { "target_step", "target step", NULL, 0, false },
    { "target_seconds", "target time", "s", 2, false },
};

#define LINE_MOST 79 /* for the flags that all runs share */
#define RESULTS   (sizeof results / sizeof *results)

static const pl_table_group flags = { "flag.", true }, outcome = { "", false },
                            published = { "published.", false },
                            difference = { "difference.", false };

/* Flags are visited in the order of the first run that has them. */
typedef struct walk {
    const pl_records *records;
    size_t run;
    void *at;
} walk;

static bool known_before(const pl_records *records, size_t run,
                         const char *name)
{
    for (size_t i = 0; i < run; i++)
        if (pl_json_has(records->list[i].run.args, name))
            return true;
    return false;
}

/* True if each run has the value of the flag that `param` follows, or none: one
 * gradient per worker is the usual number. */
static bool repeats_another(const pl_records *records, const pl_param *param)
{
    if (param == NULL || param->follows == NULL)
        return false;
    for (size_t i = 0; i < records->count; i++) {
        const pl_record *record = &records->list[i];
        const char *text = pl_record_arg(record, param->name);
        if (text[0] != '\0' && strcmp(text, "0") != 0 &&
            strcmp(text, pl_record_arg(record, param->follows)) != 0)
            return false;
    }
    return true;
}

static bool is_hidden(const pl_records *records, const char *name, bool mean)
{
    unsigned hiding = PL_PARAM_NOT_COMPARED | PL_PARAM_NOT_RECORDED |
                      (mean ? PL_PARAM_REPEATS : 0);
    return pl_records_flag_is(records, name, hiding) ||
           repeats_another(records, pl_records_flag(records, name));
}

/* The next flag that distinguishes runs; NULL: none left. */
static const char *next_arg(walk *w, bool mean)
{
    const pl_json *value;
    const char *name;
    for (; w->run < w->records->count; w->run++, w->at = NULL) {
        const pl_json *args = w->records->list[w->run].run.args;
        while (pl_json_next(args, &w->at, &name, &value))
            if (!known_before(w->records, w->run, name) &&
                !is_hidden(w->records, name, mean) &&
                pl_records_differ(w->records, name))
                return name;
    }
    return NULL;
}

static bool models_differ(const pl_records *records)
{
    for (size_t i = 1; i < records->count; i++)
        if (strcmp(records->list[0].run.model, records->list[i].run.model) != 0)
            return true;
    return false;
}

static bool any_has(const pl_records *records, const char *key)
{
    for (size_t i = 0; i < records->count; i++)
        if (!isnan(pl_record_number(&records->list[i], key)))
            return true;
    return false;
}

/* The runs belong to several sweeps, or only some of them to a sweep. */
static bool sweeps_differ(const pl_records *records)
{
    for (size_t i = 1; i < records->count; i++)
        if (records->list[i].experiment != records->list[0].experiment)
            return true;
    return false;
}

static bool any_published(const pl_records *records, const char *key)
{
    for (size_t i = 0; i < records->count; i++)
        if (!isnan(pl_experiment_published(&records->list[i], key)))
            return true;
    return false;
}

/* Is there a published result with which a run can be compared? */
static bool any_comparable(const pl_records *records, const char *key)
{
    for (size_t i = 0; i < records->count; i++)
        if (pl_experiment_comparable(&records->list[i]) &&
            !isnan(pl_experiment_published(&records->list[i], key)))
            return true;
    return false;
}

static bool is_shown(const pl_records *records, const char *key)
{
    return any_has(records, key) &&
           (strcmp(key, PER_STEP) != 0 || any_published(records, key));
}

const char *const *pl_compare_results(void)
{
    static const char *names[RESULTS + 1];
    for (size_t i = 0; i < RESULTS; i++)
        names[i] = results[i].key;
    return names;
}

size_t pl_compare_args(const pl_records *records, const char **names,
                       size_t room)
{
    walk w = { .records = records };
    size_t count = 0;
    for (const char *name; (name = next_arg(&w, true)) != NULL && count < room;)
        names[count++] = name;
    return count;
}

bool pl_compare_follows(const pl_records *records, const char *const *names,
                        size_t count, const char *name)
{
    const pl_param *param = pl_records_flag(records, name);
    bool there = false;
    if (param == NULL || param->follows == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        there = there || strcmp(names[i], param->follows) == 0;
    return there && pl_records_flag_follows(records, name);
}

void pl_compare_label(const pl_records *records, size_t run,
                      const char *const *names, size_t count,
                      const char *without, char *text, size_t room)
{
    const pl_record *record = &records->list[run];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count && used < room; i++) {
        const char *name = names[i], *value = pl_record_arg(record, name);
        /* A single process, for example, has no mode. */
        if (strcmp(name, without) == 0 || value[0] == '\0' ||
            pl_compare_follows(records, names, count, name) ||
            !pl_records_flag_applies(records, run, name))
            continue;
        used += (size_t)snprintf(text + used, room - used, "%s%s %s",
                                 used > 0 ? ", " : "", name, value);
    }
    if (used == 0)
        snprintf(text, room, "all runs");
}

bool pl_compare_repeats(const pl_records *records)
{
    for (size_t i = 0; i < records->count; i++)
        if (pl_records_first_like(records, i) != i)
            return true;
    return false;
}

double pl_compare_mean(const pl_records *records, size_t first, const char *key,
                       double *spread)
{
    double sum = 0, squares = 0;
    size_t count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = first; i < records->count; i++) {
            double value = pl_record_number(&records->list[i], key);
            if (isnan(value) || pl_records_first_like(records, i) != first)
                continue;
            if (pass == 0) {
                sum += value;
                count++;
            } else {
                double off = value - sum / (double)count;
                squares += off * off;
            }
        }
    *spread = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
    return count > 0 ? sum / (double)count : NAN;
}

static size_t count_like(const pl_records *records, size_t first)
{
    size_t count = 0;
    for (size_t i = first; i < records->count; i++)
        count += pl_records_first_like(records, i) == first;
    return count;
}

/* A flag may have the name of a result: --epochs is the number requested,
 * epochs the number trained. */
static void add_flag(pl_table *table, const char *name)
{
    char label[64];
    snprintf(label, sizeof label, "--%s", name);
    bool also_result = false;
    for (size_t i = 0; i < RESULTS; i++)
        also_result = also_result || strcmp(results[i].key, name) == 0;
    pl_table_add_column(table, &(pl_table_column) {
                                   .key = name,
                                   .label = also_result ? label : name,
                               });
}

/* Published results follow the measured ones. */
static void add_published(pl_table *table, const pl_records *records,
                          const pl_table_column *result)
{
    bool machine = pl_experiment_machine_bound(records, result->key);
    bool percent = result->unit != NULL && strcmp(result->unit, "%") == 0;
    pl_table_column column = *result;
    column.spread = false;
    column.label = machine ? "published elsewhere" : "published";
    pl_table_set_group(table, &published);
    pl_table_add_column(table, &column);
    if (!any_comparable(records, result->key))
        return;
    column.label = "difference";
    column.unit = percent ? "points" : result->unit;
    pl_table_set_group(table, &difference);
    pl_table_add_column(table, &column);
    pl_table_show_sign(table);
}

static void add_results(pl_table *table, const pl_records *records, bool mean)
{
    for (size_t i = 0; i < RESULTS; i++) {
        pl_table_column column = results[i];
        column.spread = mean;
        if (!is_shown(records, column.key))
            continue;
        pl_table_set_group(table, &outcome);
        pl_table_add_column(table, &column);
        if (any_published(records, column.key))
            add_published(table, records, &column);
    }
    pl_table_set_group(table, &outcome);
    pl_table_add_column(
        table, &(pl_table_column) { .key = "stopped_by", .label = "ended by" });
}

/* Columns of a comparison. */
enum {
    SHOW_RESULTS = 1,
    SHOW_TASKS = 2,
};

static void add_columns(pl_table *table, const pl_records *records, bool mean,
                        unsigned show)
{
    walk w = { .records = records };
    pl_table_add_column(table, &(pl_table_column) { .key = "run" });
    if (mean)
        pl_table_add_column(table, &(pl_table_column) { .key = "repetitions",
                                                        .label = "runs" });
    if (sweeps_differ(records))
        pl_table_add_column(table, &(pl_table_column) { .key = "sweep" });
    if (models_differ(records))
        pl_table_add_column(table, &(pl_table_column) { .key = "model" });
    pl_table_set_group(table, &flags);
    for (const char *name;
         (show & SHOW_RESULTS) != 0 && (name = next_arg(&w, mean)) != NULL;)
        add_flag(table, name);
    if ((show & SHOW_RESULTS) != 0)
        add_results(table, records, mean);
    if ((show & SHOW_TASKS) != 0)
        pl_compare_add_tasks(table, records);
}

static void put_published(pl_table *table, const pl_records *records,
                          const pl_record *record, const char *key,
                          double measured)
{
    double value = pl_experiment_published(record, key);
    if (!any_published(records, key))
        return;
    pl_table_put_number(table, value);
    if (!any_comparable(records, key))
        return;
    pl_table_put_number(table, pl_experiment_comparable(record)
                                   ? measured - value
                                   : (double)NAN);
}

static void put_results(pl_table *table, const pl_records *records,
                        size_t index, bool mean)
{
    const pl_record *record = &records->list[index];
    for (size_t i = 0; i < RESULTS; i++) {
        const char *key = results[i].key;
        double spread = 0, value = pl_record_number(record, key);
        if (!is_shown(records, key))
            continue;
        if (mean) {
            value = pl_compare_mean(records, index, key, &spread);
            pl_table_put_mean(table, value, spread);
        } else {
            pl_table_put_number(table, value);
        }
        put_published(table, records, record, key, value);
    }
    pl_table_put_text(table, record->ended ? pl_record_stopped_by(record)
                                           : "not ended");
}

static void add_row(pl_table *table, const pl_records *records, size_t index,
                    bool mean, unsigned show)
{
    const pl_record *record = &records->list[index];
    walk w = { .records = records };
    pl_table_add_row(table);
    pl_table_put_text(table, record->name);
    if (mean)
        pl_table_put_number(table, (double)count_like(records, index));
    if (sweeps_differ(records))
        pl_table_put_text(table, pl_experiment_name(record));
    if (models_differ(records))
        pl_table_put_text(table, record->run.model);
    for (const char *name;
         (show & SHOW_RESULTS) != 0 && (name = next_arg(&w, mean)) != NULL;)
        pl_table_put_text(table, pl_record_arg(record, name));
    if ((show & SHOW_RESULTS) != 0)
        put_results(table, records, index, mean);
    if ((show & SHOW_TASKS) != 0)
        pl_compare_put_tasks(table, records, index, mean);
}

static pl_status make_table(pl_table **out, const pl_records *records,
                            bool mean, unsigned show)
{
    pl_table *table;
    PL_TRY(pl_table_new(&table, "runs", "Runs"));
    add_columns(table, records, mean, show);
    for (size_t i = 0; i < records->count; i++)
        if (!mean || pl_records_first_like(records, i) == i)
            add_row(table, records, i, mean, show);
    pl_status status = pl_table_status(table);
    if (status != PL_OK) {
        pl_table_free(table);
        return status;
    }
    *out = table;
    return PL_OK;
}

pl_status pl_compare(pl_table **out, const pl_records *records, bool mean)
{
    return make_table(out, records, mean, SHOW_RESULTS);
}

pl_status pl_compare_tasks(pl_table **out, const pl_records *records, bool mean)
{
    return make_table(out, records, mean, SHOW_TASKS);
}

pl_status pl_compare_all(pl_table **out, const pl_records *records, bool mean)
{
    return make_table(out, records, mean, SHOW_RESULTS | SHOW_TASKS);
}

/* Is the flag the same in all runs, and different from its default? */
static bool is_common(const pl_records *records, const char *name)
{
    const pl_param *param = pl_records_flag(records, name);
    const char *value = pl_record_arg(&records->list[0], name);
    if (param == NULL || value[0] == '\0' || is_hidden(records, name, true) ||
        pl_records_differ(records, name) ||
        !pl_records_flag_applies(records, 0, name))
        return false;
    if (param->kind == PL_PARAM_FLAG)
        return strcmp(value, "true") == 0;
    return param->fallback == NULL || strcmp(param->fallback, value) != 0;
}

void pl_compare_common(const pl_records *records, pl_buffer *out)
{
    void *at = NULL;
    const pl_json *value;
    const char *name;
    size_t line = out->bytes;
    pl_buffer_text(out, "all runs:");
    if (!models_differ(records))
        pl_buffer_format(out, " %s", records->list[0].run.model);
    while (pl_json_next(records->list[0].run.args, &at, &name, &value)) {
        const char *text = pl_record_arg(&records->list[0], name);
        if (!is_common(records, name))
            continue;
        if (out->bytes - line + strlen(name) + strlen(text) + 4 > LINE_MOST) {
            pl_buffer_text(out, "\n   ");
            line = out->bytes - 3;
        }
        pl_buffer_format(out, " --%s %s", name, text);
    }
    pl_buffer_text(out, "\n");
}
