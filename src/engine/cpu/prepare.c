/* Prepares a table for running: computes the sizes of all buffers and places them in two
 * allocations: what stays between passes, and the workspace of one pass. */
#include "base/math.h"
#include "base/mem.h"
#include "base/refs.h"
#include "engine/cpu/cpu.h"

/* Buffers that hold nothing between passes except results. Tables whose passes alternate share
 * one. */
struct ak_cpu_workspace {
    struct ak_refs refs;
    uint8_t *memory;
    size_t bytes;
};

/* Places buffers in an allocation. Runs twice: with memory NULL to compute the size, then for
 * real. */
struct carver {
    uint8_t *memory;
    size_t used;
    bool overflow;
};

/* Both allocations: what stays, and the workspace. */
struct carvers {
    struct carver kept, pass;
};

static void *carve(struct carver *c, size_t n, size_t size)
{
    size_t bytes, end;
    void *p = c->memory ? c->memory + c->used : NULL;
    if (!ak_mul_size(n, size, &bytes) ||
        !ak_add_size(c->used, ak_round_up(bytes, AK_CACHE_LINE), &end))
        c->overflow = true;
    else
        c->used = end;
    return p;
}

/* Maximum buffer sizes over all weights. act_bytes: bytes per token with all terms. */
struct needs {
    size_t act_bytes[AK_CPU_ACT_COUNT];
    size_t k, ordered_row, panel_i8, weight_rows, blas;
    size_t slices_k, slices_rows; /* of an output matrix in slices; 0: none is */
    bool has_residual;            /* a residual term outside the logits too */
    bool has_residual_blocks[AK_CPU_ACT_TYPE_COUNT];
    bool uses_panel_cache;
};

/* Whether f32 panels are cached: for encoders with small weights only. They run many short texts,
 * for which unpacking would take much of a product's time. */
static bool uses_panel_cache(const struct ak_cpu *cpu, const struct ak_weights *w,
                             const struct ak_spec *spec)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < w->n_packed; i++) {
        const struct ak_pack_weight *packed = &w->packed[i];
        if (ak_cpu_select_act_format(cpu, packed, SIZE_MAX) != AK_CPU_ACT_PANEL_F32)
            return false;
        bytes += ak_cpu_panel_cache_rows(packed, packed->n_parts) *
                 ak_round_up(packed->cols, AK_LANES) * sizeof(float);
        if (bytes > AK_PANEL_CACHE_BYTES_MAX)
            return false;
    }
    return spec->descriptor.encoder;
}

static struct needs sum_needs(const struct ak_cpu *cpu, const struct ak_weights *w,
                              const struct ak_spec *spec)
{
    /* token counts at which the format may change */
    static const size_t counts[] = { 1, AK_SKINNY_MAX, AK_SKINNY_MAX + 1, SIZE_MAX };
    struct needs needs = { .k = spec->config.width,
                           .uses_panel_cache = uses_panel_cache(cpu, w, spec) };
    for (uint32_t i = 0; i < w->n_packed; i++) {
        const struct ak_pack_weight *packed = &w->packed[i];
        for (size_t j = 0; j < sizeof counts / sizeof *counts; j++) {
            enum ak_cpu_act_format format = ak_cpu_select_act_format(cpu, packed, counts[j]);
            needs.act_bytes[format] =
                ak_max_size(needs.act_bytes[format],
                            ak_cpu_n_terms(packed) * ak_cpu_act_bytes(format, packed->cols));
        }
        needs.k = ak_max_size(needs.k, packed->cols);
        needs.ordered_row = ak_max_size(needs.ordered_row, packed->order ? packed->cols : 0);
        needs.has_residual = needs.has_residual ||
                             (packed->linear != AK_OP_LINEAR_OUTPUT && ak_cpu_n_terms(packed) > 1);
        if (ak_cpu_wants_residual(packed))
            needs.has_residual_blocks[ak_cpu_type_act_format(packed->type)] = true;
        if (packed->layout == AK_CPU_LAYOUT_SLICES_1) {
            needs.slices_k = packed->cols;
            needs.slices_rows = packed->parts[0].rows;
        }
        if (ak_cpu_uses_blas(cpu, packed, SIZE_MAX))
            needs.blas = ak_max_size(needs.blas, ak_cpu_blas_rows(packed->cols) * packed->cols);
        if (ak_cpu_type_act_format(packed->type) != AK_CPU_ACT_F32)
            needs.panel_i8 = ak_max_size(needs.panel_i8, (size_t)AK_PANEL_I8_TILES_MAX *
                                                             ((packed->cols + 31) / 32) *
                                                             AK_PANEL_I8_BLOCK_BYTES_MAX);
        else
            needs.weight_rows = ak_max_size(
                needs.weight_rows, AK_PANEL_ROWS_MAX * ak_round_up(packed->cols, AK_LANES));
    }
    return needs;
}

