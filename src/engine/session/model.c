/* What a loaded model keeps, and for how long. load.c makes it. */
#include "engine/session/model.h"

#include "base/mem.h"
#include "engine/session/constraint.h"

/* Whether it is a speech model with weights in blocks. Its activations are rounded to 8 bits, so K
 * and V lose nothing as F16. */
static bool is_quantized_speech(const struct ak_model *m)
{
    const struct ak_view *embedding = m->weights.embedding;
    return m->spec.config.n_encoder_layers > 0 && embedding &&
           ak_quant_info(embedding->type)->block_elems > 1;
}

struct ak_kv_shape ak_model_kv_shape(const struct ak_model *m, enum akunu_kv_type k_type,
                                     enum akunu_kv_type v_type)
{
    const struct ak_spec *spec = ak_model_own_spec(m);
    if (spec->descriptor.encoder || spec->config.n_encoder_layers > 0)
        k_type = v_type = is_quantized_speech(m) ? AKUNU_KV_F16 : AKUNU_KV_F32;
    return (struct ak_kv_shape){ .n_layers = ak_spec_kv_layers(spec),
                                 .n_kv_heads = spec->config.n_kv_heads,
                                 .head_dim = spec->config.head_dim,
                                 .k_type = k_type,
                                 .v_type = v_type,
                                 .state_elems = ak_spec_state_elems(spec) };
}

struct ak_model *ak_model_ref(struct ak_model *m)
{
    ak_refs_take(&m->refs);
    return m;
}

void ak_model_free(struct ak_model *m)
{
    if (!m || !ak_refs_drop(&m->refs))
        return;
    if (m->backend) /* it may share the weights with a device */
        m->backend->ops->close(m->backend);
    ak_table_clear(&m->table);
    ak_table_clear(&m->sampled_table);
    ak_table_clear(&m->hidden_table);
    ak_table_clear(&m->encoder_table);
    ak_pack_clear(&m->weights);
    ak_session_head_clear(&m->head);
    ak_binding_clear(&m->binding);
    ak_spec_clear(&m->spec);
    ak_model_trie_free(m->token_trie);
    ak_tok_free(m->tokenizer);
    ak_provider_close(m->provider);
    ak_free(m->adapters);
    ak_free(m->profile_text);
    ak_free(m);
}
