/* Recurrent layers: convolutions keep their last inputs, the gated delta rule a matrix per value
 * head. At position 0 a state counts as zeros, whatever the memory holds. */

/* ---- Convolutions ------------------------------------------------------- */
/* A state is [taps − 1][n], oldest first. Each lane has a channel of a token and looks back: first
 * in the rows of this pass, then in the state, which is updated after all lanes have read it. */

/* Channel i of a row that has three parts of n_groups groups each. */
float read_channel(struct ak_ocl_conv_args c, global const float *row, uint i)
{
    uint part = 0;
    for (; i >= c.n_groups * c.part_n[part]; part++)
        i -= c.n_groups * c.part_n[part];
    return row[c.part_at[part] + i / c.part_n[part] * c.part_step[part] + i % c.part_n[part]];
}

/* Input of the convolution: x, or b · x if a row has b, c and x. */
float read_input(struct ak_ocl_conv_args c, global const float *row, uint i)
{
    return c.gated ? row[i] * row[2 * c.n + i] : read_channel(c, row, i);
}

/* Tokens of the pass before token t in its sequence, at most taps − 1. */
uint count_tokens_before(struct ak_ocl_conv_args c, uint t, global const int *pass)
{
    global const int *sequences = pass + pass[AK_OCL_PASS_STATES];
    uint n = 0;
    while (n + 1 < c.taps && n < t && sequences[t - n - 1] == sequences[t])
        n++;
    return n;
}

/* Channel i of the token `back` before token t; n of them are in the pass. */
float read_input_before(struct ak_ocl_conv_args c, global const float *in,
                        global const float *state, uint i, uint t, uint n, uint back, uint position)
{
    if (back <= n)
        return read_input(c, in + c.in_at + (ulong)(t - back) * c.in_stride, i);
    return back <= position ? state[(ulong)(c.taps - 1 - (back - n)) * c.n + i] : 0.0f;
}

kernel void conv(struct ak_ocl_conv_args c, global const float *in, global float *out,
                 global const float *vectors, global const float *states, global const int *pass)
{
    uint i = get_global_id(0), t = get_global_id(1);
    if (i >= c.n)
        return;
    global const float *weight = vectors + c.vector + i * c.taps;
    global const float *state =
        states + c.state_at + (ulong)pass[pass[AK_OCL_PASS_STATES] + t] * c.state_elems;
    uint n = count_tokens_before(c, t, pass), position = pass[pass[AK_OCL_PASS_POSITIONS] + t];
    float sum = 0.0f;
    for (uint k = 0; k < c.taps; k++)
        sum =
            fma(weight[k], read_input_before(c, in, state, i, t, n, c.taps - 1 - k, position), sum);
    out[c.out_at + (ulong)t * c.out_stride + i] =
        c.gated ? in[c.in_at + (ulong)t * c.in_stride + c.n + i] * sum : sum * sigmoid(sum);
}

/* Updates the state; only the lanes of a sequence's last token in the pass write. */
kernel void conv_state(struct ak_ocl_conv_args c, global const float *in, global float *states,
                       global const int *pass)
{
    uint i = get_global_id(0), t = get_global_id(1),
         position = pass[pass[AK_OCL_PASS_POSITIONS] + t];
    if (i >= c.n || position + 1 != (uint)pass[pass[AK_OCL_PASS_ENDS] + t])
        return;
    global float *state =
        states + c.state_at + (ulong)pass[pass[AK_OCL_PASS_STATES] + t] * c.state_elems;
    uint n = count_tokens_before(c, t, pass);
    for (uint k = 0; k + 1 < c.taps; k++) /* reads are ahead of writes */
        state[(ulong)k * c.n + i] =
            read_input_before(c, in, state, i, t, n, c.taps - 2 - k, position);
}

/* ---- The gated delta rule ----------------------------------------------- */
/* One group per value head and token. Scales keys to unit length, and queries to that divided by
 * the root of their size. Replaces the gates: beta by its sigmoid, alpha by the kept share of the
 * state, exp(decay · ln(1 + exp(alpha))). */
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
delta_gates(struct ak_ocl_delta_args d, global float *rows, global float *gates,
            global const float *vectors)
{
    local float scratch[GROUP];
    uint lane = get_local_id(0), head = get_group_id(0), per_group = d.n_v_heads / d.n_k_heads;
    ulong t = get_group_id(1);
    global float *gate =
        gates + d.gates_at + t * d.gates_stride + head / per_group * d.gate_step + head % per_group;
    if (lane == 0) {
        float alpha = gate[d.alpha_at] + vectors[d.alpha_bias + head];
        gate[d.beta_at] = sigmoid(gate[d.beta_at]);
        gate[d.alpha_at] =
            exp(vectors[d.decay + head] * (alpha > 20.0f ? alpha : log1p(exp(alpha))));
    }
    if (head >= d.n_k_heads)
        return;
    global float *q = rows + d.in_at + t * d.in_stride + head * d.k_dim,
                 *k = q + d.n_k_heads * d.k_dim;
    float of_q = 0.0f, of_k = 0.0f;
    for (uint i = lane; i < d.k_dim; i += GROUP) {
        of_q = fma(q[i], q[i], of_q);
        of_k = fma(k[i], k[i], of_k);
    }
    of_q = 1.0f / sqrt((group_sum(of_q, scratch) + 1e-6f) * (float)d.k_dim);
    of_k = 1.0f / sqrt(group_sum(of_k, scratch) + 1e-6f);
    for (uint i = lane; i < d.k_dim; i += GROUP) {
        q[i] *= of_q;
        k[i] *= of_k;
    }
}