/* Interleaved tokens are allocated in whole groups. */
static size_t token_capacity(int format, size_t tokens)
{
    switch (format) {
    case AK_CPU_ACT_PANEL_F32: return ak_round_up(tokens, AK_PANEL_TOKEN_STEP);
    case AK_CPU_ACT_PANEL_BF16: return ak_round_up(tokens, AK_PANEL_BF16_TOKEN_STEP);
    default: return tokens;
    }
}

static bool needs_page_f32(enum akunu_kv_type k_type, enum akunu_kv_type v_type)
{
    return k_type == AKUNU_KV_BF16 || (v_type != AKUNU_KV_F16 && v_type != AKUNU_KV_F32);
}

static void carve_residuals(struct carver *c, struct ak_cpu_residuals *residuals,
                            const struct needs *needs, size_t rows)
{
    for (enum ak_cpu_act_format format = 0; format < AK_CPU_ACT_TYPE_COUNT; format++) {
        size_t n = needs->has_residual_blocks[format] ? rows : 0,
               bytes = ak_cpu_act_bytes(format, ak_cpu_act_block_elems(format));
        struct ak_cpu_residuals r = { .unsorted = carve(c, n, bytes) };
        r.blocks = carve(c, n, bytes);
        r.found = carve(c, n, sizeof *r.found);
        r.list = carve(c, n, sizeof *r.list);
        residuals[format] = r;
    }
}

static void carve_thread(struct carvers *both, struct ak_cpu_scratch *s, const struct needs *needs,
                         const struct ak_cpu_prepared *p)
{
    struct carver *c = &both->pass;
    size_t head_dim = p->spec->config.head_dim;
    size_t max_rows = ak_max_size(p->max_rows[AK_OP_ROWS_LOGITS],
                                  needs->has_residual ? p->max_rows[AK_OP_ROWS_TOKENS] : 0);
    struct ak_cpu_scratch scratch = { 0 };
    for (int format = 0; format < AK_CPU_ACT_COUNT; format++)
        scratch.activations[format] =
            carve(c, token_capacity(format, AK_SKINNY_MAX), needs->act_bytes[format]);
    carve_residuals(c, scratch.residuals, needs, AK_SKINNY_MAX);
    scratch.block_counts = carve(c, needs->k / AK_BLOCK_K + 1, sizeof *scratch.block_counts);
    scratch.panel_i8 = carve(c, needs->panel_i8, 1);
    scratch.terms =
        carve(c,
              ak_max_size((size_t)AK_SKINNY_MAX * AK_TERM_TILES_MAX * AK_TILE_ROWS,
                          max_rows * AK_TERMS_MAX * AK_PANEL_I8_TILES_MAX * AK_TILE_ROWS),
              sizeof(float));
    scratch.joined =
        carve(c, AK_PANEL_I8_TILES_MAX,
              needs->slices_k ? ak_cpu_tile_row_bytes(AK_QUANT_Q8_0, needs->slices_k) : 0);
    scratch.best = carve(&both->kept, needs->slices_k ? 1 : 0, sizeof *scratch.best);
    uint32_t *cursors = carve(&both->kept, needs->slices_k ? p->n_threads : 0, sizeof *cursors);
    if (needs->slices_k && scratch.best)
        scratch.best->cursors = cursors;
    scratch.row = carve(c, ak_round_up(ak_max_size(needs->k, head_dim), AK_LANES), sizeof(float));
    scratch.ordered_row = carve(c, needs->ordered_row, sizeof(float));
    scratch.weight_rows = carve(c, needs->weight_rows, sizeof(float));
    scratch.blas = carve(c, needs->blas, sizeof(float));
    scratch.q = carve(c, (size_t)AK_ATTN_ROWS_MAX * head_dim, sizeof(float));
    scratch.out = carve(c, (size_t)AK_ATTN_ROWS_MAX * head_dim, sizeof(float));
    scratch.page_out = carve(c, (size_t)AK_ATTN_ROWS_MAX * head_dim, sizeof(float));
    scratch.q_terms = carve(c, AK_ATTN_ROWS_MAX, p->kv.query_bytes);
    scratch.page_f32 = carve(
        c,
        needs_page_f32(p->kv.shape.k_type, p->kv.shape.v_type) ? AK_KV_PAGE_TOKENS * head_dim : 0,
        sizeof(float));
    scratch.weights = carve(c, (size_t)AK_ATTN_ROWS_MAX * AK_KV_PAGE_TOKENS, sizeof(float));
    if (s)
        *s = scratch;
}

