/* Opened model files behind handles: tensors, values, metadata. Also akunu_convert, which
 * writes one. */
#include "api/handles.h"

#include <string.h>

#include "conversion/allocate/allocate.h"
#include "base/hash.h"
#include "base/mem.h"
#include "conversion/convert/convert.h"
#include "engine/spec/arch.h"

struct akunu_file {
    struct ak_provider *provider;
    bool lent;
    char *architecture;
    char **canonical; /* [n_tensors]; NULL: the tensor has no role */
    size_t n_tensors;
};

_Static_assert((int)AK_META_BOOL == AKUNU_META_BOOL && (int)AK_META_INT == AKUNU_META_INT &&
                   (int)AK_META_UINT == AKUNU_META_UINT && (int)AK_META_FLOAT == AKUNU_META_FLOAT &&
                   (int)AK_META_STRING == AKUNU_META_STRING &&
                   (int)AK_META_ARRAY == AKUNU_META_ARRAY,
               "the public kinds of metadata are the inner ones");

static ak_status copy_names(struct akunu_file *file, struct ak_error *error)
{
    struct ak_text architecture = { "", 0 };
    if (ak_meta_text(file->provider, "general.architecture", &architecture, NULL) != AKUNU_OK)
        architecture.n = 0; /* of a wrong type: loading says so, looking does without */
    file->architecture = ak_strndup(architecture.bytes, architecture.n);
    file->n_tensors = ak_provider_n_tensors(file->provider);
    file->canonical = ak_alloc(file->n_tensors, sizeof *file->canonical);
    if (!file->architecture || !file->canonical)
        return ak_fail_memory(error, "the names of a file",
                              file->n_tensors * sizeof *file->canonical);

    struct ak_tensor tensor;
    const struct ak_arch *arch = NULL;
    char name[AK_ROLE_NAME_BYTES];
    if (ak_provider_naming(file->provider) == AK_PROVIDER_NAMING_HF &&
        ak_arch_find(file->provider, &arch, NULL) != AKUNU_OK)
        arch = NULL; /* an unknown architecture's tensors have no roles */
    for (size_t i = 0; i < file->n_tensors && ak_provider_tensor(file->provider, i, &tensor); i++) {
        if (arch)
            tensor.has_role = ak_arch_find_role(arch, tensor.name, &tensor.role, &tensor.layer);
        if (!tensor.has_role)
            continue;
        ak_role_name(tensor.role, tensor.layer, name);
        file->canonical[i] = ak_strndup(name, strlen(name));
        if (!file->canonical[i])
            return ak_fail_memory(error, "the names of a file", strlen(name) + 1);
    }
    return AKUNU_OK;
}

/* Wraps a provider. Unless it is lent, takes ownership of it, on failure too. */
static struct akunu_file *wrap(struct ak_provider *provider, bool lent, struct ak_error *error)
{
    struct akunu_file *file = ak_alloc(1, sizeof *file);
    if (!file) {
        ak_fail_memory(error, "a file", sizeof *file);
        if (!lent)
            ak_provider_close(provider);
        return NULL;
    }
    file->provider = provider;
    file->lent = lent;
    if (copy_names(file, error) == AKUNU_OK)
        return file;
    akunu_file_free(file);
    return NULL;
}

struct akunu_file *ak_api_lend_file(struct ak_provider *provider)
{
    return wrap(provider, true, NULL);
}

static ak_status open_with(const char *path, const char *const *override_kv,
                           struct ak_provider **out, struct ak_error *error)
{
    *out = NULL;
    if (!path)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no path is given");
    AK_TRY(ak_provider_open(path, out, error));
    AK_TRY(ak_provider_adjust(*out, override_kv, NULL, error));
    return AKUNU_OK;
}

