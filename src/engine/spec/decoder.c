/* The decoder block that most language models share:
 *
 *   x → norm → q k v → rotate → attention → output → + x
 *   x → norm → gate, up → activation → down → + x
 *
 * Layers without attention have a gated short convolution in its place:
 *
 *   x → norm → b c x → c · convolution of b · x → output → + x
 *
 * or the gated delta rule (Yang, Kautz and Hatamizadeh, "Gated Delta Networks", 2024):
 *
 *   x → norm → q k v, z → convolution of q k v → state → norm · SiLU(z) → output → + x
 *         └──→ beta, alpha ───────────────────────↑
 *
 * Decoders of models with an encoder attend to its output between the two:
 *
 *   x → norm → q → attention over the encoder's K and V → output → + x
 *
 * The last feed-forward network is computed for the rows whose logits are wanted: of a prompt, one.
 *
 * The descriptor decides the rest: kinds and places of norms, scales, caps, and the layers' windows
 * and rotations. */
#include <math.h>

#include "engine/spec/arch.h"

ak_status ak_spec_describe_decoder(const struct ak_provider *p, const struct ak_spec_config *config,
                                   struct ak_spec_descriptor *out, struct ak_error *error)
{
    float squared; /* GGUF's converter omits it for Gemma */
    AK_TRY(ak_spec_read_positive(p, config, "query_pre_attn_scalar", (float)config->head_dim,
                                 &squared, error));
    *out = (struct ak_spec_descriptor){
        .activation = AK_OP_ACTIVATION_SILU,
        .embedding_scale = 1.0f,
        .residual_scale = 1.0f,
        .attention_scale = 1.0f / sqrtf(squared),
        .logit_divisor = 1.0f,
        .global_first = config->global_first,
        .ffn_norm = AK_ROLE_FFN_NORM,
        .output_norm = AK_ROLE_OUTPUT_NORM,
    };
    return AKUNU_OK;
}

ak_status ak_spec_describe_windows(const struct ak_provider *p, const struct ak_spec_config *config,
                                   struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    out->local.window = config->window;
    out->global_every = config->global_every;
    return AKUNU_OK;
}

ak_status ak_spec_read_late_windows(const struct ak_provider *p, struct ak_spec_config *config,
                                    struct ak_error *error)
{
    uint32_t first;
    if (config->window == 0 || config->global_every > 0)
        return AKUNU_OK;
    AK_TRY(ak_spec_read_u32(p, config, "max_window_layers", 0, &first, error));
    ak_spec_set_global_layers(config, first);
    return AKUNU_OK;
}

/* `bias` is used by LayerNorm only. */
static ak_build_value build_norm(struct ak_builder *b, const struct ak_spec *spec, ak_build_value x,
                                 enum ak_role weight, enum ak_role bias, int layer)
{
    if (spec->descriptor.layer_norm)
        return ak_build_layer_norm(b, x, weight, bias, layer, spec->config.norm_eps);
    return ak_build_norm(b, x, weight, layer, spec->config.norm_eps);
}

static void build_rotation(struct ak_builder *b, const struct ak_spec *spec, ak_build_value qkv,
                           int layer)
{
    const struct ak_spec_config *c = &spec->config;
    const struct ak_spec_descriptor *d = &spec->descriptor;
    enum ak_spec_rotation rotation = ak_spec_layer(spec, layer)->rotation;
    if (d->qk_norm_rows) {
        ak_build_norm_part(b, qkv, AK_OP_LINEAR_QKV, 0, AK_ROLE_ATTENTION_Q_NORM, layer,
                           c->norm_eps);
        ak_build_norm_part(b, qkv, AK_OP_LINEAR_QKV, 1, AK_ROLE_ATTENTION_K_NORM, layer,
                           c->norm_eps);
    }
    ak_build_qkv(
        b, qkv, AK_OP_LINEAR_QKV, layer, !d->qk_norm_rows,
        (struct ak_op_qkv_params){ .n_heads = c->n_heads,
                                   .n_kv_heads = c->n_kv_heads,
                                   .head_dim = c->head_dim,
                                   .rope_dims = rotation == AK_SPEC_ROTATE_NONE ? 0 : c->rope_dims,
                                   .rope_table = rotation == AK_SPEC_ROTATE_LOCAL ? 1 : 0,
                                   .interleaved = d->rope_interleaved,
                                   .norm_eps = c->norm_eps });
}

