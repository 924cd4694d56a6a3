/* Building a grammar from parts.
 *
 * The first failure is kept in the builder, and what is built after it is not used: only
 * ak_build_finish need be looked at. Parts are simplified on the way: a sequence without
 * parts is the empty text, one with a part that has no text is nothing. */
#ifndef AK_TEXT_GRAMMAR_BUILD_H
#define AK_TEXT_GRAMMAR_BUILD_H

#include "grammar/grammar.h"

/* What a grammar may hold; a part and its place in a list take some 24 bytes. */
enum { AK_GRAMMAR_MOST_PARTS = 1 << 20 };

struct ak_build {
    struct ak_grammar *g;
    ak_status status; /* of the first failure */
    struct ak_error *error;
    /* what the grammar's arrays have room for */
    uint32_t parts, sets, bytes, lists, rules, tokens, member, members, words;
    uint32_t *set_parts; /* of each set its part */
    uint32_t set_room;
};

enum { AK_BUILD_NOTHING = 0, AK_BUILD_EMPTY = 1 }; /* parts that every grammar has */

/* A list of parts that grows. All zero at first; free with ak_free(items). */
struct ak_part_list {
    uint32_t *items;
    uint32_t n, room;
};
void ak_build_append(struct ak_build *b, struct ak_part_list *list, uint32_t part);

void ak_build_begin(struct ak_build *b, struct ak_error *error);
void ak_build_drop(struct ak_build *b); /* gives up; also after a failed begin */

/* Records a failure, as ak_fail; gives AK_BUILD_NOTHING. */
uint32_t ak_build_fail(struct ak_build *b, ak_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline bool ak_build_ok(const struct ak_build *b)
{
    return b->status == AKUNU_OK;
}

uint32_t ak_build_bytes(struct ak_build *b, const struct ak_byte_set *set);
uint32_t ak_build_byte_range(struct ak_build *b, unsigned char low, unsigned char high);
uint32_t ak_build_literal(struct ak_build *b, const char *bytes, size_t n);
uint32_t ak_build_text(struct ak_build *b, const char *text); /* a literal, terminated */
uint32_t ak_build_sequence(struct ak_build *b, const uint32_t *parts, uint32_t n);
uint32_t ak_build_choice(struct ak_build *b, const uint32_t *parts, uint32_t n);
uint32_t ak_build_two(struct ak_build *b, uint32_t first, uint32_t second);   /* a sequence */
uint32_t ak_build_either(struct ak_build *b, uint32_t one, uint32_t another); /* a choice */
/* high: AK_MANY */
uint32_t ak_build_repeat(struct ak_build *b, uint32_t part, uint32_t low, uint32_t high);

/* A new rule without a part; the name is copied, and may be "". */
uint32_t ak_build_rule(struct ak_build *b, const char *name, size_t n);
void ak_build_define(struct ak_build *b, uint32_t rule, uint32_t part);
uint32_t ak_build_call(struct ak_build *b, uint32_t rule);
/* Of two calls: up to AK_NEAR_BYTES bytes on, whatever may follow the one may follow the other. */
void ak_build_alike(struct ak_build *b, uint32_t call, uint32_t other);

/* By number, or where text is not NULL by its text. */
uint32_t ak_build_token(struct ak_build *b, uint32_t id, const char *text, size_t n, bool negated);

uint32_t ak_build_members(struct ak_build *b, const struct ak_member *list, uint32_t n,
                          const struct ak_members *how);
/* A word that a text is searched for, and the part that follows it. Of words that are complete
 * at the same byte the longest one counts. */
struct ak_ending {
    const char *text;
    size_t n;
    uint32_t then;
    bool start; /* only where nothing but blanks stands before */
};
/* Any text up to one of the words; `open`: it may also end without one. */
uint32_t ak_build_until(struct ak_build *b, const struct ak_ending *words, size_t n, bool open);

/* Finds out which parts are possible and nullable, and refuses left recursion; the
 * builder is spent. */
ak_status ak_build_finish(struct ak_build *b, uint32_t root, struct ak_grammar **out);

/* settle.c */
ak_status ak_grammar_settle(struct ak_grammar *g, struct ak_error *error);
/* words.c: words of so many bytes together, none of them empty; false without memory. */
bool ak_words_make(const struct ak_ending *words, size_t n, size_t bytes, struct ak_words *out);

#endif
