/* Builds the token trie of a vocabulary. Tokens sorted by their bytes are added one after another,
 * which puts the nodes in depth-first order. */
#include "text/grammar/token_trie.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct entry {
    const char *bytes;
    uint32_t n;
    int32_t token;
};

static int compare_bytes(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, ak_min_size(x->n, y->n));
    if (order == 0)
        order = (x->n > y->n) - (x->n < y->n);
    return order ? order : (x->token > y->token) - (x->token < y->token);
}

/* Reads the bytes of each token, and marks end tokens and non-text tokens. */
static ak_status read_trie_tokens(struct ak_grammar_token_trie *t, struct ak_error *error)
{
    size_t capacity = 0, n = 0;
    for (uint32_t i = 0; i < t->n_tokens; i++) {
        int32_t id = (int32_t)i;
        size_t bytes = 0;
        t->first[i] = (uint32_t)n;
        if (ak_tok_is_end(t->tokenizer, id)) {
            ak_grammar_mask_set(t->end_tokens, i);
            continue;
        }
        if (capacity - n < AK_GRAMMAR_TOKEN_BYTES_MAX) {
            capacity = (n + AK_GRAMMAR_TOKEN_BYTES_MAX) * 2;
            char *grown = capacity < UINT32_MAX ? ak_realloc(t->bytes, capacity, 1) : NULL;
            if (!grown)
                return ak_fail_memory(error, "the vocabulary's bytes", capacity);
            t->bytes = grown;
        }
        AK_TRY(ak_tok_decode(t->tokenizer, &id, 1, AKUNU_CONTINUE, t->bytes + n,
                             AK_GRAMMAR_TOKEN_BYTES_MAX, &bytes, error));
        if (bytes == 0 || ak_tok_is_control(t->tokenizer, id))
            ak_grammar_mask_set(t->non_text_tokens, i);
        if (bytes <= AK_GRAMMAR_TOKEN_BYTES_MAX)
            n += bytes;
    }
    for (uint32_t i = t->n_tokens; i <= t->n_vocab; i++)
        t->first[i] = (uint32_t)n;
    return AKUNU_OK;
}

/* Closes the nodes open[to … depth − 1]: nothing more comes below them. Returns `to`, the new
 * depth. */
static uint32_t close_nodes(struct ak_grammar_token_trie *t, const uint32_t *open, uint32_t depth,
                            uint32_t to)
{
    while (depth > to) {
        struct ak_grammar_trie_node *node = &t->nodes[open[--depth]];
        node->skip = t->n_nodes;
        if (depth > 0)
            t->nodes[open[depth - 1]].height = (uint8_t)ak_max_size(
                t->nodes[open[depth - 1]].height, ak_min_size(node->height + 1u, 255));
    }
    return depth;
}

/* Adds sorted entries as nodes. open[i] is the node at depth i + 1 on the current path. */
static void add_nodes(struct ak_grammar_token_trie *t, const struct entry *list, uint32_t n)
{
    uint32_t open[AK_GRAMMAR_TOKEN_BYTES_MAX], depth = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t common = 0;
        while (common < depth && common < list[i].n &&
               t->nodes[open[common]].byte == (unsigned char)list[i].bytes[common])
            common++;
        depth = close_nodes(t, open, depth, common);
        for (; depth < list[i].n; depth++) {
            open[depth] = t->n_nodes++;
            t->nodes[open[depth]] =
                (struct ak_grammar_trie_node){ .token = -1,
                                               .depth = (uint16_t)(depth + 1),
                                               .byte = (unsigned char)list[i].bytes[depth] };
        }
        struct ak_grammar_trie_node *last = &t->nodes[open[depth - 1]];
        if (last->token >= 0)
            t->aliases[t->n_aliases++] =
                (struct ak_grammar_alias_token){ .token = (uint32_t)list[i].token,
                                                 .canonical_token = (uint32_t)last->token };
        else
            last->token = list[i].token;
        t->max_token_bytes = depth > t->max_token_bytes ? depth : t->max_token_bytes;
    }
    close_nodes(t, open, depth, 0);
}

