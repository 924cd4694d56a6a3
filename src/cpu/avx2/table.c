#include "cpu/avx2/avx2.h"

void ak_kernels_avx2(struct ak_kernels *k)
{
    k->name = "avx2";
    k->tile[AK_Q4_0] = (struct ak_tile_kernels){ ak_avx2_dot_q4_0, ak_avx2_open_q4_0, ak_avx2_dot_slab_q4_0 };
    k->tile[AK_Q4_1] = (struct ak_tile_kernels){ ak_avx2_dot_q4_1, ak_avx2_open_q4_1, ak_avx2_dot_slab_q4_1 };
    k->tile[AK_Q5_0] = (struct ak_tile_kernels){ ak_avx2_dot_q5_0, ak_avx2_open_q5_0, ak_avx2_dot_slab_q5_0 };
    k->tile[AK_Q8_0] = (struct ak_tile_kernels){ ak_avx2_dot_q8_0, ak_avx2_open_q8_0, ak_avx2_dot_slab_q8_0 };
    k->tile[AK_Q4_K] = (struct ak_tile_kernels){ ak_avx2_dot_q4_k, ak_avx2_open_q4_k, ak_avx2_dot_slab_q4_k };
    k->tile[AK_Q6_K] = (struct ak_tile_kernels){ ak_avx2_dot_q6_k, ak_avx2_open_q6_k, ak_avx2_dot_slab_q6_k };
    k->widen[AK_F16] = ak_avx2_widen_f16;
    k->widen[AK_BF16] = ak_avx2_widen_bf16;
    k->dot_rows = ak_avx2_dot_rows;
    k->quantise32 = ak_avx2_quantise32;
    k->quantise256 = ak_avx2_quantise256;
    k->rms_norm = ak_avx2_rms_norm;
    k->add = ak_avx2_add;
    k->silu_mul = ak_avx2_silu_mul;
    k->rope = ak_avx2_rope;
    k->narrow_f16 = ak_avx2_narrow_f16;
    k->attend_scores_f16 = ak_avx2_attend_scores_f16;
    k->attend_scores_f32 = ak_avx2_attend_scores_f32;
    k->attend_values_f16 = ak_avx2_attend_values_f16;
    k->attend_values_f32 = ak_avx2_attend_values_f32;
    k->attend_merge = ak_avx2_attend_merge;
    k->divide = ak_avx2_divide;
    k->probe_read = ak_avx2_probe_read;
    k->probe_int8 = ak_avx2_probe_int8;
    k->probe_f32 = ak_avx2_probe_f32;
}
