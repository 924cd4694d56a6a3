#include "cpu/avx512/avx512.h"

void ak_kernels_avx512(struct ak_kernels *k)
{
    k->name = "avx512";
    k->tile[AK_Q4_0] = (struct ak_tile_kernels){ ak_avx512_dot_q4_0, ak_avx512_open_q4_0, ak_avx512_dot_slab_q4_0 };
    k->tile[AK_Q4_1] = (struct ak_tile_kernels){ ak_avx512_dot_q4_1, ak_avx512_open_q4_1, ak_avx512_dot_slab_q4_1 };
    k->tile[AK_Q5_0] = (struct ak_tile_kernels){ ak_avx512_dot_q5_0, ak_avx512_open_q5_0, ak_avx512_dot_slab_q5_0 };
    k->tile[AK_Q8_0] = (struct ak_tile_kernels){ ak_avx512_dot_q8_0, ak_avx512_open_q8_0, ak_avx512_dot_slab_q8_0 };
    k->probe_read = ak_avx512_probe_read;
    k->probe_int8 = ak_avx512_probe_int8;
}
