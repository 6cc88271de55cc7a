#include "base/record/confusion.h"

#include "support/folder.h"

#include <math.h>

static pl_status read_text(pl_confusion *c, const char *folder,
                           const char *text)
{
    assert_ok(pl_file_replace(test_path(folder, "confusion.json"), text,
                              strlen(text)));
    return pl_confusion_read(c, folder);
}

static void confusion_reads_what_it_writes(void **state)
{
    static const char text[] =
        "{\"step\":7,\"classes\":2,\"counts\":[3,0,1,0],\"width\":2,\"height\":"
        "1,\"channels\":1,\"misclassified\":[{\"index\":4,\"label\":1,"
        "\"predicted\":0,\"probability\":0.75,\"pixels\":\"AAE=\"}]}";
    pl_confusion c;
    char *again;
    assert_ok(read_text(&c, *state, text));
    assert_ok(pl_fields_text(&pl_confusion_fields, &c, 0, &again));
    assert_string_equal(text, again);
    pl_mem_free(again);
    pl_class_result one = pl_confusion_class(&c, 1);
    assert_true(isnan(one.precision) && one.recall == 0 && one.f1 == 0);
    assert_int_equal(0, one.taken_for);
    pl_confusion_close(&c);
}

static void confusion_refuses_inconsistent_fields(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "{\"step\":1,\"classes\":3,\"counts\":[1],\"misclassified\":[]}",
          "counts: 1 numbers, expected 9" },
        { "{\"step\":1,\"classes\":1,\"counts\":[9223372036854775807],"
          "\"misclassified\":[]}",
          "is not in" },
        { "{\"step\":1,\"classes\":101,\"counts\":[],\"misclassified\":[]}",
          "classes: 101" },
        { "{\"step\":1,\"classes\":1,\"counts\":[1],\"misclassified\":[{"
          "\"index\":0,\"label\":1,\"predicted\":0,\"probability\":1}]}",
          "label 1 and answer 0 of 1 classes" },
        { "{\"step\":1,\"classes\":1,\"counts\":[1],\"width\":2,\"height\":2,"
          "\"channels\":1,\"misclassified\":[{\"index\":0,\"label\":0,"
          "\"predicted\":0,\"probability\":1,\"pixels\":\"AAE=\"}]}",
          "expected base64 of 4 bytes" },
        { "{\"step\":1,\"classes\":1,\"counts\":[1],\"width\":2,\"height\":2,"
          "\"channels\":2,\"misclassified\":[]}",
          "channels: found 2, expected 1 or 3" },
    };
    pl_confusion c;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(PL_FORMAT, cases[i].says,
                     read_text(&c, *state, cases[i].text));
    assert_fails(PL_NOTFOUND, "",
                 pl_confusion_read(&c, test_path(*state, "none")));
}

UNIT_TESTS(TEST_IN_FOLDER(confusion_reads_what_it_writes),
           TEST_IN_FOLDER(confusion_refuses_inconsistent_fields))
