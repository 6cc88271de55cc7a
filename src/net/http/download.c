/* download.c - downloads one file with libcurl: continues a partial file where
 * the server allows it, and starts over where it does not. */
#include "net/http/download.h"

#include "net/library.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONNECT_MS 15000L
#define SILENCE_S  20L /* without a byte: the transfer is aborted */
#define REDIRECTS  5L

#define HTTP_TIMEOUT  408
#define HTTP_TOO_MANY 429
#define HTTP_SERVER   500 /* and above: a server error, may be temporary */

/* The functions used. */
typedef struct curl_calls {
    CURL *(*init)(void);
    CURLcode (*set)(CURL *, CURLoption, ...);
    CURLcode (*perform)(CURL *);
    CURLcode (*get)(CURL *, CURLINFO, ...);
    void (*cleanup)(CURL *);
    const char *(*text)(CURLcode);
} curl_calls;

typedef struct transfer {
    const pl_download_opts *opts;
    curl_calls curl;
    int file;
    int64_t had;  /* bytes of the file at the start */
    int64_t have; /* bytes of the file now */
    bool too_many;
    int write_error; /* errno; 0: none */
    char why[CURL_ERROR_SIZE];
} transfer;

static pl_status load(curl_calls *curl)
{
    const pl_library_call calls[] = {
        { "curl_easy_init", &curl->init },
        { "curl_easy_setopt", &curl->set },
        { "curl_easy_perform", &curl->perform },
        { "curl_easy_getinfo", &curl->get },
        { "curl_easy_cleanup", &curl->cleanup },
        { "curl_easy_strerror", &curl->text },
    };
    return pl_library_load("libcurl.so.4", "libcurl4", calls,
                           sizeof calls / sizeof *calls);
}

/* libcurl's callback: returns the number of bytes written. */
static size_t take(char *data, size_t size, size_t count, void *context)
{
    transfer *t = context;
    size_t bytes = size * count, done = 0;
    if ((int64_t)bytes > t->opts->most - t->have) {
        t->too_many = true;
        return 0;
    }
    while (done < bytes) {
        ssize_t wrote = write(t->file, data + done, bytes - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0) {
            t->write_error = errno;
            return 0;
        }
        done += (size_t)wrote;
    }
    t->have += (int64_t)bytes;
    return bytes;
}

/* libcurl's callback, at least about once a second; a result other than 0 ends
 * the transfer. */
static int look(void *context, curl_off_t total, curl_off_t now,
                curl_off_t up_total, curl_off_t up_now)
{
    const transfer *t = context;
    const pl_download_opts *opts = t->opts;
    (void)now;
    (void)up_total;
    (void)up_now;
    if (opts->show != NULL)
        opts->show(opts->context, t->have,
                   total > 0 ? t->had + (int64_t)total : 0);
    return (opts->interrupt != NULL && atomic_load(opts->interrupt)) ||
           pl_deadline_passed(opts->deadline);
}

static pl_status open_file(transfer *t)
{
    const char *path = t->opts->path;
    struct stat info;
    t->file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (t->file < 0 || fstat(t->file, &info) != 0)
        return PL_FAIL(PL_IO, "open %s: %s", path, strerror(errno));
    t->had = t->have = (int64_t)info.st_size;
    return PL_OK;
}

static pl_status empty_file(const transfer *t)
{
    if (ftruncate(t->file, 0) != 0)
        return PL_FAIL(PL_IO, "empty %s: %s", t->opts->path, strerror(errno));
    return PL_OK;
}

