/* folder.h - a folder of its own for a test that writes files.
 *
 * Use as cmocka's setup and teardown:
 *
 *     cmocka_unit_test_setup_teardown(test, test_folder_make,
 *                                     test_folder_remove)
 *
 * Then *state is the folder's path. */
#ifndef PL_TESTS_FOLDER_H
#define PL_TESTS_FOLDER_H

#include "base/file/file.h"
#include "support/unit.h"

#include <stdlib.h>

static inline int test_folder_make(void **state)
{
    char *path = malloc(64);
    if (path == NULL)
        return -1;
    strcpy(path, "/tmp/paceline-test-XXXXXX");
    *state = path;
    return mkdtemp(path) == NULL ? -1 : 0;
}

static inline int test_folder_remove(void **state)
{
    char *path = *state;
    int result = pl_file_remove_all(path) == PL_OK ? 0 : -1;
    free(path);
    return result;
}

#define TEST_IN_FOLDER(test)                                                   \
    cmocka_unit_test_setup_teardown(test, test_folder_make, test_folder_remove)

/* "folder/name" in a buffer that is reused 16 calls later. */
static inline const char *test_path(const char *folder, const char *name)
{
    static char paths[16][512];
    static unsigned next;
    char joined[512]; /* `folder` may be one of the paths */
    snprintf(joined, sizeof joined, "%s/%s", folder, name);
    return strcpy(paths[next++ % 16], joined);
}

/* A file, with the folders it is in: for machines made of files. */
static inline void test_put(const char *root, const char *name,
                            const char *text)
{
    char *path;
    assert_ok(pl_mem_format(&path, "%s/%s", root, name));
    char *slash = strrchr(path, '/');
    *slash = '\0';
    assert_ok(pl_file_make_folder(path));
    *slash = '/';
    assert_ok(pl_file_replace(path, text, strlen(text)));
    pl_mem_free(path);
}

#endif
