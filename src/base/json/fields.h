/* fields.h - structs as JSON, both ways, from one table of their fields.
 *
 * A pl_field describes one member of a struct: its name in JSON, its kind,
 * where it is, whether it may be missing, its range.  Writing follows the order
 * of the table; reading checks every value and fails with a sentence that names
 * the place: "per_worker: index 3: steps: expected an integer, found a string".
 * Members of JSON that the table does not name are skipped, so that a file of a
 * newer version can be read.
 *
 *     static const pl_field rows[] = {
 *         { "name", PL_FIELD_CHARS(shard, name) },
 *         { "bytes", PL_FIELD_INT(shard, bytes) },
 *         { "error", PL_FIELD_TEXT(shard, error), .when = PL_WHEN_SET },
 *     };
 *     const pl_fields shard_fields = PL_FIELDS(shard, rows);
 *
 * The macros check the type of the member.
 *
 * Threads: the tables are constant; a value belongs to one thread. */
#ifndef PL_BASE_JSON_FIELDS_H
#define PL_BASE_JSON_FIELDS_H

#include "base/json/json.h"

typedef struct pl_fields pl_fields;

typedef enum pl_field_kind {
    PL_KIND_BOOL,     /* bool */
    PL_KIND_INT,      /* int32_t, int64_t */
    PL_KIND_REAL,     /* double */
    PL_KIND_HEX,      /* uint32_t, uint64_t as 8 or 16 hexadecimal digits */
    PL_KIND_CHARS,    /* char[]: a longer text is refused */
    PL_KIND_TEXT,     /* const char *: borrowed from the JSON that was read */
    PL_KIND_OWN_TEXT, /* char *: a copy */
    PL_KIND_CHOICE,   /* an enum: the name in `choices` */
    PL_KIND_OBJECT,   /* a struct, as an object */
    PL_KIND_INLINE,   /* a struct, its fields in the object around it */
    PL_KIND_LIST,     /* a pointer to structs, with a size_t that counts them */
    PL_KIND_ANY_OBJECT, /* const pl_json *: an object of any members */
    PL_KIND_ANY_LIST,   /* const pl_json *: an array; both borrowed as TEXT */
} pl_field_kind;

/* When a field is written, and whether it may be missing when read. */
typedef enum pl_field_when {
    PL_WHEN_ALWAYS, /* required */
    PL_WHEN_KNOWN,  /* always written; older files lack it */
    PL_WHEN_SET,    /* written unless it has the value of a missing one */
    PL_WHEN_GIVEN,  /* written when the bool at `given` is true, otherwise left
                       out or, with or_null, null; reading sets the bool.
                       Several fields may share one. */
} pl_field_when;

typedef struct pl_field {
    const char *name; /* NULL: an INLINE; or the only field of a table, which
                         then describes a bare value: a list of texts is a LIST
                         of structs with one TEXT */
    pl_field_kind kind;
    size_t offset, size; /* of the member */
    pl_field_when when;
    size_t given;        /* offset of a bool, for PL_WHEN_GIVEN */
    bool or_null;        /* may be null: NAN, -1, NULL.  A field without this
                            reads as zero where it is missing, one with it as
                            null. */
    int64_t least, most; /* INT: both 0: any that is not negative.  LIST: the
                            most entries, required */
    const char *const *choices; /* CHOICE: names by value, then NULL */
    const pl_fields *fields;    /* OBJECT, INLINE, LIST */
    size_t count;               /* LIST: offset of its size_t */
} pl_field;

struct pl_fields {
    const pl_field *list;
    size_t count;
    size_t size; /* of the struct */
};

#define PL_FIELDS(type, rows)                                                  \
    {                                                                          \
        rows, sizeof(rows) / sizeof *(rows), sizeof(type)                      \
    }

#define PL_FIELD_AT_(kind_, type, member, check)                               \
    .kind = (kind_), .offset = offsetof(type, member) + (check),               \
    .size = sizeof(((type *)0)->member)

#define PL_FIELD_BOOL(type, member)                                            \
    PL_FIELD_AT_(PL_KIND_BOOL, type, member,                                   \
                 _Generic(((type *)0)->member, bool : 0))
#define PL_FIELD_INT(type, member)                                             \
    PL_FIELD_AT_(PL_KIND_INT, type, member,                                    \
                 _Generic(((type *)0)->member, int32_t : 0, int64_t : 0))
#define PL_FIELD_REAL(type, member)                                            \
    PL_FIELD_AT_(PL_KIND_REAL, type, member,                                   \
                 _Generic(((type *)0)->member, double : 0))
