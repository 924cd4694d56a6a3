/* What one of several ranks computes: its heads, its elements of feed-forward networks, and its
 * rows of all other weights; or its layers. */
#include "engine/spec/model.h"

enum { TILE_ROWS = 16 };

static struct ak_op_shard heads_of(const struct ak_spec *whole, uint32_t unit)
{
    return (struct ak_op_shard){ .n = whole->config.n_heads * unit,
                                 .unit = unit,
                                 .groups = whole->config.n_kv_heads };
}

/* Experts' matrices follow each other tile row by tile row, and ranks divide them there; a rank may
 * have no rows. */
static struct ak_op_shard shard_of_experts(uint32_t n)
{
    return (struct ak_op_shard){ .n = n, .unit = TILE_ROWS };
}

/* Elements of a rank's shard. */
static uint32_t count(struct ak_op_shard shard, uint32_t n_ranks, uint32_t rank)
{
    return ak_op_shard_begin(&shard, n_ranks, rank + 1) - ak_op_shard_begin(&shard, n_ranks, rank);
}

static uint32_t count_elements(uint32_t n, uint32_t n_ranks, uint32_t rank)
{
    return count(ak_op_shard_of(n, n_ranks), n_ranks, rank);
}

/* A rank without any of the `n` parts would have nothing to do. */
static ak_status check_count(uint32_t n_ranks, uint32_t n, const char *part, struct ak_error *error)
{
    if (n_ranks <= n)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "%u ranks are to share the model, which has %u %s%s: expected at most as many "
                   "ranks",
                   (unsigned)n_ranks, (unsigned)n, part, n == 1 ? "" : "s");
}

static ak_status check_layers(const struct ak_spec *whole, uint32_t n_ranks, struct ak_error *error)
{
    if (whole->config.n_encoder_layers > 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "a speech model is not split by layers: its encoder and its decoder both "
                       "have some. It can be split by rows");
    return check_count(n_ranks, whole->config.n_layers, "layer", error);
}

ak_status ak_spec_take_shard(const struct ak_spec *whole, enum akunu_split split, uint32_t n_ranks,
                             uint32_t rank, struct ak_spec *out, struct ak_error *error)
{
    struct ak_spec_config *c = &out->config;
    *out = *whole;
    out->whole = whole;
    out->split = split;
    out->n_ranks = n_ranks;
    out->rank = rank;
    if (n_ranks == 1)
        return AKUNU_OK;
    if (split == AKUNU_SPLIT_LAYERS)
        return check_layers(whole, n_ranks, error);
    AK_TRY(check_count(n_ranks, c->n_heads, "attention head", error));
    if (!whole->descriptor.qk_norm_rows) { /* whose norms need all heads */
        struct ak_op_shard heads = heads_of(whole, 1);
        c->n_heads = count(heads, n_ranks, rank);
        ak_op_shard_groups(&heads, n_ranks, rank, &out->first_kv_head, &c->n_kv_heads);
        out->first_head = ak_op_shard_begin(&heads, n_ranks, rank);
    }
    c->ffn_width = count_elements(c->ffn_width, n_ranks, rank);
    c->expert_width = count(shard_of_experts(c->expert_width), n_ranks, rank);
    c->shared_width = count_elements(c->shared_width, n_ranks, rank);
    return AKUNU_OK;
}

bool ak_spec_is_shared(const struct ak_spec *spec)
{
    return spec->n_ranks > 1;
}

bool ak_spec_has_shards(const struct ak_spec *spec)
{
    return ak_spec_is_shared(spec) && spec->split == AKUNU_SPLIT_ROWS;
}

/* The last rank has one layer less where they do not divide evenly: it has the output. */
static uint32_t layer_begin(const struct ak_spec *spec, uint32_t rank)
{
    uint64_t n = (uint64_t)spec->config.n_layers * rank;
    return (uint32_t)((n + spec->n_ranks - 1) / spec->n_ranks);
}

bool ak_spec_has_layers(const struct ak_spec *spec)
{
    return ak_spec_is_shared(spec) && spec->split == AKUNU_SPLIT_LAYERS;
}

