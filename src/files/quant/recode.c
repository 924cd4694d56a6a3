/* Recoding (recode.h). Codebooks of vectors become indices of single numbers, with their signs: of
 * eight numbers and a scale per 16 elements (V3), or of sixteen and a scale per 32 (V4). Numbers
 * without a codebook become two bits each (V2). */
#include "files/quant/recode.h"

#include "files/quant/indices.h"

static void write_v3(const struct ak_quant_indices *in, const struct ak_quant_table *table,
                     uint8_t *out)
{
    struct ak_quant_block_v3 b = { .d = { in->d[0], in->d[1] } };
    memcpy(b.table, table, sizeof b.table);
    for (size_t j = 0; j < 16; j++)
        b.scales[j / 8 * 4 + j % 4] |= (uint8_t)(in->scales[j] << j / 4 % 2 * 4);
    for (size_t j = 0; j < AK_QUANT_SUPER_BLOCK; j++) {
        b.low[j / 128 * 32 + j % 32] |= (uint8_t)((in->q[j] & 3u) << j / 32 % 4 * 2);
        b.high[j % 32] |= (uint8_t)((in->q[j] >> 2 & 1u) << j / 32);
    }
    memcpy(out, &b, sizeof b);
}

static void write_v4(const struct ak_quant_indices *in, const struct ak_quant_table *table,
                     uint8_t *out)
{
    struct ak_quant_block_v4 b = { .d = { in->d[0], in->d[1] } };
    memcpy(b.table, table, sizeof b.table);
    for (size_t s = 0; s < 8; s++) {
        b.scales[s % 4] |= (uint8_t)(in->scales[2 * s] << s / 4 * 4);
        for (size_t j = 0; j < 16; j++)
            b.q[s * 16 + j] = (uint8_t)(in->q[s * 32 + j] | in->q[s * 32 + 16 + j] << 4);
    }
    memcpy(out, &b, sizeof b);
}

/* n elements, with one d for all. */
static void write_v2(const struct ak_quant_indices *in, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < n; i += 32, out += sizeof(struct ak_quant_block_v2)) {
        struct ak_quant_block_v2 b = { .d = { in->d[0], in->d[1] } };
        for (size_t j = 0; j < 32; j++)
            b.q[j / 4 % 2 * 4 + j % 4] |= (uint8_t)(in->q[i + j] << j / 8 * 2);
        memcpy(out, &b, sizeof b);
    }
}

static const struct recoding {
    ak_quant_read_fn *read; /* NULL: not recoded */
    enum ak_quant_type to;
    const struct ak_quant_table *table; /* of V3, V4 */
} recodings[AK_QUANT_COUNT] = {
    [AK_QUANT_IQ1_S] = { ak_quant_read_iq1_s, AK_QUANT_V3, &ak_quant_iq1_table },
    [AK_QUANT_IQ1_M] = { ak_quant_read_iq1_m, AK_QUANT_V3, &ak_quant_iq1_table },
    [AK_QUANT_IQ2_XXS] = { ak_quant_read_iq2_xxs, AK_QUANT_V3, &ak_quant_iq2_table },
    [AK_QUANT_IQ2_XS] = { ak_quant_read_iq2_xs, AK_QUANT_V3, &ak_quant_iq2_table },
    [AK_QUANT_IQ2_S] = { ak_quant_read_iq2_s, AK_QUANT_V3, &ak_quant_iq2_table },
    [AK_QUANT_IQ3_XXS] = { ak_quant_read_iq3_xxs, AK_QUANT_V4, &ak_quant_iq3_xxs_table },
    [AK_QUANT_IQ3_S] = { ak_quant_read_iq3_s, AK_QUANT_V4, &ak_quant_iq3_s_table },
    [AK_QUANT_TQ1_0] = { ak_quant_read_tq1_0, AK_QUANT_V2, NULL },
    [AK_QUANT_TQ2_0] = { ak_quant_read_tq2_0, AK_QUANT_V2, NULL },
    [AK_QUANT_Q1_0] = { ak_quant_read_q1_0, AK_QUANT_V2, NULL },
    [AK_QUANT_Q2_0] = { ak_quant_read_q2_0, AK_QUANT_V2, NULL },
};

enum ak_quant_type ak_quant_recoded_type(enum ak_quant_type type)
{
    return type < AK_QUANT_COUNT && recodings[type].read ? recodings[type].to : type;
}

void ak_quant_recode(enum ak_quant_type type, const void *restrict blocks, void *restrict out,
                     size_t n)
{
    const struct recoding *recoding = &recodings[type];
    const struct ak_quant_info *from = ak_quant_info(type), *to = ak_quant_info(recoding->to);
    const uint8_t *in = blocks;
    uint8_t *at = out;
    struct ak_quant_indices indices;
    for (size_t i = 0; i < n; i += from->block_elems, in += from->block_bytes) {
        recoding->read(in, &indices);
        switch (recoding->to) {
        case AK_QUANT_V2: write_v2(&indices, from->block_elems, at); break;
        case AK_QUANT_V3: write_v3(&indices, recoding->table, at); break;
        default: write_v4(&indices, recoding->table, at); break;
        }
        at += from->block_elems / to->block_elems * to->block_bytes;
    }
}
