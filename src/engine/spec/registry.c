/* The architectures: finds a file's architecture, and answers questions about dimensions, weights
 * and layers. */
#include <string.h>

#include "base/mem.h"
#include "engine/spec/arch.h"

static const struct ak_arch *const architectures[] = {
#define AK_ARCH(name) &ak_arch_##name,
#include "engine/spec/architectures.def"
#undef AK_ARCH
    NULL,
};

const struct ak_arch *const *ak_arch_list(void)
{
    return architectures;
}

static void append_name(char *list, size_t capacity, const char *name)
{
    size_t used = strlen(list);
    if (used + strlen(name) + 3 < capacity) {
        strcat(list, used ? ", " : "");
        strcat(list, name);
    }
}

static bool has_name(const struct ak_arch *arch, struct ak_text name)
{
    for (const char *const *candidate = arch->names; *candidate; candidate++)
        if (strlen(*candidate) == name.n && memcmp(*candidate, name.bytes, name.n) == 0)
            return true;
    return false;
}

/* The first architecture of that name; two may share it. */
static const struct ak_arch *find_first(struct ak_text name)
{
    size_t i = 0;
    while (architectures[i] && !has_name(architectures[i], name))
        i++;
    return architectures[i];
}

static bool takes_file(const struct ak_arch *arch, const struct ak_provider *p, uint32_t n_experts)
{
    return arch->has_experts == (n_experts > 0) && (!arch->accepts || arch->accepts(p));
}

ak_status ak_arch_find(const struct ak_provider *p, const struct ak_arch **out,
                       struct ak_error *error)
{
    char known[1024] = "";
    struct ak_text name;
    uint32_t n_experts;
    AK_TRY(ak_meta_text(p, "general.architecture", &name, error));
    if (name.n == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is missing",
                       ak_provider_naming(p) == AK_PROVIDER_NAMING_HF ? "model_type" :
                                                                        "general.architecture");
    AK_TRY(ak_spec_read_expert_count(p, name, &n_experts, error));
    *out = NULL;
    for (size_t i = 0; architectures[i]; i++) {
        const struct ak_arch *arch = architectures[i];
        if (has_name(arch, name) && (!*out || takes_file(arch, p, n_experts)))
            *out = arch;
        for (const char *const *candidate = arch->names; *candidate; candidate++)
            if (find_first((struct ak_text){ *candidate, (uint32_t)strlen(*candidate) }) == arch)
                append_name(known, sizeof known, *candidate);
    }
    if (*out)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "architecture \"%.*s\" is not supported; supported: %s",
                   (int)(name.n < 64 ? name.n : 64), name.bytes, known);
}

const char *ak_arch_gguf_name(const struct ak_arch *arch)
{
    return arch->gguf_name ? arch->gguf_name : arch->names[0];
}

const char *ak_arch_gguf_tensor(const struct ak_arch *arch, enum ak_role role)
{
    const char *name = arch->has_openai_names ? ak_whisper_name(role) : NULL;
    return name ? name : ak_gguf_name(role);
}

float ak_arch_norm_offset(const struct ak_arch *arch, enum ak_role role)
{
    return ak_role_is_norm(role) && role != AK_ROLE_DELTA_NORM ? arch->hf_norm_offset : 0.0f;
}

const struct ak_arch_merged_tensor *ak_arch_find_merged(const struct ak_arch *arch,
                                                        enum ak_role role)
{
    for (uint32_t i = 0; i < arch->n_merged_tensors; i++)
        for (uint32_t j = 0; j < arch->merged_tensors[i].n_parts; j++)
            if (arch->merged_tensors[i].parts[j] == role)
                return &arch->merged_tensors[i];
    return NULL;
}

const struct ak_arch_rule *ak_arch_find_rule(const struct ak_arch *arch, enum ak_role role)
{
    for (uint32_t i = 0; i < arch->n_weights; i++)
        if (arch->weights[i].role == role)
            return &arch->weights[i];
    return NULL;
}

bool ak_arch_find_weight(const struct ak_arch *arch, const struct ak_provider *p, enum ak_role role,
                         int layer, struct ak_view *out)
{
    const struct ak_arch_rule *rule = ak_arch_find_rule(arch, role);
    return ak_provider_find(p, role, layer, rule ? rule->hf : NULL, out);
}

