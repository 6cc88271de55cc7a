/* cmd_plan.c - `plan`: separates its own flags from those of train, measures
 * the model or takes it from a run, and prints the predicted speed of
 * strategies on a cluster. */
#include "app/doctor/doctor.h"
#include "app/plan/forecast_page.h"
#include "app/plan/units.h"
#include "app/view/output.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/quote.h"
#include "cli/commands.h"
#include "observe/runs/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct plan_flags {
    const char *hosts, *link, *rtt, *speedup, *from, *ssh, *out;
    int64_t cores;
    double seconds;
    bool json;
} plan_flags;

#define MEASURE_S 4

#define FIELD(f) offsetof(plan_flags, f)

static const pl_param params[] = {
    { .name = "hosts",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(hosts),
      .fallback = "8",
      .value = "N|A,B,C",
      .help = "number of hosts, or their names as for ssh; links between "
              "named hosts are measured, unless --link and --rtt are given",
      .why = "Give a number for a cluster that does not exist yet: each host "
             "has one worker, and a single host one for each core. Names "
             "measure real links, which takes a few seconds for each pair." },
    { .name = "cores",
      .kind = PL_PARAM_INT,
      .offset = FIELD(cores),
      .least = 1,
      .most = 1024,
      .help = "cores of each host (default: as many as here)",
      .why =
          "Give it when the hosts are larger or smaller than this machine. "
          "Only their number is taken into account, not the speed of a core." },
    { .name = "link",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(link),
      .value = "RATE",
      .help = "rate of each host's link in each direction: 100Mbit, 10Gbit, "
              "unlimited (default: 1Gbit, or as measured)",
      .why = "The most important number of a plan: give what the hosts really "
             "reach, as `paceline doctor` measures it, rather than what the "
             "card promises. unlimited shows what a faster network could gain "
             "at most." },
    { .name = "rtt",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(rtt),
      .value = "TIME",
      .help = "round trip between two hosts: 50us, 1ms (default: 0.2ms, or as "
              "measured)",
      .why = "Matters for small models, whose steps are short: 50us is typical "
             "of one rack, 0.2ms of a data center, 1ms and more of a cloud or "
             "an office." },
    { .name = "for",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(speedup),
      .value = "10x",
      .help = "find the fewest workers for this speed-up over one process",
      .why = "Answers how large a cluster must be, or that no number of "
             "workers up to --hosts is enough. Efficiency falls with every "
             "worker, so ask for what you need." },
    { .name = "from",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(from),
      .value = "RUN",
      .help = "take the times of a step from this run instead of measuring "
              "here; MODEL is then optional",
      .why = "Use it when the run was trained on the machines of the plan, or "
             "when this machine is busy. Its flags are used, too." },
    { .name = "seconds",
      .kind = PL_PARAM_REAL,
      .offset = FIELD(seconds),
      .least = 0.05,
      .most = 3600,
      .value = "S",
      .help = "seconds to measure (default: 4)",
      .why = "Raise it to 20 if two plans differ by more than a few percent, "
             "or if the model needs more than a second for a step." },
    { .name = "ssh",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(ssh),
      .value = "COMMAND",
      .help = "command to reach named hosts, such as \"ssh -p 2222\" "
              "(default: ssh)",
      .why = "Use it for another port, user or key, such as \"ssh -p 2222 -i "
             "key\". It must reach each host without asking for a password." },
    { .name = "out",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(out),
      .value = "FILE",
      .help = "also write a page with curves (short: -o): speed-up by workers "
              "for each strategy and over other links; - writes only the "
              "page, to standard output",
      .why = "Use it to show others where more machines stop helping. The page "
             "is one file and makes no requests." },
    { .name = "json",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(json),
      .help = "print one JSON object",
      .why = "For scripts: `rows` has all cases, `best` the fastest one with "
             "its command, `smallest` the answer to --for." },
};

/* One `plan` command. */
typedef struct session {
    const pl_app *app;
    plan_flags flags;
    pl_options options;
    pl_run_record record; /* of --from; zeroed: none */
    pl_json *recalled;    /* those of its flags that apply; the options borrow
                             its texts */
    pl_forecast_work work;
    pl_forecast_opts plan_opts;
    pl_buffer command, here;
    char **own, **trains; /* the words of the command line, by owner */
    int own_count, train_count;
} session;

