#include "net/keys.h"
#include "support/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER "paceline job key 1\n"
#define DIGITS                                                                 \
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static pl_secret counting(void)
{
    pl_secret secret;
    for (size_t i = 0; i < sizeof secret.bytes; i++)
        secret.bytes[i] = (uint8_t)i;
    return secret;
}

static void assert_hex(const char *expected, const uint8_t bytes[32])
{
    char text[65];
    for (size_t i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    assert_string_equal(expected, text);
}

/* Computed by another program, BLAKE2b of Python's hashlib.  Tasks of two
 * versions meet, so these never change. */
static void keys_derivation_never_changes(void **state)
{
    (void)state;
    static const struct {
        pl_principal who;
        const char *key;
    } known[] = {
        { { PL_PRINCIPAL_WORKER, 3 },
          "031b4e9d3311e7129d787c6f45ad96d0e64d31338ec5352151c9b6596b9654ad" },
        { { PL_PRINCIPAL_PS, 0 },
          "0a64e40fb256bd5790bb5df8764042a73b7d9e4187c1a3286e4e29ae7b62bd31" },
        { { PL_PRINCIPAL_EVALUATOR, 0 },
          "d3e817fcf0add3218a8b26d70d60efb58737c0bdc258b6ad261b56de28fc0b25" },
    };
    pl_secret secret = counting();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint8_t key[PL_PROOF_BYTES];
        pl_keys_proof(&secret, known[i].who, key);
        assert_hex(known[i].key, key);
    }
}

static void keys_of_each_task_are_its_own(void **state)
{
    (void)state;
    pl_secret secret = counting();
    uint8_t keys[3 * 4][PL_PROOF_BYTES], other[PL_PROOF_BYTES];
    size_t count = 0;
    for (int role = PL_PRINCIPAL_WORKER; role <= PL_PRINCIPAL_EVALUATOR; role++)
        for (int32_t i = 0; i < 4; i++)
            pl_keys_proof(&secret,
                          (pl_principal) { (pl_principal_role)role, i },
                          keys[count++]);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(keys[i], keys[k], PL_PROOF_BYTES);
    secret.bytes[31] ^= 1;
    pl_keys_proof(&secret, (pl_principal) { PL_PRINCIPAL_WORKER, 0 }, other);
    assert_memory_not_equal(other, keys[0], PL_PROOF_BYTES);
}

static void keys_principals_have_names(void **state)
{
    (void)state;
    char text[PL_PRINCIPAL_TEXT];
    pl_principal who = { PL_PRINCIPAL_WORKER, 1023 };
    pl_principal_text(who, text);
    assert_string_equal("worker 1023", text);
    pl_principal_text((pl_principal) { 0 }, text);
    assert_string_equal("an unknown task", text);
}

static void keys_limit_a_task_to_its_own_identity(void **state)
{
    (void)state;
    pl_principal worker = { PL_PRINCIPAL_WORKER, 1 };
    assert_true(pl_principal_permits(worker, worker));
    assert_true(pl_principal_permits((pl_principal) { 0 }, worker));
    assert_false(pl_principal_permits((pl_principal) { PL_PRINCIPAL_WORKER, 2 },
                                      worker));
    assert_false(
        pl_principal_permits((pl_principal) { PL_PRINCIPAL_PS, 1 }, worker));
}

static void keys_know_the_tasks_of_the_job(void **state)
{
    (void)state;
    pl_job_keys keys = { .workers = 2, .ps = 1 };
    assert_true(
        pl_job_keys_has(&keys, (pl_principal) { PL_PRINCIPAL_WORKER, 1 }));
    assert_false(
        pl_job_keys_has(&keys, (pl_principal) { PL_PRINCIPAL_WORKER, 2 }));
    assert_true(pl_job_keys_has(&keys, (pl_principal) { PL_PRINCIPAL_PS, 0 }));
    assert_false(
        pl_job_keys_has(&keys, (pl_principal) { PL_PRINCIPAL_EVALUATOR, 0 }));
    assert_false(
        pl_job_keys_has(&keys, (pl_principal) { PL_PRINCIPAL_NONE, 0 }));
    keys.evaluator = true;
    assert_true(
        pl_job_keys_has(&keys, (pl_principal) { PL_PRINCIPAL_EVALUATOR, 0 }));
}

static void secrets_differ(void **state)
{
    (void)state;
    pl_secret one, other;
    assert_ok(pl_secret_make(&one));
    assert_ok(pl_secret_make(&other));
    assert_memory_not_equal(one.bytes, other.bytes, sizeof one.bytes);
}

