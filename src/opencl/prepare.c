/* A table as launches: kernels whose arguments are bound for good. */
#include <string.h>

#include "base/mem.h"
#include "opencl/opencl.h"

/* Gives a kernel its arguments one after another; the first failure stays. */
struct binder {
    const struct ak_cl *cl;
    cl_kernel kernel;
    cl_uint n;
    cl_int code;
};

static void bind(struct binder *b, const void *value, size_t bytes)
{
    cl_int code = b->cl->clSetKernelArg(b->kernel, b->n++, bytes, value);
    b->code = b->code ? b->code : code;
}

#define BIND(b, value) bind(b, &(value), sizeof(value))

static ak_status kernel_of(const struct ak_ocl_prepared *p, cl_program program, const char *name, struct binder *b, struct ak_error *error)
{
    cl_int code;
    *b = (struct binder){ .cl = p->o->cl };
    b->kernel = p->o->cl->clCreateKernel(program, name, &code);
    if (code != CL_SUCCESS)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s has no kernel %s: %s", p->o->device.name, name, ak_cl_error_name(code));
    return AKUNU_OK;
}

/* The launch takes the kernel, also where binding failed. */
static ak_status bound(struct ak_ocl_launch *launch, const struct binder *b, const struct ak_ocl_prepared *p, struct ak_error *error)
{
    launch->kernels[launch->n_kernels++] = b->kernel;
    if (b->code == CL_SUCCESS)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s does not take the arguments of %s: %s", p->o->device.name,
                   ak_op_name(launch->command->op), ak_cl_error_name(b->code));
}

/* First element of a slot in its arena. */
static uint64_t at_of(const struct ak_ocl_prepared *p, uint32_t slot)
{
    const struct ak_slot *s = &p->table->slots[slot];
    return (uint64_t)s->place * p->max_rows[s->domain];
}

static const cl_mem *arena_of(const struct ak_ocl_prepared *p, uint32_t slot)
{
    return &p->arena[p->table->slots[slot].domain];
}

static uint32_t vector_of(const struct ak_ocl_prepared *p, uint32_t slot)
{
    return slot == AK_NONE ? 0 : (uint32_t)p->o->vector_at[slot];
}

static struct rows rows_of(const struct ak_ocl_prepared *p, const struct ak_command *c, uint32_t n)
{
    return (struct rows){ .in_at = at_of(p, c->in == AK_NONE ? c->out : c->in), .out_at = at_of(p, c->out),
                          .in_stride = p->table->slots[c->in == AK_NONE ? c->out : c->in].width, .out_stride = p->table->slots[c->out].width,
                          .n = n, .vector = vector_of(p, c->vector), .vector2 = vector_of(p, c->vector2) };
}

/* ---- Products --------------------------------------------------------------------------------- */

static ak_status add_linear(struct ak_ocl_prepared *p, struct ak_ocl_launch *launch, struct ak_error *error)
{
    static const char *const names[AK_OCL_VARIANTS] = { "gemv1", "gemv2", "gemv4", "gemv8", "gemm" };
    const struct ak_command *c = launch->command;
    const struct ak_packed *packed = &p->weights->packed[c->weight];
    const struct ak_ocl_weight *weight = &p->o->packed[c->weight];
    uint64_t row_bytes = 0;
    cl_program program;
    struct binder b;
    (void)ak_type_row_bytes(packed->type, packed->cols, &row_bytes);
    struct linear l = { .expert_bytes = weight->expert_bytes, .x_at = at_of(p, c->in), .y_at = at_of(p, c->out) + c->params.linear.at,
                        .group_bytes = AK_OCL_TILE_ROWS * row_bytes, .tile_bytes = ak_ocl_is_tiled(packed->type) ?
                        (uint32_t)ak_ocl_tile_bytes(packed->type, AK_OCL_TILE_BLOCKS) : 0,
                        .row_elems = (uint32_t)ak_round_up(packed->cols, AK_OCL_BLOCK_K), .rows = weight->rows, .k = packed->cols,
                        .x_stride = p->table->slots[c->in].width, .y_stride = p->table->slots[c->out].width,
                        .bias_at = vector_of(p, c->vector), .has_bias = c->vector != AK_NONE,
                        .expert_width = ak_weights_width(p->weights, packed->linear, packed->layer),
                        .domain = (uint32_t)p->table->slots[c->out].domain };
    if (packed->cols % 4 != 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "a matrix has rows of %u elements: the opencl backend takes multiples of 4", (unsigned)packed->cols);
    if (packed->order)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "the opencl backend takes no weights whose columns are sorted yet (act-order)");
    launch->experts = packed->n_experts > 0;
    launch->columns = weight->rows;
    AK_TRY(ak_ocl_products(p->o, packed->type, launch->experts, &program, error));
    for (int i = 0; i < AK_OCL_VARIANTS; i++) {
        AK_TRY(kernel_of(p, program, names[i], &b, error));
        BIND(&b, weight->memory);
        BIND(&b, l);
        BIND(&b, *arena_of(p, c->in));
        BIND(&b, *arena_of(p, c->out));
        BIND(&b, p->o->vectors);
        BIND(&b, p->pass);
        AK_TRY(bound(launch, &b, p, error));
    }
    return AKUNU_OK;
}