/* Sum over the lanes of a column. */
float column_sum(float x, local float parts[DELTA_SLICES][DELTA_COLUMNS])
{
    uint column = get_local_id(0);
    float sum = 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    parts[get_local_id(1)][column] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint s = 0; s < DELTA_SLICES; s++)
        sum += parts[s][column];
    return sum;
}

/* A group has DELTA_COLUMNS columns of a value head's state, [k_dim][v_dim], and keeps them in
 * registers over all tokens: lane (c, s) rows s, s + DELTA_SLICES … of column c. Each token decays
 * the state, corrects it towards its value for its key, and reads it with its query. */
kernel __attribute__((reqd_work_group_size(DELTA_COLUMNS, DELTA_SLICES, 1))) void
delta(struct ak_ocl_delta_args d, global const float *in, global float *out,
      global const float *gates, global float *states, global const int *pass)
{
    local float parts[DELTA_SLICES][DELTA_COLUMNS];
    uint column = get_global_id(0), slice = get_local_id(1), head = get_group_id(1),
         tokens = pass[AK_OCL_PASS_TOKENS];
    uint per_group = d.n_v_heads / d.n_k_heads,
         key_head = d.tiled ? head % d.n_k_heads : head / per_group;
    global const int *sequences = pass + pass[AK_OCL_PASS_STATES],
                     *positions = pass + pass[AK_OCL_PASS_POSITIONS];
    float own[DELTA_DIM_MAX / DELTA_SLICES];
    for (uint t = 0; t < tokens; t++) {
        global const float *q = in + d.in_at + (ulong)t * d.in_stride + key_head * d.k_dim,
                           *k = q + d.n_k_heads * d.k_dim;
        global const float *v =
            in + d.in_at + (ulong)t * d.in_stride + 2 * d.n_k_heads * d.k_dim + head * d.v_dim;
        global const float *gate = gates + d.gates_at + (ulong)t * d.gates_stride +
                                   head / per_group * d.gate_step + head % per_group;
        global float *state = states + d.state_at + (ulong)sequences[t] * d.state_elems +
                              (ulong)head * d.k_dim * d.v_dim + column;
        float kept = gate[d.alpha_at], given = 0.0f, asked = 0.0f;
        if (t == 0 || sequences[t] != sequences[t - 1])
            for (uint j = 0, i = slice; j < DELTA_DIM_MAX / DELTA_SLICES; j++, i += DELTA_SLICES)
                own[j] = i < d.k_dim && positions[t] > 0 ? state[(ulong)i * d.v_dim] : 0.0f;
        for (uint j = 0, i = slice; j < DELTA_DIM_MAX / DELTA_SLICES; j++, i += DELTA_SLICES)
            given = i < d.k_dim ? fma(k[i], own[j], given) : given;
        float change = gate[d.beta_at] * fma(-kept, column_sum(given, parts), v[column]);
        for (uint j = 0, i = slice; j < DELTA_DIM_MAX / DELTA_SLICES; j++, i += DELTA_SLICES)
            if (i < d.k_dim) {
                own[j] = fma(k[i], change, kept * own[j]);
                asked = fma(q[i], own[j], asked);
            }
        asked = column_sum(asked, parts);
        if (slice == 0)
            out[d.out_at + (ulong)t * d.out_stride + head * d.v_dim + column] = asked;
        if (t + 1 == tokens || sequences[t] != sequences[t + 1])
            for (uint j = 0, i = slice; j < DELTA_DIM_MAX / DELTA_SLICES; j++, i += DELTA_SLICES)
                if (i < d.k_dim)
                    state[(ulong)i * d.v_dim] = own[j];
    }
}

/* One group per head and token. */
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
norm_gated(struct ak_ocl_norm_gated_args g, global const float *in, global float *out,
           global const float *gates, global const float *vectors)
{
    local float scratch[GROUP];
    uint lane = get_local_id(0), head = get_group_id(0);
    ulong t = get_group_id(1);
    global const float *x = in + g.in_at + t * g.in_stride + head * g.n;
    global const float *gate = gates + g.gate_at + t * g.gate_stride +
                               head / g.per_group * g.gate_step + head % g.per_group * g.n;
    float sum = 0.0f;
    for (uint i = lane; i < g.n; i += GROUP)
        sum = fma(x[i], x[i], sum);
    float by = 1.0f / sqrt(group_sum(sum, scratch) / (float)g.n + g.eps);
    for (uint i = lane; i < g.n; i += GROUP)
        out[g.out_at + t * g.out_stride + head * g.n + i] =
            x[i] * by * vectors[g.vector + i] * gate[i] * sigmoid(gate[i]);
}
