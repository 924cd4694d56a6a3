/* Exchange of shards as activations: each rank quantizes its own elements, and sends three eighths
 * of the bytes that floats take up. The products read the same bits as after an
 * exchange of floats.
 *
 * Shards do not end where blocks do. A block that a border between ranks cuts is sent as floats, by
 * each rank its elements, and all ranks quantize it. Only the owner of a block has its floats, so
 * each rank also sends the residual block of its largest block: the row's dominant block, which is
 * known only when all have arrived, is one of these, or cut.
 *
 * A row of a shard, as it is sent: whole blocks | residual block | elements of cut blocks; each
 * padded to AK_LINE_BYTES. */
#include <string.h>

#include "base/mem.h"
#include "cpu/cpu.h"

/* How the exchange of a command is done; all ranks compute the same. */
struct layout {
    const struct ak_op_shard *shard;
    enum ak_cpu_act_format format;
    size_t elems, block_bytes, act_bytes; /* of a block, of a block, of a row */
    size_t residual_bytes;                /* 0: the products have no residual blocks */
};

/* What a rank has of a row. */
struct part {
    size_t begin, end;       /* elements */
    size_t first, n_blocks;  /* whole blocks */
    size_t n_before, n_left; /* elements of cut blocks, before and after these */
    /* where they are in a row as it is sent */
    size_t residual_at, cut_at, bytes;
};

static const struct ak_pack_weight *get_packed(const struct ak_cpu_prepared *p,
                                               const struct ak_command *linear)
{
    return &p->weights->packed[linear->weight];
}

static const struct ak_command *get_end(const struct ak_cpu_prepared *p)
{
    return p->table->commands + p->table->n_commands;
}

/* The linear commands right after c, which read its result. */
static bool reads_result(const struct ak_cpu_prepared *p, const struct ak_command *c,
                         const struct ak_command *linear)
{
    return linear < get_end(p) && linear->op == AK_OP_LINEAR && linear->in == c->out;
}

bool ak_cpu_can_gather_activations(const struct ak_cpu_prepared *p, const struct ak_command *c)
{
    const struct ak_command *linear = c + 1;
    if (c->op != AK_OP_ALL_GATHER || c->params.all_gather.at > 0 || c->params.all_gather.to > 0 ||
        p->cpu->relaxed || p->cpu->prefers_blas) /* these may mean another format on another rank */
        return false;
    for (; reads_result(p, c, linear); linear++) {
        const struct ak_pack_weight *packed = get_packed(p, linear);
        enum ak_cpu_act_format format = ak_cpu_type_act_format(packed->type);
        if (format == AK_CPU_ACT_F32 || packed->order || ak_cpu_n_terms(packed) > 1 ||
            format != ak_cpu_type_act_format(get_packed(p, c + 1)->type))
            return false;
    }
    return linear > c + 1 &&
           p->table->slots[c->out].last_use + 1 == (uint32_t)(linear - p->table->commands);
}

bool ak_cpu_gathers_activations(const struct ak_cpu_prepared *p, const struct ak_cpu_step *step)
{
    return step->gather && !p->batch->wants_inputs &&
           !ak_cpu_is_skinny(ak_cpu_rows(p, step->row_set));
}

static struct layout layout_of(const struct ak_cpu_prepared *p, const struct ak_command *c)
{
    struct layout l = { .shard = &c->params.all_gather.shard,
                        .format = ak_cpu_type_act_format(get_packed(p, c + 1)->type) };
    l.elems = ak_cpu_act_block_elems(l.format);
    l.block_bytes = ak_cpu_act_block_bytes(l.format);
    l.act_bytes = ak_cpu_act_bytes(l.format, l.shard->n);
    for (const struct ak_command *linear = c + 1; reads_result(p, c, linear); linear++)
        if (ak_cpu_wants_residual(get_packed(p, linear)))
            l.residual_bytes = ak_cpu_act_bytes(l.format, l.elems);
    return l;
}

