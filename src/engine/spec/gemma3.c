/* Gemma 3 (text): norms before and after attention and feed-forward and on the heads of q and k.
 * Five of six layers have a window and their own rotary base, without scaling. The largest model
 * scales scores by width / heads instead of the head size; GGUF has no key for that. */
#include <math.h>

#include "engine/spec/arch.h"

enum { LAYERS_OF_27B = 62 };

static const char *const names[] = { "gemma3", "gemma3_text", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "gemma3 gemma3_text",
      .reads = "vocab_size=262208 hidden_size=2304 intermediate_size=9216 "
               "num_hidden_layers=26 num_attention_heads=8 num_key_value_heads=4 "
               "head_dim=256 hidden_activation=gelu_pytorch_tanh "
               "max_position_embeddings=131072 rms_norm_eps=1e-6 "
               "tie_word_embeddings=true rope_theta=1000000 rope_local_base_freq=10000 "
               "query_pre_attn_scalar=256 sliding_window=4096 layer_types "
               "sliding_window_pattern=6 final_logit_softcapping " AK_KEYS_ROPES,
      .fixed = AK_KEYS_PLAIN_LOCAL_ROPE "attention_bias=false attn_logit_softcapping=none ",
      .unused = "_sliding_window_pattern hidden_act " },
    { .reads =
          AK_KEYS_GGUF_DECODER AK_KEYS_GGUF_WINDOW "final_logit_softcapping rope.freq_base_swa "
                                                   "query_pre_attn_scalar hidden_activation " },
};

static const struct ak_arch_rule weights[] = {
#include "engine/spec/decoder_weights.def"
#include "engine/spec/ffn_weights.def"
    { AK_ROLE_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.input_layernorm.weight" },
    { AK_ROLE_ATTENTION_Q_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_HEAD, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.q_norm.weight" },
    { AK_ROLE_ATTENTION_K_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_HEAD, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.k_norm.weight" },
    { AK_ROLE_POST_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.post_attention_layernorm.weight" },
    { AK_ROLE_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.pre_feedforward_layernorm.weight" },
    { AK_ROLE_POST_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.post_feedforward_layernorm.weight" },
};

static ak_status gemma3_describe(const struct ak_provider *p, const struct ak_spec_config *config,
                                 struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    out->activation = AK_OP_ACTIVATION_GELU_TANH;
    out->embedding_scale = sqrtf((float)config->width);
    out->post_norms = true;
    if (config->naming == AK_PROVIDER_NAMING_GGUF && config->n_layers == LAYERS_OF_27B)
        out->attention_scale = 1.0f / sqrtf((float)config->width / (float)config->n_heads);
    AK_TRY(ak_spec_read_positive(p, config, "attention.scale", out->attention_scale,
                                 &out->attention_scale, error));
    AK_TRY(
        ak_spec_read_positive(p, config, "final_logit_softcapping", 0.0f, &out->logit_cap, error));
    if (config->is_nested && out->logit_cap > 0.0f) /* the class for pictures drops it */
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "text_config.final_logit_softcapping is %g; supported: null",
                       (double)out->logit_cap);
    AK_TRY(ak_spec_read_positive(p, config, "rope.freq_base_swa", 10000.0f, &out->local_rope_base,
                                 error));
    out->local =
        (struct ak_spec_layer_kind){ .window = config->window, .rotation = AK_SPEC_ROTATE_LOCAL };
    out->global_every = config->global_every ? config->global_every : 6;
    return AKUNU_OK;
}

const struct ak_arch ak_arch_gemma3 = {
    .names = names,
    .description = "Gemma 3, text only",
    .activation_key = "hidden_activation",
    .describe = gemma3_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .hf_norm_offset = 1.0f,
    .emit = ak_build_decoder,
};