ak_status ak_spec_describe_experts(const struct ak_provider *p, const struct ak_spec_config *config,
                                   struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_validate_experts(config, error));
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    out->has_experts = true;
    return AKUNU_OK;
}

ak_status ak_spec_describe_shared_expert(const struct ak_provider *p,
                                         const struct ak_spec_config *config,
                                         struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_experts(p, config, out, error));
    if (config->shared_width == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is missing",
                       ak_spec_key_name(config, "expert_shared_feed_forward_length"));
    return AKUNU_OK;
}

static ak_build_value build_attention(struct ak_builder *b, const struct ak_spec *spec,
                                      ak_build_value x, int layer)
{
    const struct ak_spec_config *c = &spec->config;
    const struct ak_spec_descriptor *d = &spec->descriptor;
    ak_build_value h = d->no_pre_norms ? x :
                                         build_norm(b, spec, x, AK_ROLE_ATTENTION_NORM,
                                                    AK_ROLE_ATTENTION_NORM_BIAS, layer);
    ak_build_value qkv = ak_build_linear(b, h, AK_OP_LINEAR_QKV, layer);
    build_rotation(b, spec, qkv, layer);
    ak_build_value a = ak_build_attention(
        b, qkv, AK_OP_LINEAR_QKV, layer,
        (struct ak_op_attention_params){
            .n_heads = c->n_heads,
            .n_kv_heads = c->n_kv_heads,
            .head_dim = c->head_dim,
            .window = ak_spec_layer(spec, layer)->window,
            .scale = d->attention_scale / (d->divides_by_layer ? (float)layer + 1.0f : 1.0f),
            .cap = d->attention_cap });
    ak_build_value out = ak_build_linear(b, a, AK_OP_LINEAR_ATTENTION_OUTPUT, layer);
    return d->post_norms ? ak_build_norm(b, out, AK_ROLE_POST_ATTENTION_NORM, layer, c->norm_eps) :
                           out;
}

static ak_build_value build_cross_attention(struct ak_builder *b, const struct ak_spec *spec,
                                            ak_build_value x, int layer)
{
    const struct ak_spec_config *c = &spec->config;
    ak_build_value h = build_norm(b, spec, x, AK_ROLE_CROSS_ATTENTION_NORM,
                                  AK_ROLE_CROSS_ATTENTION_NORM_BIAS, layer);
    ak_build_value q = ak_build_linear(b, h, AK_OP_LINEAR_CROSS_Q, layer);
    ak_build_value a = ak_build_attention(
        b, q, AK_OP_LINEAR_CROSS_Q, layer,
        (struct ak_op_attention_params){ .n_heads = c->n_heads,
                                         .n_kv_heads = c->n_kv_heads,
                                         .head_dim = c->head_dim,
                                         .cross = true,
                                         .scale = spec->descriptor.attention_scale });
    return ak_build_linear(b, a, AK_OP_LINEAR_CROSS_OUTPUT, layer);
}

static ak_build_value build_short_conv(struct ak_builder *b, const struct ak_spec *spec,
                                       ak_build_value x, int layer)
{
    ak_build_value h =
        build_norm(b, spec, x, AK_ROLE_ATTENTION_NORM, AK_ROLE_ATTENTION_NORM_BIAS, layer);
    ak_build_value in = ak_build_linear(b, h, AK_OP_LINEAR_CONV_IN, layer);
    return ak_build_linear(b, ak_build_short_conv(b, in, layer, spec->config.conv_taps),
                           AK_OP_LINEAR_CONV_OUT, layer);
}

static ak_build_value build_gated_delta(struct ak_builder *b, const struct ak_spec *spec,
                                        ak_build_value x, int layer)
{
    ak_build_value h =
        build_norm(b, spec, x, AK_ROLE_ATTENTION_NORM, AK_ROLE_ATTENTION_NORM_BIAS, layer);
    ak_build_value in = ak_build_linear(b, h, AK_OP_LINEAR_DELTA_IN, layer);
    ak_build_value gates = ak_build_linear(b, h, AK_OP_LINEAR_DELTA_GATES, layer);
    ak_build_value heads = ak_build_delta(b, ak_build_conv(b, in, layer), gates, layer);
    return ak_build_linear(b, ak_build_norm_gated(b, heads, in, layer, spec->config.norm_eps),
                           AK_OP_LINEAR_DELTA_OUTPUT, layer);
}

static ak_build_value build_mixer(struct ak_builder *b, const struct ak_spec *spec,
                                  ak_build_value x, int layer)
{
    if (!ak_spec_is_recurrent(&spec->config, layer))
        return build_attention(b, spec, x, layer);
    return spec->config.delta_k_heads > 0 ? build_gated_delta(b, spec, x, layer) :
                                            build_short_conv(b, spec, x, layer);
}

