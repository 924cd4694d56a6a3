/* What stands beside the arrays. The files of a folder are copied, without the description of a
 * quantization that the arrays no longer have. For a GGUF file config.json is written, in the words
 * of transformers, and its metadata are kept as a GGUF file without tensors, for the tokenizer.
 *
 * The numbers come from the model's description, not from GGUF's keys, since defaults of the two
 * differ. A config.json that describes another model than the source is refused: ak_compress_open_
 * draft reads it back. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "conversion/compress/compress.h"
#include "engine/spec/stages.h"
#include "files/weights/formats.h"

/* Takes the reference; NULL: out of memory. `flags`: of json_dumps. */
static ak_status write_config(const struct ak_compress_job *j, json_t *config, size_t flags)
{
    char *text = config ? json_dumps(config, JSON_INDENT(2) | flags) : NULL;
    json_decref(config);
    if (!text)
        return ak_fail_memory(j->error, "config.json", 0);
    ak_status status = ak_compress_folder_write(j->folder, "config.json", text, strlen(text));
    free(text);
    return status;
}

/* ---- Folders ------------------------------------------------------------ */
/* config.json without the quantization of its tensors. */
static ak_status write_stripped(const struct ak_compress_job *j)
{
    json_t *config;
    AK_TRY(ak_provider_json(j->source, "config.json", &config, j->error));
    json_object_del(config, "quantization_config");
    json_object_del(config, "quantization");
    json_object_del(config, "compression_config");
    return write_config(j, config, 0);
}

static bool is_quantized(const struct ak_provider *p)
{
    struct ak_tensor tensor;
    for (size_t i = 0; ak_provider_tensor(p, i, &tensor); i++)
        if (tensor.composed_tensor)
            return true;
    return false;
}

static bool describes_weights(const char *name)
{
    return strcmp(name, AK_HF_MANIFEST) == 0 || strcmp(name, "model.safetensors.index.json") == 0;
}

static ak_status copy_files(const struct ak_compress_job *j)
{
    struct ak_text text;
    for (size_t i = 0; ak_hf_sidecar_names[i]; i++) {
        const char *name = ak_hf_sidecar_names[i];
        if (describes_weights(name) || !ak_provider_file(j->source, name, &text))
            continue;
        if (strcmp(name, "config.json") == 0 && is_quantized(j->source))
            AK_TRY(write_stripped(j));
        else
            AK_TRY(ak_compress_folder_write(j->folder, name, text.bytes, text.n));
    }
    return AKUNU_OK;
}

/* Whether the source is a folder of arrays that has metadata in GGUF. */
static bool has_gguf_metadata(const struct ak_compress_job *j)
{
    struct ak_vocab vocab;
    return ak_provider_vocab(j->source, &vocab, NULL) == AKUNU_OK && vocab.model.n > 0;
}

/* ---- GGUF's metadata ---------------------------------------------------- */
/* A folder's metadata are GGUF's and those of its JSON files. */
static bool is_kept(const struct ak_compress_job *j, const char *key)
{
    static const char *const of_tensors[] = { "split.", "general.alignment", "general.file_type",
                                              "general.quantization_version" };
    for (size_t i = 0; i < sizeof of_tensors / sizeof *of_tensors; i++)
        if (strncmp(key, of_tensors[i], strlen(of_tensors[i])) == 0)
            return false;
    return j->is_gguf || strncmp(key, "general.", 8) == 0 || strncmp(key, "tokenizer.", 10) == 0;
}

