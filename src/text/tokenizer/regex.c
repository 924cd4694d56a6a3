/* Regular expressions by PCRE2. Patterns are rewritten before compilation, so that their character
 * classes mean the same as in Oniguruma and on every version of PCRE2. */
#include "text/tokenizer/pretokenize.h"

#include <stdio.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/mem.h"
#include "base/utf8.h"

/* Classes of Oniguruma, the engine that the patterns were written for, for use inside brackets.
 * PCRE2's \s also has U+180E, and its \p{L} and \p{N} depend on the Unicode version it was built
 * with. Characters added after Unicode 14, up to 16, are written out, so that a text has the same
 * tokens on every system. */
#define SPACE                                                                                      \
    "\\t-\\r "                                                                                     \
    "\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define LETTER                                                                                     \
    "\\p{L}\\x{1c89}-\\x{1c8a}\\x{a7cb}-\\x{a7cd}\\x{a7da}-\\x{a7dc}\\x{105c0}-\\x{105f3}\\x{"     \
    "10d4a}-\\x{10d65}"                                                                            \
    "\\x{10d6f}-\\x{10d85}\\x{10ec2}-\\x{10ec4}\\x{1123f}-\\x{11240}\\x{11380}-\\x{11389}\\x{"     \
    "1138b}\\x{1138e}"                                                                             \
    "\\x{11390}-\\x{113b5}\\x{113b7}\\x{113d1}\\x{113d3}\\x{11bc0}-\\x{11be0}\\x{11f02}\\x{11f04}" \
    "-\\x{11f10}"                                                                                  \
    "\\x{11f12}-\\x{11f33}\\x{1342f}\\x{13441}-\\x{13446}\\x{13460}-\\x{143fa}\\x{16100}-\\x{"     \
    "1611d}"                                                                                       \
    "\\x{16d40}-\\x{16d6c}\\x{18cff}\\x{1b132}\\x{1b155}\\x{1df25}-\\x{1df2a}\\x{1e030}-\\x{"      \
    "1e06d}"                                                                                       \
    "\\x{1e4d0}-\\x{1e4eb}\\x{1e5d0}-\\x{1e5ed}\\x{1e5f0}\\x{2b739}\\x{2ebf0}-\\x{2ee5d}\\x{"      \
    "31350}-\\x{323af}"
#define NUMBER                                                                                     \
    "\\p{N}\\x{10d40}-\\x{10d49}\\x{116d0}-\\x{116e3}\\x{11bf0}-\\x{11bf9}\\x{11f50}-\\x{11f59}"   \
    "\\x{16130}-\\x{16139}"                                                                        \
    "\\x{16d70}-\\x{16d79}\\x{1ccf0}-\\x{1ccf9}\\x{1d2c0}-\\x{1d2d3}\\x{1e4f0}-\\x{1e4f9}\\x{"     \
    "1e5f1}-\\x{1e5fa}"

static const struct {
    const char *written, *inside, *alone;
} classes[] = {
    { "\\s", SPACE, "[" SPACE "]" },
    { "\\S", NULL, "[^" SPACE "]" },
    { "\\p{L}", LETTER, "[" LETTER "]" },
    { "\\p{N}", NUMBER, "[" NUMBER "]" },
};
enum {
    N_CLASSES = sizeof classes / sizeof classes[0],
    LONGEST_CLASS = sizeof LETTER + 2,
    MAX_PATTERN_BYTES = 1 << 16
};

/* In units of pcre2_set_match_limit: far more than published patterns need for a megabyte. */
enum { MATCH_LIMIT = 50000000 };

struct ak_tok_regex {
    pcre2_code *code;
    pcre2_match_context *limits;
};

static ak_status fail_pcre2(int code, const char *what, ak_status status, struct ak_error *error)
{
    char why[128];

    pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
    /* Compilation errors of PCRE2 are numbered from 101, all others are negative. */
    bool memory = code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAP_FAILED;
    return ak_fail(error, memory ? AKUNU_ERROR_MEMORY : status, "%s: %s", what, why);
}