struct akunu_file *akunu_file_open_with(const char *path, const char *const *override_kv)
{
    struct ak_error error = { 0 };
    struct ak_provider *provider;
    struct akunu_file *file = NULL;
    if (open_with(path, override_kv, &provider, &error) == AKUNU_OK)
        file = wrap(provider, false, &error);
    else
        ak_provider_close(provider);
    if (!file)
        ak_api_finish(&error);
    return file;
}

struct akunu_file *akunu_file_open(const char *path)
{
    return akunu_file_open_with(path, NULL);
}

void akunu_file_free(struct akunu_file *file)
{
    if (!file)
        return;
    if (!file->lent)
        ak_provider_close(file->provider);
    for (size_t i = 0; file->canonical && i < file->n_tensors; i++)
        ak_free(file->canonical[i]);
    ak_free(file->canonical);
    ak_free(file->architecture);
    ak_free(file);
}

static ak_status check_file(const struct akunu_file *file, struct ak_error *error)
{
    return file ? AKUNU_OK : ak_fail(error, AKUNU_ERROR_ARGUMENT, "no file is given");
}

static ak_status get_tensor(const struct akunu_file *file, size_t i, struct ak_tensor *out,
                            struct ak_error *error)
{
    AK_TRY(check_file(file, error));
    if (!ak_provider_tensor(file->provider, i, out))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "tensor %zu of a file with %zu", i,
                       file->n_tensors);
    return AKUNU_OK;
}

static ak_status get_info(const struct akunu_file *file, struct akunu_file_info *info, size_t size,
                          struct ak_error *error)
{
    AK_TRY(check_file(file, error));
    struct akunu_file_info full = {
        .format = file->provider->format->name,
        .architecture = file->architecture,
        .n_tensors = file->n_tensors,
        .n_metadata = ak_provider_n_metas(file->provider),
        .bytes = ak_provider_bytes(file->provider),
    };
    return ak_api_copy_out(info, size, &full, sizeof full, "akunu_file_info", error);
}

enum akunu_status akunu_file_get_info(const struct akunu_file *file, struct akunu_file_info *info,
                                      size_t size)
{
    struct ak_error error = { 0 };
    get_info(file, info, size, &error);
    return ak_api_finish(&error);
}

static ak_status get_tensor_info(const struct akunu_file *file, size_t i,
                                 struct akunu_tensor_info *info, size_t size,
                                 struct ak_error *error)
{
    struct ak_tensor tensor;
    AK_TRY(get_tensor(file, i, &tensor, error));
    struct akunu_tensor_info full = {
        .name = tensor.name,
        .canonical = file->canonical[i],
        .type = ak_tensor_type_name(&tensor),
        .n_dims = tensor.n_dims,
        .bytes = tensor.bytes,
        .offset = tensor.offset,
    };
    for (unsigned d = 0; d < tensor.n_dims; d++)
        full.shape[d] = tensor.shape[d];
    return ak_api_copy_out(info, size, &full, sizeof full, "akunu_tensor_info", error);
}

enum akunu_status akunu_file_get_tensor(const struct akunu_file *file, size_t i,
                                        struct akunu_tensor_info *info, size_t size)
{
    struct ak_error error = { 0 };
    get_tensor_info(file, i, info, size, &error);
    return ak_api_finish(&error);
}

/* ---- Values ------------------------------------------------------------- */
static ak_status read_f32(const struct akunu_file *file, size_t i, uint64_t first, uint64_t n,
                          float *out, struct ak_error *error)
{
    struct ak_tensor tensor;
    AK_TRY(get_tensor(file, i, &tensor, error));
    AK_TRY(ak_tensor_check_type(&tensor, error));
    uint64_t row = tensor.shape[tensor.n_dims - 1], rows = 1;
    for (unsigned d = 0; d + 1 < tensor.n_dims; d++)
        rows *= tensor.shape[d];
    if (row == 0)
        return AKUNU_OK; /* nothing to read */
    if (first % row != 0 || n % row != 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "elements %llu and %llu more of %s are no whole rows of %llu",
                       (unsigned long long)first, (unsigned long long)n, tensor.name,
                       (unsigned long long)row);
    if (first / row > rows || n / row > rows - first / row)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "elements %llu and %llu more of %s, which has %llu",
                       (unsigned long long)first, (unsigned long long)n, tensor.name,
                       (unsigned long long)(rows * row));
    if (n > 0 && !out)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no room for %llu elements is given",
                       (unsigned long long)n);
    ak_tensor_dequantize(&tensor, first, n, out);
    return AKUNU_OK;
}

