/* Markers in grammars. A control token of the vocabulary has no text in a grammar, so the grammar
 * must name it as a token. */
#include <string.h>

#include "text/toolcall/builder.h"

/* A control token of a marker, or the text between two. */
struct marker_part {
    char text[64];
    size_t n;
    bool control;
};

enum { PARTS_MAX = 48 };

static size_t set_text_part(struct marker_part *p, const char *marker)
{
    p[0].n = strlen(marker);
    p[0].control = false;
    memcpy(p[0].text, marker, p[0].n);
    return p[0].n > 0;
}

/* Splits a marker by the tokenizer; adjacent tokens of plain text become one part. */
static size_t split_marker(const struct ak_tokenizer *t, const char *marker, struct marker_part *p)
{
    int32_t ids[PARTS_MAX];
    size_t n_ids, n = 0;

    if (!t ||
        ak_tok_encode(t, marker, strlen(marker), AKUNU_PARSE_SPECIAL, ids, PARTS_MAX, &n_ids,
                      NULL) != AKUNU_OK ||
        n_ids > PARTS_MAX)
        return set_text_part(p, marker);
    for (size_t i = 0; i < n_ids; i++) {
        bool control = ak_tok_is_control(t, ids[i]) || ak_tok_is_end(t, ids[i]);
        bool joins = n && !control && !p[n - 1].control;
        struct marker_part *at = joins ? &p[n - 1] : &p[n];
        size_t bytes, before = joins ? at->n : 0;
        if (ak_tok_decode(t, &ids[i], 1, AKUNU_CONTINUE, at->text + before,
                          sizeof at->text - before, &bytes, NULL) != AKUNU_OK ||
            bytes > sizeof at->text - before)
            return set_text_part(p, marker);
        at->n = before + bytes;
        at->control = control;
        n += !joins;
    }
    return n;
}

static uint32_t build_part(struct ak_tc_builder *r, const struct marker_part *p)
{
    return p->control ? ak_gb_token(&r->gb, 0, p->text, p->n, false) :
                        ak_gb_literal(&r->gb, p->text, p->n);
}

static uint32_t build_parts(struct ak_tc_builder *r, const struct marker_part *p, size_t n,
                            uint32_t then)
{
    while (n--)
        then = ak_gb_concat(&r->gb, build_part(r, &p[n]), then);
    return then;
}

uint32_t ak_tc_build_whitespace(struct ak_tc_builder *r)
{
    struct ak_grammar_byte_set set = { { 0 } };
    set.bits[0] |= (uint64_t)1 << ' ' | (uint64_t)1 << '\n';
    return ak_gb_repeat(&r->gb, ak_gb_bytes(&r->gb, &set), 0, 5);
}

uint32_t ak_tc_build_marker(struct ak_tc_builder *r, const char *marker)
{
    struct marker_part p[PARTS_MAX];
    return marker && *marker ?
               build_parts(r, p, split_marker(r->params->tokenizer, marker, p), AK_GB_EMPTY) :
               AK_GB_EMPTY;
}

uint32_t ak_tc_build_loose_marker(struct ak_tc_builder *r, const char *marker)
{
    uint32_t expr = AK_GB_EMPTY;

    for (const char *at = marker; at && *at;) {
        char text[128];
        size_t n = strcspn(at, " ");
        if (n == 0) {
            expr = ak_gb_concat(&r->gb, expr, ak_tc_build_whitespace(r));
            at++;
            continue;
        }
        memcpy(text, at, n);
        text[n] = '\0';
        expr = ak_gb_concat(&r->gb, expr, ak_tc_build_marker(r, text));
        at += n;
    }
    return expr;
}

/* Knuth–Morris–Pratt: how many bytes of the word match after one more byte. */
static size_t advance_match(const struct marker_part *word, const size_t *border, size_t matched,
                            char byte)
{
    while (matched && word->text[matched] != byte)
        matched = border[matched];
    return matched + (word->text[matched] == byte);
}

/* The matching automaton of the word as a grammar: one rule per number of matched bytes, with a set
 * of the bytes that lead to each next rule. */
static uint32_t build_until_text(struct ak_tc_builder *r, const struct marker_part *word,
                                 uint32_t then)
{
    struct ak_grammar_builder *b = &r->gb;
    uint32_t rules[sizeof word->text];
    size_t border[sizeof word->text + 1] = { 0 };

    for (size_t i = 1; i < word->n; i++)
        border[i + 1] = advance_match(word, border, border[i], word->text[i]);
    for (size_t i = 0; i < word->n; i++)
        rules[i] = ak_gb_declare_rule(b, "until", 5);
    for (size_t i = 0; i < word->n; i++) {
        struct ak_grammar_byte_set sets[sizeof word->text + 1] = { { { 0 } } };
        uint32_t expr = AK_GB_NOTHING;
        for (unsigned byte = 0; byte < 256; byte++)
            sets[advance_match(word, border, i, (char)byte)].bits[byte >> 6] |= (uint64_t)1
                                                                                << (byte & 63);
        for (size_t to = 0; to <= i + 1; to++) {
            uint32_t rest = to == word->n ? then : ak_gb_rule_ref(b, rules[to]);
            if (sets[to].bits[0] | sets[to].bits[1] | sets[to].bits[2] | sets[to].bits[3])
                expr = ak_gb_either(b, expr, ak_gb_concat(b, ak_gb_bytes(b, &sets[to]), rest));
        }
        ak_gb_define_rule(b, rules[i], expr);
    }
    return ak_gb_rule_ref(b, rules[0]);
}

uint32_t ak_tc_build_until(struct ak_tc_builder *r, const char *marker, uint32_t then)
{
    struct marker_part p[PARTS_MAX];
    size_t n = split_marker(r->params->tokenizer, marker, p);
    struct ak_gb_keyword keyword = { .text = marker, .n = strlen(marker), .continuation = then };

    if (p[0].control) /* as the token or spelled out: the parser sees text either way */
        return ak_gb_until(&r->gb, &keyword, 1, false);
    return build_until_text(r, &p[0], build_parts(r, p + 1, n - 1, then));
}
