/* The error of the last call, for tests of the public API's refusals. */
#ifndef AK_TESTS_API_FAILURE_H
#define AK_TESTS_API_FAILURE_H

#include "tests/test.h"
#include <string.h>

#include "akunu/akunu.h"

/* The last call failed with `status`, and its message has `said`. */
static inline void failed_with(enum akunu_status status, const char *said)
{
    ck_assert_msg(akunu_last_status() == status && strstr(akunu_last_error(), said),
                  "%s: '%s' lacks '%s'", akunu_status_name(akunu_last_status()), akunu_last_error(),
                  said);
}

/* A failure of another kind, so that the next call's own shows. */
static inline void forget(void)
{
    ck_assert_ptr_null(akunu_file_open("/nowhere"));
    failed_with(AKUNU_ERROR_FORMAT, "/nowhere");
}

#endif
