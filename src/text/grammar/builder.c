/* Grammars and their builder: ak_grammar_free, and the constructors of grammar expressions. Arrays
 * of the grammar double as they grow. After the first failure constructors do nothing, so that
 * callers check once, at ak_gb_finish. */
#include "text/grammar/builder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/array.h"

struct ak_grammar *ak_grammar_ref(struct ak_grammar *g)
{
    ak_refs_take(&g->refs);
    return g;
}

void ak_grammar_free(struct ak_grammar *g)
{
    if (!g || !ak_refs_drop(&g->refs))
        return;
    for (uint32_t i = 0; i < g->n_rules; i++)
        ak_free(g->rules[i].name);
    for (uint32_t i = 0; i < g->n_tokens; i++)
        ak_free(g->tokens[i].text);
    for (uint32_t i = 0; i < g->n_automata; i++)
        ak_free(g->automata[i].next);
    ak_free(g->exprs);
    ak_free(g->sets);
    ak_free(g->bytes);
    ak_free(g->lists);
    ak_free(g->rules);
    ak_free(g->tokens);
    ak_free(g->member);
    ak_free(g->members);
    ak_free(g->automata);
    ak_free(g);
}

/* ---- builder ------------------------------------------------------------ */
static void note_no_memory(struct ak_grammar_builder *b)
{
    if (ak_gb_ok(b))
        b->status = ak_fail_memory(b->error, "a grammar", 0);
}