/* ---- Attention -------------------------------------------------------------------------------- */

static struct attention attention_of(const struct ak_ocl_prepared *p, const struct ak_command *c)
{
    const struct rows rows = rows_of(p, c, 0);
    return (struct attention){ .in_at = rows.in_at, .out_at = rows.out_at, .in_stride = rows.in_stride, .out_stride = rows.out_stride,
                               .n_layers = p->n_kv_layers };
}

static ak_status add_qkv(struct ak_ocl_prepared *p, cl_program program, struct ak_ocl_launch *launch, struct ak_error *error)
{
    const struct ak_command *c = launch->command;
    const struct ak_qkv_params *q = &c->params.qkv;
    struct attention a = attention_of(p, c);
    struct binder b;
    a.q_at = q->q_at, a.q_step = q->q_step, a.k_at = q->k_at, a.v_at = q->v_at;
    a.n_heads = q->n_heads, a.n_kv_heads = q->n_kv_heads, a.head_dim = q->head_dim;
    a.kv_layer = q->kv_layer;
    a.rope_dims = q->rope_dims, a.rope_table = q->rope_table;
    a.q_norm = vector_of(p, c->vector), a.k_norm = vector_of(p, c->vector2);
    a.norm_eps = q->norm_eps;
    a.flags = (c->vector != AK_NONE ? ATTENTION_Q_NORM : 0u) | (c->vector2 != AK_NONE ? ATTENTION_K_NORM : 0u) |
              (q->interleaved ? ATTENTION_INTERLEAVED : 0u);
    launch->grid = AK_OCL_HEADS;
    launch->columns = q->n_heads + 2 * q->n_kv_heads;
    launch->group = AK_OCL_GROUP;
    AK_TRY(kernel_of(p, program, "qkv", &b, error));
    BIND(&b, a);
    BIND(&b, p->arena[AK_DOMAIN_TOKENS]);
    BIND(&b, p->o->vectors);
    BIND(&b, p->angles);
    BIND(&b, p->kv->memory);
    BIND(&b, p->pass);
    return bound(launch, &b, p, error);
}

static ak_status add_attention(struct ak_ocl_prepared *p, cl_program program, struct ak_ocl_launch *launch, struct ak_error *error)
{
    const struct ak_command *c = launch->command;
    const struct ak_attention_params *params = &c->params.attention;
    struct attention a = attention_of(p, c);
    struct binder b;
    a.q_at = params->q_at, a.q_step = params->q_step;
    a.n_heads = params->n_heads, a.n_kv_heads = params->n_kv_heads, a.head_dim = params->head_dim;
    a.kv_layer = params->kv_layer;
    a.window = params->window;
    a.scale = params->scale, a.cap = params->cap;
    a.sinks = vector_of(p, c->vector);
    a.flags = (params->both_ways ? ATTENTION_BOTH_WAYS : 0u) | (params->alibi ? ATTENTION_ALIBI : 0u) | (c->vector != AK_NONE ? ATTENTION_SINKS : 0u);
    if (params->gated)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "the opencl backend has no gated attention yet");
    launch->grid = AK_OCL_ATTEND;
    launch->columns = params->n_heads;
    launch->group = AK_KV_PAGE_TOKENS;
    static const char *const names[] = { "attention1", "attention8" };
    for (int i = 0; i < 2; i++) {
        AK_TRY(kernel_of(p, program, names[i], &b, error));
        BIND(&b, a);
        BIND(&b, p->arena[AK_DOMAIN_TOKENS]);
        BIND(&b, p->arena[AK_DOMAIN_TOKENS]);
        BIND(&b, p->partials);
        BIND(&b, p->o->vectors);
        BIND(&b, p->kv->memory);
        BIND(&b, p->pass);
        AK_TRY(bound(launch, &b, p, error));
    }
    AK_TRY(kernel_of(p, program, "merge", &b, error));
    BIND(&b, a);
    BIND(&b, p->partials);
    BIND(&b, p->arena[AK_DOMAIN_TOKENS]);
    BIND(&b, p->o->vectors);
    return bound(launch, &b, p, error);
}