static ak_build_value build_feed_forward(struct ak_builder *b, const struct ak_spec *spec,
                                         ak_build_value x, int layer)
{
    const struct ak_spec_config *c = &spec->config;
    const struct ak_spec_descriptor *d = &spec->descriptor;
    ak_build_value h =
        d->no_pre_norms ? x : build_norm(b, spec, x, d->ffn_norm, AK_ROLE_FFN_NORM_BIAS, layer);
    ak_build_value up = ak_build_linear(b, h, AK_OP_LINEAR_GATE_UP, layer);
    if (d->ungated)
        ak_build_activate(b, up, layer, d->activation, c->ffn_width);
    else
        up = ak_build_gated(b, up, AK_OP_LINEAR_GATE_UP, layer, d->activation, c->ffn_width);
    ak_build_value out = ak_build_linear(b, up, AK_OP_LINEAR_FFN_DOWN, layer);
    return d->post_norms ? ak_build_norm(b, out, AK_ROLE_POST_FFN_NORM, layer, c->norm_eps) : out;
}

/* Adds to x the outputs of each token's experts and of the shared expert. */
static void add_experts(struct ak_builder *b, const struct ak_spec *spec, ak_build_value x,
                        int layer)
{
    const struct ak_spec_config *c = &spec->config;
    const struct ak_spec_descriptor *d = &spec->descriptor;
    ak_build_value h = build_norm(b, spec, x, d->ffn_norm, AK_ROLE_FFN_NORM_BIAS, layer);
    ak_build_value logits = ak_build_linear(b, h, AK_OP_LINEAR_ROUTER, layer);
    ak_build_value routes =
        ak_build_route(b, logits, layer,
                       (struct ak_op_route_params){ .n_experts = c->n_experts,
                                                    .n_used = c->n_experts_used,
                                                    .normalized = d->normalized_experts });
    ak_build_value rows = ak_build_gather(b, h, routes, layer);
    ak_build_value gate_up = ak_build_linear(b, rows, AK_OP_LINEAR_EXPERTS_GATE_UP, layer);
    ak_build_value f = ak_build_gated(b, gate_up, AK_OP_LINEAR_EXPERTS_GATE_UP, layer,
                                      d->activation, c->expert_width);
    ak_build_combine(b, x, ak_build_linear(b, f, AK_OP_LINEAR_EXPERTS_DOWN, layer), routes, layer);
    if (c->shared_width == 0)
        return;
    gate_up = ak_build_linear(b, h, AK_OP_LINEAR_SHARED_GATE_UP, layer);
    f = ak_build_gated(b, gate_up, AK_OP_LINEAR_SHARED_GATE_UP, layer, d->activation,
                       c->shared_width);
    ak_build_add_gated(b, x, ak_build_linear(b, f, AK_OP_LINEAR_SHARED_DOWN, layer), h,
                       AK_ROLE_FFN_SHARED_ROUTER, layer);
}

void ak_build_decoder(struct ak_builder *b, const struct ak_spec *spec)
{
    const struct ak_spec_descriptor *d = &spec->descriptor;
    ak_build_value x = ak_build_embed(b, d->embedding_scale);
    int end = (int)ak_spec_end_layer(spec);
    for (int layer = (int)ak_spec_first_layer(spec); layer < end; layer++) {
        ak_build_add(b, x, build_mixer(b, spec, x, layer), d->residual_scale);
        if (spec->config.n_encoder_layers > 0)
            ak_build_add(b, x, build_cross_attention(b, spec, x, layer), d->residual_scale);
        if (d->has_experts) {
            add_experts(b, spec, x, layer);
            continue;
        }
        if (layer + 1 == (int)spec->config.n_layers)
            x = ak_build_select(b, x);
        ak_build_add(b, x, build_feed_forward(b, spec, x, layer), d->residual_scale);
    }
    if (!ak_spec_has_output(spec)) {
        ak_build_send(b, x);
        return;
    }
    if (d->has_experts) /* the rows of experts are those of all tokens */
        x = ak_build_select(b, x);
    ak_build_value wanted =
        build_norm(b, spec, x, d->output_norm, AK_ROLE_OUTPUT_NORM_BIAS, AK_ROLE_NO_LAYER);
    ak_build_logits(b, wanted, d->logit_divisor, d->logit_cap);
}