/* Panel pages are first touched by the thread that unpacks them, so that they are NUMA-local. */
static void carve_panel_caches(struct carver *c, struct ak_cpu_prepared *p)
{
    p->memory.panel_cache = carve(c, p->weights->n_packed, sizeof *p->memory.panel_cache);
    for (uint32_t i = 0; i < p->weights->n_packed; i++) {
        const struct ak_pack_weight *packed = &p->weights->packed[i];
        size_t rows = ak_cpu_panel_cache_rows(packed, packed->n_parts);
        struct ak_panel_cache panel_cache = {
            .panels = carve(c, rows * ak_round_up(packed->cols, AK_LANES), sizeof(float))
        };
        panel_cache.is_unpacked = carve(c, rows / AK_TILE_ROWS, sizeof *panel_cache.is_unpacked);
        if (p->memory.panel_cache)
            p->memory.panel_cache[i] = panel_cache;
    }
}

/* Elements of all rows that a SEND command sends. */
static size_t count_sent_elems(const struct ak_cpu_prepared *p)
{
    size_t width = 0;
    for (uint32_t i = 0; i < p->table->n_commands; i++)
        if (p->table->commands[i].op == AK_OP_SEND)
            width = p->table->slots[p->table->commands[i].in].width;
    return width * p->max_rows[AK_OP_ROWS_TOKENS];
}

/* Bytes of the lists that are exchanged in place of logits: at most half of these. */
static size_t count_best_bytes(const struct ak_cpu_prepared *p)
{
    size_t max = 0;
    for (uint32_t i = 0; i < p->table->n_commands; i++) {
        const struct ak_command *c = &p->table->commands[i];
        if (c->op == AK_OP_COLLECT)
            max = ak_max_size(max, c->params.collect.shard.n * sizeof(float) / 2);
    }
    return max * p->max_rows[AK_OP_ROWS_LOGITS];
}

/* Bytes of the largest shards that are exchanged as activations. */
static size_t count_shard_bytes(const struct ak_cpu_prepared *p)
{
    size_t max = 0;
    for (uint32_t i = 0; i < p->table->n_commands; i++) {
        const struct ak_command *c = &p->table->commands[i];
        if (ak_cpu_can_gather_activations(p, c))
            max = ak_max_size(
                max, ak_cpu_shard_bytes(p, c, p->max_rows[p->table->slots[c->out].row_set]));
    }
    return max;
}

static void carve_arena(struct carver *c, struct ak_cpu_prepared *p, enum ak_op_row_set row_set)
{
    p->memory.arena[row_set] = carve(
        c, (size_t)p->memory.arena_rows[row_set] * p->table->arena_width[row_set], sizeof(float));
}

