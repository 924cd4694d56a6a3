/* Gemma 2: norms before and after attention and feed-forward, soft caps of scores and logits, a
 * window in every other layer. The largest model scales scores by width / heads instead of the head
 * size; GGUF has no key for that. */
#include <math.h>

#include "engine/spec/arch.h"

enum { LAYERS_OF_27B = 46 };

static const char *const names[] = { "gemma2", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "gemma2",
      .reads = "vocab_size=256000 hidden_size=2304 intermediate_size=9216 "
               "num_hidden_layers=26 num_attention_heads=8 num_key_value_heads=4 "
               "head_dim=256 hidden_activation=gelu_pytorch_tanh "
               "max_position_embeddings=8192 rms_norm_eps=1e-6 tie_word_embeddings=true "
               "rope_theta=10000 query_pre_attn_scalar=256 sliding_window=4096 "
               "layer_types final_logit_softcapping?=30 attn_logit_softcapping?=50 " AK_KEYS_ROPE,
      .fixed = AK_KEYS_WHOLE_HEADS "attention_bias=false ",
      .unused = "sliding_window_size hidden_act " },
    { .reads = AK_KEYS_GGUF_DECODER AK_KEYS_GGUF_WINDOW
      "attn_logit_softcapping final_logit_softcapping query_pre_attn_scalar "
      "hidden_activation " },
};

static const struct ak_arch_rule weights[] = {
#include "engine/spec/decoder_weights.def"
#include "engine/spec/ffn_weights.def"
    { AK_ROLE_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.input_layernorm.weight" },
    { AK_ROLE_POST_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.post_attention_layernorm.weight" },
    { AK_ROLE_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.pre_feedforward_layernorm.weight" },
    { AK_ROLE_POST_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.post_feedforward_layernorm.weight" },
};

static ak_status gemma2_describe(const struct ak_provider *p, const struct ak_spec_config *config,
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
    bool is_gguf = config->naming == AK_PROVIDER_NAMING_GGUF; /* the defaults of llama.cpp */
    AK_TRY(ak_spec_read_positive(p, config, "attn_logit_softcapping", is_gguf ? 50.0f : 0.0f,
                                 &out->attention_cap, error));
    AK_TRY(ak_spec_read_positive(p, config, "final_logit_softcapping", is_gguf ? 30.0f : 0.0f,
                                 &out->logit_cap, error));
    out->local.window = config->window ? config->window : 4096;
    out->global_every = config->global_every ? config->global_every : 2;
    return AKUNU_OK;
}

const struct ak_arch ak_arch_gemma2 = {
    .names = names,
    .description = "Gemma 2",
    .activation_key = "hidden_activation",
    .describe = gemma2_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .hf_norm_offset = 1.0f,
    .emit = ak_build_decoder,
};
