/* Converter: writes a model as one GGUF file, with tokenizer and metadata. llama.cpp loads those of
 * language models and encoders. Settings that GGUF cannot express are refused (convert.c,
 * check_source).
 *
 *     convert.c      the steps
 *     plan.c         tensors of the new file and their types
 *     types.c        the types if the model is quantized: a mix, and exceptions from it
 *     mix.c          mixes by name
 *     importance.c   which columns count most; importance_write.c writes such a file
 *     collect.c      input sums of a model that runs, by the names of its tensors
 *     rows.c         rows: permuted, dequantized, quantized by all threads
 *     metadata.c     the architecture's numbers as GGUF keys
 *     speech.c       what speech models have besides: sizes of the encoder, mel filters, names of
 *                    special tokens
 *     vocab.c        the tokenizer as GGUF keys
 *     templates.c    the chat templates
 *     gguf_write.c   the file
 *     online.c       no file, but a provider: a model that is quantized while it is packed
 *
 * A new architecture needs no code here: tensors with Hugging Face names follow from its
 * architecture's table of weights, as in binding (engine/pack/bind.c). */
#ifndef AK_CONVERSION_CONVERT_CONVERT_H
#define AK_CONVERSION_CONVERT_CONVERT_H

#include "akunu/files.h"
#include "base/error.h"
#include "base/thread.h"
#include "conversion/convert/gguf_write.h"
#include "conversion/convert/importance.h"
#include "conversion/convert/mix.h"
#include "engine/spec/model.h"
#include "conversion/quantize/quantize.h"
#include "text/tokenizer/tokenizer.h"

/* How to quantize. */
struct ak_convert_quantize {
    const char *mix;                          /* "Q4_K_M" */
    const char *const *tensor_types;          /* "PATTERN=TYPE", ends in NULL; NULL: none */
    const char *output_type, *embedding_type; /* NULL: as the mix says */
    const char *importance;                   /* a file; NULL: none */
    bool pure;                                /* the type of the mix for all matrices */
    bool requantize;                          /* even what is quantized already */
    akunu_quantize_report_fn *report;         /* NULL allowed */
};

struct ak_convert_options {
    const char *type; /* of matrices: "F32", "F16", "BF16", "Q8_0"; NULL: as stored */
    const struct ak_convert_quantize *quantize; /* NULL: no; else `type` is NULL */
    unsigned n_threads;                         /* 0: the physical cores */
    const char *pre;                            /* name of the pre-tokenizer; NULL: detected */
    bool overwrite;                             /* replace a file at the destination */
    bool no_vocab;                  /* write the file even if the model has no vocabulary */
    const char *const *override_kv; /* "KEY=TYPE:VALUE", ends in NULL; NULL: none */
    const char *const *ignore_keys; /* ends in NULL; NULL: none */
    bool (*progress)(double fraction, void *user); /* false: stop; NULL allowed */
    void *user;
    const struct ak_log *log; /* NULL allowed */
};

/* AKUNU_ERROR_ARGUMENT: unknown type, or `to` exists and may not be replaced. `to` NULL: writes
 * nothing, but reports the tensors. */
ak_status ak_convert(const char *from, const char *to, const struct ak_convert_options *options,
                     struct ak_error *error);

/* The same in steps, between which the types of the plan may be changed (ak_convert_set_type).
 * `options`, paths and `error` are used until the end. */
struct ak_convert_job;
struct ak_convert_plan;
struct ak_convert_tensor;
ak_status ak_convert_begin(const char *from, const char *to,
                           const struct ak_convert_options *options, struct ak_convert_job **out,
                           struct ak_error *error);
struct ak_convert_plan *ak_convert_get_plan(struct ak_convert_job *j);
/* Bytes of the new file before the data, which do not depend on types. */
ak_status ak_convert_header_bytes(struct ak_convert_job *j, uint64_t *out);
ak_status ak_convert_write(struct ak_convert_job *j);
/* Writes the new file into memory, with a hole for each tensor, and ones for vectors: for questions
 * about sizes. The caller closes *fd. */
ak_status ak_convert_write_hollow(struct ak_convert_job *j, int *fd);
/* Writes the new file into memory, with a hole for each tensor that is left out. */
ak_status ak_convert_write_partly(struct ak_convert_job *j,
                                  bool (*is_left_out)(const struct ak_convert_plan *plan,
                                                      const struct ak_convert_tensor *t),
                                  int *fd);
