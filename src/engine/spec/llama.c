/* Llama 2 and 3, and models with the same block: Mistral, TinyLlama, SmolLM2. GGUF stores the rows
 * of q and k permuted, so that rotated pairs are neighbors. */
#include "engine/spec/arch.h"

static const char *const names[] = { "llama", "mistral", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "llama",
      .reads = "vocab_size=32000 hidden_size=4096 intermediate_size=11008 "
               "num_hidden_layers=32 num_attention_heads=32 num_key_value_heads head_dim "
               "hidden_act=silu max_position_embeddings=2048 rms_norm_eps=1e-6 "
               "tie_word_embeddings=false rope_theta=10000 attention_bias=false "
               "mlp_bias=false " AK_KEYS_ROPE,
      .fixed = AK_KEYS_WHOLE_HEADS },
    { .types = "mistral",
      .reads = "vocab_size=32000 hidden_size=4096 intermediate_size=14336 "
               "num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=8 "
               "head_dim hidden_act=silu max_position_embeddings=131072 "
               "rms_norm_eps=1e-6 tie_word_embeddings=false rope_theta=10000 "
               "sliding_window?=4096 " AK_KEYS_ROPE,
      .fixed = AK_KEYS_WHOLE_HEADS "attention_bias=false mlp_bias=false " },
    { .reads = AK_KEYS_GGUF_DECODER AK_KEYS_GGUF_WINDOW },
};

static const struct ak_arch_rule weights[] = {
#include "engine/spec/llama_block.def"
    { AK_ROLE_ROPE_FREQS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_ROPE_HALF, AK_ARCH_OPTIONAL,
      "rope_freqs.weight" },
};

static ak_status llama_describe(const struct ak_provider *p, const struct ak_spec_config *config,
                                struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    out->local.window = config->window;
    return AKUNU_OK;
}

const struct ak_arch ak_arch_llama = {
    .names = names,
    .description = "Llama 2 and 3, TinyLlama, SmolLM2, Mistral",
    .activation_key = "hidden_act",
    .describe = llama_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .gguf_interleaved = true,
    .emit = ak_build_decoder,
};