static struct part part_of(const struct ak_cpu_prepared *p, const struct layout *l, uint32_t rank)
{
    struct part part = { .begin = ak_op_shard_begin(l->shard, p->spec->n_ranks, rank),
                         .end = ak_op_shard_begin(l->shard, p->spec->n_ranks, rank + 1) };
    part.first = (part.begin + l->elems - 1) / l->elems;
    size_t last = ak_max_size(part.end / l->elems, part.first);
    part.n_blocks = last - part.first;
    part.n_before = ak_min_size(part.first * l->elems, part.end) - part.begin;
    part.n_left = part.end > last * l->elems ? part.end - last * l->elems : 0;
    part.residual_at = ak_round_up(part.n_blocks * l->block_bytes, AK_LINE_BYTES);
    part.cut_at = part.residual_at + (part.n_blocks > 0 ? l->residual_bytes : 0);
    part.bytes =
        part.cut_at + ak_round_up((part.n_before + part.n_left) * sizeof(float), AK_LINE_BYTES);
    return part;
}

/* Bytes of a row of the shards of ranks before `rank`. */
static size_t bytes_before(const struct ak_cpu_prepared *p, const struct layout *l, uint32_t rank)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < rank; i++)
        bytes += part_of(p, l, i).bytes;
    return bytes;
}

size_t ak_cpu_shard_bytes(const struct ak_cpu_prepared *p, const struct ak_command *c, size_t rows)
{
    struct layout l = layout_of(p, c);
    return rows * bytes_before(p, &l, p->spec->n_ranks);
}

static float *get_row(const struct ak_cpu_prepared *p, const struct ak_command *c, size_t row)
{
    return ak_cpu_slot(p, c->out) + row * ak_cpu_stride(p, c->out);
}

/* ---- Sending ------------------------------------------------------------- */
/* x: the whole row, of which this rank has a part. */
static void quantize_row(const struct ak_cpu_kernels *kernels, const struct layout *l,
                         const struct part *part, float *x, uint8_t *activations, uint8_t *sent)
{
    size_t at = part->first * l->block_bytes, bytes = part->n_blocks * l->block_bytes,
           left = (part->first + part->n_blocks) * l->elems;
    if (part->n_blocks > 0) {
        ak_cpu_quantize_terms(kernels, l->format, x + part->first * l->elems,
                              part->n_blocks * l->elems, 1, sent);
        memcpy(activations + at, sent, bytes);
    }
    if (part->n_blocks > 0 && l->residual_bytes > 0) {
        uint32_t block =
            ak_cpu_largest_block(l->format, activations, part->first, part->first + part->n_blocks);
        if (block != AK_CPU_NO_BLOCK)
            ak_cpu_quantize_error(kernels, l->format, x, activations, block,
                                  sent + part->residual_at);
    }
    memcpy(sent + part->cut_at, x + part->begin, part->n_before * sizeof *x);
    memcpy(sent + part->cut_at + part->n_before * sizeof *x, x + left, part->n_left * sizeof *x);
}

void ak_cpu_quantize_shard(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                           unsigned thread)
{
    struct layout l = layout_of(p, step->gather);
    struct part part = part_of(p, &l, p->spec->rank);
    size_t rows = ak_cpu_rows(p, step->row_set), begin, end;
    uint8_t *sent = p->sent_shards + rows * bytes_before(p, &l, p->spec->rank);
    ak_chunk_range(rows, p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++)
        quantize_row(&p->cpu->kernels, &l, &part, get_row(p, step->gather, t),
                     p->activations[l.format] + t * l.act_bytes, sent + t * part.bytes);
}

struct ak_comm_rows ak_cpu_sent_shards(const struct ak_cpu_step *step, struct ak_cpu_prepared *p)
{
    struct layout l = layout_of(p, step->gather);
    struct ak_comm_rows shards = { .data = p->sent_shards, .n = 1, .begins = p->shard_begins };
    p->shard_begins[0] = 0;
    for (uint32_t rank = 0; rank < p->spec->n_ranks; rank++)
        p->shard_begins[rank + 1] =
            p->shard_begins[rank] + ak_cpu_rows(p, step->row_set) * part_of(p, &l, rank).bytes;
    return shards;
}