/* Everything but what describes the file's tensors. */
static ak_status write_metadata(const struct ak_compress_job *j)
{
    struct ak_meta meta;
    char *path = NULL;
    size_t n = strlen(j->to) + sizeof "/" AK_HF_METADATA;
    struct ak_gguf_writer w = ak_gguf_writer_begin(j->error);
    for (size_t i = 0; ak_provider_meta(j->source, i, &meta); i++)
        if (is_kept(j, meta.key))
            ak_gguf_writer_put_meta(&w, j->source, &meta);
    path = ak_alloc(n, 1);
    if (!path)
        w.status = ak_fail_memory(j->error, "a path", n);
    else
        snprintf(path, n, "%s/" AK_HF_METADATA, j->to);
    if (w.status == AKUNU_OK)
        ak_gguf_writer_open(&w, path);
    ak_status status = ak_gguf_writer_finish(&w);
    ak_free(path);
    return status;
}

/* ---- config.json -------------------------------------------------------- */
static void put_u32(json_t *config, const char *key, uint32_t value)
{
    json_object_set_new(config, key, json_integer(value));
}

/* The shortest decimal that is this float. */
static json_t *make_float(float value)
{
    char text[32];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if ((float)atof(text) == value)
            break;
    }
    return json_real(atof(text));
}

static void put_float(json_t *config, const char *key, float value)
{
    json_object_set_new(config, key, make_float(value));
}

/* Whether the class has a window, if the model has one. */
static bool has_window(const struct ak_arch_keys *keys, const struct ak_spec *spec)
{
    struct ak_word word;
    return spec->config.window == 0 || ak_words_find(keys->reads, "sliding_window", &word) ||
           ak_words_find(keys->reads, "local_attention", &word);
}

/* The model_type for config.json: of the names of its class in transformers the first with an
 * underscore ("qwen3_moe" for GGUF's "qwen3moe"), otherwise GGUF's own name if it is one of them,
 * otherwise the first. A class that cannot have the model's window is none of its classes: GGUF has
 * one name for Llama and for Mistral. */
static json_t *choose_model_type(const struct ak_spec *spec)
{
    const struct ak_text *own = &spec->config.architecture;
    struct ak_word word, best = { .name = own->bytes, .n_name = own->n };
    for (uint32_t i = 0; i < spec->arch->n_keys; i++) {
        const char *at = spec->arch->keys[i].types;
        bool found = false;
        if (!at || !has_window(&spec->arch->keys[i], spec))
            continue;
        for (bool first = true; ak_words_next(&at, &word); first = false) {
            bool is_own = word.n_name == own->n && memcmp(word.name, own->bytes, own->n) == 0;
            bool underscored = memchr(word.name, '_', word.n_name) != NULL;
            if (first || (!found && (is_own || underscored)))
                best = word;
            found |= underscored;
        }
        break;
    }
    return json_stringn(best.name, best.n_name);
}

static void put_sizes(json_t *config, const struct ak_spec *spec)
{
    const struct ak_spec_config *c = &spec->config;
    put_u32(config, "hidden_size", c->width);
    put_u32(config, "num_hidden_layers", c->n_layers);
    put_u32(config, "num_attention_heads", c->n_heads);
    put_u32(config, "num_key_value_heads", c->n_kv_heads);
    put_u32(config, "head_dim", c->head_dim);
    put_u32(config, "intermediate_size", c->ffn_width);
    put_u32(config, "max_position_embeddings", c->context);
    put_u32(config, "vocab_size", c->vocab_size);
    put_float(config, spec->descriptor.layer_norm ? "layer_norm_eps" : "rms_norm_eps", c->norm_eps);
}

/* The scale of scores as the number of which it is the root's inverse, where the class has that. */
static void put_scale(json_t *config, const struct ak_spec *spec, const struct ak_arch_keys *known)
{
    struct ak_word word;
    float scale = spec->descriptor.attention_scale;
    if (known && ak_words_find(known->reads, "query_pre_attn_scalar", &word))
        put_float(config, "query_pre_attn_scalar", 1.0f / (scale * scale));
}

