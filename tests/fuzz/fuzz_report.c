/* fuzz_report.c - folders of other people's runs, up to the report, the
 * comparison and the page that are made of them.
 *
 * The input is files, each behind a line "== X" whose letter says which file
 * it is (see `files`).  They are written to a folder of up to three runs, and
 * read from there as the commands do.
 *
 * Whatever they hold, no text of theirs is markup in the page or a command in
 * gnuplot's script, the figures are JSON, and all rows of a CSV have as many
 * fields as its first. */
#include "base/assert.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "observe/compare/compare.h"
#include "observe/live/live.h"
#include "observe/report/report.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CANARY    "<q" /* in the corpus; no page of ours has such a tag */
#define PATH_MOST 128

static const struct file {
    char letter;
    const char *path;
} files[] = {
    { 'r', "runs/a/run.json" },
    { 's', "runs/a/summary.json" },
    { 'e', "runs/a/events/worker-0/events.out.tfevents.1.a" },
    { 'p', "runs/a/events/ps-0/events.out.tfevents.1.a" },
    { 'c', "runs/a/resources/host.csv" },
    { 'i', "runs/a/timeline.jsonl" },
    { 'o', "runs/a/trace/worker-0.json" },
    { 'f', "runs/a/confusion.json" },
    { 'l', "runs/a/log/worker-0.log" },
    { 'R', "runs/b/run.json" },
    { 'S', "runs/b/summary.json" },
    { 'q', "runs/c/run.json" },
    { 't', "runs/c/summary.json" },
    { 'w', "runs/sweep.json" },
};

#define FILES (sizeof files / sizeof *files)

static char root[] = "/tmp/paceline-fuzz-report-XXXXXX";
static char runs[PATH_MOST];

static void path_of(char path[PATH_MOST], const char *name)
{
    snprintf(path, PATH_MOST, "%s/%s", root, name);
}

/* --- the folder ------------------------------------------------------- */

/* What a file holds; most inputs change one of them. */
static pl_buffer written[FILES];
static bool there[FILES];

static void write_file(size_t i, const uint8_t *data, size_t bytes)
{
    char path[PATH_MOST];
    if (there[i] && written[i].bytes == bytes &&
        (bytes == 0 || memcmp(written[i].data, data, bytes) == 0))
        return;
    path_of(path, files[i].path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
        abort();
    close(fd);
    there[i] = true;
    pl_buffer_clear(&written[i]);
    pl_buffer_put(&written[i], data, bytes);
}

static void remove_file(size_t i)
{
    char path[PATH_MOST];
    path_of(path, files[i].path);
    if (there[i])
        unlink(path);
    there[i] = false;
}

static void remove_all(void)
{
    static const char *const folders[] = {
        "runs/a/events/worker-0",
        "runs/a/events/ps-0",
        "runs/a/events",
        "runs/a/resources",
        "runs/a/trace",
        "runs/a/log",
        "runs/a",
        "runs/b",
        "runs/c",
        "runs",
        ".",
    };
    char path[PATH_MOST];
    for (size_t i = 0; i < FILES; i++) {
        remove_file(i);
        pl_buffer_close(&written[i]);
    }
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        path_of(path, folders[i]);
        rmdir(path);
    }
    rmdir(root);
}

static void make_folders(void)
{
    static bool made;
    char path[PATH_MOST];
    if (made)
        return;
    made = true;
    if (mkdtemp(root) == NULL)
        abort();
    for (size_t i = 0; i < FILES; i++) {
        path_of(path, files[i].path);
        *strrchr(path, '/') = '\0';
        if (pl_file_make_folder(path) != PL_OK)
            abort();
    }
    path_of(runs, "runs");
    atexit(remove_all);
}

/* The next "== X" line from `at` on; NULL: there is none. */
static const uint8_t *find_line(const uint8_t *at, const uint8_t *end)
{
    for (; end - at >= 5; at++) {
        at = memchr(at, '=', (size_t)(end - at));
        if (at == NULL || end - at < 5)
            return NULL;
        if (at[1] == '=' && at[2] == ' ' && at[4] == '\n')
            return at;
    }
    return NULL;
}

static void write_files(const uint8_t *data, size_t bytes)
{
    bool given[FILES] = { false };
    const uint8_t *end = data + bytes, *line = find_line(data, end);
    while (line != NULL) {
        const uint8_t *next = find_line(line + 5, end);
        const uint8_t *stop = next != NULL ? next : end;
        for (size_t i = 0; i < FILES; i++)
            if (files[i].letter == line[3]) {
                write_file(i, line + 5, (size_t)(stop - line - 5));
                given[i] = true;
            }
        line = next;
    }
    for (size_t i = 0; i < FILES; i++)
        if (!given[i])
            remove_file(i);
}

