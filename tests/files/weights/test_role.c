/* Roles and names: canonical names (A4), patterns, and GGUF's names both ways. */
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

#include "files/weights/role.h"
#include "files/weights/provider.h"

/* Written out, and not taken from role.def: other software reads these names. */
START_TEST(canonical_names)
{
    static const struct {
        enum ak_role role;
        int layer;
        const char *canonical, *gguf; /* NULL: GGUF has no name */
    } cases[] = {
        { AK_ROLE_TOKEN_EMBEDDING, AK_ROLE_NO_LAYER, "token_embedding.weight",
          "token_embd.weight" },
        { AK_ROLE_OUTPUT_NORM, AK_ROLE_NO_LAYER, "output_norm.weight", "output_norm.weight" },
        { AK_ROLE_OUTPUT, AK_ROLE_NO_LAYER, "output.weight", "output.weight" },
        { AK_ROLE_ROPE_FREQS, AK_ROLE_NO_LAYER, "rope_freqs.weight", "rope_freqs.weight" },
        { AK_ROLE_ATTENTION_NORM, 0, "layers.0.attention_norm.weight", "blk.0.attn_norm.weight" },
        { AK_ROLE_ATTENTION_Q, 1, "layers.1.attention.q.weight", "blk.1.attn_q.weight" },
        { AK_ROLE_ATTENTION_Q_BIAS, 2, "layers.2.attention.q.bias", "blk.2.attn_q.bias" },
        { AK_ROLE_ATTENTION_K, 3, "layers.3.attention.k.weight", "blk.3.attn_k.weight" },
        { AK_ROLE_ATTENTION_K_BIAS, 4, "layers.4.attention.k.bias", "blk.4.attn_k.bias" },
        { AK_ROLE_ATTENTION_V, 5, "layers.5.attention.v.weight", "blk.5.attn_v.weight" },
        { AK_ROLE_ATTENTION_V_BIAS, 6, "layers.6.attention.v.bias", "blk.6.attn_v.bias" },
        { AK_ROLE_ATTENTION_OUTPUT, 7, "layers.7.attention.output.weight",
          "blk.7.attn_output.weight" },
        { AK_ROLE_ATTENTION_OUTPUT_BIAS, 8, "layers.8.attention.output.bias",
          "blk.8.attn_output.bias" },
        { AK_ROLE_ATTENTION_Q_NORM, 9, "layers.9.attention.q_norm.weight",
          "blk.9.attn_q_norm.weight" },
        { AK_ROLE_ATTENTION_K_NORM, 10, "layers.10.attention.k_norm.weight",
          "blk.10.attn_k_norm.weight" },
        { AK_ROLE_FFN_NORM, 11, "layers.11.ffn_norm.weight", "blk.11.ffn_norm.weight" },
        { AK_ROLE_FFN_GATE, 12, "layers.12.ffn.gate.weight", "blk.12.ffn_gate.weight" },
        { AK_ROLE_FFN_GATE_BIAS, 13, "layers.13.ffn.gate.bias", "blk.13.ffn_gate.bias" },
        { AK_ROLE_FFN_UP, 14, "layers.14.ffn.up.weight", "blk.14.ffn_up.weight" },
        { AK_ROLE_FFN_UP_BIAS, 15, "layers.15.ffn.up.bias", "blk.15.ffn_up.bias" },
        { AK_ROLE_FFN_DOWN, 2147483647, "layers.2147483647.ffn.down.weight",
          "blk.2147483647.ffn_down.weight" },
        { AK_ROLE_FFN_DOWN_BIAS, 17, "layers.17.ffn.down.bias", "blk.17.ffn_down.bias" },
        { AK_ROLE_POSITION_EMBEDDING, AK_ROLE_NO_LAYER, "position_embedding.weight",
          "position_embd.weight" },
        { AK_ROLE_TOKEN_TYPE_EMBEDDING, AK_ROLE_NO_LAYER, "token_type_embedding.weight",
          "token_types.weight" },
        { AK_ROLE_EMBEDDING_NORM, AK_ROLE_NO_LAYER, "embedding_norm.weight",
          "token_embd_norm.weight" },
        { AK_ROLE_EMBEDDING_NORM_BIAS, AK_ROLE_NO_LAYER, "embedding_norm.bias",
          "token_embd_norm.bias" },
        { AK_ROLE_ATTENTION_OUTPUT_NORM, 0, "layers.0.attention_output_norm.weight",
          "blk.0.attn_output_norm.weight" },
        { AK_ROLE_ATTENTION_OUTPUT_NORM_BIAS, 11, "layers.11.attention_output_norm.bias",
          "blk.11.attn_output_norm.bias" },
        { AK_ROLE_LAYER_OUTPUT_NORM, 1, "layers.1.layer_output_norm.weight",
          "blk.1.layer_output_norm.weight" },
        { AK_ROLE_LAYER_OUTPUT_NORM_BIAS, 2, "layers.2.layer_output_norm.bias",
          "blk.2.layer_output_norm.bias" },
        { AK_ROLE_OUTPUT_NORM_BIAS, AK_ROLE_NO_LAYER, "output_norm.bias", "output_norm.bias" },
        { AK_ROLE_ROPE_FACTORS_LONG, AK_ROLE_NO_LAYER, "rope_factors_long.weight",
          "rope_factors_long.weight" },
        { AK_ROLE_ROPE_FACTORS_SHORT, AK_ROLE_NO_LAYER, "rope_factors_short.weight",
          "rope_factors_short.weight" },
        { AK_ROLE_ATTENTION_NORM_BIAS, 18, "layers.18.attention_norm.bias",
          "blk.18.attn_norm.bias" },
        { AK_ROLE_ATTENTION_QKV, 19, "layers.19.attention.qkv.weight", "blk.19.attn_qkv.weight" },
        { AK_ROLE_ATTENTION_QKV_BIAS, 20, "layers.20.attention.qkv.bias", "blk.20.attn_qkv.bias" },
        { AK_ROLE_POST_ATTENTION_NORM, 21, "layers.21.post_attention_norm.weight",
          "blk.21.post_attention_norm.weight" },
        { AK_ROLE_FFN_NORM_BIAS, 22, "layers.22.ffn_norm.bias", "blk.22.ffn_norm.bias" },
        { AK_ROLE_FFN_ROUTER, 24, "layers.24.ffn.router.weight", "blk.24.ffn_gate_inp.weight" },
        { AK_ROLE_FFN_GATE_EXPERTS, 25, "layers.25.ffn.experts.gate.weight",
          "blk.25.ffn_gate_exps.weight" },
        { AK_ROLE_FFN_UP_EXPERTS, 26, "layers.26.ffn.experts.up.weight",
          "blk.26.ffn_up_exps.weight" },
        { AK_ROLE_FFN_DOWN_EXPERTS, 27, "layers.27.ffn.experts.down.weight",
          "blk.27.ffn_down_exps.weight" },
        { AK_ROLE_FFN_SHARED_GATE, 28, "layers.28.ffn.shared.gate.weight",
          "blk.28.ffn_gate_shexp.weight" },
        { AK_ROLE_FFN_SHARED_UP, 29, "layers.29.ffn.shared.up.weight",
          "blk.29.ffn_up_shexp.weight" },
        { AK_ROLE_FFN_SHARED_DOWN, 30, "layers.30.ffn.shared.down.weight",
          "blk.30.ffn_down_shexp.weight" },
        { AK_ROLE_FFN_SHARED_ROUTER, 31, "layers.31.ffn.shared.router.weight",
          "blk.31.ffn_gate_inp_shexp.weight" },
        { AK_ROLE_FFN_ROUTER_BIAS, 32, "layers.32.ffn.router.bias", "blk.32.ffn_gate_inp.bias" },
        { AK_ROLE_FFN_GATE_EXPERTS_BIAS, 33, "layers.33.ffn.experts.gate.bias",
          "blk.33.ffn_gate_exps.bias" },
        { AK_ROLE_FFN_UP_EXPERTS_BIAS, 34, "layers.34.ffn.experts.up.bias",
          "blk.34.ffn_up_exps.bias" },
        { AK_ROLE_FFN_DOWN_EXPERTS_BIAS, 35, "layers.35.ffn.experts.down.bias",
          "blk.35.ffn_down_exps.bias" },
        { AK_ROLE_ATTENTION_SINKS, 36, "layers.36.attention.sinks", "blk.36.attn_sinks.weight" },
        { AK_ROLE_CONV_IN, 37, "layers.37.conv.in.weight", "blk.37.shortconv.in_proj.weight" },
        { AK_ROLE_CONV_KERNEL, 38, "layers.38.conv.kernel.weight", "blk.38.shortconv.conv.weight" },
        { AK_ROLE_CONV_OUT, 39, "layers.39.conv.out.weight", "blk.39.shortconv.out_proj.weight" },
        { AK_ROLE_ATTENTION_GATE, 40, "layers.40.attention.gate.weight",
          "blk.40.attn_gate.weight" },
        { AK_ROLE_DELTA_QKVZ, 41, "layers.41.delta.qkvz.weight", "blk.41.ssm_in.weight" },
        { AK_ROLE_DELTA_GATES, 42, "layers.42.delta.gates.weight", "blk.42.ssm_ba.weight" },
        { AK_ROLE_DELTA_BETA, 43, "layers.43.delta.beta.weight", "blk.43.ssm_beta.weight" },
        { AK_ROLE_DELTA_ALPHA, 44, "layers.44.delta.alpha.weight", "blk.44.ssm_alpha.weight" },
        { AK_ROLE_DELTA_ALPHA_BIAS, 45, "layers.45.delta.alpha.bias", "blk.45.ssm_dt.bias" },
        { AK_ROLE_DELTA_DECAY, 46, "layers.46.delta.decay", "blk.46.ssm_a" },
        { AK_ROLE_DELTA_KERNEL, 47, "layers.47.delta.kernel.weight", "blk.47.ssm_conv1d.weight" },
        { AK_ROLE_DELTA_NORM, 48, "layers.48.delta.norm.weight", "blk.48.ssm_norm.weight" },
        { AK_ROLE_DELTA_OUTPUT, 49, "layers.49.delta.output.weight", "blk.49.ssm_out.weight" },
        { AK_ROLE_POST_FFN_NORM, 23, "layers.23.post_ffn_norm.weight",
          "blk.23.post_ffw_norm.weight" },
        { AK_ROLE_CROSS_ATTENTION_NORM, 40, "layers.40.cross_attention_norm.weight", NULL },
        { AK_ROLE_CROSS_ATTENTION_NORM_BIAS, 41, "layers.41.cross_attention_norm.bias", NULL },
        { AK_ROLE_CROSS_ATTENTION_Q, 42, "layers.42.cross_attention.q.weight", NULL },
        { AK_ROLE_CROSS_ATTENTION_Q_BIAS, 43, "layers.43.cross_attention.q.bias", NULL },
        { AK_ROLE_CROSS_ATTENTION_K, 44, "layers.44.cross_attention.k.weight", NULL },
        { AK_ROLE_CROSS_ATTENTION_V, 45, "layers.45.cross_attention.v.weight", NULL },
        { AK_ROLE_CROSS_ATTENTION_V_BIAS, 46, "layers.46.cross_attention.v.bias", NULL },
        { AK_ROLE_CROSS_ATTENTION_OUTPUT, 47, "layers.47.cross_attention.output.weight", NULL },
        { AK_ROLE_CROSS_ATTENTION_OUTPUT_BIAS, 48, "layers.48.cross_attention.output.bias", NULL },
        { AK_ROLE_ENCODER_CONV1, AK_ROLE_NO_LAYER, "encoder.conv1.weight", NULL },
        { AK_ROLE_ENCODER_CONV1_BIAS, AK_ROLE_NO_LAYER, "encoder.conv1.bias", NULL },
        { AK_ROLE_ENCODER_CONV2, AK_ROLE_NO_LAYER, "encoder.conv2.weight", NULL },
        { AK_ROLE_ENCODER_CONV2_BIAS, AK_ROLE_NO_LAYER, "encoder.conv2.bias", NULL },
        { AK_ROLE_ENCODER_POSITION_EMBEDDING, AK_ROLE_NO_LAYER, "encoder.position_embedding.weight",
          NULL },
        { AK_ROLE_ENCODER_OUTPUT_NORM, AK_ROLE_NO_LAYER, "encoder.output_norm.weight", NULL },
        { AK_ROLE_ENCODER_OUTPUT_NORM_BIAS, AK_ROLE_NO_LAYER, "encoder.output_norm.bias", NULL },
        { AK_ROLE_ENCODER_ATTENTION_NORM, 56, "encoder.layers.56.attention_norm.weight", NULL },
        { AK_ROLE_ENCODER_ATTENTION_NORM_BIAS, 57, "encoder.layers.57.attention_norm.bias", NULL },
        { AK_ROLE_ENCODER_ATTENTION_Q, 58, "encoder.layers.58.attention.q.weight", NULL },
        { AK_ROLE_ENCODER_ATTENTION_Q_BIAS, 59, "encoder.layers.59.attention.q.bias", NULL },
        { AK_ROLE_ENCODER_ATTENTION_K, 60, "encoder.layers.60.attention.k.weight", NULL },
        { AK_ROLE_ENCODER_ATTENTION_V, 61, "encoder.layers.61.attention.v.weight", NULL },
        { AK_ROLE_ENCODER_ATTENTION_V_BIAS, 62, "encoder.layers.62.attention.v.bias", NULL },
        { AK_ROLE_ENCODER_ATTENTION_OUTPUT, 63, "encoder.layers.63.attention.output.weight", NULL },
        { AK_ROLE_ENCODER_ATTENTION_OUTPUT_BIAS, 64, "encoder.layers.64.attention.output.bias",
          NULL },
        { AK_ROLE_ENCODER_FFN_NORM, 65, "encoder.layers.65.ffn_norm.weight", NULL },
        { AK_ROLE_ENCODER_FFN_NORM_BIAS, 66, "encoder.layers.66.ffn_norm.bias", NULL },
        { AK_ROLE_ENCODER_FFN_UP, 67, "encoder.layers.67.ffn.up.weight", NULL },
        { AK_ROLE_ENCODER_FFN_UP_BIAS, 68, "encoder.layers.68.ffn.up.bias", NULL },
        { AK_ROLE_ENCODER_FFN_DOWN, 69, "encoder.layers.69.ffn.down.weight", NULL },
        { AK_ROLE_ENCODER_FFN_DOWN_BIAS, 70, "encoder.layers.70.ffn.down.bias", NULL },
    };
    char name[AK_ROLE_NAME_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum ak_role role;
        int layer;
        ck_assert_str_eq(ak_role_name(cases[i].role, cases[i].layer, name), cases[i].canonical);
        ck_assert_int_eq(ak_role_has_layer(cases[i].role), cases[i].layer != AK_ROLE_NO_LAYER);
        if (!cases[i].gguf) {
            ck_assert_ptr_null(ak_gguf_name(cases[i].role));
            continue;
        }
        ck_assert_str_eq(ak_role_expand(ak_gguf_name(cases[i].role), cases[i].layer, name),
                         cases[i].gguf);
        ck_assert(ak_gguf_role(cases[i].gguf, &role, &layer));
        ck_assert_int_eq(role, cases[i].role);
        ck_assert_int_eq(layer, cases[i].layer);
    }
    ck_assert_uint_eq(sizeof cases / sizeof *cases, AK_ROLE_COUNT);
}
END_TEST

