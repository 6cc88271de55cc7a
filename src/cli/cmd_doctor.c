/* cmd_doctor.c - `doctor`: checks whether hosts and the links between them
 * are fit for a job. */
#include "app/doctor/doctor.h"
#include "base/mem.h"
#include "base/text/quote.h"
#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct doctor_flags {
    pl_launch_flags launch;
    double seconds;
    bool json;
} doctor_flags;

#define FIELD(f) offsetof(doctor_flags, f)

static const pl_param params[] = {
    { .name = "hosts",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(launch.hosts),
      .value = "A,B,C",
      .help = "hosts to check, named as for ssh (default: this one)",
      .why = "Names must be those that you will give to launch. Links are "
             "measured one after the other, so the time grows with the square "
             "of the number of hosts." },
    { .name = "cluster",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(launch.cluster),
      .value = "FILE",
      .help = "check the hosts and ports of this cluster file",
      .why = "Use it before you start tasks by hand: it also tries to listen "
             "on the ports of the file." },
    { .name = "deploy",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(launch.deploy),
      .value = "NAME",
      .needs = "cluster",
      .help = "entry of --cluster to use, if it has several",
      .why = "A file may describe several clusters, such as {\"test\": {...}, "
             "\"lab\": {...}}; with only one, leave the flag out. Example: "
             "--deploy lab." },
    { .name = "ssh",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(launch.ssh),
      .fallback = "ssh",
      .value = "COMMAND",
      .help = "command to reach a host, such as \"ssh -p 2222\"",
      .why = "Use it for another port, user or key, such as \"ssh -p 2222 -i "
             "key\". It must reach each host without asking for a password." },
    { .name = "program",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(launch.program),
      .value = "FILE",
      .help = "path of paceline on the hosts (default: the path here)",
      .why = "For hosts where paceline is installed at another path, such as "
             "/opt/paceline/bin/paceline. It must be the same version on all "
             "of them; if it is not installed there, use --copy." },
    { .name = "copy",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(launch.copy),
      .help = "copy this program to the hosts first",
      .why = "For hosts that do not have paceline yet: it is copied to "
             "~/.cache/paceline/bin, where launch --copy will find it." },
    { .name = "seconds",
      .kind = PL_PARAM_REAL,
      .offset = FIELD(seconds),
      .fallback = "1",
      .least = 0.1,
      .most = 30,
      .value = "S",
      .help = "seconds to measure each link between two hosts",
      .why = "Raise it to 5 or more if results vary between two checks, as on "
             "a network that others use. Each link is measured for this time "
             "in both directions." },
    { .name = "json",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(json),
      .help = "print the findings as one JSON object",
      .why = "For scripts that accept or reject hosts: `ok` is the verdict, "
             "`lines` has the checks and `ways` the links. The exit status "
             "says the same." },
};

static pl_status look_here(pl_diagnosis *d)
{
    pl_json *facts;
    PL_TRY(pl_json_new_object(&facts));
    pl_status status = pl_doctor_facts(facts);
    const char *host;
    if (status == PL_OK)
        status = pl_json_get_text(facts, "host", &host);
    if (status == PL_OK)
        status = pl_doctor_judge(d, host, facts);
    pl_json_free(facts);
    return status;
}

/* Text from another host is untrusted. */
static void print_row(const char *host, const char *check, const char *verdict,
                      const char *text)
{
    char name[256], words[4096];
    printf("%-20s %-14s %-5s %s\n", pl_quote_line(name, sizeof name, host),
           check, verdict, pl_quote_line(words, sizeof words, text));
}

static void print_table(const pl_diagnosis *d)
{
    print_row("host", "check", "", "found");
    for (size_t i = 0; i < d->line_count; i++) {
        const pl_doctor_line *line = &d->lines[i];
        print_row(line->host, line->check, pl_verdict_names[line->verdict],
                  line->found);
        if (line->advice != NULL)
            print_row("", "", "", line->advice);
    }
}

static pl_status print_json(const pl_diagnosis *d)
{
    char *text;
    PL_TRY(pl_fields_text(&pl_diagnosis_fields, d, 0, &text));
    printf("%s\n", text);
    pl_mem_free(text);
    return PL_OK;
}

static pl_status examine(const doctor_flags *flags, pl_diagnosis *d)
{
    const pl_launch_flags *launch = &flags->launch;
    bool others = launch->hosts != NULL || launch->cluster != NULL;
    if (!others && launch->copy)
        return PL_FAIL(PL_USAGE, "--copy needs --hosts or --cluster");
    if (others)
        PL_TRY(pl_doctor_hosts(d, launch, (int64_t)(flags->seconds * 1000)));
    else
        PL_TRY(look_here(d));
    if (flags->json)
        return print_json(d);
    print_table(d);
    return PL_OK;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    doctor_flags flags = { 0 };
    pl_words words;
    PL_TRY(pl_command_parse(&pl_cmd_doctor, app, &flags, argc, argv, &words));
    if (words.list == NULL)
        return PL_OK;
    int count = words.count;
    pl_mem_free(words.list);
    if (count > 0)
        return PL_FAIL(PL_USAGE, "doctor takes only flags; give hosts as "
                                 "--hosts a,b,c");
    if (flags.launch.hosts != NULL && flags.launch.cluster != NULL)
        return PL_FAIL(PL_USAGE, "--hosts and --cluster: give one of them, "
                                 "not both");
    pl_diagnosis d = { .ok = true };
    pl_status status = examine(&flags, &d);
    bool ok = d.ok;
    pl_fields_close(&pl_diagnosis_fields, &d);
    if (status == PL_OK && !ok)
        return PL_FAIL(PL_IO, "a job would fail here: see the lines marked "
                              "bad");
    return status;
}

const pl_command pl_cmd_doctor = {
    .name = "doctor",
    .usage = "doctor [flags]",
    .help = "check whether hosts are ready for a job",
    .about =
        "Check whether hosts, and the links between them, are ready for a "
        "job: what was\nfound, whether it is enough, and what to do. Without "
        "--hosts or --cluster, check\nthis host.",
    .examples = {
        { "doctor", "this host" },
        { "doctor --hosts a,b,c", "hosts, and the links between them" },
        { "doctor --cluster cluster.json", "the hosts of a cluster file" },
    },
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};