/* ---- Receiving ----------------------------------------------------------- */
/* Puts a rank's part of a row where products read it, and elements of cut blocks into the row. */
static void take_part(const struct layout *l, const struct part *part, const uint8_t *sent,
                      float *x, uint8_t *activations)
{
    size_t left = (part->first + part->n_blocks) * l->elems;
    memcpy(activations + part->first * l->block_bytes, sent, part->n_blocks * l->block_bytes);
    memcpy(x + part->begin, sent + part->cut_at, part->n_before * sizeof *x);
    memcpy(x + left, sent + part->cut_at + part->n_before * sizeof *x, part->n_left * sizeof *x);
}

static void quantize_cut_blocks(const struct ak_cpu_prepared *p, const struct layout *l, float *x,
                                uint8_t *activations)
{
    _Alignas(AK_LINE_BYTES) struct ak_cpu_act256 quantized;
    for (uint32_t rank = 1; rank < p->spec->n_ranks; rank++) {
        size_t begin = ak_op_shard_begin(l->shard, p->spec->n_ranks, rank),
               block = begin / l->elems;
        if (begin % l->elems == 0)
            continue;
        ak_cpu_quantize_terms(&p->cpu->kernels, l->format, x + block * l->elems, l->elems, 1,
                              (uint8_t *)&quantized);
        memcpy(activations + block * l->block_bytes, &quantized, l->block_bytes);
    }
}

/* The residual block of a row: as the owner of its dominant block sent it. */
static void find_residual(const struct ak_cpu_prepared *p, const struct layout *l, size_t rows,
                          size_t row, const float *x)
{
    const struct ak_cpu_residuals *r = &p->residuals[l->format];
    const uint8_t *activations = p->activations[l->format] + row * l->act_bytes,
                  *sent = p->sent_shards;
    uint8_t *out = r->unsorted + row * l->residual_bytes;
    uint32_t block = r->found[row] = ak_cpu_dominant_block(l->format, activations, l->shard->n);
    if (block == AK_CPU_NO_BLOCK)
        return;
    for (uint32_t rank = 0; rank < p->spec->n_ranks; rank++) {
        struct part part = part_of(p, l, rank);
        if (block >= part.first && block < part.first + part.n_blocks) {
            memcpy(out, sent + row * part.bytes + part.residual_at, l->residual_bytes);
            return;
        }
        sent += rows * part.bytes;
    }
    ak_cpu_quantize_error(&p->cpu->kernels, l->format, x, activations, block, out); /* it is cut */
}

void ak_cpu_prepare_shards(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                           unsigned thread)
{
    struct layout l = layout_of(p, step->gather);
    size_t rows = ak_cpu_rows(p, step->row_set), begin, end;
    const uint8_t *sent = p->sent_shards;
    uint8_t *activations = p->activations[l.format];
    ak_chunk_range(rows, p->n_threads, thread, &begin, &end);
    for (uint32_t rank = 0; rank < p->spec->n_ranks; rank++) {
        struct part part = part_of(p, &l, rank);
        for (size_t t = begin; t < end && rank != p->spec->rank; t++)
            take_part(&l, &part, sent + t * part.bytes, get_row(p, step->gather, t),
                      activations + t * l.act_bytes);
        sent += rows * part.bytes;
    }
    for (size_t t = begin; t < end; t++) {
        float *x = get_row(p, step->gather, t);
        quantize_cut_blocks(p, &l, x, activations + t * l.act_bytes);
        if (l.residual_bytes > 0)
            find_residual(p, &l, rows, t, x);
    }
    if (l.residual_bytes > 0)
        ak_cpu_sort_residuals(l.format, l.shard->n, begin, end, &p->residuals[l.format],
                              p->scratch[thread].block_counts);
}
