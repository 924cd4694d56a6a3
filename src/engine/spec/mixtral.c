/* Mixtral: Llama's block with experts. GGUF gives both the same name. */
#include "engine/spec/arch.h"

static const char *const names[] = { "llama", "mixtral", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "mixtral",
      .reads = "vocab_size=32000 hidden_size=4096 intermediate_size=14336 "
               "num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=8 "
               "head_dim hidden_act=silu max_position_embeddings=131072 "
               "rms_norm_eps=1e-5 tie_word_embeddings=false rope_theta=1000000 "
               "sliding_window num_experts_per_tok=2 num_local_experts=8 num_experts " AK_KEYS_ROPE,
      .fixed = AK_KEYS_WHOLE_HEADS },
    { .reads = AK_KEYS_GGUF_DECODER AK_KEYS_GGUF_WINDOW AK_KEYS_GGUF_EXPERTS },
};

static const struct ak_arch_rule weights[] = {
#include "engine/spec/decoder_weights.def"
    { AK_ROLE_ROPE_FREQS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_ROPE_HALF, AK_ARCH_OPTIONAL,
      "rope_freqs.weight" },
    { AK_ROLE_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.input_layernorm.weight" },
    { AK_ROLE_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.post_attention_layernorm.weight" },
    { AK_ROLE_FFN_ROUTER, AK_SPEC_DIM_EXPERTS, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.block_sparse_moe.gate.weight" },
    { AK_ROLE_FFN_GATE_EXPERTS, AK_SPEC_DIM_EXPERT, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.block_sparse_moe.experts.{e}.w1.weight" },
    { AK_ROLE_FFN_UP_EXPERTS, AK_SPEC_DIM_EXPERT, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.block_sparse_moe.experts.{e}.w3.weight" },
    { AK_ROLE_FFN_DOWN_EXPERTS, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_EXPERT, AK_ARCH_REQUIRED,
      "model.layers.{n}.block_sparse_moe.experts.{e}.w2.weight" },
};

static const struct ak_arch_alias aliases[] = {
    { AK_ROLE_FFN_GATE_EXPERTS, "model.layers.{n}.block_sparse_moe.switch_mlp.gate_proj.weight" },
    { AK_ROLE_FFN_UP_EXPERTS, "model.layers.{n}.block_sparse_moe.switch_mlp.up_proj.weight" },
    { AK_ROLE_FFN_DOWN_EXPERTS, "model.layers.{n}.block_sparse_moe.switch_mlp.down_proj.weight" },
};

static ak_status mixtral_describe(const struct ak_provider *p, const struct ak_spec_config *config,
                                  struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_experts(p, config, out, error));
    out->normalized_experts = true;
    out->local.window = config->window;
    return AKUNU_OK;
}

const struct ak_arch ak_arch_mixtral = {
    .names = names,
    .description = "Mixtral: Llama with experts",
    .has_experts = true,
    .activation_key = "hidden_act",
    .describe = mixtral_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .aliases = aliases,
    .n_aliases = sizeof aliases / sizeof *aliases,
    .gguf_interleaved = true,
    .emit = ak_build_decoder,
};