/* The workspace after the rows of tokens and the threads' buffers, which every pass uses. Of the
 * following, most passes touch little. */
static void carve_pass(struct carver *c, struct ak_cpu_prepared *p, const struct needs *needs)
{
    size_t tokens = p->max_rows[AK_OP_ROWS_TOKENS], logits = p->max_rows[AK_OP_ROWS_LOGITS],
           experts = p->max_rows[AK_OP_ROWS_EXPERTS];
    carve_arena(c, p, AK_OP_ROWS_EXPERTS);
    size_t angles = (size_t)p->spec->n_rotations * (p->spec->config.rope_dims / 2);
    p->pass.cos = carve(c, tokens * angles, sizeof(float));
    p->pass.sin = carve(c, tokens * angles, sizeof(float));
    for (int format = AK_CPU_ACT_COUNT - 1; format >= 0; format--)
        p->memory.activations[format] =
            carve(c, token_capacity(format, ak_max_size(ak_max_size(tokens, logits), experts)),
                  needs->act_bytes[format]);
    carve_residuals(c, p->memory.residuals, needs, ak_max_size(tokens, logits));
    /* pages of one token are split only if KV heads do not divide evenly among threads */
    bool even = p->spec->config.n_kv_heads % p->n_threads == 0;
    p->pass.partials = carve(c, even ? 0 : (size_t)p->spec->config.n_heads * p->kv.shape.n_pages,
                             p->pass.partial_stride * sizeof(float));
    p->ranks.best = carve(c, count_best_bytes(p), 1);
    p->ranks.sent_shards = carve(c, count_shard_bytes(p), 1);
    carve_arena(c, p, AK_OP_ROWS_LOGITS);
}

static void carve_all(struct carvers *both, struct ak_cpu_prepared *p, const struct needs *needs)
{
    struct carver *c = &both->kept;
    size_t tokens = p->max_rows[AK_OP_ROWS_TOKENS], logits = p->max_rows[AK_OP_ROWS_LOGITS],
           experts = p->max_rows[AK_OP_ROWS_EXPERTS];
    carve_arena(&both->pass, p, AK_OP_ROWS_TOKENS);
    size_t distances = p->spec->descriptor.alibi ? 2 * (size_t)p->context - 1 : 0;
    p->memory.distances = carve(c, distances, sizeof(float));
    p->memory.slopes = carve(c, distances ? p->spec->config.n_heads : 0, sizeof(float));
    p->memory.zeros = carve(c, p->spec->config.width, sizeof(float));
    p->pass.routes.row_of = carve(c, experts, sizeof *p->pass.routes.row_of);
    p->pass.routes.token_of = carve(c, experts, sizeof *p->pass.routes.token_of);
    p->pass.routes.begin =
        carve(c, experts ? p->spec->config.n_experts + 1u : 0, sizeof *p->pass.routes.begin);
    p->pass.routes.gates = carve(c, experts ? tokens : 0, sizeof *p->pass.routes.gates);
    if (needs->uses_panel_cache)
        carve_panel_caches(c, p);
    p->pass.blocks = carve(c, tokens, sizeof *p->pass.blocks);
    p->pass.cross_blocks =
        carve(c, p->spec->config.n_encoder_layers ? tokens : 0, sizeof *p->pass.cross_blocks);
    p->pass.output.n_tiles = (uint32_t)((needs->slices_rows + AK_TILE_ROWS - 1) / AK_TILE_ROWS);
    p->pass.output.tile_bounds =
        carve(c, p->pass.output.n_tiles, AK_BEST_ROWS_MAX * sizeof *p->pass.output.tile_bounds);
    p->pass.sampled = carve(c, logits, sizeof *p->pass.sampled);
    p->ranks.half_logit_rows =
        carve(c, p->ranks.comm ? logits : 0, sizeof *p->ranks.half_logit_rows);
    p->ranks.sent = carve(c, count_sent_elems(p), sizeof *p->ranks.sent);
    p->ranks.shard_begins = carve(c, p->spec->n_ranks + (size_t)1, sizeof *p->ranks.shard_begins);
    p->ranks.shard_parts = carve(c, p->spec->n_ranks, sizeof *p->ranks.shard_parts);
    p->pass.candidates = carve(c, logits * p->n_threads, sizeof *p->pass.candidates);
    p->pass.candidate_values = carve(c, logits * p->n_threads, sizeof *p->pass.candidate_values);
    p->steps = carve(c, (size_t)p->table->n_commands * AK_CPU_STEPS_PER_COMMAND, sizeof *p->steps);
    p->memory.scratch = carve(c, p->n_threads, sizeof *p->memory.scratch);
    p->pass.steal_states = carve(c, p->n_threads, sizeof *p->pass.steal_states);
    for (unsigned i = 0; i < p->n_threads; i++)
        carve_thread(both, p->memory.scratch ? &p->memory.scratch[i] : NULL, needs, p);
    carve_pass(&both->pass, p, needs);
}

