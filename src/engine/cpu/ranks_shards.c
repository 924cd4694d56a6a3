/* Exchange of shards as activations: each rank quantizes its own elements, and sends three eighths
 * of the bytes that floats take up. Products read the same bits as after an exchange of floats.
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
#include "engine/cpu/cpu.h"

/* How the exchange of a command is done; all ranks compute the same. */
struct layout {
    const struct ak_op_shard *shard;
    enum ak_cpu_act_format format;
    size_t elems, block_bytes, act_bytes; /* of a block, of a block, of a row */
    size_t residual_bytes;                /* 0: the products have no residual blocks */
};

static const struct ak_pack_weight *get_packed(const struct ak_cpu_prepared *p,
                                               const struct ak_command *linear)
{
    return &p->weights->packed[linear->weight];
}

/* Whether `linear` is a linear command of the table, and reads the result of c. */
static bool reads_result(const struct ak_cpu_prepared *p, const struct ak_command *c,
                         const struct ak_command *linear)
{
    return linear < p->table->commands + p->table->n_commands && linear->op == AK_OP_LINEAR &&
           linear->in == c->out;
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
    return step->gather && !p->pass.batch->wants_inputs;
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

/* `at` is for the caller to set. */
static struct ak_cpu_shard_part part_of_rank(const struct ak_cpu_prepared *p,
                                             const struct layout *l, uint32_t rank)
{
    struct ak_cpu_shard_part part = { .begin = ak_op_shard_begin(l->shard, p->spec->n_ranks, rank),
                                      .end =
                                          ak_op_shard_begin(l->shard, p->spec->n_ranks, rank + 1) };
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
        bytes += part_of_rank(p, l, i).bytes;
    return bytes;
}

size_t ak_cpu_shard_bytes(const struct ak_cpu_prepared *p, const struct ak_command *c, size_t rows)
{
    struct layout l = layout_of(p, c);
    return rows * bytes_before(p, &l, p->spec->n_ranks);
}

/* For the steps after this one. */
static void set_parts(struct ak_cpu_prepared *p, const struct layout *l)
{
    size_t at = 0;
    for (uint32_t rank = 0; rank < p->spec->n_ranks; rank++) {
        p->ranks.shard_parts[rank] = part_of_rank(p, l, rank);
        p->ranks.shard_parts[rank].at = at;
        at += p->ranks.shard_parts[rank].bytes;
    }
}

/* Where PREPARE has the rows in this pass. In skinny GEMM each thread has its own copy. */
static uint8_t *get_activations(const struct ak_cpu_prepared *p, const struct layout *l,
                                size_t rows, unsigned thread)
{
    return ak_cpu_is_skinny((uint32_t)rows) ? p->memory.scratch[thread].activations[l->format] :
                                              p->memory.activations[l->format];
}

/* ---- Sending ------------------------------------------------------------- */
/* x: the whole row, of which this rank has a part. */
static void quantize_row(const struct ak_cpu_kernels *kernels, const struct layout *l,
                         const struct ak_cpu_shard_part *part, float *x, uint8_t *activations,
                         uint8_t *sent)
{
    float *cut = (float *)(void *)(sent + part->cut_at);
    size_t last = part->first + part->n_blocks;
    memcpy(cut, x + part->begin, part->n_before * sizeof *cut);
    memcpy(cut + part->n_before, x + last * l->elems, part->n_left * sizeof *cut);
    if (part->n_blocks == 0)
        return;
    ak_cpu_quantize_terms(kernels, l->format, x + part->first * l->elems, part->n_blocks * l->elems,
                          1, sent);
    if (l->residual_bytes == 0)
        return;
    memcpy(activations + part->first * l->block_bytes, sent, part->n_blocks * l->block_bytes);
    uint32_t block = ak_cpu_largest_block(l->format, activations, part->first, last);
    if (block != AK_CPU_NO_BLOCK)
        ak_cpu_quantize_error(kernels, l->format, x + block * l->elems,
                              activations + block * l->block_bytes, sent + part->residual_at);
}

void ak_cpu_step_quantize_shard(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                                unsigned thread)
{
    if (!ak_cpu_gathers_activations(p, step))
        return;
    const struct ak_command *c = step->gather;
    struct layout l = layout_of(p, c);
    struct ak_cpu_shard_part part = part_of_rank(p, &l, p->spec->rank);
    size_t rows = ak_cpu_rows(p, step->row_set), begin, end;
    uint8_t *activations = get_activations(p, &l, rows, thread),
            *sent = p->ranks.sent_shards + rows * bytes_before(p, &l, p->spec->rank);
    if (thread == 0)
        set_parts(p, &l);
    ak_chunk_range(rows, p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++)
        quantize_row(&p->cpu->kernels, &l, &part,
                     ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out),
                     activations + t * l.act_bytes, sent + t * part.bytes);
}