void ak_convert_end(struct ak_convert_job *j); /* NULL allowed */

/* ---- plan.c ------------------------------------------------------------- */
enum { AK_CONVERT_PARTS_MAX = 3 };

/* Reordering of a weight's rows, a vector's elements or each row's elements for GGUF. From `first`
 * on, [groups][a][b][size] of the source becomes [groups][b][a][size]. All 0: same order. */
struct ak_convert_order {
    uint32_t first, a, b, size;
};

/* Rows of a weight of the source: n rows from `first` on out of every `step`. step 0: all rows. */
struct ak_convert_part {
    const struct ak_arch_rule *rule;
    uint32_t first, n, step;
};

/* A tensor of the new file. */
struct ak_convert_tensor {
    char name[AK_ROLE_NAME_BYTES];
    enum ak_quant_type type, wanted; /* wanted: the type if its rows filled blocks of it */
    unsigned n_dims;
    uint64_t shape[AK_TENSOR_DIMS_MAX]; /* as in struct ak_tensor */
    uint64_t bytes;

    bool has_role;
    bool is_stored; /* the source is GGUF and this is its tensor `index`; else the rest is set */
    size_t index;
    int layer;
    uint32_t n_parts; /* parts; their rows follow each other. 0: divisors of the rotation */
    struct ak_convert_part parts[AK_CONVERT_PARTS_MAX];
    enum ak_role role;                  /* of the first part, or of the divisors */
    uint32_t first_row;                 /* rows before it are omitted */
    struct ak_convert_order rows, cols; /* rows, or elements of a vector; elements of a row */
    float offset;                       /* added to each element */
    bool decay;                         /* each element x becomes −e^x */

    enum ak_quant_type stored; /* the type in the source */
    bool searches;             /* quantized by conversion/quantize/, not by rounding alone */
    bool is_chosen;            /* the mix chose the type: no exception did, and it is no float */
    double divergence;         /* expected of its quantization, by ak_allocate; 0: unknown */
    const float *importance;   /* [cols] per expert, or one for all of them; NULL: none */
    uint64_t n_importance;
};

struct ak_convert_plan {
    const struct ak_provider *source;
    const struct ak_spec *spec; /* NULL: the source is GGUF */
    bool has_type;
    enum ak_quant_type type; /* of matrices, if has_type */
    struct ak_convert_tensor *tensors;
    size_t n, capacity;
    uint64_t type_bytes[AK_QUANT_STORED_END];
    const struct ak_mix *mix; /* NULL: types as stored, or one for all matrices */
    struct ak_importance importance;
    struct ak_pool *pool;
    struct ak_quantize_tables tables; /* ak_convert_prepare */
};

ak_status ak_convert_plan_tensors(struct ak_convert_plan *plan, const struct ak_log *log,
                                  struct ak_error *error);

/* ---- types.c ------------------------------------------------------------ */
/* Sets the types of a quantized model, once all tensors are planned. */
ak_status ak_convert_choose_types(struct ak_convert_plan *plan,
                                  const struct ak_convert_quantize *options,
                                  const struct ak_log *log, struct ak_error *error);
/* Says once for each pair of types how many tensors have another type than the one that was wanted.
 */
void ak_convert_report_fits(const struct ak_convert_plan *plan, const struct ak_log *log);
/* Sets a type and the bytes. AKUNU_ERROR_UNSUPPORTED: rows are not whole blocks of it, or the bytes
 * overflow 64 bits. */
ak_status ak_convert_set_type(struct ak_convert_tensor *t, enum ak_quant_type type,
                              struct ak_error *error);
/* The name within its layer: "blk.3.ffn_up.weight" gives "ffn_up.weight" and 3. Of other tensors
 * the whole name; *layer stays. */
const char *ak_convert_find_part(const char *name, unsigned *layer);
uint64_t ak_convert_count_rows(const struct ak_convert_tensor *t);
/* The importance of each element of a row; NULL: all count alike. */
const float *ak_convert_row_importance(const struct ak_convert_tensor *t, uint64_t row);
/* Whether the tensor's type needs importance and has none. */
bool ak_convert_lacks_importance(const struct ak_convert_tensor *t);
/* AKUNU_ERROR_ARGUMENT: a tensor's type needs importance that is not given. */
ak_status ak_convert_check_importance(const struct ak_convert_plan *plan, struct ak_error *error);
/* Integers, which GGUF files may have beside a model's weights. */
bool ak_convert_is_integer(enum ak_quant_type type);
/* The kind of tensors that no type but floats suits. */
bool ak_convert_stays_float(const struct ak_convert_tensor *t);

