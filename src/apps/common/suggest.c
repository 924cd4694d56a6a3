/* Finds the known word that was probably meant: one that begins like the typed one, else the
 * nearest to it. */
#include "apps/common/options.h"

#include <string.h>

enum { MAX_WORD = 32 };

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Insertions, deletions, replacements and swaps of neighbors that turn one
 * word into the other (optimal string alignment distance). */
static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    size_t d[MAX_WORD + 1][MAX_WORD + 1];
    for (size_t i = 0; i <= n_a; i++)
        d[i][0] = i;
    for (size_t j = 0; j <= n_b; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= n_a; i++)
        for (size_t j = 1; j <= n_b; j++) {
            size_t replaced = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = min_size(replaced, min_size(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = min_size(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n_a][n_b];
}

/* The shortest word that begins with the n bytes of `typed`; NULL: none. */
static const char *find_longer(const char *typed, size_t n, const char *const *words,
                               size_t n_words)
{
    const char *best = NULL;
    for (size_t i = 0; i < n_words; i++)
        if (strncmp(words[i], typed, n) == 0 && (!best || strlen(words[i]) < strlen(best)))
            best = words[i];
    return best;
}

const char *app_find_nearest(const char *typed, const char *const *words, size_t n)
{
    size_t n_typed = strlen(typed);
    const char *best = NULL;
    size_t best_distance = n_typed / 3 + 2; /* one above the largest distance that counts as near */
    if (n_typed < 2 || n_typed > MAX_WORD)
        return NULL;
    if (n_typed > 2 && (best = find_longer(typed, n_typed, words, n)) != NULL)
        return best;
    for (size_t i = 0; i < n; i++) {
        size_t n_word = strlen(words[i]);
        if (n_word > MAX_WORD)
            continue;
        size_t d = distance(typed, n_typed, words[i], n_word);
        if (d < best_distance && d < n_word) {
            best = words[i];
            best_distance = d;
        }
    }
    return best;
}