static void drop_workspace(struct ak_cpu_workspace *w)
{
    if (!w || !ak_refs_drop(&w->refs))
        return;
    ak_pages_free(w->memory, w->bytes);
    ak_free(w);
}

/* The workspace of `lender`, if it is large enough, or a new one. */
static ak_status get_workspace(const struct ak_cpu_prepared *lender, size_t bytes,
                               struct ak_cpu_workspace **out, struct ak_error *error)
{
    if (lender && lender->memory.workspace->bytes >= bytes) {
        *out = lender->memory.workspace;
        ak_refs_take(&lender->memory.workspace->refs);
        return AKUNU_OK;
    }
    struct ak_cpu_workspace *w = ak_alloc(1, sizeof *w);
    if (!w || !(w->memory = ak_pages_alloc(bytes))) {
        ak_free(w);
        return ak_fail_memory(error, "the activations of a session", bytes);
    }
    w->bytes = bytes;
    *out = w;
    return AKUNU_OK;
}

/* Computes the sizes, allocates and places all buffers. */
static ak_status place_buffers(struct ak_cpu_prepared *p, const struct needs *needs,
                               const struct ak_cpu_prepared *lender, struct ak_error *error)
{
    struct carvers both = { 0 };
    carve_all(&both, p, needs);
    if (both.kept.overflow || both.pass.overflow)
        return ak_fail_memory(error, "the activations of a session", 0);
    AK_TRY(get_workspace(lender, both.pass.used, &p->memory.workspace, error));
    p->memory.kept = ak_pages_alloc(both.kept.used);
    if (!p->memory.kept)
        return ak_fail_memory(error, "the buffers of a session", both.kept.used);
    p->memory.kept_bytes = both.kept.used;
    bool is_lent = lender && p->memory.workspace == lender->memory.workspace;
    p->memory.bytes = both.kept.used + (is_lent ? 0 : both.pass.used);
    both = (struct carvers){ .kept.memory = p->memory.kept,
                             .pass.memory = p->memory.workspace->memory };
    carve_all(&both, p, needs);
    return AKUNU_OK;
}

/* ALiBi slopes and distances. With n heads, n a power of two, head h has the slope 2^(−8(h + 1)/n).
 * Heads beyond the largest such n have every second slope of 2n heads. */
static void fill_alibi(struct ak_cpu_prepared *p)
{
    const struct ak_spec *whole = ak_spec_is_shared(p->spec) ? p->spec->whole : p->spec;
    uint32_t n_heads = whole->config.n_heads, n = 1;
    while (n <= n_heads / 2)
        n *= 2;
    for (uint32_t i = 0; i < p->spec->config.n_heads; i++) {
        uint32_t h = p->spec->first_head + i;
        double power =
            h < n ? (double)(h + 1) / (double)n : (double)(2 * (h - n) + 1) / (2.0 * (double)n);
        p->memory.slopes[i] = (float)ak_pow(2.0, -8.0 * power);
    }
    for (uint32_t i = 0; i < 2 * p->context - 1; i++)
        p->memory.distances[i] =
            i < p->context ? (float)(p->context - 1 - i) : (float)(i - (p->context - 1));
}

