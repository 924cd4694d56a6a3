/* Scores of one head of cross-attention, before the softmax, for those who ask for them. Compiled
 * after online_softmax.cl, whose QUERIES it has.
 *
 * One group per block of up to QUERIES tokens and page, or more pages if the block's sequence has
 * more than there are groups. Lanes are the tokens of a page. A group past the end passes the loop:
 * after a return before the barrier, PoCL 3.1 ignores `token < end`. */
kernel __attribute__((reqd_work_group_size(PAGE, 1, 1))) void
scores(struct ak_ocl_attention_args a, global const float *in, global float *out, global uchar *kv,
       global const int *pass, uint stride, uint h)
{
    local float q[QUERIES][HEAD_MAX];
    uint lane = get_local_id(0), n = a.head_dim, kv_head = h / (a.n_heads / a.n_kv_heads);
    global const int *block = pass + pass[a.blocks] + 2 * get_group_id(1);
    uint first_token = block[0], rows = block[1];
    uint end = pass[pass[a.ends] + first_token];
    global const int *table = pass + pass[pass[a.tables] + first_token];
    for (uint r = 0; r < QUERIES; r++)
        for (uint i = lane; i < n; i += PAGE)
            q[r][i] = r < rows ? in[a.in_at + (ulong)(first_token + r) * a.in_stride + a.q_at +
                                    h * a.q_step + i] *
                                     a.scale :
                                 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint page = get_group_id(0); page * PAGE < end; page += get_num_groups(0)) {
        global const uchar *keys = head_of(a, kv, table[page], kv_head);
        uint token = page * PAGE + lane;
        float score[QUERIES];
        SCORE_PAGE(q, keys, n, lane, score);
        if (token < end)
            for (uint r = 0; r < rows; r++)
                out[(ulong)(first_token + r) * stride + token] = score[r];
    }
}
