/* Template environment: arena, limits and error of one parse or one rendering.
 *
 * A failure unwinds everything at once by longjmp. All memory is the arena's, so there is nothing
 * to clean up and no value has to be checked for an error. Code in this folder must therefore own
 * nothing but arena memory. */
#ifndef AK_TEXT_TEMPLATE_JINJA_ENVIRONMENT_H
#define AK_TEXT_TEMPLATE_JINJA_ENVIRONMENT_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/template/jinja/jinja.h"

/* ---- Arena -------------------------------------------------------------- */
/* Memory that is freed all at once. */
struct ak_jarena_block;
struct ak_jarena {
    struct ak_jarena_block *blocks; /* newest first */
    char *next, *end;               /* free part of the newest block */
    size_t bytes, max_bytes;        /* allocated from the system, and its limit */
};

/* Zeroed memory at a multiple of 16; NULL: out of memory, or the limit is reached. */
void *ak_j_arena_alloc(struct ak_jarena *arena, size_t bytes);

/* Extends the newest allocation in place; the new part is zeroed. False: not possible. */
bool ak_j_arena_extend(struct ak_jarena *arena, const void *p, size_t old_bytes, size_t bytes);

void ak_j_arena_free(struct ak_jarena *arena);

/* ---- Environment -------------------------------------------------------- */
struct ak_jscope;
struct ak_jout;
struct ak_jspecials;

struct ak_jenv {
    struct ak_jarena arena;
    struct ak_error *error;
    jmp_buf failed;
    uint32_t line, column; /* of the current node, for messages */
    uint64_t steps;        /* steps left; after a failure its status */
    unsigned depth;
    /* rendering only */
    struct ak_jscope *scope;
    struct ak_jout *out;
    const struct ak_jspecials *specials;
    int64_t now; /* for strftime_now, seconds since 1970; 0: the clock */
};

/* Fails with AKUNU_ERROR_ARGUMENT; the message begins with line and column. */
_Noreturn void ak_j_fail(struct ak_jenv *j, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
_Noreturn void ak_j_fail_as(struct ak_jenv *j, ak_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Zeroed memory; never NULL. */
void *ak_j_alloc(struct ak_jenv *j, size_t n, size_t size);

/* Returns a copy of `old` with room for n elements; new elements are zeroed. */
void *ak_j_grow(struct ak_jenv *j, void *old, size_t n_old, size_t n, size_t size);

/* Counts n steps. Called for each node and each loop over data that a template can make long. */
void ak_j_spend(struct ak_jenv *j, uint64_t n);

/* Around every recursion: bounds its depth. */
void ak_j_enter(struct ak_jenv *j);
static inline void ak_j_leave(struct ak_jenv *j)
{
    j->depth--;
}

#endif
