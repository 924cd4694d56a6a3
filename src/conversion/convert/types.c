/* Types of a quantized model: what the mix says, and exceptions from it. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/utf8.h"
#include "conversion/convert/convert.h"
#include "conversion/quantize/quantize.h"

/* ---- Exceptions --------------------------------------------------------- */
/* "PATTERN=TYPE": a regular expression that is searched for in the name. */
struct exception {
    pcre2_code *pattern;
    enum ak_quant_type type;
};

struct chooser {
    struct ak_convert_plan *plan;
    const struct ak_convert_quantize *options;
    struct ak_mix_model model;
    struct exception *exceptions;
    size_t n_exceptions;
    bool has_output, has_embedding;
    enum ak_quant_type output, embedding;
    const struct ak_log *log;
    struct ak_error *error;
};

static bool is_float(enum ak_quant_type type)
{
    return ak_quant_info(type)->block_elems == 1;
}

static ak_status parse_type(const char *name, const char *what, enum ak_quant_type *out,
                            struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    for (int type = 0; type < AK_QUANT_COUNT; type++) {
        *out = (enum ak_quant_type)type;
        if (strcasecmp(name, ak_quant_info(*out)->name) == 0 &&
            (is_float(*out) || ak_quantize_has(*out)))
            return AKUNU_OK;
    }
    return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                   "%s: no type '%s' can be written; expected for instance Q6_K or F16", what,
                   ak_show_path(name, shown));
}

static ak_status compile(const char *pattern, size_t n, pcre2_code **out, struct ak_error *error)
{
    PCRE2_UCHAR message[128];
    char shown[AK_SHOW_BYTES];
    PCRE2_SIZE at;
    int code;
    *out = pcre2_compile((PCRE2_SPTR)pattern, n, 0, &code, &at, NULL);
    if (*out)
        return AKUNU_OK;
    pcre2_get_error_message(code, message, sizeof message);
    return ak_fail(error, AKUNU_ERROR_ARGUMENT, "pattern '%s': %s", ak_show(pattern, n, shown),
                   (const char *)message);
}

static ak_status parse_exceptions(struct chooser *c)
{
    const char *const *texts = c->options->tensor_types;
    char shown[AK_SHOW_BYTES];
    size_t n = 0;
    while (texts && texts[n])
        n++;
    c->exceptions = ak_alloc(n, sizeof *c->exceptions);
    if (!c->exceptions)
        return ak_fail_memory(c->error, "patterns", n * sizeof *c->exceptions);
    while (c->n_exceptions < n) {
        const char *text = texts[c->n_exceptions], *type = strrchr(text, '=');
        struct exception *e = &c->exceptions[c->n_exceptions++];
        *e = (struct exception){ .pattern = NULL };
        if (!type || type == text)
            return ak_fail(c->error, AKUNU_ERROR_ARGUMENT,
                           "'%s' is no PATTERN=TYPE, such as attn_v=Q8_0",
                           ak_show_path(text, shown));
        AK_TRY(parse_type(type + 1, text, &e->type, c->error));
        AK_TRY(compile(text, (size_t)(type - text), &e->pattern, c->error));
    }
    return AKUNU_OK;
}

static const struct exception *find_exception(const struct chooser *c, const char *name)
{
    const struct exception *found = NULL;
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    for (size_t i = 0; match && !found && i < c->n_exceptions; i++)
        if (pcre2_match(c->exceptions[i].pattern, (PCRE2_SPTR)name, strlen(name), 0, 0, match,
                        NULL) >= 0)
            found = &c->exceptions[i];
    pcre2_match_data_free(match);
    return found;
}

/* ---- The model ---------------------------------------------------------- */
static ak_status read_u32(const struct chooser *c, const char *suffix, uint32_t fallback,
                          uint32_t *out)
{
    char key[128], architecture[64];
    struct ak_text text = { "", 0 };
    AK_TRY(ak_meta_text(c->plan->source, "general.architecture", &text, c->error));
    snprintf(architecture, sizeof architecture, "%.*s", (int)(text.n < 63 ? text.n : 63),
             text.bytes);
    snprintf(key, sizeof key, "%s.%s", architecture, suffix);
    struct ak_meta meta, first;
    if (ak_provider_find_meta(c->plan->source, key, &meta) && meta.kind == AK_META_ARRAY) {
        *out = fallback; /* a value for each layer: the first one's */
        if (!ak_provider_element(c->plan->source, &meta, 0, &first))
            return AKUNU_OK;
        if (first.kind == AK_META_UINT)
            *out = (uint32_t)first.as.unsigned_integer;
        else if (first.kind == AK_META_INT && first.as.integer >= 0)
            *out = (uint32_t)first.as.integer;
        return AKUNU_OK;
    }
    return ak_meta_u32(c->plan->source, key, fallback, out, c->error);
}

