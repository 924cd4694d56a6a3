/* Gemma: a GELU gate, embeddings scaled by the root of the width, a head size independent of the
 * width. */
#include <math.h>

#include "engine/spec/arch.h"

static const char *const names[] = { "gemma", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "gemma",
      .reads = "vocab_size=256000 hidden_size=3072 intermediate_size=24576 "
               "num_hidden_layers=28 num_attention_heads=16 num_key_value_heads=16 "
               "head_dim=256 hidden_act=gelu_pytorch_tanh max_position_embeddings=8192 "
               "rms_norm_eps=1e-6 tie_word_embeddings=true rope_theta=10000 " AK_KEYS_ROPE,
      .fixed = AK_KEYS_WHOLE_HEADS "attention_bias=false ",
      .unused = "hidden_activation " },
    { .reads = AK_KEYS_GGUF_DECODER },
};

static const struct ak_arch_rule weights[] = {
#include "engine/spec/dense_block.def"
};

/* Of this architecture "gelu" means the approximation by tanh, with which it was trained. */
static ak_status read_activation(const struct ak_provider *p, const struct ak_spec_config *config,
                                 enum ak_op_activation *out, struct ak_error *error)
{
    char key[AK_SPEC_KEY_BYTES];
    struct ak_meta name;
    *out = AK_OP_ACTIVATION_GELU_TANH;
    if (ak_spec_find(p, config, "hidden_act", key, &name) && ak_meta_equals(&name, "gelu"))
        return AKUNU_OK;
    return ak_spec_read_activation(p, config, "hidden_act", out, error);
}

static ak_status gemma_describe(const struct ak_provider *p, const struct ak_spec_config *config,
                                struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    out->embedding_scale = sqrtf((float)config->width);
    return read_activation(p, config, &out->activation, error);
}

const struct ak_arch ak_arch_gemma = {
    .names = names,
    .description = "Gemma",
    .describe = gemma_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .hf_norm_offset = 1.0f,
    .emit = ak_build_decoder,
};
