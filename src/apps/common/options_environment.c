/* Flags from the environment: AKUNU_CTX_SIZE is --ctx-size. Every spelling of a flag is one. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "apps/common/configuration.h"
#include "apps/common/message.h"

extern char **environ;

static const char prefix[] = "AKUNU_";

/* "AKUNU_CTX_SIZE" for "ctx-size". `out` holds APP_ENV_BYTES. */
static void variable_name(const char *spelling, char *out)
{
    size_t n = strlen(prefix);
    memcpy(out, prefix, n);
    for (; *spelling && n + 1 < APP_ENV_BYTES; spelling++)
        out[n++] = *spelling == '-' ? '_' : (char)toupper((unsigned char)*spelling);
    out[n] = '\0';
}

static void read_one(const struct app_flag *flag, struct app_option_value *value)
{
    char name[APP_ENV_BYTES];
    for (int k = 0; k < APP_N_SPELLINGS; k++) {
        const char *spelling = app_flag_spelling(flag, k);
        if (!spelling)
            continue;
        variable_name(spelling, name);
        const char *text = getenv(name);
        if (!text || !*text)
            continue;
        value->source = APP_SOURCE_ENVIRONMENT;
        value->joint = "=";
        value->text = text;
        value->all = (struct app_texts){ 1, { text } };
        memcpy(value->shown, name, sizeof name);
        return;
    }
}

/* ---- Unknown variables -------------------------------------------------- */
/* What begins with AKUNU_ and is no flag: variables of the library and of its tests. */
static bool is_other(const char *name, size_t n)
{
    static const char *const names[] = { "BLAS", "LIBRARY", "MPI", "OPENCL" };
    static const char *const families[] = { "TEST_", "REQUIRE_", "FAKE_", "PEER_" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && memcmp(name, names[i], n) == 0)
            return true;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (n > strlen(families[i]) && memcmp(name, families[i], strlen(families[i])) == 0)
            return true;
    return false;
}

/* Warns of a variable that no command reads. `name` has n bytes after the prefix. */
static void check_name(const char *name, size_t n)
{
    char spelling[APP_ENV_BYTES], known[APP_ENV_BYTES];
    const char *words[2 * APP_MAX_FLAGS];
    size_t n_words = 0;
    if (n == 0 || n >= sizeof spelling || is_other(name, n))
        return;
    for (size_t i = 0; i < n; i++)
        spelling[i] = name[i] == '_' ? '-' : (char)tolower((unsigned char)name[i]);
    spelling[n] = '\0';
    for (size_t i = 0; i < app_n_flags; i++) {
        for (int k = 0; k < APP_N_SPELLINGS; k++) {
            const char *text = app_flag_spelling(&app_flags[i], k);
            if (text && strcasecmp(text, spelling) == 0)
                return;
            if (text && k < 2)
                words[n_words++] = text;
        }
    }
    const char *nearest = app_find_nearest(spelling, words, n_words);
    if (nearest)
        variable_name(nearest, known);
    app_warn("%s%.*s in the environment is not known%s%s%s", prefix, (int)n, name,
             nearest ? "; did you mean " : "", nearest ? known : "", nearest ? "?" : "");
}

void app_read_environment(const struct app_command *command, struct app_option_value *values)
{
    for (size_t i = 0; i < app_n_flags; i++)
        if ((app_flags[i].commands & command->bit) && values[i].source == APP_SOURCE_NONE &&
            !app_is_help(&app_flags[i]))
            read_one(&app_flags[i], &values[i]);
    for (char **entry = environ; *entry; entry++)
        if (strncmp(*entry, prefix, strlen(prefix)) == 0)
            check_name(*entry + strlen(prefix), strcspn(*entry, "=") - strlen(prefix));
}