static bool has_tensor(const struct chooser *c, const char *name)
{
    for (size_t i = 0; i < c->plan->n; i++)
        if (strcmp(c->plan->tensors[i].name, name) == 0)
            return true;
    return false;
}

static ak_status describe_model(struct chooser *c)
{
    const struct ak_spec *spec = c->plan->spec;
    uint32_t heads = 1, kv_heads = 1, layers = 0, width = 0;
    if (spec) {
        heads = spec->config.n_heads;
        kv_heads = spec->config.n_kv_heads;
        layers = spec->config.n_layers;
        width = spec->config.width;
        c->model.n_experts = spec->config.n_experts;
    } else {
        struct ak_text architecture = { "", 0 };
        AK_TRY(ak_meta_text(c->plan->source, "general.architecture", &architecture, c->error));
        c->model.is_falcon = architecture.n == 6 && memcmp(architecture.bytes, "falcon", 6) == 0;
        AK_TRY(read_u32(c, "attention.head_count", 1, &heads));
        AK_TRY(read_u32(c, "attention.head_count_kv", heads, &kv_heads));
        AK_TRY(read_u32(c, "block_count", 0, &layers));
        AK_TRY(read_u32(c, "embedding_length", 0, &width));
        AK_TRY(read_u32(c, "expert_count", 0, &c->model.n_experts));
    }
    c->model.n_gqa = kv_heads > 0 ? heads / kv_heads : 1;
    c->model.is_tied = !has_tensor(c, "output.weight");
    c->model.has_importance = c->plan->importance.n > 0;
    c->model.is_70b = layers == 80 && width == 8192 && heads != kv_heads;
    return AKUNU_OK;
}

/* ---- Choices ------------------------------------------------------------ */
bool ak_convert_is_integer(enum ak_quant_type type)
{
    return type >= AK_QUANT_STORED_FIRST && type <= AK_QUANT_U64;
}

bool ak_convert_stays_float(const struct ak_convert_tensor *t)
{
    if (t->n_dims == 1 || !t->has_role)
        return t->n_dims == 1;
    return ak_role_is_vector(t->role) || t->role == AK_ROLE_POSITION_EMBEDDING ||
           t->role == AK_ROLE_ENCODER_POSITION_EMBEDDING ||
           t->role == AK_ROLE_TOKEN_TYPE_EMBEDDING || t->role == AK_ROLE_FFN_ROUTER;
}

/* Matrices that llama.cpp leaves as they are: small ones, and tables. */
static bool is_left(const struct ak_convert_tensor *t)
{
    static const char *const parts[] = { "_norm.weight", "ffn_gate_inp",         "altup",
                                         "laurel",       "per_layer_model_proj", "position_embd",
                                         "token_types",  "ssm_conv1d",           "shortconv.conv",
                                         "attn_rel_b",   "ffn_gate_tid2eid",     "time_mix_",
                                         "indexer." };
    size_t n = strlen(t->name);
    if (ak_convert_stays_float(t) || ak_convert_is_integer(t->stored) || n < 6 ||
        strcmp(t->name + n - 6, "weight") != 0 || t->role == AK_ROLE_ENCODER_CONV1 ||
        t->role == AK_ROLE_ENCODER_CONV2)
        return true;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(t->name, parts[i]))
            return true;
    return false;
}

const char *ak_convert_find_part(const char *name, unsigned *layer)
{
    int n = 0;
    return sscanf(name, "blk.%4u.%n", layer, &n) == 1 && n > 0 ? name + n : name;
}

/* Counts the tensors of the name in other layers, and those before this one. */
static struct ak_mix_tensor describe_tensor(const struct chooser *c,
                                            const struct ak_convert_tensor *t)
{
    unsigned layer = 0, other;
    struct ak_mix_tensor of = { .name = ak_convert_find_part(t->name, &layer),
                                .cols = t->shape[t->n_dims - 1],
                                .n_matrices = t->n_dims > 2 ? t->shape[0] : 1 };
    for (size_t i = 0; i < c->plan->n; i++)
        if (strcmp(ak_convert_find_part(c->plan->tensors[i].name, &other), of.name) == 0) {
            of.n++;
            of.index += other < layer;
        }
    return of;
}