START_TEST(other_names)
{
    static const char *const names[] = {
        "",
        "token_embd",
        "token_embd.weights",
        "token_embd.weight.",
        "blk.attn_q.weight",
        "blk..attn_q.weight",
        "blk.-1.attn_q.weight",
        "blk.01.attn_q.weight",
        "blk.1x.attn_q.weight",
        "blk.1.attn_q.weight2",
        "blk.2147483648.attn_q.weight",
        "blk.99999999999999999999.attn_q.weight",
        "blk.{n}.attn_q.weight",
        "x.blk.1.attn_q.weight",
        "blk.1.attn_qkvs.weight",
        "blk.1",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        enum ak_role role;
        int layer;
        ck_assert_msg(!ak_gguf_role(names[i], &role, &layer), "%s", names[i]);
    }
}
END_TEST

START_TEST(match)
{
    int layer = 5;
    ck_assert(ak_role_match("a.{n}.b", "a.12.b", &layer));
    ck_assert_int_eq(layer, 12);
    ck_assert(ak_role_match("plain", "plain", &layer));
    ck_assert_int_eq(layer, AK_ROLE_NO_LAYER);
    layer = 5;
    ck_assert(!ak_role_match("a.{n}.b", "a.12.c", &layer));
    ck_assert_int_eq(layer, 5);
    ck_assert(ak_role_match("a.{n}.b.{e}.c", "a.3.b.17.c", &layer));
    ck_assert_int_eq(layer, 3);
    ck_assert(!ak_role_match("a.{n}.b.{e}.c", "a.3.b.07.c", &layer));
    ck_assert(!ak_role_match("a.{n}.b.{e}.c", "a.3.b.c", &layer));
}
END_TEST

