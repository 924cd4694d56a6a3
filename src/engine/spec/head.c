/* Finds a model's head for scores of pairs of texts (cross-encoders, rerankers): tanh(dense · h +
 * b) for a text's pooled hidden state h, where there is a dense layer, then out · that + b.
 *
 * Hugging Face names it pooler.dense and classifier (BERT), classifier.dense and
 * classifier.out_proj (RoBERTa), or score (language models); llama.cpp cls and cls.output. Of
 * Qwen3's rerankers llama.cpp keeps the rows "yes" and "no" of the output matrix, and the score is
 * the softmax of these. */
#include <stdio.h>
#include <string.h>

#include "engine/spec/stages.h"

enum part { DENSE, DENSE_BIAS, OUT, OUT_BIAS, N_PARTS };

/* Names of the parts, after the prefix of the class in Hugging Face's; NULL: the head has no such
 * part. */
static const char *const gguf_names[N_PARTS] = { "cls.weight", "cls.bias", "cls.output.weight",
                                                 "cls.output.bias" };
static const char *const hf_names[AK_ARCH_N_HEADS][N_PARTS] = {
    [AK_ARCH_HEAD_SCORE] = { NULL, NULL, "score.weight" },
    [AK_ARCH_HEAD_POOLER] = { "pooler.dense.weight", "pooler.dense.bias", "classifier.weight",
                              "classifier.bias" },
    [AK_ARCH_HEAD_CLASSIFIER] = { "classifier.dense.weight", "classifier.dense.bias",
                                  "classifier.out_proj.weight", "classifier.out_proj.bias" },
};

/* Tensors of heads that akunu lacks: ModernBERT's has a norm, and GGUF has it too. */
static const char *const others[] = { "head.dense.weight", "head.norm.weight", "cls.norm.weight" };

static enum part head_part_of(const char *name, const char *const names[N_PARTS])
{
    int i = 0;
    while (i < N_PARTS && !(names[i] && strcmp(names[i], name) == 0))
        i++;
    return (enum part)i;
}

static bool is_of_other_head(const char *name)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(ak_hf_stem(name), others[i]) == 0)
            return true;
    return false;
}

bool ak_spec_is_head(const char *name)
{
    for (int i = 0; i < AK_ARCH_N_HEADS; i++)
        if (head_part_of(ak_hf_stem(name), hf_names[i]) != N_PARTS)
            return true;
    return head_part_of(name, gguf_names) != N_PARTS || is_of_other_head(name);
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

/* Finds the tensors of the head that the model's class has; others of such names are unused. */
static ak_status find_parts(const struct ak_provider *p, const char *const names[N_PARTS],
                            bool is_gguf, int64_t found[N_PARTS], struct ak_error *error)
{
    struct ak_tensor t, other;
    for (size_t i = 0; ak_provider_tensor(p, i, &t); i++) {
        enum part part = head_part_of(is_gguf ? t.name : ak_hf_stem(t.name), names);
        if (part == N_PARTS)
            continue;
        if (found[part] >= 0) {
            ak_provider_tensor(p, (size_t)found[part], &other);
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "%s and %s are there for the same part of the head; expected one",
                           other.name, t.name);
        }
        found[part] = (int64_t)i;
    }
    return AKUNU_OK;
}

static bool has_other_head(const struct ak_provider *p)
{
    struct ak_tensor t;
    for (size_t i = 0; ak_provider_tensor(p, i, &t); i++)
        if (is_of_other_head(t.name))
            return true;
    return false;
}

/* A class without one of its matrices would have random numbers there. */
static ak_status check_complete(const struct ak_provider *p, const char *const names[N_PARTS],
                                const int64_t found[N_PARTS], struct ak_error *error)
{
    struct ak_text name = ak_spec_class(p);
    enum part missing = names[DENSE] && found[DENSE] < 0 ? DENSE : OUT;
    if (found[missing] >= 0)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT,
                   "%s is missing, which the class %.*s of config.json has for its scores",
                   names[missing], (int)(name.n < 64 ? name.n : 64), name.bytes);
}

ak_status ak_spec_read_head(const struct ak_provider *p, const struct ak_spec *spec,
                            struct ak_spec_head *out, struct ak_error *error)
{
    int64_t found[N_PARTS] = { -1, -1, -1, -1 };
    bool is_gguf = ak_provider_naming(p) == AK_PROVIDER_NAMING_GGUF;
    enum ak_arch_head kind = spec->arch->head;
    *out = (struct ak_spec_head){ .n_labels = 0 };
    if (has_other_head(p) || (!is_gguf && (!ak_spec_is_classifier(p) || kind == AK_ARCH_HEAD_NONE)))
        return AKUNU_OK;
    const char *const *names = is_gguf ? gguf_names : hf_names[kind];
    AK_TRY(find_parts(p, names, is_gguf, found, error));
    if (!is_gguf)
        AK_TRY(check_complete(p, names, found, error));
    if (found[OUT] < 0 && found[DENSE] < 0)
        return AKUNU_OK;
    *out = (struct ak_spec_head){ .dense = found[DENSE],
                                  .dense_bias = found[DENSE_BIAS],
                                  .out = found[OUT],
                                  .out_bias = found[OUT_BIAS] };
    AK_TRY(check_shapes(p, spec->config.width, out, error));
    out->is_softmax = is_gguf && !spec->descriptor.encoder && out->n_labels == 2;
    return AKUNU_OK;
}