uint32_t ak_gb_fail(struct ak_grammar_builder *b, ak_status status, const char *format, ...)
{
    if (!ak_gb_ok(b))
        return AK_GB_NOTHING;
    char message[AK_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    b->status = ak_fail(b->error, status, "%s", message);
    return AK_GB_NOTHING;
}

/* Reserves space for `more` elements after the first n of an array. */
static bool reserve_elements(struct ak_grammar_builder *b, void *array, uint32_t *capacity,
                             uint32_t n, size_t more, size_t size)
{
    if (!ak_gb_ok(b))
        return false;
    if (*capacity - n >= more)
        return true;
    if (more > (size_t)32 * AK_GRAMMAR_EXPRS_MAX - n) {
        ak_gb_fail(b, AKUNU_ERROR_UNSUPPORTED, "the grammar is too large");
        return false;
    }
    if (ak_reserve_u32(array, capacity, n, more, size))
        return true;
    note_no_memory(b);
    return false;
}

void ak_gb_append(struct ak_grammar_builder *b, struct ak_gb_list *list, uint32_t expr)
{
    if (reserve_elements(b, &list->items, &list->capacity, list->n, 1, sizeof *list->items))
        list->items[list->n++] = expr;
}

static uint32_t add_expr(struct ak_grammar_builder *b, enum ak_grammar_expr_kind kind, uint32_t a,
                         uint32_t b_, uint32_t c)
{
    struct ak_grammar *g = b->g;
    if (!ak_gb_ok(b))
        return AK_GB_NOTHING;
    if (g->n_exprs == AK_GRAMMAR_EXPRS_MAX)
        return ak_gb_fail(b, AKUNU_ERROR_UNSUPPORTED, "the grammar has more than %d expressions",
                          AK_GRAMMAR_EXPRS_MAX);
    if (!reserve_elements(b, &g->exprs, &b->exprs_capacity, g->n_exprs, 1, sizeof *g->exprs))
        return AK_GB_NOTHING;
    g->exprs[g->n_exprs] =
        (struct ak_grammar_expr){ .kind = (uint8_t)kind, .a = a, .b = b_, .c = c };
    return g->n_exprs++;
}

void ak_gb_begin(struct ak_grammar_builder *b, struct ak_error *error)
{
    *b = (struct ak_grammar_builder){ .error = error };
    b->g = ak_alloc(1, sizeof *b->g);
    if (!b->g)
        note_no_memory(b);
    add_expr(b, AK_GRAMMAR_EXPR_NOTHING, 0, 0, 0);
    add_expr(b, AK_GRAMMAR_EXPR_EMPTY, 0, 0, 0);
}

void ak_gb_drop(struct ak_grammar_builder *b)
{
    ak_grammar_free(b->g);
    ak_free(b->set_exprs);
    *b = (struct ak_grammar_builder){ .status = b->status, .error = b->error };
}

uint32_t ak_gb_bytes(struct ak_grammar_builder *b, const struct ak_grammar_byte_set *set)
{
    struct ak_grammar *g = b->g;
    if (!ak_gb_ok(b) || !(set->bits[0] | set->bits[1] | set->bits[2] | set->bits[3]))
        return AK_GB_NOTHING;
    /* the same few sets recur: look at the latest 64 */
    for (uint32_t i = g->n_sets, seen = 0; i-- > 0 && seen < 64; seen++)
        if (memcmp(&g->sets[i], set, sizeof *set) == 0)
            return b->set_exprs[i];
    if (!reserve_elements(b, &g->sets, &b->sets_capacity, g->n_sets, 1, sizeof *g->sets) ||
        !reserve_elements(b, &b->set_exprs, &b->set_exprs_capacity, g->n_sets, 1,
                          sizeof *b->set_exprs))
        return AK_GB_NOTHING;
    uint32_t expr = add_expr(b, AK_GRAMMAR_EXPR_BYTES, g->n_sets, 0, 0);
    g->sets[g->n_sets] = *set;
    b->set_exprs[g->n_sets++] = expr;
    return expr;
}

uint32_t ak_gb_byte_range(struct ak_grammar_builder *b, unsigned char low, unsigned char high)
{
    struct ak_grammar_byte_set set = { { 0 } };
    for (unsigned c = low; c <= high; c++)
        set.bits[c >> 6] |= UINT64_C(1) << (c & 63);
    return ak_gb_bytes(b, &set);
}

uint32_t ak_gb_literal(struct ak_grammar_builder *b, const char *bytes, size_t n)
{
    struct ak_grammar *g = b->g;
    if (n == 0)
        return AK_GB_EMPTY;
    if (!ak_gb_ok(b) || !reserve_elements(b, &g->bytes, &b->bytes_capacity, g->n_bytes, n, 1))
        return AK_GB_NOTHING;
    memcpy(g->bytes + g->n_bytes, bytes, n);
    g->n_bytes += (uint32_t)n;
    return add_expr(b, AK_GRAMMAR_EXPR_LITERAL, g->n_bytes - (uint32_t)n, (uint32_t)n, 0);
}

uint32_t ak_gb_text(struct ak_grammar_builder *b, const char *text)
{
    return ak_gb_literal(b, text, strlen(text));
}

/* Sequence or alternation of `exprs` without those equal to `neutral`. None left: `neutral`; one
 * left: that one. */
static uint32_t add_expr_list(struct ak_grammar_builder *b, enum ak_grammar_expr_kind kind,
                              const uint32_t *exprs, uint32_t n, uint32_t neutral)
{
    struct ak_grammar *g = b->g;
    if (!ak_gb_ok(b) ||
        !reserve_elements(b, &g->lists, &b->lists_capacity, g->n_lists, n, sizeof *g->lists))
        return AK_GB_NOTHING;
    uint32_t first = g->n_lists, kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (exprs[i] != neutral)
            g->lists[first + kept++] = exprs[i];
    if (kept == 0)
        return neutral;
    if (kept == 1)
        return g->lists[first];
    g->n_lists += kept;
    return add_expr(b, kind, first, kept, 0);
}

uint32_t ak_gb_sequence(struct ak_grammar_builder *b, const uint32_t *exprs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (exprs[i] == AK_GB_NOTHING)
            return AK_GB_NOTHING;
    return add_expr_list(b, AK_GRAMMAR_EXPR_SEQUENCE, exprs, n, AK_GB_EMPTY);
}

uint32_t ak_gb_alternation(struct ak_grammar_builder *b, const uint32_t *exprs, uint32_t n)
{
    return add_expr_list(b, AK_GRAMMAR_EXPR_ALTERNATION, exprs, n, AK_GB_NOTHING);
}

uint32_t ak_gb_concat(struct ak_grammar_builder *b, uint32_t first, uint32_t second)
{
    return ak_gb_sequence(b, (uint32_t[]){ first, second }, 2);
}

uint32_t ak_gb_either(struct ak_grammar_builder *b, uint32_t one, uint32_t another)
{
    return one == another ? one : ak_gb_alternation(b, (uint32_t[]){ one, another }, 2);
}

uint32_t ak_gb_repeat(struct ak_grammar_builder *b, uint32_t expr, uint32_t low, uint32_t high)
{
    if (low > high)
        return AK_GB_NOTHING;
    if (high == 0 || expr == AK_GB_EMPTY)
        return AK_GB_EMPTY;
    if (expr == AK_GB_NOTHING)
        return low == 0 ? AK_GB_EMPTY : AK_GB_NOTHING;
    if (low == 1 && high == 1)
        return expr;
    return add_expr(b, AK_GRAMMAR_EXPR_REPEAT, expr, low, high);
}

uint32_t ak_gb_declare_rule(struct ak_grammar_builder *b, const char *name, size_t n)
{
    struct ak_grammar *g = b->g;
    if (!ak_gb_ok(b) ||
        !reserve_elements(b, &g->rules, &b->rules_capacity, g->n_rules, 1, sizeof *g->rules))
        return 0;
    char *copy = ak_strndup(name, n);
    if (!copy)
        note_no_memory(b);
    else
        g->rules[g->n_rules++] = (struct ak_grammar_rule){ .name = copy };
    return g->n_rules - (copy != NULL);
}

void ak_gb_define_rule(struct ak_grammar_builder *b, uint32_t rule, uint32_t expr)
{
    if (ak_gb_ok(b))
        b->g->rules[rule].expr = expr;
}

uint32_t ak_gb_rule_ref(struct ak_grammar_builder *b, uint32_t rule)
{
    return add_expr(b, AK_GRAMMAR_EXPR_RULE, rule, 0, 0);
}

void ak_gb_set_representative(struct ak_grammar_builder *b, uint32_t ref, uint32_t other)
{
    if (ak_gb_ok(b) && ref != other)
        b->g->exprs[ref].b = other;
}

uint32_t ak_gb_token(struct ak_grammar_builder *b, uint32_t id, const char *text, size_t n,
                     bool negated)
{
    struct ak_grammar *g = b->g;
    struct ak_grammar_token_ref token = { .id = id, .n = (uint32_t)n };
    if (!ak_gb_ok(b) ||
        !reserve_elements(b, &g->tokens, &b->tokens_capacity, g->n_tokens, 1, sizeof *g->tokens))
        return AK_GB_NOTHING;
    if (text) {
        token.literal = ak_gb_literal(b, text, n);
        token.text = ak_strndup(text, n);
        if (!token.text) {
            note_no_memory(b);
            return AK_GB_NOTHING;
        }
    }
    g->tokens[g->n_tokens++] = token;
    return add_expr(b, AK_GRAMMAR_EXPR_TOKEN, g->n_tokens - 1, negated, 0);
}

uint32_t ak_gb_members(struct ak_grammar_builder *b, const struct ak_grammar_member *list,
                       uint32_t n, const struct ak_grammar_members *layout)
{
    struct ak_grammar *g = b->g;
    if (!ak_gb_ok(b) ||
        !reserve_elements(b, &g->member, &b->member_capacity, g->n_member, n, sizeof *g->member) ||
        !reserve_elements(b, &g->members, &b->members_capacity, g->n_members, 1,
                          sizeof *g->members))
        return AK_GB_NOTHING;
    struct ak_grammar_members *m = &g->members[g->n_members++];
    *m = *layout;
    m->first = g->n_member;
    m->n = n;
    for (uint32_t i = 0; i < n; i++)
        g->member[g->n_member++] = list[i];
    return add_expr(b, AK_GRAMMAR_EXPR_MEMBERS, g->n_members - 1, 0, 0);
}

uint32_t ak_gb_until(struct ak_grammar_builder *b, const struct ak_gb_keyword *keywords, size_t n,
                     bool open)
{
    struct ak_grammar *g = b->g;
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        if (keywords[i].n == 0 || keywords[i].n > AK_GRAMMAR_KEYWORD_BYTES_MAX)
            return ak_gb_fail(b, AKUNU_ERROR_ARGUMENT,
                              "a trigger word has %zu bytes: 1 to %d are expected", keywords[i].n,
                              AK_GRAMMAR_KEYWORD_BYTES_MAX);
        bytes += keywords[i].n;
    }
    if (n == 0 || n > AK_GRAMMAR_KEYWORD_BYTES_MAX || bytes > AK_GRAMMAR_KEYWORD_BYTES_MAX)
        return ak_gb_fail(b, AKUNU_ERROR_ARGUMENT,
                          "%zu trigger words of %zu bytes together: at least one and at most %d "
                          "bytes are expected",
                          n, bytes, AK_GRAMMAR_KEYWORD_BYTES_MAX);
    if (!reserve_elements(b, &g->automata, &b->automata_capacity, g->n_automata, 1,
                          sizeof *g->automata) ||
        !reserve_elements(b, &g->lists, &b->lists_capacity, g->n_lists, n, sizeof *g->lists))
        return AK_GB_NOTHING;
    struct ak_grammar_keyword_automaton w = { .continuations = g->n_lists,
                                              .n_continuations = (uint32_t)n };
    if (!ak_grammar_build_keyword_automaton(keywords, n, bytes, &w)) {
        note_no_memory(b);
        return AK_GB_NOTHING;
    }
    for (size_t i = 0; i < n; i++)
        g->lists[g->n_lists++] = keywords[i].continuation;
    g->automata[g->n_automata++] = w;
    return add_expr(b, AK_GRAMMAR_EXPR_UNTIL, g->n_automata - 1, open, 0);
}

ak_status ak_gb_finish(struct ak_grammar_builder *b, uint32_t root, struct ak_grammar **out)
{
    *out = NULL;
    if (ak_gb_ok(b)) {
        b->g->root = root;
        b->status = ak_grammar_finalize(b->g, b->error);
    }
    if (ak_gb_ok(b)) {
        *out = b->g;
        b->g = NULL;
    }
    ak_gb_drop(b);
    return b->status;
}
