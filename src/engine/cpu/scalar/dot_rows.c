/* Product of float rows: the definition of the order of its 32 partial sums. */
#include "engine/cpu/setter.h"
#include "engine/cpu/generic.h"

static void dot_rows(const float *restrict w, size_t w_stride, size_t n_rows,
                     const float *restrict x, size_t x_stride, size_t n, size_t k,
                     float *restrict y, size_t y_stride)
{
    for (size_t t = 0; t < n; t++) {
        for (size_t r = 0; r < n_rows; r++) {
            float partial[AK_LANES] = { 0 };
            for (size_t i = 0; i < k; i += AK_LANES)
                for (size_t j = 0; j < AK_LANES; j++)
                    partial[j] = fmaf(w[r * w_stride + i + j], x[t * x_stride + i + j], partial[j]);
            y[t * y_stride + r] = ak_generic_horizontal_sum(partial, AK_LANES);
        }
    }
}

AK_SETTER(dot_rows)
{
    k->dot_rows = dot_rows;
}
