/* Lists of keys as words: NAME, NAME=VALUE or NAME?=VALUE, separated by spaces. A * in a name
 * stands for any text. */
#include <stdlib.h>
#include <string.h>

#include "engine/spec/known_keys.h"

enum { NUMBER_BYTES = 40 };

bool ak_words_next(const char **at, struct ak_word *out)
{
    const char *s = *at + strspn(*at, " ");
    size_t n = strcspn(s, " "), name = strcspn(s, "= ");
    if (n == 0)
        return false;
    *at = s + n;
    name = name < n ? name : n;
    bool nullable = name > 0 && s[name - 1] == '?';
    *out = (struct ak_word){ .name = s,
                             .n_name = name - nullable,
                             .value = name < n ? s + name + 1 : NULL,
                             .n_value = name < n ? n - name - 1 : 0,
                             .nullable = nullable };
    return true;
}

bool ak_words_match(const struct ak_word *word, const char *key)
{
    size_t n = strlen(key);
    const char *star = memchr(word->name, '*', word->n_name);
    if (!star)
        return n == word->n_name && memcmp(key, word->name, n) == 0;
    size_t before = (size_t)(star - word->name), after = word->n_name - before - 1;
    return n >= before + after && memcmp(key, word->name, before) == 0 &&
           memcmp(key + n - after, star + 1, after) == 0;
}

bool ak_words_find(const char *words, const char *key, struct ak_word *out)
{
    while (words && ak_words_next(&words, out))
        if (ak_words_match(out, key))
            return true;
    return false;
}

bool ak_word_value(const struct ak_word *word, struct ak_meta *out)
{
    char text[NUMBER_BYTES];
    char *end;
    if (!word->value)
        return false;
    *out = (struct ak_meta){ .key = "", .kind = AK_META_STRING, .n = word->n_value };
    out->as.string = word->value;
    if (word->n_value >= sizeof text || word->n_value == 0)
        return true;
    memcpy(text, word->value, word->n_value);
    text[word->n_value] = '\0';
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        *out = (struct ak_meta){ .key = "", .kind = AK_META_BOOL, .n = 1 };
        out->as.boolean = text[0] == 't';
        return true;
    }
    long long integer = strtoll(text, &end, 10);
    if (*end == '\0') {
        *out = (struct ak_meta){ .key = "", .kind = AK_META_INT, .n = 1 };
        out->as.integer = integer;
        return true;
    }
    double number = strtod(text, &end);
    if (*end == '\0') {
        *out = (struct ak_meta){ .key = "", .kind = AK_META_FLOAT, .n = 1 };
        out->as.number = number;
    }
    return true;
}

static bool as_number(const struct ak_meta *meta, double *out)
{
    *out = meta->kind == AK_META_FLOAT ? meta->as.number :
           meta->kind == AK_META_INT   ? (double)meta->as.integer :
           meta->kind == AK_META_UINT  ? (double)meta->as.unsigned_integer :
                                         0.0;
    return meta->kind == AK_META_FLOAT || meta->kind == AK_META_INT || meta->kind == AK_META_UINT;
}

/* [] is an empty list, and {} would be one of no keys, which is no value at all. GGUF's 32-bit
 * floats are compared as such. */
bool ak_word_equals(const struct ak_word *word, const struct ak_meta *value)
{
    struct ak_meta own;
    double a, b;
    if (!ak_word_value(word, &own))
        return false;
    if (as_number(&own, &a) && as_number(value, &b))
        return (float)a == (float)b;
    if (value->kind == AK_META_ARRAY)
        return value->n == 0 && own.kind == AK_META_STRING && own.n == 2 &&
               memcmp(own.as.string, "[]", 2) == 0;
    if (own.kind != value->kind)
        return false;
    return own.kind == AK_META_BOOL ?
               own.as.boolean == value->as.boolean :
               own.n == value->n && memcmp(own.as.string, value->as.string, own.n) == 0;
}
