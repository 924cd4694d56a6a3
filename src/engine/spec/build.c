/* Builds the flat command list from an architecture's calls; build_ranks.c adds what ranks need. A
 * slot's first and last use are known here; engine/dispatch/table.c plans its offset afterwards. */
#include "engine/spec/builder.h"

#include "base/mem.h"
#include "engine/spec/model.h"
#include "base/array.h"

static uint32_t find_vector(const struct ak_builder *b, enum ak_role role, int layer)
{
    return b->map->find_vector(b->map->weights, role, layer);
}

/* Doubles an array that is full. */
static bool grow_array(struct ak_builder *b, void **array, uint32_t n, uint32_t *capacity,
                       size_t size)
{
    if (ak_reserve_u32(array, capacity, n, 1, size))
        return true;
    b->status = ak_fail_memory(b->error, "the dispatch table", 0);
    return false;
}

ak_build_value ak_builder_add_slot(struct ak_builder *b, uint32_t width, enum ak_op_row_set row_set)
{
    struct ak_build_list *list = b->list;
    if (b->status != AKUNU_OK || !grow_array(b, (void **)&list->slots, list->n_slots,
                                             &b->slot_capacity, sizeof *list->slots))
        return 0;
    list->slots[list->n_slots] =
        (struct ak_op_slot){ .width = (uint32_t)ak_round_up(width, AK_BUILDER_SLOT_ALIGN),
                             .row_set = row_set,
                             .first_use = list->n_commands,
                             .last_use = list->n_commands };
    return list->n_slots++;
}

ak_build_value ak_builder_add(struct ak_builder *b, struct ak_command command)
{
    struct ak_build_list *list = b->list;
    if (b->status != AKUNU_OK || !grow_array(b, (void **)&list->commands, list->n_commands,
                                             &b->command_capacity, sizeof *list->commands))
        return 0;
    if (command.in != AK_OP_NONE)
        list->slots[command.in].last_use = list->n_commands;
    list->slots[command.out].last_use = list->n_commands;
    list->commands[list->n_commands++] = command;
    return command.out;
}

struct ak_command ak_builder_command(enum ak_op op, int layer, ak_build_value in,
                                     ak_build_value out)
{
    return (struct ak_command){ .op = op,
                                .layer = layer,
                                .in = in,
                                .out = out,
                                .weight = AK_OP_NONE,
                                .vector = AK_OP_NONE,
                                .vector2 = AK_OP_NONE };
}

/* After a failure there are no slots. */
static uint32_t width_of(const struct ak_builder *b, ak_build_value v)
{
    return b->status == AKUNU_OK ? b->list->slots[v].width : 0;
}

enum ak_op_row_set ak_builder_row_set(const struct ak_builder *b, ak_build_value v)
{
    return b->status == AKUNU_OK ? b->list->slots[v].row_set : AK_OP_ROWS_TOKENS;
}

ak_build_value ak_build_embed(struct ak_builder *b, float scale)
{
    if (ak_spec_first_layer(b->spec) > 0)
        return ak_builder_receive(b);
    ak_build_value out = ak_builder_add_slot(b, b->spec->config.width, AK_OP_ROWS_TOKENS);
    struct ak_command c = ak_builder_command(AK_OP_EMBED, AK_ROLE_NO_LAYER, AK_OP_NONE, out);
    c.params.embed =
        (struct ak_op_embed_params){ .scale = scale,
                                     .types = b->map->types,
                                     .positions = b->map->positions,
                                     .first_position = b->spec->config.first_position };
    return ak_builder_add(b, c);
}

ak_build_value ak_build_frames(struct ak_builder *b, uint32_t step, uint32_t n)
{
    ak_build_value out = ak_builder_add_slot(b, n, AK_OP_ROWS_TOKENS);
    struct ak_command c = ak_builder_command(AK_OP_FRAMES, AK_ROLE_NO_LAYER, AK_OP_NONE, out);
    c.params.frames = (struct ak_op_frames_params){ .step = step, .n = n };
    return ak_builder_add(b, c);
}

void ak_build_add_position(struct ak_builder *b, ak_build_value x)
{
    struct ak_command c = ak_builder_command(AK_OP_ADD_POSITION, AK_ROLE_NO_LAYER, x, x);
    c.params.add_position.n = b->spec->config.width;
    ak_builder_add(b, c);
}