static void put_experts(json_t *config, const struct ak_spec *spec)
{
    const struct ak_spec_config *c = &spec->config;
    if (c->n_experts == 0)
        return;
    /* Mixtral's experts have no name with "moe" */
    bool is_mixtral = c->expert_width == c->ffn_width && c->shared_width == 0;
    put_u32(config, is_mixtral ? "num_local_experts" : "num_experts", c->n_experts);
    put_u32(config, "num_experts_per_tok", c->n_experts_used);
    if (!is_mixtral)
        put_u32(config, "moe_intermediate_size", c->expert_width);
    if (c->shared_width > 0)
        put_u32(config, "shared_expert_intermediate_size", c->shared_width);
    json_object_set_new(config, "norm_topk_prob",
                        json_boolean(spec->descriptor.normalized_experts));
}

/* Layers with a window that are no regular ones are listed. */
static void put_window(json_t *config, const struct ak_spec *spec)
{
    const struct ak_spec_config *c = &spec->config;
    if (c->window > 0)
        put_u32(config, "sliding_window", c->window);
    if (c->window > 0)
        json_object_set_new(config, "use_sliding_window", json_true());
    if (c->has_global_layers && c->window > 0) {
        json_t *types = json_array();
        for (uint32_t i = 0; i < c->n_layers; i++)
            json_array_append_new(types, json_string(ak_spec_layer(spec, (int)i)->window > 0 ?
                                                         "sliding_attention" :
                                                         "full_attention"));
        json_object_set_new(config, "layer_types", types);
    } else if (c->global_every > 0 && c->global_every < c->n_layers) {
        put_u32(config, "sliding_window_pattern", c->global_every);
    }
}

/* Factors of LongRoPE, which GGUF has as tensors. */
static json_t *make_factors(const struct ak_compress_job *j, enum ak_role role)
{
    struct ak_tensor tensor;
    json_t *list = json_array();
    for (size_t i = 0; ak_provider_tensor(j->source, i, &tensor); i++)
        for (uint64_t k = 0; tensor.has_role && tensor.role == role &&
                             tensor.type == AK_QUANT_F32 && k < tensor.shape[0];
             k++) {
            float factor;
            memcpy(&factor, (const uint8_t *)tensor.data + k * sizeof factor, sizeof factor);
            json_array_append_new(list, make_float(factor));
        }
    return list;
}

static bool has_tensor(const struct ak_compress_job *j, enum ak_role role, struct ak_tensor *out)
{
    for (size_t i = 0; ak_provider_tensor(j->source, i, out); i++)
        if (out->has_role && out->role == role)
            return true;
    return false;
}

/* GGUF has Llama 3's scaling as divisors. The last one is the factor; the others are those of every
 * model so far, and are compared when the file is read back. */
static json_t *make_llama3(const struct ak_compress_job *j)
{
    struct ak_tensor t;
    float factor = 1.0f;
    if (!has_tensor(j, AK_ROLE_ROPE_FREQS, &t) || t.type != AK_QUANT_F32)
        return NULL;
    memcpy(&factor, (const uint8_t *)t.data + t.bytes - sizeof factor, sizeof factor);
    return json_pack("{sssosfsfsi}", "rope_type", "llama3", "factor", make_float(factor),
                     "low_freq_factor", 1.0, "high_freq_factor", 4.0,
                     "original_max_position_embeddings", 8192);
}

