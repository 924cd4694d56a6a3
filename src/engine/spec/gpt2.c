/* GPT-2: LayerNorm, biases everywhere, learned positions and no rotation, GELU without a gate; q, k
 * and v are one merged tensor. */
#include "engine/spec/arch.h"

static const char *const names[] = { "gpt2", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "gpt2",
      .reads = "vocab_size=50257 n_positions=1024 max_position_embeddings n_embd=768 "
               "hidden_size n_layer=12 num_hidden_layers n_head=12 num_attention_heads "
               "n_inner activation_function=gelu_new layer_norm_epsilon=1e-5 "
               "tie_word_embeddings=true scale_attn_weights=true "
               "scale_attn_by_inverse_layer_idx=false ",
      .unused = "n_ctx reorder_and_upcast_attn " },
    { .reads = AK_KEYS_GGUF_SIZES AK_KEYS_GGUF_ROPE
      "attention.layer_norm_epsilon attention.scale activation_function "
      "scale_attn_weights scale_attn_by_inverse_layer_idx " },
};

static const struct ak_arch_rule weights[] = {
    { AK_ROLE_TOKEN_EMBEDDING, AK_SPEC_DIM_VOCAB, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "transformer.wte.weight" },
    { AK_ROLE_POSITION_EMBEDDING, AK_SPEC_DIM_CONTEXT, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "transformer.wpe.weight" },
    { AK_ROLE_OUTPUT_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "transformer.ln_f.weight" },
    { AK_ROLE_OUTPUT_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "transformer.ln_f.bias" },
    { AK_ROLE_OUTPUT, AK_SPEC_DIM_VOCAB, AK_SPEC_DIM_WIDTH, AK_ARCH_OUTPUT_OR_TIED,
      "lm_head.weight" },
    { AK_ROLE_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "transformer.h.{n}.ln_1.weight" },
    { AK_ROLE_ATTENTION_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "transformer.h.{n}.ln_1.bias" },
    { AK_ROLE_ATTENTION_Q, AK_SPEC_DIM_Q, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "transformer.h.{n}.attn.c_attn.weight" },
    { AK_ROLE_ATTENTION_Q_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_Q, AK_ARCH_REQUIRED,
      "transformer.h.{n}.attn.c_attn.bias" },
    { AK_ROLE_ATTENTION_K, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "transformer.h.{n}.attn.c_attn.weight" },
    { AK_ROLE_ATTENTION_K_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_ARCH_REQUIRED,
      "transformer.h.{n}.attn.c_attn.bias" },
    { AK_ROLE_ATTENTION_V, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "transformer.h.{n}.attn.c_attn.weight" },
    { AK_ROLE_ATTENTION_V_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_ARCH_REQUIRED,
      "transformer.h.{n}.attn.c_attn.bias" },
    { AK_ROLE_ATTENTION_OUTPUT, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_Q, AK_ARCH_REQUIRED,
      "transformer.h.{n}.attn.c_proj.weight" },
    { AK_ROLE_ATTENTION_OUTPUT_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "transformer.h.{n}.attn.c_proj.bias" },
    { AK_ROLE_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "transformer.h.{n}.ln_2.weight" },
    { AK_ROLE_FFN_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "transformer.h.{n}.ln_2.bias" },
    { AK_ROLE_FFN_UP, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "transformer.h.{n}.mlp.c_fc.weight" },
    { AK_ROLE_FFN_UP_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_FFN, AK_ARCH_REQUIRED,
      "transformer.h.{n}.mlp.c_fc.bias" },
    { AK_ROLE_FFN_DOWN, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_FFN, AK_ARCH_REQUIRED,
      "transformer.h.{n}.mlp.c_proj.weight" },
    { AK_ROLE_FFN_DOWN_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "transformer.h.{n}.mlp.c_proj.bias" },
};

static const struct ak_arch_merged_tensor merged_tensors[] = {
    { AK_ROLE_ATTENTION_QKV, 3, { AK_ROLE_ATTENTION_Q, AK_ROLE_ATTENTION_K, AK_ROLE_ATTENTION_V } },
    { AK_ROLE_ATTENTION_QKV_BIAS,
      3,
      { AK_ROLE_ATTENTION_Q_BIAS, AK_ROLE_ATTENTION_K_BIAS, AK_ROLE_ATTENTION_V_BIAS } },
};

static ak_status gpt2_describe(const struct ak_provider *p, const struct ak_spec_config *config,
                               struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    out->activation = AK_OP_ACTIVATION_GELU_TANH;
    out->ungated = true;
    out->layer_norm = true;
    out->local.rotation = AK_SPEC_ROTATE_NONE;
    bool scaled;
    AK_TRY(ak_spec_read_bool(p, config, "scale_attn_weights", true, &scaled, error));
    if (!scaled)
        out->attention_scale = 1.0f;
    AK_TRY(ak_spec_read_positive(p, config, "attention.scale", out->attention_scale,
                                 &out->attention_scale, error));
    return ak_spec_read_bool(p, config, "scale_attn_by_inverse_layer_idx", false,
                             &out->divides_by_layer, error);
}

const struct ak_arch ak_arch_gpt2 = {
    .names = names,
    .description = "GPT-2",
    .activation_key = "activation_function",
    .describe = gpt2_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .merged_tensors = merged_tensors,
    .n_merged_tensors = sizeof merged_tensors / sizeof *merged_tensors,
    .hf_transposed = true,
    .emit = ak_build_decoder,
};