static ak_status build_nodes(struct ak_grammar_token_trie *t, struct ak_error *error)
{
    struct entry *list = ak_alloc(t->n_tokens, sizeof *list);
    uint32_t n = 0;
    t->nodes = ak_alloc(t->first[t->n_vocab], sizeof *t->nodes);
    t->aliases = ak_alloc(t->n_tokens, sizeof *t->aliases);
    if (!list || !t->nodes || !t->aliases) {
        ak_free(list);
        return ak_fail_memory(error, "the vocabulary's trie",
                              (uint64_t)t->first[t->n_vocab] * sizeof *t->nodes);
    }
    for (uint32_t i = 0; i < t->n_tokens; i++)
        if (t->first[i + 1] > t->first[i] && !ak_grammar_mask_has(t->non_text_tokens, i))
            list[n++] =
                (struct entry){ t->bytes + t->first[i], t->first[i + 1] - t->first[i], (int32_t)i };
    qsort(list, n, sizeof *list, compare_bytes);
    add_nodes(t, list, n);
    ak_free(list);
    struct ak_grammar_trie_node *nodes = ak_realloc(t->nodes, t->n_nodes, sizeof *nodes);
    struct ak_grammar_alias_token *aliases = ak_realloc(t->aliases, t->n_aliases, sizeof *aliases);
    t->nodes = nodes ? nodes : t->nodes;
    t->aliases = aliases ? aliases : t->aliases;
    return AKUNU_OK;
}

ak_status ak_grammar_token_trie_create(const struct ak_tokenizer *tokenizer, uint32_t n_vocab,
                                       struct ak_grammar_token_trie **out, struct ak_error *error)
{
    *out = NULL;
    struct ak_grammar_token_trie *t = ak_alloc(1, sizeof *t);
    if (!t)
        return ak_fail_memory(error, "the vocabulary's trie", sizeof *t);
    t->tokenizer = tokenizer;
    t->n_vocab = n_vocab;
    t->n_tokens = (uint32_t)ak_min_size(ak_tok_n_tokens(tokenizer), n_vocab);
    t->first = ak_alloc((size_t)n_vocab + 1, sizeof *t->first);
    t->end_tokens = ak_alloc(ak_grammar_mask_n_words(t), sizeof *t->end_tokens);
    t->non_text_tokens = ak_alloc(ak_grammar_mask_n_words(t), sizeof *t->non_text_tokens);
    ak_status status = t->first && t->end_tokens && t->non_text_tokens ?
                           AKUNU_OK :
                           ak_fail_memory(error, "the vocabulary's trie", 0);
    if (status == AKUNU_OK)
        status = read_trie_tokens(t, error);
    if (status == AKUNU_OK)
        status = build_nodes(t, error);
    if (status != AKUNU_OK) {
        ak_grammar_token_trie_free(t);
        return status;
    }
    *out = t;
    return AKUNU_OK;
}

void ak_grammar_token_trie_free(struct ak_grammar_token_trie *t)
{
    if (!t)
        return;
    ak_free(t->nodes);
    ak_free(t->aliases);
    ak_free(t->bytes);
    ak_free(t->first);
    ak_free(t->end_tokens);
    ak_free(t->non_text_tokens);
    ak_free(t);
}

uint64_t ak_grammar_token_trie_bytes(const struct ak_grammar_token_trie *t)
{
    return sizeof *t + (uint64_t)t->n_nodes * sizeof *t->nodes +
           (uint64_t)t->n_aliases * sizeof *t->aliases + (uint64_t)t->n_vocab * sizeof *t->first +
           t->first[t->n_vocab] + (uint64_t)ak_grammar_mask_n_words(t) * 2 * sizeof *t->end_tokens;
}

uint32_t ak_grammar_token_trie_n_vocab(const struct ak_grammar_token_trie *t)
{
    return t->n_vocab;
}