uint32_t ak_spec_first_layer(const struct ak_spec *spec)
{
    return ak_spec_has_layers(spec) ? layer_begin(spec, spec->rank) : 0;
}

uint32_t ak_spec_end_layer(const struct ak_spec *spec)
{
    return ak_spec_has_layers(spec) ? layer_begin(spec, spec->rank + 1) : spec->config.n_layers;
}

bool ak_spec_has_output(const struct ak_spec *spec)
{
    return !ak_spec_has_layers(spec) || spec->rank + 1 == spec->n_ranks;
}

bool ak_spec_has_weight(const struct ak_spec *spec, enum ak_role role, int layer)
{
    if (!ak_spec_has_layers(spec) || ak_role_is_vector(role))
        return true; /* vectors: few bytes */
    if (role == AK_ROLE_OUTPUT)
        return ak_spec_has_output(spec);
    return !ak_role_has_layer(role) ||
           (layer >= (int)ak_spec_first_layer(spec) && layer < (int)ak_spec_end_layer(spec));
}

bool ak_spec_shard(const struct ak_spec *spec, enum ak_spec_dim dim, struct ak_op_shard *out)
{
    uint32_t n_ranks = spec->n_ranks;
    if (!ak_spec_has_shards(spec) ||
        (spec->whole->descriptor.qk_norm_rows &&
         (dim == AK_SPEC_DIM_Q || dim == AK_SPEC_DIM_KV || dim == AK_SPEC_DIM_HEADS)))
        return false;
    switch (dim) {
    case AK_SPEC_DIM_HEADS: *out = heads_of(spec->whole, 1); return true;
    case AK_SPEC_DIM_Q: *out = heads_of(spec->whole, spec->config.head_dim); return true;
    case AK_SPEC_DIM_Q_GATED: *out = heads_of(spec->whole, 2 * spec->config.head_dim); return true;
    case AK_SPEC_DIM_EXPERT: *out = shard_of_experts(spec->whole->config.expert_width); return true;
    case AK_SPEC_DIM_FFN:
    case AK_SPEC_DIM_SHARED:
        *out = ak_op_shard_of(ak_spec_dim(spec->whole, dim), n_ranks);
        return true;
    default: return false;
    }
}

enum ak_op_shards ak_spec_shards(const struct ak_spec *spec, enum ak_op_linear linear)
{
    enum ak_op_shards shards = ak_op_linear_info(linear)->shards;
    if (!ak_spec_has_shards(spec))
        return AK_OP_SHARDS_NONE;
    return linear == AK_OP_LINEAR_QKV && spec->descriptor.qk_norm_rows ? AK_OP_SHARDS_GATHERED :
                                                                         shards;
}

struct ak_op_shard ak_spec_shard_of(const struct ak_spec *spec, enum ak_op_linear linear,
                                    uint32_t n)
{
    bool is_experts = ak_role_is_expert(ak_op_linear_info(linear)->parts[0].weight);
    return is_experts ? shard_of_experts(n) : ak_op_shard_of(n, spec->n_ranks);
}

void ak_spec_shard_rows(const struct ak_spec *spec, enum ak_op_linear linear, enum ak_spec_dim dim,
                        uint32_t n, uint32_t *first, uint32_t *n_rows)
{
    enum ak_op_shards shards = ak_spec_shards(spec, linear);
    struct ak_op_shard shard = ak_spec_shard_of(spec, linear, n);
    *first = 0;
    *n_rows = n;
    if (shards == AK_OP_SHARDS_NONE)
        return;
    if (shards == AK_OP_SHARDS_KEPT && dim == AK_SPEC_DIM_KV) {
        *first = spec->first_kv_head * spec->config.head_dim;
        *n_rows = spec->config.n_kv_heads * spec->config.head_dim;
        return;
    }
    if (shards == AK_OP_SHARDS_KEPT)
        (void)ak_spec_shard(spec, dim, &shard);
    *first = ak_op_shard_begin(&shard, spec->n_ranks, spec->rank);
    *n_rows = count(shard, spec->n_ranks, spec->rank);
}
