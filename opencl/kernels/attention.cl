/* The QKV step, what the attention kernels share (pages, visible tokens, scores, gates), and
 * `merge`. Compiled after kv.cl; online_softmax.cl has attention itself. */

/* A KV head in a page: its keys, then its values. */
global uchar *head_of(struct ak_ocl_attention_args a, global uchar *kv, int page, uint kv_head)
{
    return kv + (((ulong)page * a.n_layers + a.kv_layer) * a.n_kv_heads + kv_head) * a.head_bytes;
}

global uchar *page_of(struct ak_ocl_attention_args a, global uchar *kv, global const int *pass,
                      uint t, uint kv_head)
{
    uint position = pass[pass[AK_OCL_PASS_POSITIONS] + t];
    return head_of(a, kv, pass[pass[pass[AK_OCL_PASS_TABLES] + t] + position / PAGE], kv_head);
}

#ifdef K_QUANTIZED
/* Unscaled Hadamard transform of n floats in place, in blocks of the largest power of two that
 * divides n. */
void hadamard(local float *x, uint n)
{
    for (uint half_n = 1; half_n < (n & -n); half_n *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint p = get_local_id(0); p < n / 2; p += GROUP) {
            uint i = p / half_n * 2 * half_n + p % half_n;
            float u = x[i], v = x[i + half_n];
            x[i] = u + v;
            x[i + half_n] = u - v;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Second step of qkv for quantized keys, after the first key of each page is stored. */
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
quantize_keys(struct ak_ocl_attention_args a, global const float *rows, global uchar *kv,
              global const int *pass)
{
    local float key[HEAD_MAX];
    uint lane = get_local_id(0), h = get_group_id(0), t = get_group_id(1), n = a.head_dim;
    global const float *x = rows + a.in_at + (ulong)t * a.in_stride + a.k_at + h * n;
    global uchar *page = page_of(a, kv, pass, t, h);
    for (uint i = lane; i < n; i += GROUP)
        key[i] = x[i] - F32_READ(page + first_key(n), i);
    barrier(CLK_LOCAL_MEM_FENCE);
    put_key(key, n, lane, page, pass[pass[AK_OCL_PASS_POSITIONS] + t] % PAGE);
}
#endif

/* One group per head and token: norms, rotation, then keys and values into the cache. Query heads
 * first, then key heads, then value heads. */
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
qkv(struct ak_ocl_attention_args a, global float *rows, global const float *vectors,
    global const float *angles, global uchar *kv, global const int *pass)
{
    local float scratch[GROUP];
    local float head[HEAD_MAX];
    uint lane = get_local_id(0), h = get_group_id(0), t = get_group_id(1), n = a.head_dim;
    uint at = h < a.n_heads                ? a.q_at + h * a.q_step :
              h < a.n_heads + a.n_kv_heads ? a.k_at + (h - a.n_heads) * n :
                                             a.v_at + (h - a.n_heads - a.n_kv_heads) * n;
    global float *x = rows + a.in_at + (ulong)t * a.in_stride + at;
    bool is_query = h < a.n_heads, is_value = h >= a.n_heads + a.n_kv_heads;
    uint flag = is_query ? AK_OCL_ATTENTION_Q_NORM : AK_OCL_ATTENTION_K_NORM;
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
        uint half_n = a.rope_dims / 2, tokens = pass[AK_OCL_PASS_TOKENS];
        global const float *cosines = angles + ((ulong)a.rope_table * 2 * tokens + t) * half_n,
                           *sines = cosines + (ulong)tokens * half_n;
        for (uint i = lane; i < half_n; i += GROUP) {
            uint p = a.flags & AK_OCL_ATTENTION_INTERLEAVED ? 2 * i : i,
                 q = a.flags & AK_OCL_ATTENTION_INTERLEAVED ? 2 * i + 1 : i + half_n;
            float u = head[p], v = head[q];
            head[p] = u * cosines[i] - v * sines[i];
            head[q] = u * sines[i] + v * cosines[i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (is_value) {
        uint kv_head = h - a.n_heads - a.n_kv_heads;
        put_value(head, n, lane, page_of(a, kv, pass, t, kv_head) + a.keys_bytes,
                  pass[pass[AK_OCL_PASS_POSITIONS] + t] % PAGE);
        return;
    }
#ifdef K_QUANTIZED
    hadamard(head, n);
    for (uint i = lane; i < n; i += GROUP)
        x[i] = is_query ? head[i] / (float)(n & -n) : head[i];
    if (!is_query && pass[pass[AK_OCL_PASS_POSITIONS] + t] % PAGE == 0)
        for (uint i = lane; i < n; i += GROUP)
            F32_WRITE(head[i], page_of(a, kv, pass, t, h - a.n_heads) + first_key(n), i);
#else
    if (is_query)
        for (uint i = lane; i < n; i += GROUP)
            x[i] = head[i];
    else
        put_key(head, n, lane, page_of(a, kv, pass, t, h - a.n_heads),
                pass[pass[AK_OCL_PASS_POSITIONS] + t] % PAGE);
#endif
}

/* Tokens [*first, *end) that a token at `position` sees. */
void visible_range(struct ak_ocl_attention_args a, uint position, uint sequence_end, uint *first,
                   uint *end)
{
    uint before = a.flags & AK_OCL_ATTENTION_BIDIRECTIONAL ? a.window / 2 : a.window - 1;
    *first = a.window && position > before ? position - before : 0;
    *end = position + 1;
    if (a.flags & AK_OCL_ATTENTION_BIDIRECTIONAL)
        *end = a.window && sequence_end - position > before ? position + before + 1 : sequence_end;
}

/* ALiBi slope. With n heads, n a power of two, head h has 2^(-8(h + 1)/n). Heads past the largest
 * such n have every second slope of 2n heads. */
float slope_of(uint h, uint n_heads)
{
    uint n = 1;
    while (n <= n_heads / 2)
        n *= 2;
    return exp2(h < n ? -8.0f * (float)(h + 1) / (float)n :
                        -8.0f * (float)(2 * (h - n) + 1) / (float)(2 * n));
}

/* Score of a token for a query of head h at `position`; −∞: not visible. */
float masked_score(struct ak_ocl_attention_args a, float score, uint h, uint position,
                   uint sequence_end, uint token)
{
    uint first, end;
    visible_range(a, position, sequence_end, &first, &end);
    if (a.flags & AK_OCL_ATTENTION_ALIBI)
        score -= slope_of(h, a.n_heads) *
                 (float)(position > token ? position - token : token - position);
    if (a.cap > 0.0f)
        score = a.cap * tanh(score / a.cap);
    return token < first || token >= end ? -INFINITY : score;
}

/* Maximum of x over each `n` neighboring lanes, and below their sum; all of them get it. */
float row_max(float x, local float *scratch, uint n)
{
    uint lane = get_local_id(0);
    scratch[lane] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_n = n / 2; half_n > 0; half_n /= 2) {
        if (lane % n < half_n)
            scratch[lane] = fmax(scratch[lane], scratch[lane + half_n]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return scratch[lane / n * n];
}

float row_sum(float x, local float *scratch, uint n)
{
    uint lane = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[lane] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_n = n / 2; half_n > 0; half_n /= 2) {
        if (lane % n < half_n)
            scratch[lane] += scratch[lane + half_n];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return scratch[lane / n * n];
}

/* Factor of an element's gate; a head's gates follow its q. */
float gate_factor(struct ak_ocl_attention_args a, global const float *in, uint t, uint h, uint i)
{
    return a.flags & AK_OCL_ATTENTION_GATED ?
               sigmoid(
                   in[a.in_at + (ulong)t * a.in_stride + a.q_at + h * a.q_step + a.head_dim + i]) :
               1.0f;
}

kernel __attribute__((reqd_work_group_size(PAGE, 1, 1))) void
merge(struct ak_ocl_attention_args a, global const float *in, global const float *partials,
      global float *out, global const float *vectors, uint splits)
{
    uint lane = get_local_id(0), h = get_group_id(0), t = get_group_id(1), n = a.head_dim;
    global const float *parts = partials + ((ulong)t * a.n_heads + h) * splits * (n + 2);
    float top = a.flags & AK_OCL_ATTENTION_SINKS ? vectors[a.sinks + h] : -INFINITY, total = 0.0f;
    for (uint s = 0; s < splits; s++)
        top = fmax(top, parts[s * (n + 2) + n]);
    for (uint s = 0; s < splits; s++)
        total += parts[s * (n + 2) + n + 1] * exp(parts[s * (n + 2) + n] - top);
    if (a.flags & AK_OCL_ATTENTION_SINKS)
        total += exp(vectors[a.sinks + h] - top);
    for (uint i = lane; i < n; i += PAGE) {
        float sum = 0.0f;
        for (uint s = 0; s < splits; s++)
            sum += parts[s * (n + 2) + i] * exp(parts[s * (n + 2) + n] - top);
        out[a.out_at + (ulong)t * a.out_stride + h * n + i] =
            sum / total * gate_factor(a, in, t, h, i);
    }
}