/* The replacement of the class that begins at p; NULL: none begins there. */
static const char *find_class(const char *p, size_t n, bool inside, size_t *written)
{
    for (size_t i = 0; i < N_CLASSES; i++) {
        size_t length = strlen(classes[i].written);
        if (n < length || memcmp(p, classes[i].written, length) != 0)
            continue;
        *written = length;
        return inside ? classes[i].inside : classes[i].alone;
    }
    return NULL;
}

/* A class nested in a class adds to it, so its brackets are dropped. */
enum bracket { BRACKET_NONE, BRACKET_DROP, BRACKET_REFUSE };

static enum bracket find_bracket(const char *p, size_t n, unsigned depth)
{
    char next = n > 1 ? p[1] : '\0';

    if (depth == 0)
        return BRACKET_NONE;
    if (*p == '&' && next == '&')
        return BRACKET_REFUSE;
    if (*p == '[' && next != ':')
        return next == '^' ? BRACKET_REFUSE : BRACKET_DROP;
    return *p == ']' && depth > 1 ? BRACKET_DROP : BRACKET_NONE;
}

/* Replaces the classes; `out` has room for LONGEST_CLASS bytes per byte of p. */
static ak_status expand_classes(struct ak_text p, char *out, size_t *n_out, struct ak_error *error)
{
    unsigned depth = 0;
    size_t first = 0; /* first position of the class, at which a bracket is literal */

    *n_out = 0;
    for (size_t i = 0; i < p.n;) {
        size_t n = 1;
        const char *from = find_class(p.bytes + i, p.n - i, depth > 0, &n);
        size_t n_from = from ? strlen(from) : 0;
        char c = p.bytes[i];
        enum bracket bracket =
            from || i == first ? BRACKET_NONE : find_bracket(p.bytes + i, p.n - i, depth);
        if (bracket == BRACKET_REFUSE)
            return ak_fail(
                error, AKUNU_ERROR_UNSUPPORTED,
                "the pattern '%.*s' has what one class and not another has, which is not supported",
                (int)ak_min_size(p.n, 100), p.bytes);
        if (!from) {
            n = c == '\\' && i + 1 < p.n ? 2 : 1;
            n_from = bracket == BRACKET_DROP ? 0 : n;
            if (c == '[' && (depth == 0 || bracket == BRACKET_DROP))
                depth++;
            else if (c == ']' && depth > 0 && i != first)
                depth--;
            if (c == '[' && depth == 1)
                first = i + 1 + (i + 1 < p.n && p.bytes[i + 1] == '^');
            from = p.bytes + i;
        }
        memcpy(out + *n_out, from, n_from);
        *n_out += n_from;
        i += n;
    }
    return AKUNU_OK;
}

static ak_status compile(struct ak_tok_regex *r, struct ak_text pattern, char *out,
                         struct ak_error *error)
{
    size_t n;
    int code;
    PCRE2_SIZE at;

    AK_TRY(expand_classes(pattern, out, &n, error));
    /* No \C: it could end a match inside a character, where the next one must not begin. */
    uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    r->code = pcre2_compile((PCRE2_SPTR)out, n, options, &code, &at, NULL);
    if (!r->code) {
        char what[160];
        snprintf(what, sizeof what, "the pattern '%.*s' is none", (int)ak_min_size(pattern.n, 100),
                 pattern.bytes);
        return fail_pcre2(code, what, AKUNU_ERROR_FORMAT, error);
    }
    /* If the system forbids JIT code, PCRE2 falls back to its interpreter. */
    (void)pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE);
    return AKUNU_OK;
}

static ak_status fill_regex(struct ak_tok_regex *r, struct ak_text pattern, bool is_limited,
                            struct ak_error *error)
{
    if (pattern.n > MAX_PATTERN_BYTES)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "a pattern of %u bytes: at most %d are supported", pattern.n,
                       MAX_PATTERN_BYTES);
    r->limits = pcre2_match_context_create(NULL);
    char *out = ak_alloc((size_t)pattern.n + 1, LONGEST_CLASS);
    if (!r->limits || !out) {
        ak_free(out);
        return ak_fail_memory(error, "a pattern",
                              (unsigned long long)(pattern.n + 1) * LONGEST_CLASS);
    }
    /* The patterns of rules.c take linear time, so PCRE2's limits would only refuse long texts. */
    pcre2_set_match_limit(r->limits, is_limited ? MATCH_LIMIT : UINT32_MAX);
    pcre2_set_heap_limit(r->limits, UINT32_MAX);
    pcre2_set_depth_limit(r->limits, UINT32_MAX);
    ak_status status = compile(r, pattern, out, error);
    ak_free(out);
    return status;
}

