/* Upper, lower and title case as in Python, which follows Unicode's full mappings. */
#include "text/template/jinja/builtins.h"

#include <string.h>
#include <utf8proc.h>

#include "base/unicode.h"

static utf8proc_category_t category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

bool ak_j_is_letter(uint32_t c)
{
    utf8proc_category_t k = category(c);
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool ak_j_is_upper_char(uint32_t c)
{
    return category(c) == UTF8PROC_CATEGORY_LU || (c >= 0x2160 && c <= 0x216F) ||
           (c >= 0x24B6 && c <= 0x24CF);
}

bool ak_j_is_lower_char(uint32_t c)
{
    return category(c) == UTF8PROC_CATEGORY_LL || c == 0xAA || c == 0xBA ||
           (c >= 0x2170 && c <= 0x217F) || (c >= 0x24D0 && c <= 0x24E9);
}

bool ak_j_is_cased(uint32_t c)
{
    return ak_j_is_upper_char(c) || ak_j_is_lower_char(c) || category(c) == UTF8PROC_CATEGORY_LT;
}

/* Characters that become several in upper or title case (Unicode's SpecialCasing.txt). */
static const struct {
    uint32_t from;
    const char *upper, *title;
} several[] = {
    { 0xDF, "SS", "Ss" },     { 0x149, "ʼN", "ʼN" },    { 0x1F0, "J̌", "J̌" },
    { 0x390, "Ϊ́", "Ϊ́" },      { 0x3B0, "Ϋ́", "Ϋ́" },      { 0x587, "ԵՒ", "Եւ" },
    { 0xFB00, "FF", "Ff" },   { 0xFB01, "FI", "Fi" },   { 0xFB02, "FL", "Fl" },
    { 0xFB03, "FFI", "Ffi" }, { 0xFB04, "FFL", "Ffl" }, { 0xFB05, "ST", "St" },
    { 0xFB06, "ST", "St" },
};
enum { N_SEVERAL = sizeof several / sizeof *several };

void ak_j_put_upper(struct ak_jenv *j, struct ak_jout *out, uint32_t c)
{
    for (size_t i = 0; i < N_SEVERAL; i++) {
        if (several[i].from == c) {
            ak_j_put_text(j, out, several[i].upper);
            return;
        }
    }
    ak_j_put_char(j, out, (uint32_t)utf8proc_toupper((utf8proc_int32_t)c));
}

void ak_j_put_title(struct ak_jenv *j, struct ak_jout *out, uint32_t c)
{
    for (size_t i = 0; i < N_SEVERAL; i++) {
        if (several[i].from == c) {
            ak_j_put_text(j, out, several[i].title);
            return;
        }
    }
    ak_j_put_char(j, out, (uint32_t)utf8proc_totitle((utf8proc_int32_t)c));
}

static bool is_ignorable(uint32_t c)
{
    utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_ME || k == UTF8PROC_CATEGORY_CF ||
           k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_SK || c == '\'' || c == '.' ||
           c == ':' || c == 0xB7 || c == 0x2019;
}

static size_t find_previous(const struct ak_jstr *s, size_t at)
{
    do
        at--;
    while (at > 0 && ((unsigned char)s->bytes[at] & 0xC0) == 0x80);
    return at;
}

/* Whether the character at `at` ends a word, where a sigma has a form of its own. */
static bool ends_word(struct ak_jenv *j, const struct ak_jstr *s, size_t at)
{
    size_t next, left = at, right;
    uint32_t c = 0;
    ak_j_char_at(s, at, &right);
    do {
        if (left == 0)
            return false;
        left = find_previous(s, left);
        c = ak_j_char_at(s, left, &next);
        ak_j_spend(j, 1);
    } while (is_ignorable(c));
    if (!ak_j_is_cased(c))
        return false;
    for (; right < s->n; right = next) {
        c = ak_j_char_at(s, right, &next);
        ak_j_spend(j, 1);
        if (!is_ignorable(c))
            return !ak_j_is_cased(c);
    }
    return true;
}

void ak_j_put_lower(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *s, size_t at)
{
    enum { SIGMA = 0x3A3, FINAL_SIGMA = 0x3C2 };
    char bytes[4];
    size_t next;
    uint32_t c = ak_j_char_at(s, at, &next);
    if (c == SIGMA && ends_word(j, s, at))
        ak_j_put_char(j, out, FINAL_SIGMA);
    else
        ak_j_put_bytes(j, out, bytes, ak_to_lower(c, bytes));
}

struct ak_jval ak_j_upper(struct ak_jenv *j, const struct ak_jstr *s)
{
    struct ak_jout out = { 0 };
    ak_j_spend(j, s->n / 4);
    for (size_t at = 0; at < s->n;)
        ak_j_put_upper(j, &out, ak_j_char_at(s, at, &at));
    return ak_j_finish(j, &out);
}

struct ak_jval ak_j_lower(struct ak_jenv *j, const struct ak_jstr *s)
{
    struct ak_jout out = { 0 };
    ak_j_spend(j, s->n / 4);
    for (size_t at = 0, next; at < s->n; at = next) {
        ak_j_char_at(s, at, &next);
        ak_j_put_lower(j, &out, s, at);
    }
    return ak_j_finish(j, &out);
}

struct ak_jval ak_j_capitalize(struct ak_jenv *j, const struct ak_jstr *s)
{
    struct ak_jout out = { 0 };
    ak_j_spend(j, s->n / 4);
    for (size_t at = 0, next; at < s->n; at = next) {
        uint32_t c = ak_j_char_at(s, at, &next);
        if (at == 0)
            ak_j_put_title(j, &out, c);
        else
            ak_j_put_lower(j, &out, s, at);
    }
    return ak_j_finish(j, &out);
}

static bool all_of_case(struct ak_jenv *j, const struct ak_jstr *s, bool upper)
{
    bool found = false;
    ak_j_spend(j, s->n / 4);
    for (size_t at = 0; at < s->n;) {
        uint32_t c = ak_j_char_at(s, at, &at);
        bool right = upper ? ak_j_is_upper_char(c) : ak_j_is_lower_char(c);
        if (!right && ak_j_is_cased(c))
            return false;
        found = found || right;
    }
    return found;
}

bool ak_j_is_upper(struct ak_jenv *j, const struct ak_jstr *s)
{
    return all_of_case(j, s, true);
}

bool ak_j_is_lower(struct ak_jenv *j, const struct ak_jstr *s)
{
    return all_of_case(j, s, false);
}
