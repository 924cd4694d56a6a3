/* Reads n vectors of 16 bytes, a part per group. Stores nothing: the host fills the memory with
 * zeros, so the sum is never 1. */
kernel void probe_read(global const uint4 *x, ulong n, global uint *out)
{
    ulong each = (n + get_num_groups(0) - 1) / get_num_groups(0), first = get_group_id(0) * each,
          end = min(first + each, n);
    uint4 sum = (uint4)(0);
    for (ulong i = first + get_local_id(0); i < end; i += get_local_size(0))
        sum += x[i];
    if (sum.x + sum.y + sum.z + sum.w == 1)
        *out = 1;
}
