/* Products with up to TOKENS tokens. Compiled once per TOKENS, after types.cl. EXPERTS: a row of
 * tokens uses its expert's matrix, and has a group of its own.
 *
 * Quantized weights: a group has 16 rows; lane (r, s) has blocks s, s + SLICES … of row r. Float
 * weights: a group has SLICES rows, each shared by LANES lanes. */
#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)

#ifdef LOW
kernel __attribute__((reqd_work_group_size(16, SLICES, 1))) void
PASTE(gemv, TOKENS)(global const uchar *weights, struct ak_ocl_linear_args l, global const float *x,
                    global float *y, global const float *bias, global const int *pass)
{
    local float parts[SLICES][TOKENS][16];
    uint r = get_local_id(0), slice = get_local_id(1), group = get_group_id(0), blocks = l.k / 32;
    uint first = get_group_id(1) * TOKENS, n = min((uint)TOKENS, pass[l.row_set] - first);
    float sum[TOKENS];
    for (uint t = 0; t < TOKENS; t++)
        sum[t] = 0.0f;
#ifdef EXPERTS
    uint expert = pass[pass[AK_OCL_PASS_EXPERT_OF] + first];
    weights += expert * l.expert_bytes;
    bias += expert * l.expert_width;
#endif
    weights += (ulong)group * l.group_bytes;
    x += l.x_at + (ulong)first * l.x_stride;
    for (uint block = slice; block < blocks; block += SLICES) {
        uint nb = min(8u, blocks - (block & ~7u)), at = (block & 7) * 16 + r, lo[4], hi[4];
        global const uchar *tile = weights + (block >> 3) * l.tile_bytes;
        float2 d, m;
        all_numbers(tile, nb, at, lo, hi);
        scales(tile, nb, block & 7, r, &d, &m);
        for (uint p = 0; p < 4; p++) {
            float4 a = dequantize4(lo[p], d.x, m.x), b = dequantize4(hi[p], d.y, m.y);
            for (uint t = 0; t < TOKENS; t++) {
                global const float *from = x + min(t, n - 1) * l.x_stride + block * 32 + 4 * p;
                sum[t] += dot(a, vload4(0, from)) + dot(b, vload4(0, from + 16));
            }
        }
    }
    for (uint t = 0; t < TOKENS; t++)
        parts[slice][t][r] = sum[t];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint t = slice; t < n; t += SLICES) {
        float total = l.has_bias ? bias[l.bias_at + group * 16 + r] : 0.0f;
        for (uint s = 0; s < SLICES; s++)
            total += parts[s][t][r];
        y[l.y_at + (ulong)(first + t) * l.y_stride + group * 16 + r] = total;
    }
}
#else
kernel __attribute__((reqd_work_group_size(LANES, SLICES, 1))) void
PASTE(gemv, TOKENS)(global const uchar *weights, struct ak_ocl_linear_args l, global const float *x,
                    global float *y, global const float *bias, global const int *pass)
{
    local float parts[SLICES][TOKENS][LANES];
    uint lane = get_local_id(0), slice = get_local_id(1), row = get_group_id(0) * SLICES + slice;
    uint first = get_group_id(1) * TOKENS, n = min((uint)TOKENS, pass[l.row_set] - first);
    float sum[TOKENS];
    for (uint t = 0; t < TOKENS; t++)
        sum[t] = 0.0f;
#ifdef EXPERTS
    uint expert = pass[pass[AK_OCL_PASS_EXPERT_OF] + first];
    weights += expert * l.expert_bytes;
    bias += expert * l.expert_width;
#endif
    x += l.x_at + (ulong)first * l.x_stride;
    for (uint k = 4 * lane; k < l.k; k += 4 * LANES) {
        float4 w = row_values(weights, (ulong)row * l.row_elems + k);
        for (uint t = 0; t < TOKENS; t++)
            sum[t] += dot(w, token_values(x + min(t, n - 1) * l.x_stride, k, l.k));
    }
    for (uint t = 0; t < TOKENS; t++)
        parts[slice][t][lane] = sum[t];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint t = lane; t < n; t += LANES) {
        float total = l.has_bias ? bias[l.bias_at + row] : 0.0f;
        for (uint i = 0; i < LANES; i++)
            total += parts[slice][t][i];
        y[l.y_at + (ulong)(first + t) * l.y_stride + row] = total;
    }
}
#endif
#undef PASTE
#undef PASTE2
