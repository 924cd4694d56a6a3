/* The exit codes that scripts rely on, and what goes with each on standard error. */
#include "tests/test.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/handles.h"
#include "apps/common/message.h"

/* ---- Standard error ----------------------------------------------------- */
static int kept_stderr, file_of_stderr;

static void catch_stderr(void)
{
    char path[] = "/tmp/akunu-message-XXXXXX";
    file_of_stderr = mkstemp(path);
    ck_assert_int_ge(file_of_stderr, 0);
    unlink(path);
    fflush(stderr);
    kept_stderr = dup(STDERR_FILENO);
    ck_assert_int_eq(dup2(file_of_stderr, STDERR_FILENO), STDERR_FILENO);
}

/* What was written since catch_stderr; valid until the next call. */
static const char *caught(void)
{
    static char text[256];
    fflush(stderr);
    dup2(kept_stderr, STDERR_FILENO);
    close(kept_stderr);
    ssize_t n = pread(file_of_stderr, text, sizeof text - 1, 0);
    close(file_of_stderr);
    text[n < 0 ? 0 : n] = '\0';
    return text;
}

/* ---- Codes -------------------------------------------------------------- */
static const struct {
    enum akunu_status status;
    int code;
} codes[] = {
    { AKUNU_OK, 0 },           { AKUNU_ERROR_ARGUMENT, 2 },
    { AKUNU_ERROR_FORMAT, 3 }, { AKUNU_ERROR_UNSUPPORTED, 3 },
    { AKUNU_ERROR_MEMORY, 4 }, { AKUNU_ERROR_CONTEXT, 1 },
    { AKUNU_ERROR_IO, 1 },     { AKUNU_ERROR_CANCELLED, 130 },
    { AKUNU_ERROR_SYSTEM, 1 }, { AKUNU_ERROR_NUMERIC, 1 },
    { AKUNU_ERROR_BUSY, 1 },
};
enum { N_CODES = sizeof codes / sizeof *codes };

START_TEST(statuses)
{
    ck_assert_int_eq(codes[_i].status, _i); /* each of the header's, in its order */
    ck_assert_int_eq(app_exit_code(codes[_i].status), codes[_i].code);
}
END_TEST

/* A status that a newer library has. */
START_TEST(unknown_status)
{
    ck_assert_int_eq(app_exit_code((enum akunu_status)N_CODES), 1);
}
END_TEST

/* One line says why; only who pressed Ctrl-C knows it already. */
START_TEST(library_failures)
{
    struct ak_error error = { .status = codes[_i].status };
    strcpy(error.message, "a reason");
    (void)ak_api_finish(&error);
    catch_stderr();
    int code = app_fail_library();
    const char *said = caught();
    ck_assert_int_eq(code, codes[_i].code);
    ck_assert_str_eq(said,
                     codes[_i].status == AKUNU_ERROR_CANCELLED ? "" : "akunu-cli: a reason\n");
}
END_TEST

START_TEST(own_failures)
{
    catch_stderr();
    const int got[] = { app_fail_usage("bad %s", "flag"), app_fail("bad %s", "luck"),
                        app_fail_memory() };
    const char *said = caught();
    ck_assert_int_eq(got[0], 2);
    ck_assert_int_eq(got[1], 1);
    ck_assert_int_eq(got[2], 4);
    ck_assert_str_eq(said, "akunu-cli: bad flag\nakunu-cli: bad luck\nakunu-cli: out of memory\n");
}
END_TEST

/* ---- Ctrl-C ------------------------------------------------------------- */
static void restore(void)
{
    (void)!write(STDERR_FILENO, "restored", 8);
}

/* The second Ctrl-C ends the program, and the terminal is as it was before. */
START_TEST(second_interrupt)
{
    int status = -1;
    catch_stderr();
    pid_t child = fork();
    if (child == 0) {
        app_interrupt_install();
        app_interrupt_at_exit(restore);
        raise(SIGINT);
        if (app_is_interrupted())
            raise(SIGINT);
        _exit(1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    const char *said = caught();
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 130);
    ck_assert_str_eq(said, "restored");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("message");
    TCase *tests = tcase_create("codes");
    tcase_add_loop_test(tests, statuses, 0, N_CODES);
    tcase_add_test(tests, unknown_status);
    tcase_add_loop_test(tests, library_failures, 1, N_CODES);
    tcase_add_test(tests, own_failures);
    tcase_add_test(tests, second_interrupt);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
