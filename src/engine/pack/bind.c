/* Binds every weight that the architecture declares, once, by exact name and exact shape, and
 * reports the file's tensors that nothing uses. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine/pack/bind.h"
#include "engine/spec/arch.h"
#include "files/weights/composed.h"
#include "base/name_index.h"

static int rule_layer(const struct ak_arch_rule *rule, uint32_t i)
{
    return ak_role_has_layer(rule->role) ? (int)i : AK_ROLE_NO_LAYER;
}

static const struct ak_arch_rule *find_rule(const struct ak_arch *arch, enum ak_role role,
                                            uint32_t *index)
{
    for (uint32_t i = 0; i < arch->n_weights; i++) {
        if (arch->weights[i].role == role) {
            *index = i;
            return &arch->weights[i];
        }
    }
    return NULL;
}

const struct ak_view *ak_bind_find(const struct ak_binding *b, enum ak_role role, int layer)
{
    uint32_t index;
    if (role == AK_ROLE_OUTPUT && b->tied)
        role = AK_ROLE_TOKEN_EMBEDDING;
    const struct ak_arch_rule *rule =
        role < AK_ROLE_COUNT ? find_rule(b->spec->arch, role, &index) : NULL;
    uint32_t at = (uint32_t)(layer == AK_ROLE_NO_LAYER ? 0 : layer);
    if (!rule || at >= ak_spec_role_layers(b->spec, role))
        return NULL;
    const struct ak_view *view = &b->views[b->first_view[index] + at];
    return view->plane[0].data ? view : NULL;
}

/* Experts' matrices are shown with all of their rows. */
static void print_shape(char *out, size_t capacity, unsigned n_dims, uint64_t rows, uint64_t cols)
{
    if (n_dims == 1)
        snprintf(out, capacity, "[%llu]", (unsigned long long)cols);
    else
        snprintf(out, capacity, n_dims == 2 ? "[%llu, %llu]" : "[experts · rows = %llu, %llu]",
                 (unsigned long long)rows, (unsigned long long)cols);
}

ak_status ak_bind_check_shape(const struct ak_view *view, const struct ak_bind_shape *shape,
                              struct ak_error *error)
{
    char found[64], expected[64];
    unsigned n_dims = 1u + (shape->rows > 1) + (shape->n_matrices > 1);
    uint64_t rows = shape->n_matrices * shape->rows;
    if ((unsigned)view->type >= AK_QUANT_COUNT)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s has the type %s; expected F32, F16, BF16, F64 or a quantized type",
                       view->name,
                       view->type_name ? view->type_name : ak_quant_info(view->type)->name);
    if (view->n_dims != n_dims || view->rows != rows || view->cols != shape->cols) {
        print_shape(found, sizeof found, view->n_dims, view->rows, view->cols);
        print_shape(expected, sizeof expected, n_dims, rows, shape->cols);
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s has the shape %s; expected %s", view->name,
                       found, expected);
    }
    if (shape->vector && !view->composed_tensor && view->type != AK_QUANT_F32 &&
        view->type != AK_QUANT_F16 && view->type != AK_QUANT_BF16)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s has the type %s; expected F32, F16 or BF16",
                       view->name, ak_quant_info(view->type)->name);
    return AKUNU_OK;
}

struct ak_bind_shape ak_bind_expected_shape(const struct ak_spec *spec,
                                            const struct ak_arch_rule *rule)
{
    return (struct ak_bind_shape){ .n_matrices =
                                       ak_role_is_expert(rule->role) ? spec->config.n_experts : 1,
                                   .rows = ak_spec_dim(spec, rule->rows),
                                   .cols = ak_spec_dim(spec, rule->cols),
                                   .vector = ak_role_is_vector(rule->role) };
}

/* The merged tensor that holds the rule's role, if the file has it: some converters split it. NULL:
 * none. */
static const struct ak_arch_merged_tensor *find_merged(const struct ak_provider *p,
                                                       const struct ak_arch *arch,
                                                       const struct ak_arch_rule *rule, int layer)
{
    struct ak_view part;
    const struct ak_arch_merged_tensor *merged = ak_arch_find_merged(arch, rule->role);
    bool apart = merged && ak_provider_naming(p) == AK_PROVIDER_NAMING_GGUF &&
                 ak_provider_find(p, merged->parts[0], layer, NULL, &part);
    return apart ? NULL : merged;
}

static enum ak_role stored_role(const struct ak_provider *p, const struct ak_arch *arch,
                                const struct ak_arch_rule *rule, int layer)
{
    const struct ak_arch_merged_tensor *merged = find_merged(p, arch, rule, layer);
    return merged ? merged->stored : rule->role;
}