/* --- the command line --------------------------------------------------- */

/* The row of the flag "--name" or "--name=value" in these tables. */
static const pl_param *flag_of(const pl_param_group *groups, size_t count,
                               const char *word)
{
    char name[64];
    if (strcmp(word, "-o") == 0)
        return pl_param_find(groups, count, "out");
    if (strncmp(word, "--", 2) != 0)
        return NULL;
    size_t length = strcspn(word + 2, "=");
    if (length >= sizeof name)
        return NULL;
    memcpy(name, word + 2, length);
    name[length] = '\0';
    return pl_param_find(groups, count, name);
}

/* Words of a flag: itself, and its value if that is a separate word. */
static int words_of(const pl_param *param, const char *word)
{
    return param->kind == PL_PARAM_FLAG || strchr(word, '=') != NULL ? 1 : 2;
}

static pl_status split(session *s, int argc, char **argv)
{
    const pl_param_group own = { "Flags", params,
                                 sizeof params / sizeof *params, NULL, NULL };
    PL_TRY(PL_NEW(s->own, (size_t)argc + 1));
    PL_TRY(PL_NEW(s->trains, (size_t)argc + 1));
    for (int i = 0; i < argc;) {
        const pl_param *param = flag_of(&own, 1, argv[i]);
        int words = param != NULL ? words_of(param, argv[i]) : 1;
        for (; words > 0 && i < argc; words--, i++)
            if (param != NULL)
                s->own[s->own_count++] = argv[i];
            else
                s->trains[s->train_count++] = argv[i];
    }
    return PL_OK;
}

static bool is_named(const session *s)
{
    return s->train_count > 0 && s->trains[0][0] != '-';
}

/* The model given by name, or the model of the run. */
static pl_status choose_model(session *s, const pl_model **out)
{
    const char *name = is_named(s) ? s->trains[0] : s->record.model;
    if (name == NULL)
        return PL_FAIL(PL_USAGE, "plan needs a model, or --from RUN: plan "
                                 "MODEL [flags]; `models` lists them");
    if (is_named(s) && s->record.model != NULL &&
        strcmp(name, s->record.model) != 0)
        return PL_FAIL(PL_USAGE, "--from %s: it trained the model %s, not %s",
                       s->flags.from, s->record.model, name);
    return pl_app_model(s->app, name, out);
}

/* Flags about how gradients travel: a plan may change them, as the work of a
 * worker does not depend on them. */
static bool is_of_exchange(const pl_param *param)
{
    static const size_t offsets[] = {
        offsetof(pl_train_options, codec),
        offsetof(pl_train_options, topk_share),
        offsetof(pl_train_options, local_steps),
        offsetof(pl_train_options, outer_lr),
        offsetof(pl_train_options, outer_momentum),
    };
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        if (param->offset == offsets[i])
            return true;
    return false;
}

/* The run's flags; a flag that is given again must have the same value. */
static pl_status recall(session *s)
{
    size_t groups;
    const pl_param_group *tables = pl_options_flags(&groups);
    const pl_json *args = s->record.args;
    PL_TRY(pl_json_new_object(&s->recalled));
    for (size_t i = 0; i < pl_json_length(args); i++) {
        const char *name = pl_json_key_at(args, i), *text;
        const pl_param *param = pl_param_find(tables, groups, name);
        if (param != NULL && is_of_exchange(param))
            continue;
        PL_TRY(pl_json_get_text(args, name, &text));
        PL_TRY(pl_json_set_text(s->recalled, name, text));
    }
    return pl_options_recall(&s->options, s->recalled);
}

/* All-reduce, which a plan with --local-steps predicts, must accept --codec. */
static pl_status check_exchange(const session *s)
{
    pl_options together = s->options;
    together.train.strategy = PL_TRAIN_STRATEGY_ALLREDUCE;
    return PL_GIVEN(&s->options, local_steps) && together.train.local_steps > 1
               ? pl_options_check_codec(&together)
               : PL_OK;
}

