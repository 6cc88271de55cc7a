#include "job/member/settings.h"

#include "support/unit.h"

static pl_json *parsed(const char *text)
{
    pl_json *json;
    assert_ok(pl_json_parse(&json, text, strlen(text), "settings"));
    return json;
}

static void settings_name_the_first_that_differs(void **state)
{
    (void)state;
    static const struct {
        const char *task, *says;
    } cases[] = {
        { "{\"lr\": \"0.1\", \"batch\": \"100\"}", NULL },
        { "{\"lr\": \"0.1\", \"batch\": \"100\", \"own\": \"1\"}", NULL },
        { "{\"lr\": \"0.2\", \"batch\": \"100\"}",
          "--lr is 0.2 at worker 1 and 0.1 at the chief" },
        { "{\"lr\": \"0.1\"}",
          "--batch is nothing at worker 1 and 100 at the chief" },
    };
    pl_json *job = parsed("{\"lr\": \"0.1\", \"batch\": \"100\"}");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_json *task = parsed(cases[i].task);
        pl_status status =
            pl_settings_compare(task, "at worker 1", job, "at the chief");
        if (cases[i].says == NULL)
            assert_ok(status);
        else
            assert_fails(PL_USAGE, cases[i].says, status);
        pl_json_free(task);
    }
    pl_json_free(job);
}

UNIT_TESTS(cmocka_unit_test(settings_name_the_first_that_differs))