bool ak_arch_find_role(const struct ak_arch *arch, const char *name, enum ak_role *role, int *layer)
{
    for (uint32_t i = 0; i < arch->n_weights; i++) {
        const struct ak_arch_rule *rule = &arch->weights[i];
        if (rule->hf && ak_role_match(ak_hf_stem(rule->hf), ak_hf_stem(name), layer)) {
            const struct ak_arch_merged_tensor *merged = ak_arch_find_merged(arch, rule->role);
            *role = merged ? merged->stored : rule->role;
            return true;
        }
    }
    return false;
}

uint32_t ak_spec_dim(const struct ak_spec *spec, enum ak_spec_dim dim)
{
    const struct ak_spec_config *c = &spec->config;
    switch (dim) {
    case AK_SPEC_DIM_ONE: return 1;
    case AK_SPEC_DIM_WIDTH: return c->width;
    case AK_SPEC_DIM_Q: return c->n_heads * c->head_dim;
    case AK_SPEC_DIM_KV: return c->n_kv_heads * c->head_dim;
    case AK_SPEC_DIM_HEAD: return c->head_dim;
    case AK_SPEC_DIM_FFN: return c->ffn_width;
    case AK_SPEC_DIM_VOCAB: return c->vocab_size;
    case AK_SPEC_DIM_ROPE_HALF: return c->rope_dims / 2;
    case AK_SPEC_DIM_CONTEXT: return c->context + c->first_position;
    case AK_SPEC_DIM_TYPES: return c->n_types;
    case AK_SPEC_DIM_EXPERTS: return c->n_experts;
    case AK_SPEC_DIM_EXPERT: return c->expert_width;
    case AK_SPEC_DIM_SHARED: return c->shared_width;
    case AK_SPEC_DIM_HEADS: return c->n_heads;
    case AK_SPEC_DIM_CONV_IN: return 3 * c->width;
    case AK_SPEC_DIM_TAPS: return c->conv_taps;
    case AK_SPEC_DIM_Q_GATED: return 2 * c->n_heads * c->head_dim;
    case AK_SPEC_DIM_DELTA_QKV:
        return 2 * c->delta_k_heads * c->delta_k_dim + c->delta_v_heads * c->delta_v_dim;
    case AK_SPEC_DIM_DELTA_QKVZ:
        return 2 * (c->delta_k_heads * c->delta_k_dim + c->delta_v_heads * c->delta_v_dim);
    case AK_SPEC_DIM_DELTA_V: return c->delta_v_heads * c->delta_v_dim;
    case AK_SPEC_DIM_DELTA_HEADS: return c->delta_v_heads;
    case AK_SPEC_DIM_DELTA_GATES: return 2 * c->delta_v_heads;
    case AK_SPEC_DIM_DELTA_HEAD: return c->delta_v_dim;
    case AK_SPEC_DIM_ENCODER_CONTEXT: return c->encoder_context;
    case AK_SPEC_DIM_FRAMES: return 4 * c->n_mels;
    case AK_SPEC_DIM_FRAME_PAIR: return 2 * c->width;
    }
    return 0;
}

uint32_t ak_spec_role_layers(const struct ak_spec *spec, enum ak_role role)
{
    if (!ak_role_has_layer(role))
        return 1;
    return ak_role_is_encoder(role) ? spec->config.n_encoder_layers : spec->config.n_layers;
}

const struct ak_spec_layer_kind *ak_spec_layer(const struct ak_spec *spec, int layer)
{
    const struct ak_spec_descriptor *d = &spec->descriptor;
    const struct ak_spec_config *c = &spec->config;
    bool global =
        c->has_global_layers ?
            layer < AK_SPEC_LAYERS_MAX && (c->global_layers[layer / 64] >> (layer % 64) & 1) :
            d->global_every > 0 && ((uint32_t)layer + !d->global_first) % d->global_every == 0;
    return global ? &d->global : &d->local;
}

void ak_spec_set_global(struct ak_spec_config *config, uint32_t layer)
{
    if (layer < AK_SPEC_LAYERS_MAX)
        config->global_layers[layer / 64] |= (uint64_t)1 << (layer % 64);
}

void ak_spec_find_interval(struct ak_spec_config *config)
{
    uint32_t n = 0;
    while (n < config->n_layers && !(config->global_layers[n / 64] >> (n % 64) & 1))
        n++;
    config->global_every = n + 1; /* past the last layer if there is none */
    config->has_global_layers = false;
    for (uint32_t i = 0; i < config->n_layers && i < AK_SPEC_LAYERS_MAX; i++)
        if ((config->global_layers[i / 64] >> (i % 64) & 1) != ((i + 1) % (n + 1) == 0))
            config->has_global_layers = true;
}

