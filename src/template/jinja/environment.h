/* The state of one parse or one rendering, and how it fails.
 *
 * A failure leaves everything at once (longjmp), as in other small interpreters: all memory
 * is the arena's, so there is nothing to clean up on the way, and no value has to be looked at
 * for being an error. Nothing in this folder holds anything but arena memory. */
#ifndef AK_TEMPLATE_JINJA_ENVIRONMENT_H
#define AK_TEMPLATE_JINJA_ENVIRONMENT_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "template/jinja/jinja.h"

/* ---- Arena -------------------------------------------------------------- */

struct ak_jarena_block;
struct ak_jarena {
    struct ak_jarena_block *blocks; /* the newest first */
    char *next, *end;               /* what is free of it */
    size_t bytes, max_bytes;        /* taken of the system, and the limit */
};

/* Zeroed, at a multiple of 16; NULL where the limit is reached or there is no memory. */
void *ak_j_arena_alloc(struct ak_jarena *arena, size_t bytes);

/* Makes the newest allocation longer where it lies; false where that is not possible. The
 * new part is zeroed. */
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
    uint32_t line, column; /* of what runs now, for messages */
    uint64_t steps;        /* left */
    unsigned depth;
    /* of a rendering */
    struct ak_jscope *scope;
    struct ak_jout *out;
    const struct ak_jspecials *specials;
    int64_t now; /* of strftime_now; 0: the clock */
};

/* Fails with AKUNU_ERROR_ARGUMENT, the place before the message. */
_Noreturn void ak_j_fail(struct ak_jenv *j, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
_Noreturn void ak_j_fail_as(struct ak_jenv *j, ak_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Zeroed memory; never NULL. */
void *ak_j_alloc(struct ak_jenv *j, size_t n, size_t size);

/* A larger array in place of `old`; new elements are zeroed. */
void *ak_j_grow(struct ak_jenv *j, void *old, size_t n_old, size_t n, size_t size);

/* Accounts for `n` steps: each node, and each loop over what a template can make long. */
void ak_j_spend(struct ak_jenv *j, uint64_t n);

/* Every recursion passes here on its way in and out. */
void ak_j_enter(struct ak_jenv *j);
static inline void ak_j_leave(struct ak_jenv *j)
{
    j->depth--;
}

#endif
