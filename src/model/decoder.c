/* The decoder block that most language models share:
 *
 *   x → norm → q k v → rotate → attention → output → + x
 *   x → norm → gate, up → activation → down → + x
 */
#include <math.h>

#include "model/model.h"

ak_status ak_describe_decoder(const struct ak_provider *p, const struct ak_config *config, struct ak_descriptor *out,
                              struct ak_error *error)
{
    (void)p;
    (void)error;
    *out = (struct ak_descriptor){
        .activation = AK_ACTIVATION_SILU,
        .embedding_scale = 1.0f,
        .attention_scale = 1.0f / sqrtf((float)config->head_dim),
    };
    return AKUNU_OK;
}

static ak_value attention(struct ak_builder *b, const struct ak_spec *spec, ak_value x, int layer)
{
    const struct ak_config *c = &spec->config;
    const struct ak_descriptor *d = &spec->descriptor;
    ak_value h = ak_build_norm(b, x, AK_ROLE_ATTENTION_NORM, layer, c->norm_eps);
    ak_value qkv = ak_build_linear(b, h, AK_LINEAR_QKV, layer);
    ak_build_qkv(b, qkv, layer, true, (struct ak_qkv_params){
        .n_heads = c->n_heads, .n_kv_heads = c->n_kv_heads, .head_dim = c->head_dim,
        .rope_dims = c->rope_dims, .interleaved = d->rope_interleaved, .norm_eps = c->norm_eps });
    ak_value a = ak_build_attention(b, qkv, layer, (struct ak_attention_params){
        .n_heads = c->n_heads, .n_kv_heads = c->n_kv_heads, .head_dim = c->head_dim,
        .window = d->window, .scale = d->attention_scale });
    return ak_build_linear(b, a, AK_LINEAR_ATTENTION_OUTPUT, layer);
}

static ak_value feed_forward(struct ak_builder *b, const struct ak_spec *spec, ak_value x, int layer)
{
    const struct ak_config *c = &spec->config;
    ak_value h = ak_build_norm(b, x, AK_ROLE_FFN_NORM, layer, c->norm_eps);
    ak_value gate_up = ak_build_linear(b, h, AK_LINEAR_GATE_UP, layer);
    ak_value f = ak_build_gated(b, gate_up, layer, spec->descriptor.activation, c->ffn_width);
    return ak_build_linear(b, f, AK_LINEAR_FFN_DOWN, layer);
}

void ak_emit_decoder(struct ak_builder *b, const struct ak_spec *spec)
{
    ak_value x = ak_build_embed(b, spec->descriptor.embedding_scale);
    for (int layer = 0; layer < (int)spec->config.n_layers; layer++) {
        ak_build_add(b, x, attention(b, spec, x, layer), 1.0f);
        ak_build_add(b, x, feed_forward(b, spec, x, layer), 1.0f);
    }
    ak_value wanted = ak_build_select(b, x);
    ak_build_logits(b, ak_build_norm(b, wanted, AK_ROLE_OUTPUT_NORM, AK_NO_LAYER, spec->config.norm_eps), 1.0f, 0.0f);
}
