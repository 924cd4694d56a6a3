/* Any model that akunu opens as a GGUF file, tokenizer and metadata included, such that
 * llama.cpp loads it too.
 *
 *     convert.c      what is done, in order
 *     plan.c         which tensors the file gets, of which types
 *     rows.c         their rows: permuted, widened, quantized
 *     metadata.c     the numbers of the architecture as GGUF's keys
 *     vocab.c        the tokenizer as GGUF's keys
 *     templates.c    the chat templates
 *     gguf_write.c   the file
 *
 * What a model of Hugging Face's names becomes follows from its family's table of
 * weights, as binding it does (pack/bind.c): an architecture that loads converts.
 */
#ifndef AK_CONVERT_CONVERT_H
#define AK_CONVERT_CONVERT_H

#include "base/error.h"
#include "convert/gguf_write.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

struct ak_convert_options {
    const char *type;               /* "F32", "F16", "BF16", "Q8_0" of matrices; NULL: as stored */
    const char *pre;                /* name of the pre-tokenizer; NULL: found out */
    bool overwrite;                 /* a file at the destination is replaced */
    const char *const *override_kv; /* ends in NULL; NULL: none */
    bool (*progress)(double fraction, void *user); /* false: stop; NULL allowed */
    void *user;
    const struct ak_log *log; /* NULL allowed */
};

/* AKUNU_ERROR_ARGUMENT: an unknown type, or a file is at `to` already. */
ak_status ak_convert(const char *from, const char *to, const struct ak_convert_options *options,
                     struct ak_error *error);

/* ---- plan.c ------------------------------------------------------------- */
enum { AK_CONVERT_PARTS_MAX = 3 };

/* Where GGUF has the rows of a weight, or the elements of a vector or of each row, in
 * another order. From `first` on, what the source has as [groups][a][b][size] the file has
 * as [groups][b][a][size]; all 0: as they are. */
struct ak_convert_order {
    uint32_t first, a, b, size;
};

/* A weight of the source, or every `step` rows the n from `first` on; step 0: all. */
struct ak_convert_part {
    const struct ak_family_rule *rule;
    uint32_t first, n, step;
};

/* A tensor of the new file. */
struct ak_convert_tensor {
    char name[AK_ROLE_NAME_BYTES];
    enum ak_quant_type type;
    unsigned n_dims;
    uint64_t shape[AK_TENSOR_DIMS_MAX]; /* as in struct ak_tensor */
    uint64_t bytes;

    bool is_stored; /* tensor `index` of a GGUF file, else: */
    size_t index;
    int layer;
    uint32_t n_parts; /* one's rows after another's; 0: divisors of the rotation */
    struct ak_convert_part parts[AK_CONVERT_PARTS_MAX];
    enum ak_role role;                  /* of the first part, or of the divisors */
    uint32_t first_row;                 /* those before it are left out */
    struct ak_convert_order rows, cols; /* of rows or of a vector's elements; of a row's elements */
    float offset;                       /* added to each element */
    bool decay;                         /* of which the source has the logarithm */
};

struct ak_convert_plan {
    const struct ak_provider *source;
    const struct ak_spec *spec; /* NULL: the source is GGUF */
    bool has_type;
    enum ak_quant_type type; /* of matrices, if has_type */
    struct ak_convert_tensor *tensors;
    size_t n, capacity;
    uint64_t type_bytes[AK_QUANT_COUNT];
};

ak_status ak_convert_plan_tensors(struct ak_convert_plan *plan, const struct ak_log *log,
                                  struct ak_error *error);

/* ---- rows.c ------------------------------------------------------------- */
ak_status ak_convert_write_tensor(const struct ak_convert_plan *plan,
                                  const struct ak_convert_tensor *t, struct ak_gguf_writer *w,
                                  struct ak_error *error);

/* ---- metadata.c, vocab.c, templates.c ----------------------------------- */
/* general.* and the architecture's. `name`: the model's, where the source has none;
 * has_rstrip: as ak_tok_has_rstrip_control. */
void ak_convert_put_metadata(struct ak_gguf_writer *w, const struct ak_convert_plan *plan,
                             const char *name, bool has_rstrip);
/* All of a GGUF file's own. */
void ak_convert_copy_metadata(struct ak_gguf_writer *w, const struct ak_convert_plan *plan);
/* `t` NULL: the model has no tokenizer. */
ak_status ak_convert_put_vocab(struct ak_gguf_writer *w, const struct ak_convert_plan *plan,
                               const struct ak_tokenizer *t, const char *pre,
                               const struct ak_log *log, struct ak_error *error);

/* Nothing where there are none. */
ak_status ak_convert_put_templates(struct ak_gguf_writer *w, const struct ak_provider *p,
                                   struct ak_error *error);

#endif
