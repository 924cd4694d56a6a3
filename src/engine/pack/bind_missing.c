/* The message about a weight that a file lacks. Of a Hugging Face folder it names what is there in
 * its place: most often a quantized matrix whose settings akunu did not find. */
#include <stdio.h>
#include <string.h>

#include "engine/pack/bind.h"
#include "engine/spec/arch.h"

/* Suffixes of a module's tensors, and the tool that writes them; the first one that is there
 * decides. */
static const struct {
    const char *suffix, *tool;
} marks[] = {
    { ".weight_packed", "compressed-tensors" },
    { ".weight_scale_inv", "FP8" },
    { ".g_idx", "GPTQ" },
    { ".qzeros", "GPTQ or AWQ" },
    { ".weight_scale_2", "NVFP4 of Model Optimizer" },
    { ".weight_scale", "FP8 or compressed-tensors" },
    { ".weight.absmax", "bitsandbytes" },
    { ".weight.quant_map", "bitsandbytes" },
    { ".SCB", "bitsandbytes, LLM.int8" },
    { ".W_q", "HQQ" },
    { ".codebooks", "AQLM" },
    { ".Qidxs", "QuIP#" },
    { ".weight_scales", "EETQ" },
    { ".weight._data", "Quanto" },
    { ".biases", "MLX" },
    { ".scales", "MLX, GPTQ or AWQ" },
    { ".qweight", "GPTQ or AWQ" },
};
enum { N_MARKS = sizeof marks / sizeof *marks };

/* What comes after "MODULE" in the names of its tensors, and the best mark among them. */
struct siblings {
    char names[160];
    unsigned n;
    size_t mark;
};

static void add_sibling(struct siblings *s, const char *suffix, const struct ak_tensor *t)
{
    size_t at = strlen(s->names);
    if (s->n++ < 4)
        snprintf(s->names + at, sizeof s->names - at, "%s%.40s (%s)", at ? ", " : "", suffix,
                 ak_tensor_type_name(t));
    for (size_t i = 0; i < s->mark; i++)
        if (strcmp(marks[i].suffix, suffix) == 0)
            s->mark = i;
}

/* The tensors of the module, whatever the prefix of the class. `module` ends before its dot. */
static struct siblings find_siblings(const struct ak_provider *p, const char *module, size_t n)
{
    struct siblings found = { .mark = N_MARKS };
    struct ak_tensor t;
    for (size_t i = 0; ak_provider_tensor(p, i, &t); i++) {
        const char *stem = ak_hf_stem(t.name);
        if (strncmp(stem, module, n) == 0 && stem[n] == '.')
            add_sibling(&found, stem + n, &t);
    }
    return found;
}

static size_t module_length(const char *stem)
{
    const char *dot = strrchr(stem, '.');
    return dot ? (size_t)(dot - stem) : strlen(stem);
}

/* Whether config.json describes a quantization. */
static bool has_settings(const struct ak_provider *p)
{
    static const char key[] = "quantization";
    struct ak_meta meta;
    for (size_t i = 0; ak_provider_meta(p, i, &meta); i++)
        if (strncmp(meta.key, key, strlen(key)) == 0)
            return true;
    return false;
}

ak_status ak_bind_explain_quantized(const struct ak_provider *p, const char *name, ak_status status,
                                    struct ak_error *error)
{
    const char *stem = ak_hf_stem(name);
    size_t n = module_length(stem);
    char before[sizeof error->message];
    if (!error || ak_provider_naming(p) != AK_PROVIDER_NAMING_HF)
        return status;
    struct siblings found = find_siblings(p, stem, n);
    if (found.mark == N_MARKS)
        return status;
    snprintf(before, sizeof before, "%s", error->message);
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "%s; %.*s has %s, which is how %s stores a quantized matrix, but %s", before,
                   (int)n, stem, found.names, marks[found.mark].tool,
                   has_settings(p) ? "the settings in config.json are of another kind" :
                                     "config.json has no quantization_config, and there is no "
                                     "quantize_config.json, quant_config.json or "
                                     "hf_quant_config.json: add the settings, or use the model "
                                     "that it was made from");
}

/* Whether the file has a tensor of the layer. */
static bool has_layer(const struct ak_provider *p, const char *name, int layer)
{
    char number[16];
    struct ak_tensor t;
    snprintf(number, sizeof number, ".%d.", layer);
    const char *stem = ak_hf_stem(name), *at = strstr(stem, number);
    size_t n = at ? (size_t)(at - stem) + strlen(number) : 0;
    for (size_t i = 0; n > 0 && ak_provider_tensor(p, i, &t); i++)
        if (strncmp(ak_hf_stem(t.name), stem, n) == 0)
            return true;
    return n == 0;
}

/* There are fewer layers than the config says: names its key. */
static ak_status fail_layer(const struct ak_provider *p, const struct ak_binding *b,
                            const struct ak_arch_rule *rule, const char *name, int layer,
                            struct ak_error *error)
{
    char key[AK_SPEC_KEY_BYTES];
    struct ak_meta meta;
    struct ak_spec_config config = b->spec->config;
    bool is_encoder = ak_role_is_encoder(rule->role);
    if (is_encoder)
        config.keys = config.architecture;
    ak_spec_find(p, &config, is_encoder ? "encoder.block_count" : "block_count", key, &meta);
    return ak_fail(error, AKUNU_ERROR_FORMAT,
                   "%s is missing, and so is the rest of layer %d: %s is %u", name, layer, key,
                   ak_spec_role_layers(b->spec, rule->role));
}

ak_status ak_bind_fail_missing(const struct ak_provider *p, const struct ak_binding *b,
                               const struct ak_arch_rule *rule, enum ak_role stored, int layer,
                               struct ak_error *error)
{
    char name[AK_ROLE_NAME_BYTES], own[AK_ROLE_NAME_BYTES];
    const char *pattern = ak_arch_gguf_tensor(b->spec->arch, stored);
    bool is_hf = b->spec->config.naming == AK_PROVIDER_NAMING_HF && rule->hf;
    if (!is_hf)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is missing (%s)",
                       pattern ? ak_role_expand(pattern, layer, own) : "a tensor",
                       ak_role_name(stored, layer, name));
    ak_role_expand(ak_role_expand_expert(rule->hf, 0, name), layer, own);
    if (layer > 0 && !has_layer(p, own, layer))
        return fail_layer(p, b, rule, own, layer, error);
    ak_status status = ak_fail(error, AKUNU_ERROR_FORMAT, "%s is missing", own);
    return ak_bind_explain_quantized(p, own, status, error);
}
