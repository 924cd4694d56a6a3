#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)

/* Compiled once for each QUERIES, after attention.cl.
 *
 * A group a head and a block of up to QUERIES tokens of one sequence; lanes are the tokens of
 * a page for scores, and elements of the head for values. The pages are shared out among
 * get_num_groups(2) groups, whose results `merge` puts together; of one alone the result is
 * final. */
kernel __attribute__((reqd_work_group_size(PAGE, 1, 1)))
void PASTE(attention, QUERIES)(struct attention a, global const float *in, global float *out, global float *partials, global const float *vectors,
               global uchar *kv, global const int *pass)
{
    local float q[QUERIES][HEAD_MAX], weights[QUERIES][PAGE], scratch[PAGE];
    uint lane = get_local_id(0), h = get_group_id(0), n = a.head_dim, kv_head = h / (a.n_heads / a.n_kv_heads);
    uint splits = get_num_groups(2), split = get_group_id(2);
    global const int *block = pass + pass[PASS_BLOCKS] + 2 * get_group_id(1);
    uint first_token = block[0], rows = block[1];
    uint sequence_end = pass[pass[PASS_ENDS] + first_token];
    global const int *table = pass + pass[pass[PASS_TABLES] + first_token];
    float most[QUERIES], sum[QUERIES], result[QUERIES][HEAD_MAX / PAGE];
    uint from, to, unused;
    for (uint r = 0; r < QUERIES; r++) {
        most[r] = -INFINITY;
        sum[r] = 0.0f;
        for (uint i = 0; i < HEAD_MAX / PAGE; i++)
            result[r][i] = 0.0f;
        for (uint i = lane; i < n; i += PAGE)
            q[r][i] = r < rows ? in[a.in_at + (ulong)(first_token + r) * a.in_stride + a.q_at + h * a.q_step + i] * a.scale : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    visible(a, pass[pass[PASS_POSITIONS] + first_token], sequence_end, &from, &unused);
    visible(a, pass[pass[PASS_POSITIONS] + first_token + rows - 1], sequence_end, &unused, &to);
    uint page = from / PAGE, pages_end = (to - 1) / PAGE + 1, each = (pages_end - page + splits - 1) / splits;
    page += split * each;
    pages_end = min(pages_end, page + each);
    for (; page < pages_end; page++) {
        global const uchar *keys = head_of(a, kv, table[page], kv_head), *values = keys + a.keys_bytes;
        uint token = page * PAGE + lane;
        float score[QUERIES];
        for (uint r = 0; r < QUERIES; r++)
            score[r] = 0.0f;
        for (uint block = 0; block < n; block += 32) {
            float scale = key_scale(keys, n, block, lane);
            for (uint d = block; d < min(n, block + 32); d++) {
                float key = key_at(keys, n, d, lane, scale);
                for (uint r = 0; r < QUERIES; r++)
                    score[r] = fma(q[r][d], key, score[r]);
            }
        }
        for (uint r = 0; r < rows; r++) {
            uint position = pass[pass[PASS_POSITIONS] + first_token + r], first, end;
            visible(a, position, sequence_end, &first, &end);
            float s = score[r];
            if (a.flags & ATTENTION_ALIBI)
                s -= slope_of(h, a.n_heads) * (float)(position > token ? position - token : token - position);
            if (a.cap > 0.0f)
                s = a.cap * tanh(s / a.cap);
            if (token < first || token >= end)
                s = -INFINITY;
            scratch[lane] = s;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint half_n = PAGE / 2; half_n > 0; half_n /= 2) {
                if (lane < half_n)
                    scratch[lane] = fmax(scratch[lane], scratch[lane + half_n]);
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            float page_most = scratch[0], before = most[r];
            most[r] = fmax(before, page_most);
            float weight = token < first || token >= end ? 0.0f : exp(s - most[r]), again = before == most[r] ? 1.0f : exp(before - most[r]);
            weights[r][lane] = weight;
            barrier(CLK_LOCAL_MEM_FENCE);
            scratch[lane] = weight;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint half_n = PAGE / 2; half_n > 0; half_n /= 2) {
                if (lane < half_n)
                    scratch[lane] += scratch[lane + half_n];
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            sum[r] = sum[r] * again + scratch[0];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint i = 0; i < HEAD_MAX / PAGE; i++)
                result[r][i] *= again;
        }
        for (uint i = 0; i * PAGE + lane < n; i++) {
            for (uint j = 0; j < PAGE; j++) {
                /* beyond the last token lies what was there before: not even zero times that */
                if (page * PAGE + j >= to)
                    break;
                float value = value_at(values, n, j, i * PAGE + lane);
                for (uint r = 0; r < rows; r++)
                    result[r][i] = fma(weights[r][j], value, result[r][i]);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint r = 0; r < rows; r++) {
        if (splits > 1) {
            global float *part = partials + (((ulong)(first_token + r) * a.n_heads + h) * splits + split) * (n + 2);
            for (uint i = 0; i * PAGE + lane < n; i++)
                part[i * PAGE + lane] = result[r][i];
            if (lane == 0) {
                part[n] = most[r];
                part[n + 1] = sum[r];
            }
        } else {
            float sink = a.flags & ATTENTION_SINKS ? vectors[a.sinks + h] : -INFINITY, top = fmax(most[r], sink);
            float again = exp(most[r] - top), total = sum[r] * again + (a.flags & ATTENTION_SINKS ? exp(sink - top) : 0.0f);
            global float *row = out + a.out_at + (ulong)(first_token + r) * a.out_stride + h * n;
            for (uint i = 0; i * PAGE + lane < n; i++)
                row[i * PAGE + lane] = result[r][i] * again / total * gated_by(a, in, first_token + r, h, i * PAGE + lane);
        }
    }
}
#undef PASTE
#undef PASTE2
