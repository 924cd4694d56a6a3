/* Names of tensors: GGUF's name of each role, and the prefixes of Hugging Face's. Names of Hugging
 * Face tensors depend on the architecture, so the architectures have them. */
#include "files/weights/provider.h"

#include <assert.h>
#include <string.h>

#include "files/weights/whisper/whisper.h"

/* As llama.cpp's converter writes them. */
static const char *const gguf_names[AK_ROLE_COUNT] = {
    [AK_ROLE_TOKEN_EMBEDDING] = "token_embd.weight",
    [AK_ROLE_POSITION_EMBEDDING] = "position_embd.weight",
    [AK_ROLE_TOKEN_TYPE_EMBEDDING] = "token_types.weight",
    [AK_ROLE_EMBEDDING_NORM] = "token_embd_norm.weight",
    [AK_ROLE_EMBEDDING_NORM_BIAS] = "token_embd_norm.bias",
    [AK_ROLE_OUTPUT_NORM] = "output_norm.weight",
    [AK_ROLE_OUTPUT_NORM_BIAS] = "output_norm.bias",
    [AK_ROLE_OUTPUT] = "output.weight",
    [AK_ROLE_ROPE_FREQS] = "rope_freqs.weight",
    [AK_ROLE_ROPE_FACTORS_LONG] = "rope_factors_long.weight",
    [AK_ROLE_ROPE_FACTORS_SHORT] = "rope_factors_short.weight",
    [AK_ROLE_ATTENTION_NORM] = "blk.{n}.attn_norm.weight",
    [AK_ROLE_ATTENTION_NORM_BIAS] = "blk.{n}.attn_norm.bias",
    [AK_ROLE_ATTENTION_QKV] = "blk.{n}.attn_qkv.weight",
    [AK_ROLE_ATTENTION_QKV_BIAS] = "blk.{n}.attn_qkv.bias",
    [AK_ROLE_ATTENTION_Q] = "blk.{n}.attn_q.weight",
    [AK_ROLE_ATTENTION_Q_BIAS] = "blk.{n}.attn_q.bias",
    [AK_ROLE_ATTENTION_K] = "blk.{n}.attn_k.weight",
    [AK_ROLE_ATTENTION_K_BIAS] = "blk.{n}.attn_k.bias",
    [AK_ROLE_ATTENTION_V] = "blk.{n}.attn_v.weight",
    [AK_ROLE_ATTENTION_V_BIAS] = "blk.{n}.attn_v.bias",
    [AK_ROLE_ATTENTION_OUTPUT] = "blk.{n}.attn_output.weight",
    [AK_ROLE_ATTENTION_OUTPUT_BIAS] = "blk.{n}.attn_output.bias",
    [AK_ROLE_ATTENTION_Q_NORM] = "blk.{n}.attn_q_norm.weight",
    [AK_ROLE_ATTENTION_K_NORM] = "blk.{n}.attn_k_norm.weight",
    [AK_ROLE_ATTENTION_SINKS] = "blk.{n}.attn_sinks.weight",
    [AK_ROLE_CONV_IN] = "blk.{n}.shortconv.in_proj.weight",
    [AK_ROLE_CONV_KERNEL] = "blk.{n}.shortconv.conv.weight",
    [AK_ROLE_CONV_OUT] = "blk.{n}.shortconv.out_proj.weight",
    [AK_ROLE_ATTENTION_GATE] = "blk.{n}.attn_gate.weight",
    [AK_ROLE_DELTA_QKVZ] = "blk.{n}.ssm_in.weight",
    [AK_ROLE_DELTA_GATES] = "blk.{n}.ssm_ba.weight",
    [AK_ROLE_DELTA_BETA] = "blk.{n}.ssm_beta.weight",
    [AK_ROLE_DELTA_ALPHA] = "blk.{n}.ssm_alpha.weight",
    [AK_ROLE_DELTA_ALPHA_BIAS] = "blk.{n}.ssm_dt.bias",
    [AK_ROLE_DELTA_DECAY] = "blk.{n}.ssm_a",
    [AK_ROLE_DELTA_KERNEL] = "blk.{n}.ssm_conv1d.weight",
    [AK_ROLE_DELTA_NORM] = "blk.{n}.ssm_norm.weight",
    [AK_ROLE_DELTA_OUTPUT] = "blk.{n}.ssm_out.weight",
    [AK_ROLE_POST_ATTENTION_NORM] = "blk.{n}.post_attention_norm.weight",
    [AK_ROLE_ATTENTION_OUTPUT_NORM] = "blk.{n}.attn_output_norm.weight",
    [AK_ROLE_ATTENTION_OUTPUT_NORM_BIAS] = "blk.{n}.attn_output_norm.bias",
    [AK_ROLE_FFN_NORM] = "blk.{n}.ffn_norm.weight",
    [AK_ROLE_FFN_NORM_BIAS] = "blk.{n}.ffn_norm.bias",
    [AK_ROLE_FFN_GATE] = "blk.{n}.ffn_gate.weight",
    [AK_ROLE_FFN_GATE_BIAS] = "blk.{n}.ffn_gate.bias",
    [AK_ROLE_FFN_UP] = "blk.{n}.ffn_up.weight",
    [AK_ROLE_FFN_UP_BIAS] = "blk.{n}.ffn_up.bias",
    [AK_ROLE_FFN_DOWN] = "blk.{n}.ffn_down.weight",
    [AK_ROLE_FFN_DOWN_BIAS] = "blk.{n}.ffn_down.bias",
    [AK_ROLE_POST_FFN_NORM] = "blk.{n}.post_ffw_norm.weight",
    [AK_ROLE_LAYER_OUTPUT_NORM] = "blk.{n}.layer_output_norm.weight",
    [AK_ROLE_LAYER_OUTPUT_NORM_BIAS] = "blk.{n}.layer_output_norm.bias",
    [AK_ROLE_FFN_SHARED_GATE] = "blk.{n}.ffn_gate_shexp.weight",
    [AK_ROLE_FFN_SHARED_UP] = "blk.{n}.ffn_up_shexp.weight",
    [AK_ROLE_FFN_SHARED_DOWN] = "blk.{n}.ffn_down_shexp.weight",
    [AK_ROLE_FFN_SHARED_ROUTER] = "blk.{n}.ffn_gate_inp_shexp.weight",
    [AK_ROLE_FFN_ROUTER] = "blk.{n}.ffn_gate_inp.weight",
    [AK_ROLE_FFN_ROUTER_BIAS] = "blk.{n}.ffn_gate_inp.bias",
    [AK_ROLE_FFN_GATE_EXPERTS] = "blk.{n}.ffn_gate_exps.weight",
    [AK_ROLE_FFN_GATE_EXPERTS_BIAS] = "blk.{n}.ffn_gate_exps.bias",
    [AK_ROLE_FFN_UP_EXPERTS] = "blk.{n}.ffn_up_exps.weight",
    [AK_ROLE_FFN_UP_EXPERTS_BIAS] = "blk.{n}.ffn_up_exps.bias",
    [AK_ROLE_FFN_DOWN_EXPERTS] = "blk.{n}.ffn_down_exps.weight",
    [AK_ROLE_FFN_DOWN_EXPERTS_BIAS] = "blk.{n}.ffn_down_exps.bias",
};