static json_t *make_scaling(const struct ak_compress_job *j)
{
    const struct ak_spec_rope *rope = &j->spec.rope;
    struct ak_tensor t;
    json_t *scaling = NULL;
    if (has_tensor(j, AK_ROLE_ROPE_FACTORS_LONG, &t))
        return json_pack("{sssosososi}", "rope_type", "longrope", "long_factor",
                         make_factors(j, AK_ROLE_ROPE_FACTORS_LONG), "short_factor",
                         make_factors(j, AK_ROLE_ROPE_FACTORS_SHORT), "attention_factor",
                         make_float(rope->magnitude), "original_max_position_embeddings",
                         (int)rope->original_context);
    if (rope->scaling == AK_SPEC_ROPE_PLAIN)
        return make_llama3(j);
    if (rope->scaling == AK_SPEC_ROPE_LINEAR)
        return json_pack("{ssso}", "rope_type", "linear", "factor", make_float(rope->factor));
    if (rope->scaling == AK_SPEC_ROPE_YARN)
        scaling = json_pack("{sssosososo}", "rope_type", "yarn", "factor", make_float(rope->factor),
                            "beta_fast", make_float(rope->beta_fast), "beta_slow",
                            make_float(rope->beta_slow), "attention_factor",
                            make_float(rope->magnitude * ak_spec_yarn_magnitude(rope->factor)));
    if (scaling && rope->original_context > 0)
        put_u32(scaling, "original_max_position_embeddings", rope->original_context);
    return scaling;
}

static void put_rotation(json_t *config, const struct ak_compress_job *j)
{
    const struct ak_spec *spec = &j->spec;
    if (spec->n_rotations == 0)
        return;
    json_t *scaling = make_scaling(j);
    put_float(config, "rope_theta", spec->config.rope_base);
    if (spec->config.rope_dims != spec->config.head_dim)
        put_float(config, "partial_rotary_factor",
                  (float)spec->config.rope_dims / (float)spec->config.head_dim);
    if (spec->n_rotations > 1)
        put_float(config, "rope_local_base_freq", spec->descriptor.local_rope_base);
    if (scaling)
        json_object_set_new(config, "rope_scaling", scaling);
}

static void put_token(json_t *config, const char *key, int64_t id)
{
    if (id >= 0)
        json_object_set_new(config, key, json_integer(id));
}

/* Numbers of single architectures, under the names by which they are read. */
static void put_others(json_t *config, const struct ak_compress_job *j,
                       const struct ak_arch_keys *known)
{
    char found[AK_SPEC_KEY_BYTES];
    struct ak_meta meta;
    const char *key;
    for (size_t i = 0; (key = ak_spec_renamed_key(i)); i++) {
        const char *name = ak_spec_hf_name(known, key);
        if (strchr(name, '.') || json_object_get(config, name) ||
            strcmp(key, "attention.sliding_window_pattern") == 0 ||
            !ak_spec_find(j->source, &j->spec.config, key, found, &meta))
            continue;
        if (meta.kind == AK_META_FLOAT)
            put_float(config, name, (float)meta.as.number);
        else if (meta.kind == AK_META_UINT || meta.kind == AK_META_INT)
            json_object_set_new(config, name, json_integer(meta.as.integer));
        else if (meta.kind == AK_META_BOOL)
            json_object_set_new(config, name, json_boolean(meta.as.boolean));
        else if (meta.kind == AK_META_STRING)
            json_object_set_new(config, name, json_stringn(meta.as.string, (size_t)meta.n));
    }
}

/* What the class of the new config.json knows. */
static const struct ak_arch_keys *find_known(const json_t *config, const struct ak_spec *spec)
{
    const char *type = json_string_value(json_object_get(config, "model_type"));
    struct ak_text text = { type, type ? (uint32_t)strlen(type) : 0 };
    return ak_arch_keys(spec->arch, &text);
}

/* Sizes and tokens that are the same in all models may have no key in this one. */
static void delete_unknown(json_t *config, const struct ak_arch_keys *known)
{
    struct ak_word word;
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(config, next, key, value)
    {
        if (!json_is_object(value) && known && !ak_words_find(known->reads, key, &word) &&
            !ak_words_find(known->fixed, key, &word) && !ak_words_find(ak_unused_keys, key, &word))
            json_object_del(config, key);
    }
}