struct ak_comm_rows ak_cpu_sent_shards(const struct ak_cpu_step *step, struct ak_cpu_prepared *p)
{
    size_t rows = ak_cpu_rows(p, step->row_set);
    p->ranks.shard_begins[0] = 0;
    for (uint32_t rank = 0; rank < p->spec->n_ranks; rank++)
        p->ranks.shard_begins[rank + 1] =
            p->ranks.shard_begins[rank] + rows * p->ranks.shard_parts[rank].bytes;
    return (struct ak_comm_rows){ .data = p->ranks.sent_shards,
                                  .n = 1,
                                  .begins = p->ranks.shard_begins };
}

/* ---- Receiving ----------------------------------------------------------- */
/* A row that all ranks have sent, of so many. */
struct sent_row {
    size_t row, rows;
};

/* A rank's part of it. */
static const uint8_t *get_part(const struct ak_cpu_prepared *p, struct sent_row sent, uint32_t rank)
{
    const struct ak_cpu_shard_part *part = &p->ranks.shard_parts[rank];
    return p->ranks.sent_shards + sent.rows * part->at + sent.row * part->bytes;
}

/* Copies what a run of elements from `begin` on has of block `block`. */
static void take_elements(const struct layout *l, size_t block, size_t begin, size_t n,
                          const float *from, float *x)
{
    size_t first = ak_max_size(begin, block * l->elems),
           end = ak_min_size(begin + n, (block + 1) * l->elems);
    if (first < end)
        memcpy(x + first - block * l->elems, from + first - begin, (end - first) * sizeof *x);
}

/* The floats of a block that is cut. */
static void take_cut_block(const struct ak_cpu_prepared *p, const struct layout *l,
                           struct sent_row sent, size_t block, float *x)
{
    for (uint32_t rank = 0; rank < p->spec->n_ranks; rank++) {
        const struct ak_cpu_shard_part *part = &p->ranks.shard_parts[rank];
        const float *cut = (const float *)(const void *)(get_part(p, sent, rank) + part->cut_at);
        take_elements(l, block, part->begin, part->n_before, cut, x);
        take_elements(l, block, part->end - part->n_left, part->n_left, cut + part->n_before, x);
    }
}

/* Puts whole blocks where the product reads them, and quantizes those that are cut. */
static void take_row(const struct ak_cpu_prepared *p, const struct layout *l, struct sent_row sent,
                     uint8_t *activations)
{
    _Alignas(AK_LINE_BYTES) struct ak_cpu_act256 quantized;
    float x[AK_TILE_K];
    for (uint32_t rank = 0; rank < p->spec->n_ranks; rank++) {
        const struct ak_cpu_shard_part *part = &p->ranks.shard_parts[rank];
        size_t block = part->begin / l->elems;
        memcpy(activations + part->first * l->block_bytes, get_part(p, sent, rank),
               part->n_blocks * l->block_bytes);
        if (part->begin % l->elems == 0)
            continue;
        take_cut_block(p, l, sent, block, x);
        ak_cpu_quantize_terms(&p->cpu->kernels, l->format, x, l->elems, 1, (uint8_t *)&quantized);
        memcpy(activations + block * l->block_bytes, &quantized, l->block_bytes);
    }
}

/* The residual block of a row: as the owner of its dominant block sent it. */
static void find_residual(const struct ak_cpu_prepared *p, const struct layout *l,
                          struct sent_row sent, const uint8_t *activations,
                          const struct ak_cpu_residuals *r)
{
    float x[AK_TILE_K];
    uint8_t *out = r->unsorted + sent.row * l->residual_bytes;
    uint32_t block = r->found[sent.row] =
        ak_cpu_dominant_block(l->format, activations, l->shard->n);
    if (block == AK_CPU_NO_BLOCK)
        return;
    for (uint32_t rank = 0; rank < p->spec->n_ranks; rank++) {
        const struct ak_cpu_shard_part *part = &p->ranks.shard_parts[rank];
        if (block >= part->first && block < part->first + part->n_blocks) {
            memcpy(out, get_part(p, sent, rank) + part->residual_at, l->residual_bytes);
            return;
        }
    }
    take_cut_block(p, l, sent, block, x);
    ak_cpu_quantize_error(&p->cpu->kernels, l->format, x, activations + block * l->block_bytes,
                          out);
}

void ak_cpu_prepare_shards(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                           unsigned thread)
{
    struct layout l = layout_of(p, step->gather);
    struct ak_cpu_scratch *scratch = &p->memory.scratch[thread];
    size_t rows = ak_cpu_rows(p, step->row_set), begin = 0, end = rows;
    bool is_skinny = ak_cpu_is_skinny((uint32_t)rows);
    const struct ak_cpu_residuals *r =
        is_skinny ? &scratch->residuals[l.format] : &p->memory.residuals[l.format];
    if (!is_skinny)
        ak_chunk_range(rows, p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        uint8_t *activations = get_activations(p, &l, rows, thread) + t * l.act_bytes;
        struct sent_row sent = { .row = t, .rows = rows };
        take_row(p, &l, sent, activations);
        if (l.residual_bytes > 0)
            find_residual(p, &l, sent, activations, r);
    }
    if (l.residual_bytes > 0)
        ak_cpu_sort_residuals(l.format, l.shard->n, begin, end, r, scratch->block_counts);
}
