/* replay.c - feed a fuzz target its corpus and variations of it.
 *
 * usage: replay_<target> FOLDER
 *
 * Each file of the folder goes in as it is, then each of its beginnings, then
 * with one byte changed at a time.  Every input lies in memory of exactly its
 * size, so that the address sanitizer sees the first byte read past the end.
 * Large files are tried at about POSITIONS places spread over them. */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifndef POSITIONS
#define POSITIONS 1024
#endif

static void feed(const uint8_t *data, size_t bytes)
{
    uint8_t *exact = malloc(bytes == 0 ? 1 : bytes);
    if (exact == NULL)
        abort();
    if (bytes > 0)
        memcpy(exact, data, bytes);
    LLVMFuzzerTestOneInput(exact, bytes);
    free(exact);
}

/* The next position to try: all near both ends, some in between. */
static size_t next_position(size_t at, size_t bytes)
{
    bool near_an_end = at < POSITIONS / 2 || bytes - at < POSITIONS / 4;
    return at + (near_an_end ? 1 : 1 + bytes / (POSITIONS / 4));
}

static void feed_variants(uint8_t *data, size_t bytes)
{
    static const uint8_t flips[] = { 0x01, 0x80, 0xff, ' ' };
    feed(data, bytes);
    for (size_t at = 0; at < bytes; at = next_position(at, bytes)) {
        feed(data, at);
        uint8_t kept = data[at];
        for (size_t i = 0; i < sizeof flips; i++) {
            data[at] = kept ^ flips[i];
            feed(data, bytes);
        }
        data[at] = 0;
        feed(data, bytes);
        data[at] = kept;
    }
}

/* The bytes of a file, for free(); NULL with a message when unreadable. */
static uint8_t *read_whole(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    struct stat stat;
    uint8_t *data = NULL;
    if (file == NULL || fstat(fileno(file), &stat) != 0)
        goto out;
    *bytes = (size_t)stat.st_size;
    data = malloc(*bytes + 1);
    if (data != NULL && fread(data, 1, *bytes, file) != *bytes) {
        free(data);
        data = NULL;
    }
out:
    if (data == NULL)
        fprintf(stderr, "replay: read %s: %s\n", path, strerror(errno));
    if (file != NULL)
        fclose(file);
    return data;
}

static bool replay_file(const char *folder, const char *name)
{
    char path[4096];
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    uint8_t *data = read_whole(path, &bytes);
    if (data == NULL)
        return false;
    feed_variants(data, bytes);
    free(data);
    return true;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    DIR *folder = opendir(argv[1]);
    if (folder == NULL) {
        fprintf(stderr, "replay: open %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    int files = 0;
    bool good = true;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        good = replay_file(argv[1], entry->d_name) && good;
        files++;
    }
    closedir(folder);
    if (files == 0)
        fprintf(stderr, "replay: %s is empty\n", argv[1]);
    printf("replay: %d files\n", files);
    return good && files > 0 ? 0 : 1;
}