static pl_status read_options(session *s)
{
    int first = is_named(s) ? 1 : 0;
    PL_TRY(pl_options_parse(&s->options, s->train_count - first,
                            s->trains + first));
    if (s->options.train.global_batch > 0)
        return PL_FAIL(PL_USAGE, "--global-batch: a plan compares numbers of "
                                 "workers; give --batch, for each of them");
    if (s->record.args != NULL)
        PL_TRY(recall(s));
    PL_TRY(pl_options_resolve(&s->options));
    return check_exchange(s);
}

/* A flag that is set by each row of the plan. */
static bool is_chosen(const pl_param *param)
{
    return param->offset == offsetof(pl_train_options, strategy) ||
           param->offset == offsetof(pl_train_options, mode) ||
           param->offset == offsetof(pl_train_options, workers) ||
           param->offset == offsetof(pl_train_options, ps);
}

/* "train MODEL" with the given flags, for the commands of the rows. */
static void put_train(const session *s, pl_buffer *out)
{
    size_t groups;
    const pl_param_group *tables = pl_options_flags(&groups);
    pl_buffer_format(out, "train %s", s->options.model->name);
    for (int i = is_named(s) ? 1 : 0; i < s->train_count;) {
        const pl_param *param = flag_of(tables, groups, s->trains[i]);
        if (param != NULL && is_chosen(param)) {
            i += words_of(param, s->trains[i]);
            continue;
        }
        pl_buffer_text(out, " ");
        pl_quote_shell(out, s->trains[i++]);
    }
}

/* True for names of hosts, also if they begin with a digit; false for a
 * number. */
static bool hosts_are_named(const session *s)
{
    const char *hosts = s->flags.hosts;
    char *end;
    strtol(hosts, &end, 10);
    return *end != '\0' || end == hosts;
}

static pl_status put_commands(session *s)
{
    pl_buffer_format(&s->here, "%s ", s->app->program);
    put_train(s, &s->here);
    pl_buffer_format(&s->command, "%s launch --hosts ", s->app->program);
    if (hosts_are_named(s))
        pl_quote_shell(&s->command, s->flags.hosts);
    else
        pl_buffer_text(&s->command, "A,B,...");
    pl_buffer_text(&s->command, " -- ");
    put_train(s, &s->command);
    PL_TRY(pl_buffer_status(&s->here));
    return pl_buffer_status(&s->command);
}

/* --- the cluster -------------------------------------------------------- */

static int32_t count_names(const char *hosts)
{
    int32_t count = 1;
    for (const char *c = hosts; *c != '\0'; c++)
        count += *c == ',';
    return count;
}

/* Without a measured link the plan would be a guess. */
static pl_status refuse_unmeasured(const pl_diagnosis *d, const char *hosts)
{
    for (size_t i = 0; i < d->line_count; i++) {
        const pl_doctor_line *line = &d->lines[i];
        if (line->verdict == PL_SEVERITY_BAD &&
            (strcmp(line->check, "network") == 0 ||
             strcmp(line->check, "port") == 0))
            return PL_FAIL(PL_IO,
                           "--hosts %s: a link could not be measured; %s: %s: "
                           "%s; give --link and --rtt to plan without "
                           "measuring links",
                           hosts, line->host, line->found, line->advice);
    }
    return PL_OK;
}

/* The slowest link between named hosts, and the longest round trip. */
static pl_status measure_links(session *s)
{
    pl_diagnosis d = { .ok = true };
    pl_forecast_opts *opts = &s->plan_opts;
    pl_status status = pl_doctor_hosts(
        &d,
        &(pl_launch_flags) { .hosts = s->flags.hosts,
                             .ssh =
                                 s->flags.ssh != NULL ? s->flags.ssh : "ssh" },
        1000);
    if (status == PL_OK)
        status = refuse_unmeasured(&d, s->flags.hosts);
    for (size_t i = 0; status == PL_OK && i < d.way_count; i++) {
        const pl_way *way = &d.ways[i];
        double rate = way->bytes_per_s / PL_FORECAST_PAYLOAD;
        if (i == 0 || rate < opts->link_bytes_per_s)
            opts->link_bytes_per_s = rate;
        if (i == 0 || way->round_trip_us * 1e-6 > opts->round_trip_s)
            opts->round_trip_s = way->round_trip_us * 1e-6;
    }
    pl_fields_close(&pl_diagnosis_fields, &d);
    return status;
}

