/* Check of token masks for the fuzz targets grammar.c and schema.c: aborts unless a mask allows
 * exactly the tokens that the grammar takes byte by byte. */
#ifndef AK_TESTS_FUZZ_MASKS_H
#define AK_TESTS_FUZZ_MASKS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/grammar/token_trie.h"
#include "text/tokenizer/internal.h"

/* All bytes, and longer tokens: some share beginnings, two are the same bytes as others, two are
 * longer than masks look closely, and one ends a text. */
static const char *const masks_longer[] = {
    "the",
    "th",
    " the",
    "{\"",
    "\":",
    "\": \"",
    "\",",
    "\"}",
    "],",
    "}}",
    "00",
    "12",
    "-1",
    "1e",
    ".5",
    "2024-02-29",
    "true",
    "false",
    "null",
    "é",
    "é",
    "éa",
    "漢",
    "漢字",
    "漢",
    "\\u00",
    "\\n",
    "\\\"",
    "aa",
    "aaa",
    "aaaa",
    "aaaaaaaa",
    "aaaaaaaaaaaaaaaa",
    "ab",
    "aba",
    "abab",
    "ba",
    "b",
    "  ",
    "    ",
    "\n\n",
    "a b",
    "a-",
    "0a",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "abababababababababababababababababababababababababababababababab",
    "0000000000000000000000000000000000000000000000",
};
enum {
    MASKS_BYTES = 256,
    MASKS_LONGER = sizeof masks_longer / sizeof *masks_longer,
    MASKS_END = MASKS_BYTES + MASKS_LONGER,
    MASKS_TOKENS
};

/* The bytes of token i; those of one byte are written to *byte. */
static const char *masks_token(unsigned i, char *byte, size_t *n)
{
    *byte = (char)i;
    const char *text = i < MASKS_BYTES ? byte : i < MASKS_END ? masks_longer[i - MASKS_BYTES] : "";
    *n = i < MASKS_BYTES ? 1 : strlen(text);
    return text;
}

static const struct ak_grammar_token_trie *masks_trie(void)
{
    static struct ak_grammar_token_trie *trie;
    static char written[MASKS_TOKENS][256];
    struct ak_text tokens[MASKS_TOKENS], merge = { "t h", 3 };
    int32_t types[MASKS_TOKENS];
    struct ak_vocab vocab = ak_vocab_none;
    struct ak_tokenizer *t; /* kept for ever */
    struct ak_error error;

    if (trie)
        return trie;
    for (unsigned i = 0; i < MASKS_TOKENS; i++) {
        char byte;
        size_t n, at = 0;
        const char *text = masks_token(i, &byte, &n);
        for (size_t k = 0; k < n; k++)
            at += ak_tok_encode_printable((unsigned char)text[k], written[i] + at);
        types[i] = i < MASKS_END ? 1 : 3;
        tokens[i] = i < MASKS_END ? (struct ak_text){ written[i], (uint32_t)at } :
                                    (struct ak_text){ "(end)", 5 };
    }
    vocab.model = (struct ak_text){ "gpt2", 4 };
    vocab.pre = (struct ak_text){ "gpt-2", 5 };
    vocab.n_tokens = MASKS_TOKENS;
    vocab.tokens = tokens;
    vocab.types = types;
    vocab.n_merges = 1;
    vocab.merges = &merge;
    vocab.eos = MASKS_END;
    if (ak_tok_create(&vocab, &t, &error) != AKUNU_OK ||
        ak_grammar_token_trie_create(t, MASKS_TOKENS, &trie, &error) != AKUNU_OK) {
        fprintf(stderr, "the vocabulary of the masks: %s\n", error.message);
        abort();
    }
    return trie;
}

/* After `text`, or as much of it as the grammar allows. Grammars that name tokens are passed over.
 */
static void masks_check(struct ak_grammar *g, const char *text, size_t n)
{
    struct ak_grammar_matcher *m = NULL, *plain = NULL;
    struct ak_error error;
    const uint32_t *mask;
    size_t taken;
    bool ok = ak_grammar_matcher_create(g, masks_trie(), &m, &error) == AKUNU_OK &&
              ak_grammar_matcher_create(g, NULL, &plain, &error) == AKUNU_OK;

    ok = ok && ak_grammar_matcher_accept_bytes(m, text, n, &taken, &error) == AKUNU_OK &&
         ak_grammar_matcher_get_mask(m, &mask, &error) == AKUNU_OK;
    for (unsigned i = 0; ok && i < MASKS_TOKENS; i++) {
        char byte;
        size_t n_piece, before, after;
        const char *piece = masks_token(i, &byte, &n_piece);
        ok = ak_grammar_matcher_reset(plain, &error) == AKUNU_OK &&
             ak_grammar_matcher_accept_bytes(plain, text, taken, &before, &error) == AKUNU_OK &&
             ak_grammar_matcher_accept_bytes(plain, piece, n_piece, &after, &error) == AKUNU_OK;
        bool want = i == MASKS_END ? ak_grammar_matcher_is_accepting(plain) : after == n_piece;
        if (ok && want != ak_grammar_mask_has(mask, i)) {
            fprintf(stderr, "after %zu bytes token %u \"%s\" is %s\n", taken, i, piece,
                    want ? "not allowed" : "allowed");
            abort();
        }
    }
    ak_grammar_matcher_free(m);
    ak_grammar_matcher_free(plain);
}

#endif
