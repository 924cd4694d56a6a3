/* Binds LoRA adapters: finds the part of a packed weight that each pair of matrices adds to, and
 * adds both as weights of their own, float32 and used in place. The model's weights stay as they
 * are. */
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "engine/pack/pack.h"
#include "engine/spec/arch.h"

/* Rows of a, and columns of b, are padded with zeros to whole groups of rows. */
enum { RANK_ALIGN = 16, RANK_MAX = 1 << 16 };

/* Matrices of one pair, with the parts of a merged tensor cut out of b. */
struct ak_pack_adapter_block {
    struct ak_pack_adapter_block *next;
    float *values;
    uint32_t n_views;
    struct ak_view views[1 + AK_OP_LINEAR_PARTS_MAX]; /* a, then b of each part */
};

/* State of adding one pair. */
struct adding {
    struct ak_weights *w;
    const struct ak_spec *spec;
    const struct ak_adapter *adapter;
    const struct ak_adapter_pair *pair;
    float scale;
    enum ak_role role;
    int layer;
    char shown[AK_SHOW_BYTES]; /* name of the weight, for messages */
    uint32_t n_targets;
    struct target {
        enum ak_role role;
        uint32_t packed, part;
        uint32_t first, rows; /* rows of b, and how many of them this rank has */
        uint32_t first_row;   /* the rank's first one, from `first` on */
    } targets[AK_OP_LINEAR_PARTS_MAX];
    uint64_t n_rows, n_own_rows; /* of all targets; those of this rank */
    struct ak_error *error;
};

/* ---- What it adds to ---------------------------------------------------- */
static ak_status fail_unknown(const struct adding *p)
{
    const struct ak_text *architecture = &p->spec->config.architecture;
    return ak_fail(p->error, AKUNU_ERROR_UNSUPPORTED,
                   "%s: a model of the architecture \"%.*s\" has no such weight to adapt", p->shown,
                   (int)(architecture->n < 64 ? architecture->n : 64), architecture->bytes);
}

static ak_status fail_experts(const struct adding *p)
{
    return ak_fail(p->error, AKUNU_ERROR_UNSUPPORTED, "%s: adapters of experts are not supported",
                   p->shown);
}

