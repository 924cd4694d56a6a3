/* A SentencePiece model as its file has it. sentencepiece.c reads it for ak_tok_from_sentencepiece
 * and for the slow tokenizers of Hugging Face folders (slow_spm.c). */
#ifndef AK_TEXT_TOKENIZER_SENTENCEPIECE_H
#define AK_TEXT_TOKENIZER_SENTENCEPIECE_H

#include "base/error.h"
#include "files/weights/provider.h"

/* TrainerSpec.ModelType */
enum { AK_TOK_SPM_UNIGRAM = 1, AK_TOK_SPM_BPE = 2 };

/* SentencePiece.Type, which GGUF has too */
enum { AK_TOK_PIECE_NORMAL = 1, AK_TOK_PIECE_CONTROL = 3, AK_TOK_PIECE_ADDED = 4 };

struct ak_tok_spm {
    uint32_t n;             /* number of pieces */
    struct ak_text *pieces; /* per piece, as the next two; texts point into the file */
    float *scores;
    int32_t *types;
    uint64_t type; /* AK_TOK_SPM_UNIGRAM or AK_TOK_SPM_BPE */
    int64_t unknown, bos, eos;
    struct ak_text charsmap; /* n = 0: none */
    bool byte_fallback, add_space_prefix, remove_extra_whitespaces;
};

/* Reads a model; `file` is its name for messages. AKUNU_ERROR_UNSUPPORTED: another model type, or
 * BPE whose normalizer changes text. Call ak_tok_spm_free(m) even after a failure. */
ak_status ak_tok_spm_read(struct ak_text bytes, const char *file, struct ak_tok_spm *m,
                          struct ak_error *error);
void ak_tok_spm_free(struct ak_tok_spm *m);

#endif
