/* Makes launches from the table's commands: kernels with arguments that stay bound. */
#include "base/mem.h"
#include "opencl/opencl.h"

/* Binds a kernel's arguments in order; keeps the first failure. */
struct binder {
    const struct ak_ocl_api *cl;
    cl_kernel kernel;
    cl_uint n;
    cl_int code;
};

static void bind_argument(struct binder *b, const void *value, size_t bytes)
{
    cl_int code = b->cl->clSetKernelArg(b->kernel, b->n++, bytes, value);
    b->code = b->code ? b->code : code;
}

#define BIND_ARGUMENT(b, value) bind_argument(b, &(value), sizeof(value))

static ak_status create_kernel(const struct ak_ocl_table *p, cl_program program, const char *name,
                               struct binder *b, struct ak_error *error)
{
    cl_int code;
    *b = (struct binder){ .cl = p->o->cl };
    b->kernel = p->o->cl->clCreateKernel(program, name, &code);
    if (code != CL_SUCCESS)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s has no kernel %s: %s", p->o->device.name,
                       name, ak_ocl_error_name(code));
    return AKUNU_OK;
}

/* Gives the kernel to the launch, even if binding failed. */
static ak_status finish_launch(struct ak_ocl_launch *launch, const struct binder *b,
                               const struct ak_ocl_table *p, struct ak_error *error)
{
    launch->kernels[launch->n_kernels++] = b->kernel;
    if (b->code == CL_SUCCESS)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s does not take the arguments of %s: %s",
                   p->o->device.name, ak_op_name(launch->command->op), ak_ocl_error_name(b->code));
}

/* First element of a slot in its arena. */
static uint64_t at_of(const struct ak_ocl_table *p, uint32_t slot)
{
    const struct ak_op_slot *s = &p->table->slots[slot];
    return (uint64_t)s->offset * p->max_rows[s->row_set];
}

static const cl_mem *arena_of(const struct ak_ocl_table *p, uint32_t slot)
{
    return &p->arena[p->table->slots[slot].row_set];
}

static uint32_t vector_of(const struct ak_ocl_table *p, uint32_t slot)
{
    return slot == AK_OP_NONE ? 0 : (uint32_t)p->o->vector_at[slot];
}

static struct ak_ocl_rows_args rows_of(const struct ak_ocl_table *p, const struct ak_command *c,
                                       uint32_t n)
{
    return (struct ak_ocl_rows_args){
        .in_at = at_of(p, c->in == AK_OP_NONE ? c->out : c->in),
        .out_at = at_of(p, c->out),
        .in_stride = p->table->slots[c->in == AK_OP_NONE ? c->out : c->in].width,
        .out_stride = p->table->slots[c->out].width,
        .n = n,
        .vector = vector_of(p, c->vector),
        .vector2 = vector_of(p, c->vector2)
    };
}

/* Adds a launch of a command, over the rows of a slot. */
static struct ak_ocl_launch *new_launch(struct ak_ocl_table *p, const struct ak_command *c,
                                        uint32_t slot)
{
    struct ak_ocl_launch *launch = &p->launches[p->n_launches++];
    launch->command = c;
    launch->row_set = p->table->slots[slot].row_set;
    return launch;
}

/* ---- Steps of one kernel ------------------------------------------------ */
/* A kernel's arguments after its parameters, in this order. */
enum argument {
    INPUT = 1,
    IN = 2,
    OUT = 4,
    OTHER = 8,
    VECTORS = 16,
    ANGLES = 32,
    CACHE = 64,
    SAMPLED = 128,
    PASS = 256
};

struct step {
    const char *kernel;
    cl_program program; /* NULL: p->rows */
    enum ak_ocl_grid grid;
    uint32_t columns, lines;
    size_t group[2]; /* 0: the grid's usual size */
    const void *params;
    size_t bytes;
    unsigned arguments;
    uint32_t other; /* slot of OTHER */
};

