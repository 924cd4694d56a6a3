/* Steps over rows of activations. The parameters are a struct per kind of step
 * (opencl/kernels/shared.h). Rows start at in_at and out_at of the arenas and are in_stride and
 * out_stride floats apart. Steps that need sums over a row use a group per row. */

kernel void embed(struct ak_ocl_rows_args c, global const float *rows, global float *out)
{
    uint i = get_global_id(0), t = get_global_id(1);
    if (i < c.n)
        out[c.out_at + (ulong)t * c.out_stride + i] = rows[(ulong)t * c.n + i];
}

/* The pass has the frames of each sequence, one after another: `step` elements per position, and at
 * a sequence's end what its last position reads beyond these. */
kernel void frames(struct ak_ocl_rows_args c, global const float *in, global float *out,
                   global const int *pass)
{
    uint i = get_global_id(0), t = get_global_id(1);
    ulong from = (ulong)t * c.step + (ulong)pass[pass[AK_OCL_PASS_RUNS] + t] * (c.n - c.step);
    if (i < c.n)
        out[c.out_at + (ulong)t * c.out_stride + i] = in[from + i];
}

kernel void add_position(struct ak_ocl_rows_args c, global float *out, global const float *vectors,
                         global const int *pass)
{
    uint i = get_global_id(0), t = get_global_id(1);
    ulong position = pass[pass[AK_OCL_PASS_POSITIONS] + t];
    if (i < c.n)
        out[c.out_at + (ulong)t * c.out_stride + i] += vectors[c.vector + position * c.n + i];
}

/* n / 2 elements of the row before, then the n elements of the row. */
kernel void previous(struct ak_ocl_rows_args c, global const float *in, global float *out,
                     global const int *pass)
{
    uint i = get_global_id(0), t = get_global_id(1), half_n = c.n / 2;
    bool is_first = pass[pass[AK_OCL_PASS_POSITIONS] + t] == 0;
    global const float *row = in + c.in_at + (ulong)t * c.in_stride;
    if (i < half_n)
        out[c.out_at + (ulong)t * c.out_stride + i] =
            is_first ? 0.0f : row[(long)half_n + i - (long)c.in_stride];
    else if (i < half_n + c.n)
        out[c.out_at + (ulong)t * c.out_stride + i] = row[i - half_n];
}

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void norm(struct ak_ocl_rows_args c,
                                                                    global const float *in,
                                                                    global float *out,
                                                                    global const float *vectors)
{
    local float scratch[GROUP];
    ulong t = get_group_id(1);
    global const float *x = in + c.in_at + t * c.in_stride, *weight = vectors + c.vector;
    global float *to = out + c.out_at + t * c.out_stride;
    float sum = 0.0f, mean = 0.0f;
    if (c.flags & AK_OCL_ROWS_LAYER_NORM) {
        for (uint i = get_local_id(0); i < c.n; i += GROUP)
            sum += x[i];
        mean = group_sum(sum, scratch) / (float)c.n;
        sum = 0.0f;
    }
    for (uint i = get_local_id(0); i < c.n; i += GROUP)
        sum += (x[i] - mean) * (x[i] - mean);
    float by = 1.0f / sqrt(group_sum(sum, scratch) / (float)c.n + c.value);
    for (uint i = get_local_id(0); i < c.n; i += GROUP)
        to[i] = (x[i] - mean) * by * weight[i] +
                (c.flags & AK_OCL_ROWS_BIAS ? vectors[c.vector2 + i] : 0.0f);
}

float gelu_tanh(float x)
{
    return x / (1.0f + exp(-2.0f * 0.7978845608028654f * (x + 0.044715f * x * x * x)));
}

float gelu_erf(float x)
{
    return 0.5f * x * (1.0f + erf(x * 0.7071067811865476f));
}

float apply_activation(float x, uint flags)
{
    switch (flags & AK_OCL_ROWS_ACTIVATION) {
    case AK_OCL_ROWS_SILU: return x / (1.0f + exp(-x));
    case AK_OCL_ROWS_GELU_TANH: return gelu_tanh(x);
    case AK_OCL_ROWS_RELU: return max(x, 0.0f);
    default: return gelu_erf(x);
    }
}

kernel void gated(struct ak_ocl_rows_args c, global const float *in, global float *out)
{
    uint i = get_global_id(0);
    ulong t = get_global_id(1);
    if (i >= c.n)
        return;
    global const float *x = in + c.in_at + t * c.in_stride;
    float gate = x[c.gate_at + i], up = x[c.up_at + i], y;
    if ((c.flags & AK_OCL_ROWS_ACTIVATION) == AK_OCL_ROWS_SWIGLU_CLAMPED) {
        gate = min(gate, 7.0f);
        y = gate / (1.0f + exp(-1.702f * gate)) * (clamp(up, -7.0f, 7.0f) + 1.0f);
    } else {
        y = apply_activation(gate, c.flags) * up;
    }
    out[c.out_at + t * c.out_stride + i] = y;
}

