/* The steps: plan the file, measure each tensor, choose the types, write. */
#include "conversion/allocate/allocate.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "conversion/quantize/quantize.h"

/* The type with which sensitivities are measured: rows that fill blocks of any type fill its, its
 * errors are large enough to show and small enough for the divergence to be quadratic in them. */
#define PROBE AK_QUANT_Q4_0

static const double measuring = 0.95;  /* share of the work before the file is written */
static const double converting = 0.05; /* the same of a source that is not GGUF, once it is */

struct job {
    const struct ak_convert_options *options; /* the caller's */
    const struct ak_allocate_size *size;
    struct ak_convert_options writing; /* with callbacks of this file */
    struct ak_convert_job *convert;
    char *converted; /* path of a source that is converted first; NULL: it is GGUF */
    struct ak_convert_plan *plan;
    struct ak_allocate_runs *runs;
    struct ak_allocate_tensor *tensors;
    size_t n;
    uint64_t budget; /* bytes for them */
    double begun;    /* share of the work before the first tensor */
    struct ak_error *error;
};

/* Callbacks while files are written; the caller's are behind them. */
static bool on_converted(double fraction, void *user)
{
    const struct job *j = user;
    return j->options->progress(converting * fraction, j->options->user);
}

static bool on_written(double fraction, void *user)
{
    const struct job *j = user;
    return j->options->progress(measuring + (1.0 - measuring) * fraction, j->options->user);
}

static void on_tensor(const struct akunu_quantized_tensor *tensor, void *user)
{
    const struct job *j = user;
    j->options->quantize->report(tensor, j->options->user);
}

/* Whether a tensor may have the type; *bytes with padding. */
static bool may_have(const struct ak_convert_tensor *t, enum ak_quant_type type, uint64_t *bytes)
{
    struct ak_convert_tensor as = *t;
    struct ak_error unused = { 0 };
    if (!ak_quantize_has(type) || ak_convert_set_type(&as, type, &unused) != AKUNU_OK ||
        ak_convert_lacks_importance(&as))
        return false;
    *bytes = ak_round_up((size_t)as.bytes, AK_GGUF_WRITER_ALIGNMENT);
    return true;
}

static void add_types(struct ak_allocate_tensor *tensor)
{
    for (int i = 0; i < AK_QUANT_COUNT; i++) {
        struct ak_allocate_type type = { .type = (enum ak_quant_type)i };
        if (may_have(tensor->tensor, type.type, &type.bytes))
            tensor->types[tensor->n_types++] = type;
    }
}

static ak_status find_tensors(struct job *j)
{
    ak_free(j->tensors);
    j->n = 0;
    j->tensors = ak_alloc(j->plan->n, sizeof *j->tensors);
    if (!j->tensors)
        return ak_fail_memory(j->error, "tensors", j->plan->n * sizeof *j->tensors);
    for (size_t i = 0; i < j->plan->n; i++) {
        struct ak_allocate_tensor *tensor = &j->tensors[j->n];
        if (!j->plan->tensors[i].is_chosen)
            continue;
        tensor->tensor = &j->plan->tensors[i];
        add_types(tensor);
        j->n++;
    }
    ak_allocate_count_layers(j->tensors, j->n);
    return j->n > 0 ? AKUNU_OK :
                      ak_fail(j->error, AKUNU_ERROR_ARGUMENT,
                              "no type is left to choose: all tensors have theirs");
}

/* ---- Size --------------------------------------------------------------- */
/* Bytes that the chosen tensors may take. */
static ak_status get_budget(struct job *j, uint64_t *out)
{
    uint64_t others = 0, all = UINT64_MAX;
    double elements = 0.0;
    for (size_t i = 0; i < j->plan->n; i++)
        elements += (double)ak_convert_count_rows(&j->plan->tensors[i]) *
                    (double)j->plan->tensors[i].shape[j->plan->tensors[i].n_dims - 1];
    for (size_t i = 0, at = 0; i < j->plan->n; i++) {
        const struct ak_convert_tensor *t = &j->plan->tensors[i];
        if (at < j->n && j->tensors[at].tensor == t)
            at++;
        else
            others += ak_round_up((size_t)t->bytes, AK_GGUF_WRITER_ALIGNMENT);
    }
    if (j->size->bits > 0.0)
        all = (uint64_t)(j->size->bits * elements / 8.0);
    if (j->size->bytes > 0) {
        uint64_t header;
        AK_TRY(ak_convert_header_bytes(j->convert, &header));
        header = header < j->size->bytes ? j->size->bytes - header : 0;
        all = header < all ? header : all;
    }
    *out = all > others ? all - others : 0;
    return AKUNU_OK;
}