/* ---- Everything else -------------------------------------------------------------------------- */

/* What a kernel of rows takes after its struct. */
enum argument { IN = 1, OUT = 2, OTHER = 4, VECTORS = 8, STATES = 16, EMBEDDINGS = 32, PASS = 64, CHOSEN = 128 };

static ak_status add_rows(struct ak_ocl_prepared *p, cl_program program, struct ak_ocl_launch *launch, const char *name, enum ak_ocl_grid grid,
                          const struct rows *rows, unsigned arguments, uint32_t other, struct ak_error *error)
{
    const struct ak_command *c = launch->command;
    struct binder b;
    launch->grid = grid;
    launch->columns = rows->n;
    launch->group = grid == AK_OCL_ROW_GROUPS ? AK_OCL_GROUP : 0;
    AK_TRY(kernel_of(p, program, name, &b, error));
    BIND(&b, *rows);
    if (arguments & EMBEDDINGS)
        BIND(&b, p->embeddings);
    if (arguments & IN)
        BIND(&b, *arena_of(p, c->in));
    if (arguments & OUT)
        BIND(&b, *arena_of(p, c->out));
    if (arguments & OTHER)
        BIND(&b, *arena_of(p, other));
    if (arguments & VECTORS)
        BIND(&b, p->o->vectors);
    if (arguments & STATES)
        BIND(&b, p->kv->memory);
    if (arguments & CHOSEN)
        BIND(&b, p->chosen_memory);
    if (arguments & PASS)
        BIND(&b, p->pass);
    return bound(launch, &b, p, error);
}