kernel void activate(struct ak_ocl_rows_args c, global const float *in, global float *out)
{
    uint i = get_global_id(0);
    ulong t = get_global_id(1);
    if (i < c.n)
        out[c.out_at + t * c.out_stride + i] =
            apply_activation(in[c.in_at + t * c.in_stride + i], c.flags);
}

kernel void add(struct ak_ocl_rows_args c, global const float *in, global float *out)
{
    uint i = get_global_id(0);
    ulong t = get_global_id(1);
    if (i < c.n)
        out[c.out_at + t * c.out_stride + i] += in[c.in_at + t * c.in_stride + i] * c.value;
}

kernel void divide(struct ak_ocl_rows_args c, global float *out)
{
    uint i = get_global_id(0);
    if (i < c.n)
        out[c.out_at + (ulong)get_global_id(1) * c.out_stride + i] /= c.value;
}

kernel void cap(struct ak_ocl_rows_args c, global float *out)
{
    uint i = get_global_id(0);
    global float *x = out + c.out_at + (ulong)get_global_id(1) * c.out_stride;
    if (i < c.n)
        x[i] = c.value * tanh(x[i] / c.value);
}

kernel void select_rows(struct ak_ocl_rows_args c, global const float *in, global float *out,
                        global const int *pass)
{
    uint i = get_global_id(0), t = get_global_id(1);
    ulong from = pass[pass[AK_OCL_PASS_LOGIT_ROWS] + t];
    if (i < c.n)
        out[c.out_at + (ulong)t * c.out_stride + i] = in[c.in_at + from * c.in_stride + i];
}

/* Reorders a row's elements as the weight's columns read them. */
kernel void reorder(struct ak_ocl_rows_args c, global const float *in, global float *out,
                    global const uint *order)
{
    uint i = get_global_id(0);
    ulong t = get_global_id(1);
    if (i < c.n)
        out[t * c.out_stride + i] = in[c.in_at + t * c.in_stride + order[i]];
}

