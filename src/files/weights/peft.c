/* LoRA adapters of the PEFT library: a folder with adapter_config.json and
 * adapter_model.safetensors. What is more than factor · B · A is refused by name: DoRA, biases,
 * whole modules and tokens that were trained, weights that the initialization changed.
 *
 * https://huggingface.co/docs/peft/developer_guides/checkpoint */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "files/weights/adapter.h"
#include "files/weights/hf/hf.h"

static const char config_name[] = "adapter_config.json", file_name[] = "adapter_model.safetensors";

struct ak_peft {
    struct ak_file config, file;
    struct ak_hf_tensor_list list;
};

/* ---- The configuration -------------------------------------------------- */
struct peft_config {
    json_t *root;
    double rank, alpha;
    bool is_rank_stabilized;
};

static ak_status read_bool(const json_t *root, const char *key, bool *out, struct ak_error *error)
{
    const json_t *value = json_object_get(root, key);
    *out = json_is_true(value);
    if (!value || json_is_null(value) || json_is_boolean(value))
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: %s is %s; expected a boolean", config_name, key,
                   ak_json_kind(value));
}

static ak_status read_positive(const json_t *value, const char *key, double *out,
                               struct ak_error *error)
{
    *out = json_number_value(value);
    if (json_is_number(value) && *out > 0.0 && *out <= 1e9)
        return AKUNU_OK;
    return json_is_number(value) ?
               ak_fail(error, AKUNU_ERROR_FORMAT, "%s: %s is %g; expected a positive number",
                       config_name, key, *out) :
               ak_fail(error, AKUNU_ERROR_FORMAT, "%s: %s is %s; expected a positive number",
                       config_name, key, value ? ak_json_kind(value) : "missing");
}

/* Text values that plain LoRA has; others change the base or add biases. */
static ak_status check_texts(const json_t *root, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    const json_t *value = json_object_get(root, "peft_type");
    const char *text = json_string_value(value);
    if (!text || strcmp(text, "LORA") != 0)
        return ak_fail(
            error, AKUNU_ERROR_UNSUPPORTED, "%s: peft_type is %s; expected \"LORA\"", config_name,
            text ? ak_show(text, strlen(text), shown) : (value ? ak_json_kind(value) : "missing"));
    text = json_string_value(json_object_get(root, "bias"));
    if (text && strcmp(text, "none") != 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: bias is %s; trained biases are not supported", config_name,
                       ak_show(text, strlen(text), shown));
    static const char *const changing[] = { "pissa", "olora", "corda", "loftq" };
    text = json_string_value(json_object_get(root, "init_lora_weights"));
    for (size_t i = 0; text && i < sizeof changing / sizeof *changing; i++)
        if (strncmp(text, changing[i], strlen(changing[i])) == 0)
            return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                           "%s: init_lora_weights is %s, which changes the model's own weights; "
                           "PEFT can convert the adapter to plain LoRA",
                           config_name, ak_show(text, strlen(text), shown));
    return AKUNU_OK;
}

/* Keys that plain LoRA leaves false, null or empty. */
static ak_status check_absent(const json_t *root, struct ak_error *error)
{
    static const struct {
        const char *key, *what;
    } keys[] = { { "use_dora", "DoRA is" },
                 { "use_qalora", "QA-LoRA is" },
                 { "lora_bias", "trained biases are" },
                 { "modules_to_save", "whole modules in an adapter are" },
                 { "trainable_token_indices", "trained tokens are" },
                 { "target_parameters", "adapters of parameters outside linear modules are" },
                 { "alora_invocation_tokens", "activated LoRA is" },
                 { "layer_replication", "replicated layers are" } };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(root, keys[i].key);
        bool absent = !value || json_is_null(value) || json_is_false(value) ||
                      (json_is_array(value) && json_array_size(value) == 0) ||
                      (json_is_object(value) && json_object_size(value) == 0);
        if (!absent)
            return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s has %s: %s not supported",
                           config_name, keys[i].key, keys[i].what);
    }
    return AKUNU_OK;
}