START_TEST(experts)
{
    char name[AK_ROLE_NAME_BYTES], pattern[AK_ROLE_NAME_BYTES];
    ck_assert(ak_role_has_expert("a.{n}.b.{e}.c") && !ak_role_has_expert("a.{n}.b"));
    ck_assert_str_eq(ak_role_expand(ak_role_expand_expert("a.{n}.b.{e}.c", 17, pattern), 3, name),
                     "a.3.b.17.c");
}
END_TEST

START_TEST(kinds)
{
    ck_assert_int_eq(ak_role_kind(AK_ROLE_TOKEN_EMBEDDING), AK_ROLE_KIND_MATRIX);
    ck_assert_int_eq(ak_role_kind(AK_ROLE_FFN_NORM), AK_ROLE_KIND_VECTOR);
    ck_assert_int_eq(ak_role_kind(AK_ROLE_FFN_UP_EXPERTS), AK_ROLE_KIND_EXPERTS);
    ck_assert_int_eq(ak_role_kind(AK_ROLE_ATTENTION_Q_BIAS), AK_ROLE_KIND_VECTOR);
    ck_assert(ak_role_is_expert(AK_ROLE_FFN_UP_EXPERTS) &&
              ak_role_is_expert(AK_ROLE_FFN_UP_EXPERTS_BIAS));
    ck_assert(!ak_role_is_expert(AK_ROLE_FFN_UP) && !ak_role_is_expert(AK_ROLE_FFN_ROUTER_BIAS));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("role");
    TCase *t = tcase_create("role");
    suite_add_tcase(suite, t);
    tcase_add_test(t, canonical_names);
    tcase_add_test(t, other_names);
    tcase_add_test(t, match);
    tcase_add_test(t, experts);
    tcase_add_test(t, kinds);
    return test_run(suite);
}
