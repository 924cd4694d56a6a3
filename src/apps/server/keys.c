/* API keys, from --api-key and --api-key-file. Only their hashes are kept, and these are compared
 * in a time that does not depend on where they differ. */
#include "apps/server/server.h"

#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/input.h"

static bool add_key(struct server_keys *keys, const char *text, size_t n)
{
    if (n == 0)
        return true;
    return keys->n < SERVER_KEYS_MAX &&
           gnutls_hash_fast(GNUTLS_DIG_SHA256, text, n, keys->hashes[keys->n++]) >= 0;
}

/* Adds the keys between commas. */
static bool add_list(struct server_keys *keys, const char *list)
{
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, ",");
        if (!add_key(keys, at, n))
            return false;
        at += n + (at[n] == ',');
    }
    return true;
}

/* Adds the key of each line; # begins a comment. */
static bool add_lines(struct server_keys *keys, const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && text[end] != '\n')
            end++;
        size_t from = i, to = from;
        while (to < end && text[to] != '#')
            to++;
        while (from < to && strchr(" \t\r", text[from]))
            from++;
        while (to > from && strchr(" \t\r", text[to - 1]))
            to--;
        if (!add_key(keys, text + from, to - from))
            return false;
        i = end + 1;
    }
    return true;
}

bool server_read_keys(const struct app_options *o, struct server_keys *out,
                      char why[APP_SHOWN_BYTES * 4])
{
    enum { WHY_BYTES = APP_SHOWN_BYTES * 4 };
    struct app_text text = { 0 };
    char shown[APP_SHOWN_BYTES];
    *out = (struct server_keys){ .n = 0 };
    bool good = !o->server.api_key || add_list(out, o->server.api_key);
    snprintf(why, WHY_BYTES, "at most %d keys are possible", SERVER_KEYS_MAX);
    if (good && o->server.api_key && out->n == 0) {
        snprintf(why, WHY_BYTES, "--api-key has no key");
        good = false;
    }
    if (good && o->server.api_key_file) {
        size_t before = out->n;
        app_show_text(o->server.api_key_file, shown);
        if (app_read_file("--api-key-file", o->server.api_key_file, &text) != APP_EXIT_OK) {
            snprintf(why, WHY_BYTES, "--api-key-file %s cannot be read", shown);
            good = false;
        } else if (!add_lines(out, text.bytes, text.n)) {
            good = false;
        } else if (out->n == before) {
            snprintf(why, WHY_BYTES, "--api-key-file %s has no key; expected one per line", shown);
            good = false;
        }
        if (text.bytes)
            explicit_bzero(text.bytes, text.n);
        free(text.bytes);
    }
    return good;
}

bool server_has_key(const struct server_keys *keys, const char *given)
{
    unsigned char hash[SERVER_HASH_BYTES];
    bool found = false;
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, given, strlen(given), hash) < 0)
        return false;
    for (size_t i = 0; i < keys->n; i++)
        found |= gnutls_memcmp(keys->hashes[i], hash, sizeof hash) == 0;
    return found;
}

/* ---- The process list --------------------------------------------------- */
static void overwrite(char *text)
{
    memset(text, '*', strlen(text));
}

/* The value of an argument that is --api-key: in it, or in the next one. NULL: it is another. */
static char *find_value(char *argument, char *next)
{
    static const char flag[] = "-api-key"; /* with one dash or two */
    size_t n = strlen(flag);
    char *name = argument + (argument[0] == '-' && argument[1] == '-');
    if (strncmp(name, flag, n) != 0)
        return NULL;
    return name[n] == '=' ? name + n + 1 : name[n] ? NULL : next;
}

char **server_hide_keys(int argc, char **argv)
{
    static char **copies;
    char *value;
    bool good = (copies = calloc((size_t)argc + 1, sizeof *copies)) != NULL;
    for (int i = 0; good && i < argc; i++)
        good = (copies[i] = strdup(argv[i])) != NULL;
    for (int i = 0; good && i < argc; i++)
        if ((value = find_value(argv[i], i + 1 < argc ? argv[i + 1] : NULL)) != NULL)
            overwrite(value);
    value = getenv("AKUNU_API_KEY");
    char *copy = good && value ? strdup(value) : NULL;
    if (copy && setenv("AKUNU_API_KEY", copy, 1) == 0)
        overwrite(value);
    free(copy);
    return good ? copies : argv;
}