static ak_status peft_read_config(const struct ak_file *file, struct peft_config *out,
                                  struct ak_error *error)
{
    ak_status status = ak_json_parse_file(file->data, (size_t)file->bytes, &out->root, error);
    if (status != AKUNU_OK) {
        out->root = NULL;
        ak_error_prefix(error, config_name);
        return status;
    }
    if (!json_is_object(out->root))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %s; expected an object", config_name,
                       ak_json_kind(out->root));
    AK_TRY(check_texts(out->root, error));
    AK_TRY(check_absent(out->root, error));
    AK_TRY(read_bool(out->root, "use_rslora", &out->is_rank_stabilized, error));
    AK_TRY(read_positive(json_object_get(out->root, "r"), "r", &out->rank, error));
    return read_positive(json_object_get(out->root, "lora_alpha"), "lora_alpha", &out->alpha,
                         error);
}

/* True if the pattern is that of the module: its name's last parts or, behind "^", all of it. */
static bool is_pattern_of(const char *pattern, const char *module, size_t n)
{
    bool whole = *pattern == '^';
    size_t n_pattern = strlen(pattern + whole);
    pattern += whole;
    if (n_pattern > n || memcmp(module + n - n_pattern, pattern, n_pattern) != 0)
        return false;
    return n_pattern == n || (!whole && module[n - n_pattern - 1] == '.');
}

/* The value that the first pattern of a module gives; *out stays if none does. PEFT's patterns are
 * regular expressions, of which names are supported. */
static ak_status read_pattern(const json_t *root, const char *key, const char *module, size_t n,
                              double *out, struct ak_error *error)
{
    static const char name_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_.-";
    char shown[AK_SHOW_BYTES];
    json_t *patterns = json_object_get(root, key), *value;
    const char *pattern;
    if (!patterns || json_is_null(patterns))
        return AKUNU_OK;
    if (!json_is_object(patterns))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: %s is %s; expected an object", config_name,
                       key, ak_json_kind(patterns));
    json_object_foreach (patterns, pattern, value) {
        const char *name = pattern + (*pattern == '^');
        if (name[strspn(name, name_characters)] != '\0')
            return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                           "%s: %s has the regular expression %s; names of modules are supported",
                           config_name, key, ak_show(pattern, strlen(pattern), shown));
        if (is_pattern_of(pattern, module, n))
            return read_positive(value, key, out, error);
    }
    return AKUNU_OK;
}

/* ---- The tensors -------------------------------------------------------- */
/* Says which kind of tensor it is that plain LoRA lacks. */
static ak_status refuse(const char *name, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    ak_show(name, strlen(name), shown);
    if (strstr(name, "lora_magnitude_vector"))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: DoRA is not supported", shown);
    if (strstr(name, "lora_embedding_"))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: adapters of the embedding are not supported", shown);
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "%s is not part of a plain LoRA; expected names that begin with "
                   "base_model.model. and end in .lora_A.weight or .lora_B.weight",
                   shown);
}

static ak_status add_peft_tensor(struct ak_adapter *adapter, const struct ak_hf_tensor *t,
                                 struct ak_error *error)
{
    static const char root[] = "base_model.model.",
                      endings[2][16] = { ".lora_A.weight", ".lora_B.weight" };
    size_t n = strlen(t->name), n_root = strlen(root), n_ending = strlen(endings[0]);
    if (n <= n_root + n_ending || strncmp(t->name, root, n_root) != 0)
        return refuse(t->name, error);
    bool is_b = strcmp(t->name + n - n_ending, endings[1]) == 0;
    if (!is_b && strcmp(t->name + n - n_ending, endings[0]) != 0)
        return refuse(t->name, error);
    struct ak_tensor tensor = { .name = t->name,
                                .type = t->type,
                                .type_name = t->dtype,
                                .n_dims = t->n_dims,
                                .bytes = t->bytes,
                                .offset = t->offset,
                                .data = adapter->peft->file.data + t->offset };
    memcpy(tensor.shape, t->shape, sizeof tensor.shape);
    AK_TRY(ak_tensor_check_type(&tensor, error));
    return ak_adapter_add(adapter, t->name + n_root, n - n_root - n_ending, ".weight", is_b,
                          &tensor, error);
}

