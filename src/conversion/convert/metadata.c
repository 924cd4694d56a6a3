/* GGUF metadata of a model. Numbers of the specification are written under the keys that
 * llama.cpp reads; other keys of the source are renamed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "conversion/convert/convert.h"
#include "engine/spec/arch.h"

enum { KEY_BYTES = 128, QUANTIZATION_VERSION = 2 };

/* llama.cpp's file types: of the type that most bytes of the file have. */
enum { NONE = -1 };
static const int file_types[AK_QUANT_COUNT] = {
#define QUANT(symbol, name, own, ggml, file_type) [AK_QUANT_##symbol] = file_type,
#include "files/quant/types.def"
};

static void put_file_type(struct ak_gguf_writer *w, const struct ak_convert_plan *plan)
{
    enum ak_quant_type heaviest = AK_QUANT_F32;
    bool quantized = false;
    for (enum ak_quant_type type = 0; type < AK_QUANT_COUNT; type++) {
        if (file_types[type] == NONE)
            continue;
        if (plan->type_bytes[type] > plan->type_bytes[heaviest])
            heaviest = type;
        quantized |= plan->type_bytes[type] > 0 && ak_quant_info(type)->block_elems > 1;
    }
    ak_gguf_writer_put_u32(w, "general.file_type",
                           plan->mix ? plan->mix->file_type : (uint32_t)file_types[heaviest]);
    if (quantized)
        ak_gguf_writer_put_u32(w, "general.quantization_version", QUANTIZATION_VERSION);
}

/* "llama.block_count" */
static const char *format_key(const struct ak_convert_plan *plan, const char *suffix,
                              char out[KEY_BYTES])
{
    snprintf(out, KEY_BYTES, "%s.%s", ak_arch_gguf_name(plan->spec->arch), suffix);
    return out;
}

static void put_u32(struct ak_gguf_writer *w, const struct ak_convert_plan *plan,
                    const char *suffix, uint32_t value)
{
    char key[KEY_BYTES];
    ak_gguf_writer_put_u32(w, format_key(plan, suffix, key), value);
}

static void put_f32(struct ak_gguf_writer *w, const struct ak_convert_plan *plan,
                    const char *suffix, float value)
{
    char key[KEY_BYTES];
    ak_gguf_writer_put_f32(w, format_key(plan, suffix, key), value);
}

/* Models with delta layers: which layers have attention, and the size of the delta heads. For
 * these llama.cpp reads a single number of key-value heads. */
static void put_delta(struct ak_gguf_writer *w, const struct ak_convert_plan *plan)
{
    static const int32_t sections[] = { 11, 11, 10, 0 };
    const struct ak_spec_config *c = &plan->spec->config;
    char key[KEY_BYTES];
    put_u32(w, plan, "attention.head_count_kv", c->n_kv_heads);
    put_u32(w, plan, "full_attention_interval", ak_spec_attention_interval(c));
    put_u32(w, plan, "ssm.inner_size", c->delta_v_heads * c->delta_v_dim);
    if (plan->spec->arch->gguf_tiled) /* llama.cpp requires it; for text any value will do */
        ak_gguf_writer_put_ints(w, format_key(plan, "rope.dimension_sections", key), sections,
                                sizeof sections / sizeof *sections);
}

/* One number; or one per layer if some layers have no attention: 0 for those. */
static void put_kv_heads(struct ak_gguf_writer *w, const struct ak_convert_plan *plan)
{
    const struct ak_spec_config *c = &plan->spec->config;
    if (c->delta_k_heads > 0) {
        put_delta(w, plan);
        return;
    }
    int32_t heads[AK_SPEC_LAYERS_MAX];
    char key[KEY_BYTES];
    bool mixed = false;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        bool recurrent = ak_spec_is_recurrent(c, (int)i);
        heads[i] = recurrent ? 0 : (int32_t)c->n_kv_heads;
        mixed = mixed || recurrent;
    }
    if (mixed)
        ak_gguf_writer_put_ints(w, format_key(plan, "attention.head_count_kv", key), heads,
                                c->n_layers);
    else
        put_u32(w, plan, "attention.head_count_kv", c->n_kv_heads);
}