static pl_status read_hosts(session *s)
{
    pl_forecast_opts *opts = &s->plan_opts;
    bool named = hosts_are_named(s);
    bool known = s->flags.link != NULL && s->flags.rtt != NULL;
    long number = strtol(s->flags.hosts, NULL, 10);
    opts->hosts = named ? count_names(s->flags.hosts) : (int32_t)number;
    if (!named && (number < 1 || number > PL_FORECAST_HOSTS_MAX))
        return PL_FAIL(PL_USAGE,
                       "--hosts: expected 1 to %d, or names, found "
                       "\"%s\"",
                       PL_FORECAST_HOSTS_MAX, s->flags.hosts);
    if (!named && s->flags.ssh != NULL)
        return PL_FAIL(PL_USAGE, "--ssh needs names in --hosts, found \"%s\"",
                       s->flags.hosts);
    opts->link_bytes_per_s = 125e6;
    opts->round_trip_s = 0.2e-3;
    return named && !known ? measure_links(s) : PL_OK;
}

static pl_status read_cluster(session *s)
{
    const plan_flags *flags = &s->flags;
    pl_forecast_opts *opts = &s->plan_opts;
    opts->cores = flags->cores > 0 ? (int32_t)flags->cores : pl_thread_cores();
    /* Refuse wrong flags before measuring anything. */
    double rate = 0, rtt = 0;
    if (flags->link != NULL)
        PL_TRY(pl_units_rate(&rate, "link", flags->link));
    if (flags->rtt != NULL)
        PL_TRY(pl_units_time(&rtt, "rtt", flags->rtt));
    if (flags->speedup != NULL)
        PL_TRY(pl_units_factor(&opts->speedup, "for", flags->speedup));
    PL_TRY(read_hosts(s));
    if (flags->link != NULL)
        opts->link_bytes_per_s = rate;
    if (flags->rtt != NULL)
        opts->round_trip_s = rtt;
    return PL_OK;
}

/* --- printing ----------------------------------------------------------- */

static pl_status print_table(const pl_forecast *plan)
{
    pl_table *table;
    pl_buffer text = { 0 };
    PL_TRY(pl_forecast_table(&table, plan));
    pl_table_print(table, &text);
    pl_status status = pl_table_status(table);
    if (status == PL_OK)
        status = pl_buffer_status(&text);
    if (status == PL_OK)
        fputs(text.data, stdout);
    pl_buffer_close(&text);
    pl_table_free(table);
    return status;
}

static void print_choice(const char *what, const pl_forecast_choice *choice)
{
    printf("%s: %.0f examples/s, %.2f x one process\n  %s\n", what,
           choice->row.examples_per_s, choice->row.speedup, choice->command);
}

static pl_status print_none(const pl_forecast *plan)
{
    pl_buffer text = { 0 };
    pl_forecast_put_none(plan, &text);
    pl_status status = pl_buffer_status(&text);
    if (status == PL_OK)
        puts(text.data);
    pl_buffer_close(&text);
    return status;
}

static pl_status print_text(const pl_forecast *plan)
{
    PL_TRY(print_table(plan));
    putchar('\n');
    print_choice("best", &plan->best);
    if (plan->has_smallest)
        print_choice("fewest workers for the speed-up wanted", &plan->smallest);
    else if (plan->has_wanted)
        return print_none(plan);
    return PL_OK;
}

static pl_status print_json(const pl_forecast *plan)
{
    char *text;
    PL_TRY(pl_fields_text(&pl_forecast_fields, plan, 0, &text));
    printf("%s\n", text);
    pl_mem_free(text);
    return PL_OK;
}

/* The page is written to standard output, which must hold nothing else. */
static bool is_page_alone(const session *s)
{
    return s->flags.out != NULL && strcmp(s->flags.out, "-") == 0;
}

