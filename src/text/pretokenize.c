#include "text/pretokenize.h"

#include <assert.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/mem.h"
#include "text/utf8.h"

/* The classes that the patterns are made of, each to be used inside brackets. They
 * are those of Oniguruma, the engine that the patterns were written for: PCRE2's
 * \s has U+180E as well, and its \p{L} and \p{N} are those of the Unicode version
 * that it was built with. What came after Unicode 14, up to 16, is written out, so
 * that a text has the same tokens on every system. */
#define SPACE "\\t-\\r \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define LETTER                                                                                                                             \
    "\\p{L}\\x{1c89}-\\x{1c8a}\\x{a7cb}-\\x{a7cd}\\x{a7da}-\\x{a7dc}\\x{105c0}-\\x{105f3}\\x{10d4a}-\\x{10d65}"                            \
    "\\x{10d6f}-\\x{10d85}\\x{10ec2}-\\x{10ec4}\\x{1123f}-\\x{11240}\\x{11380}-\\x{11389}\\x{1138b}\\x{1138e}"                             \
    "\\x{11390}-\\x{113b5}\\x{113b7}\\x{113d1}\\x{113d3}\\x{11bc0}-\\x{11be0}\\x{11f02}\\x{11f04}-\\x{11f10}"                              \
    "\\x{11f12}-\\x{11f33}\\x{1342f}\\x{13441}-\\x{13446}\\x{13460}-\\x{143fa}\\x{16100}-\\x{1611d}"                                       \
    "\\x{16d40}-\\x{16d6c}\\x{18cff}\\x{1b132}\\x{1b155}\\x{1df25}-\\x{1df2a}\\x{1e030}-\\x{1e06d}"                                        \
    "\\x{1e4d0}-\\x{1e4eb}\\x{1e5d0}-\\x{1e5ed}\\x{1e5f0}\\x{2b739}\\x{2ebf0}-\\x{2ee5d}\\x{31350}-\\x{323af}"
#define NUMBER                                                                                                                             \
    "\\p{N}\\x{10d40}-\\x{10d49}\\x{116d0}-\\x{116e3}\\x{11bf0}-\\x{11bf9}\\x{11f50}-\\x{11f59}\\x{16130}-\\x{16139}"                      \
    "\\x{16d70}-\\x{16d79}\\x{1ccf0}-\\x{1ccf9}\\x{1d2c0}-\\x{1d2d3}\\x{1e4f0}-\\x{1e4f9}\\x{1e5f1}-\\x{1e5fa}"

/* Blanks before a word leave the last one to it. */
#define BLANKS "[" SPACE "]+(?![^" SPACE "])|[" SPACE "]+"

static const char gpt2_words[] = "'s|'t|'re|'ve|'m|'ll|'d| ?[" LETTER "]+| ?[" NUMBER "]+| ?[^" SPACE LETTER NUMBER "]+|" BLANKS;
static const char llama3_words[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n" LETTER NUMBER "]?[" LETTER "]+|[" NUMBER "]{1,3}| ?[^" SPACE LETTER NUMBER "]+[\\r\\n]*|"
    "[" SPACE "]*[\\r\\n]+|" BLANKS;
static const char qwen2_words[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n" LETTER NUMBER "]?[" LETTER "]+|[" NUMBER "]| ?[^" SPACE LETTER NUMBER "]+[\\r\\n]*|"
    "[" SPACE "]*[\\r\\n]+|" BLANKS;
static const char digit[] = "[" NUMBER "]";
static const char digits[] = "[" NUMBER "]+";
static const char three_digits[] = "[0-9][0-9][0-9]";
static const char punctuation[] = "[\\p{P}$+<=>^~|]+";

enum { MAX_PATTERNS = 4 };

/* A pattern cuts out its matches; what lies between them are words as well, and
 * the next pattern is applied to each of the pieces on its own. */
struct rule {
    const char *names; /* between blanks */
    const char *patterns[MAX_PATTERNS];
    bool adds_bos, whole_words;
};

static const struct rule rules[] = {
    {" default ", {punctuation, gpt2_words, digits, three_digits}, false, false},
    {" gpt-2 ", {gpt2_words}, false, false},
    {" smollm ", {digit, gpt2_words}, false, false},
    {" qwen2 deepseek-r1-qwen megrez ", {qwen2_words}, false, false},
    {" llama-bpe llama3 llama-v3 falcon3 pixtral ", {llama3_words}, true, true},
};
enum { N_RULES = sizeof rules / sizeof rules[0] };