ak_status ak_tok_regex_compile(struct ak_text pattern, bool is_limited, struct ak_tok_regex **out,
                               struct ak_error *error)
{
    struct ak_tok_regex *r = ak_alloc(1, sizeof *r);

    *out = NULL;
    if (!r)
        return ak_fail_memory(error, "a pattern", sizeof *r);
    ak_status status = fill_regex(r, pattern, is_limited, error);
    if (status != AKUNU_OK) {
        ak_tok_regex_free(r);
        return status;
    }
    *out = r;
    return AKUNU_OK;
}

void ak_tok_regex_free(struct ak_tok_regex *r)
{
    if (!r)
        return;
    pcre2_code_free(r->code);
    pcre2_match_context_free(r->limits);
    ak_free(r);
}

uint64_t ak_tok_regex_memory(const struct ak_tok_regex *r)
{
    uint64_t bytes = sizeof *r;
    size_t part = 0;

    if (pcre2_pattern_info(r->code, PCRE2_INFO_SIZE, &part) == 0)
        bytes += part;
    if (pcre2_pattern_info(r->code, PCRE2_INFO_JITSIZE, &part) == 0)
        bytes += part;
    return bytes;
}

struct ak_tok_matcher {
    pcre2_match_data *match;
    char *masked;
    size_t capacity;
};

ak_status ak_tok_matcher_create(struct ak_tok_matcher **out, struct ak_error *error)
{
    struct ak_tok_matcher *m = ak_alloc(1, sizeof *m);

    *out = NULL;
    if (m)
        m->match = pcre2_match_data_create(1, NULL);
    if (!m || !m->match) {
        ak_tok_matcher_free(m);
        return ak_fail_memory(error, "pre-tokenizing a text", 0);
    }
    *out = m;
    return AKUNU_OK;
}

void ak_tok_matcher_free(struct ak_tok_matcher *m)
{
    if (!m)
        return;
    pcre2_match_data_free(m->match);
    ak_free(m->masked);
    ak_free(m);
}

ak_status ak_tok_matcher_prepare(struct ak_tok_matcher *m, const char *text, size_t n,
                                 const char **subject, struct ak_error *error)
{
    size_t valid = ak_utf8_valid_bytes(text, n);

    *subject = text;
    if (valid == n)
        return AKUNU_OK;
    if (m->capacity < n) {
        char *masked = ak_realloc(m->masked, n, 1);
        if (!masked)
            return ak_fail_memory(error, "a text that is not UTF-8", n);
        m->masked = masked;
        m->capacity = n;
    }
    memcpy(m->masked, text, n);
    while (valid < n) {
        m->masked[valid++] = 1;
        valid += ak_utf8_valid_bytes(text + valid, n - valid);
    }
    *subject = m->masked;
    return AKUNU_OK;
}

ak_status ak_tok_regex_find(const struct ak_tok_regex *r, struct ak_tok_matcher *m,
                            const char *text, size_t n, size_t from, bool empty, size_t *begin,
                            size_t *end, struct ak_error *error)
{
    uint32_t options = PCRE2_NO_UTF_CHECK | (empty ? 0 : PCRE2_NOTEMPTY_ATSTART);
    int rc = pcre2_match(r->code, (PCRE2_SPTR)text, n, from, options, m->match, r->limits);

    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(r->code, (PCRE2_SPTR)text, n, from, options | PCRE2_NO_JIT, m->match,
                         r->limits);
    *begin = *end = SIZE_MAX;
    if (rc == PCRE2_ERROR_NOMATCH)
        return AKUNU_OK;
    if (rc < 0)
        return fail_pcre2(rc, "cannot split the text by the tokenizer's pattern",
                          AKUNU_ERROR_SYSTEM, error);
    *begin = pcre2_get_ovector_pointer(m->match)[0];
    *end = pcre2_get_ovector_pointer(m->match)[1];
    return AKUNU_OK;
}