static ak_status add_launch(struct ak_ocl_prepared *p, cl_program program, const struct ak_command *c, struct ak_error *error)
{
    struct ak_ocl_launch *launch = &p->launches[p->n_launches++];
    struct rows r = rows_of(p, c, 0);
    launch->command = c;
    launch->domain = p->table->slots[c->out].domain;
    switch (c->op) {
    case AK_OP_LINEAR:
        launch->grid = AK_OCL_PRODUCT;
        return add_linear(p, launch, error);
    case AK_OP_QKV: return add_qkv(p, program, launch, error);
    case AK_OP_ATTENTION: return add_attention(p, program, launch, error);
    case AK_OP_EMBED:
        r.n = p->spec->config.width;
        return add_rows(p, program, launch, "embed", AK_OCL_ELEMENTS, &r, EMBEDDINGS | OUT, 0, error);
    case AK_OP_NORM:
        r.n = c->params.norm.n;
        r.in_at += c->params.norm.at;
        r.out_at += c->in == c->out ? c->params.norm.at : 0;
        r.value = c->params.norm.eps;
        r.flags = (c->params.norm.layer_norm ? ROWS_LAYER_NORM : 0u) | (c->params.norm.layer_norm && c->vector2 != AK_NONE ? ROWS_BIAS : 0u);
        return add_rows(p, program, launch, "norm", AK_OCL_ROW_GROUPS, &r, IN | OUT | VECTORS, 0, error);
    case AK_OP_GATED:
        r.n = c->params.gated.n;
        r.gate_at = c->params.gated.gate_at, r.up_at = c->params.gated.up_at;
        r.flags = (uint32_t)c->params.gated.activation;
        return add_rows(p, program, launch, "gated", AK_OCL_ELEMENTS, &r, IN | OUT, 0, error);
    case AK_OP_ACTIVATE:
        r.n = c->params.activate.n;
        r.flags = (uint32_t)c->params.activate.activation;
        return add_rows(p, program, launch, "activate", AK_OCL_ELEMENTS, &r, IN | OUT, 0, error);
    case AK_OP_ADD:
        r.n = c->params.add.n;
        r.value = c->params.add.scale;
        return add_rows(p, program, launch, "add", AK_OCL_ELEMENTS, &r, IN | OUT, 0, error);
    case AK_OP_DIVIDE:
    case AK_OP_CAP:
        r.n = c->params.by.n;
        r.value = c->params.by.by;
        return add_rows(p, program, launch, c->op == AK_OP_CAP ? "cap" : "divide", AK_OCL_ELEMENTS, &r, OUT, 0, error);
    case AK_OP_SELECT:
        r.n = c->params.select.n;
        return add_rows(p, program, launch, "select_rows", AK_OCL_ELEMENTS, &r, IN | OUT | PASS, 0, error);
    case AK_OP_SHORT_CONV:
        r.n = c->params.short_conv.n;
        r.taps = c->params.short_conv.taps;
        r.state_at = p->states_at + c->params.short_conv.state_at;
        r.state_elems = (uint32_t)p->state_elems;
        return add_rows(p, program, launch, "short_conv", AK_OCL_ONCE, &r, IN | OUT | VECTORS | STATES | PASS, 0, error);
    case AK_OP_ROUTE:
        r.n = c->params.route.n_experts;
        r.taps = c->params.route.n_used;
        r.flags = c->params.route.normalised ? ROWS_NORMALISED : 0u;
        AK_TRY(add_rows(p, program, launch, "route", AK_OCL_ONCE, &r, IN | OUT | PASS, 0, error));
        launch->columns = AK_OCL_GROUP;
        launch->group = AK_OCL_GROUP;
        return AKUNU_OK;
    case AK_OP_GATHER:
        r.n = c->params.routed.n;
        return add_rows(p, program, launch, "gather", AK_OCL_ELEMENTS, &r, IN | OUT | PASS, 0, error);
    case AK_OP_COMBINE:
        r.n = c->params.routed.n;
        r.taps = p->spec->config.n_experts_used;
        r.other_at = at_of(p, c->params.routed.routes);
        r.other_stride = p->table->slots[c->params.routed.routes].width;
        return add_rows(p, program, launch, "combine", AK_OCL_ELEMENTS, &r, IN | OUT | OTHER | PASS, c->params.routed.routes, error);
    case AK_OP_ADD_GATED:
        r.n = c->params.add_gated.n;
        r.other_at = at_of(p, c->params.add_gated.gate);
        r.other_stride = p->table->slots[c->params.add_gated.gate].width;
        return add_rows(p, program, launch, "add_gated", AK_OCL_ROW_GROUPS, &r, IN | OUT | OTHER | VECTORS, c->params.add_gated.gate, error);
    case AK_OP_GUMBEL:
        r.n = c->params.logits.n;
        return add_rows(p, program, launch, "gumbel", AK_OCL_ELEMENTS, &r, OUT | PASS, 0, error);
    case AK_OP_ARGMAX:
        r.n = c->params.logits.n;
        return add_rows(p, program, launch, "argmax", AK_OCL_ROW_GROUPS, &r, IN | CHOSEN, 0, error);
    default:
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "the opencl backend has no %s yet", ak_op_name(c->op));
    }
}

/* ---- Sizes ------------------------------------------------------------------------------------- */

static ak_status buffer(struct ak_ocl_prepared *p, uint64_t bytes, const char *what, cl_mem *out, struct ak_error *error)
{
    AK_TRY(ak_ocl_buffer(p->o, bytes, what, out, error));
    p->memory_bytes += bytes;
    return AKUNU_OK;
}

/* Where each list begins in the words of a pass. */
static void lay_out_words(struct ak_ocl_prepared *p, const struct ak_prepare_options *options)
{
    uint32_t tokens = options->max_tokens, experts = p->max_rows[AK_DOMAIN_EXPERTS], n_experts = p->spec->config.n_experts, at = PASS_HEADER;
    const struct { uint32_t word, n; } lists[] = {
        { PASS_POSITIONS, tokens }, { PASS_TABLES, tokens }, { PASS_ENDS, tokens }, { PASS_STATES, tokens },
        { PASS_LOGIT_ROWS, p->max_rows[AK_DOMAIN_LOGITS] }, { PASS_BLOCKS, 2 * tokens },
        { PASS_EXPERT_OF, experts }, { PASS_TOKEN_OF, experts }, { PASS_ROW_OF, experts },
        { PASS_EXPERT_BEGIN, experts ? n_experts + 1 : 0 }, { PASS_EXPERT_GROUPS, experts ? 1 + 2 * (experts / (16 * p->o->tile) + n_experts) : 0 },
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        p->words_at[lists[i].word] = at;
        at += lists[i].n;
    }
    p->words_fixed = at;
    p->words_room = at + options->kv.n_pages * (options->kv.n_states ? options->kv.n_states : 1u);
}

