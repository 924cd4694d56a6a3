/* Keys and values of a page and head: keys as [head_dim][PAGE] so that lanes that have a
 * token each read side by side, then values as [PAGE][head_dim]. */
#ifdef KV_F16
typedef half kv_number;
#define KV_READ(from, i) vload_half(i, from)
#define KV_WRITE(x, to, i) vstore_half_rte(x, i, to)
#else
typedef float kv_number;
#define KV_READ(from, i) (from)[i]
#define KV_WRITE(x, to, i) (to)[i] = (x)
#endif

/* Of a page and head, from the beginning of the pool. */
ulong kv_at(struct attention a, int page, uint kv_head)
{
    return ((ulong)page * a.n_layers + a.kv_layer) * a.n_kv_heads * 2 * PAGE * a.head_dim + (ulong)kv_head * 2 * PAGE * a.head_dim;
}

/* A group a head of a token: norms, rotation, keys and values into the cache. Heads of
 * queries first, then of keys, then of values. */
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void qkv(struct attention a, global float *rows, global const float *vectors, global const float *angles, global kv_number *kv,
         global const int *pass)
{
    local float scratch[GROUP];
    local float head[HEAD_MAX];
    uint lane = get_local_id(0), h = get_group_id(0), t = get_group_id(1), n = a.head_dim;
    uint at = h < a.n_heads ? a.q_at + h * a.q_step : h < a.n_heads + a.n_kv_heads ? a.k_at + (h - a.n_heads) * n
                                                                            : a.v_at + (h - a.n_heads - a.n_kv_heads) * n;
    global float *x = rows + a.in_at + (ulong)t * a.in_stride + at;
    bool is_query = h < a.n_heads, is_value = h >= a.n_heads + a.n_kv_heads;
    uint flag = is_query ? ATTENTION_Q_NORM : ATTENTION_K_NORM;
    float by = 1.0f;
    for (uint i = lane; i < n; i += GROUP)
        head[i] = x[i];
    if (!is_value && (a.flags & flag)) {
        global const float *weight = vectors + (is_query ? a.q_norm : a.k_norm);
        float sum = 0.0f;
        for (uint i = lane; i < n; i += GROUP)
            sum += head[i] * head[i];
        by = 1.0f / sqrt(group_sum(sum, scratch) / (float)n + a.norm_eps);
        for (uint i = lane; i < n; i += GROUP)
            head[i] *= by * weight[i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!is_value) {
        uint half_n = a.rope_dims / 2, tokens = pass[PASS_TOKENS];
        global const float *cosines = angles + ((ulong)a.rope_table * 2 * tokens + t) * half_n, *sines = cosines + (ulong)tokens * half_n;
        for (uint i = lane; i < half_n; i += GROUP) {
            uint p = a.flags & ATTENTION_INTERLEAVED ? 2 * i : i, q = a.flags & ATTENTION_INTERLEAVED ? 2 * i + 1 : i + half_n;
            float u = head[p], v = head[q];
            head[p] = u * cosines[i] - v * sines[i];
            head[q] = u * sines[i] + v * cosines[i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (is_query) {
        for (uint i = lane; i < n; i += GROUP)
            x[i] = head[i];
        return;
    }
    uint position = pass[pass[PASS_POSITIONS] + t], token = position % PAGE;
    int page = pass[pass[pass[PASS_TABLES] + t] + position / PAGE];
    global kv_number *to = kv + kv_at(a, page, is_value ? h - a.n_heads - a.n_kv_heads : h - a.n_heads);
    for (uint i = lane; i < n; i += GROUP) {
        if (is_value)
            KV_WRITE(head[i], to, PAGE * n + token * n + i);
        else
            KV_WRITE(head[i], to, i * PAGE + token);
    }
}

/* Tokens [*first, *end) that one at `position` sees. */
void visible(struct attention a, uint position, uint sequence_end, uint *first, uint *end)
{
    uint before = a.flags & ATTENTION_BOTH_WAYS ? a.window / 2 : a.window - 1;
    *first = a.window && position > before ? position - before : 0;
    *end = position + 1;
    if (a.flags & ATTENTION_BOTH_WAYS)
        *end = a.window && sequence_end - position > before ? position + before + 1 : sequence_end;
}

/* ALiBi's: of n heads, n a power of two, head h has 2^(-8(h + 1)/n); heads beyond the largest
 * such n have every second one of twice as many. */
float slope_of(uint h, uint n_heads)
{
    uint n = 1;
    while (n <= n_heads / 2)
        n *= 2;
    return exp2(h < n ? -8.0f * (float)(h + 1) / (float)n : -8.0f * (float)(2 * (h - n) + 1) / (float)(2 * n));
}

kernel __attribute__((reqd_work_group_size(PAGE, 1, 1)))
void merge(struct attention a, global const float *partials, global float *out, global const float *vectors, uint splits)
{
    uint lane = get_local_id(0), h = get_group_id(0), t = get_group_id(1), n = a.head_dim;
    global const float *parts = partials + ((ulong)t * a.n_heads + h) * splits * (n + 2);
    float top = a.flags & ATTENTION_SINKS ? vectors[a.sinks + h] : -INFINITY, total = 0.0f;
    for (uint s = 0; s < splits; s++)
        top = fmax(top, parts[s * (n + 2) + n]);
    for (uint s = 0; s < splits; s++)
        total += parts[s * (n + 2) + n + 1] * exp(parts[s * (n + 2) + n] - top);
    if (a.flags & ATTENTION_SINKS)
        total += exp(vectors[a.sinks + h] - top);
    for (uint i = lane; i < n; i += PAGE) {
        float sum = 0.0f;
        for (uint s = 0; s < splits; s++)
            sum += parts[s * (n + 2) + i] * exp(parts[s * (n + 2) + n] - top);
        out[a.out_at + (ulong)t * a.out_stride + h * n + i] = sum / total;
    }
}