/* Fails if even the smallest types take more than there is room for. */
static ak_status check_budget(struct job *j)
{
    uint64_t least = 0;
    AK_TRY(get_budget(j, &j->budget));
    for (size_t i = 0; i < j->n; i++) {
        const struct ak_allocate_tensor *tensor = &j->tensors[i];
        uint64_t smallest = UINT64_MAX;
        for (size_t k = 0; k < tensor->n_types; k++)
            smallest = tensor->types[k].bytes < smallest ? tensor->types[k].bytes : smallest;
        least += smallest;
    }
    if (least <= j->budget)
        return AKUNU_OK;
    return ak_fail(j->error, AKUNU_ERROR_ARGUMENT,
                   "no types make the model that small: %llu bytes are left for %zu matrices, "
                   "which take %llu at least",
                   (unsigned long long)j->budget, j->n, (unsigned long long)least);
}

/* ---- Measuring ---------------------------------------------------------- */
/* The errors of the tensor's types in place of divergences. */
static ak_status measure_errors(struct job *j, struct ak_allocate_tensor *tensor,
                                const float *values)
{
    for (size_t k = 0; k < tensor->n_types; k++) {
        struct ak_allocate_type *type = &tensor->types[k];
        AK_TRY(ak_convert_prepare(j->plan, type->type, j->error));
        AK_TRY(ak_allocate_error(j->plan, tensor->tensor, type->type, values, &type->divergence,
                                 j->error));
    }
    return AKUNU_OK;
}

static double error_of(const struct ak_allocate_tensor *tensor, enum ak_quant_type type)
{
    for (size_t i = 0; i < tensor->n_types; i++)
        if (tensor->types[i].type == type)
            return tensor->types[i].divergence;
    return 0.0;
}

/* One run with the probe's values. */
static ak_status measure_probe(struct job *j, struct ak_allocate_tensor *tensor, float *values)
{
    double divergence, probe = error_of(tensor, PROBE);
    AK_TRY(ak_allocate_quantize(j->plan, tensor->tensor, PROBE, values, j->error));
    AK_TRY(ak_allocate_run(j->runs, tensor->tensor->name, values, &divergence, j->error));
    tensor->sensitivity = probe > 0.0 ? divergence / probe : 0.0;
    return AKUNU_OK;
}

static ak_status read_and_measure(struct job *j, struct ak_allocate_tensor *tensor)
{
    float *values = ak_allocate_read(j->plan, tensor->tensor);
    if (!values)
        return ak_fail_memory(j->error, tensor->tensor->name, 0);
    ak_status status = measure_errors(j, tensor, values);
    if (status == AKUNU_OK && ak_allocate_is_measured(tensor))
        status = measure_probe(j, tensor, values);
    ak_free(values);
    return status;
}

/* Turns errors into divergences. */
static void apply_sensitivities(struct job *j)
{
    ak_allocate_interpolate(j->tensors, j->n);
    for (size_t i = 0; i < j->n; i++) {
        struct ak_allocate_tensor *tensor = &j->tensors[i];
        for (size_t k = 0; k < tensor->n_types; k++)
            tensor->types[k].divergence *= tensor->sensitivity;
        ak_allocate_prune(tensor);
    }
}

static ak_status measure_all(struct job *j)
{
    size_t n = 0, done = 0;
    for (size_t i = 0; i < j->n; i++)
        n += ak_allocate_is_measured(&j->tensors[i]);
    for (size_t i = 0; i < j->n; i++) {
        AK_TRY(read_and_measure(j, &j->tensors[i]));
        done += ak_allocate_is_measured(&j->tensors[i]);
        double fraction = j->begun + (measuring - j->begun) * (double)done / (double)n;
        if (j->options->progress && !j->options->progress(fraction, j->options->user))
            return ak_fail(j->error, AKUNU_ERROR_CANCELLED, "quantization was cancelled");
    }
    apply_sensitivities(j);
    return AKUNU_OK;
}

