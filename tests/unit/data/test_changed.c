/* Files that change between the moment they are opened and the moment they
 * are read, as a mapping lets them. */
#include "data/dense/writer.h"
#include "data/idx/idx.h"
#include "data/pack/unpack.h"
#include "data/sparse/formats/writer.h"
#include "support/folder.h"
#include "support/sparse.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONG_ROWS  12
#define LONG_IDS   900
#define SHORT_ROWS 20000

/* A few long lines, or many short ones. */
static char *make_libsvm(bool many)
{
    int rows = many ? SHORT_ROWS : LONG_ROWS;
    char *text = malloc(1 << 20);
    size_t used = 0;
    assert_non_null(text);
    for (int r = 0; r < rows; r++) {
        used += (size_t)sprintf(text + used, "%d", r % 2);
        for (int i = 0; i < (many ? 1 : LONG_IDS); i++)
            used += (size_t)sprintf(text + used, " %d:1", (i + r) % 100);
        used += (size_t)sprintf(text + used, "\n");
    }
    return text;
}

static char *make_criteo(bool many)
{
    int rows = many ? SHORT_ROWS : LONG_ROWS;
    char *text = malloc(4 << 20);
    size_t used = 0;
    assert_non_null(text);
    for (int r = 0; r < rows; r++) {
        used += (size_t)sprintf(text + used, "%d", r % 2);
        for (int c = 1; c < 40; c++)
            used += (size_t)sprintf(text + used, "\t%0*d",
                                    many || c < 14 ? 1 : 200, c);
        used += (size_t)sprintf(text + used, "\n");
    }
    return text;
}

/* The same examples as another format writes them. */
static void convert(const char *text, const char *target)
{
    const pl_source_opts opts = { .threads = 1 };
    pl_dataset *set;
    pl_reader *reader;
    pl_batch batch;
    pl_sparse_writer *writer;
    assert_ok(pl_sparse_open_memory(
        &set, &pl_libsvm_format, (const uint8_t *)text, strlen(text), &opts));
    assert_ok(pl_sparse_writer_new(&writer, target, &opts));
    assert_ok(pl_reader_new(
        &reader, set, &(pl_reader_opts) { .batch = 100, .one_pass = true }));
    for (;;) {
        assert_ok(pl_reader_next(reader, &batch));
        if (batch.rows == 0)
            break;
        assert_ok(pl_sparse_writer_put(writer, &batch));
    }
    assert_ok(pl_sparse_writer_finish(writer));
    pl_sparse_writer_free(writer);
    pl_reader_free(reader);
    pl_dataset_free(set);
}

/* The files "few" and "many" of a format. */
static void make_files(const char *folder, const pl_sparse_format *format)
{
    for (int many = 0; many < 2; many++) {
        const char *path = test_path(folder, many ? "many" : "few");
        char *text =
            format == &pl_criteo_format ? make_criteo(many) : make_libsvm(many);
        char target[600];
        snprintf(target, sizeof target, "%s:%s", format->name, path);
        if (format == &pl_criteo_format)
            assert_ok(pl_file_replace(path, text, strlen(text)));
        else
            convert(text, target);
        free(text);
    }
}

/* Write the beginning of `from` over all of `to`, in place. */
static void overwrite(const char *to, const char *from)
{
    pl_map old, new;
    assert_ok(pl_map_read(&old, to, SIZE_MAX));
    assert_ok(pl_map_read(&new, from, SIZE_MAX));
    assert_true(new.bytes > old.bytes);
    int file = open(to, O_WRONLY);
    assert_int_equal(old.bytes, pwrite(file, new.data, old.bytes, 0));
    close(file);
    pl_map_close(&old);
    pl_map_close(&new);
}

/* Read all of a set that was changed; the failure must name the file. */
static void assert_told(pl_dataset *set, pl_status expected, const char *says)
{
    pl_reader *reader;
    pl_batch batch;
    pl_status status = PL_OK;
    assert_ok(pl_reader_new(
        &reader, set, &(pl_reader_opts) { .batch = 2, .one_pass = true }));
    do
        status = pl_reader_next(reader, &batch);
    while (status == PL_OK && batch.rows > 0);
    pl_reader_free(reader);
    assert_int_equal(expected, status);
    assert_non_null(strstr(pl_error_message(), says));
    assert_non_null(strstr(pl_error_message(), "few"));
}