/* Maximum rows that one thread gets of n, in multiples of `unit`. */
static uint32_t max_thread_rows(uint32_t n, uint32_t unit, unsigned n_threads)
{
    uint32_t units = (n + unit - 1) / unit;
    return (units + n_threads - 1) / n_threads * unit;
}

/* Rows per unit: those of an f32 panel if all weights use them, else those of an int8 panel. F32
 * panels are larger, so whole ones may give one thread more rows; up to a sixteenth more is worth
 * it. */
static uint32_t gemm_unit(const struct ak_cpu *cpu, const struct ak_weights *w, unsigned n_threads)
{
    const uint32_t panel_i8_rows = AK_TILE_ROWS * AK_PANEL_I8_TILES_MAX;
    for (uint32_t i = 0; i < w->n_packed; i++) {
        if (ak_cpu_select_act_format(cpu, &w->packed[i], SIZE_MAX) != AK_CPU_ACT_PANEL_F32)
            return panel_i8_rows;
        for (uint32_t j = 0; j < w->packed[i].n_parts; j++) {
            uint32_t rows = w->packed[i].parts[j].rows;
            if (max_thread_rows(rows, AK_PANEL_ROWS_MAX, n_threads) >
                max_thread_rows(rows, panel_i8_rows, n_threads) / 16 * 17)
                return panel_i8_rows;
        }
    }
    return AK_PANEL_ROWS_MAX;
}

/* The shared pool, or a new one. The caller frees *out, also after a failure. */
static ak_status get_pool(const struct ak_backend_table_options *options, struct ak_pool **out,
                          struct ak_error *error)
{
    *out = options->pool ? ak_pool_ref(options->pool) : NULL;
    if (*out)
        return AKUNU_OK;
    AK_TRY(ak_pool_create(options->n_threads, out, error));
    if (options->cpus)
        return ak_pool_pin(*out, options->cpus, error);
    ak_pool_pin_numa(*out);
    return AKUNU_OK;
}

static ak_status cpu_prepare(struct ak_backend *b, const struct ak_table *table,
                             const struct ak_weights *weights, const struct ak_spec *spec,
                             const struct ak_backend_table_options *options, void *kv,
                             struct ak_cpu_prepared **out, struct ak_error *error)
{
    struct ak_cpu_prepared *p = ak_alloc(1, sizeof *p);
    ak_status status = AKUNU_OK;
    struct needs needs = sum_needs((const struct ak_cpu *)b, weights, spec);
    if (!p)
        return ak_fail_memory(error, "a session", sizeof *p);
    p->cpu = (struct ak_cpu *)b;
    p->table = table;
    p->weights = weights;
    p->spec = spec;
    p->ranks.comm = options->comm;
    p->n_threads = options->n_threads;
    p->context = options->context;
    p->max_rows[AK_OP_ROWS_TOKENS] = options->max_tokens;
    p->max_rows[AK_OP_ROWS_LOGITS] = options->max_logits;
    /* experts are in use, and this number is validated */
    if (table->arena_width[AK_OP_ROWS_EXPERTS] > 0)
        p->max_rows[AK_OP_ROWS_EXPERTS] = options->max_tokens * spec->config.n_experts_used;
    for (int i = 0; i < AK_OP_ROWS_COUNT; i++)
        p->memory.arena_rows[i] = ak_cpu_is_skinny(p->max_rows[i]) ?
                                      p->max_rows[i] :
                                      (uint32_t)ak_round_up(p->max_rows[i], AK_PANEL_TOKEN_STEP);
    p->unit = gemm_unit(p->cpu, weights, p->n_threads);
    p->kv.pages = kv;
    p->kv.shape = options->kv;
    p->kv.key_group_bytes = ak_kv_group_bytes(&options->kv);
    p->kv.keys_bytes = ak_kv_k_bytes(&options->kv);
    p->kv.head_bytes = p->kv.keys_bytes + ak_kv_v_bytes(&options->kv);
    p->kv.value_bytes = ak_kv_v_bytes(&options->kv) / AK_KV_PAGE_TOKENS;
    if (ak_cpu_is_tiled(ak_kv_stored_type(options->kv.k_type)))
        p->kv.query_bytes = AK_TERMS_MAX * ak_cpu_act_bytes(AK_CPU_ACT_Q8_32, options->kv.head_dim);
    p->pass.partial_stride = ak_round_up(options->kv.head_dim + 2, AK_LANES / 2);

