/* Compressor: writes a model of any format as a folder of NumPy arrays with matrices of 8, 4 or 3
 * bits (docs/npy-directory.md), under Hugging Face's names and in its layout.
 *
 *     compress.c   the steps, and what is refused
 *     plan.c       tensors of the folder: names, shapes, and the rows of the source that they take
 *     rows.c       rows of the source as floats, in the layout of Hugging Face
 *     encode.c     rows as arrays, by all threads
 *     array.c      one .npy file
 *     folder.c     the folder: journal of a run that may be interrupted, manifest
 *     config.c     config.json and the tokenizer
 *     awq.c        factors of columns by the inputs that they are multiplied with
 *     gate.c       KL divergence and top-1 agreement of the folder with the source
 *
 * The manifest is written last, so that a folder without one is no model. Until then a journal in
 * the folder lists the encodings that are whole, and the same call goes on behind them.
 *
 * Everything but the names is independent of architectures: what GGUF permutes or shifts is undone
 * by the flags of struct ak_arch. A config.json that is made from GGUF is read back and compared
 * with the source, so that a model which it cannot describe is refused. */
#ifndef AK_CONVERSION_COMPRESS_COMPRESS_H
#define AK_CONVERSION_COMPRESS_COMPRESS_H

#include <jansson.h>

#include "base/error.h"
#include "base/thread.h"
#include "conversion/convert/convert.h"
#include "conversion/convert/importance.h"
#include "engine/spec/model.h"

/* Encodings, the best first. */
enum ak_compress_encoding {
    AK_COMPRESS_INT8,
    AK_COMPRESS_INT4,
    AK_COMPRESS_INT3,
    AK_COMPRESS_PLAIN,
    AK_COMPRESS_ENCODINGS
};
/* Key in the manifest; suffixes of the files of numbers and scales (NULL: none). */
struct ak_compress_encoding_info {
    const char *name, *numbers, *scales;
    unsigned bits; /* 0: floats */
};
extern const struct ak_compress_encoding_info ak_compress_encodings[AK_COMPRESS_ENCODINGS];

struct ak_compress_options {
    enum ak_compress_encoding encoding; /* of the matrices; not plain */
    uint32_t group;                     /* columns that share a scale; 0: 64 */
    const char *importance, *awq;       /* files of input sums; NULL: none */
    const char *text;                   /* to compare the folder with the source; NULL: do not */
    size_t n_text;
    double max_divergence, min_agreement;          /* limits; below 0: the encoding's own */
    bool requantize;                               /* even what is quantized already */
    bool overwrite;                                /* replace the model in the folder */
    unsigned n_threads;                            /* 0: the physical cores */
    bool (*progress)(double fraction, void *user); /* false: stop; NULL allowed */
    void *user;
    const struct ak_log *log; /* NULL allowed */
};

struct ak_compress_result {
    uint64_t bytes[AK_COMPRESS_ENCODINGS]; /* of the arrays of each encoding in the folder */
    uint64_t source_bytes;                 /* of the source's tensors */
    uint64_t n_matrices, n_resumed;        /* quantized; of these, by an earlier run */
    double min_cosine;                     /* of a matrix with what it became; 0: none was made */
    bool is_measured;
    double divergence, agreement; /* KL in nats per token; share of equal best tokens */
    uint64_t n_positions;         /* that were compared */
};

/* AKUNU_ERROR_ARGUMENT: the folder holds something else, or the limits are not met.
 * AKUNU_ERROR_UNSUPPORTED: the format cannot hold the model. After a cancellation or a failure
 * there is no manifest, or that of before. */
ak_status ak_compress(const char *from, const char *to, const struct ak_compress_options *options,
                      struct ak_compress_result *result, struct ak_error *error);

/* ---- A tensor of the folder --------------------------------------------- */
enum { AK_COMPRESS_PARTS_MAX = 3, AK_COMPRESS_NAME_BYTES = 240 };

struct ak_compress_tensor {
    char *name, *safe; /* SAFE: the stem of its files */
    unsigned n_dims;
    uint64_t shape[AK_TENSOR_DIMS_MAX];
    uint64_t rows, cols; /* of a vector: 1 row */
    bool has_role;
    enum ak_role role;
    int layer;
    size_t parts[AK_COMPRESS_PARTS_MAX]; /* tensors of the source, whose rows follow each other */
    uint32_t n_parts;
    struct ak_convert_order order; /* of rows, or of a vector's elements */
    float offset;                  /* added to each element */
    bool quantizes;
    uint32_t group;          /* if it is quantized */
    const float *importance; /* [cols] per matrix of a stack, or one for all; NULL: none */
    uint64_t n_importance;   /* elements */
    const float *inputs;     /* the same of the AWQ file */
    uint64_t n_inputs;
    const float *factors; /* of AWQ, [cols]; NULL: not scaled */
    bool multiplies;      /* columns by the factors; false: a norm is divided by them */
};

struct ak_compress_folder; /* folder.c */

struct ak_compress_job {
    const struct ak_compress_options *options;
    const char *from, *to;
    struct ak_provider *source;
    struct ak_spec spec;
    bool is_gguf; /* the source has GGUF's names and layout */
    struct ak_compress_tensor *tensors;
    size_t n, capacity;
    struct ak_importance importance, inputs; /* inputs: of the AWQ file */
    float *factors;                          /* of AWQ; all groups' */
    json_t *exponents;                       /* of AWQ, by norm, for the manifest; NULL: none */
    struct ak_pool *pool;
    struct ak_compress_folder *folder;
    double done, all, base, span; /* progress: elements, and the part of the whole that they are */
    struct ak_compress_result *result;
    struct ak_error *error;
};