ak_build_value ak_build_previous(struct ak_builder *b, ak_build_value x, uint32_t n)
{
    ak_build_value out = ak_builder_add_slot(b, n / 2 + n, ak_builder_row_set(b, x));
    struct ak_command c = ak_builder_command(AK_OP_PREVIOUS, AK_ROLE_NO_LAYER, x, out);
    c.params.previous.n = n;
    return ak_builder_add(b, c);
}

ak_build_value ak_build_norm(struct ak_builder *b, ak_build_value x, enum ak_role weight, int layer,
                             float eps)
{
    ak_build_value out = ak_builder_add_slot(b, width_of(b, x), ak_builder_row_set(b, x));
    struct ak_command c = ak_builder_command(AK_OP_NORM, layer, x, out);
    c.vector = find_vector(b, weight, layer);
    c.params.norm = (struct ak_op_norm_params){ .eps = eps, .n = b->spec->config.width };
    return ak_builder_add(b, c);
}

ak_build_value ak_build_layer_norm(struct ak_builder *b, ak_build_value x, enum ak_role weight,
                                   enum ak_role bias, int layer, float eps)
{
    ak_build_value out = ak_builder_add_slot(b, width_of(b, x), ak_builder_row_set(b, x));
    struct ak_command c = ak_builder_command(AK_OP_NORM, layer, x, out);
    c.vector = find_vector(b, weight, layer);
    c.vector2 = find_vector(b, bias, layer);
    c.params.norm =
        (struct ak_op_norm_params){ .eps = eps, .n = b->spec->config.width, .layer_norm = true };
    return ak_builder_add(b, c);
}

bool ak_build_has_vector(const struct ak_builder *b, enum ak_role vector, int layer)
{
    return find_vector(b, vector, layer) != AK_OP_NONE;
}

void ak_build_norm_part(struct ak_builder *b, ak_build_value x, enum ak_op_linear linear,
                        uint32_t part, enum ak_role weight, int layer, float eps)
{
    struct ak_command c = ak_builder_command(AK_OP_NORM, layer, x, x);
    c.vector = find_vector(b, weight, layer);
    c.params.norm =
        (struct ak_op_norm_params){ .eps = eps,
                                    .offset = ak_build_part_offset(b, linear, layer, part),
                                    .n = b->map->vector_elems(b->map->weights, c.vector) };
    ak_builder_add(b, c);
}

/* Emits y += scale · b · (a · x) for each adapter of an operator. The products with x come first,
 * so that they share the activations of the operator's own. */
static void add_adapters(struct ak_builder *b, ak_build_value x, ak_build_value y,
                         enum ak_op_linear linear, int layer)
{
    const struct ak_weight_map *map = b->map;
    struct ak_weight_adapter adapter;
    uint32_t last = AK_OP_NONE; /* parts of a merged tensor share their a */
    ak_build_value first = b->list->n_slots;
    if (!map->linear_adapter)
        return;
    for (uint32_t i = 0; map->linear_adapter(map->weights, linear, layer, i, &adapter); i++) {
        if (adapter.a == last)
            continue;
        struct ak_command c = ak_builder_command(
            AK_OP_LINEAR, layer, x, ak_builder_add_slot(b, adapter.rank, ak_builder_row_set(b, x)));
        c.weight = last = adapter.a;
        ak_builder_add(b, c);
    }
    last = AK_OP_NONE;
    for (uint32_t i = 0; map->linear_adapter(map->weights, linear, layer, i, &adapter); i++) {
        first += last != AK_OP_NONE && adapter.a != last;
        last = adapter.a;
        ak_build_value z = ak_builder_add_slot(b, adapter.n, ak_builder_row_set(b, x));
        struct ak_command c = ak_builder_command(AK_OP_LINEAR, layer, first, z);
        c.weight = adapter.b;
        ak_builder_add(b, c);
        c = ak_builder_command(AK_OP_ADD, layer, z, y);
        c.params.add = (struct ak_op_add_params){ .scale = adapter.scale,
                                                  .at = adapter.offset,
                                                  .n = adapter.n };
        ak_builder_add(b, c);
    }
}

