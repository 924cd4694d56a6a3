#include "grammar/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static void no_memory(struct ak_build *b)
{
    if (ak_build_ok(b))
        b->status = ak_fail_memory(b->error, "a grammar", 0);
}

uint32_t ak_build_fail(struct ak_build *b, ak_status status, const char *format, ...)
{
    if (!ak_build_ok(b))
        return AK_BUILD_NOTHING;
    char message[AK_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    b->status = ak_fail(b->error, status, "%s", message);
    return AK_BUILD_NOTHING;
}

/* Makes room for `more` elements behind the n of an array. */
static bool room(struct ak_build *b, void *array, uint32_t *capacity, uint32_t n, size_t more,
                 size_t size)
{
    void **at = array, *grown;
    if (!ak_build_ok(b))
        return false;
    if (*capacity - n >= more)
        return true;
    if (more > (size_t)32 * AK_GRAMMAR_MOST_PARTS - n) {
        ak_build_fail(b, AKUNU_ERROR_UNSUPPORTED, "the grammar is too large");
        return false;
    }
    size_t wanted = (n + more) * 2;
    grown = ak_realloc(*at, wanted, size);
    if (!grown) {
        no_memory(b);
        return false;
    }
    *at = grown;
    *capacity = (uint32_t)wanted;
    return true;
}

void ak_build_append(struct ak_build *b, struct ak_part_list *list, uint32_t part)
{
    if (room(b, &list->items, &list->room, list->n, 1, sizeof *list->items))
        list->items[list->n++] = part;
}

static uint32_t add(struct ak_build *b, enum ak_part_kind kind, uint32_t a, uint32_t b_, uint32_t c)
{
    struct ak_grammar *g = b->g;
    if (!ak_build_ok(b))
        return AK_BUILD_NOTHING;
    if (g->n_parts == AK_GRAMMAR_MOST_PARTS)
        return ak_build_fail(b, AKUNU_ERROR_UNSUPPORTED, "the grammar has more than %d parts",
                             AK_GRAMMAR_MOST_PARTS);
    if (!room(b, &g->parts, &b->parts, g->n_parts, 1, sizeof *g->parts))
        return AK_BUILD_NOTHING;
    g->parts[g->n_parts] = (struct ak_part){ .kind = (uint8_t)kind, .a = a, .b = b_, .c = c };
    return g->n_parts++;
}

void ak_build_begin(struct ak_build *b, struct ak_error *error)
{
    *b = (struct ak_build){ .error = error };
    b->g = ak_alloc(1, sizeof *b->g);
    if (!b->g)
        no_memory(b);
    add(b, AK_PART_NOTHING, 0, 0, 0);
    add(b, AK_PART_EMPTY, 0, 0, 0);
}

void ak_build_drop(struct ak_build *b)
{
    ak_grammar_free(b->g);
    ak_free(b->set_parts);
    *b = (struct ak_build){ .status = b->status, .error = b->error };
}

uint32_t ak_build_bytes(struct ak_build *b, const struct ak_byte_set *set)
{
    struct ak_grammar *g = b->g;
    if (!ak_build_ok(b) || !(set->bits[0] | set->bits[1] | set->bits[2] | set->bits[3]))
        return AK_BUILD_NOTHING;
    /* the same few sets come again and again */
    for (uint32_t i = g->n_sets, seen = 0; i-- > 0 && seen < 64; seen++)
        if (memcmp(&g->sets[i], set, sizeof *set) == 0)
            return b->set_parts[i];
    if (!room(b, &g->sets, &b->sets, g->n_sets, 1, sizeof *g->sets) ||
        !room(b, &b->set_parts, &b->set_room, g->n_sets, 1, sizeof *b->set_parts))
        return AK_BUILD_NOTHING;
    uint32_t part = add(b, AK_PART_BYTES, g->n_sets, 0, 0);
    g->sets[g->n_sets] = *set;
    b->set_parts[g->n_sets++] = part;
    return part;
}

uint32_t ak_build_byte_range(struct ak_build *b, unsigned char low, unsigned char high)
{
    struct ak_byte_set set = { { 0 } };
    for (unsigned c = low; c <= high; c++)
        set.bits[c >> 6] |= UINT64_C(1) << (c & 63);
    return ak_build_bytes(b, &set);
}

uint32_t ak_build_literal(struct ak_build *b, const char *bytes, size_t n)
{
    struct ak_grammar *g = b->g;
    if (n == 0)
        return AK_BUILD_EMPTY;
    if (!ak_build_ok(b) || !room(b, &g->bytes, &b->bytes, g->n_bytes, n, 1))
        return AK_BUILD_NOTHING;
    memcpy(g->bytes + g->n_bytes, bytes, n);
    g->n_bytes += (uint32_t)n;
    return add(b, AK_PART_LITERAL, g->n_bytes - (uint32_t)n, (uint32_t)n, 0);
}

uint32_t ak_build_text(struct ak_build *b, const char *text)
{
    return ak_build_literal(b, text, strlen(text));
}

/* Appends the parts that count to the grammar's lists and gives the new part. */
static uint32_t add_list(struct ak_build *b, enum ak_part_kind kind, const uint32_t *parts,
                         uint32_t n, uint32_t without)
{
    struct ak_grammar *g = b->g;
    if (!ak_build_ok(b) || !room(b, &g->lists, &b->lists, g->n_lists, n, sizeof *g->lists))
        return AK_BUILD_NOTHING;
    uint32_t first = g->n_lists, kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (parts[i] != without)
            g->lists[first + kept++] = parts[i];
    if (kept == 0)
        return without;
    if (kept == 1)
        return g->lists[first];
    g->n_lists += kept;
    return add(b, kind, first, kept, 0);
}

uint32_t ak_build_sequence(struct ak_build *b, const uint32_t *parts, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (parts[i] == AK_BUILD_NOTHING)
            return AK_BUILD_NOTHING;
    return add_list(b, AK_PART_SEQUENCE, parts, n, AK_BUILD_EMPTY);
}

uint32_t ak_build_choice(struct ak_build *b, const uint32_t *parts, uint32_t n)
{
    return add_list(b, AK_PART_CHOICE, parts, n, AK_BUILD_NOTHING);
}

uint32_t ak_build_two(struct ak_build *b, uint32_t first, uint32_t second)
{
    return ak_build_sequence(b, (uint32_t[]){ first, second }, 2);
}

uint32_t ak_build_either(struct ak_build *b, uint32_t one, uint32_t another)
{
    return one == another ? one : ak_build_choice(b, (uint32_t[]){ one, another }, 2);
}

uint32_t ak_build_repeat(struct ak_build *b, uint32_t part, uint32_t low, uint32_t high)
{
    if (low > high)
        return AK_BUILD_NOTHING;
    if (high == 0 || part == AK_BUILD_EMPTY)
        return AK_BUILD_EMPTY;
    if (part == AK_BUILD_NOTHING)
        return low == 0 ? AK_BUILD_EMPTY : AK_BUILD_NOTHING;
    if (low == 1 && high == 1)
        return part;
    return add(b, AK_PART_REPEAT, part, low, high);
}

uint32_t ak_build_rule(struct ak_build *b, const char *name, size_t n)
{
    struct ak_grammar *g = b->g;
    if (!ak_build_ok(b) || !room(b, &g->rules, &b->rules, g->n_rules, 1, sizeof *g->rules))
        return 0;
    char *copy = ak_strndup(name, n);
    if (!copy)
        no_memory(b);
    else
        g->rules[g->n_rules++] = (struct ak_rule){ .name = copy };
    return g->n_rules - (copy != NULL);
}

void ak_build_define(struct ak_build *b, uint32_t rule, uint32_t part)
{
    if (ak_build_ok(b))
        b->g->rules[rule].part = part;
}

uint32_t ak_build_call(struct ak_build *b, uint32_t rule)
{
    return add(b, AK_PART_RULE, rule, 0, 0);
}

void ak_build_alike(struct ak_build *b, uint32_t call, uint32_t other)
{
    if (ak_build_ok(b) && call != other)
        b->g->parts[call].b = other;
}

uint32_t ak_build_token(struct ak_build *b, uint32_t id, const char *text, size_t n, bool negated)
{
    struct ak_grammar *g = b->g;
    struct ak_token_name token = { .id = id, .n = (uint32_t)n };
    if (!ak_build_ok(b) || !room(b, &g->tokens, &b->tokens, g->n_tokens, 1, sizeof *g->tokens))
        return AK_BUILD_NOTHING;
    if (text) {
        token.literal = ak_build_literal(b, text, n);
        token.text = ak_strndup(text, n);
        if (!token.text) {
            no_memory(b);
            return AK_BUILD_NOTHING;
        }
    }
    g->tokens[g->n_tokens++] = token;
    return add(b, AK_PART_TOKEN, g->n_tokens - 1, negated, 0);
}

uint32_t ak_build_members(struct ak_build *b, const struct ak_member *list, uint32_t n,
                          const struct ak_members *how)
{
    struct ak_grammar *g = b->g;
    if (!ak_build_ok(b) || !room(b, &g->member, &b->member, g->n_member, n, sizeof *g->member) ||
        !room(b, &g->members, &b->members, g->n_members, 1, sizeof *g->members))
        return AK_BUILD_NOTHING;
    struct ak_members *m = &g->members[g->n_members++];
    *m = *how;
    m->first = g->n_member;
    m->n = n;
    for (uint32_t i = 0; i < n; i++)
        g->member[g->n_member++] = list[i];
    return add(b, AK_PART_MEMBERS, g->n_members - 1, 0, 0);
}

uint32_t ak_build_until(struct ak_build *b, const struct ak_ending *words, size_t n, bool open)
{
    struct ak_grammar *g = b->g;
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        if (words[i].n == 0 || words[i].n > AK_WORDS_MOST_BYTES)
            return ak_build_fail(b, AKUNU_ERROR_ARGUMENT,
                                 "a trigger word has %zu bytes: 1 to %d are expected", words[i].n,
                                 AK_WORDS_MOST_BYTES);
        bytes += words[i].n;
    }
    if (n == 0 || n > AK_WORDS_MOST_BYTES || bytes > AK_WORDS_MOST_BYTES)
        return ak_build_fail(b, AKUNU_ERROR_ARGUMENT,
                             "%zu trigger words of %zu bytes together: at least one and at most %d "
                             "bytes are expected",
                             n, bytes, AK_WORDS_MOST_BYTES);
    if (!room(b, &g->words, &b->words, g->n_words, 1, sizeof *g->words) ||
        !room(b, &g->lists, &b->lists, g->n_lists, n, sizeof *g->lists))
        return AK_BUILD_NOTHING;
    struct ak_words w = { .thens = g->n_lists, .n_thens = (uint32_t)n };
    if (!ak_words_make(words, n, bytes, &w)) {
        no_memory(b);
        return AK_BUILD_NOTHING;
    }
    for (size_t i = 0; i < n; i++)
        g->lists[g->n_lists++] = words[i].then;
    g->words[g->n_words++] = w;
    return add(b, AK_PART_UNTIL, g->n_words - 1, open, 0);
}

ak_status ak_build_finish(struct ak_build *b, uint32_t root, struct ak_grammar **out)
{
    *out = NULL;
    if (ak_build_ok(b)) {
        b->g->root = root;
        b->status = ak_grammar_settle(b->g, b->error);
    }
    if (ak_build_ok(b)) {
        *out = b->g;
        b->g = NULL;
    }
    ak_build_drop(b);
    return b->status;
}
