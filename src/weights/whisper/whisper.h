/* Reader of whisper.cpp's GGML files, a format from before GGUF. Little-endian, without alignment:
 *
 *     magic         u32 0x67676d6c
 *     hparams       11 × i32: n_vocab, n_audio_ctx, n_audio_state, n_audio_head,
 *                   n_audio_layer, n_text_ctx, n_text_state, n_text_head, n_text_layer,
 *                   n_mels, ftype
 *     mel filters   i32 rows, i32 columns, rows × columns × f32
 *     tokens        i32 count; each: u32 bytes, the bytes
 *     tensors       to the end of the file, each: i32 dimensions, i32 bytes of the name,
 *                   i32 type (GGML's number), the dimensions as i32 (the contiguous one
 *                   first), the name, the data
 *
 * https://github.com/ggml-org/whisper.cpp/blob/master/models/convert-pt-to-ggml.py
 *
 *     whisper.c   the reader and the provider's functions
 *     names.c     names, roles and shapes of the tensors
 */
#ifndef AK_WEIGHTS_WHISPER_WHISPER_H
#define AK_WEIGHTS_WHISPER_WHISPER_H

#include "base/name_index.h"
#include "weights/formats.h"
#include "weights/provider.h"

enum ak_whisper_param {
    AK_WHISPER_VOCAB,
    AK_WHISPER_AUDIO_CTX,
    AK_WHISPER_AUDIO_STATE,
    AK_WHISPER_AUDIO_HEAD,
    AK_WHISPER_AUDIO_LAYER,
    AK_WHISPER_TEXT_CTX,
    AK_WHISPER_TEXT_STATE,
    AK_WHISPER_TEXT_HEAD,
    AK_WHISPER_TEXT_LAYER,
    AK_WHISPER_MELS,
    AK_WHISPER_FTYPE,
    AK_WHISPER_PARAMS
};

/* A dimension is the value of a parameter above, or one of these. */
enum { AK_WHISPER_NONE = AK_WHISPER_PARAMS, AK_WHISPER_FFN, AK_WHISPER_KERNEL };

struct ak_whisper_rule {
    const char *name; /* with "{n}" for the layer */
    enum ak_role role;
    /* row-major; AK_WHISPER_NONE: unused. A file may omit dimensions of 1. */
    int dims[3];
};
extern const struct ak_whisper_rule ak_whisper_rules[];
extern const size_t ak_whisper_n_rules;

/* NULL: no such rule. */
const struct ak_whisper_rule *ak_whisper_find_rule_by_name(const char *name, int *layer);
const struct ak_whisper_rule *ak_whisper_find_rule_by_role(enum ak_role role);

#endif