static void put_sizes(struct ak_gguf_writer *w, const struct ak_convert_plan *plan)
{
    const struct ak_spec_config *c = &plan->spec->config;
    put_u32(w, plan, "block_count", c->n_layers);
    put_u32(w, plan, "context_length", c->context);
    put_u32(w, plan, "embedding_length", c->width);
    put_u32(w, plan, "feed_forward_length", c->ffn_width);
    put_u32(w, plan, "attention.head_count", c->n_heads);
    put_kv_heads(w, plan);
    if (c->n_experts > 0)
        put_u32(w, plan, "expert_feed_forward_length", c->expert_width);
    put_u32(w, plan, "attention.key_length", c->head_dim);
    put_u32(w, plan, "attention.value_length", c->head_dim);
    put_u32(w, plan, "vocab_size", c->vocab_size);
    put_f32(w, plan,
            plan->spec->descriptor.layer_norm ? "attention.layer_norm_epsilon" :
                                                "attention.layer_norm_rms_epsilon",
            c->norm_eps);
}

/* Which layers have a window, as a bool for each. */
static void put_window_layers(struct ak_gguf_writer *w, const struct ak_convert_plan *plan)
{
    char key[KEY_BYTES];
    bool windows[AK_SPEC_LAYERS_MAX];
    const struct ak_spec *spec = plan->spec;
    for (uint32_t i = 0; i < spec->config.n_layers; i++)
        windows[i] = ak_spec_layer(spec, (int)i)->window > 0;
    ak_gguf_writer_put_bools(w, format_key(plan, "attention.sliding_window_pattern", key), windows,
                             spec->config.n_layers);
}

static void put_window(struct ak_gguf_writer *w, const struct ak_convert_plan *plan)
{
    const struct ak_spec *spec = plan->spec;
    const struct ak_spec_descriptor *d = &spec->descriptor;
    uint32_t window = d->local.window ? d->local.window : d->global.window;
    if (window == 0)
        return;
    put_u32(w, plan, "attention.sliding_window", window);
    if (spec->config.has_global_layers)
        put_window_layers(w, plan);
    else if (spec->config.global_every > 0 && d->local.window > 0)
        put_u32(w, plan, "attention.sliding_window_pattern", spec->config.global_every);
}

static void put_scaling(struct ak_gguf_writer *w, const struct ak_convert_plan *plan)
{
    static const char *const names[] = { [AK_SPEC_ROPE_LINEAR] = "linear",
                                         [AK_SPEC_ROPE_YARN] = "yarn",
                                         [AK_SPEC_ROPE_LONGROPE] = "longrope" };
    const struct ak_spec_rope *rope = &plan->spec->rope;
    char key[KEY_BYTES];
    if (rope->scaling == AK_SPEC_ROPE_PLAIN || rope->scaling == AK_SPEC_ROPE_LLAMA3)
        return; /* no scaling, or a tensor has its divisors */
    ak_gguf_writer_put_string(w, format_key(plan, "rope.scaling.type", key), names[rope->scaling]);
    if (rope->scaling != AK_SPEC_ROPE_LONGROPE)
        put_f32(w, plan, "rope.scaling.factor", rope->factor);
    if (rope->scaling != AK_SPEC_ROPE_LINEAR)
        put_u32(w, plan, "rope.scaling.original_context_length", rope->original_context);
    if (rope->magnitude != 1.0f)
        put_f32(w, plan, "rope.scaling.attn_factor", rope->magnitude);
    if (rope->scaling == AK_SPEC_ROPE_YARN) {
        put_f32(w, plan, "rope.scaling.yarn_beta_fast", rope->beta_fast);
        put_f32(w, plan, "rope.scaling.yarn_beta_slow", rope->beta_slow);
        if (rope->unrounded) /* llama.cpp has no such key, and rounds */
            ak_gguf_writer_put_bool(w, format_key(plan, "rope.scaling.truncate", key), false);
    }
}

/* The interval of layers without rotation, however the source expresses it. If all layers are
 * rotated, an interval beyond the last layer. */
static void put_unrotated(struct ak_gguf_writer *w, const struct ak_convert_plan *plan)
{
    const struct ak_spec_descriptor *d = &plan->spec->descriptor;
    if (d->global.rotation == AK_SPEC_ROTATE_NONE)
        put_u32(w, plan, "no_rope_layer_interval",
                d->global_every > 0 ? d->global_every : plan->spec->config.n_layers + 1);
}