void ak_spec_set_global_layers(struct ak_spec_config *config, uint32_t n)
{
    config->has_global_layers = true;
    for (size_t i = 0; i < sizeof config->global_layers / sizeof *config->global_layers; i++)
        config->global_layers[i] = 0;
    for (uint32_t i = 0; i < n && i < AK_SPEC_LAYERS_MAX; i++)
        ak_spec_set_global(config, i);
}

bool ak_spec_is_recurrent(const struct ak_spec_config *config, int layer)
{
    return layer < AK_SPEC_LAYERS_MAX && (config->recurrent_layers[layer / 64] >> (layer % 64) & 1);
}

void ak_spec_set_recurrent(struct ak_spec_config *config, uint32_t layer)
{
    if (layer < AK_SPEC_LAYERS_MAX)
        config->recurrent_layers[layer / 64] |= (uint64_t)1 << (layer % 64);
}

/* Recurrent layers before `layer`. */
static uint32_t count_recurrent(const struct ak_spec *spec, int layer)
{
    uint32_t n = 0;
    for (int i = 0; i < layer; i++)
        n += ak_spec_is_recurrent(&spec->config, i);
    return n;
}

uint32_t ak_spec_kv_layer(const struct ak_spec *spec, int layer)
{
    int first = (int)ak_spec_first_layer(spec);
    return spec->descriptor.encoder ? 0 :
                                      (uint32_t)(layer - first) - (count_recurrent(spec, layer) -
                                                                   count_recurrent(spec, first));
}

uint32_t ak_spec_kv_layers(const struct ak_spec *spec)
{
    uint32_t n =
        spec->descriptor.encoder ? 1 : ak_spec_kv_layer(spec, (int)ak_spec_end_layer(spec));
    return ak_spec_is_shared(spec) && n == 0 ? 1 : n; /* pages have the same numbers on all ranks */
}

uint64_t ak_spec_state_offset(const struct ak_spec *spec, int layer)
{
    return (count_recurrent(spec, layer) - count_recurrent(spec, (int)ak_spec_first_layer(spec))) *
           spec->descriptor.state_elems;
}

uint64_t ak_spec_state_elems(const struct ak_spec *spec)
{
    return ak_spec_state_offset(spec, (int)ak_spec_end_layer(spec));
}

static ak_status read_activation(const struct ak_provider *p, struct ak_spec *spec,
                                 struct ak_error *error)
{
    const char *key = spec->arch->activation_key;
    struct ak_spec_descriptor *d = &spec->descriptor;
    return key ? ak_spec_read_activation(p, &spec->config, key, &d->activation, error) : AKUNU_OK;
}

uint64_t ak_spec_conv_elems(const struct ak_spec *spec)
{
    return (uint64_t)(spec->config.conv_taps - 1) * ak_spec_dim(spec, AK_SPEC_DIM_DELTA_QKV);
}

ak_status ak_spec_describe(const struct ak_provider *p, struct ak_spec *spec,
                           struct ak_error *error)
{
    AK_TRY(spec->arch->describe(p, &spec->config, &spec->descriptor, error));
    AK_TRY(read_activation(p, spec, error));
    if (spec->arch->gguf_interleaved)
        spec->descriptor.rope_interleaved = spec->config.naming == AK_PROVIDER_NAMING_GGUF;
    spec->descriptor.delta_tiled =
        spec->arch->gguf_tiled && spec->config.naming == AK_PROVIDER_NAMING_GGUF;
    if (spec->config.has_global_layers) /* which ones is not every n-th */
        spec->descriptor.global_every = 1;
    return ak_spec_check_keys(p, spec, error);
}

ak_status ak_spec_read(const struct ak_provider *p, struct ak_spec *out, struct ak_error *error)
{
    *out = (struct ak_spec){ 0 };
    AK_TRY(ak_arch_find(p, &out->arch, error));
    AK_TRY(ak_spec_read_config(p, out->arch, &out->config, &out->rope, error));
    AK_TRY(ak_spec_validate_config(&out->config, &out->rope, error));
    return ak_spec_describe(p, out, error);
}

void ak_spec_clear(struct ak_spec *spec)
{
    ak_free(spec->inverse_frequencies);
    ak_free(spec->short_frequencies);
    ak_spec_pooling_clear(&spec->pooling);
    *spec = (struct ak_spec){ 0 };
}