/* Rows of a part; of a vector, elements. */
static uint64_t part_length(const struct ak_spec *spec, enum ak_role role)
{
    uint32_t index;
    const struct ak_arch_rule *rule = find_rule(spec->arch, role, &index);
    return rule ? ak_spec_dim(spec, rule->rows == AK_SPEC_DIM_ONE ? rule->cols : rule->rows) : 0;
}

/* Narrows the view of a merged tensor to the rows of `rule`. */
static ak_status select_part(const struct ak_spec *spec, const struct ak_arch_merged_tensor *merged,
                             const struct ak_arch_rule *rule, struct ak_view *view,
                             struct ak_error *error)
{
    bool vector = rule->rows == AK_SPEC_DIM_ONE;
    uint64_t first = 0, n = 0, total = 0;
    for (uint32_t i = 0; i < merged->n_parts; i++) {
        if (merged->parts[i] == rule->role) {
            first = total;
            n = part_length(spec, rule->role);
        }
        total += part_length(spec, merged->parts[i]);
    }
    if (vector && view->composed_tensor)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: vectors that lie in one are stored as %s; expected F32, F16 or BF16",
                       view->name, view->composed_tensor->name);
    struct ak_bind_shape shape = { 1, vector ? 1 : total,
                                   vector ? total : ak_spec_dim(spec, rule->cols), vector };
    AK_TRY(ak_bind_check_shape(view, &shape, error));
    if (view->composed_tensor)
        view->first_row = (uint32_t)first;
    for (int i = 0; i < AK_VIEW_PLANES_MAX && !view->composed_tensor; i++) {
        struct ak_plane *plane = &view->plane[i];
        if (!plane->data)
            continue;
        plane->data = (const uint8_t *)plane->data + plane->bytes / total * first;
        plane->bytes = plane->bytes / total * n;
    }
    *(vector ? &view->cols : &view->rows) = (uint32_t)n;
    return AKUNU_OK;
}

static bool is_transposed(const struct ak_spec *spec, const struct ak_arch_rule *rule)
{
    return spec->config.naming == AK_PROVIDER_NAMING_HF && spec->arch->hf_transposed &&
           rule->rows != AK_SPEC_DIM_ONE && ak_role_has_layer(rule->role);
}

/* Finds a weight by the architecture's name or an alias. */
static bool find_weight(const struct ak_provider *p, const struct ak_arch *arch,
                        const struct ak_arch_rule *rule, int layer, struct ak_view *view)
{
    enum ak_role stored = stored_role(p, arch, rule, layer);
    bool found = ak_provider_find(p, stored, layer, rule->hf, view);
    for (uint32_t i = 0; !found && i < arch->n_aliases; i++)
        found = arch->aliases[i].role == rule->role &&
                ak_provider_find(p, stored, layer, arch->aliases[i].hf, view);
    return found;
}

/* Finds the weight of a rule and checks its shape; a merged tensor is narrowed to the rule's
 * rows. */
static ak_status find_and_check(const struct ak_provider *p, const struct ak_arch_rule *rule,
                                int layer, struct ak_binding *b, struct ak_view *view, bool *found,
                                struct ak_error *error)
{
    const struct ak_spec *spec = b->spec;
    const struct ak_arch_merged_tensor *merged = find_merged(p, spec->arch, rule, layer);
    struct ak_bind_shape shape = ak_bind_expected_shape(spec, rule);
    if (ak_role_is_expert(rule->role) && spec->config.naming == AK_PROVIDER_NAMING_HF)
        return ak_bind_experts(p, rule, layer, b, view, found, error);
    *found = find_weight(p, spec->arch, rule, layer, view);
    if (!*found)
        return AKUNU_OK;
    AK_TRY(ak_bind_doubles(b, view, error));
    if (is_transposed(spec, rule))
        AK_TRY(ak_bind_columns(b, view, error));
    AK_TRY(ak_bind_convolution(b, rule->role, view, error));
    bool has_bytes = view->type >= AK_QUANT_COUNT; /* as the quants of a quantized matrix */
    ak_status status = merged ? select_part(spec, merged, rule, view, error) :
                                ak_bind_check_shape(view, &shape, error);
    return status != AKUNU_OK && has_bytes ?
               ak_bind_explain_quantized(p, view->name, status, error) :
               status;
}