ak_build_value ak_build_linear(struct ak_builder *b, ak_build_value x, enum ak_op_linear linear,
                               int layer)
{
    const struct ak_weight_map *map = b->map;
    uint32_t first, n = map->find_linear(map->weights, linear, layer, &first);
    x = ak_builder_gather_input(b, x, linear, layer);
    ak_build_value out = ak_builder_add_slot(b, map->linear_width(map->weights, linear, layer),
                                             ak_builder_row_set(b, x));
    for (uint32_t i = first; i < first + n; i++) {
        struct ak_weight_part part;
        (void)map->linear_part(map->weights, i, 0, &part);
        struct ak_command c = ak_builder_command(AK_OP_LINEAR, layer, x, out);
        c.weight = i;
        c.vector = part.bias;
        c.params.linear.offset = part.offset;
        ak_builder_add(b, c);
    }
    add_adapters(b, x, out, linear, layer);
    return ak_builder_gather_output(b, out, linear, layer);
}

/* Finds a part of a linear operator. False: the model has no such part. */
static bool find_part(const struct ak_builder *b, enum ak_op_linear linear, int layer,
                      uint32_t part, struct ak_weight_part *out)
{
    const struct ak_weight_map *map = b->map;
    enum ak_role role = ak_op_linear_info(linear)->parts[part].weight;
    bool is_gathered = ak_spec_shards(b->spec, linear) == AK_OP_SHARDS_GATHERED;
    uint32_t first, n = map->find_linear(map->weights, linear, layer, &first), at = 0;
    for (uint32_t i = first; i < first + n; i++)
        for (uint32_t j = 0; map->linear_part(map->weights, i, j, out); j++) {
            out->offset = is_gathered ? at : out->offset;
            if (out->role == role)
                return true;
            at += (uint32_t)ak_round_up(out->n, AK_BUILDER_SLOT_ALIGN);
        }
    return false;
}

static bool has_part(const struct ak_builder *b, enum ak_op_linear linear, int layer, uint32_t part)
{
    struct ak_weight_part found;
    return find_part(b, linear, layer, part, &found);
}

uint32_t ak_build_part_offset(const struct ak_builder *b, enum ak_op_linear linear, int layer,
                              uint32_t part)
{
    struct ak_weight_part found;
    return find_part(b, linear, layer, part, &found) ? found.offset : 0;
}

/* Elements from one head's q to the next. Gated attention: each head's gate follows its q. */
static uint32_t q_step(const struct ak_builder *b, uint32_t head_dim)
{
    return b->spec->descriptor.gated_attention ? 2 * head_dim : head_dim;
}

/* Layers of an encoder beside a decoder share one layer of the KV cache. */
static uint32_t kv_layer(const struct ak_builder *b, enum ak_op_linear linear, int layer)
{
    return linear == AK_OP_LINEAR_ENCODER_QKV ? 0 : ak_spec_kv_layer(b->spec, layer);
}

void ak_build_qkv(struct ak_builder *b, ak_build_value qkv, enum ak_op_linear linear, int layer,
                  bool norm_heads, struct ak_op_qkv_params params)
{
    uint32_t k = ak_op_linear_info(linear)->n_parts - 2; /* the part with the keys */
    struct ak_command c = ak_builder_command(AK_OP_QKV, layer, qkv, qkv);
    if (norm_heads) {
        c.vector = find_vector(b, AK_ROLE_ATTENTION_Q_NORM, layer);
        c.vector2 = find_vector(b, AK_ROLE_ATTENTION_K_NORM, layer);
    }
    c.params.qkv = params;
    c.params.qkv.q_at = ak_build_part_offset(b, linear, layer, 0);
    c.params.qkv.k_at = ak_build_part_offset(b, linear, layer, k);
    c.params.qkv.v_at = ak_build_part_offset(b, linear, layer, k + 1);
    c.params.qkv.q_step = q_step(b, params.head_dim);
    c.params.qkv.kv_layer = kv_layer(b, linear, layer);
    ak_builder_add(b, c);
}

ak_build_value ak_build_attention(struct ak_builder *b, ak_build_value qkv,
                                  enum ak_op_linear linear, int layer,
                                  struct ak_op_attention_params params)
{
    ak_build_value out =
        ak_builder_add_slot(b, params.n_heads * params.head_dim, ak_builder_row_set(b, qkv));
    struct ak_command c = ak_builder_command(AK_OP_ATTENTION, layer, qkv, out);
    c.params.attention = params;
    c.params.attention.q_at = ak_build_part_offset(b, linear, layer, 0);
    c.params.attention.q_step = q_step(b, params.head_dim);
    c.params.attention.gated = b->spec->descriptor.gated_attention;
    c.params.attention.kv_layer = kv_layer(b, linear, layer);
    c.vector = find_vector(b, AK_ROLE_ATTENTION_SINKS, layer);
    return ak_builder_add(b, c);
}