/* *by_mix: no exception says so. */
static enum ak_quant_type choose_type(const struct chooser *c, const struct ak_convert_tensor *t,
                                      bool *by_mix)
{
    const struct exception *exception = find_exception(c, t->name);
    struct ak_mix_tensor of = describe_tensor(c, t);
    *by_mix = false;
    if (c->has_embedding && strcmp(t->name, "token_embd.weight") == 0)
        return c->embedding;
    if (c->has_output && strcmp(t->name, "output.weight") == 0)
        return c->output;
    if (exception)
        return exception->type;
    *by_mix = true;
    return c->options->pure ? c->plan->mix->type : ak_mix_choose(c->plan->mix, &c->model, &of);
}

uint64_t ak_convert_count_rows(const struct ak_convert_tensor *t)
{
    uint64_t rows = 1;
    for (unsigned d = 0; d + 1 < t->n_dims; d++)
        rows *= t->shape[d];
    return rows;
}

ak_status ak_convert_set_type(struct ak_convert_tensor *t, enum ak_quant_type type,
                              struct ak_error *error)
{
    t->searches = type != t->stored && !is_float(type);
    t->type = t->wanted = type;
    if (!ak_quant_row_bytes(type, t->shape[t->n_dims - 1], &t->bytes) ||
        !ak_mul_u64(t->bytes, ak_convert_count_rows(t), &t->bytes))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: its size overflows 64 bits", t->name);
    return AKUNU_OK;
}

static ak_status set_type(struct chooser *c, struct ak_convert_tensor *t)
{
    uint64_t cols = t->shape[t->n_dims - 1];
    enum ak_quant_type type = choose_type(c, t, &t->is_chosen), fitting = ak_mix_fit(type, cols);
    if (!is_float(t->stored) && !c->options->requantize && t->stored != fitting)
        return ak_fail(c->error, AKUNU_ERROR_ARGUMENT,
                       "%s is %s already; quantizing it again loses more than quantizing floats "
                       "does, and must be allowed (--allow-requantize)",
                       t->name, ak_quant_info(t->stored)->name);
    if (fitting != type && !t->is_chosen)
        return ak_fail(c->error, AKUNU_ERROR_ARGUMENT,
                       "%s cannot be %s, which has blocks of %u elements: its rows have %llu; "
                       "expected a type whose blocks they fill, such as %s",
                       t->name, ak_quant_info(type)->name, ak_quant_info(type)->block_elems,
                       (unsigned long long)cols, ak_quant_info(fitting)->name);
    t->is_chosen = t->is_chosen && !is_float(fitting);
    AK_TRY(ak_convert_set_type(t, fitting, c->error));
    t->wanted = type;
    return AKUNU_OK;
}

/* Reports the tensors that have `type` instead of `wanted`. */
static void report_fit(const struct ak_convert_plan *plan, enum ak_quant_type wanted,
                       enum ak_quant_type type, const struct ak_log *log)
{
    uint64_t low = UINT64_MAX, high = 0;
    size_t n = 0, n_all = 0;
    char range[64];
    for (size_t i = 0; i < plan->n; i++) {
        const struct ak_convert_tensor *t = &plan->tensors[i];
        uint64_t cols = t->shape[t->n_dims - 1];
        n_all += !is_float(t->wanted);
        if (t->wanted != wanted || t->type != type)
            continue;
        n++;
        low = cols < low ? cols : low;
        high = cols > high ? cols : high;
    }
    snprintf(range, sizeof range, low == high ? "%llu" : "%llu to %llu", (unsigned long long)low,
             (unsigned long long)high);
    ak_log_line(log, AKUNU_LOG_WARN,
                "%zu of %zu quantized tensors have %s instead of %s, because rows of %s elements "
                "do not fill blocks of %u",
                n, n_all, ak_quant_info(type)->name, ak_quant_info(wanted)->name, range,
                ak_quant_info(wanted)->block_elems);
}

void ak_convert_report_fits(const struct ak_convert_plan *plan, const struct ak_log *log)
{
    bool is_reported[AK_QUANT_COUNT][AK_QUANT_COUNT] = { { false } };
    for (size_t i = 0; i < plan->n; i++) {
        const struct ak_convert_tensor *t = &plan->tensors[i];
        if (t->wanted == t->type || is_float(t->wanted) || is_reported[t->wanted][t->type])
            continue;
        is_reported[t->wanted][t->type] = true;
        report_fit(plan, t->wanted, t->type, log);
    }
}

const float *ak_convert_row_importance(const struct ak_convert_tensor *t, uint64_t row)
{
    uint64_t cols = t->shape[t->n_dims - 1], rows = t->n_dims > 2 ? t->shape[1] : 1;
    return t->importance && t->n_importance > cols ? t->importance + row / rows * cols :
                                                     t->importance;
}