#define PL_FIELD_HEX(type, member)                                             \
    PL_FIELD_AT_(PL_KIND_HEX, type, member,                                    \
                 _Generic(((type *)0)->member, uint32_t : 0, uint64_t : 0))
#define PL_FIELD_CHARS(type, member)                                           \
    PL_FIELD_AT_(PL_KIND_CHARS, type, member,                                  \
                 0 * sizeof((char(*)[sizeof(((type *)0)->member)])0 ==         \
                            &((type *)0)->member))
#define PL_FIELD_TEXT(type, member)                                            \
    PL_FIELD_AT_(PL_KIND_TEXT, type, member,                                   \
                 _Generic(((type *)0)->member, const char * : 0))
#define PL_FIELD_OWN_TEXT(type, member)                                        \
    PL_FIELD_AT_(PL_KIND_OWN_TEXT, type, member,                               \
                 _Generic(((type *)0)->member, char * : 0))
#define PL_FIELD_CHOICE(type, member, names)                                   \
    PL_FIELD_AT_(PL_KIND_CHOICE, type, member,                                 \
                 PL_FIELD_SIZE_(type, member, sizeof(int))),                   \
        .choices = (names)
#define PL_FIELD_OBJECT(type, member, table)                                   \
    PL_FIELD_AT_(PL_KIND_OBJECT, type, member, 0), .fields = (table)
#define PL_FIELD_INLINE(type, member, table)                                   \
    PL_FIELD_AT_(PL_KIND_INLINE, type, member, 0), .fields = (table)
#define PL_FIELD_LIST(type, member, counter, table)                            \
    PL_FIELD_AT_(PL_KIND_LIST, type, member,                                   \
                 PL_FIELD_SIZE_(type, member, sizeof(void *))),                \
        .fields = (table),                                                     \
        .count = offsetof(type, counter) +                                     \
                 _Generic(((type *)0)->counter, size_t : 0)
#define PL_FIELD_ANY_OBJECT(type, member)                                      \
    PL_FIELD_AT_(PL_KIND_ANY_OBJECT, type, member,                             \
                 _Generic(((type *)0)->member, const pl_json * : 0))
#define PL_FIELD_ANY_LIST(type, member)                                        \
    PL_FIELD_AT_(PL_KIND_ANY_LIST, type, member,                               \
                 _Generic(((type *)0)->member, const pl_json * : 0))

/* { "lost", PL_FIELD_INT(row, lost), PL_FIELD_GIVEN(row, has_lost) } */
#define PL_FIELD_GIVEN(type, member)                                           \
    .when = PL_WHEN_GIVEN,                                                     \
    .given = offsetof(type, member) + _Generic(((type *)0)->member, bool : 0)

/* 0, when the member has that size. */
#define PL_FIELD_SIZE_(type, member, bytes)                                    \
    (0 * sizeof(char[sizeof(((type *)0)->member) == (bytes) ? 1 : -1]))

/* The struct as an object; the caller frees *out. */
pl_status pl_fields_write(const pl_fields *fields, const void *from,
                          pl_json **out) PL_MUST_CHECK;
/* The same, added to an object. */
pl_status pl_fields_add(const pl_fields *fields, const void *from,
                        pl_json *object) PL_MUST_CHECK;
/* The same as text; `indent` is that of pl_json_text. */
pl_status pl_fields_text(const pl_fields *fields, const void *from, int indent,
                         char **out) PL_MUST_CHECK;

/* Fill the struct with the values of missing fields. */
void pl_fields_clear(const pl_fields *fields, void *of);

/* Fill the struct, whatever was in it.  PL_FORMAT when a value is missing or
 * does not match the table; then there is nothing to close. */
pl_status pl_fields_read(const pl_fields *fields, const pl_json *json,
                         void *to) PL_MUST_CHECK;
/* The same from text, for a table that borrows nothing; `what` names it in
 * messages. */
pl_status pl_fields_parse(const pl_fields *fields, const char *text,
                          size_t bytes, const char *what,
                          void *to) PL_MUST_CHECK;
/* Free what reading allocated (lists, OWN_TEXT) and zero the struct; one that
 * is zeroed is fine. */
void pl_fields_close(const pl_fields *fields, void *of);

/* The INT or REAL of that name in JSON; NAN when the table has none, or the
 * value is not known. */
double pl_fields_number(const pl_fields *fields, const void *of,
                        const char *name);

#endif
