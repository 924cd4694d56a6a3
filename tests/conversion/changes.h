/* Copies of models in which something is changed, files of input sums, and how far the predictions
 * of two models are apart. */
#ifndef AK_TESTS_CONVERSION_CHANGES_H
#define AK_TESTS_CONVERSION_CHANGES_H

#include "tests/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "akunu/akunu.h"
#include "conversion/convert/gguf_write.h"
#include "tests/st_files.h"

/* A copy of a model in GGUF with other values of one tensor, a number in place of a metadata entry,
 * and vectors that the source lacks, unless these are NULL. */
struct test_change {
    const char *tensor, *key;
    const float *values;
    uint32_t number;
    const char *const *others;
};

static inline void test_write_changed(const char *from, const char *to,
                                      const struct test_change *change)
{
    static const float ones[64] = { 1.0f };
    static const uint64_t n = 64;
    struct ak_error error = { 0 };
    struct ak_provider *source, *p;
    struct ak_meta meta;
    struct ak_tensor t;
    const char *const *others = change->others;
    ck_assert_int_eq(ak_provider_open(from, &source, &error), AKUNU_OK);
    ck_assert_int_eq(ak_provider_replace(source, change->tensor, change->values, &p, &error),
                     AKUNU_OK);
    struct ak_gguf_writer w = ak_gguf_writer_begin(&error);
    for (size_t i = 0; ak_provider_meta(p, i, &meta); i++)
        if (!change->key || strcmp(meta.key, change->key) != 0)
            ak_gguf_writer_put_meta(&w, p, &meta);
    if (change->key)
        ak_gguf_writer_put_u32(&w, change->key, change->number);
    for (size_t i = 0; ak_provider_tensor(p, i, &t); i++)
        ak_gguf_writer_put_tensor(&w, t.name, t.type, t.n_dims, t.shape);
    for (size_t i = 0; others && others[i]; i++)
        ak_gguf_writer_put_tensor(&w, others[i], AK_QUANT_F32, 1, &n);
    ak_gguf_writer_open(&w, to);
    for (size_t i = 0; ak_provider_tensor(p, i, &t); i++) {
        ak_gguf_writer_write(&w, t.data, (size_t)t.bytes);
        ak_gguf_writer_end_tensor(&w);
    }
    for (size_t i = 0; others && others[i]; i++) {
        ak_gguf_writer_write(&w, ones, sizeof ones);
        ak_gguf_writer_end_tensor(&w);
    }
    ck_assert_msg(ak_gguf_writer_finish(&w) == AKUNU_OK, "%s", error.message);
    ak_provider_close(p);
    ak_provider_close(source);
}

/* An entry of a file of sums in the older form, of one text. */
static inline void test_append_sums(struct test_bytes *bytes, const char *name, const float *values,
                                    uint32_t n)
{
    test_append_u32(bytes, (uint32_t)strlen(name));
    test_append(bytes, name, strlen(name));
    test_append_u32(bytes, 1);
    test_append_u32(bytes, n);
    test_append(bytes, values, n * sizeof *values);
}

/* A file of sums in the older form, of one text: entry i has the columns' values for the tensor
 * names[i]. */
static inline void test_write_sums(const char *path, const char *const *names, uint32_t n_names,
                                   const float *values, uint32_t n)
{
    struct test_bytes bytes = { 0 };
    test_append_u32(&bytes, n_names);
    for (uint32_t i = 0; i < n_names; i++)
        test_append_sums(&bytes, names[i], values, n);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes.data, 1, bytes.n, file), bytes.n);
    fclose(file);
    free(bytes.data);
}

/* Logits of the tokens of a chunk from `first` on, [n - first][n_vocab]; to be freed. */
static inline float *test_run_chunk(struct akunu_model *model, const akunu_token *ids, size_t n,
                                    size_t first, size_t n_vocab)
{
    struct akunu_session_params params;
    struct akunu_batch_token tokens[512];
    float *logits = malloc((n - first) * n_vocab * sizeof *logits);
    akunu_session_params_default(&params, sizeof params);
    params.context = params.batch = (uint32_t)n;
    params.k_type = params.v_type = AKUNU_KV_F32;
    struct akunu_session *session = akunu_session_new(model, &params);
    akunu_sequence sequence = akunu_sequence_new(session);
    for (size_t i = 0; i < n; i++)
        tokens[i] = (struct akunu_batch_token){ ids[i], sequence, true };
    ck_assert_msg(akunu_session_decode(session, tokens, n) == AKUNU_OK, "%s", akunu_last_error());
    for (size_t i = first; i < n; i++)
        memcpy(logits + (i - first) * n_vocab, akunu_session_logits(session, i),
               n_vocab * sizeof *logits);
    akunu_session_free(session);
    return logits;
}

static inline double test_log_sum(const float *x, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)x[i]);
    return log(sum);
}

/* Adds one position: Σ p (ln p − ln q), and whether both have the same best token. */
static inline void test_compare_logits(const float *x, const float *y, size_t n,
                                       struct akunu_compress_result *sums)
{
    double x_sum = test_log_sum(x, n), y_sum = test_log_sum(y, n);
    size_t best[2] = { 0, 0 };
    for (size_t i = 0; i < n; i++) {
        double p = (double)x[i] - x_sum, q = (double)y[i] - y_sum;
        sums->divergence += exp(p) * (p - q);
        best[0] = x[i] > x[best[0]] ? i : best[0];
        best[1] = y[i] > y[best[1]] ? i : best[1];
    }
    sums->agreement += best[0] == best[1];
    sums->n_positions++;
}

#endif
