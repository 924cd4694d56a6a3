/* Opens LoRA adapters. GGUF: general.type "adapter", adapter.type "lora", and for each weight NAME
 * the tensors NAME.lora_a and NAME.lora_b. */
#include "files/weights/adapter.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/utf8.h"

enum { PAIRS_MAX = 1 << 16 };

uint64_t ak_adapter_cols(const struct ak_tensor *tensor)
{
    return tensor->shape[tensor->n_dims - 1];
}

uint64_t ak_adapter_rows(const struct ak_tensor *tensor)
{
    uint64_t rows = 1;
    for (unsigned d = 0; d + 1 < tensor->n_dims; d++)
        rows *= tensor->shape[d]; /* the formats check that the size fits */
    return rows;
}

/* ---- Pairs -------------------------------------------------------------- */
static struct ak_adapter_pair *find_pair(struct ak_adapter *adapter, const char *name, size_t n,
                                         const char *ending)
{
    /* a pair's tensors usually follow each other */
    for (uint32_t i = adapter->n_pairs; i-- > 0;) {
        const char *other = adapter->pairs[i].name;
        if (strncmp(other, name, n) == 0 && strcmp(other + n, ending) == 0)
            return &adapter->pairs[i];
    }
    return NULL;
}

static ak_status add_pair(struct ak_adapter *adapter, const char *name, size_t n,
                          const char *ending, struct ak_adapter_pair **out, struct ak_error *error)
{
    if (adapter->n_pairs == PAIRS_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "more than %d weights", (int)PAIRS_MAX);
    if ((adapter->n_pairs & (adapter->n_pairs - 1)) == 0) {
        uint32_t capacity = adapter->n_pairs ? 2 * adapter->n_pairs : 1;
        void *grown = ak_realloc(adapter->pairs, capacity, sizeof *adapter->pairs);
        if (!grown)
            return ak_fail_memory(error, "an adapter", capacity * sizeof *adapter->pairs);
        adapter->pairs = grown;
    }
    char *copy = ak_alloc(n + strlen(ending) + 1, 1);
    if (!copy)
        return ak_fail_memory(error, "a weight's name", n + strlen(ending) + 1);
    memcpy(copy, name, n);
    memcpy(copy + n, ending, strlen(ending));
    *out = &adapter->pairs[adapter->n_pairs++];
    **out = (struct ak_adapter_pair){ .name = copy, .factor = 1.0f };
    return AKUNU_OK;
}

/* Checks that the tensor is a matrix of floats or of a quantized type. */
static ak_status check_tensor(const struct ak_tensor *tensor, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    ak_show(tensor->name, strlen(tensor->name), shown);
    unsigned n_long = 0;
    for (unsigned d = 0; d < tensor->n_dims; d++)
        n_long += tensor->shape[d] != 1;
    if (n_long > 2 || ak_adapter_rows(tensor) == 0 || ak_adapter_cols(tensor) == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is not a matrix", shown);
    if ((unsigned)tensor->type >= AK_QUANT_COUNT)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s has the type %s; expected F32, F16, BF16 or a quantized type", shown,
                       ak_quant_info(tensor->type)->name);
    return AKUNU_OK;
}

ak_status ak_adapter_add(struct ak_adapter *adapter, const char *name, size_t n, const char *ending,
                         bool is_b, const struct ak_tensor *tensor, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    struct ak_adapter_pair *pair = find_pair(adapter, name, n, ending);
    AK_TRY(check_tensor(tensor, error));
    if (!pair)
        AK_TRY(add_pair(adapter, name, n, ending, &pair, error));
    struct ak_tensor *of_pair = is_b ? &pair->b : &pair->a;
    if (of_pair->name)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: the adapter has it twice",
                       ak_show(tensor->name, strlen(tensor->name), shown));
    *of_pair = *tensor;
    return AKUNU_OK;
}