static const pl_sparse_format *const formats[] = {
    &pl_libsvm_format, &pl_criteo_format, &pl_tfrecord_format, &pl_cache_format
};

#define FORMATS (sizeof formats / sizeof *formats)

static pl_dataset *open_stream(const char *path, const pl_sparse_format *format)
{
    pl_dataset *set;
    assert_ok(pl_sparse_open(&set, format, path,
                             &(pl_source_opts) { .threads = 1,
                                                 .features = 1000,
                                                 .shuffle_buffer = 4 }));
    return set;
}

static void more_examples_than_counted_are_reported(void **state)
{
    pl_map_allow();
    for (size_t f = 0; f < FORMATS; f++) {
        make_files(*state, formats[f]);
        char *few = strdup(test_path(*state, "few"));
        pl_dataset *set = open_stream(few, formats[f]);
        overwrite(few, test_path(*state, "many"));
        if (formats[f] == &pl_cache_format)
            assert_told(set, PL_FORMAT, "checksum");
        else
            assert_told(set, PL_IO, "changed while it was read: the block");
        pl_dataset_free(set);
        free(few);
    }
}

static void fewer_examples_than_counted_are_reported(void **state)
{
    pl_map_allow();
    char *text = make_libsvm(true);
    const char *path = test_path(*state, "few");
    assert_ok(pl_file_replace(path, text, strlen(text)));
    pl_dataset *set = open_stream(path, &pl_libsvm_format);
    for (char *c = text; *c != '\0'; c++) /* all of it one comment a line */
        *c = *c == '\n' ? '\n' : '#';
    int file = open(path, O_WRONLY);
    assert_int_equal(strlen(text), pwrite(file, text, strlen(text), 0));
    close(file);
    assert_told(set, PL_IO, "changed while it was read: the block");
    pl_dataset_free(set);
    free(text);
}

static void truncation_is_reported(void **state)
{
    pl_map_allow();
    for (size_t f = 0; f < FORMATS; f++)
        for (int whole = 0; whole < 2; whole++) {
            make_files(*state, formats[f]);
            const char *path = test_path(*state, "few");
            pl_dataset *set = open_stream(path, formats[f]);
            assert_int_equal(0, truncate(path, whole ? 0 : 5000));
            assert_told(set, PL_IO, "changed while it was read: it had");
            pl_dataset_free(set);
        }
}

static void images_that_disappear_are_reported(void **state)
{
    static uint8_t pixels[100 * 28 * 28];
    uint8_t labels[100] = { 0 };
    pl_dataset *set;
    pl_reader *reader;
    pl_batch batch;
    pl_map_allow();
    assert_ok(pl_idx_write(test_path(*state, "train-images-idx3-ubyte"),
                           PL_SHAPE(100, 28, 28), PL_UINT8, pixels));
    assert_ok(pl_idx_write(test_path(*state, "train-labels-idx1-ubyte"),
                           PL_SHAPE(100), PL_UINT8, labels));
    assert_ok(pl_idx_dataset_open(&set, *state, PL_SPLIT_TRAIN,
                                  &(pl_source_opts) { .threads = 1 }));
    assert_ok(pl_reader_new(&reader, set, &(pl_reader_opts) { .batch = 10 }));
    /* Labels index memory: those that were checked are those that are used. */
    memset(labels, 255, sizeof labels);
    int file = open(test_path(*state, "train-labels-idx1-ubyte"), O_WRONLY);
    assert_int_equal(100, pwrite(file, labels, 100, 8));
    close(file);
    assert_ok(pl_reader_next(reader, &batch));
    for (int64_t r = 0; r < batch.rows; r++)
        assert_int_equal(0, pl_view_label(&batch.labels, r));
    assert_ok(pl_dataset_check(set, true));
    assert_int_equal(
        0, truncate(test_path(*state, "train-images-idx3-ubyte"), 20));
    assert_ok(pl_dataset_check(set, false)); /* not read since */
    const uint8_t *rows = batch.features.data;
    assert_int_equal(0, rows[99 * 28 * 28]);
    assert_fails(PL_IO, "train-images-idx3-ubyte changed while it was read",
                 pl_dataset_check(set, false));
    pl_reader_free(reader);
    pl_dataset_free(set);
}