/* Reports progress. AKUNU_ERROR_CANCELLED: the caller wants no more. */
ak_status ak_compress_advance(struct ak_compress_job *j, double elements);

/* ---- plan.c ------------------------------------------------------------- */
ak_status ak_compress_plan(struct ak_compress_job *j);
void ak_compress_free_plan(struct ak_compress_job *j);
uint64_t ak_compress_count_elems(const struct ak_compress_tensor *t);

/* ---- rows.c ------------------------------------------------------------- */
/* Row `row` of the tensor, [cols]; of a vector the whole. `buffer`: [cols]. Factors are applied. */
void ak_compress_read_row(const struct ak_compress_job *j, const struct ak_compress_tensor *t,
                          uint64_t row, float *buffer, float *out);
/* The same without factors. */
void ak_compress_read_unscaled(const struct ak_compress_job *j, const struct ak_compress_tensor *t,
                               uint64_t row, float *buffer, float *out);
/* Weights of the squared errors of a row, [cols]: its importance, else ones; divided by the squares
 * of the factors unless they are NULL. */
void ak_compress_get_weights(const struct ak_compress_tensor *t, uint64_t row, const float *factors,
                             float *out);

/* ---- encode.c ----------------------------------------------------------- */
/* Writes the arrays of the tensor, unless the folder has them. */
ak_status ak_compress_encode(struct ak_compress_job *j, const struct ak_compress_tensor *t);

/* Number i of a row of an encoding. */
int ak_compress_get_number(unsigned bits, const uint8_t *numbers, uint64_t i);

/* ---- array.c ------------------------------------------------------------ */
/* A .npy file in the making, which has another name until it is whole. */
struct ak_compress_array {
    int folder, fd; /* fd −1: not open */
    char name[AK_COMPRESS_NAME_BYTES + 16];
    struct ak_error *error;
};
/* Creates NAME.npy in the folder of this descriptor. `type`: NumPy's, "<f4"; `bytes`: of the data,
 * which are reserved, so that a full disk is refused here. */
ak_status ak_compress_array_open(struct ak_compress_array *a, int folder, const char *safe,
                                 const char *suffix, const char *type, unsigned n_dims,
                                 const uint64_t *shape, uint64_t bytes, struct ak_error *error);
ak_status ak_compress_array_write(struct ak_compress_array *a, const void *data, size_t n);
/* AKUNU_OK: syncs the file and gives it its name; else removes it. Returns the status of both. */
ak_status ak_compress_array_close(struct ak_compress_array *a, ak_status status);
/* Removes an array that was closed. */
void ak_compress_array_remove(int folder, const char *safe, const char *suffix);
/* Writes n bytes to a descriptor. AKUNU_ERROR_IO: the message names `name`. */
ak_status ak_compress_write_all(int fd, const char *name, const void *data, size_t n,
                                struct ak_error *error);
enum { AK_COMPRESS_HEADER_BYTES = 128 }; /* of every array */

/* ---- folder.c ----------------------------------------------------------- */
#define AK_COMPRESS_DRAFT "manifest.json.part"

/* Stem of the files of a tensor's name, which may be any text: "__" for each dot. False: it is
 * empty, too long, or would leave the folder. */
bool ak_compress_make_safe(const char *name, char out[AK_COMPRESS_NAME_BYTES]);

/* Creates the folder, or opens the one that has the same source, and locks it.
 * AKUNU_ERROR_ARGUMENT: it holds something else, or the encoding already. */
ak_status ak_compress_folder_open(struct ak_compress_job *j);
/* Descriptor of tensors/. */
int ak_compress_folder_arrays(const struct ak_compress_folder *f);
/* Whether an encoding was added to a model that was there before. */
bool ak_compress_folder_is_old(const struct ak_compress_folder *f);
/* The encoding's object in the manifest to be, if its arrays are whole; NULL: they are not. */
const json_t *ak_compress_folder_find(const struct ak_compress_folder *f,
                                      const struct ak_compress_tensor *t,
                                      enum ak_compress_encoding encoding);
/* Adds an encoding whose arrays are whole; takes the reference to `info`. */
ak_status ak_compress_folder_add(struct ak_compress_folder *f, const struct ak_compress_tensor *t,
                                 enum ak_compress_encoding encoding, json_t *info);
/* Writes another file of the folder, complete or not at all; `name` may have one subfolder. */
ak_status ak_compress_folder_write(struct ak_compress_folder *f, const char *name,
                                   const void *bytes, size_t n);
/* Writes the manifest under its draft's name; gives it its own, and removes the journal. */
ak_status ak_compress_folder_draft(struct ak_compress_job *j);
ak_status ak_compress_folder_publish(struct ak_compress_folder *f);
/* Bytes of each encoding. */
void ak_compress_folder_sum(const struct ak_compress_folder *f,
                            uint64_t bytes[AK_COMPRESS_ENCODINGS]);
void ak_compress_folder_close(struct ak_compress_folder *f); /* NULL allowed */

/* ---- config.c ----------------------------------------------------------- */
/* Writes config.json and the tokenizer. */
ak_status ak_compress_write_config(const struct ak_compress_job *j);
/* Opens the draft, and fails unless it describes the source's model. Close *out in any case. */
ak_status ak_compress_open_draft(const struct ak_compress_job *j, struct ak_provider **out);

/* ---- awq.c -------------------------------------------------------------- */
ak_status ak_compress_find_factors(struct ak_compress_job *j);

/* ---- gate.c ------------------------------------------------------------- */
/* Compares the draft with the source on the text. AKUNU_ERROR_ARGUMENT: a limit is not met. */
ak_status ak_compress_measure(struct ak_compress_job *j);

#endif
