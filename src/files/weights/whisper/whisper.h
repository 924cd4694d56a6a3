/* Reader of Whisper models in whisper.cpp's GGML files, a format from before GGUF, and in OpenAI's
 * checkpoints. A GGML file is little-endian, without alignment:
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
 * A checkpoint is what torch.save() makes of {"dims": sizes by these names, "model_state_dict":
 * tensors by name}: a ZIP archive with a pickle and the tensors' data (weights/torch). It has
 * neither filters nor tokens; those come from a file beside it.
 *
 *     whisper.c      checks, and the provider's functions
 *     ggml.c         reads GGML files
 *     checkpoint.c   reads checkpoints
 *     tiktoken.c     reads the tokens beside a checkpoint
 *     names.c        names, roles and shapes of the tensors
 */
#ifndef AK_FILES_WEIGHTS_WHISPER_WHISPER_H
#define AK_FILES_WEIGHTS_WHISPER_WHISPER_H

#include "base/name_index.h"
#include "files/weights/formats.h"
#include "files/weights/provider.h"

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
    AK_WHISPER_FTYPE, /* of GGML files only */
    AK_WHISPER_PARAMS
};

/* A dimension is the value of a parameter above, or one of these. */
enum { AK_WHISPER_NONE = AK_WHISPER_PARAMS, AK_WHISPER_FFN, AK_WHISPER_KERNEL };

/* name: OpenAI's; key: GGUF's. */
struct ak_whisper_param_info {
    const char *name, *key;
    uint32_t min, max;
};
extern const struct ak_whisper_param_info ak_whisper_params[AK_WHISPER_PARAMS];

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

struct ak_whisper_tensor {
    char *name;
    enum ak_quant_type type;
    unsigned n_dims;
    uint64_t shape[AK_TENSOR_DIMS_MAX]; /* as in struct ak_tensor */
    uint64_t offset, bytes;             /* in the file */
    /* a matrix that a checkpoint has column after column; NULL: rows. Owned */
    struct ak_composed_tensor *composed_tensor;
    enum ak_role role;
    int layer;
};

enum { AK_WHISPER_SIDECARS_MAX = 1 };

struct ak_whisper {
    struct ak_provider provider;
    struct ak_file file;
    uint32_t params[AK_WHISPER_PARAMS];
    size_t n_params;    /* that the format has */
    uint64_t ffn_width; /* from the first tensor that has it; 0: not known yet */
    uint32_t filter_rows, filter_cols;
    const uint8_t *filters; /* float32, little-endian, at any address; NULL: none */
    struct ak_text *tokens; /* [n_tokens]: text tokens, without special ones; NULL: none */
    uint32_t n_tokens;
    char *token_bytes;  /* what tokens point to; NULL: they point into the file */
    char *vocab_advice; /* which file would have the tokens; NULL: there are some */
    struct ak_whisper_tensor *tensors;
    size_t n, capacity;
    /* what the fingerprint hashes: the bytes before the first tensor, and an index elsewhere */
    uint64_t header_bytes, index_offset, index_bytes;
    struct ak_name_index index;
    struct ak_tensor_copies copies;
    struct {
        const char *name;
        struct ak_file file;
    } sidecars[AK_WHISPER_SIDECARS_MAX]; /* the file beside a checkpoint that has its vocabulary */
    size_t n_sidecars;
};

/* Checks how the parameters, each in its range, fit each other. */
ak_status ak_whisper_check_params(const struct ak_whisper *w, struct ak_error *error);

/* Adds a tensor whose name, type, shape, offset and bytes are set, and takes its name and
 * composed_tensor, which ak_whisper_close frees. Finds its role; checks its shape. */
ak_status ak_whisper_add_tensor(struct ak_whisper *w, const struct ak_whisper_tensor *t,
                                struct ak_error *error);

/* Checks that each tensor of such a model is there, once. */
ak_status ak_whisper_check_complete(struct ak_whisper *w, struct ak_error *error);
void ak_whisper_close(struct ak_provider *p);

/* ---- ggml.c, checkpoint.c ----------------------------------------------- */
bool ak_whisper_ggml_probe(const char *path);
ak_status ak_whisper_ggml_open(const char *path, struct ak_provider **out, struct ak_error *error);
bool ak_whisper_checkpoint_probe(const char *path);
ak_status ak_whisper_checkpoint_open(const char *path, struct ak_provider **out,
                                     struct ak_error *error);

/* ---- tiktoken.c --------------------------------------------------------- */
/* Sets the tokens from the lines of a .tiktoken file: base64, a space, the rank. */
ak_status ak_whisper_read_tiktoken(struct ak_whisper *w, const struct ak_file *file,
                                   struct ak_error *error);

#endif