struct ak_pretokenizer {
    const struct rule *rule;
    pcre2_code *codes[MAX_PATTERNS];
    unsigned n_codes;
    pcre2_match_context *limits;
};

static const struct rule *find_rule(struct ak_text name)
{
    char wanted[64];

    if (name.n == 0)
        return &rules[0];
    if (name.n + 3 > sizeof wanted || memchr(name.bytes, ' ', name.n) || memchr(name.bytes, '\0', name.n))
        return NULL;
    wanted[0] = ' ';
    memcpy(wanted + 1, name.bytes, name.n);
    memcpy(wanted + 1 + name.n, " ", 2);
    for (size_t i = 0; i < N_RULES; i++)
        if (strstr(rules[i].names, wanted))
            return &rules[i];
    return NULL;
}

static ak_status refuse(struct ak_text name, struct ak_error *error)
{
    char known[256] = "";
    size_t n = 0;

    for (size_t i = 0; i < N_RULES; i++) {
        size_t length = strlen(rules[i].names) - 1; /* each begins with a blank, the last one's end is left out */
        assert(n + length < sizeof known);
        memcpy(known + n, rules[i].names, length);
        n += length;
    }
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "the pre-tokenizer '%.*s' (tokenizer.ggml.pre) is not known; these are:%s. Where the model cuts words as one of them "
                   "does, a copy of the file with that name serves: gguf-new-metadata --pre-tokenizer NAME",
                   (int)(name.n < 64 ? name.n : 64), name.bytes, known);
}

static ak_status fail_pcre2(int code, const char *what, struct ak_error *error)
{
    char why[128];

    pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
    /* PCRE2 numbers errors of compilation from 101 on, and the others below 0. */
    bool memory = code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAP_FAILED;
    return ak_fail(error, memory ? AKUNU_ERROR_MEMORY : AKUNU_ERROR_SYSTEM, "PCRE2 %s: %s", what, why);
}

static ak_status compile(struct ak_pretokenizer *p, const char *pattern, struct ak_error *error)
{
    int code;
    PCRE2_SIZE at;
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);

    if (!compiled)
        return fail_pcre2(code, "does not take a pattern", error);
    p->codes[p->n_codes++] = compiled;
    /* A system that forbids making code has PCRE2's interpreter instead. */
    (void)pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
    return AKUNU_OK;
}

static ak_status fill(struct ak_pretokenizer *p, struct ak_text name, struct ak_error *error)
{
    p->rule = find_rule(name);
    if (!p->rule)
        return refuse(name, error);
    p->limits = pcre2_match_context_create(NULL);
    if (!p->limits)
        return ak_fail_memory(error, "the pre-tokenizer", 0);
    /* The patterns take time linear in the text: PCRE2's guard against those that
     * do not would only refuse long texts. */
    pcre2_set_match_limit(p->limits, UINT32_MAX);
    pcre2_set_heap_limit(p->limits, UINT32_MAX);
    pcre2_set_depth_limit(p->limits, UINT32_MAX);
    for (unsigned i = 0; i < MAX_PATTERNS && p->rule->patterns[i]; i++)
        AK_TRY(compile(p, p->rule->patterns[i], error));
    return AKUNU_OK;
}

ak_status ak_pretokenizer_create(struct ak_text name, struct ak_pretokenizer **out, struct ak_error *error)
{
    struct ak_pretokenizer *p = ak_alloc(1, sizeof *p);

    *out = NULL;
    if (!p)
        return ak_fail_memory(error, "the pre-tokenizer", sizeof *p);
    ak_status status = fill(p, name, error);
    if (status != AKUNU_OK) {
        ak_pretokenizer_free(p);
        return status;
    }
    *out = p;
    return AKUNU_OK;
}

void ak_pretokenizer_free(struct ak_pretokenizer *p)
{
    if (!p)
        return;
    for (unsigned i = 0; i < p->n_codes; i++)
        pcre2_code_free(p->codes[i]);
    pcre2_match_context_free(p->limits);
    ak_free(p);
}