/* Longer ones first: the first that matches is the prefix. */
const char *const ak_hf_roots[] = {
    "model.language_model.",
    "language_model.model.",
    "language_model.",
    "model.",
    "transformer.",
    "bert.",
    "roberta.",
    NULL,
};

const char *ak_hf_stem(const char *name)
{
    for (size_t i = 0; ak_hf_roots[i]; i++)
        if (strncmp(name, ak_hf_roots[i], strlen(ak_hf_roots[i])) == 0)
            return name + strlen(ak_hf_roots[i]);
    return name;
}

const char *ak_gguf_name(enum ak_role role)
{
    assert((unsigned)role < AK_ROLE_COUNT);
    return gguf_names[role];
}

const char *ak_whisper_name(enum ak_role role)
{
    const struct ak_whisper_rule *rule = ak_whisper_find_rule_by_role(role);
    return rule ? rule->name : NULL;
}

bool ak_gguf_role(const char *name, enum ak_role *role, int *layer)
{
    for (unsigned i = 0; i < AK_ROLE_COUNT; i++)
        if (gguf_names[i] && ak_role_match(gguf_names[i], name, layer)) {
            *role = (enum ak_role)i;
            return true;
        }
    const struct ak_whisper_rule *rule = ak_whisper_find_rule_by_name(name, layer);
    if (rule)
        *role = rule->role;
    return rule != NULL;
}