static ak_status add_step(struct ak_ocl_table *p, const struct ak_command *c,
                          const struct step *step, struct ak_error *error)
{
    struct ak_ocl_launch *launch = new_launch(p, c, c->out);
    struct binder b;
    launch->grid = step->grid;
    launch->columns = step->columns;
    launch->lines = step->lines;
    launch->group[0] = step->group[0]                ? step->group[0] :
                       step->grid == AK_OCL_ELEMENTS ? AK_OCL_ELEMENT_LANES :
                                                       AK_OCL_GROUP;
    launch->group[1] = step->group[1] ? step->group[1] : 1;
    AK_TRY(create_kernel(p, step->program ? step->program : p->rows, step->kernel, &b, error));
    bind_argument(&b, step->params, step->bytes);
    const struct {
        unsigned argument;
        const cl_mem *memory;
    } all[] = { { INPUT, &p->input },
                { IN, c->in == AK_OP_NONE ? NULL : arena_of(p, c->in) },
                { OUT, arena_of(p, c->out) },
                { OTHER, arena_of(p, step->other) },
                { VECTORS, &p->o->vectors },
                { ANGLES, &p->angles },
                { CACHE, &p->kv->memory },
                { SAMPLED, &p->sampled_memory },
                { PASS, &p->pass } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (step->arguments & all[i].argument)
            bind_argument(&b, all[i].memory, sizeof *all[i].memory);
    return finish_launch(launch, &b, p, error);
}

/* ---- Products ----------------------------------------------------------- */
static ak_status add_order(struct ak_ocl_table *p, const struct ak_command *c,
                           struct ak_error *error)
{
    struct ak_ocl_rows_args r = rows_of(p, c, p->weights->packed[c->weight].cols);
    struct ak_ocl_launch *launch = new_launch(p, c, c->in);
    struct binder b;
    r.out_stride = ak_ocl_ordered_stride(r.n);
    launch->grid = AK_OCL_ELEMENTS;
    launch->columns = r.n;
    launch->group[0] = AK_OCL_ELEMENT_LANES;
    launch->group[1] = 1;
    AK_TRY(create_kernel(p, p->rows, "reorder", &b, error));
    BIND_ARGUMENT(&b, r);
    BIND_ARGUMENT(&b, *arena_of(p, c->in));
    BIND_ARGUMENT(&b, p->ordered);
    BIND_ARGUMENT(&b, p->o->packed[c->weight].order);
    return finish_launch(launch, &b, p, error);
}

static struct ak_ocl_linear_args linear_of(const struct ak_ocl_table *p, const struct ak_command *c)
{
    const struct ak_pack_weight *packed = &p->weights->packed[c->weight];
    const struct ak_ocl_weight *weight = &p->o->packed[c->weight];
    uint64_t row_bytes = 0;
    (void)ak_quant_row_bytes(packed->type, packed->cols, &row_bytes);
    struct ak_ocl_linear_args l = {
        .expert_bytes = weight->expert_bytes,
        .x_at = at_of(p, c->in),
        .y_at = at_of(p, c->out) + c->params.linear.offset,
        .group_bytes = AK_OCL_TILE_ROWS * row_bytes,
        .row_elems = (uint32_t)ak_round_up(packed->cols, AK_OCL_BLOCK_K),
        .rows = weight->rows,
        .k = packed->cols,
        .x_stride = p->table->slots[c->in].width,
        .y_stride = p->table->slots[c->out].width,
        .bias_at = vector_of(p, c->vector) + c->params.linear.offset,
        .has_bias = c->vector != AK_OP_NONE,
        .expert_width = ak_pack_linear_width(p->weights, packed->linear, packed->layer),
        .row_set = (uint32_t)p->table->slots[c->out].row_set
    };
    if (ak_ocl_is_tiled(packed->type))
        l.tile_bytes = (uint32_t)ak_ocl_tile_bytes(packed->type, AK_OCL_TILE_BLOCKS);
    if (packed->order) {
        l.x_at = 0;
        l.x_stride = ak_ocl_ordered_stride(packed->cols);
    }
    return l;
}

static ak_status add_linear(struct ak_ocl_table *p, const struct ak_command *c,
                            struct ak_error *error)
{
    static const char *const names[AK_OCL_VARIANTS] = { "gemv1", "gemv2", "gemv4", "gemv8",
                                                        "gemm" };
    const struct ak_pack_weight *packed = &p->weights->packed[c->weight];
    const struct ak_ocl_weight *weight = &p->o->packed[c->weight];
    const struct ak_ocl_linear_args l = linear_of(p, c);
    cl_program program;
    struct binder b;
    if (packed->order)
        AK_TRY(add_order(p, c, error));
    struct ak_ocl_launch *launch = new_launch(p, c, c->out);
    launch->grid = AK_OCL_PRODUCT;
    launch->experts = packed->n_experts > 0;
    launch->columns = weight->rows;
    AK_TRY(ak_ocl_build_products(p->o, packed->type, launch->experts, &program, error));
    for (int i = 0; i < AK_OCL_VARIANTS; i++) {
        AK_TRY(create_kernel(p, program, names[i], &b, error));
        BIND_ARGUMENT(&b, weight->memory);
        BIND_ARGUMENT(&b, l);
        BIND_ARGUMENT(&b, *(packed->order ? &p->ordered : arena_of(p, c->in)));
        BIND_ARGUMENT(&b, *arena_of(p, c->out));
        BIND_ARGUMENT(&b, p->o->vectors);
        BIND_ARGUMENT(&b, p->pass);
        AK_TRY(finish_launch(launch, &b, p, error));
    }
    return AKUNU_OK;
}

/* ---- Attention ---------------------------------------------------------- */
static struct ak_ocl_attention_args attention_of(const struct ak_ocl_table *p,
                                                 const struct ak_command *c)
{
    const struct ak_ocl_rows_args rows = rows_of(p, c, 0);
    return (struct ak_ocl_attention_args){ .in_at = rows.in_at,
                                           .out_at = rows.out_at,
                                           .in_stride = rows.in_stride,
                                           .out_stride = rows.out_stride,
                                           .n_layers = p->n_kv_layers,
                                           .head_bytes = (uint32_t)p->head_bytes,
                                           .keys_bytes = (uint32_t)p->keys_bytes };
}

static ak_status add_qkv(struct ak_ocl_table *p, const struct ak_command *c, struct ak_error *error)
{
    const struct ak_op_qkv_params *q = &c->params.qkv;
    struct ak_ocl_attention_args a = attention_of(p, c);
    a.q_at = q->q_at, a.q_step = q->q_step, a.k_at = q->k_at, a.v_at = q->v_at;
    a.n_heads = q->n_heads, a.n_kv_heads = q->n_kv_heads, a.head_dim = q->head_dim;
    a.kv_layer = q->kv_layer;
    a.rope_dims = q->rope_dims, a.rope_table = q->rope_table;
    a.q_norm = vector_of(p, c->vector), a.k_norm = vector_of(p, c->vector2);
    a.norm_eps = q->norm_eps;
    a.flags = (c->vector != AK_OP_NONE ? AK_OCL_ATTENTION_Q_NORM : 0u) |
              (c->vector2 != AK_OP_NONE ? AK_OCL_ATTENTION_K_NORM : 0u) |
              (q->interleaved ? AK_OCL_ATTENTION_INTERLEAVED : 0u);
    struct step step = { .kernel = "qkv",
                         .program = p->attention,
                         .grid = AK_OCL_GROUPS,
                         .columns = q->n_heads + 2 * q->n_kv_heads,
                         .params = &a,
                         .bytes = sizeof a,
                         .arguments = IN | VECTORS | ANGLES | CACHE | PASS };
    AK_TRY(add_step(p, c, &step, error));
    if (!p->keys_wait)
        return AKUNU_OK;
    step.kernel = "quantize_keys";
    step.columns = q->n_kv_heads;
    step.arguments = IN | CACHE | PASS;
    return add_step(p, c, &step, error);
}

/* Cross-attention sees all of the cross sequence. */
static struct ak_ocl_attention_args attention_args(const struct ak_ocl_table *p,
                                                   const struct ak_command *c)
{
    const struct ak_op_attention_params *params = &c->params.attention;
    struct ak_ocl_attention_args a = attention_of(p, c);
    a.q_at = params->q_at, a.q_step = params->q_step;
    a.n_heads = params->n_heads, a.n_kv_heads = params->n_kv_heads, a.head_dim = params->head_dim;
    a.kv_layer = params->kv_layer;
    a.window = params->window;
    a.scale = params->scale, a.cap = params->cap;
    a.sinks = vector_of(p, c->vector);
    a.tables = params->cross ? AK_OCL_PASS_CROSS_TABLES : AK_OCL_PASS_TABLES;
    a.ends = params->cross ? AK_OCL_PASS_CROSS_ENDS : AK_OCL_PASS_ENDS;
    a.blocks = params->cross ? AK_OCL_PASS_CROSS_BLOCKS : AK_OCL_PASS_BLOCKS;
    a.flags = (params->bidirectional || params->cross ? AK_OCL_ATTENTION_BIDIRECTIONAL : 0u) |
              (params->alibi ? AK_OCL_ATTENTION_ALIBI : 0u) |
              (params->gated ? AK_OCL_ATTENTION_GATED : 0u) |
              (c->vector != AK_OP_NONE ? AK_OCL_ATTENTION_SINKS : 0u);
    return a;
}

/* The kernel `scores`; run.c sets its last argument, the head. */
static ak_status add_scores(struct ak_ocl_table *p, struct ak_ocl_launch *launch,
                            const struct ak_ocl_attention_args *a, struct ak_error *error)
{
    cl_uint stride = p->spec->config.encoder_context;
    struct binder b;
    AK_TRY(create_kernel(p, p->attention, "scores", &b, error));
    BIND_ARGUMENT(&b, *a);
    BIND_ARGUMENT(&b, *arena_of(p, launch->command->in));
    BIND_ARGUMENT(&b, p->scores);
    BIND_ARGUMENT(&b, p->kv->memory);
    BIND_ARGUMENT(&b, p->pass);
    BIND_ARGUMENT(&b, stride);
    return finish_launch(launch, &b, p, error);
}

static ak_status add_attention(struct ak_ocl_table *p, const struct ak_command *c,
                               struct ak_error *error)
{
    static const char *const names[] = { "attention1", "attention8" };
    const struct ak_ocl_attention_args a = attention_args(p, c);
    struct ak_ocl_launch *launch = new_launch(p, c, c->out);
    struct binder b;
    launch->grid = AK_OCL_ATTENTION;
    launch->columns = a.n_heads;
    launch->group[0] = AK_KV_PAGE_TOKENS;
    launch->group[1] = 1;
    for (int i = 0; i < 2; i++) {
        AK_TRY(create_kernel(p, p->attention, names[i], &b, error));
        BIND_ARGUMENT(&b, a);
        BIND_ARGUMENT(&b, *arena_of(p, c->in));
        BIND_ARGUMENT(&b, *arena_of(p, c->out));
        BIND_ARGUMENT(&b, p->partials);
        BIND_ARGUMENT(&b, p->o->vectors);
        BIND_ARGUMENT(&b, p->kv->memory);
        BIND_ARGUMENT(&b, p->pass);
        AK_TRY(finish_launch(launch, &b, p, error));
    }
    for (int i = 0; i < 2; i++) {
        AK_TRY(create_kernel(p, p->attention, "merge", &b, error));
        BIND_ARGUMENT(&b, a);
        BIND_ARGUMENT(&b, *arena_of(p, c->in));
        BIND_ARGUMENT(&b, p->partials);
        BIND_ARGUMENT(&b, *arena_of(p, c->out));
        BIND_ARGUMENT(&b, p->o->vectors);
        AK_TRY(finish_launch(launch, &b, p, error));
    }
    return c->params.attention.cross ? add_scores(p, launch, &a, error) : AKUNU_OK;
}

/* ---- States ------------------------------------------------------------- */
static ak_status add_conv(struct ak_ocl_table *p, const struct ak_command *c,
                          struct ak_error *error)
{
    const struct ak_op_conv_params *params = &c->params.conv;
    const struct ak_op_short_conv_params *gated = &c->params.short_conv;
    const struct ak_ocl_rows_args r = rows_of(p, c, 0);
    struct ak_ocl_conv_args v = { .in_at = r.in_at,
                                  .out_at = r.out_at,
                                  .in_stride = r.in_stride,
                                  .out_stride = r.out_stride,
                                  .vector = r.vector,
                                  .state_elems = (uint32_t)p->state_elems,
                                  .gated = c->op == AK_OP_SHORT_CONV };
    v.n = v.gated ? gated->n : params->n;
    v.taps = v.gated ? gated->taps : params->taps;
    v.state_at = p->states_at + (v.gated ? gated->state_at : params->state_at);
    v.n_groups = v.gated ? 0 : params->n_groups;
    for (int i = 0; i < AK_OP_CONV_PARTS && !v.gated; i++) {
        v.part_at[i] = params->parts[i].offset;
        v.part_step[i] = params->parts[i].step;
        v.part_n[i] = params->parts[i].n;
    }
    struct step step = { .kernel = "conv",
                         .grid = AK_OCL_ELEMENTS,
                         .columns = v.n,
                         .params = &v,
                         .bytes = sizeof v,
                         .arguments = IN | OUT | VECTORS | CACHE | PASS };
    AK_TRY(add_step(p, c, &step, error));
    step.kernel = "conv_state";
    step.arguments = IN | CACHE | PASS;
    return add_step(p, c, &step, error);
}

static ak_status add_delta(struct ak_ocl_table *p, const struct ak_command *c,
                           struct ak_error *error)
{
    const struct ak_op_delta_params *params = &c->params.delta;
    const struct ak_ocl_rows_args r = rows_of(p, c, 0);
    struct ak_ocl_delta_args d = { .in_at = r.in_at,
                                   .out_at = r.out_at,
                                   .gates_at = at_of(p, params->gates),
                                   .state_at = p->states_at + params->state_at,
                                   .in_stride = r.in_stride,
                                   .out_stride = r.out_stride,
                                   .gates_stride = p->table->slots[params->gates].width,
                                   .state_elems = (uint32_t)p->state_elems,
                                   .n_k_heads = params->n_k_heads,
                                   .n_v_heads = params->n_v_heads,
                                   .k_dim = params->k_dim,
                                   .v_dim = params->v_dim,
                                   .beta_at = params->beta_at,
                                   .alpha_at = params->alpha_at,
                                   .gate_step = params->gate_step,
                                   .tiled = params->tiled,
                                   .decay = r.vector,
                                   .alpha_bias = r.vector2 };
    struct step step = { .kernel = "delta_gates",
                         .grid = AK_OCL_GROUPS,
                         .columns = d.n_v_heads,
                         .params = &d,
                         .bytes = sizeof d,
                         .arguments = IN | OTHER | VECTORS,
                         .other = params->gates };
    AK_TRY(add_step(p, c, &step, error));
    step.kernel = "delta";
    step.grid = AK_OCL_FIXED_GROUPS;
    step.columns = d.v_dim / AK_OCL_DELTA_COLUMNS;
    step.lines = d.n_v_heads;
    step.group[0] = AK_OCL_DELTA_COLUMNS;
    step.group[1] = AK_OCL_DELTA_SLICES;
    step.arguments = IN | OUT | OTHER | CACHE | PASS;
    return add_step(p, c, &step, error);
}

static ak_status add_norm_gated(struct ak_ocl_table *p, const struct ak_command *c,
                                struct ak_error *error)
{
    const struct ak_op_norm_gated_params *params = &c->params.norm_gated;
    const struct ak_ocl_rows_args r = rows_of(p, c, 0);
    struct ak_ocl_norm_gated_args g = { .in_at = r.in_at,
                                        .out_at = r.out_at,
                                        .gate_at = at_of(p, params->gate) + params->gate_at,
                                        .in_stride = r.in_stride,
                                        .out_stride = r.out_stride,
                                        .gate_stride = p->table->slots[params->gate].width,
                                        .n = params->n,
                                        .gate_step = params->gate_step,
                                        .per_group = params->per_group,
                                        .vector = r.vector,
                                        .eps = params->eps };
    struct step step = { .kernel = "norm_gated",
                         .grid = AK_OCL_GROUPS,
                         .columns = params->n_heads,
                         .params = &g,
                         .bytes = sizeof g,
                         .arguments = IN | OUT | OTHER | VECTORS,
                         .other = params->gate };
    return add_step(p, c, &step, error);
}

/* ---- Steps over rows ---------------------------------------------------- */
/* Sets n and the command's own parameters. */
static void set_rows(const struct ak_ocl_table *p, const struct ak_command *c,
                     struct ak_ocl_rows_args *r)
{
    switch (c->op) {
    case AK_OP_NORM:
        r->n = c->params.norm.n;
        r->in_at += c->params.norm.offset;
        r->out_at += c->in == c->out ? c->params.norm.offset : 0;
        r->value = c->params.norm.eps;
        r->flags = (c->params.norm.layer_norm ? AK_OCL_ROWS_LAYER_NORM : 0u) |
                   (c->params.norm.layer_norm && c->vector2 != AK_OP_NONE ? AK_OCL_ROWS_BIAS : 0u);
        break;
    case AK_OP_GATED:
        r->n = c->params.gated.n;
        r->gate_at = c->params.gated.gate_at, r->up_at = c->params.gated.up_at;
        r->flags = (uint32_t)c->params.gated.activation;
        break;
    case AK_OP_ACTIVATE:
        r->n = c->params.activate.n;
        r->flags = (uint32_t)c->params.activate.activation;
        break;
    case AK_OP_ADD:
        r->n = c->params.add.n;
        r->out_at += c->params.add.at;
        r->value = c->params.add.scale;
        break;
    case AK_OP_DIVIDE:
        r->n = c->params.divide.n;
        r->value = c->params.divide.value;
        break;
    case AK_OP_CAP:
        r->n = c->params.cap.n;
        r->value = c->params.cap.value;
        break;
    case AK_OP_ROUTE:
        r->n = c->params.route.n_experts;
        r->used = c->params.route.n_used;
        r->flags = c->params.route.normalized ? AK_OCL_ROWS_NORMALIZED : 0u;
        break;
    case AK_OP_COMBINE:
        r->n = c->params.combine.n;
        r->used = p->spec->config.n_experts_used;
        break;
    case AK_OP_EMBED: r->n = p->spec->config.width; break;
    case AK_OP_FRAMES:
        r->n = c->params.frames.n;
        r->step = c->params.frames.step;
        break;
    case AK_OP_ADD_POSITION:
        r->n = c->params.add_position.n;
        r->vector = (uint32_t)p->o->positions_at;
        break;
    case AK_OP_PREVIOUS: r->n = c->params.previous.n; break;
    case AK_OP_GATHER: r->n = c->params.gather.n; break;
    case AK_OP_SELECT: r->n = c->params.select.n; break;
    case AK_OP_ADD_GATED: r->n = c->params.add_gated.n; break;
    case AK_OP_GUMBEL: r->n = c->params.gumbel.n; break;
    case AK_OP_ARGMAX: r->n = c->params.argmax.n; break;
    /* these have launches of their own, or none */
    case AK_OP_LINEAR:
    case AK_OP_QKV:
    case AK_OP_ATTENTION:
    case AK_OP_SHORT_CONV:
    case AK_OP_CONV:
    case AK_OP_DELTA:
    case AK_OP_NORM_GATED:
    case AK_OP_ALL_GATHER:
    case AK_OP_COLLECT:
    case AK_OP_SEND:
    case AK_OP_RECEIVE:
    case AK_OP_COUNT: break;
    }
}

/* The slot that a command reads besides its input and output. */
static uint32_t other_slot(const struct ak_command *c)
{
    return c->op == AK_OP_COMBINE   ? c->params.combine.routes :
           c->op == AK_OP_ADD_GATED ? c->params.add_gated.gate :
                                      c->out;
}

static ak_status add_rows(struct ak_ocl_table *p, const struct ak_command *c,
                          struct ak_error *error)
{
    static const struct {
        const char *kernel;
        enum ak_ocl_grid grid;
        unsigned arguments;
    } kernels[AK_OP_COUNT] = {
        [AK_OP_EMBED] = { "embed", AK_OCL_ELEMENTS, INPUT | OUT },
        [AK_OP_FRAMES] = { "frames", AK_OCL_ELEMENTS, INPUT | OUT | PASS },
        [AK_OP_ADD_POSITION] = { "add_position", AK_OCL_ELEMENTS, OUT | VECTORS | PASS },
        [AK_OP_PREVIOUS] = { "previous", AK_OCL_ELEMENTS, IN | OUT | PASS },
        [AK_OP_NORM] = { "norm", AK_OCL_GROUPS, IN | OUT | VECTORS },
        [AK_OP_GATED] = { "gated", AK_OCL_ELEMENTS, IN | OUT },
        [AK_OP_ACTIVATE] = { "activate", AK_OCL_ELEMENTS, IN | OUT },
        [AK_OP_ADD] = { "add", AK_OCL_ELEMENTS, IN | OUT },
        [AK_OP_ROUTE] = { "route", AK_OCL_FIXED_GROUPS, IN | OUT | PASS },
        [AK_OP_GATHER] = { "gather", AK_OCL_ELEMENTS, IN | OUT | PASS },
        [AK_OP_COMBINE] = { "combine", AK_OCL_ELEMENTS, IN | OUT | OTHER | PASS },
        [AK_OP_ADD_GATED] = { "add_gated", AK_OCL_GROUPS, IN | OUT | OTHER | VECTORS },
        [AK_OP_SELECT] = { "select_rows", AK_OCL_ELEMENTS, IN | OUT | PASS },
        [AK_OP_DIVIDE] = { "divide", AK_OCL_ELEMENTS, OUT },
        [AK_OP_CAP] = { "cap", AK_OCL_ELEMENTS, OUT },
        [AK_OP_GUMBEL] = { "gumbel", AK_OCL_ELEMENTS, OUT | PASS },
        [AK_OP_ARGMAX] = { "argmax", AK_OCL_GROUPS, IN | SAMPLED },
    };
    struct ak_ocl_rows_args r = rows_of(p, c, 0);
    uint32_t other = other_slot(c);
    set_rows(p, c, &r);
    r.other_at = at_of(p, other);
    r.other_stride = p->table->slots[other].width;
    struct step step = { .kernel = kernels[c->op].kernel,
                         .grid = kernels[c->op].grid,
                         .arguments = kernels[c->op].arguments,
                         .other = other,
                         .params = &r,
                         .bytes = sizeof r,
                         .lines = 1 };
    step.columns = step.grid != AK_OCL_ELEMENTS ? 1 : c->op == AK_OP_PREVIOUS ? r.n / 2 + r.n : r.n;
    if (!step.kernel)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "the opencl backend has no %s",
                       ak_op_name(c->op));
    return add_step(p, c, &step, error);
}

static ak_status add_command(struct ak_ocl_table *p, const struct ak_command *c,
                             struct ak_error *error)
{
    switch (c->op) {
    case AK_OP_LINEAR: return add_linear(p, c, error);
    case AK_OP_QKV: return add_qkv(p, c, error);
    case AK_OP_ATTENTION: return add_attention(p, c, error);
    case AK_OP_SHORT_CONV:
    case AK_OP_CONV: return add_conv(p, c, error);
    case AK_OP_DELTA: return add_delta(p, c, error);
    case AK_OP_NORM_GATED: return add_norm_gated(p, c, error);
    default: return add_rows(p, c, error);
    }
}

ak_status ak_ocl_add_launches(struct ak_ocl_table *p, struct ak_error *error)
{
    bool once = true;
    for (const struct ak_command *c = p->table->commands;
         c < p->table->commands + p->table->n_commands; c++) {
        once = once && c->op != AK_OP_SELECT;
        AK_TRY(add_command(p, c, error));
        if (once)
            p->n_before_logits = p->n_launches;
    }
    return AKUNU_OK;
}
