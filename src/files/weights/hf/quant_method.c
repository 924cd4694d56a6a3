/* Which quantization scheme a checkpoint has: its settings are in config.json or, from some tools,
 * in a file of their own. */
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "files/weights/hf/quant.h"

static const struct {
    struct ak_hf_quantization info;
    const struct ak_hf_scheme *scheme;
} methods[] = {
    { { "mlx", "affine of 2, 3, 4, 5, 6 and 8 bits in groups of 32, 64 and 128, with settings of "
               "single modules; MXFP4" },
      &ak_hf_mlx },
    { { "gptq", "2, 4 and 8 bits of any group size, with and without act-order, of both versions, "
                "with settings of single modules" },
      &ak_hf_gptq },
    { { "awq", "4 bits, laid out for GEMM" }, &ak_hf_awq },
    { { "fp8", "E4M3 with scales of blocks, rows or tensors" }, &ak_hf_fp8 },
    { { "fbgemm_fp8", "E4M3 with scales of rows" }, &ak_hf_fp8 },
    { { "compressed-tensors", "pack-quantized: whole numbers of 4 and 8 bits with scales of groups "
                              "or rows, with and without zero points and "
                              "act-order; int-quantized: of 8 bits; float-quantized: E4M3" },
      NULL },
    { { "mxfp4", "experts of gpt-oss" }, NULL },
};

const struct ak_hf_quantization *ak_hf_quantization_at(size_t i)
{
    return i < sizeof methods / sizeof *methods ? &methods[i].info : NULL;
}

static ak_status refuse_bitsandbytes(const struct ak_hf_quant *q, struct ak_error *error)
{
    const char *type = ak_hf_quant_text(q->config, "bnb_4bit_quant_type");
    bool four = json_is_true(json_object_get(q->config, "load_in_4bit"));
    const char *kind = !four ? "LLM.int8" : type && strcmp(type, "nf4") == 0 ? "NF4" : "FP4";
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "%s: quant_method bitsandbytes (%s) is not supported; use the checkpoint that "
                   "it was made from, or one in GPTQ, AWQ, MLX or GGUF",
                   q->where, kind);
}

/* Whether the tensor is a single row, as position ids are. */
static bool is_row(const struct ak_hf_tensor *t)
{
    unsigned d = 0;
    while (d + 1 < t->n_dims && t->shape[d] == 1)
        d++;
    return d + 1 == t->n_dims;
}

/* Whether all tensors are floats, apart from ids and masks, which some checkpoints contain. */
static bool is_of_floats(const struct ak_hf *h)
{
    for (size_t i = 0; i < h->list.n; i++) {
        enum ak_quant_type type = h->list.tensors[i].type;
        bool is_float = type == AK_QUANT_F32 || type == AK_QUANT_F16 || type == AK_QUANT_BF16 ||
                        type == AK_QUANT_F64;
        if (!is_float && type != AK_QUANT_BOOL &&
            !(type == AK_QUANT_I64 && is_row(&h->list.tensors[i])))
            return false;
    }
    return true;
}

static const struct ak_hf_scheme *scheme_of(const char *method, const char *format)
{
    static const struct {
        const char *format;
        const struct ak_hf_scheme *scheme;
    } compressed[] = { { "float-quantized", &ak_hf_fp8 },
                       { "pack-quantized", &ak_hf_pack_quantized },
                       { "int-quantized", &ak_hf_int_quantized } };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (methods[i].scheme && strcmp(methods[i].info.name, method) == 0)
            return methods[i].scheme;
    for (size_t i = 0; format && strcmp(method, "compressed-tensors") == 0 &&
                       i < sizeof compressed / sizeof *compressed;
         i++)
        if (strcmp(compressed[i].format, format) == 0)
            return compressed[i].scheme;
    return NULL;
}

/* An unknown method is ignored if all tensors are floats: these are the weights, and the key is a
 * leftover, or tells a loader to quantize them. */
static ak_status find_method(struct ak_hf_quant *q, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES], shown_format[AK_SHOW_BYTES];
    const json_t *value = json_object_get(q->config, "quant_method");
    const char *method = json_string_value(value), *format = ak_hf_quant_text(q->config, "format");
    if (!value && json_object_get(q->config, "bits") && json_object_get(q->config, "group_size")) {
        q->scheme = &ak_hf_mlx; /* MLX repeats its own key under this one */
        return AKUNU_OK;
    }
    q->scheme = method ? scheme_of(method, format) : NULL;
    if (q->scheme || is_of_floats(q->h) ||
        (method && strcmp(method, "mxfp4") == 0)) /* gpt-oss: names of tensors suffice */
        return AKUNU_OK;
    if (!method)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s: quant_method is %s, where a string is expected", q->where,
                       ak_json_kind(value));
    if (strcmp(method, "bitsandbytes") == 0)
        return refuse_bitsandbytes(q, error);
    ak_show(method, strlen(method), shown);
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "%s: quant_method %s%s%s is not supported; supported are MLX's, gptq, awq, "
                   "fp8, fbgemm_fp8, mxfp4 and compressed-tensors with the formats pack-quantized, "
                   "int-quantized and float-quantized",
                   q->where, shown, format ? " with the format " : "",
                   format ? ak_show(format, strlen(format), shown_format) : "");
}

