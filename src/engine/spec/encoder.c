/* The encoder block: tokens attend in both directions.
 *
 *   BERT      x + attention(x) → norm → x + feed-forward(x) → norm
 *   others    x + attention(norm(x)), x + feed-forward(norm(x)), and a norm at the end */
#include <math.h>
#include <string.h>

#include "engine/spec/arch.h"

void ak_spec_describe_encoder(const struct ak_spec_config *config, struct ak_spec_descriptor *out)
{
    *out = (struct ak_spec_descriptor){
        .encoder = true,
        .activation = AK_OP_ACTIVATION_GELU_ERF,
        .ungated = true,
        .layer_norm = true,
        .no_pre_norms = true,
        .sum_norms = true,
        .embedding_scale = 1.0f,
        .residual_scale = 1.0f,
        .attention_scale = 1.0f / sqrtf((float)config->head_dim),
        .local = { .rotation = AK_SPEC_ROTATE_NONE },
    };
}

ak_status ak_spec_read_activation(const struct ak_provider *p, const struct ak_spec_config *config,
                                  const char *key, enum ak_op_activation *out,
                                  struct ak_error *error)
{
    static const struct {
        const char *name;
        enum ak_op_activation activation;
    } known[] = {
        { "gelu", AK_OP_ACTIVATION_GELU_ERF },
        { "gelu_new", AK_OP_ACTIVATION_GELU_TANH },
        { "gelu_pytorch_tanh", AK_OP_ACTIVATION_GELU_TANH },
        { "gelu_fast", AK_OP_ACTIVATION_GELU_TANH },
        { "gelu_python_tanh", AK_OP_ACTIVATION_GELU_TANH },
        { "gelu_accurate", AK_OP_ACTIVATION_GELU_TANH },
        { "gelu_python", AK_OP_ACTIVATION_GELU_ERF },
        { "relu", AK_OP_ACTIVATION_RELU },
        { "silu", AK_OP_ACTIVATION_SILU },
        { "swish", AK_OP_ACTIVATION_SILU },
        { "swiglu", AK_OP_ACTIVATION_SILU },
        { "geglu", AK_OP_ACTIVATION_GELU_ERF },
    };
    char found[AK_SPEC_KEY_BYTES];
    struct ak_text name;
    struct ak_meta meta;
    if (!ak_spec_find(p, config, key, found, &meta))
        return AKUNU_OK;
    AK_TRY(ak_meta_to_text(&meta, &name, error));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == name.n && memcmp(known[i].name, name.bytes, name.n) == 0) {
            *out = known[i].activation;
            return AKUNU_OK;
        }
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "%s is \"%.*s\"; supported: kinds of gelu, silu, relu, swiglu, geglu", found,
                   (int)(name.n < 64 ? name.n : 64), name.bytes);
}

ak_status ak_spec_describe_bert(const struct ak_provider *p, const struct ak_spec_config *config,
                                struct ak_spec_descriptor *out, struct ak_error *error)
{
    (void)p, (void)error;
    ak_spec_describe_encoder(config, out);
    return AKUNU_OK;
}

static ak_build_value build_norm(struct ak_builder *b, const struct ak_spec *spec, ak_build_value x,
                                 enum ak_role weight, enum ak_role bias, int layer)
{
    return ak_build_layer_norm(b, x, weight, bias, layer, spec->config.norm_eps);
}

/* The first layer may have no norm of its own, since the embedding is normed. */
static ak_build_value build_pre_norm(struct ak_builder *b, const struct ak_spec *spec,
                                     ak_build_value x, enum ak_role weight, enum ak_role bias,
                                     int layer)
{
    return ak_build_has_vector(b, weight, layer) ? build_norm(b, spec, x, weight, bias, layer) : x;
}