/* A buffer of a session. */
struct scratch { const char *what; uint64_t bytes; cl_mem *memory; };
enum { MOST_SCRATCH = AK_DOMAIN_COUNT + 5 };

static uint32_t list_scratch(struct ak_ocl_prepared *p, const struct ak_prepare_options *options, struct scratch out[MOST_SCRATCH])
{
    static const char *const names[AK_DOMAIN_COUNT] = { "the activations", "the logits", "the experts' activations" };
    const struct ak_config *config = &p->spec->config;
    uint64_t tokens = options->max_tokens;
    uint32_t n = 0;
    for (int d = 0; d < AK_DOMAIN_COUNT; d++)
        out[n++] = (struct scratch){ names[d], (uint64_t)p->max_rows[d] * p->table->arena_width[d] * sizeof(float), &p->arena[d] };
    out[n++] = (struct scratch){ "the pass", p->words_room * sizeof(cl_int), &p->pass };
    out[n++] = (struct scratch){ "the tokens' embeddings", tokens * config->width * sizeof(float), &p->embeddings };
    out[n++] = (struct scratch){ "the rotations", tokens * (config->rope_dims / 2) * 2 * p->spec->n_rotations * sizeof(float), &p->angles };
    out[n++] = (struct scratch){ "attention", (uint64_t)AK_OCL_FEW * config->n_heads * AK_OCL_MOST_SPLITS * (config->head_dim + 2) * sizeof(float),
                                 &p->partials };
    out[n++] = (struct scratch){ "the chosen tokens", p->max_rows[AK_DOMAIN_LOGITS] * sizeof(cl_int), &p->chosen_memory };
    return n;
}

static void count_rows(struct ak_ocl_prepared *p, const struct ak_prepare_options *options)
{
    p->max_rows[AK_DOMAIN_TOKENS] = options->max_tokens;
    p->max_rows[AK_DOMAIN_LOGITS] = options->max_logits < AK_OCL_LOGIT_ROWS ? options->max_logits : AK_OCL_LOGIT_ROWS;
    if (p->table->arena_width[AK_DOMAIN_EXPERTS] > 0)
        p->max_rows[AK_DOMAIN_EXPERTS] = options->max_tokens * p->spec->config.n_experts_used;
}

uint64_t ak_ocl_scratch_bytes(struct ak_ocl *o, const struct ak_table *table, const struct ak_spec *spec, const struct ak_prepare_options *options)
{
    struct ak_ocl_prepared p = { .o = o, .table = table, .spec = spec };
    struct scratch scratch[MOST_SCRATCH];
    uint64_t bytes = 0;
    count_rows(&p, options);
    lay_out_words(&p, options);
    for (uint32_t i = list_scratch(&p, options, scratch); i > 0; i--)
        bytes += scratch[i - 1].bytes;
    return bytes;
}

static ak_status allocate(struct ak_ocl_prepared *p, const struct ak_prepare_options *options, struct ak_error *error)
{
    const struct ak_config *config = &p->spec->config;
    size_t width = p->table->slots[p->table->logits].width, half = config->rope_dims / 2, tokens = options->max_tokens;
    struct scratch scratch[MOST_SCRATCH];
    uint32_t n = list_scratch(p, options, scratch);
    for (uint32_t i = 0; i < n; i++)
        AK_TRY(buffer(p, scratch[i].bytes, scratch[i].what, scratch[i].memory, error));
    p->words = ak_alloc(p->words_room, sizeof *p->words);
    p->embedding_rows = ak_alloc(tokens * config->width, sizeof *p->embedding_rows);
    p->row = ak_alloc(config->width, sizeof *p->row);
    p->angle_rows = ak_alloc(tokens * half * 2 * p->spec->n_rotations, sizeof *p->angle_rows);
    p->chosen = ak_alloc(p->max_logits, sizeof *p->chosen);
    p->launches = ak_alloc(p->table->n_commands, sizeof *p->launches);
    if (!ak_mul_size(width * sizeof(float), p->max_logits, &p->logits_bytes) || !p->words || !p->embedding_rows || !p->row || !p->angle_rows ||
        !p->chosen || !p->launches || !(p->logits = ak_pages_alloc(p->logits_bytes)))
        return ak_fail_memory(error, "a session on an OpenCL device", p->logits_bytes);
    return AKUNU_OK;
}

