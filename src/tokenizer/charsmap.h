/* SentencePiece's precompiled character map: a double array (XCDA, Kanda 2018) of
 * byte strings, and what each is to be replaced by. Its form: u32 bytes of the
 * array, the array of u32, then texts that end with NUL. */
#ifndef AK_TOKENIZER_CHARSMAP_H
#define AK_TOKENIZER_CHARSMAP_H

#include "base/error.h"
#include "weights/provider.h"

/* Into `map`, which is all zero before; copies. */
struct ak_tok_charsmap {
    uint32_t *nodes;
    uint32_t n_nodes;
    char *texts; /* ends with NUL */
    size_t n_text_bytes;
};

ak_status ak_tok_charsmap_load(struct ak_tok_charsmap *map, struct ak_text bytes,
                               struct ak_error *error);
void ak_tok_charsmap_free(struct ak_tok_charsmap *map);

/* The longest string of the map, or with `shortest` the shortest, that begins the
 * text: the number of its bytes, 0 where none does. */
size_t ak_tok_charsmap_find(const struct ak_tok_charsmap *map, const char *text, size_t n,
                            bool shortest, struct ak_text *replacement);

#endif