/* alpha / rank, or alpha / √rank if it is rank-stabilized. */
static ak_status set_factor(const struct peft_config *config, struct ak_adapter_pair *pair,
                            struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    size_t n = strlen(pair->name) - strlen(".weight");
    double rank = config->rank, alpha = config->alpha;
    AK_TRY(read_pattern(config->root, "rank_pattern", pair->name, n, &rank, error));
    AK_TRY(read_pattern(config->root, "alpha_pattern", pair->name, n, &alpha, error));
    if (pair->a.name && (double)ak_adapter_rows(&pair->a) != rank)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s has the rank %llu; %s says %g",
                       ak_show(pair->a.name, strlen(pair->a.name), shown),
                       (unsigned long long)ak_adapter_rows(&pair->a), config_name, rank);
    pair->factor = (float)(alpha / (config->is_rank_stabilized ? sqrt(rank) : rank));
    return AKUNU_OK;
}

static ak_status open_peft_file(const char *folder, const char *name, struct ak_file *out,
                                struct ak_error *error)
{
    size_t n = strlen(folder) + strlen(name) + 2;
    char *path = ak_alloc(n, 1);
    if (!path)
        return ak_fail_memory(error, "a file's path", n);
    snprintf(path, n, "%s/%s", folder, name);
    ak_status status = ak_file_open(path, out, error);
    ak_free(path);
    return status;
}

static ak_status read_tensors(const struct peft_config *config, struct ak_adapter *out,
                              struct ak_error *error)
{
    struct ak_peft *peft = out->peft;
    uint64_t data;
    ak_status status = ak_hf_safetensors_read(&peft->file, 0, &peft->list, &data, error);
    if (status != AKUNU_OK) {
        ak_error_prefix(error, file_name);
        return status;
    }
    for (size_t i = 0; i < peft->list.n; i++)
        AK_TRY(add_peft_tensor(out, &peft->list.tensors[i], error));
    for (uint32_t i = 0; i < out->n_pairs; i++)
        AK_TRY(set_factor(config, &out->pairs[i], error));
    ak_provider_fingerprint_begin(&out->fingerprint, &peft->file);
    ak_provider_fingerprint_add(&out->fingerprint, &peft->file, data);
    ak_provider_fingerprint_add(&out->fingerprint, &peft->config, peft->config.bytes);
    return AKUNU_OK;
}

ak_status ak_adapter_open_peft(const char *folder, struct ak_adapter *out, struct ak_error *error)
{
    out->naming = AK_PROVIDER_NAMING_HF;
    out->peft = ak_alloc(1, sizeof *out->peft);
    if (!out->peft)
        return ak_fail_memory(error, "an adapter", sizeof *out->peft);
    AK_TRY(open_peft_file(folder, config_name, &out->peft->config, error));
    return open_peft_file(folder, file_name, &out->peft->file, error);
}

ak_status ak_adapter_read_peft(struct ak_adapter *out, struct ak_error *error)
{
    struct peft_config config = { 0 };
    ak_status status = peft_read_config(&out->peft->config, &config, error);
    if (status == AKUNU_OK)
        status = read_tensors(&config, out, error);
    json_decref(config.root);
    return status;
}

void ak_adapter_close_peft(struct ak_peft *peft)
{
    if (!peft)
        return;
    ak_hf_tensor_list_free(&peft->list);
    ak_file_close(&peft->config);
    ak_file_close(&peft->file);
    ak_free(peft);
}