/* The importance of the tensor's columns, if the file has it. */
static ak_status set_importance(const struct chooser *c, struct ak_convert_tensor *t)
{
    const struct ak_importance_entry *e = ak_importance_find(&c->plan->importance, t->name);
    uint64_t cols = t->shape[t->n_dims - 1], matrices = t->n_dims > 2 ? t->shape[0] : 1;
    if (!t->searches || !e)
        return AKUNU_OK;
    if (e->n != cols && e->n != cols * matrices)
        return ak_fail(c->error, AKUNU_ERROR_ARGUMENT,
                       "the importance of %s has %llu values, where %llu columns are; it is of "
                       "another model",
                       t->name, (unsigned long long)e->n, (unsigned long long)(cols * matrices));
    t->importance = e->values;
    t->n_importance = e->n;
    return AKUNU_OK;
}

/* Types with so few bits that nothing but importance tells which errors are harmless. Of the
 * embedding and the output llama-imatrix has none. */
bool ak_convert_lacks_importance(const struct ak_convert_tensor *t)
{
    static const enum ak_quant_type types[] = { AK_QUANT_IQ1_S,  AK_QUANT_IQ1_M, AK_QUANT_IQ2_XXS,
                                                AK_QUANT_IQ2_XS, AK_QUANT_IQ2_S, AK_QUANT_IQ3_XXS };
    static const char *const exempt[] = { "token_embd.weight", "per_layer_token_embd.weight",
                                          "output.weight" };
    bool needs = false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        needs = needs || t->type == types[i];
    for (size_t i = 0; i < sizeof exempt / sizeof *exempt; i++)
        needs = needs && strcmp(t->name, exempt[i]) != 0;
    return needs && t->searches && !t->importance;
}

ak_status ak_convert_check_importance(const struct ak_convert_plan *plan, struct ak_error *error)
{
    for (size_t i = 0; i < plan->n; i++) {
        const struct ak_convert_tensor *t = &plan->tensors[i];
        if (!ak_convert_lacks_importance(t))
            continue;
        return ak_fail(
            error, AKUNU_ERROR_ARGUMENT,
            plan->importance.n == 0 ?
                "%s as %s needs an importance matrix (--imatrix), which akunu-cli imatrix "
                "makes: with so few bits it decides what the model still can" :
                "%s as %s needs its importance, which the matrix that is given lacks; "
                "expected one of the same model",
            t->name, ak_quant_info(t->type)->name);
    }
    return AKUNU_OK;
}

static ak_status choose_all(struct chooser *c)
{
    AK_TRY(parse_exceptions(c));
    if (c->options->output_type) {
        AK_TRY(parse_type(c->options->output_type, "type of the output", &c->output, c->error));
        c->has_output = true;
    }
    if (c->options->embedding_type) {
        AK_TRY(parse_type(c->options->embedding_type, "type of the embedding", &c->embedding,
                          c->error));
        c->has_embedding = true;
    }
    AK_TRY(describe_model(c));
    memset(c->plan->type_bytes, 0, sizeof c->plan->type_bytes);
    for (size_t i = 0; i < c->plan->n; i++) {
        struct ak_convert_tensor *t = &c->plan->tensors[i];
        if (!is_left(t))
            AK_TRY(set_type(c, t));
        AK_TRY(set_importance(c, t));
        c->plan->type_bytes[t->type] += t->bytes;
    }
    return AKUNU_OK;
}

static ak_status read_importance(const char *path, struct ak_importance *out,
                                 struct ak_error *error)
{
    AK_TRY(ak_importance_read(path, out, error));
    return ak_importance_average(out, error);
}

ak_status ak_convert_choose_types(struct ak_convert_plan *plan,
                                  const struct ak_convert_quantize *options,
                                  const struct ak_log *log, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    struct chooser c = { .plan = plan, .options = options, .log = log, .error = error };
    plan->mix = ak_mix_find(options->mix);
    if (!plan->mix)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "no type or mix is called '%s'; expected for instance Q4_K_M, Q5_K_S, Q8_0 "
                       "or IQ4_XS",
                       ak_show_path(options->mix, shown));
    if (options->importance)
        AK_TRY(read_importance(options->importance, &plan->importance, error));
    ak_status status = choose_all(&c);
    for (size_t i = 0; i < c.n_exceptions; i++)
        pcre2_code_free(c.exceptions[i].pattern);
    ak_free(c.exceptions);
    return status;
}
