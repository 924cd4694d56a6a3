/* Attention with online softmax. Compiled once per QUERIES, after attention.cl.
 *
 * One group per head and block of up to QUERIES tokens that read the same pages, its rows. Lanes
 * are the tokens of a page for scores, ROW_LANES lanes per row for maxima and sums, and elements of
 * the head for values. Pages are split among get_num_groups(2) groups; `merge` combines their
 * partial softmaxes. A single group writes the final result. */
#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
#define ROW_LANES (PAGE / QUERIES)
#define SCORE_PAGE PASTE(score_page, QUERIES)

/* Scores of a page's token `lane` for each row of q. */
void SCORE_PAGE(local const float q[QUERIES][HEAD_MAX], global const uchar *keys, uint n, uint lane,
                float score[QUERIES])
{
    for (uint r = 0; r < QUERIES; r++)
        score[r] = 0.0f;
    for (uint some = 0; some < n; some += 32) {
        float scale = key_scale(keys, n, some, lane);
        for (uint d = some; d < min(n, some + 32); d++) {
            float key = key_at(keys, n, d, lane, scale);
            for (uint r = 0; r < QUERIES; r++)
                score[r] = fma(q[r][d], key, score[r]);
        }
    }
}

kernel __attribute__((reqd_work_group_size(PAGE, 1, 1))) void
PASTE(attention, QUERIES)(struct ak_ocl_attention_args a, global const float *in, global float *out,
                          global float *partials, global const float *vectors, global uchar *kv,
                          global const int *pass)
{
    local float q[QUERIES][HEAD_MAX], weights[QUERIES][PAGE], scratch[PAGE], again[QUERIES],
        tops[QUERIES], sums[QUERIES];
    uint lane = get_local_id(0), h = get_group_id(0), n = a.head_dim,
         kv_head = h / (a.n_heads / a.n_kv_heads);
    uint row = lane / ROW_LANES, splits = get_num_groups(2), split = get_group_id(2);
    global const int *block = pass + pass[a.blocks] + 2 * get_group_id(1);
    uint first_token = block[0], rows = block[1];
    uint sequence_end = pass[pass[a.ends] + first_token];
    global const int *positions = pass + pass[AK_OCL_PASS_POSITIONS] + first_token,
                     *table = pass + pass[pass[a.tables] + first_token];
    float running_max = -INFINITY, sum = 0.0f, result[QUERIES][HEAD_MAX / PAGE];
    uint from, to, unused;
    for (uint r = 0; r < QUERIES; r++) {
        for (uint i = 0; i < HEAD_MAX / PAGE; i++)
            result[r][i] = 0.0f;
        for (uint i = lane; i < n; i += PAGE)
            q[r][i] = r < rows ? in[a.in_at + (ulong)(first_token + r) * a.in_stride + a.q_at +
                                    h * a.q_step + i] *
                                     a.scale :
                                 0.0f;
    }
    visible_range(a, positions[0], sequence_end, &from, &unused);
    visible_range(a, positions[rows - 1], sequence_end, &unused, &to);
    uint page = from / PAGE, pages_end = (to - 1) / PAGE + 1,
         each = (pages_end - page + splits - 1) / splits;
    page += split * each;
    pages_end = min(pages_end, page + each);
    for (; page < pages_end; page++) {
        global const uchar *keys = head_of(a, kv, table[page], kv_head),
                           *values = keys + a.keys_bytes;
        uint token = page * PAGE + lane;
        float score[QUERIES];
        barrier(CLK_LOCAL_MEM_FENCE); /* q is written, and the last page's weights are read */
        SCORE_PAGE(q, keys, n, lane, score);
        for (uint r = 0; r < QUERIES; r++)
            weights[r][lane] = r < rows ?
                                   masked_score(a, score[r], h, positions[r], sequence_end, token) :
                                   -INFINITY;
        barrier(CLK_LOCAL_MEM_FENCE);

        float top = -INFINITY, total = 0.0f, before = running_max;
        for (uint j = lane % ROW_LANES; j < PAGE; j += ROW_LANES)
            top = fmax(top, weights[row][j]);
        running_max = fmax(running_max, row_max(top, scratch, ROW_LANES));
        for (uint j = lane % ROW_LANES; j < PAGE; j += ROW_LANES) {
            float weight = weights[row][j] == -INFINITY ? 0.0f : exp(weights[row][j] - running_max);
            weights[row][j] = weight;
            total += weight;
        }
        float by = before == running_max ? 1.0f : exp(before - running_max);
        again[row] = by;
        sum = sum * by + row_sum(total, scratch, ROW_LANES);

        for (uint r = 0; r < QUERIES; r++)
            for (uint i = 0; i < HEAD_MAX / PAGE; i++)
                result[r][i] *= again[r];
        /* memory past the last token may hold NaN: a weight of zero is not enough */
        uint tokens = min((uint)PAGE, to - page * PAGE);
        for (uint i = 0; i * PAGE + lane < n; i++)
            for (uint j = 0; j < tokens; j++) {
                float value = value_at(values, n, j, i * PAGE + lane);
                for (uint r = 0; r < QUERIES; r++)
                    result[r][i] = fma(weights[r][j], value, result[r][i]);
            }
    }
    tops[row] = running_max;
    sums[row] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint r = 0; r < rows; r++) {
        if (splits > 1) {
            global float *part =
                partials + (((ulong)(first_token + r) * a.n_heads + h) * splits + split) * (n + 2);
            for (uint i = 0; i * PAGE + lane < n; i++)
                part[i * PAGE + lane] = result[r][i];
            if (lane == 0) {
                part[n] = tops[r];
                part[n + 1] = sums[r];
            }
        } else {
            float sink = a.flags & AK_OCL_ATTENTION_SINKS ? vectors[a.sinks + h] : -INFINITY,
                  top = fmax(tops[r], sink);
            float by = exp(tops[r] - top), total = sums[r] * by + exp(sink - top);
            global float *to_row = out + a.out_at + (ulong)(first_token + r) * a.out_stride + h * n;
            for (uint i = 0; i * PAGE + lane < n; i++)
                to_row[i * PAGE + lane] = result[r][i] * by / total *
                                          gate_factor(a, in, first_token + r, h, i * PAGE + lane);
        }
    }
}
#undef ROW_LANES
