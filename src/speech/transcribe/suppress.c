/* Finds the tokens of symbols with the model's tokenizer. */
#include "speech/transcribe/suppress.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* Suppressed if the symbol, or a space and the symbol, is one token. */
static const char *const symbols_of_one_token[] = {
    "\"",  "#",  "(",  ")",   "*",   "+",   "/",   ":",  ";",   "<",  "=",  ">",
    "@",   "[",  "\\", "]",   "^",   "_",   "`",   "{",  "|",   "}",  "~",  "「",
    "」",  "『", "』", "<<",  ">>",  "<<<", ">>>", "--", "---", "-(", "-[", "('",
    "(\"", "((", "))", "(((", ")))", "[[",  "]]",  "{{", "}}",  "♪♪", "♪♪♪"
};

/* Suppressed by the first token, which all of them share if they have several. */
static const char *const notes[] = { "♩", "♪", "♫", "♬", "♭", "♮", "♯" };

enum {
    N_SYMBOLS = sizeof symbols_of_one_token / sizeof *symbols_of_one_token,
    N_NOTES = sizeof notes / sizeof *notes,
    N_SPECIAL = 6,
    MAX = N_SPECIAL + 2 + 2 * (N_SYMBOLS + N_NOTES)
};

/* The first token of a text; *n: how many it has. */
static ak_status encode_symbol(const struct ak_tokenizer *tokenizer, const char *prefix,
                               const char *text, int32_t *first, size_t *n, struct ak_error *error)
{
    char whole[16];
    int bytes = snprintf(whole, sizeof whole, "%s%s", prefix, text);
    return ak_tok_encode(tokenizer, whole, (size_t)bytes, 0, first, 1, n, error);
}

static ak_status add_symbols(const struct ak_tokenizer *tokenizer, int32_t *out, size_t *n_out,
                             struct ak_error *error)
{
    static const char *const prefixes[] = { "", " " };
    size_t n;
    for (size_t i = 0; i < N_SYMBOLS + N_NOTES; i++)
        for (int p = 0; p < 2; p++) {
            bool is_note = i >= N_SYMBOLS;
            AK_TRY(encode_symbol(tokenizer, prefixes[p],
                                 is_note ? notes[i - N_SYMBOLS] : symbols_of_one_token[i],
                                 &out[*n_out], &n, error));
            *n_out += n == 1 || (is_note && n > 0);
        }
    /* within words they are written, before them not */
    AK_TRY(encode_symbol(tokenizer, " ", "-", &out[*n_out], &n, error));
    *n_out += n > 0;
    AK_TRY(encode_symbol(tokenizer, " ", "'", &out[*n_out], &n, error));
    *n_out += n > 0;
    return AKUNU_OK;
}

ak_status ak_transcribe_suppressed(const struct ak_tokenizer *tokenizer,
                                   const struct ak_speech_tokens *tokens, bool symbols,
                                   int32_t **out, size_t *n, struct ak_error *error)
{
    const int32_t special[N_SPECIAL] = { tokens->transcribe,     tokens->translate,
                                         tokens->start,          tokens->previous,
                                         tokens->language_model, tokens->no_speech };
    *n = N_SPECIAL;
    *out = ak_alloc(MAX, sizeof **out);
    if (!*out)
        return ak_fail_memory(error, "a list of tokens", MAX * sizeof **out);
    memcpy(*out, special, sizeof special);
    return symbols ? add_symbols(tokenizer, *out, n, error) : AKUNU_OK;
}

ak_status ak_transcribe_blank(const struct ak_tokenizer *tokenizer, int32_t *out,
                              struct ak_error *error)
{
    size_t n;
    AK_TRY(encode_symbol(tokenizer, " ", "", out, &n, error));
    if (n == 0)
        *out = -1;
    return AKUNU_OK;
}
