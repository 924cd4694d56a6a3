/* Loaded model: weights, dispatch tables and tokenizer. It is immutable, except for the token trie,
 * which the first grammar builds under a lock; sessions and threads share it. */
#ifndef AK_ENGINE_SESSION_MODEL_H
#define AK_ENGINE_SESSION_MODEL_H

#include "engine/backend/profile.h"
#include "engine/backends/ranks.h"
#include "base/refs.h"
#include "engine/dispatch/table.h"
#include "text/tokenizer/tokenizer.h"

struct ak_model_trie;
struct ak_pack_cache_plan; /* engine/pack/cache.h */

/* Identifies an adapter in use, for cache keys. */
struct ak_model_adapter {
    uint64_t bytes, hash[2];
    int64_t mtime_ns;
    float scale;
};

/* The weights of a head for scores, as floats; NULL: not in it. */
struct ak_session_head {
    float *dense, *dense_bias; /* [n_dense, width], [n_dense] */
    float *out, *out_bias;     /* [n_labels, n_dense or width], [n_labels] */
};

struct ak_model {
    struct ak_refs refs;
    struct ak_backend_profile profile; /* measured values below the user's */
    char *profile_text;
    enum akunu_prefill prefill;
    struct ak_backend *backend;
    struct ak_provider *provider;
    struct ak_spec spec;
    struct ak_spec own;     /* what this rank computes of it; unused without ranks */
    struct akunu_rope rope; /* what the user asked for in place of the file's values */
    struct ak_model_adapter *adapters;
    size_t n_adapters;
    struct ak_binding binding;
    struct ak_weights weights;
    struct ak_session_head head;
    struct ak_tokenizer *tokenizer;   /* NULL: the file has no vocabulary */
    struct ak_model_trie *token_trie; /* token trie of the vocabulary, for grammars */
    struct ak_table table; /* gives logits; encoder: hidden states, and the next two are empty */
    struct ak_table sampled_table, hidden_table;
    struct ak_table encoder_table; /* of a speech model; else empty */
};

/* What this process computes of the model. */
static inline const struct ak_spec *ak_model_own_spec(const struct ak_model *m)
{
    return ak_spec_is_shared(&m->own) ? &m->own : &m->spec;
}

/* Opens a model that is quantized at load, if params->quantize or params->importance is set; *out
 * NULL: neither. conversion/convert/online.h does that, which engine/session/ does not know. */
typedef ak_status ak_model_open_fn(const char *path, const struct akunu_load_params *params,
                                   struct ak_provider **out, struct ak_error *error);

/* What is loaded: `provider` if it is given, otherwise the file or folder at `path`, otherwise the
 * GGUF file of `fd`, which stays the caller's. */
struct ak_model_source {
    struct ak_provider *provider; /* becomes the model's, and is closed if the load fails */
    const char *path;             /* names the file in messages; NULL: the provider's */
    int fd;
    const struct akunu_load_params *params;
    ak_model_open_fn *open_quantized; /* NULL: the model is loaded as it is stored */
    struct ak_comm *comm; /* of a rank that follows rank 0, whose parameters these are; or NULL */
    /* The load makes no tokenizer and ends before the weights are packed: the model serves for
     * questions about sizes alone. */
    bool sizes_only;
    /* With sizes_only, receives what the packed cache would do; NULL: not wanted. */
    struct ak_pack_cache_plan *cache_plan;
};

/* Runs the load stages in the order of enum akunu_load_stage and reports each (load.c). The caller
 * owns *out after success; on failure everything is released. If params->comm has several ranks,
 * all of them load what is at `path`. */
ak_status ak_model_load(const struct ak_model_source *source, struct ak_model **out,
                        struct ak_error *error);
/* One more owner of the model, who frees it too. */
struct ak_model *ak_model_ref(struct ak_model *m);
void ak_model_free(struct ak_model *m); /* NULL allowed */

/* Reads the weights that spec->head names into *out (score.c). ak_session_head_clear(out) must
 * follow in the end, after a failure too. */
ak_status ak_session_head_read(const struct ak_provider *p, const struct ak_spec *spec,
                               struct ak_session_head *out, struct ak_error *error);
void ak_session_head_clear(struct ak_session_head *head);

/* Shape of a model's KV pool, without pages and states. Regardless of the types, an encoder's is
 * F32, since it is small and lives for one pass, and a speech model's is F32, or F16 if its weights
 * are quantized. */
struct ak_kv_shape ak_model_kv_shape(const struct ak_model *m, enum akunu_kv_type k_type,
                                     enum akunu_kv_type v_type);

#endif