ak_build_value ak_build_short_conv(struct ak_builder *b, ak_build_value in, int layer,
                                   uint32_t taps)
{
    uint32_t n = b->spec->config.width;
    ak_build_value out = ak_builder_add_slot(b, n, ak_builder_row_set(b, in));
    struct ak_command c = ak_builder_command(AK_OP_SHORT_CONV, layer, in, out);
    c.vector = find_vector(b, AK_ROLE_CONV_KERNEL, layer);
    c.params.short_conv = (struct ak_op_short_conv_params){
        .n = n, .taps = taps, .state_at = ak_spec_state_offset(b->spec, layer)
    };
    return ak_builder_add(b, c);
}

/* Adds a command that also reads `other`. */
static ak_build_value add_reading_command(struct ak_builder *b, struct ak_command command,
                                          ak_build_value other)
{
    ak_build_value out = ak_builder_add(b, command);
    if (b->status == AKUNU_OK)
        b->list->slots[other].last_use = b->list->n_commands - 1;
    return out;
}

/* ---- Gated delta rule --------------------------------------------------- */
/* Where DELTA_IN's output has q, k, v and z: one after another or, in models with one merged
 * matrix, those of each key head side by side. */
struct delta_parts {
    struct ak_op_conv_part qkv[AK_OP_CONV_PARTS], z; /* n: elements per key head */
};

static struct delta_parts find_delta_parts(const struct ak_builder *b, int layer)
{
    const struct ak_spec_config *config = &b->spec->config;
    uint32_t values = config->delta_v_heads / config->delta_k_heads * config->delta_v_dim,
             widths[] = { config->delta_k_dim, config->delta_k_dim, values, values };
    bool is_merged = has_part(b, AK_OP_LINEAR_DELTA_IN, layer, 0);
    uint32_t at = ak_build_part_offset(b, AK_OP_LINEAR_DELTA_IN, layer, is_merged ? 0 : 1);
    struct ak_op_conv_part parts[AK_OP_CONV_PARTS + 1];
    for (int i = 0; i <= AK_OP_CONV_PARTS; i++) {
        if (i == AK_OP_CONV_PARTS && !is_merged)
            at = ak_build_part_offset(b, AK_OP_LINEAR_DELTA_IN, layer, 2);
        parts[i] =
            (struct ak_op_conv_part){ .offset = at,
                                      .step = is_merged ? 2 * (config->delta_k_dim + values) :
                                                          widths[i],
                                      .n = widths[i] };
        at += is_merged ? widths[i] : widths[i] * config->delta_k_heads;
    }
    return (struct delta_parts){ { parts[0], parts[1], parts[2] }, parts[3] };
}

ak_build_value ak_build_conv(struct ak_builder *b, ak_build_value in, int layer)
{
    struct delta_parts parts = find_delta_parts(b, layer);
    uint32_t n = ak_spec_dim(b->spec, AK_SPEC_DIM_DELTA_QKV);
    ak_build_value out = ak_builder_add_slot(b, n, ak_builder_row_set(b, in));
    struct ak_command c = ak_builder_command(AK_OP_CONV, layer, in, out);
    c.vector = find_vector(b, AK_ROLE_DELTA_KERNEL, layer);
    c.params.conv =
        (struct ak_op_conv_params){ .n = n,
                                    .taps = b->spec->config.conv_taps,
                                    .n_groups = b->spec->config.delta_k_heads,
                                    .parts = { parts.qkv[0], parts.qkv[1], parts.qkv[2] },
                                    .state_at = ak_spec_state_offset(b->spec, layer) };
    return ak_builder_add(b, c);
}

ak_build_value ak_build_delta(struct ak_builder *b, ak_build_value qkv, ak_build_value gates,
                              int layer)
{
    const struct ak_spec_config *config = &b->spec->config;
    uint32_t per_group = config->delta_v_heads / config->delta_k_heads;
    bool is_merged = has_part(b, AK_OP_LINEAR_DELTA_GATES, layer, 0);
    ak_build_value out = ak_builder_add_slot(b, ak_spec_dim(b->spec, AK_SPEC_DIM_DELTA_V),
                                             ak_builder_row_set(b, qkv));
    struct ak_command c = ak_builder_command(AK_OP_DELTA, layer, qkv, out);
    c.vector = find_vector(b, AK_ROLE_DELTA_DECAY, layer);
    c.vector2 = find_vector(b, AK_ROLE_DELTA_ALPHA_BIAS, layer);
    c.params.delta = (struct ak_op_delta_params){
        .n_k_heads = config->delta_k_heads,
        .n_v_heads = config->delta_v_heads,
        .k_dim = config->delta_k_dim,
        .v_dim = config->delta_v_dim,
        .gates = gates,
        .beta_at = ak_build_part_offset(b, AK_OP_LINEAR_DELTA_GATES, layer, is_merged ? 0 : 1),
        .alpha_at =
            is_merged ? per_group : ak_build_part_offset(b, AK_OP_LINEAR_DELTA_GATES, layer, 2),
        .gate_step = is_merged ? 2 * per_group : per_group,
        .tiled = b->spec->descriptor.delta_tiled,
        .state_at = ak_spec_state_offset(b->spec, layer) + ak_spec_conv_elems(b->spec)
    };
    return add_reading_command(b, c, gates);
}