enum akunu_status akunu_file_read_f32(const struct akunu_file *file, size_t i, uint64_t first,
                                      uint64_t n, float *out)
{
    struct ak_error error = { 0 };
    read_f32(file, i, first, n, out, &error);
    return ak_api_finish(&error);
}

static ak_status add_to_hash(const struct ak_tensor *tensor, uint64_t first, uint64_t n,
                             const float *values, void *user)
{
    (void)tensor, (void)first;
    ak_sha256_add(user, values, (size_t)n * sizeof *values);
    return AKUNU_OK;
}

enum akunu_status akunu_file_sha256_f32(const struct akunu_file *file, size_t i, char out[65])
{
    struct ak_error error = { 0 };
    struct ak_tensor tensor;
    struct ak_sha256 hash;
    ak_sha256_begin(&hash);
    ak_status status = get_tensor(file, i, &tensor, &error);
    if (status == AKUNU_OK)
        status = ak_tensor_stream(&tensor, add_to_hash, &hash, &error);
    if (status == AKUNU_OK)
        ak_sha256_end_hex(&hash, out);
    return ak_api_finish(&error);
}

/* ---- Metadata ----------------------------------------------------------- */
static ak_status give_meta(const struct ak_meta *meta, struct akunu_meta *out, size_t size,
                           struct ak_error *error)
{
    struct akunu_meta full = {
        .key = meta->key,
        .type = (enum akunu_meta_type)meta->kind,
        .element_type = (enum akunu_meta_type)meta->element_kind,
        .n = meta->n,
    };
    switch (meta->kind) {
    case AK_META_BOOL: full.boolean = meta->as.boolean; break;
    case AK_META_INT: full.integer = meta->as.integer; break;
    case AK_META_UINT: full.unsigned_integer = meta->as.unsigned_integer; break;
    case AK_META_FLOAT: full.number = meta->as.number; break;
    case AK_META_STRING: full.string = meta->as.string; break;
    default: break;
    }
    return ak_api_copy_out(out, size, &full, sizeof full, "akunu_meta", error);
}

static ak_status get_meta(const struct akunu_file *file, size_t i, struct ak_meta *out,
                          struct ak_error *error)
{
    AK_TRY(check_file(file, error));
    if (!ak_provider_meta(file->provider, i, out))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "metadata entry %zu of a file with %zu", i,
                       ak_provider_n_metas(file->provider));
    return AKUNU_OK;
}

enum akunu_status akunu_file_get_meta(const struct akunu_file *file, size_t i,
                                      struct akunu_meta *out, size_t size)
{
    struct ak_error error = { 0 };
    struct ak_meta meta;
    ak_status status = get_meta(file, i, &meta, &error);
    if (status == AKUNU_OK)
        status = give_meta(&meta, out, size, &error);
    return ak_api_finish(&error);
}

static ak_status get_element(const struct akunu_file *file, size_t i, uint64_t j,
                             struct ak_meta *out, struct ak_error *error)
{
    struct ak_meta array;
    AK_TRY(get_meta(file, i, &array, error));
    if (array.kind != AK_META_ARRAY)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "metadata %s is not an array", array.key);
    if (!ak_provider_element(file->provider, &array, j, out))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "element %llu of metadata %s, which has %llu",
                       (unsigned long long)j, array.key, (unsigned long long)array.n);
    return AKUNU_OK;
}