static void secret_files_hold_what_was_written(void **state)
{
    const char *path = test_path(*state, "job.key");
    struct stat file;
    pl_secret secret = counting(), back;
    mode_t before = umask(0);
    assert_ok(pl_secret_write(&secret, path));
    umask(before);
    assert_int_equal(0, stat(path, &file));
    assert_int_equal(0600, file.st_mode & 07777u);
    assert_ok(pl_secret_read(&back, path));
    assert_memory_equal(secret.bytes, back.bytes, sizeof back.bytes);

    char *text;
    assert_ok(pl_file_read_text(&text, path, 1000));
    assert_string_equal(HEADER DIGITS "\n", text);
    pl_mem_free(text);
}

static void secret_files_are_never_replaced(void **state)
{
    const char *path = test_path(*state, "job.key");
    const char *link = test_path(*state, "link.key");
    pl_secret secret = counting();
    assert_ok(pl_secret_write(&secret, path));
    secret.bytes[0]++;
    assert_fails(PL_USAGE, "already exists", pl_secret_write(&secret, path));
    assert_int_equal(0, symlink(test_path(*state, "elsewhere"), link));
    assert_fails(PL_USAGE, "already exists", pl_secret_write(&secret, link));
    assert_fails(PL_IO, "no/such",
                 pl_secret_write(&secret, test_path(*state, "no/such")));
    assert_ok(pl_secret_read(&secret, path));
    assert_int_equal(0, secret.bytes[0]);
}

static void secret_files_of_others_are_refused(void **state)
{
    const char *path = test_path(*state, "job.key");
    static const mode_t open_modes[] = { 0640, 0604, 0620, 0602, 0610, 0644 };
    pl_secret secret = counting();
    assert_ok(pl_secret_write(&secret, path));
    for (size_t i = 0; i < sizeof open_modes / sizeof *open_modes; i++) {
        assert_int_equal(0, chmod(path, open_modes[i]));
        assert_fails(PL_USAGE, "chmod 600", pl_secret_read(&secret, path));
        assert_non_null(strstr(pl_error_message(), path));
    }
    assert_int_equal(0, chmod(path, 0400));
    assert_ok(pl_secret_read(&secret, path));
    if (geteuid() == 0) { /* only root can give files away */
        assert_int_equal(0, chown(path, 12345, 12345));
        assert_fails(PL_USAGE, "belongs to user 12345",
                     pl_secret_read(&secret, path));
    }
}

static void secret_files_that_are_not_files_are_refused(void **state)
{
    const char *pipe_path = test_path(*state, "pipe");
    pl_secret secret;
    assert_fails(PL_NOTFOUND, "nothing",
                 pl_secret_read(&secret, test_path(*state, "nothing")));
    assert_fails(PL_USAGE, "not a file", pl_secret_read(&secret, *state));
    assert_int_equal(0, mkfifo(pipe_path, 0600));
    assert_fails(PL_USAGE, "not a file", pl_secret_read(&secret, pipe_path));
}

/* The sentence never holds a part of what might be a secret. */
static void secret_files_that_are_wrong_are_not_quoted(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "paceline job key",
        "paceline job key 2\n" DIGITS "\n",
        HEADER,
        HEADER DIGITS "\n\n",
        HEADER DIGITS "0",
        HEADER "0" DIGITS "\n",
        HEADER " " DIGITS,
        HEADER "zz0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e"
               "1f\n",
    };
    pl_secret secret, good;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(PL_FORMAT, pl_secret_parse_file(&secret, wrong[i],
                                                         strlen(wrong[i])));
        assert_null(strstr(pl_error_message(), "0d0e"));
    }
    assert_ok(
        pl_secret_parse_file(&good, HEADER DIGITS, strlen(HEADER DIGITS)));
    assert_fails(PL_FORMAT, "64 hexadecimal", pl_secret_parse(&good, "00"));
}

UNIT_TESTS(cmocka_unit_test(keys_derivation_never_changes),
           cmocka_unit_test(keys_of_each_task_are_its_own),
           cmocka_unit_test(keys_principals_have_names),
           cmocka_unit_test(keys_limit_a_task_to_its_own_identity),
           cmocka_unit_test(keys_know_the_tasks_of_the_job),
           cmocka_unit_test(secrets_differ),
           TEST_IN_FOLDER(secret_files_hold_what_was_written),
           TEST_IN_FOLDER(secret_files_are_never_replaced),
           TEST_IN_FOLDER(secret_files_of_others_are_refused),
           TEST_IN_FOLDER(secret_files_that_are_not_files_are_refused),
           cmocka_unit_test(secret_files_that_are_wrong_are_not_quoted))