static pl_status write_page(const pl_forecast *plan, const session *s)
{
    pl_page *page;
    pl_buffer html = { 0 };
    PL_TRY(pl_forecast_page(&page, plan, &s->plan_opts));
    pl_page_html(page, &html);
    pl_status status = pl_buffer_save(&html, pl_output_path(s->flags.out));
    pl_buffer_close(&html);
    pl_page_free(page);
    return status;
}

/* --- the command -------------------------------------------------------- */

static pl_status get_work(session *s)
{
    if (s->flags.from != NULL)
        return pl_forecast_recall(&s->work, &s->options, &s->record,
                                  s->flags.from);
    double seconds = s->flags.seconds > 0 ? s->flags.seconds : MEASURE_S;
    pl_log(PL_LOG_INFO, "measuring %s here for about %g s",
           s->options.model->name, seconds);
    return pl_forecast_measure(&s->work, &s->options, seconds);
}

static pl_status make_plan(session *s)
{
    pl_forecast plan = { 0 };
    PL_TRY(read_options(s));
    PL_TRY(put_commands(s));
    PL_TRY(read_cluster(s));
    PL_TRY(get_work(s));
    s->plan_opts.options = &s->options;
    s->plan_opts.work = &s->work;
    s->plan_opts.command = s->command.data;
    s->plan_opts.here = s->here.data;
    PL_TRY(pl_forecast_make(&plan, &s->plan_opts));
    pl_status status = s->flags.out != NULL ? write_page(&plan, s) : PL_OK;
    if (status == PL_OK && !is_page_alone(s))
        status = s->flags.json ? print_json(&plan) : print_text(&plan);
    pl_forecast_close(&plan);
    return status;
}

static void close_session(session *s)
{
    pl_forecast_work_close(&s->work);
    pl_run_record_close(&s->record);
    pl_json_free(s->recalled);
    pl_buffer_close(&s->command);
    pl_buffer_close(&s->here);
    pl_mem_free(s->own);
    pl_mem_free(s->trains);
}

static pl_status plan(session *s)
{
    const pl_model *model;
    if (s->flags.from != NULL && s->flags.seconds > 0)
        return PL_FAIL(PL_USAGE, "--from and --seconds: give one of them, not "
                                 "both");
    if (s->flags.json && is_page_alone(s))
        return PL_FAIL(PL_USAGE, "--json and --out -: only one of them can be "
                                 "on standard output; give --out a file");
    if (s->flags.from != NULL)
        PL_TRY(pl_run_record_read(&s->record, s->flags.from));
    PL_TRY(choose_model(s, &model));
    PL_TRY(pl_options_init(&s->options, model));
    pl_status status = make_plan(s);
    pl_options_close(&s->options);
    return status;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    session *s;
    pl_words words;
    PL_TRY(PL_NEW(s, 1));
    s->app = app;
    pl_status status = split(s, argc, argv);
    if (status == PL_OK)
        status = pl_command_parse(
            &pl_cmd_plan, app,

            &s->flags, pl_app_wants_help(argc, argv) ? argc : s->own_count,
            pl_app_wants_help(argc, argv) ? argv : s->own, &words);
    if (status == PL_OK && words.list != NULL) {
        pl_mem_free(words.list);
        status = plan(s);
    }
    close_session(s);
    pl_mem_free(s);
    return status;
}

const pl_command pl_cmd_plan = {
    .name = "plan",
    .usage = "plan MODEL [flags]",
    .help = "predict how fast a model trains on a cluster",
    .about =
        "Predict how fast a model would train on a cluster, for each "
        "strategy, mode and\nnumber of tasks. A step is measured here for a "
        "few seconds (or taken from a run)\nand replayed over the links of "
        "the cluster. Other flags are those of train;\n--strategy, --mode, "
        "--workers, --ps and --threads narrow the table.",
    .examples = {
        { "plan lenet", "8 hosts with 1 Gbit/s each" },
        { "plan alexnet --hosts 4 --link 10Gbit", "on another cluster" },
        { "plan softmax --for 3x", "the fewest workers for a speed-up" },
    },
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};