/* True if layers of this kind (attention or recurrent) never have the weight. */
static bool belongs_to_other_layers(const struct ak_spec *spec, const struct ak_arch_rule *rule,
                                    int layer)
{
    bool recurrent = layer != AK_ROLE_NO_LAYER && ak_spec_is_recurrent(&spec->config, layer);
    if (recurrent)
        return rule->need == AK_ARCH_ATTENTION_ONLY;
    return rule->need == AK_ARCH_RECURRENT_ONLY || rule->need == AK_ARCH_RECURRENT_MERGED ||
           rule->need == AK_ARCH_RECURRENT_PART;
}

/* True if the layer has the merged matrix that replaces AK_ARCH_RECURRENT_PART weights. */
static bool has_merged(const struct ak_provider *p, const struct ak_arch *arch, int layer)
{
    struct ak_view view;
    for (uint32_t i = 0; i < arch->n_weights; i++)
        if (arch->weights[i].need == AK_ARCH_RECURRENT_MERGED &&
            find_weight(p, arch, &arch->weights[i], layer, &view))
            return true;
    return false;
}

static bool may_be_absent(const struct ak_provider *p, const struct ak_arch *arch,
                          const struct ak_arch_rule *rule, int layer)
{
    switch (rule->need) {
    case AK_ARCH_OPTIONAL:
    case AK_ARCH_RECURRENT_MERGED: return true;
    case AK_ARCH_REQUIRED_FROM_SECOND: return layer == 0;
    case AK_ARCH_RECURRENT_PART: return has_merged(p, arch, layer);
    default: return false;
    }
}

ak_status ak_bind_weight(const struct ak_provider *p, const struct ak_arch_rule *rule, int layer,
                         struct ak_binding *b, struct ak_view *view, struct ak_error *error)
{
    enum ak_role stored = stored_role(p, b->spec->arch, rule, layer);
    bool found = false;
    if (belongs_to_other_layers(b->spec, rule, layer)) {
        *view = (struct ak_view){ 0 };
        return AKUNU_OK;
    }
    AK_TRY(find_and_check(p, rule, layer, b, view, &found, error));
    if (rule->need == AK_ARCH_OUTPUT_OR_TIED)
        return ak_bind_output(p, found, b, view, error);
    if (found)
        return AKUNU_OK;
    *view = (struct ak_view){ 0 };
    if (may_be_absent(p, b->spec->arch, rule, layer))
        return AKUNU_OK;
    return ak_bind_fail_missing(p, b, rule, stored, layer, error);
}

/* Tensors known to be unused. */
static bool is_skipped(const struct ak_binding *b, const char *name)
{
    if (b->tied && strncmp(ak_hf_stem(name), "lm_head.", strlen("lm_head.")) == 0)
        return true;
    static const char *const known[] = { "rotary_emb.inv_freq",  ".attn.bias",
                                         ".attn.masked_bias",    "mtp.",
                                         "model.visual.",        "position_ids",
                                         "pooler.dense.",        "cls.predictions.",
                                         "cls.seq_relationship." };
    if (ak_spec_is_head(name)) /* engine/session/score.c reads it */
        return true;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(name, known[i]))
            return true;
    const struct ak_spec_config *c = &b->spec->config;
    unsigned layer;
    return c->n_draft_layers > 0 && sscanf(name, "blk.%4u.", &layer) == 1 && layer >= c->n_layers &&
           layer - c->n_layers < c->n_draft_layers;
}

/* Counts the tensors that a view is made of. */
static uint32_t count_tensors(const struct ak_binding *b, const struct ak_view *view)
{
    return !view->name ? 0 : view->expert_views ? b->spec->config.n_experts : 1;
}

/* Index of the names of all bound tensors. */
static ak_status index_bound(const struct ak_binding *b, struct ak_name_index *out,
                             struct ak_error *error)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n_views; i++)
        n += count_tensors(b, &b->views[i]);
    AK_TRY(ak_name_index_alloc(out, n, error));
    n = 0;
    for (uint32_t i = 0; i < b->n_views; i++)
        for (uint32_t j = 0; j < count_tensors(b, &b->views[i]); j++)
            out->entries[n++] = (struct ak_name_index_entry){
                b->views[i].expert_views ? b->views[i].expert_views[j].name : b->views[i].name, i
            };
    out->n = n;
    ak_name_index_sort(out); /* a tensor may be bound twice */
    return AKUNU_OK;
}

static bool is_composed(const struct ak_view *view)
{
    return view->expert_views ? view->expert_views[0].composed_tensor : view->composed_tensor;
}

