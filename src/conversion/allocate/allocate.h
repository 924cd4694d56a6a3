/* Bit allocation: chooses the type of each tensor of a quantized model, so that the file has a
 * given size and its predictions diverge least from those of the source.
 *
 *     allocate.c     the steps
 *     layers.c       which tensors are measured, and what follows for the others
 *     divergence.c   runs of the model on a text: KL divergence if one tensor is changed
 *     loss.c         squared errors of a tensor's types, on a sample of its rows
 *     solve.c        the best types for a number of bytes
 *
 * The model of the cost: quantizing tensor t adds to the KL divergence of the whole model
 *     KL_t(type) = sensitivity_t · error_t(type),
 * error being the squared error of its weights, each weighted by the importance of its column.
 * The divergence is quadratic in small changes, and errors of different tensors are independent,
 * so the sum over tensors is the model's. One run measures a tensor's sensitivity; between layers
 * that are measured it is interpolated. */
#ifndef AK_CONVERSION_ALLOCATE_ALLOCATE_H
#define AK_CONVERSION_ALLOCATE_ALLOCATE_H

#include "conversion/convert/convert.h"

struct ak_allocate_size {
    uint64_t bytes; /* of the file at most; 0: see bits */
    double bits;    /* bits per weight at most, over all tensors */
    const char *text;
    size_t n_text; /* calibration text, UTF-8 */
};

/* As ak_convert, whose options->quantize is not NULL; of the mix only the types of fixed tensors
 * count. AKUNU_ERROR_ARGUMENT: the text is too short, or no types give the size. */
ak_status ak_allocate(const char *from, const char *to, const struct ak_convert_options *options,
                      const struct ak_allocate_size *size, struct ak_error *error);

/* ---- solve.c ------------------------------------------------------------ */
struct ak_allocate_type {
    enum ak_quant_type type;
    uint64_t bytes;    /* in the file, with padding */
    double divergence; /* expected KL, in nats per token */
};

/* A tensor whose type is searched. */
struct ak_allocate_tensor {
    struct ak_convert_tensor *tensor;
    struct ak_allocate_type types[AK_QUANT_COUNT]; /* by bytes, ascending, and by divergence,
                                                      descending: ak_allocate_prune */
    size_t n_types, choice;

    double sensitivity; /* 0: not known */
    size_t index;       /* among the tensors of the same part, in order of layers */
    size_t n_same;      /* how many these are */
};

/* Leaves the types that are on the lower convex hull of (bytes, divergence), in order of bytes. */
void ak_allocate_prune(struct ak_allocate_tensor *tensor);

/* Sets the choice of each tensor: the least sum of divergences with at most `bytes`. Moves along
 * the hulls in order of what a byte gains, which is optimal at each size that it passes (Everett,
 * 1963), then spends the rest on single tensors. False: even the smallest types take more. */
bool ak_allocate_solve(struct ak_allocate_tensor *tensors, size_t n, uint64_t bytes);

/* ---- layers.c ----------------------------------------------------------- */
/* Counts tensors of the same part in other layers. */
void ak_allocate_count_layers(struct ak_allocate_tensor *tensors, size_t n);
/* Whether the tensor's sensitivity is measured: those of the first and the last layer, and of every
 * second one. */
bool ak_allocate_is_measured(const struct ak_allocate_tensor *tensor);
/* Geometric means of the sensitivities of the nearest layers below and above. */
void ak_allocate_interpolate(struct ak_allocate_tensor *tensors, size_t n);

/* ---- loss.c ------------------------------------------------------------- */
/* Floats of a tensor of the source, [rows][cols]. The caller frees them; NULL: out of memory. */
float *ak_allocate_read(const struct ak_convert_plan *plan, const struct ak_convert_tensor *t);
/* Replaces all rows by what they are after quantization. */
ak_status ak_allocate_quantize(const struct ak_convert_plan *plan,
                               const struct ak_convert_tensor *t, enum ak_quant_type type,
                               float *values, struct ak_error *error);
/* Weighted squared error of a sample of the tensor's rows, which is the same of all types. */
ak_status ak_allocate_error(const struct ak_convert_plan *plan, const struct ak_convert_tensor *t,
                            enum ak_quant_type type, const float *values, double *out,
                            struct ak_error *error);

/* ---- divergence.c ------------------------------------------------------- */
/* KL divergence of the distribution with logits y from that with logits x, of n tokens, in nats. */
double ak_allocate_diverge(const float *x, const float *y, uint32_t n);

struct ak_allocate_runs;

/* Runs the source on the beginning of the text and keeps its logits. The plan is used until the
 * end. */
ak_status ak_allocate_open_runs(const struct ak_convert_plan *plan,
                                const struct ak_allocate_size *size,
                                const struct ak_convert_options *options,
                                struct ak_allocate_runs **out, struct ak_error *error);
/* Mean KL divergence from the source's predictions, in nats per token, if tensor `name` has these
 * values. */
ak_status ak_allocate_run(struct ak_allocate_runs *runs, const char *name, const float *values,
                          double *divergence, struct ak_error *error);
void ak_allocate_close_runs(struct ak_allocate_runs *runs); /* NULL allowed */

#endif