static void put_rotation(struct ak_gguf_writer *w, const struct ak_convert_plan *plan)
{
    const struct ak_spec *spec = plan->spec;
    if (spec->n_rotations == 0)
        return;
    put_u32(w, plan, "rope.dimension_count", spec->config.rope_dims);
    put_f32(w, plan, "rope.freq_base", spec->config.rope_base);
    if (spec->n_rotations > 1)
        put_f32(w, plan, "rope.freq_base_swa", spec->descriptor.local_rope_base);
    put_unrotated(w, plan);
    put_scaling(w, plan);
}

/* ---- Numbers of single architectures ------------------------------------ */
/* Keys that the functions above have written, or that say the same in another way. */
static bool is_written(const char *key)
{
    static const char *const done[] = {
        "block_count",
        "embedding_length",
        "feed_forward_length",
        "expert_feed_forward_length",
        "context_length",
        "vocab_size",
        "attention.head_count",
        "attention.head_count_kv",
        "attention.key_length",
        "attention.value_length",
        "attention.layer_norm_rms_epsilon",
        "attention.layer_norm_epsilon",
        "attention.sliding_window",
        "attention.sliding_window_pattern",
        "query_pre_attn_scalar",
        "no_rope_layer_interval",
        "tokenizer.ggml.token_type_count",
        "ssm.inner_size",
    };
    for (size_t i = 0; i < sizeof done / sizeof *done; i++)
        if (strcmp(key, done[i]) == 0)
            return true;
    return strncmp(key, "rope.", strlen("rope.")) == 0;
}

/* In GGUF counts and sizes are integers and all other numbers floats, whatever JSON has. */
static bool is_count(const char *key)
{
    static const char *const endings[] = { "_count", "_length", "_size",   "_interval",
                                           "_rank",  "_kernel", ".l_cache" };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(key), m = strlen(endings[i]);
        if (n >= m && strcmp(key + n - m, endings[i]) == 0)
            return true;
    }
    return false;
}

static void put_number(struct ak_gguf_writer *w, const struct ak_convert_plan *plan,
                       const char *key, const struct ak_meta *meta)
{
    char full[KEY_BYTES];
    double value = meta->kind == AK_META_FLOAT ? meta->as.number :
                   meta->kind == AK_META_UINT  ? (double)meta->as.unsigned_integer :
                                                 (double)meta->as.integer;
    if (meta->kind == AK_META_BOOL)
        ak_gguf_writer_put_bool(w, format_key(plan, key, full), meta->as.boolean);
    else if (meta->kind != AK_META_FLOAT && meta->kind != AK_META_INT && meta->kind != AK_META_UINT)
        return;
    else if (!is_count(key))
        put_f32(w, plan, key, (float)value);
    else if (value >= 0.0 && value <= (double)UINT32_MAX)
        put_u32(w, plan, key, (uint32_t)value);
}

static void put_architecture_keys(struct ak_gguf_writer *w, const struct ak_convert_plan *plan)
{
    const struct ak_spec *spec = plan->spec;
    char found[AK_SPEC_KEY_BYTES], name[KEY_BYTES];
    struct ak_meta meta;
    bool scaled = false;
    const char *key;
    for (size_t i = 0; (key = ak_spec_renamed_key(i)); i++)
        if (!is_written(key) && ak_spec_find(plan->source, &spec->config, key, found, &meta)) {
            put_number(w, plan, key, &meta);
            scaled |= strcmp(key, "attention.scale") == 0;
        }
    if (spec->descriptor.divides_by_layer)
        ak_gguf_writer_put_bool(w, format_key(plan, "scale_attn_by_inverse_layer_idx", name), true);
    if (!scaled && spec->descriptor.attention_scale != 1.0f / sqrtf((float)spec->config.head_dim))
        put_f32(w, plan, "attention.scale", spec->descriptor.attention_scale);
}

/* The name of the activation is copied, of decoders if it is not the class's default. llama.cpp
 * knows no such key of theirs: only akunu reads these files correctly. */
static void put_activation(struct ak_gguf_writer *w, const struct ak_convert_plan *plan)
{
    const struct ak_spec *spec = plan->spec;
    const char *suffix = spec->arch->activation_key;
    char key[KEY_BYTES], found[AK_SPEC_KEY_BYTES];
    struct ak_meta name;
    struct ak_word word;
    if (!suffix || !ak_spec_find(plan->source, &spec->config, suffix, found, &name) ||
        name.kind != AK_META_STRING)
        return;
    bool usual = spec->config.known &&
                 ak_words_find(spec->config.known->reads,
                               ak_spec_hf_name(spec->config.known, suffix), &word) &&
                 ak_word_equals(&word, &name);
    if (spec->descriptor.encoder || !usual)
        ak_gguf_writer_put_text(w, format_key(plan, suffix, key),
                                (struct ak_text){ name.as.string, (uint32_t)name.n });
}