static ak_status check_pairs(const struct ak_adapter *adapter, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    if (adapter->n_pairs == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "the adapter has no tensors");
    for (uint32_t i = 0; i < adapter->n_pairs; i++) {
        const struct ak_adapter_pair *pair = &adapter->pairs[i];
        ak_show(pair->name, strlen(pair->name), shown);
        if (!pair->a.name || !pair->b.name)
            return ak_fail(error, AKUNU_ERROR_FORMAT, "%s has the matrix %s of a pair, but no %s",
                           shown, pair->a.name ? "A" : "B", pair->a.name ? "B" : "A");
        if (ak_adapter_rows(&pair->a) != ak_adapter_cols(&pair->b))
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "%s: A has %llu rows and B %llu columns; expected the same rank", shown,
                           (unsigned long long)ak_adapter_rows(&pair->a),
                           (unsigned long long)ak_adapter_cols(&pair->b));
        if (!isfinite(pair->factor))
            return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: the factor %g is not a finite number",
                           shown, (double)pair->factor);
    }
    return AKUNU_OK;
}

/* ---- GGUF --------------------------------------------------------------- */
static ak_status check_text(const struct ak_provider *p, const char *key, const char *expected,
                            struct ak_error *error)
{
    struct ak_text text;
    AK_TRY(ak_meta_text(p, key, &text, error));
    if (text.n == strlen(expected) && memcmp(text.bytes, expected, text.n) == 0)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "%s is \"%.*s\"; expected \"%s\", a LoRA adapter", key,
                   (int)(text.n < 64 ? text.n : 64), text.n ? text.bytes : "", expected);
}

static ak_status add_gguf_tensors(struct ak_adapter *adapter, struct ak_error *error)
{
    static const char endings[2][8] = { ".lora_a", ".lora_b" };
    struct ak_tensor tensor;
    char shown[AK_SHOW_BYTES];
    for (size_t i = 0; ak_provider_tensor(adapter->gguf, i, &tensor); i++) {
        size_t n = strlen(tensor.name), n_ending = strlen(endings[0]);
        int which = 0;
        while (which < 2 &&
               (n <= n_ending || strcmp(tensor.name + n - n_ending, endings[which]) != 0))
            which++;
        if (which == 2)
            return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                           "%s is not part of a LoRA; expected names that end in .lora_a or "
                           ".lora_b",
                           ak_show(tensor.name, n, shown));
        AK_TRY(ak_adapter_add(adapter, tensor.name, n - n_ending, "", which == 1, &tensor, error));
    }
    return AKUNU_OK;
}

/* `out` has the provider. */
static ak_status read_gguf(struct ak_adapter *out, struct ak_error *error)
{
    float alpha;
    out->naming = AK_PROVIDER_NAMING_GGUF;
    if (strcmp(out->gguf->format->name, "gguf") != 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "a file of the format %s; expected a GGUF adapter or a PEFT folder",
                       out->gguf->format->name);
    AK_TRY(check_text(out->gguf, "general.type", "adapter", error));
    AK_TRY(check_text(out->gguf, "adapter.type", "lora", error));
    AK_TRY(ak_meta_text(out->gguf, "general.architecture", &out->architecture, error));
    AK_TRY(ak_meta_float(out->gguf, "adapter.lora.alpha", 0.0f, &alpha, error));
    AK_TRY(add_gguf_tensors(out, error));
    for (uint32_t i = 0; alpha != 0.0f && i < out->n_pairs; i++)
        if (out->pairs[i].a.name)
            out->pairs[i].factor = alpha / (float)ak_adapter_rows(&out->pairs[i].a);
    ak_provider_fingerprint(out->gguf, &out->fingerprint);
    return AKUNU_OK;
}

/* ---- Any ---------------------------------------------------------------- */
static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

ak_status ak_adapter_open(const char *path, struct ak_adapter *out, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    *out = (struct ak_adapter){ 0 };
    bool is_peft = is_folder(path);
    AK_TRY(is_peft ? ak_adapter_open_peft(path, out, error) :
                     ak_provider_open(path, &out->gguf, error));
    ak_status status = is_peft ? ak_adapter_read_peft(out, error) : read_gguf(out, error);
    if (status == AKUNU_OK)
        status = check_pairs(out, error);
    if (status != AKUNU_OK)
        ak_error_prefix(error, ak_show_path(path, shown));
    return status;
}

void ak_adapter_close(struct ak_adapter *adapter)
{
    for (uint32_t i = 0; i < adapter->n_pairs; i++)
        ak_free(adapter->pairs[i].name);
    ak_free(adapter->pairs);
    ak_provider_close(adapter->gguf);
    ak_adapter_close_peft(adapter->peft);
    *adapter = (struct ak_adapter){ 0 };
}