static json_t *make_config(const struct ak_compress_job *j)
{
    json_t *config = json_object();
    struct ak_vocab vocab = ak_vocab_none;
    struct ak_tensor output;
    struct ak_word word;
    json_object_set_new(config, "model_type", choose_model_type(&j->spec));
    put_sizes(config, &j->spec);
    put_experts(config, &j->spec);
    put_window(config, &j->spec);
    put_rotation(config, j);
    json_object_set_new(config, "tie_word_embeddings",
                        json_boolean(!has_tensor(j, AK_ROLE_OUTPUT, &output)));
    ak_provider_vocab(j->source, &vocab, NULL);
    put_token(config, "bos_token_id", vocab.bos);
    put_token(config, "eos_token_id", vocab.eos);
    put_token(config, "pad_token_id", vocab.padding);
    const struct ak_arch_keys *known = find_known(config, &j->spec);
    if (vocab.padding < 0 && known && ak_words_find(known->reads, "pad_token_id", &word) &&
        word.nullable)
        json_object_set_new(config, "pad_token_id", json_null()); /* not the class's default */
    put_scale(config, &j->spec, known);
    put_others(config, j, known);
    delete_unknown(config, known);
    json_object_set_new(config, "torch_dtype", json_string("float16"));
    return config;
}

ak_status ak_compress_write_config(const struct ak_compress_job *j)
{
    if (ak_compress_folder_is_old(j->folder))
        return AKUNU_OK; /* the encoding joins what is there */
    AK_TRY(j->is_gguf ? write_config(j, make_config(j), JSON_REAL_PRECISION(9)) : copy_files(j));
    return j->is_gguf || has_gguf_metadata(j) ? write_metadata(j) : AKUNU_OK;
}

/* ---- What was written, read back ---------------------------------------- */
static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-5 * fabs(a);
}

/* A number of the description: in the source, and as it was read back. */
struct number {
    const char *what;
    double source, written;
};

static ak_status compare_numbers(const struct number *numbers, size_t n, struct ak_error *error)
{
    for (size_t i = 0; i < n; i++)
        if (!is_near(numbers[i].source, numbers[i].written))
            return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s is %g, and would be read as %g",
                           numbers[i].what, numbers[i].source, numbers[i].written);
    return AKUNU_OK;
}

static ak_status compare_config(const struct ak_spec *a, const struct ak_spec *b,
                                struct ak_error *error)
{
    const struct ak_spec_config *x = &a->config, *y = &b->config;
    const struct number numbers[] = {
        { "the number of layers", x->n_layers, y->n_layers },
        { "the width", x->width, y->width },
        { "the number of heads", x->n_heads, y->n_heads },
        { "the number of key-value heads", x->n_kv_heads, y->n_kv_heads },
        { "the size of a head", x->head_dim, y->head_dim },
        { "the width of the feed-forward network", x->ffn_width, y->ffn_width },
        { "the vocabulary", x->vocab_size, y->vocab_size },
        { "the context", x->context, y->context },
        { "the first position", x->first_position, y->first_position },
        { "the number of token types", x->n_types, y->n_types },
        { "the number of experts", x->n_experts, y->n_experts },
        { "the number of experts of a token", x->n_experts_used, y->n_experts_used },
        { "the width of an expert", x->expert_width, y->expert_width },
        { "the width of the shared expert", x->shared_width, y->shared_width },
        { "the norms' epsilon", (double)x->norm_eps, (double)y->norm_eps },
        { "the rotated part of a head", x->rope_dims, y->rope_dims },
        { "the kind of pooling", a->pooling.kinds[0], b->pooling.kinds[0] },
        { "the number of poolings", a->pooling.n_kinds, b->pooling.n_kinds },
        { "the pooling of prompts", a->pooling.leaves_prompt_out, b->pooling.leaves_prompt_out },
        { "the length of texts", a->pooling.max_tokens, b->pooling.max_tokens },
        { "the elements of an embedding", a->pooling.n_elements, b->pooling.n_elements },
        { "prompts for embeddings", a->pooling.prompts != NULL, b->pooling.prompts != NULL },
    };
    return compare_numbers(numbers, sizeof numbers / sizeof *numbers, error);
}