/* The file that is truncated as soon as it is mapped for the n-th time; NULL:
 * none.  The linker leads calls of mmap here. */
static const char *to_truncate;
static int maps_before;

void *__real_mmap(void *at, size_t bytes, int protection, int flags, int file,
                  off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file,
                  off_t offset);

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file,
                  off_t offset)
{
    struct stat mapped, wanted;
    void *found = __real_mmap(at, bytes, protection, flags, file, offset);
    if (to_truncate != NULL && file >= 0 && fstat(file, &mapped) == 0 &&
        stat(to_truncate, &wanted) == 0 && mapped.st_ino == wanted.st_ino &&
        maps_before-- == 0)
        assert_int_equal(0, truncate(to_truncate, 100));
    return found;
}

#define TABLE_ROWS 20000

/* The table as another format writes it: "npy:FOLDER/few.npy,..." */
static void make_table(const char *folder, const char *target)
{
    const pl_source_opts opts = { .threads = 1 };
    const char *path = test_path(folder, "table.csv");
    char source[600];
    pl_dataset *set;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "a,b,c,label\n");
    for (int r = 0; r < TABLE_ROWS; r++)
        fprintf(file, "%d,%d,%d,%d\n", r, r % 7, r % 5 + 1, r % 3);
    fclose(file);
    snprintf(source, sizeof source, "csv:%s", path);
    assert_ok(pl_source_open(&set, source, PL_SPLIT_TRAIN, &opts));
    assert_ok(pl_dense_write(set, target, PL_SPLIT_TRAIN, NULL));
    pl_dataset_free(set);
}

/* Whether it is read at once or stays mapped. */
static void tables_truncated_while_opened_are_reported(void **state)
{
    /* Records are looked at first, and so is what an archive holds. */
    static const struct {
        const char *kind;
        int maps_before;
    } cases[] = { { "csv", 0 },
                  { "npy", 0 },
                  { "npz", 0 },
                  { "npz", 1 },
                  { "tfrecord", 1 } };
    const char *folder = *state;
    pl_map_allow();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const char *kind = cases[c].kind;
        char *few = strdup(test_path(folder, kind));
        char source[1200], labels[600] = "";
        pl_dataset *set;
        if (strcmp(kind, "npy") == 0)
            snprintf(labels, sizeof labels, ",%s",
                     test_path(folder, "labels.npy"));
        snprintf(source, sizeof source, "%s:%s%s", kind, few, labels);
        make_table(folder, source);
        to_truncate = few;
        maps_before = cases[c].maps_before;
        pl_status status = pl_source_open(&set, source, PL_SPLIT_TRAIN,
                                          &(pl_source_opts) { .threads = 2 });
        to_truncate = NULL;
        assert_int_equal(PL_IO, status);
        assert_non_null(strstr(pl_error_message(), few));
        assert_non_null(strstr(pl_error_message(), "changed while it was"));
        free(few);
    }
}

/* Zeros pack about a thousand times. */
static void a_bomb_is_not_unpacked(void **state)
{
    char *bomb = strdup(test_path(*state, "few.gz"));
    char command[700];
    pl_dataset *set;
    snprintf(command, sizeof command,
             "head -c 70000000 /dev/zero | tr '\\0' '\\n' | gzip -1 > '%s'",
             bomb);
    assert_int_equal(0, system(command));
    assert_fails(PL_FORMAT, "raise --unpack-ratio",
                 pl_sparse_open(&set, &pl_libsvm_format, bomb,
                                &(pl_source_opts) { .threads = 1 }));
    assert_fails(PL_FORMAT, "no examples",
                 pl_sparse_open(
                     &set, &pl_libsvm_format, bomb,
                     &(pl_source_opts) { .threads = 1, .unpack_ratio = 2000 }));
    free(bomb);
}

UNIT_TESTS(TEST_IN_FOLDER(more_examples_than_counted_are_reported),
           TEST_IN_FOLDER(fewer_examples_than_counted_are_reported),
           TEST_IN_FOLDER(truncation_is_reported),
           TEST_IN_FOLDER(images_that_disappear_are_reported),
           TEST_IN_FOLDER(tables_truncated_while_opened_are_reported),
           TEST_IN_FOLDER(a_bomb_is_not_unpacked))