/* ---- Where the settings are --------------------------------------------- */
#define GPTQ_FILE "quantize_config.json"     /* AutoGPTQ, GPTQModel */
#define AWQ_FILE "quant_config.json"         /* AutoAWQ */
#define MODELOPT_FILE "hf_quant_config.json" /* NVIDIA's Model Optimizer */
const char *const ak_hf_settings_files[] = { GPTQ_FILE, AWQ_FILE, MODELOPT_FILE, NULL };

/* Files whose object is that of config.json, and the method if they do not name one. */
static const struct {
    const char *name, *method;
} files[] = { { GPTQ_FILE, "gptq" }, { AWQ_FILE, "awq" } };

/* AutoAWQ's names of settings in its file, and those in config.json. */
static const struct {
    const char *file, *config;
} renamed[] = { { "w_bit", "bits" }, { "q_group_size", "group_size" } };

/* Makes of a file's object what config.json would have. */
static ak_status read_settings(struct ak_hf_quant *q, const struct ak_file *file,
                               const char *method, struct ak_error *error)
{
    AK_TRY(ak_json_parse(file->data, (size_t)file->bytes, &q->own_config, error));
    if (!json_is_object(q->own_config))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s, where an object is expected",
                       ak_json_kind(q->own_config));
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++) {
        json_t *value = json_object_get(q->own_config, renamed[i].file);
        if (value && !json_object_get(q->own_config, renamed[i].config))
            json_object_set(q->own_config, renamed[i].config, value);
    }
    if (!json_object_get(q->own_config, "quant_method"))
        json_object_set_new(q->own_config, "quant_method", json_string(method));
    q->config = q->own_config;
    return AKUNU_OK;
}

static ak_status find_settings_file(struct ak_hf_quant *q, struct ak_error *error)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const struct ak_file *file = ak_hf_sidecar(q->h, files[i].name);
        if (!file || is_of_floats(q->h)) /* a leftover */
            continue;
        q->where = files[i].name;
        ak_status status = read_settings(q, file, files[i].method, error);
        if (status != AKUNU_OK)
            ak_error_prefix(error, files[i].name);
        return status;
    }
    return AKUNU_OK;
}

/* Model Optimizer's FP8 is that of other tools. */
static ak_status read_modelopt(struct ak_hf_quant *q, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    const struct ak_file *file = ak_hf_sidecar(q->h, MODELOPT_FILE);
    if (!file || is_of_floats(q->h))
        return AKUNU_OK;
    ak_status status = ak_json_parse(file->data, (size_t)file->bytes, &q->own_config, error);
    if (status != AKUNU_OK) {
        ak_error_prefix(error, MODELOPT_FILE);
        return status;
    }
    q->config = json_object_get(q->own_config, "quantization");
    q->where = MODELOPT_FILE ": quantization";
    const char *method = ak_hf_quant_text(q->config, "quant_algo");
    if (method && strcmp(method, "FP8") == 0) {
        q->scheme = &ak_hf_fp8;
        return AKUNU_OK;
    }
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "%s: quant_algo %s is not supported; supported is FP8", q->where,
                   method ? ak_show(method, strlen(method), shown) : "(none)");
}

ak_status ak_hf_find_scheme(struct ak_hf_quant *q, struct ak_error *error)
{
    static const struct {
        const char *key, *where;
    } keys[] = { { "quantization", "config.json: quantization" },
                 { "quantization_config", "config.json: quantization_config" } };
    const json_t *root = q->h->metadata.roots[0];
    size_t i = 0;
    for (; i < sizeof keys / sizeof *keys && !json_is_object(q->config); i++) {
        q->config = json_object_get(root, keys[i].key);
        q->where = keys[i].where;
    }
    bool is_mlx = i == 1 && json_is_object(q->config);
    if (!json_is_object(q->config))
        AK_TRY(find_settings_file(q, error));
    if (is_mlx)
        q->scheme = &ak_hf_mlx;
    else
        AK_TRY(json_is_object(q->config) ? find_method(q, error) : read_modelopt(q, error));
    return q->scheme ? q->scheme->read(q, error) : AKUNU_OK;
}
