/* Converts the text of a value, from any source, to the member of struct app_options. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "apps/common/configuration.h"
#include "apps/common/input.h"
#include "apps/common/message.h"

int app_fail_value(const struct app_option_value *f, const char *format, ...)
{
    char expected[512], value[APP_SHOWN_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(expected, sizeof expected, format, arguments);
    va_end(arguments);
    if (f->file)
        return app_fail_usage("%s:%lu: %s%s%s: %s", f->file, f->line, f->shown, f->joint,
                              app_show_text(f->text, value), expected);
    return app_fail_usage("%s%s%s: %s", f->shown, f->joint, app_show_text(f->text, value),
                          expected);
}

static bool is_one_of(const char *text, const char *const *words, unsigned *index)
{
    for (unsigned i = 0; words && words[i]; i++)
        if (strcmp(text, words[i]) == 0) {
            *index = i;
            return true;
        }
    return false;
}

bool app_takes_next(const struct app_flag *flag, const char *next)
{
    unsigned index;
    if (flag->kind == APP_FLAG_BOOL || !next)
        return false;
    return !flag->otherwise || is_one_of(next, flag->choices, &index);
}

/* Compares without case, so that YAML's words match too. */
static bool is_word(const char *text, const char *const *words)
{
    while (*words && strcasecmp(text, *words) != 0)
        words++;
    return *words != NULL;
}

static int set_bool(const struct app_option_value *f, bool *out)
{
    static const char *const yes[] = { "1", "true", "yes", "on", NULL };
    static const char *const no[] = { "0", "false", "no", "off", NULL };
    *out = is_word(f->text, yes);
    if (*out || is_word(f->text, no))
        return APP_EXIT_OK;
    return app_fail_value(f, "expected %s", f->file ? "true or false" : "1 or 0");
}

static int set_enum(const struct app_flag *flag, const struct app_option_value *f, unsigned *out)
{
    char known[256] = "";
    size_t n = 0;
    if (is_one_of(f->text, flag->choices, out))
        return APP_EXIT_OK;
    for (int i = 0; flag->choices[i] && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", flag->choices[i]);
    return app_fail_value(f, "expected one of %s", known);
}

static int bad_number(const struct app_flag *flag, const struct app_option_value *f,
                      const char *kind)
{
    if (flag->low == APP_ABOVE_ZERO)
        return app_fail_value(f, "expected %s above 0, up to %.10g", kind, flag->high);
    return app_fail_value(f, "expected %s from %.10g to %.10g", kind, flag->low, flag->high);
}

static bool in_range(const struct app_flag *flag, double value)
{
    return value >= flag->low && value <= flag->high;
}

/* Appends the numbers of one value. */
static int add_to_list(const struct app_flag *flag, const struct app_option_value *f,
                       struct app_list *out)
{
    for (const char *p = f->text;; p++) {
        size_t n = strcspn(p, ",");
        char word[24];
        if (out->n == APP_MAX_LIST)
            return app_fail_value(f, "more than %d numbers", APP_MAX_LIST);
        if (n >= sizeof word)
            return bad_number(flag, f, "whole numbers with commas between,");
        memcpy(word, p, n);
        word[n] = '\0';
        int64_t *value = &out->values[out->n++];
        if (!app_parse_int(word, value) || !in_range(flag, (double)*value))
            return bad_number(flag, f, "whole numbers with commas between,");
        p += n;
        if (*p == '\0')
            return APP_EXIT_OK;
    }
}

static int set_list(const struct app_flag *flag, const struct app_option_value *f,
                    struct app_list *out)
{
    int code = APP_EXIT_OK;
    out->n = 0;
    for (size_t i = 0; i < f->all.n && code == APP_EXIT_OK; i++) {
        struct app_option_value one = *f;
        one.text = f->all.values[i];
        code = add_to_list(flag, &one, out);
    }
    return code;
}

static int set_integer(const struct app_flag *flag, const struct app_option_value *f, int64_t *out)
{
    if (!app_parse_int(f->text, out) || !in_range(flag, (double)*out))
        return bad_number(flag, f, "a whole number");
    return APP_EXIT_OK;
}

static int set_real(const struct app_flag *flag, const struct app_option_value *f, float *out)
{
    double value;
    if (!app_parse_real(f->text, &value) || !in_range(flag, value))
        return bad_number(flag, f, "a number");
    *out = (float)value;
    return APP_EXIT_OK;
}

/* "500M", "3.5G"; a plain number is one of GB. The range is in bytes. */
static int set_size(const struct app_flag *flag, const struct app_option_value *f, uint64_t *out)
{
    double gigabytes;
    bool known = app_parse_real(f->text, &gigabytes);
    if (known && in_range(flag, gigabytes * 1e9))
        *out = (uint64_t)(gigabytes * 1e9);
    else if (known || !app_parse_size(f->text, out) || !in_range(flag, (double)*out))
        return app_fail_value(f,
                              "expected a size such as 500M or 3.5G, or a number of GB, above 0 "
                              "and up to %.10gG",
                              flag->high / 1e9);
    return APP_EXIT_OK;
}

bool app_means_default(const struct app_flag *flag, const struct app_option_value *f)
{
    return flag->as_default && strcmp(f->text, flag->as_default) == 0;
}

int app_set_value(const struct app_flag *flag, const struct app_option_value *f,
                  struct app_options *options)
{
    void *member = (char *)options + flag->offset;
    int64_t integer = 0;
    int code = APP_EXIT_OK;
    switch (flag->kind) {
    case APP_FLAG_BOOL: return set_bool(f, member);
    case APP_FLAG_TEXT: *(const char **)member = f->text; return APP_EXIT_OK;
    case APP_FLAG_I64: return set_integer(flag, f, member);
    case APP_FLAG_I32:
        code = set_integer(flag, f, &integer);
        *(int32_t *)member = (int32_t)integer;
        return code;
    case APP_FLAG_U32:
        code = set_integer(flag, f, &integer);
        *(uint32_t *)member = (uint32_t)integer;
        return code;
    case APP_FLAG_F32: return set_real(flag, f, member);
    case APP_FLAG_SIZE: return set_size(flag, f, member);
    case APP_FLAG_LIST: return set_list(flag, f, member);
    case APP_FLAG_TEXTS: *(struct app_texts *)member = f->all; return APP_EXIT_OK;
    case APP_FLAG_ENUM: return set_enum(flag, f, member);
    }
    return APP_EXIT_USAGE;
}