/* llama.cpp requires the number of token types of every architecture that may have a table of them,
 * even if this model has none. */
static void put_encoder(struct ak_gguf_writer *w, const struct ak_convert_plan *plan)
{
    const struct ak_spec *spec = plan->spec;
    char key[KEY_BYTES];
    if (!spec->descriptor.encoder)
        return;
    ak_gguf_writer_put_bool(w, format_key(plan, "attention.causal", key), false);
    if (ak_arch_find_rule(spec->arch, AK_ROLE_TOKEN_TYPE_EMBEDDING))
        ak_gguf_writer_put_u32(w, "tokenizer.ggml.token_type_count",
                               spec->config.n_types ? spec->config.n_types : 1);
}

static bool is_phi3_name(const char *name)
{
    return strcasestr(name, "phi-3") || strcasestr(name, "phi3");
}

static void put_name(struct ak_gguf_writer *w, const struct ak_provider *p, const char *fallback,
                     bool has_rstrip)
{
    char name[AK_SHOW_BYTES + 16];
    struct ak_meta meta;
    snprintf(name, AK_SHOW_BYTES, "%s", fallback);
    if (ak_provider_find_meta(p, "general.name", &meta) && meta.kind == AK_META_STRING)
        snprintf(name, AK_SHOW_BYTES, "%.*s",
                 (int)(meta.n < AK_SHOW_BYTES ? meta.n : AK_SHOW_BYTES - 1), meta.as.string);
    if (has_rstrip && !is_phi3_name(name))
        strcat(name, " (Phi-3)");
    ak_gguf_writer_put_string(w, "general.name", name);
}

void ak_convert_put_metadata(struct ak_gguf_writer *w, const struct ak_convert_plan *plan,
                             const char *name, bool has_rstrip)
{
    ak_gguf_writer_put_string(w, "general.architecture", ak_arch_gguf_name(plan->spec->arch));
    ak_gguf_writer_put_string(w, "general.type", "model");
    put_name(w, plan->source, name, has_rstrip);
    put_file_type(w, plan);
    if (plan->spec->arch->emit_encoder)
        return; /* all other keys of speech models are in speech.c */
    put_sizes(w, plan);
    put_window(w, plan);
    put_rotation(w, plan);
    put_architecture_keys(w, plan);
    put_encoder(w, plan);
    put_activation(w, plan);
    if (plan->spec->head.n_labels > 0)
        put_u32(w, plan, "pooling_type", 4); /* llama.cpp's LLAMA_POOLING_TYPE_RANK */
    else if (plan->spec->pooling.is_stated)
        put_u32(w, plan, "pooling_type", ak_spec_gguf_pooling(&plan->spec->pooling));
}

ak_status ak_convert_put_sentence(struct ak_gguf_writer *w, const struct ak_convert_plan *plan,
                                  struct ak_error *error)
{
    const struct ak_spec_pooling *pooling = &plan->spec->pooling;
    char *text = pooling->is_stated ? ak_spec_write_sentence_key(pooling, error) : NULL;
    if (pooling->is_stated && !text)
        return AKUNU_ERROR_MEMORY;
    if (text)
        ak_gguf_writer_put_string(w, AK_SPEC_SENTENCE_KEY, text);
    free(text);
    return AKUNU_OK;
}

/* Drops the keys of split files, since the parts become one file. The file type is written anew if
 * the types changed. */
void ak_convert_copy_metadata(struct ak_gguf_writer *w, const struct ak_convert_plan *plan)
{
    struct ak_meta meta;
    for (size_t i = 0; ak_provider_meta(plan->source, i, &meta); i++) {
        bool types = strcmp(meta.key, "general.file_type") == 0 ||
                     strcmp(meta.key, "general.quantization_version") == 0;
        if (strncmp(meta.key, "split.", strlen("split.")) == 0 ||
            strcmp(meta.key, "general.alignment") == 0 || (types && (plan->has_type || plan->mix)))
            continue;
        ak_gguf_writer_put_meta(w, plan->source, &meta);
    }
    if (plan->has_type || plan->mix)
        put_file_type(w, plan);
}