enum akunu_status akunu_file_get_meta_element(const struct akunu_file *file, size_t i, uint64_t j,
                                              struct akunu_meta *out, size_t size)
{
    struct ak_error error = { 0 };
    struct ak_meta element;
    ak_status status = get_element(file, i, j, &element, &error);
    if (status == AKUNU_OK)
        status = give_meta(&element, out, size, &error);
    return ak_api_finish(&error);
}

/* ---- Conversion --------------------------------------------------------- */
void akunu_convert_params_default(struct akunu_convert_params *params, size_t size)
{
    static const struct akunu_convert_params full = { 0 };
    ak_api_give_default(params, size, &full, sizeof full);
}

static ak_status convert(const char *from, const char *to, const struct akunu_convert_params *given,
                         struct ak_error *error)
{
    struct akunu_convert_params params;
    akunu_convert_params_default(&params, sizeof params);
    if (!from || !to)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no path is given");
    AK_TRY(ak_api_copy_in(&params, sizeof params, given, "akunu_convert_params", error));
    struct ak_log log = { params.log, params.user };
    struct ak_convert_options options = { .type = params.type,
                                          .pre = params.pre,
                                          .overwrite = params.overwrite,
                                          .no_vocab = params.no_vocab,
                                          .override_kv = params.override_kv,
                                          .ignore_keys = params.ignore_keys,
                                          .progress = params.progress,
                                          .user = params.user,
                                          .log = &log };
    return ak_convert(from, to, &options, error);
}

enum akunu_status akunu_convert(const char *from, const char *to,
                                const struct akunu_convert_params *params)
{
    struct ak_error error = { 0 };
    convert(from, to, params, &error);
    return ak_api_finish(&error);
}

/* ---- Quantization ------------------------------------------------------- */
const char *akunu_quantize_type_name(size_t i)
{
    const struct ak_mix *mix = ak_mix_at(i);
    return mix ? mix->name : NULL;
}

void akunu_quantize_params_default(struct akunu_quantize_params *params, size_t size)
{
    static const struct akunu_quantize_params full = { .type = "Q4_K_M" };
    ak_api_give_default(params, size, &full, sizeof full);
}

static ak_status quantize(const char *from, const char *to,
                          const struct akunu_quantize_params *given, struct ak_error *error)
{
    struct akunu_quantize_params params;
    akunu_quantize_params_default(&params, sizeof params);
    if (!from)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no path is given");
    AK_TRY(ak_api_copy_in(&params, sizeof params, given, "akunu_quantize_params", error));
    if (!params.type)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no type is given");
    struct ak_log log = { params.log, params.user };
    struct ak_convert_quantize options = { .mix = params.type,
                                           .tensor_types = params.tensor_types,
                                           .output_type = params.output_type,
                                           .embedding_type = params.embedding_type,
                                           .importance = params.importance,
                                           .pure = params.pure,
                                           .requantize = params.requantize,
                                           .report = params.report };
    struct ak_convert_options convert = { .quantize = &options,
                                          .n_threads = params.n_threads,
                                          .overwrite = params.overwrite,
                                          .no_vocab = params.no_vocab,
                                          .override_kv = params.override_kv,
                                          .ignore_keys = params.ignore_keys,
                                          .progress = params.progress,
                                          .user = params.user,
                                          .log = &log };
    struct ak_allocate_size target = { .bytes = params.target_bytes,
                                       .bits = params.target_bits,
                                       .text = params.text,
                                       .n_text = params.n_text };
    if (target.bytes == 0 && target.bits == 0.0)
        return ak_convert(from, to, &convert, error);
    return ak_allocate(from, to, &convert, &target, error);
}

enum akunu_status akunu_quantize(const char *from, const char *to,
                                 const struct akunu_quantize_params *params)
{
    struct ak_error error = { 0 };
    quantize(from, to, params, &error);
    return ak_api_finish(&error);
}