    ak_table_rope_frequencies(spec, options->context, p->memory.frequencies);
    status = place_buffers(p, &needs, (const struct ak_cpu_prepared *)options->lender, error);
    if (status != AKUNU_OK)
        goto fail;
    if (spec->descriptor.alibi)
        fill_alibi(p);
    ak_cpu_plan_steps(p);
    status = get_pool(options, &p->pool, error);
    if (status != AKUNU_OK)
        goto fail;
    *out = p;
    return AKUNU_OK;
fail:
    ak_cpu_release((struct ak_backend_table *)p);
    return status;
}

/* Whether passes can run in two halves, as two passes would, while shards are exchanged: no token
 * needs a later one, and every op takes up where the pass before has ended. */
static bool can_halve(const struct ak_cpu_prepared *p)
{
    if (!p->ranks.comm || !ak_spec_has_shards(p->spec) ||
        p->max_rows[AK_OP_ROWS_TOKENS] < AK_HALVES_TOKENS_MIN)
        return false;
    for (uint32_t i = 0; i < p->table->n_commands; i++) {
        const struct ak_command *c = &p->table->commands[i];
        if (ak_op_mixes_rows(c->op) ||
            (c->op == AK_OP_ATTENTION && c->params.attention.bidirectional))
            return false;
    }
    return true;
}

/* The first half has no logits. */
static ak_status prepare_first_half(struct ak_cpu_prepared *p,
                                    const struct ak_backend_table_options *options,
                                    struct ak_error *error)
{
    struct ak_backend_table_options half = *options;
    const struct ak_cpu_prepared *lender = (const struct ak_cpu_prepared *)options->lender;
    half.max_tokens = (uint32_t)ak_round_up(options->max_tokens / 2, AK_PANEL_TOKEN_STEP);
    half.max_logits = 1;
    half.pool = p->pool;
    half.lender = lender ? (struct ak_backend_table *)lender->ranks.first_half : NULL;
    AK_TRY(cpu_prepare(&p->cpu->base, p->table, p->weights, p->spec, &half, p->kv.pages,
                       &p->ranks.first_half, error));
    p->memory.bytes += p->ranks.first_half->memory.bytes;
    return AKUNU_OK;
}

ak_status ak_cpu_prepare(struct ak_backend *b, const struct ak_table *table,
                         const struct ak_weights *weights, const struct ak_spec *spec,
                         const struct ak_backend_table_options *options, void *kv,
                         struct ak_backend_table **out, struct ak_error *error)
{
    struct ak_cpu_prepared *p;
    AK_TRY(cpu_prepare(b, table, weights, spec, options, kv, &p, error));
    ak_status status = can_halve(p) ? prepare_first_half(p, options, error) : AKUNU_OK;
    if (status == AKUNU_OK)
        *out = (struct ak_backend_table *)p;
    else
        ak_cpu_release((struct ak_backend_table *)p);
    return status;
}

void ak_cpu_release(struct ak_backend_table *prepared)
{
    struct ak_cpu_prepared *p = (struct ak_cpu_prepared *)prepared;
    if (!p)
        return;
    ak_cpu_release((struct ak_backend_table *)p->ranks.first_half);
    for (enum ak_comm_lane i = 0; p->ranks.comm && i < AK_COMM_LANES; i++)
        (void)ak_comm_finish(p->ranks.comm, i, NULL); /* it sends from the table's memory */
    ak_pool_free(p->pool);
    ak_cpu_free_times(p);
    ak_pages_free(p->memory.kept, p->memory.kept_bytes);
    drop_workspace(p->memory.workspace);
    ak_free(p);
}