static ak_status compare_descriptor(const struct ak_spec *a, const struct ak_spec *b,
                                    struct ak_error *error)
{
    const struct ak_spec_descriptor *x = &a->descriptor, *y = &b->descriptor;
    const struct number numbers[] = {
        { "the architecture", a->arch == b->arch, 1.0 },
        { "the activation", x->activation, y->activation },
        { "the scale of embeddings", (double)x->embedding_scale, (double)y->embedding_scale },
        { "the scale of residuals", (double)x->residual_scale, (double)y->residual_scale },
        { "the scale of scores", (double)x->attention_scale, (double)y->attention_scale },
        { "the cap of scores", (double)x->attention_cap, (double)y->attention_cap },
        { "the divisor of logits", (double)x->logit_divisor, (double)y->logit_divisor },
        { "the cap of logits", (double)x->logit_cap, (double)y->logit_cap },
        { "the window", x->local.window, y->local.window },
        { "the global window", x->global.window, y->global.window },
        { "the rotation", x->local.rotation, y->local.rotation },
        { "the global rotation", x->global.rotation, y->global.rotation },
        { "the interval of global layers", x->global_every, y->global_every },
        { "the place of global layers", x->global_first, y->global_first },
        { "the division of scores by layers", x->divides_by_layer, y->divides_by_layer },
        { "the norm of the experts' weights", x->normalized_experts, y->normalized_experts },
    };
    return compare_numbers(numbers, sizeof numbers / sizeof *numbers, error);
}

static ak_status compare_rotation(const struct ak_spec *a, const struct ak_spec *b,
                                  struct ak_error *error)
{
    const struct number counts[] = { { "the number of rotations", a->n_rotations,
                                       b->n_rotations } };
    AK_TRY(compare_numbers(counts, 1, error));
    for (uint32_t table = 0; table < a->n_rotations; table++) {
        const struct number magnitude = { "the rotation's magnitude", (double)a->magnitude[table],
                                          (double)b->magnitude[table] };
        AK_TRY(compare_numbers(&magnitude, 1, error));
        for (uint32_t i = 0; i < a->config.rope_dims / 2; i++) {
            uint32_t at = table * (a->config.rope_dims / 2) + i;
            const struct number frequency = { "a frequency of the rotation",
                                              (double)a->inverse_frequencies[at],
                                              (double)b->inverse_frequencies[at] };
            AK_TRY(compare_numbers(&frequency, 1, error));
        }
    }
    return AKUNU_OK;
}

static ak_status check_draft(const struct ak_compress_job *j, const struct ak_provider *p,
                             struct ak_spec *spec)
{
    AK_TRY(ak_spec_read(p, spec, j->error));
    AK_TRY(ak_spec_read_pooling(p, spec, &spec->pooling, j->error));
    AK_TRY(ak_spec_init_rope(p, spec, j->error));
    AK_TRY(compare_descriptor(&j->spec, spec, j->error));
    AK_TRY(compare_config(&j->spec, spec, j->error));
    return compare_rotation(&j->spec, spec, j->error);
}

ak_status ak_compress_open_draft(const struct ak_compress_job *j, struct ak_provider **out)
{
    struct ak_spec spec = { 0 };
    AK_TRY(ak_hf_npy_open_draft(j->to, AK_COMPRESS_DRAFT, out, j->error));
    ak_status status = check_draft(j, *out, &spec);
    ak_spec_clear(&spec);
    if (status != AKUNU_ERROR_FORMAT && status != AKUNU_ERROR_UNSUPPORTED)
        return status;
    const struct ak_error why = *j->error;
    return ak_fail(j->error, AKUNU_ERROR_UNSUPPORTED,
                   "config.json cannot say of this model what the GGUF file says: %s; compress its "
                   "Hugging Face folder instead",
                   why.message);
}