/* --- what must hold --------------------------------------------------- */

static bool holds(const pl_buffer *text, const char *what)
{
    return text->bytes > 0 && strstr(text->data, what) != NULL;
}

/* What the figures are drawn from; texts were cut by bytes, perhaps. */
static void check_model(const pl_buffer *html)
{
    static const char begin[] = "id=model>";
    char *at = strstr(html->data, begin);
    PL_ASSERT(at != NULL);
    at += strlen(begin);
    const char *end = strstr(at, "</script>");
    PL_ASSERT(end != NULL);
    for (char *c = at; c < end; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    pl_json *model;
    PL_ASSERT(pl_json_parse(&model, at, (size_t)(end - at), "model") == PL_OK);
    pl_json_free(model);
}

static void check_page(const pl_page *page)
{
    pl_buffer html = { 0 };
    pl_page_served(page, 0, &html);
    PL_ASSERT(pl_buffer_status(&html) == PL_OK);
    PL_ASSERT(!holds(&html, CANARY));
    check_model(&html);
    pl_buffer_close(&html);
}

static void check_csv(const pl_table *table)
{
    pl_buffer csv = { 0 };
    size_t fields = 1, expected = 0;
    bool quoted = false;
    pl_table_csv(table, &csv);
    PL_ASSERT(pl_buffer_status(&csv) == PL_OK);
    for (size_t i = 0; i < csv.bytes; i++) {
        char c = csv.data[i];
        quoted = quoted != (c == '"');
        fields += !quoted && c == ',';
        if (quoted || c != '\n')
            continue;
        PL_ASSERT(expected == 0 || fields == expected);
        expected = fields;
        fields = 1;
    }
    PL_ASSERT(!quoted && fields == 1);
    pl_buffer_close(&csv);
}

/* Outside of quotes the script has words of ours alone, and the files it
 * writes are in its folder. */
static void check_script(const pl_buffer *script)
{
    static const char output[] = "set output ";
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRS"
                                "TUVWXYZ0123456789 ._-,:*$<()[]+%";
    char *rest = script->data;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        bool quoted = false;
        for (const char *c = line; *c != '\0'; c++) {
            quoted = quoted != (*c == '\'');
            PL_ASSERT(quoted || *c == '\'' || strchr(plain, *c) != NULL);
            PL_ASSERT(strncmp(line, output, strlen(output)) != 0 || *c != '/');
        }
        PL_ASSERT(!quoted);
    }
}

/* --- what the commands do --------------------------------------------- */

static void compare(const pl_records *records, bool mean)
{
    pl_table *table;
    pl_json *json;
    pl_buffer text = { 0 };
    if (pl_compare_all(&table, records, mean) != PL_OK)
        return;
    check_csv(table);
    PL_ASSERT(pl_compare_print(records, mean, 80, &text) == PL_OK);
    PL_ASSERT(!holds(&text, "\x1b"));
    pl_buffer_close(&text);
    if (pl_table_json(table, &json) == PL_OK)
        pl_json_free(json);
    pl_table_free(table);
}

static void report(const pl_records *records)
{
    pl_page *page;
    pl_buffer script = { 0 };
    if (pl_report_make(&page, records, "Report") != PL_OK)
        return;
    check_page(page);
    pl_page_gnuplot(page, &script);
    PL_ASSERT(pl_buffer_status(&script) == PL_OK);
    if (script.bytes > 0)
        check_script(&script);
    pl_buffer_close(&script);
    pl_page_free(page);
}

static void show(const char *path)
{
    pl_buffer body = { 0 };
    const char *type;
    pl_status status =
        pl_live_page(&(pl_live) { .folder = runs }, path, &body, &type);
    PL_ASSERT(status != PL_OK || !holds(&body, CANARY));
    pl_buffer_close(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *const paths[] = { runs };
    pl_records records;
    make_folders();
    write_files(data, bytes);
    if (pl_records_init(&records, paths, 1) == PL_OK) {
        if (records.count > 0) {
            compare(&records, false);
            compare(&records, true);
            report(&records);
        }
        pl_records_close(&records);
    }
    show("/");
    show("/run/a");
    return 0;
}
