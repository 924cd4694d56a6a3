/* Finds a model's head for scores of pairs of texts (cross-encoders, rerankers): tanh(dense · h +
 * b) for a text's pooled hidden state h, where there is a dense layer, then out · that + b.
 *
 * Hugging Face names it pooler.dense and classifier (BERT), classifier.dense and
 * classifier.out_proj (RoBERTa), or score (language models); llama.cpp cls and cls.output. Of
 * Qwen3's rerankers llama.cpp keeps the rows "yes" and "no" of the output matrix, and the score is
 * the softmax of these. */
#include <stdio.h>
#include <string.h>

#include "model/model.h"

enum part { DENSE, DENSE_BIAS, OUT, OUT_BIAS, UNKNOWN, N_PARTS };

/* Endings of tensor names. A pooler alone is no head. */
static const struct {
    const char *name;
    enum part part;
} names[] = {
    { "pooler.dense.weight", DENSE },
    { "pooler.dense.bias", DENSE_BIAS },
    { "classifier.dense.weight", DENSE },
    { "classifier.dense.bias", DENSE_BIAS },
    { "cls.weight", DENSE },
    { "cls.bias", DENSE_BIAS },
    { "classifier.weight", OUT },
    { "classifier.bias", OUT_BIAS },
    { "classifier.out_proj.weight", OUT },
    { "classifier.out_proj.bias", OUT_BIAS },
    { "score.weight", OUT },
    { "cls.output.weight", OUT },
    { "cls.output.bias", OUT_BIAS },
    { "head.dense.weight", UNKNOWN }, /* ModernBERT's, which has a norm */
    { "cls.norm.weight", UNKNOWN },
};

static enum part part_of(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t own = strlen(names[i].name);
        if (n >= own && strcmp(name + n - own, names[i].name) == 0 &&
            (n == own || name[n - own - 1] == '.'))
            return names[i].part;
    }
    return N_PARTS;
}

bool ak_spec_is_head(const char *name)
{
    return part_of(name) != N_PARTS;
}

/* Whether Hugging Face's config names the model a classifier of whole texts; GGUF has no such key.
 */
static bool is_classifier(const struct ak_provider *p)
{
    static const char ending[] = "ForSequenceClassification";
    struct ak_meta list, name;
    size_t n = strlen(ending);
    return ak_provider_find_meta(p, "architectures", &list) && list.kind == AK_META_ARRAY &&
           ak_provider_element(p, &list, 0, &name) && name.kind == AK_META_STRING && name.n >= n &&
           memcmp(name.as.string + name.n - n, ending, n) == 0;
}

static ak_status check_matrix(const struct ak_tensor *t, uint32_t cols, uint32_t *rows,
                              struct ak_error *error)
{
    enum { ROWS_MAX = 1 << 16 };
    if (t->n_dims == 1 && t->shape[0] == cols) { /* of one row */
        *rows = 1;
        return AKUNU_OK;
    }
    if (t->n_dims != 2 || t->shape[1] != cols || t->shape[0] == 0 || t->shape[0] > ROWS_MAX)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s has %u dimensions, the last of %llu; expected 2, the last of %u",
                       t->name, t->n_dims, (unsigned long long)t->shape[t->n_dims - 1], cols);
    *rows = (uint32_t)t->shape[0];
    return AKUNU_OK;
}

static ak_status check_bias(const struct ak_provider *p, int64_t index, uint32_t n,
                            struct ak_error *error)
{
    struct ak_tensor t;
    if (index < 0)
        return AKUNU_OK;
    ak_provider_tensor(p, (size_t)index, &t);
    if (t.n_dims != 1 || t.shape[0] != n)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s has %llu elements; expected %u", t.name,
                       (unsigned long long)t.shape[0], n);
    return AKUNU_OK;
}

static ak_status check_shapes(const struct ak_provider *p, uint32_t width, struct ak_spec_head *h,
                              struct ak_error *error)
{
    struct ak_tensor t;
    uint32_t n = width;
    if (h->dense >= 0) {
        ak_provider_tensor(p, (size_t)h->dense, &t);
        AK_TRY(check_matrix(&t, width, &h->n_dense, error));
        AK_TRY(check_bias(p, h->dense_bias, h->n_dense, error));
        n = h->n_dense;
    }
    h->n_labels = n;
    if (h->out < 0)
        return AKUNU_OK;
    ak_provider_tensor(p, (size_t)h->out, &t);
    AK_TRY(check_matrix(&t, n, &h->n_labels, error));
    return check_bias(p, h->out_bias, h->n_labels, error);
}

ak_status ak_spec_read_head(const struct ak_provider *p, const struct ak_spec *spec,
                            struct ak_spec_head *out, struct ak_error *error)
{
    int64_t found[N_PARTS] = { -1, -1, -1, -1, -1 };
    struct ak_tensor t;
    bool is_gguf = ak_provider_naming(p) == AK_PROVIDER_NAMING_GGUF;
    *out = (struct ak_spec_head){ .n_labels = 0 };
    if (!is_gguf && !is_classifier(p))
        return AKUNU_OK;
    for (size_t i = 0; ak_provider_tensor(p, i, &t); i++) {
        enum part part = part_of(t.name);
        if (part != N_PARTS)
            found[part] = (int64_t)i;
    }
    if (found[UNKNOWN] >= 0 || (found[OUT] < 0 && (found[DENSE] < 0 || !is_gguf)))
        return AKUNU_OK;
    *out = (struct ak_spec_head){ .dense = found[DENSE],
                                  .dense_bias = found[DENSE_BIAS],
                                  .out = found[OUT],
                                  .out_bias = found[OUT_BIAS] };
    AK_TRY(check_shapes(p, spec->config.width, out, error));
    out->is_softmax = is_gguf && !spec->descriptor.encoder && out->n_labels == 2;
    return AKUNU_OK;
}
