/* Sum over a group of GROUP lanes; every lane gets it. */
float group_sum(float x, local float *scratch)
{
    uint lane = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[lane] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_n = GROUP / 2; half_n > 0; half_n /= 2) {
        if (lane < half_n)
            scratch[lane] += scratch[lane + half_n];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return scratch[0];
}

float sigmoid(float x)
{
    return 1.0f / (1.0f + exp(-x));
}