ak_build_value ak_build_norm_gated(struct ak_builder *b, ak_build_value heads, ak_build_value in,
                                   int layer, float eps)
{
    const struct ak_spec_config *config = &b->spec->config;
    struct ak_op_conv_part z = find_delta_parts(b, layer).z;
    ak_build_value out = ak_builder_add_slot(b, width_of(b, heads), ak_builder_row_set(b, heads));
    struct ak_command c = ak_builder_command(AK_OP_NORM_GATED, layer, heads, out);
    c.vector = find_vector(b, AK_ROLE_DELTA_NORM, layer);
    c.params.norm_gated = (struct ak_op_norm_gated_params){ .eps = eps,
                                                            .n_heads = config->delta_v_heads,
                                                            .n = config->delta_v_dim,
                                                            .gate = in,
                                                            .gate_at = z.offset,
                                                            .gate_step = z.step,
                                                            .per_group = config->delta_v_heads /
                                                                         config->delta_k_heads };
    return add_reading_command(b, c, in);
}

ak_build_value ak_build_gated(struct ak_builder *b, ak_build_value gate_up,
                              enum ak_op_linear linear, int layer, enum ak_op_activation activation,
                              uint32_t n)
{
    ak_build_value out = ak_builder_add_slot(b, n, ak_builder_row_set(b, gate_up));
    struct ak_command c = ak_builder_command(AK_OP_GATED, layer, gate_up, out);
    c.params.gated =
        (struct ak_op_gated_params){ .activation = activation,
                                     .n = n,
                                     .gate_at = ak_build_part_offset(b, linear, layer, 0),
                                     .up_at = ak_build_part_offset(b, linear, layer, 1) };
    return ak_builder_add(b, c);
}

void ak_build_activate(struct ak_builder *b, ak_build_value x, int layer,
                       enum ak_op_activation activation, uint32_t n)
{
    struct ak_command c = ak_builder_command(AK_OP_ACTIVATE, layer, x, x);
    if (activation == AK_OP_ACTIVATION_SWIGLU_CLAMPED && b->status == AKUNU_OK)
        b->status = ak_fail(b->error, AKUNU_ERROR_UNSUPPORTED,
                            "the clamped SwiGLU is supported only with a gate");
    c.params.activate = (struct ak_op_activate_params){ .activation = activation, .n = n };
    ak_builder_add(b, c);
}

ak_build_value ak_build_route(struct ak_builder *b, ak_build_value logits, int layer,
                              struct ak_op_route_params params)
{
    ak_build_value out = ak_builder_add_slot(b, 2 * params.n_used, ak_builder_row_set(b, logits));
    struct ak_command c = ak_builder_command(AK_OP_ROUTE, layer, logits, out);
    c.params.route = params;
    return ak_builder_add(b, c);
}

ak_build_value ak_build_gather(struct ak_builder *b, ak_build_value x, ak_build_value routes,
                               int layer)
{
    ak_build_value out = ak_builder_add_slot(b, width_of(b, x), AK_OP_ROWS_EXPERTS);
    struct ak_command c = ak_builder_command(AK_OP_GATHER, layer, x, out);
    c.params.gather = (struct ak_op_gather_params){ .routes = routes, .n = b->spec->config.width };
    return add_reading_command(b, c, routes);
}

void ak_build_combine(struct ak_builder *b, ak_build_value x, ak_build_value rows,
                      ak_build_value routes, int layer)
{
    uint32_t n;
    ak_build_value sums = ak_builder_place_sums(b, x, &n);
    struct ak_command c = ak_builder_command(AK_OP_COMBINE, layer, rows, sums);
    c.params.combine = (struct ak_op_combine_params){ .routes = routes, .n = n };
    add_reading_command(b, c, routes);
    ak_builder_gather_sums(b, sums, x, layer);
}