/* ---- Choosing ----------------------------------------------------------- */
/* The file is called after the type of most bytes. */
static void name_mix(struct job *j)
{
    uint64_t bytes[AK_QUANT_STORED_END] = { 0 };
    int most = 0;
    for (size_t i = 0; i < j->plan->n; i++)
        bytes[j->plan->tensors[i].type] += j->plan->tensors[i].bytes;
    for (int type = 0; type < AK_QUANT_COUNT; type++)
        most = bytes[type] > bytes[most] ? type : most;
    const struct ak_mix *mix = ak_mix_find(ak_quant_info((enum ak_quant_type)most)->name);
    j->plan->mix = mix ? mix : j->plan->mix;
}

static ak_status choose_types(struct job *j)
{
    double divergence = 0.0;
    if (!ak_allocate_solve(j->tensors, j->n, j->budget))
        return ak_fail(j->error, AKUNU_ERROR_ARGUMENT, "no types make the model that small");
    for (size_t i = 0; i < j->n; i++) {
        const struct ak_allocate_type *type = &j->tensors[i].types[j->tensors[i].choice];
        AK_TRY(ak_convert_set_type(j->tensors[i].tensor, type->type, j->error));
        j->tensors[i].tensor->divergence = type->divergence;
        divergence += type->divergence;
    }
    name_mix(j);
    ak_log_line(j->options->log, AKUNU_LOG_INFO, "expected KL divergence: %.4f", divergence);
    return AKUNU_OK;
}

static ak_status check_target(const struct job *j)
{
    if (!(j->size->bits >= 0.0 && j->size->bits <= 64.0))
        return ak_fail(j->error, AKUNU_ERROR_ARGUMENT,
                       "%g bits per weight; expected 1 to 16, or so", j->size->bits);
    if (!j->size->text)
        return ak_fail(j->error, AKUNU_ERROR_ARGUMENT,
                       "types that give a size are searched on a text, and none is given");
    if (j->options->quantize->pure)
        return ak_fail(j->error, AKUNU_ERROR_ARGUMENT,
                       "a size is given, so the matrices cannot all have the same type (pure)");
    return AKUNU_OK;
}

/* All that can be refused before the model runs. */
static ak_status prepare_job(struct job *j)
{
    j->plan = ak_convert_get_plan(j->convert);
    AK_TRY(check_target(j));
    AK_TRY(find_tensors(j));
    return check_budget(j);
}

/* ---- Sources other than GGUF --------------------------------------------- */
/* Begins anew with the source as a GGUF file of the same types, beside the destination. Its name is
 * gone once it is open. */
static ak_status begin_converted(struct job *j, const char *from, const char *to)
{
    struct ak_convert_options options = j->writing;
    size_t n = strlen(to ? to : P_tmpdir) + 48;
    j->converted = ak_alloc(n, 1);
    if (!j->converted)
        return ak_fail_memory(j->error, "a path", n);
    snprintf(j->converted, n, "%s%s.%ld.source", to ? to : P_tmpdir, to ? "" : "/akunu",
             (long)getpid());
    options.quantize = NULL;
    options.progress = options.progress ? on_converted : NULL;
    AK_TRY(ak_convert(from, j->converted, &options, j->error));
    ak_convert_end(j->convert);
    j->begun = converting;
    j->writing.override_kv = j->writing.ignore_keys = NULL; /* the converted file has the values */
    ak_status status = ak_convert_begin(j->converted, to, &j->writing, &j->convert, j->error);
    unlink(j->converted);
    return status == AKUNU_OK ? prepare_job(j) : status;
}

static ak_status run_job(struct job *j, const char *from, const char *to)
{
    AK_TRY(ak_convert_begin(from, to, &j->writing, &j->convert, j->error));
    AK_TRY(prepare_job(j));
    if (j->plan->spec)
        AK_TRY(begin_converted(j, from, to));
    AK_TRY(ak_allocate_open_runs(j->plan, j->size, j->options, &j->runs, j->error));
    AK_TRY(measure_all(j));
    AK_TRY(choose_types(j));
    return ak_convert_write(j->convert);
}

ak_status ak_allocate(const char *from, const char *to, const struct ak_convert_options *options,
                      const struct ak_allocate_size *size, struct ak_error *error)
{
    struct job j = { .options = options, .size = size, .writing = *options, .error = error };
    struct ak_convert_quantize quantize = *options->quantize;
    quantize.report = quantize.report ? on_tensor : NULL;
    j.writing.quantize = &quantize;
    j.writing.progress = options->progress ? on_written : NULL;
    j.writing.user = &j;
    ak_status status = run_job(&j, from, to);
    ak_allocate_close_runs(j.runs);
    ak_free(j.tensors);
    ak_convert_end(j.convert);
    ak_free(j.converted);
    return status;
}
