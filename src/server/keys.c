/* API keys, from --api-key and --api-key-file. They are compared in a time that does not depend on
 * where a wrong key differs. */
#include "server/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/input.h"

static bool add_key(struct server_keys *keys, const char *text, size_t n)
{
    if (n == 0)
        return true;
    if (keys->n == SERVER_KEYS_MAX || !(keys->values[keys->n] = strndup(text, n)))
        return false;
    keys->n++;
    return true;
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

bool server_read_keys(const struct cli_options *o, struct server_keys *out,
                      char why[CLI_SHOWN_BYTES * 4])
{
    enum { WHY_BYTES = CLI_SHOWN_BYTES * 4 };
    struct cli_text text = { 0 };
    char shown[CLI_SHOWN_BYTES];
    *out = (struct server_keys){ .n = 0 };
    bool good = !o->api_key || add_list(out, o->api_key);
    snprintf(why, WHY_BYTES, "at most %d keys are possible", SERVER_KEYS_MAX);
    if (good && o->api_key && out->n == 0) {
        snprintf(why, WHY_BYTES, "--api-key has no key");
        good = false;
    }
    if (good && o->api_key_file) {
        size_t before = out->n;
        cli_show_text(o->api_key_file, shown);
        if (cli_read_file("--api-key-file", o->api_key_file, &text) != CLI_EXIT_OK) {
            snprintf(why, WHY_BYTES, "--api-key-file %s cannot be read", shown);
            good = false;
        } else if (!add_lines(out, text.bytes, text.n)) {
            good = false;
        } else if (out->n == before) {
            snprintf(why, WHY_BYTES, "--api-key-file %s has no key; expected one per line", shown);
            good = false;
        }
        free(text.bytes);
    }
    if (!good)
        server_free_keys(out);
    return good;
}

void server_free_keys(struct server_keys *keys)
{
    for (size_t i = 0; i < keys->n; i++)
        free(keys->values[i]);
    keys->n = 0;
}

/* Looks at all bytes of `given`, whether they differ or not. */
static bool is_equal(const char *key, const char *given)
{
    size_t n_key = strlen(key), n = strlen(given);
    unsigned difference = n_key != n;
    for (size_t i = 0; i < n; i++)
        difference |=
            (unsigned)(unsigned char)given[i] ^ (unsigned)(unsigned char)key[n_key ? i % n_key : 0];
    return difference == 0;
}

bool server_has_key(const struct server_keys *keys, const char *given)
{
    bool found = false;
    for (size_t i = 0; i < keys->n; i++)
        found |= is_equal(keys->values[i], given);
    return found;
}
