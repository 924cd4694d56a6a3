/* Which tokens Whisper may write next, as the logit filters of openai/whisper's decoding.py say:
 * ids of the special tokens and languages, and the rules of timestamps. speech/search/ applies them
 * before it samples or searches; speech/transcribe/ finds languages and suppressed tokens;
 * conversion/convert/ names the special tokens. */
#ifndef AK_SPEECH_SEARCH_RULES_H
#define AK_SPEECH_SEARCH_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Ids of the special tokens, which follow the text tokens in one order in all of OpenAI's models.
 * 51,864 ids: English alone; 51,865: 99 languages; 51,866: 100. */
struct ak_speech_tokens {
    int32_t n; /* of the vocabulary */
    int32_t end, start;
    int32_t first_language; /* and the others after it */
    int32_t n_languages;    /* 99 of the English models too, which never write them */
    int32_t translate, transcribe, language_model, previous, no_speech, no_timestamps;
    int32_t first_time; /* 0.00 s; the others follow, 20 ms apart, up to 30 s */
    bool multilingual;
};

enum { AK_SPEECH_TIMES = 1501, AK_SPEECH_TIMES_PER_SECOND = 50 };

/* Index of a language by its code ("de"), its English name or another name that openai/whisper has
 * for it ("castilian"), in any case; -1: there is none. */
int32_t ak_speech_language_find(const char *text);
/* Its code; NULL: no language has this index. */
const char *ak_speech_language_code(int32_t language);
/* Has it spaces between words? */
bool ak_speech_language_has_spaces(int32_t language);
/* Its English name in lower case; NULL likewise. */
const char *ak_speech_language_name(int32_t language);

/* AKUNU_ERROR_UNSUPPORTED: a vocabulary of another size. */
ak_status ak_speech_tokens_find(uint32_t n_vocab, struct ak_speech_tokens *out,
                                struct ak_error *error);

struct ak_speech_rules {
    const struct ak_speech_tokens *tokens;
    bool timestamps;           /* false: the prompt ends in no_timestamps */
    int32_t latest_start;      /* largest first time, in steps of 20 ms; −1: any */
    int32_t blank;             /* a text may not begin with it; −1: it may */
    const int32_t *suppressed; /* never written */
    size_t n_suppressed;
};

/* What may follow in a text that a grammar constrains. */
struct ak_speech_allowed {
    const uint32_t *tokens; /* bit i % 32 of word i / 32: text token i may follow; NULL: any may */
    bool end;               /* the text may end here */
    bool more;              /* false: it must */
    float penalty;          /* subtracted from the logits of the others; infinity: they may not */
};

/* Sets the logits of what may not follow the n tokens written so far to −infinity. logits has
 * tokens->n elements. `allowed` NULL: there is no grammar. With one, a time may follow text only
 * where the text may end, and whether it does is decided by the logits of all tokens. */
void ak_speech_rules_apply(const struct ak_speech_rules *rules,
                           const struct ak_speech_allowed *allowed, const int32_t *written,
                           size_t n, float *logits);

#endif