static ak_status check(const struct ak_ocl_prepared *p, const struct ak_prepare_options *options, struct ak_error *error)
{
    if (options->kv.k_type != options->kv.v_type || (options->kv.k_type != AK_KV_F16 && options->kv.k_type != AK_KV_F32))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "the opencl backend has KV caches of f16 and f32, keys and values alike; %s and %s were asked for",
                       ak_type_info(ak_kv_stored(options->kv.k_type))->name, ak_type_info(ak_kv_stored(options->kv.v_type))->name);
    if (p->spec->config.head_dim > AK_OCL_HEAD_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "the opencl backend has attention heads of up to %d elements; this model's have %u",
                       AK_OCL_HEAD_MAX, (unsigned)p->spec->config.head_dim);
    return AKUNU_OK;
}

static ak_status set_up(struct ak_ocl_prepared *p, const struct ak_prepare_options *options, struct ak_error *error)
{
    cl_program program;
    cl_int code;
    AK_TRY(check(p, options, error));
    AK_TRY(ak_ocl_upload(p->o, p->weights, error));
    AK_TRY(ak_ocl_rows(p->o, options->kv.k_type, &program, error));
    lay_out_words(p, options);
    AK_TRY(allocate(p, options, error));
    p->queue = p->o->cl->clCreateCommandQueue(p->o->context, p->o->device.id, 0, &code);
    if (code != CL_SUCCESS)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s gives no queue: %s", p->o->device.name, ak_cl_error_name(code));
    p->n_before_logits = p->table->n_commands;
    for (uint32_t i = 0; i < p->table->n_commands; i++) {
        const struct ak_command *c = &p->table->commands[i];
        if (c->op == AK_OP_SELECT && p->n_before_logits == p->table->n_commands)
            p->n_before_logits = i;
        AK_TRY(add_launch(p, program, c, error));
    }
    return AKUNU_OK;
}

ak_status ak_ocl_prepare(struct ak_backend *b, const struct ak_table *table, const struct ak_weights *weights, const struct ak_spec *spec,
                         const struct ak_prepare_options *options, void *kv, struct ak_prepared **out, struct ak_error *error)
{
    struct ak_ocl_prepared *p = ak_alloc(1, sizeof *p);
    if (!p)
        return ak_fail_memory(error, "a session", sizeof *p);
    p->o = (struct ak_ocl *)b;
    p->table = table;
    p->weights = weights;
    p->spec = spec;
    p->context = options->context;
    p->max_logits = options->max_logits;
    count_rows(p, options);
    p->kv = kv;
    p->n_kv_layers = options->kv.n_layers;
    p->states_at = ak_kv_state_at(&options->kv, 0) / sizeof(float);
    p->state_elems = options->kv.state_elems;
    for (uint32_t i = 0; i < spec->n_rotations; i++)
        p->frequencies[i] = spec->inverse_frequencies + (size_t)i * (spec->config.rope_dims / 2);
    if (spec->short_frequencies && options->context <= spec->rope.original_context)
        p->frequencies[AK_ROTATE_MAIN] = spec->short_frequencies;
    ak_status status = set_up(p, options, error);
    if (status != AKUNU_OK) {
        ak_ocl_release((struct ak_prepared *)p);
        return status;
    }
    *out = (struct ak_prepared *)p;
    return AKUNU_OK;
}

void ak_ocl_release(struct ak_prepared *prepared)
{
    struct ak_ocl_prepared *p = (struct ak_ocl_prepared *)prepared;
    if (!p)
        return;
    const struct ak_cl *cl = p->o->cl;
    if (p->queue) {
        cl->clFinish(p->queue);
        cl->clReleaseCommandQueue(p->queue);
    }
    for (uint32_t i = 0; i < p->n_launches; i++)
        for (uint32_t j = 0; j < p->launches[i].n_kernels; j++)
            cl->clReleaseKernel(p->launches[i].kernels[j]);
    const cl_mem buffers[] = { p->arena[0], p->arena[1], p->arena[2], p->pass, p->embeddings, p->angles, p->partials, p->chosen_memory };
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i])
            cl->clReleaseMemObject(buffers[i]);
    if (p->logits)
        ak_pages_free(p->logits, p->logits_bytes);
    ak_free(p->words);
    ak_free(p->embedding_rows);
    ak_free(p->angle_rows);
    ak_free(p->row);
    ak_free(p->chosen);
    ak_free(p->launches);
    ak_free(p);
}
