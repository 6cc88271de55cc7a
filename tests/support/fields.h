/* fields.h - a struct with a field of every kind, for the tests of field
 * tables. */
#ifndef PL_TESTS_FIELDS_H
#define PL_TESTS_FIELDS_H

#include "base/json/fields.h"

typedef enum sample_color {
    SAMPLE_RED,
    SAMPLE_GREEN,
    SAMPLE_BLUE
} sample_color;

typedef struct sample_entry {
    int32_t index;
    char *note;
} sample_entry;

typedef struct sample_word {
    const char *text;
} sample_word;

typedef struct sample_score {
    double loss, auc;
} sample_score;

typedef struct sample {
    bool on;
    int32_t small;
    int64_t large, unknown;
    double real, rate;
    uint32_t crc;
    uint64_t id;
    char host[8];
    const char *text, *mode;
    char *error;
    sample_color color, paint;
    sample_score score, nested;
    bool has_nested, has_extra;
    int64_t extra;
    sample_entry *entries;
    size_t entry_count;
    sample_word *words;
    size_t word_count;
    const pl_json *settings, *list;
} sample;

static const char *const sample_colors[] = { "red", "green", "blue", NULL };

static const pl_field sample_entry_rows[] = {
    { "index", PL_FIELD_INT(sample_entry, index), .most = 99 },
    { "note", PL_FIELD_OWN_TEXT(sample_entry, note), .when = PL_WHEN_SET },
};
static const pl_fields sample_entry_fields =
    PL_FIELDS(sample_entry, sample_entry_rows);

static const pl_field sample_word_rows[] = {
    { NULL, PL_FIELD_TEXT(sample_word, text) },
};
static const pl_fields sample_word_fields =
    PL_FIELDS(sample_word, sample_word_rows);

static const pl_field sample_score_rows[] = {
    { "loss", PL_FIELD_REAL(sample_score, loss), .or_null = true },
    { "auc", PL_FIELD_REAL(sample_score, auc), .or_null = true,
      .when = PL_WHEN_SET },
};
static const pl_fields sample_score_fields =
    PL_FIELDS(sample_score, sample_score_rows);

static const pl_field sample_rows[] = {
    { "on", PL_FIELD_BOOL(sample, on) },
    { "small", PL_FIELD_INT(sample, small), .least = -5, .most = 5 },
    { "large", PL_FIELD_INT(sample, large) },
    { "unknown", PL_FIELD_INT(sample, unknown), .or_null = true },
    { "real", PL_FIELD_REAL(sample, real) },
    { "rate", PL_FIELD_REAL(sample, rate), .when = PL_WHEN_KNOWN },
    { "crc", PL_FIELD_HEX(sample, crc) },
    { "id", PL_FIELD_HEX(sample, id) },
    { "host", PL_FIELD_CHARS(sample, host) },
    { "text", PL_FIELD_TEXT(sample, text) },
    { "mode", PL_FIELD_TEXT(sample, mode), .or_null = true },
    { "error", PL_FIELD_OWN_TEXT(sample, error), .when = PL_WHEN_SET },
    { "color", PL_FIELD_CHOICE(sample, color, sample_colors) },
    { "paint", PL_FIELD_CHOICE(sample, paint, sample_colors), .or_null = true },
    { NULL, PL_FIELD_INLINE(sample, score, &sample_score_fields) },
    { "nested", PL_FIELD_OBJECT(sample, nested, &sample_score_fields),
      PL_FIELD_GIVEN(sample, has_nested) },
    { "extra", PL_FIELD_INT(sample, extra), PL_FIELD_GIVEN(sample, has_extra) },
    { "entries",
      PL_FIELD_LIST(sample, entries, entry_count, &sample_entry_fields),
      .most = 3 },
    { "words", PL_FIELD_LIST(sample, words, word_count, &sample_word_fields),
      .most = 3, .when = PL_WHEN_SET },
    { "settings", PL_FIELD_ANY_OBJECT(sample, settings) },
    { "list", PL_FIELD_ANY_LIST(sample, list), .when = PL_WHEN_SET },
};
static const pl_fields sample_fields = PL_FIELDS(sample, sample_rows);

#define SAMPLE_FULL                                                            \
    "{\"on\":true,\"small\":-5,\"large\":9223372036854775807,"                 \
    "\"unknown\":null,\"real\":0.25,\"rate\":2.0,\"crc\":\"0000beef\","        \
    "\"id\":\"00000000deadbeef\",\"host\":\"worker1\",\"text\":\"a\\nb\","     \
    "\"mode\":null,\"error\":\"why\",\"color\":\"blue\",\"paint\":null,"       \
    "\"loss\":null,\"auc\":0.5,\"nested\":{\"loss\":1.0},\"extra\":0,"         \
    "\"entries\":[{\"index\":0},{\"index\":99,\"note\":\"n\"}],"               \
    "\"words\":[\"one\",\"two\"],\"settings\":{\"a\":[1]},\"list\":[null]}"

#define SAMPLE_SMALL                                                           \
    "{\"on\":false,\"small\":0,\"large\":0,\"unknown\":7,\"real\":0.0,"        \
    "\"rate\":0.0,\"crc\":\"00000000\",\"id\":\"0000000000000000\","           \
    "\"host\":\"\",\"text\":\"\",\"mode\":\"m\",\"color\":\"red\","            \
    "\"paint\":\"red\",\"loss\":1.5,\"entries\":[],\"settings\":{}}"

#endif