static CURLcode transfer_all(transfer *t, CURL *handle)
{
    const curl_calls *curl = &t->curl;
    const struct {
        CURLoption option;
        long value;
    } numbers[] = {
        { CURLOPT_NOSIGNAL, 1 },
        { CURLOPT_FAILONERROR, 1 },
        { CURLOPT_FOLLOWLOCATION, 1 },
        { CURLOPT_MAXREDIRS, REDIRECTS },
        { CURLOPT_NOPROGRESS, 0 },
        { CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS },
        { CURLOPT_LOW_SPEED_LIMIT, 1 },
        { CURLOPT_LOW_SPEED_TIME, SILENCE_S },
    };
    const struct {
        CURLoption option;
        const void *value;
    } pointers[] = {
        { CURLOPT_URL, t->opts->url },
        { CURLOPT_PROTOCOLS_STR, "http,https" },
        { CURLOPT_USERAGENT, "paceline" },
        { CURLOPT_ERRORBUFFER, t->why },
        { CURLOPT_WRITEDATA, t },
        { CURLOPT_XFERINFODATA, t },
    };
    CURLcode code = CURLE_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !code; i++)
        code = curl->set(handle, numbers[i].option, numbers[i].value);
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers && !code; i++)
        code = curl->set(handle, pointers[i].option, pointers[i].value);
    if (code == CURLE_OK)
        code = curl->set(handle, CURLOPT_WRITEFUNCTION, take);
    if (code == CURLE_OK)
        code = curl->set(handle, CURLOPT_XFERINFOFUNCTION, look);
    if (code == CURLE_OK)
        code = curl->set(handle, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)t->had);
    return code == CURLE_OK ? curl->perform(handle) : code;
}

/* The server answered, but not with the file. */
static pl_status refused(const transfer *t, long answer)
{
    const char *url = t->opts->url;
    bool passing = answer == HTTP_TIMEOUT || answer == HTTP_TOO_MANY ||
                   answer >= HTTP_SERVER;
    return PL_FAIL(passing ? PL_AGAIN : PL_NOTFOUND,
                   "%s: the server answered %ld, expected the file", url,
                   answer);
}

static pl_status stopped(const pl_download_opts *opts)
{
    if (opts->interrupt != NULL && atomic_load(opts->interrupt))
        return PL_FAIL(PL_INTERRUPTED, "interrupted");
    return PL_FAIL(PL_TIMEOUT, "%s: not complete in time", opts->url);
}

static pl_status explain(const transfer *t, CURLcode code, long answer)
{
    const pl_download_opts *opts = t->opts;
    const char *why = t->why[0] != '\0' ? t->why : t->curl.text(code);
    switch (code) {
    case CURLE_OK:
        return PL_OK;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return PL_FAIL(PL_USAGE, "\"%s\": %s, expected http://HOST/...",
                       opts->url, why);
    case CURLE_HTTP_RETURNED_ERROR:
        return refused(t, answer);
    case CURLE_RANGE_ERROR:
        PL_TRY(empty_file(t));
        return PL_FAIL(PL_AGAIN, "%s: the server cannot resume", opts->url);
    case CURLE_ABORTED_BY_CALLBACK:
        return stopped(opts);
    case CURLE_WRITE_ERROR:
        if (t->too_many)
            return PL_FAIL(PL_FORMAT,
                           "%s: more than %lld bytes; this is not the "
                           "expected file",
                           opts->url, (long long)opts->most);
        return PL_FAIL(PL_IO, "write %s: %s", opts->path,
                       strerror(t->write_error));
    case CURLE_OUT_OF_MEMORY:
        return PL_FAIL(PL_NOMEM, "out of memory: downloading");
    default:
        return PL_FAIL(PL_AGAIN, "%s: %s (%lld bytes so far)", opts->url, why,
                       (long long)t->have);
    }
}

static pl_status run(transfer *t)
{
    PL_TRY(load(&t->curl));
    PL_TRY(open_file(t));
    CURL *handle = t->curl.init();
    if (handle == NULL)
        return PL_FAIL(PL_NOMEM, "out of memory: downloading");
    CURLcode code = transfer_all(t, handle);
    long answer = 0;
    if (t->curl.get(handle, CURLINFO_RESPONSE_CODE, &answer) != CURLE_OK)
        answer = 0;
    t->curl.cleanup(handle);
    return explain(t, code, answer);
}

pl_status pl_download(const pl_download_opts *opts)
{
    transfer t = { .opts = opts, .file = -1 };
    pl_status status = run(&t);
    if (t.file >= 0)
        close(t.file);
    return status;
}
