/* Gemma 3 (text): norms before and after attention and feed-forward and on the heads of q and k.
 * Five of six layers have a window and their own rotary base, without scaling. The largest model
 * scales scores by width / heads instead of the head size; GGUF has no key for that. */
#include <math.h>

#include "model/model.h"

enum { LAYERS_OF_27B = 62 };

static const char *const names[] = { "gemma3", "gemma3_text", NULL };

static const struct ak_family_rule weights[] = {
#include "model/decoder_weights.def"
#include "model/ffn_weights.def"
    { AK_ROLE_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.input_layernorm.weight" },
    { AK_ROLE_ATTENTION_Q_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_HEAD, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.q_norm.weight" },
    { AK_ROLE_ATTENTION_K_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_HEAD, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.k_norm.weight" },
    { AK_ROLE_POST_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.post_attention_layernorm.weight" },
    { AK_ROLE_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.pre_feedforward_layernorm.weight" },
    { AK_ROLE_POST_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.post_feedforward_layernorm.weight" },
};

static ak_status describe(const struct ak_provider *p, const struct ak_spec_config *config,
                          struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    out->activation = AK_OP_ACTIVATION_GELU_TANH;
    out->embedding_scale = sqrtf((float)config->width);
    out->post_norms = true;
    if (config->n_layers == LAYERS_OF_27B)
        out->attention_scale = 1.0f / sqrtf((float)config->width / (float)config->n_heads);
    AK_TRY(ak_spec_read_positive(p, config, "attention.scale", out->attention_scale,
                                 &out->attention_scale, error));
    AK_TRY(ak_spec_read_positive(p, config, "rope.freq_base_swa", 10000.0f, &out->local_rope_base,
                                 error));
    out->local =
        (struct ak_spec_layer_kind){ .window = config->window, .rotation = AK_SPEC_ROTATE_LOCAL };
    out->global_every = config->global_every ? config->global_every : 6;
    return AKUNU_OK;
}

const struct ak_family ak_family_gemma3 = {
    .names = names,
    .description = "Gemma 3, text only",
    .describe = describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .hf_norm_offset = 1.0f,
    .emit = ak_build_decoder,
};