static ak_build_value build_attention(struct ak_builder *b, const struct ak_spec *spec,
                                      ak_build_value x, int layer)
{
    const struct ak_spec_config *c = &spec->config;
    const struct ak_spec_descriptor *d = &spec->descriptor;
    const struct ak_spec_layer_kind *kind = ak_spec_layer(spec, layer);
    ak_build_value h = d->no_pre_norms ? x :
                                         build_pre_norm(b, spec, x, AK_ROLE_ATTENTION_NORM,
                                                        AK_ROLE_ATTENTION_NORM_BIAS, layer);
    ak_build_value qkv = ak_build_linear(b, h, AK_OP_LINEAR_QKV, layer);
    ak_build_qkv(b, qkv, AK_OP_LINEAR_QKV, layer, false,
                 (struct ak_op_qkv_params){
                     .n_heads = c->n_heads,
                     .n_kv_heads = c->n_kv_heads,
                     .head_dim = c->head_dim,
                     .rope_dims = kind->rotation == AK_SPEC_ROTATE_NONE ? 0 : c->rope_dims,
                     .rope_table = kind->rotation == AK_SPEC_ROTATE_LOCAL ? 1 : 0 });
    ak_build_value a =
        ak_build_attention(b, qkv, AK_OP_LINEAR_QKV, layer,
                           (struct ak_op_attention_params){ .n_heads = c->n_heads,
                                                            .n_kv_heads = c->n_kv_heads,
                                                            .head_dim = c->head_dim,
                                                            .window = kind->window,
                                                            .bidirectional = true,
                                                            .alibi = d->alibi,
                                                            .scale = d->attention_scale });
    return ak_build_linear(b, a, AK_OP_LINEAR_ATTENTION_OUTPUT, layer);
}

static ak_build_value build_feed_forward(struct ak_builder *b, const struct ak_spec *spec,
                                         ak_build_value x, int layer)
{
    const struct ak_spec_config *c = &spec->config;
    const struct ak_spec_descriptor *d = &spec->descriptor;
    ak_build_value h = d->no_pre_norms ?
                           x :
                           build_norm(b, spec, x, AK_ROLE_FFN_NORM, AK_ROLE_FFN_NORM_BIAS, layer);
    ak_build_value up = ak_build_linear(b, h, AK_OP_LINEAR_GATE_UP, layer);
    if (d->ungated)
        ak_build_activate(b, up, layer, d->activation, c->ffn_width);
    else
        up = ak_build_gated(b, up, AK_OP_LINEAR_GATE_UP, layer, d->activation, c->ffn_width);
    return ak_build_linear(b, up, AK_OP_LINEAR_FFN_DOWN, layer);
}

/* Adds `part` to the residual and norms the sum if the architecture does. */
static ak_build_value build_sum(struct ak_builder *b, const struct ak_spec *spec, ak_build_value x,
                                ak_build_value part, enum ak_role weight, enum ak_role bias,
                                int layer)
{
    ak_build_add(b, x, part, spec->descriptor.residual_scale);
    return spec->descriptor.sum_norms ? build_norm(b, spec, x, weight, bias, layer) : x;
}

void ak_build_encoder(struct ak_builder *b, const struct ak_spec *spec)
{
    const struct ak_spec_descriptor *d = &spec->descriptor;
    ak_build_value x = ak_build_embed(b, d->embedding_scale);
    int first = (int)ak_spec_first_layer(spec), end = (int)ak_spec_end_layer(spec);
    if (first == 0)
        x = build_norm(b, spec, x, AK_ROLE_EMBEDDING_NORM, AK_ROLE_EMBEDDING_NORM_BIAS,
                       AK_ROLE_NO_LAYER);
    for (int layer = first; layer < end; layer++) {
        x = build_sum(b, spec, x, build_attention(b, spec, x, layer), AK_ROLE_ATTENTION_OUTPUT_NORM,
                      AK_ROLE_ATTENTION_OUTPUT_NORM_BIAS, layer);
        x = build_sum(b, spec, x, build_feed_forward(b, spec, x, layer), AK_ROLE_LAYER_OUTPUT_NORM,
                      AK_ROLE_LAYER_OUTPUT_NORM_BIAS, layer);
    }
    if (!ak_spec_has_output(spec)) {
        ak_build_send(b, x);
        return;
    }
    ak_build_value wanted = ak_build_select(b, x);
    if (!d->no_pre_norms)
        wanted = build_norm(b, spec, wanted, AK_ROLE_OUTPUT_NORM, AK_ROLE_OUTPUT_NORM_BIAS,
                            AK_ROLE_NO_LAYER);
    ak_build_hidden(b, wanted);
}