/* Whether a tensor has the scales of a bound one: of an MXFP4 weight, or of all of an NVFP4 one. */
static bool is_scale(const struct ak_binding *b, const struct ak_name_index *bound,
                     const char *name)
{
    static const struct {
        const char *scales, *weights;
    } suffixes[] = { { "_scales", "_blocks" },
                     { ".scale", ".weight" },
                     { ".input_scale", ".weight" } };
    char weights[2 * AK_ROLE_NAME_BYTES];
    size_t n = strlen(name);
    uint32_t at;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t n_suffix = strlen(suffixes[i].scales);
        if (n <= n_suffix || n > sizeof weights - 8 ||
            strcmp(name + n - n_suffix, suffixes[i].scales) != 0)
            continue;
        snprintf(weights, sizeof weights, "%.*s%s", (int)(n - n_suffix), name, suffixes[i].weights);
        if (ak_name_index_find(bound, weights, &at) && is_composed(&b->views[at]))
            return true;
    }
    return false;
}

/* A bound weight that has the same name but for the prefix of its class: which of the two counts
 * would be a guess. NULL: there is none. */
static const char *find_twin(const struct ak_binding *b, const char *name)
{
    for (uint32_t i = 0; b->spec->config.naming == AK_PROVIDER_NAMING_HF && i < b->n_views; i++) {
        const char *bound = b->views[i].name;
        if (bound && strcmp(bound, name) != 0 && strcmp(ak_hf_stem(bound), ak_hf_stem(name)) == 0)
            return bound;
    }
    return NULL;
}

static ak_status report_unclaimed(const struct ak_provider *p, const struct ak_binding *b,
                                  const struct ak_name_index *bound, bool strict,
                                  const struct ak_log *log, struct ak_error *error)
{
    struct ak_tensor tensor;
    uint32_t at;
    for (size_t i = 0; ak_provider_tensor(p, i, &tensor); i++) {
        if (ak_name_index_find(bound, tensor.name, &at) || is_skipped(b, tensor.name) ||
            is_scale(b, bound, tensor.name))
            continue;
        const char *twin = find_twin(b, tensor.name);
        if (twin)
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "%s and %s are there for the same weight; expected one", twin,
                           tensor.name);
        if (strict)
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "%s: the architecture has no use for this tensor", tensor.name);
        ak_log_line(log, AKUNU_LOG_WARN, "%s: the architecture has no use for this tensor",
                    tensor.name);
    }
    return AKUNU_OK;
}

ak_status ak_bind(const struct ak_provider *p, const struct ak_spec *spec, unsigned flags,
                  const struct ak_log *log, struct ak_binding *out, struct ak_error *error)
{
    const struct ak_arch *arch = spec->arch;
    struct ak_binding b = { .spec = spec, .shapes_only = (flags & AK_BIND_SHAPES) != 0 };
    struct ak_name_index bound = { 0 };
    ak_status status = AKUNU_OK;

    b.first_view = ak_alloc(arch->n_weights, sizeof *b.first_view);
    for (uint32_t i = 0; b.first_view && i < arch->n_weights; i++) {
        b.first_view[i] = b.n_views;
        b.n_views += ak_spec_role_layers(spec, arch->weights[i].role);
    }
    b.views = ak_alloc(b.n_views, sizeof *b.views);
    if (!b.first_view || !b.views)
        status = ak_fail_memory(error, "the weight table",
                                (unsigned long long)b.n_views * sizeof *b.views);
    for (uint32_t i = 0; status == AKUNU_OK && i < arch->n_weights; i++) {
        const struct ak_arch_rule *rule = &arch->weights[i];
        for (uint32_t layer = 0;
             status == AKUNU_OK && layer < ak_spec_role_layers(spec, rule->role); layer++)
            status = ak_bind_weight(p, rule, rule_layer(rule, layer), &b,
                                    &b.views[b.first_view[i] + layer], error);
    }
    if (status == AKUNU_OK)
        status = index_bound(&b, &bound, error);
    if (status == AKUNU_OK)
        status = report_unclaimed(p, &b, &bound, (flags & AK_BIND_STRICT) != 0, log, error);
    ak_name_index_free(&bound);
    if (status != AKUNU_OK) {
        ak_binding_clear(&b);
        return status;
    }
    *out = b;
    return AKUNU_OK;
}

void ak_binding_clear(struct ak_binding *b)
{
    for (uint32_t i = 0; i < b->n_owned; i++)
        ak_free(b->owned[i].data);
    ak_free(b->owned);
    ak_free(b->shards);
    ak_free(b->views);
    ak_free(b->first_view);
    *b = (struct ak_binding){ 0 };
}