/* ---- Experts ------------------------------------------------------------ */
/* One group. Chooses the experts of each token and their weights, then lists the rows of all
 * experts, sorted by expert, and groups of COLUMNS rows for the products. Indices and weights are
 * floats in the out slot. */
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
route(struct ak_ocl_rows_args c, global const float *in, global float *out, global int *pass)
{
    uint lane = get_local_id(0), n = pass[AK_OCL_PASS_TOKENS], n_experts = c.n, used = c.used;
    global int *begin = pass + pass[AK_OCL_PASS_EXPERT_BEGIN],
               *groups = pass + pass[AK_OCL_PASS_EXPERT_GROUPS];
    for (uint t = lane; t < n; t += GROUP) {
        global const float *logits = in + c.in_at + (ulong)t * c.in_stride;
        global float *ids = out + c.out_at + (ulong)t * c.out_stride, *weights = ids + used;
        uint taken = 0;
        for (uint i = 0; i < n_experts; i++) {
            uint at = taken;
            while (at > 0 &&
                   (logits[i] > logits[(uint)ids[at - 1]] || isnan(logits[(uint)ids[at - 1]])))
                at--;
            if (at == used)
                continue;
            taken += taken < used;
            for (uint j = taken - 1; j > at; j--)
                ids[j] = ids[j - 1];
            ids[at] = (float)i;
        }
        float max_logit = logits[(uint)ids[0]], sum = 0.0f;
        if (c.flags & AK_OCL_ROWS_NORMALIZED)
            for (uint i = 0; i < used; i++)
                sum += exp(logits[(uint)ids[i]] - max_logit);
        else
            for (uint i = 0; i < n_experts; i++)
                sum += exp(logits[i] - max_logit);
        for (uint i = 0; i < used; i++)
            weights[i] = exp(logits[(uint)ids[i]] - max_logit) / sum;
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    /* a lane per expert: number of rows, first row, tokens */
    for (uint e = lane; e < n_experts; e += GROUP) {
        int count = 0;
        for (uint t = 0; t < n; t++)
            for (uint i = 0; i < used; i++)
                count += (uint)out[c.out_at + (ulong)t * c.out_stride + i] == e;
        begin[e + 1] = count;
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (lane == 0) {
        int n_groups = 0;
        begin[0] = 0;
        for (uint e = 0; e < n_experts; e++) {
            int first = begin[e], end = first + begin[e + 1];
            for (int row = first; row < end; row += COLUMNS) {
                groups[1 + 2 * n_groups] = e;
                groups[2 + 2 * n_groups++] = row;
            }
            begin[e + 1] = end;
        }
        groups[0] = n_groups;
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (uint e = lane; e < n_experts; e += GROUP) {
        int row = begin[e];
        for (uint t = 0; t < n; t++)
            for (uint i = 0; i < used; i++)
                if ((uint)out[c.out_at + (ulong)t * c.out_stride + i] == e) {
                    pass[pass[AK_OCL_PASS_EXPERT_OF] + row] = e;
                    pass[pass[AK_OCL_PASS_TOKEN_OF] + row] = t;
                    pass[pass[AK_OCL_PASS_ROW_OF] + t * used + i] = row++;
                }
    }
}

kernel void gather(struct ak_ocl_rows_args c, global const float *in, global float *out,
                   global const int *pass)
{
    uint i = get_global_id(0), row = get_global_id(1);
    ulong from = pass[pass[AK_OCL_PASS_TOKEN_OF] + row];
    if (i < c.n)
        out[c.out_at + (ulong)row * c.out_stride + i] = in[c.in_at + from * c.in_stride + i];
}

/* `routes` is the out slot of route: `used` indices, then `used` weights. */
kernel void combine(struct ak_ocl_rows_args c, global const float *in, global float *out,
                    global const float *routes, global const int *pass)
{
    uint i = get_global_id(0);
    ulong t = get_global_id(1);
    if (i >= c.n)
        return;
    global const float *weights = routes + c.other_at + t * c.other_stride + c.used;
    float sum = out[c.out_at + t * c.out_stride + i];
    for (uint j = 0; j < c.used; j++) {
        ulong row = pass[pass[AK_OCL_PASS_ROW_OF] + t * c.used + j];
        sum = fma(in[c.in_at + row * c.in_stride + i], weights[j], sum);
    }
    out[c.out_at + t * c.out_stride + i] = sum;
}

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
add_gated(struct ak_ocl_rows_args c, global const float *in, global float *out,
          global const float *gates, global const float *vectors)
{
    local float scratch[GROUP];
    ulong t = get_group_id(1);
    float sum = 0.0f;
    for (uint i = get_local_id(0); i < c.n; i += GROUP)
        sum += vectors[c.vector + i] * gates[c.other_at + t * c.other_stride + i];
    float by = 1.0f / (1.0f + exp(-group_sum(sum, scratch)));
    for (uint i = get_local_id(0); i < c.n; i += GROUP)
        out[c.out_at + t * c.out_stride + i] += by * in[c.in_at + t * c.in_stride + i];
}

/* ---- The end of a sampled table ----------------------------------------- */
/* −log(−log(u)), u uniform in (0, 1) from (seed, position, index): the output function of
 * SplitMix64 (Steele, Lea, Flood 2014) over a counter. Near 1, log1p(−(1 − u)) keeps the
 * precision. */
float gumbel_of(ulong seed, ulong position, ulong index)
{
    ulong z = seed + (position << 32) * 0x9e3779b97f4a7c15ul + index * 0xbf58476d1ce4e5b9ul +
              0x9e3779b97f4a7c15ul;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ul;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebul;
    z = (z ^ (z >> 31)) >> 12;
    bool above = z >= 1ul << 51;
    float u =
        above ? ((float)((1ul << 52) - 1 - z) + 0.5f) * 0x1p-52f : ((float)z + 0.5f) * 0x1p-52f;
    return -log(above ? -log1p(-u) : -log(u));
}

kernel void gumbel(struct ak_ocl_rows_args c, global float *out, global const int *pass)
{
    uint i = get_global_id(0), t = get_global_id(1);
    float temperature = as_float(pass[AK_OCL_PASS_TEMPERATURE]);
    if (i >= c.n || temperature <= 0.0f)
        return;
    ulong seed = (ulong)(uint)pass[AK_OCL_PASS_SEED_HIGH] << 32 | (uint)pass[AK_OCL_PASS_SEED_LOW];
    ulong position = pass[pass[AK_OCL_PASS_POSITIONS] + pass[pass[AK_OCL_PASS_LOGIT_ROWS] + t]];
    global float *x = out + c.out_at + (ulong)t * c.out_stride + i;
    *x = *x / temperature + gumbel_of(seed, position, i);
}

/* Lowest index of the maximum; NaN never is; −1: no element qualifies. */
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
argmax(struct ak_ocl_rows_args c, global const float *in, global int *sampled)
{
    local float values[GROUP];
    local uint indices[GROUP];
    uint lane = get_local_id(0), best_at = UINT_MAX;
    global const float *x = in + c.in_at + (ulong)get_group_id(1) * c.in_stride;
    float best = -INFINITY;
    for (uint i = lane; i < c.n; i += GROUP)
        if (x[i] > best) {
            best = x[i];
            best_at = i;
        }
    values[lane] = best;
    indices[lane] = best_at;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_n = GROUP / 2; half_n > 0; half_n /= 2) {
        if (lane < half_n &&
            (values[lane + half_n] > values[lane] ||
             (values[lane + half_n] == values[lane] && indices[lane + half_n] < indices[lane]))) {
            values[lane] = values[lane + half_n];
            indices[lane] = indices[lane + half_n];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0)
        sampled[get_group_id(1)] = (int)indices[0]; /* UINT_MAX is −1 */
}