void ak_build_add_gated(struct ak_builder *b, ak_build_value x, ak_build_value y, ak_build_value h,
                        enum ak_role vector, int layer)
{
    struct ak_command c = ak_builder_command(AK_OP_ADD_GATED, layer, y, x);
    c.vector = find_vector(b, vector, layer);
    c.params.add_gated = (struct ak_op_add_gated_params){ .gate = h, .n = b->spec->config.width };
    add_reading_command(b, c, h);
}

void ak_build_add(struct ak_builder *b, ak_build_value x, ak_build_value y, float scale)
{
    struct ak_command c = ak_builder_command(AK_OP_ADD, AK_ROLE_NO_LAYER, y, x);
    c.params.add = (struct ak_op_add_params){ .scale = scale, .n = b->spec->config.width };
    ak_builder_add(b, c);
}

ak_build_value ak_build_select(struct ak_builder *b, ak_build_value x)
{
    ak_build_value out = ak_builder_add_slot(b, width_of(b, x), AK_OP_ROWS_LOGITS);
    struct ak_command c = ak_builder_command(AK_OP_SELECT, AK_ROLE_NO_LAYER, x, out);
    c.params.select.n = b->spec->config.width;
    return ak_builder_add(b, c);
}

/* Makes a command that changes the logits in place. */
static struct ak_command logits_command(const struct ak_builder *b, enum ak_op op)
{
    return ak_builder_command(op, AK_ROLE_NO_LAYER, b->list->logits, b->list->logits);
}

void ak_build_hidden(struct ak_builder *b, ak_build_value x)
{
    if (!ak_spec_has_shards(b->spec)) /* else all ranks have them */
        x = ak_builder_collect(b, x, b->spec->config.width);
    b->list->logits = x;
    b->list->sampled = AK_OP_NONE;
}

void ak_build_logits(struct ak_builder *b, ak_build_value x, float divisor, float cap)
{
    struct ak_build_list *list = b->list;
    uint32_t n = b->spec->config.vocab_size;
    struct ak_command c;
    if (b->variant == AK_BUILD_HIDDEN) {
        ak_build_hidden(b, x);
        return;
    }
    if (ak_spec_has_output(b->spec))
        x = ak_build_linear(b, x, AK_OP_LINEAR_OUTPUT, AK_ROLE_NO_LAYER);
    list->logits = ak_builder_collect(b, x, n);
    list->sampled = AK_OP_NONE;
    if (b->spec->rank > 0)
        return;
    if (divisor != 1.0f) {
        c = logits_command(b, AK_OP_DIVIDE);
        c.params.divide = (struct ak_op_divide_params){ .value = divisor, .n = n };
        ak_builder_add(b, c);
    }
    if (cap > 0.0f) {
        c = logits_command(b, AK_OP_CAP);
        c.params.cap = (struct ak_op_cap_params){ .value = cap, .n = n };
        ak_builder_add(b, c);
    }
    if (b->variant != AK_BUILD_SAMPLED)
        return;
    c = logits_command(b, AK_OP_GUMBEL);
    c.params.gumbel.n = n;
    ak_builder_add(b, c);
    list->sampled = ak_builder_add_slot(b, 1, AK_OP_ROWS_LOGITS);
    c = ak_builder_command(AK_OP_ARGMAX, AK_ROLE_NO_LAYER, list->logits, list->sampled);
    c.params.argmax.n = n;
    ak_builder_add(b, c);
}

ak_status ak_build_commands(const struct ak_spec *spec, const struct ak_weight_map *weights,
                            enum ak_build_variant variant, struct ak_build_list *out,
                            struct ak_error *error)
{
    *out = (struct ak_build_list){ 0 };
    struct ak_builder b = {
        .spec = spec, .map = weights, .list = out, .variant = variant, .error = error
    };
    (variant == AK_BUILD_ENCODED ? spec->arch->emit_encoder : spec->arch->emit)(&b, spec);
    if (b.status != AKUNU_OK) {
        ak_free(out->commands);
        ak_free(out->slots);
        *out = (struct ak_build_list){ 0 };
        return b.status;
    }
    /* the caller reads these slots after the pass */
    out->slots[out->logits].last_use = out->n_commands;
    if (out->sampled != AK_OP_NONE)
        out->slots[out->sampled].last_use = out->n_commands;
    return AKUNU_OK;
}