uint64_t ak_pretokenizer_bytes(const struct ak_pretokenizer *p)
{
    uint64_t bytes = sizeof *p;

    for (unsigned i = 0; i < p->n_codes; i++) {
        size_t part = 0;
        if (pcre2_pattern_info(p->codes[i], PCRE2_INFO_SIZE, &part) == 0)
            bytes += part;
        if (pcre2_pattern_info(p->codes[i], PCRE2_INFO_JITSIZE, &part) == 0)
            bytes += part;
    }
    return bytes;
}

bool ak_pretokenizer_adds_bos(const struct ak_pretokenizer *p)
{
    return p->rule->adds_bos;
}

bool ak_pretokenizer_whole_words(const struct ak_pretokenizer *p)
{
    return p->rule->whole_words;
}

struct ak_cutter {
    const struct ak_pretokenizer *p;
    pcre2_match_data *match;
    char *masked; /* the text with bytes that are no UTF-8 replaced */
    size_t masked_capacity;
};

ak_status ak_cutter_create(const struct ak_pretokenizer *p, struct ak_cutter **out, struct ak_error *error)
{
    struct ak_cutter *c = ak_alloc(1, sizeof *c);

    *out = NULL;
    if (c)
        c->match = pcre2_match_data_create(1, NULL);
    if (!c || !c->match) {
        ak_cutter_free(c);
        return ak_fail_memory(error, "cutting text into words", 0);
    }
    c->p = p;
    *out = c;
    return AKUNU_OK;
}

void ak_cutter_free(struct ak_cutter *c)
{
    if (!c)
        return;
    pcre2_match_data_free(c->match);
    ak_free(c->masked);
    ak_free(c);
}

/* PCRE2 wants valid UTF-8: what is not becomes U+0001 of as many bytes, neither
 * letter nor number nor blank, like the U+FFFD that others put there. */
static ak_status mask(struct ak_cutter *c, const char *text, size_t n, size_t valid, struct ak_error *error)
{
    if (c->masked_capacity < n) {
        char *masked = ak_realloc(c->masked, n, 1);
        if (!masked)
            return ak_fail_memory(error, "a text that is not UTF-8", n);
        c->masked = masked;
        c->masked_capacity = n;
    }
    memcpy(c->masked, text, n);
    while (valid < n) {
        c->masked[valid++] = 1;
        valid += ak_utf8_valid(text + valid, n - valid);
    }
    return AKUNU_OK;
}

/* One text with its double that the patterns see. */
struct cut {
    struct ak_cutter *c;
    const char *text, *seen;
    ak_word_fn *fn;
    void *context;
    struct ak_error *error;
};

/* Cuts [begin, end) by pattern number `level` and the pieces by those after it. */
static ak_status cut_range(const struct cut *k, unsigned level, size_t begin, size_t end)
{
    const struct ak_pretokenizer *p = k->c->p;

    if (begin == end)
        return AKUNU_OK;
    if (level == p->n_codes)
        return k->fn(k->context, k->text + begin, end - begin, k->error);
    while (begin < end) {
        /* The range is a subject of its own, so that (?!…) sees its end. */
        int rc = pcre2_match(p->codes[level], (PCRE2_SPTR)(k->seen + begin), end - begin, 0, PCRE2_NO_UTF_CHECK, k->c->match, p->limits);
        if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
            rc = pcre2_match(p->codes[level], (PCRE2_SPTR)(k->seen + begin), end - begin, 0, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, k->c->match,
                             p->limits);
        if (rc == PCRE2_ERROR_NOMATCH)
            return cut_range(k, level + 1, begin, end);
        if (rc < 0)
            return fail_pcre2(rc, "cannot cut the text", k->error);
        const PCRE2_SIZE *found = pcre2_get_ovector_pointer(k->c->match);
        size_t from = begin + found[0], to = begin + found[1];
        AK_TRY(cut_range(k, level + 1, begin, from));
        AK_TRY(cut_range(k, level + 1, from, to));
        begin = to;
    }
    return AKUNU_OK;
}

ak_status ak_cut_words(struct ak_cutter *c, const char *text, size_t n, ak_word_fn *fn, void *context, struct ak_error *error)
{
    struct cut k = {c, text, text, fn, context, error};
    size_t valid = ak_utf8_valid(text, n);

    if (valid < n) {
        AK_TRY(mask(c, text, n, valid, error));
        k.seen = c->masked;
    }
    return cut_range(&k, 0, 0, n);
}
