/* The history file: what is kept, that it has a limit, and that programs can share it. */
#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/cli/chat/history.h"

static char folder[64], path[128];

static void set_up(void)
{
    strcpy(folder, "/tmp/akunu-history-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/state/akunu/history", folder);
}

static void tear_down(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

struct lines {
    size_t n;
    char last[64];
};

static void take(const char *line, void *user)
{
    struct lines *lines = user;
    lines->n++;
    snprintf(lines->last, sizeof lines->last, "%s", line);
}

static struct lines read_lines(void)
{
    struct lines lines = { 0 };
    cli_history_read(path, take, &lines);
    return lines;
}

static mode_t mode_of(const char *name)
{
    struct stat info;
    ck_assert_int_eq(stat(name, &info), 0);
    return info.st_mode & 0777;
}

START_TEST(kept)
{
    bool created = false;
    char name[128];
    ck_assert_uint_eq(read_lines().n, 0);
    ck_assert_int_eq(cli_history_add(path, "one", &created), 0);
    ck_assert(created);
    ck_assert_int_eq(cli_history_add(path, "two", &created), 0);
    ck_assert(!created);
    ck_assert_int_eq(cli_history_add(path, "", &created), 0);
    struct lines lines = read_lines();
    ck_assert_uint_eq(lines.n, 2);
    ck_assert_str_eq(lines.last, "two");
    ck_assert_uint_eq(mode_of(path), 0600);
    snprintf(name, sizeof name, "%s/state/akunu", folder);
    ck_assert_uint_eq(mode_of(name), 0700);
    /* a file that others may read does not stay one */
    chmod(path, 0644);
    ck_assert_int_eq(cli_history_add(path, "three", &created), 0);
    ck_assert_uint_eq(mode_of(path), 0600);
}
END_TEST

START_TEST(unfinished)
{
    bool created;
    ck_assert_int_eq(cli_history_add(path, "one", &created), 0);
    write_file("one\ntw"); /* as an editor or a crash leaves it */
    ck_assert_int_eq(cli_history_add(path, "three", &created), 0);
    struct lines lines = read_lines();
    ck_assert_uint_eq(lines.n, 3);
    ck_assert_str_eq(lines.last, "three");
}
END_TEST

START_TEST(limit)
{
    bool created;
    struct stat info;
    char line[2000];
    memset(line, 'x', sizeof line);
    for (int i = 0; i < 400; i++) { /* three times the limit */
        line[sprintf(line, "%d", i)] = ' ';
        line[sizeof line - 1] = '\0';
        ck_assert_int_eq(cli_history_add(path, line, &created), 0);
        ck_assert_int_eq(stat(path, &info), 0);
        ck_assert_int_le(info.st_size, CLI_HISTORY_BYTES);
    }
    struct lines lines = read_lines();
    ck_assert_uint_ge(lines.n, 50); /* half a file at least */
    ck_assert(strncmp(lines.last, "399 ", 4) == 0);

    char *endless = malloc(CLI_HISTORY_LINE + 2);
    ck_assert_ptr_nonnull(endless);
    memset(endless, 'y', CLI_HISTORY_LINE + 1);
    endless[CLI_HISTORY_LINE + 1] = '\0';
    ck_assert_int_eq(cli_history_add(path, endless, &created), 0);
    ck_assert_uint_eq(read_lines().n, lines.n);
    free(endless);
}
END_TEST

/* Each line is one that a writer wrote. */
static void check_line(const char *line, void *user)
{
    int writer = -1, i = -1, length = 0;
    size_t *n = user;
    ck_assert_int_eq(sscanf(line, "writer %d line %d end%n", &writer, &i, &length), 2);
    ck_assert_int_eq(length, (int)strlen(line));
    ++*n;
}

START_TEST(shared)
{
    enum { WRITERS = 4, LINES = 300 };
    size_t n = 0;
    for (int w = 0; w < WRITERS; w++)
        if (fork() == 0) {
            char line[64];
            bool created;
            for (int i = 0; i < LINES; i++) {
                snprintf(line, sizeof line, "writer %d line %d end", w, i);
                if (cli_history_add(path, line, &created) != 0)
                    _exit(1);
            }
            _exit(0);
        }
    for (int w = 0; w < WRITERS; w++) {
        int status = -1;
        wait(&status);
        ck_assert_int_eq(status, 0);
    }
    cli_history_read(path, check_line, &n);
    ck_assert_uint_eq(n, WRITERS * LINES);
}
END_TEST

START_TEST(no_file)
{
    bool created;
    strcpy(path, "/dev/null");
    ck_assert_int_eq(cli_history_add(path, "one", &created), 0);
    ck_assert_uint_eq(mode_of(path), 0666);
    strcpy(path, folder);
    ck_assert_int_ne(cli_history_add(path, "one", &created), 0);
    ck_assert_uint_eq(read_lines().n, 0);
    snprintf(path, sizeof path, "/dev/null/history");
    ck_assert_int_ne(cli_history_add(path, "one", &created), 0);
}
END_TEST

START_TEST(place)
{
    setenv("HOME", "/home/ada", 1);
    setenv("XDG_STATE_HOME", "/state", 1);
    char *name = cli_history_path();
    ck_assert_str_eq(name, "/state/akunu/history");
    free(name);
    setenv("XDG_STATE_HOME", "relative", 1);
    name = cli_history_path();
    ck_assert_str_eq(name, "/home/ada/.local/state/akunu/history");
    free(name);
    unsetenv("HOME");
    ck_assert_ptr_null(cli_history_path());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("history");
    TCase *tests = tcase_create("history");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, kept);
    tcase_add_test(tests, unfinished);
    tcase_add_test(tests, limit);
    tcase_add_test(tests, shared);
    tcase_add_test(tests, no_file);
    tcase_add_test(tests, place);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