/* ---- rows.c ------------------------------------------------------------- */
/* Makes the tables that tensors of the type need. Before rows of it are quantized. */
ak_status ak_convert_prepare(struct ak_convert_plan *plan, enum ak_quant_type type,
                             struct ak_error *error);
/* The index in the source of what the new file has at index `at`. */
uint64_t ak_convert_map_index(const struct ak_convert_order *order, uint64_t at);
ak_status ak_convert_write_tensor(const struct ak_convert_plan *plan,
                                  const struct ak_convert_tensor *t, struct ak_gguf_writer *w,
                                  struct ak_error *error);

/* What a thread needs for a row. */
struct ak_convert_row_buffers {
    float *values, *ordered; /* in the order of the source; in the new order */
    bool has_no_number;      /* a row had elements that no block can hold */
};
/* Of rows of up to `cols` elements. Free them in any case. */
ak_status ak_convert_row_buffers_alloc(struct ak_convert_row_buffers *out, uint32_t cols,
                                       struct ak_error *error);
void ak_convert_row_buffers_free(struct ak_convert_row_buffers *b);
/* AKUNU_ERROR_FORMAT: has_no_number. */
ak_status ak_convert_check_numbers(const struct ak_convert_tensor *t,
                                   const struct ak_convert_row_buffers *b, struct ak_error *error);

/* The rows of a matrix of the new file in any order, by any thread, without first_row, which only
 * tables of positions have: they stay floats. The plan outlives the rows. Close *out in any case;
 * NULL is allowed. */
struct ak_convert_rows;
ak_status ak_convert_rows_open(const struct ak_convert_plan *plan,
                               const struct ak_convert_tensor *t, struct ak_convert_rows **out,
                               struct ak_error *error);
void ak_convert_rows_close(struct ak_convert_rows *r);
/* What a part is read from; NULL past the last one. */
const struct ak_view *ak_convert_rows_view(const struct ak_convert_rows *r, uint32_t part);
/* Makes the blocks of a row. */
void ak_convert_rows_make(const struct ak_convert_rows *r, uint64_t row,
                          struct ak_convert_row_buffers *b, uint8_t *out);

/* ---- metadata.c, vocab.c, templates.c ----------------------------------- */
/* Puts general.* and the architecture's keys. `name`: used if the source has none. has_rstrip:
 * control tokens strip the spaces to their right (ak_tok_has_rstrip_control). */
void ak_convert_put_metadata(struct ak_gguf_writer *w, const struct ak_convert_plan *plan,
                             const char *name, bool has_rstrip);
/* Puts the settings of sentence-transformers that GGUF has no keys for. */
ak_status ak_convert_put_sentence(struct ak_gguf_writer *w, const struct ak_convert_plan *plan,
                                  struct ak_error *error);
/* Copies the metadata of a GGUF source. */
void ak_convert_copy_metadata(struct ak_gguf_writer *w, const struct ak_convert_plan *plan);
/* `t` NULL: the model has no tokenizer. */
ak_status ak_convert_put_vocab(struct ak_gguf_writer *w, const struct ak_convert_plan *plan,
                               const struct ak_tokenizer *t, const char *pre,
                               const struct ak_log *log, struct ak_error *error);

/* ---- speech.c ----------------------------------------------------------- */
/* Puts the sizes of encoder and decoder, the mel filters if the source has them, and the heads
 * that align words with the audio if generation_config.json names them. */
ak_status ak_convert_put_speech(struct ak_gguf_writer *w, const struct ak_convert_plan *plan,
                                struct ak_error *error);
/* Gives the special tokens of Whisper their names where the export has unused tokens. `names` is
 * what they point to, which the caller frees after use. */
ak_status ak_convert_name_special_tokens(struct ak_tok_export *e, struct ak_buffer *names,
                                         struct ak_error *error);

/* Puts nothing if there are no templates. */
ak_status ak_convert_put_templates(struct ak_gguf_writer *w, const struct ak_provider *p,
                                   struct ak_error *error);

#endif