static ak_status find_role(struct adding *p)
{
    const char *name = p->pair->name;
    if (strstr(name, ".experts."))
        return fail_experts(p);
    bool found = p->adapter->naming == AK_PROVIDER_NAMING_GGUF ?
                     ak_gguf_role(name, &p->role, &p->layer) :
                     ak_arch_find_role(p->spec->arch, name, &p->role, &p->layer);
    if (!found)
        return fail_unknown(p);
    if (ak_role_kind(p->role) == AK_ROLE_KIND_EXPERTS)
        return fail_experts(p);
    if (p->role == AK_ROLE_TOKEN_EMBEDDING)
        return ak_fail(p->error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: adapters of the embedding are not supported", p->shown);
    return AKUNU_OK;
}

/* Adds the packed part of a role as a target; false: the model has none. */
static bool add_target(struct adding *p, enum ak_role role)
{
    for (uint32_t i = 0; i < p->w->n_packed; i++) {
        const struct ak_pack_weight *packed = &p->w->packed[i];
        for (uint32_t j = 0; packed->layer == p->layer && j < packed->n_parts; j++) {
            if (packed->linear == AK_OP_LINEAR_ADAPTER || packed->parts[j].role != role)
                continue;
            const struct ak_pack_part *part = &packed->parts[j];
            p->targets[p->n_targets++] =
                (struct target){ role, i, j, (uint32_t)p->n_rows, part->rows, part->first_row };
            p->n_rows += part->all_rows;
            p->n_own_rows += part->rows;
            return true;
        }
    }
    return false;
}

/* The role's own part, else the parts of the merged tensor that it names. */
static ak_status find_targets(struct adding *p)
{
    const struct ak_arch *arch = p->spec->arch;
    if (add_target(p, p->role))
        return AKUNU_OK;
    for (uint32_t i = 0; i < arch->n_merged_tensors; i++) {
        const struct ak_arch_merged_tensor *merged = &arch->merged_tensors[i];
        if (merged->stored != p->role)
            continue;
        for (uint32_t j = 0; j < merged->n_parts; j++)
            if (!add_target(p, merged->parts[j]))
                return fail_unknown(p);
        return AKUNU_OK;
    }
    return fail_unknown(p);
}

static ak_status check_shape(const struct adding *p)
{
    const struct ak_pack_weight *packed = &p->w->packed[p->targets[0].packed];
    uint64_t rank = ak_adapter_rows(&p->pair->a), cols = ak_adapter_cols(&p->pair->a),
             rows = ak_adapter_rows(&p->pair->b);
    if (rank > RANK_MAX)
        return ak_fail(p->error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: the adapter has the rank %llu; expected at most %d", p->shown,
                       (unsigned long long)rank, (int)RANK_MAX);
    if (rows == p->n_rows && cols == packed->cols)
        return AKUNU_OK;
    return ak_fail(p->error, AKUNU_ERROR_FORMAT,
                   "%s: the adapter is for a weight of %llu × %llu; the model's is %llu × %u",
                   p->shown, (unsigned long long)rows, (unsigned long long)cols,
                   (unsigned long long)p->n_rows, packed->cols);
}

/* ---- Order of rows ------------------------------------------------------ */
/* Row of Hugging Face's order that GGUF has at `row`: in GGUF the two rows of a rotated pair are
 * neighbors. */
static uint32_t hf_row(uint32_t row, uint32_t head_dim)
{
    uint32_t in_head = row % head_dim;
    return row - in_head + in_head % 2 * (head_dim / 2) + in_head / 2;
}

static bool is_reordered(const struct adding *p, enum ak_role role)
{
    return p->adapter->naming != p->spec->config.naming && p->spec->arch->gguf_interleaved &&
           (role == AK_ROLE_ATTENTION_Q || role == AK_ROLE_ATTENTION_K);
}

/* Between the naming conventions, rows of some weights are in another order. */
static ak_status check_order(const struct adding *p)
{
    const struct ak_spec_config *c = &p->spec->config;
    if (p->adapter->naming == c->naming)
        return AKUNU_OK;
    bool partly_turned = p->spec->arch->gguf_interleaved && c->rope_dims != c->head_dim,
         tiled = p->spec->arch->gguf_tiled && c->delta_v_heads > c->delta_k_heads;
    if (partly_turned || tiled)
        return ak_fail(p->error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: GGUF has other rows than Hugging Face in models of this architecture; "
                       "expected an adapter and a model of the same kind",
                       p->shown);
    return AKUNU_OK;
}

/* ---- Values ------------------------------------------------------------- */
static struct ak_view make_view(float *values, uint32_t rows, uint32_t cols)
{
    return (struct ak_view){ .type = AK_QUANT_F32,
                             .rows = rows,
                             .cols = cols,
                             .plane = { { values, (uint64_t)rows * cols * sizeof *values } },
                             .name = ak_op_linear_info(AK_OP_LINEAR_ADAPTER)->name,
                             .n_dims = 2 };
}

/* Allocates the values of a and of b's parts, with their views. */
static ak_status add_block(const struct adding *p, uint32_t rank,
                           struct ak_pack_adapter_block **out)
{
    uint32_t cols = p->w->packed[p->targets[0].packed].cols;
    uint64_t n = (uint64_t)rank * (cols + p->n_own_rows), bytes = n * sizeof(float);
    struct ak_pack_adapter_block *block = ak_alloc(1, sizeof *block);
    float *values = block && bytes <= SIZE_MAX / 2 ? ak_alloc_aligned((size_t)bytes) : NULL;
    if (!values) {
        ak_free(block);
        return ak_fail_memory(p->error, "an adapter", bytes);
    }
    *block = (struct ak_pack_adapter_block){ .next = p->w->adapter_blocks, .values = values };
    p->w->adapter_blocks = block;
    p->w->adapter_bytes += bytes;
    block->views[block->n_views++] = make_view(values, rank, cols);
    values += (size_t)rank * cols;
    for (uint32_t i = 0; i < p->n_targets; i++) {
        block->views[block->n_views++] = make_view(values, p->targets[i].rows, rank);
        values += (size_t)rank * p->targets[i].rows;
    }
    *out = block;
    return AKUNU_OK;
}

static float *values_of(const struct ak_view *view)
{
    return (float *)(uintptr_t)view->plane[0].data;
}

/* Reads the rank's rows of b in the model's order. */
static void read_rows(const struct adding *p, const struct target *target,
                      const struct ak_view *view)
{
    uint64_t rank = ak_adapter_cols(&p->pair->b);
    bool reordered = is_reordered(p, target->role),
         to_gguf = p->spec->config.naming == AK_PROVIDER_NAMING_GGUF;
    for (uint32_t i = 0; i < view->rows; i++) {
        uint32_t row = target->first_row + i;
        uint32_t other = reordered ? hf_row(row, p->spec->config.head_dim) : row,
                 from = to_gguf ? other : row, to = to_gguf ? row : other;
        ak_tensor_dequantize(&p->pair->b, (target->first + (uint64_t)from) * rank, rank,
                             values_of(view) + (size_t)(to - target->first_row) * view->cols);
    }
}

/* ---- Weights ------------------------------------------------------------ */
static ak_status grow_by_one(void **array, uint32_t n, size_t size, struct ak_error *error)
{
    void *grown = ak_realloc(*array, n, size);
    if (!grown)
        return ak_fail_memory(error, "an adapter", n * size);
    *array = grown;
    return AKUNU_OK;
}

/* Appends a matrix to the packed weights, on the backend of the weight that it belongs to. */
static ak_status add_weight(const struct adding *p, const struct ak_view *view, uint32_t *index)
{
    struct ak_weights *w = p->w;
    struct ak_backend *backend = w->packed[p->targets[0].packed].backend;
    uint32_t layout = backend->ops->layout(backend, AK_OP_LINEAR_ADAPTER, view);
    if (!backend->ops->supports(backend, AK_OP_LINEAR, view->type) ||
        ak_pack_bytes(backend, layout, view, view->rows) > 0)
        return ak_fail(p->error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: adapters are not supported on the %s backend", p->shown,
                       backend->ops->name);
    AK_TRY(grow_by_one((void **)&w->packed, w->n_packed + 1, sizeof *w->packed, p->error));
    *index = w->n_packed++;
    w->packed[*index] = (struct ak_pack_weight){ .backend = backend,
                                                 .linear = AK_OP_LINEAR_ADAPTER,
                                                 .layer = p->layer,
                                                 .type = view->type,
                                                 .cols = view->cols,
                                                 .layout = layout,
                                                 .n_parts = 1,
                                                 .bias = AK_OP_NONE };
    w->packed[*index].parts[0] = (struct ak_pack_part){
        .role = p->role, .view = view, .rows = view->rows, .data = view->plane[0].data
    };
    return AKUNU_OK;
}

static ak_status add_products(const struct adding *p, const struct ak_pack_adapter_block *block)
{
    struct ak_weights *w = p->w;
    uint32_t a, b;
    AK_TRY(add_weight(p, &block->views[0], &a));
    for (uint32_t i = 0; i < p->n_targets; i++) {
        AK_TRY(add_weight(p, &block->views[1 + i], &b));
        AK_TRY(
            grow_by_one((void **)&w->adapters, w->n_adapters + 1, sizeof *w->adapters, p->error));
        w->adapters[w->n_adapters++] =
            (struct ak_pack_adapter){ .packed = p->targets[i].packed,
                                      .part = p->targets[i].part,
                                      .a = a,
                                      .b = b,
                                      .scale = p->scale * p->pair->factor };
    }
    return AKUNU_OK;
}

static ak_status add_pair(struct adding *p)
{
    struct ak_pack_adapter_block *block = NULL;
    ak_show(p->pair->name, strlen(p->pair->name), p->shown);
    AK_TRY(find_role(p));
    if (!ak_spec_has_weight(p->spec, p->role, p->layer))
        return AKUNU_OK;
    AK_TRY(find_targets(p));
    AK_TRY(check_shape(p));
    AK_TRY(check_order(p));
    if (p->scale == 0.0f)
        return AKUNU_OK;
    uint64_t rank = ak_adapter_rows(&p->pair->a), cols = ak_adapter_cols(&p->pair->a);
    AK_TRY(add_block(p, (uint32_t)ak_round_up((size_t)rank, RANK_ALIGN), &block));
    ak_tensor_dequantize(&p->pair->a, 0, rank * cols, values_of(&block->views[0]));
    for (uint32_t i = 0; i < p->n_targets; i++)
        read_rows(p, &p->targets[i], &block->views[1 + i]);
    return add_products(p, block);
}

/* ---- Adapters ----------------------------------------------------------- */
/* A GGUF adapter says which architecture it is for. */
static ak_status check_architecture(const struct ak_spec *spec, const struct ak_adapter *adapter,
                                    struct ak_error *error)
{
    const struct ak_text *found = &adapter->architecture, *own = &spec->config.architecture;
    struct ak_text expected = *own;
    if (adapter->naming != AK_PROVIDER_NAMING_GGUF)
        return AKUNU_OK;
    if (spec->config.naming != AK_PROVIDER_NAMING_GGUF) {
        expected.bytes = ak_arch_gguf_name(spec->arch);
        expected.n = (uint32_t)strlen(expected.bytes);
    }
    if (found->n == expected.n && memcmp(found->bytes, expected.bytes, found->n) == 0)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "an adapter for the architecture \"%.*s\"; the model has \"%.*s\"",
                   (int)(found->n < 64 ? found->n : 64), found->n ? found->bytes : "",
                   (int)(expected.n < 64 ? expected.n : 64), expected.bytes);
}

ak_status ak_pack_add_adapter(struct ak_weights *w, const struct ak_spec *spec,
                              const struct ak_adapter *adapter, float scale, struct ak_error *error)
{
    AK_TRY(check_architecture(spec, adapter, error));
    for (uint32_t i = 0; i < adapter->n_pairs; i++) {
        struct adding pair = { .w = w,
                               .spec = spec,
                               .adapter = adapter,
                               .pair = &adapter->pairs[i],
                               .scale = scale,
                               .error = error };
        AK_TRY(add_pair(&pair));
    }
    return AKUNU_OK;
}

void ak_pack_clear_adapters(struct ak_weights *w)
{
    while (w->adapter_blocks) {
        struct ak_pack_adapter_block *next = w->adapter_blocks->next;
        ak_free(w->adapter_blocks->values);
        ak_free(w->adapter_blocks);
        w->adapter_blocks = next;
    }
    ak_free(w->adapters);
}
