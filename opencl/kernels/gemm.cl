/* Products with many tokens. A group of 16 × 16 lanes makes 16·LANE_ROWS rows × COLUMNS =
 * 16·LANE_TOKENS tokens, lane (i, j) rows LANE_ROWS·j … and tokens LANE_TOKENS·i …, 32 k at a time,
 * dequantized into local memory. EXPERTS: the tokens of a group belong to one expert; the pass has
 * the list. */
enum { ROWS = 16 * LANE_ROWS, X_STRIDE = COLUMNS + 4 };

kernel __attribute__((reqd_work_group_size(16, 16, 1))) void
gemm(global const uchar *weights, struct ak_ocl_linear_args l, global const float *x,
     global float *y, global const float *bias, global const int *pass)
{
    local float w_k[32][ROWS], x_k[32][X_STRIDE];
    uint i = get_local_id(0), j = get_local_id(1), lane = j * 16 + i;
    uint first_row = get_group_id(0) * ROWS, first = get_group_id(1) * COLUMNS,
         end = pass[l.row_set];
    float sum[LANE_ROWS][LANE_TOKENS];
#ifdef EXPERTS
    uint list = pass[AK_OCL_PASS_EXPERT_GROUPS];
    if (get_group_id(1) >= (uint)pass[list])
        return;
    uint expert = pass[list + 1 + 2 * get_group_id(1)];
    first = pass[list + 2 + 2 * get_group_id(1)];
    end = pass[pass[AK_OCL_PASS_EXPERT_BEGIN] + expert + 1];
    weights += expert * l.expert_bytes;
    bias += expert * l.expert_width;
#endif
    for (uint a = 0; a < LANE_ROWS; a++)
        for (uint b = 0; b < LANE_TOKENS; b++)
            sum[a][b] = 0.0f;
    for (uint block = 0; block * 32 < l.k; block++) {
        for (uint e = lane; e < ROWS * 4; e += 256) {
            uint row = e % ROWS, p = e / ROWS;
            float4 a = 0.0f, b = 0.0f;
            if (first_row + row < l.rows) {
#ifdef LOW
                uint nb = min(8u, l.k / 32 - (block & ~7u)), r = row & 15, lo, hi;
                global const uchar *tile = weights +
                                           (ulong)((first_row + row) >> 4) * l.group_bytes +
                                           (block >> 3) * l.tile_bytes;
                float2 d, m;
                numbers(tile, nb, (block & 7) * 16 + r, p, &lo, &hi);
                scales(tile, nb, block & 7, r, &d, &m);
                a = dequantize4(lo, d.x, m.x);
                b = dequantize4(hi, d.y, m.y);
#else
                ulong from = (ulong)(first_row + row) * l.row_elems + block * 32 + 4 * p;
                a = row_values(weights, from);
                b = row_values(weights, from + 16);
#endif
            }
            w_k[4 * p][row] = a.s0;
            w_k[4 * p + 1][row] = a.s1;
            w_k[4 * p + 2][row] = a.s2;
            w_k[4 * p + 3][row] = a.s3;
            w_k[16 + 4 * p][row] = b.s0;
            w_k[17 + 4 * p][row] = b.s1;
            w_k[18 + 4 * p][row] = b.s2;
            w_k[19 + 4 * p][row] = b.s3;
        }
        for (uint e = lane; e < COLUMNS * 8; e += 256) {
            uint t = e / 8, k = e % 8 * 4;
            float4 a = 0.0f;
            if (first + t < end && block * 32 + k < l.k)
#ifdef LOW
                a = vload4(0, x + l.x_at + (ulong)(first + t) * l.x_stride + block * 32 + k);
#else
                a = token_values(x + l.x_at + (ulong)(first + t) * l.x_stride, block * 32 + k, l.k);
#endif
            x_k[k][t] = a.s0;
            x_k[k + 1][t] = a.s1;
            x_k[k + 2][t] = a.s2;
            x_k[k + 3][t] = a.s3;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < 32; k++) {
            float ours[LANE_ROWS], theirs[LANE_TOKENS];
            for (uint a = 0; a < LANE_ROWS; a++)
                ours[a] = w_k[k][j * LANE_ROWS + a];
            for (uint b = 0; b < LANE_TOKENS; b++)
                theirs[b] = x_k[k][i * LANE_TOKENS + b];
            for (uint a = 0; a < LANE_ROWS; a++)
                for (uint b = 0; b < LANE_TOKENS; b++)
                    sum[a][b] = fma(ours[a], theirs[b], sum[a][b]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint b = 0; b < LANE_TOKENS; b++)
        for (uint a = 0; a < LANE_ROWS; a++) {
            uint row = first_row + j * LANE_ROWS + a, t = first + i * LANE_TOKENS + b;
            if (row < l.rows && t < end)
                y[l.y_at + (ulong)t * l.y_stride + row] =
                    sum[a][b] + (l.has_bias ? bias[l.bias_at + row] : 0.0f);
        }
}
