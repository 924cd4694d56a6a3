/* Importance matrices: the sums that llama-imatrix has (tests/golden/imatrix.py), the same bytes
 * whatever the threads, passes, instruction sets and interruptions, the names of convert, and what
 * is refused. */
#include <math.h>
#include <unistd.h>

#include "conversion/convert/gguf_write.h"
#include "conversion/convert/importance.h"
#include "tests/api/failure.h"
#include "tests/golden_model.h"
#include "tests/st_files.h"

/* As in tests/golden/imatrix.py. */
enum { CHUNK = 32, CHUNKS = 4, IDS = 58 };
static const struct {
    const char *name;
    double most; /* difference of a sum, relative: measured, times 4 */
} cases[] = {
    { "qwen2", 8e-6 }, { "mixtral", 9e-6 },   { "qwen2moe", 9e-6 },    { "gpt-oss", 6e-6 },
    { "lfm2", 7e-6 },  { "qwen3next", 5e-5 }, { "qwen35moe", 1.4e-5 },
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void make_ids(uint32_t n_ids, akunu_token ids[CHUNK * CHUNKS])
{
    uint32_t state = 1;
    for (int i = 0; i < CHUNK * CHUNKS; i++) {
        state = state * 1664525u + 1013904223u;
        ids[i] = (akunu_token)((state >> 16) % n_ids);
    }
}

static struct akunu_importance *new_importance_of(const struct akunu_model *model, bool output)
{
    struct akunu_importance_params params;
    akunu_importance_params_default(&params, sizeof params);
    params.output = output;
    params.chunk_size = CHUNK;
    params.dataset = "text";
    struct akunu_importance *im = akunu_importance_new(model, &params);
    ck_assert_msg(im != NULL, "%s", akunu_last_error());
    return im;
}

static struct akunu_importance *new_importance(const struct akunu_model *model)
{
    return new_importance_of(model, true);
}

/* Adds chunks [first, end) of a text of the first n_ids tokens. */
static void add_chunks_of(struct akunu_importance *im, struct akunu_session *session,
                          uint32_t n_ids, int first, int end)
{
    akunu_token ids[CHUNK * CHUNKS];
    make_ids(n_ids, ids);
    for (int i = first; i < end; i++)
        ck_assert_msg(akunu_importance_add(im, session,
                                           &(struct akunu_ids){ ids + i * CHUNK, CHUNK }, NULL,
                                           NULL) == AKUNU_OK,
                      "%s", akunu_last_error());
}

static void add_chunks(struct akunu_importance *im, struct akunu_session *session, int first,
                       int end)
{
    add_chunks_of(im, session, IDS, first, end);
}

static void write_ok(const struct akunu_importance *im, const char *path)
{
    ck_assert_msg(akunu_importance_write(im, path, true) == AKUNU_OK, "%s", akunu_last_error());
}

/* Runs a model over the text and writes the file. */
static void make(const struct akunu_model *model, unsigned n_threads, uint32_t batch,
                 const char *path)
{
    struct akunu_session_params params = golden_params(n_threads, batch, AKUNU_KV_F32);
    struct akunu_model_info info;
    params.context = 2 * CHUNK;
    struct akunu_session *session = akunu_session_new(model, &params);
    ck_assert_msg(session != NULL, "%s", akunu_last_error());
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    struct akunu_importance *im = new_importance(model);
    add_chunks_of(im, session, info.vocab_size < IDS ? info.vocab_size : IDS, 0, CHUNKS);
    write_ok(im, path);
    akunu_importance_free(im);
    akunu_session_free(session);
}

static struct ak_importance read_ok(const char *path)
{
    struct ak_importance im;
    struct ak_error error;
    ck_assert_msg(ak_importance_read(path, &im, &error) == AKUNU_OK, "%s", error.message);
    return im;
}

/* The bytes of a file, with a NUL. */
static char *read_bytes(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s cannot be opened", path);
    ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
    *n = (size_t)ftell(f);
    rewind(f);
    char *bytes = calloc(1, *n + 1);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_uint_eq(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

static void check_same_bytes(const char *path, const char *other)
{
    size_t n, n_other;
    char *bytes = read_bytes(path, &n), *others = read_bytes(other, &n_other);
    ck_assert_uint_eq(n, n_other);
    ck_assert_mem_eq(bytes, others, n);
    free(bytes);
    free(others);
}

/* ---- Sums --------------------------------------------------------------- */
/* The largest relative difference of sums; counts must be equal. */
static double compare(const struct ak_importance_entry *a, const struct ak_importance_entry *b)
{
    double largest = 0.0;
    ck_assert_uint_eq(a->n, b->n);
    ck_assert_uint_eq(a->n_matrices, b->n_matrices);
    for (uint64_t m = 0; m < a->n_matrices; m++)
        ck_assert_msg(a->counts[m] == b->counts[m], "%s: count %llu is %g, not %g", a->name,
                      (unsigned long long)m, (double)a->counts[m], (double)b->counts[m]);
    for (uint64_t i = 0; i < a->n; i++) {
        double expected = (double)b->values[i] > 1e-6 ? (double)b->values[i] : 1e-6;
        double difference = fabs((double)a->values[i] - (double)b->values[i]) / expected;
        if (difference > largest) /* gcc 12 for aarch64 fails on fmax in this loop */
            largest = difference;
    }
    return largest;
}

/* llama-imatrix sees the product of a shared expert's gate too, which is a vector here. It does not
 * see an embedding that serves as output matrix. */
static bool is_of_one(const char *name)
{
    return strstr(name, "ffn_gate_inp_shexp") || strcmp(name, "token_embd.weight") == 0;
}

static double compare_all(const struct ak_importance *ours, const struct ak_importance *others)
{
    double largest = 0.0;
    size_t n = 0;
    for (size_t i = 0; i < others->n; i++) {
        const struct ak_importance_entry *b = &others->entries[i],
                                         *a = ak_importance_find(ours, b->name);
        ck_assert_msg(a || is_of_one(b->name), "no %s", b->name);
        n += a != NULL;
        largest = a ? fmax(largest, compare(a, b)) : largest;
    }
    for (size_t i = 0; i < ours->n; i++)
        n += !ak_importance_find(others, ours->entries[i].name) && is_of_one(ours->entries[i].name);
    ck_assert_uint_eq(n, ours->n);
    return largest;
}

START_TEST(sums_of_llama_cpp)
{
    struct test_folder folder = test_folder_begin();
    char path[4096], golden[4096], name[64];
    struct akunu_model *model = golden_load(cases[_i].name, NULL);
    snprintf(path, sizeof path, "%s", test_in(&folder, "importance"));
    make(model, 2, CHUNK, path);
    snprintf(name, sizeof name, "../imatrix/%s", cases[_i].name);
    struct ak_importance ours = read_ok(path), others = read_ok(golden_path(name, ".gguf", golden));
    double largest = compare_all(&ours, &others);
    if (test_is_full())
        printf("%s: %.3g\n", cases[_i].name, largest);
    ck_assert_msg(largest <= cases[_i].most, "%s: differs by %g, at most %g expected",
                  cases[_i].name, largest, cases[_i].most);
    ck_assert_uint_eq(ours.n_datasets, 1);
    ck_assert_str_eq(ours.datasets[0], "text");
    ck_assert_uint_eq(ak_importance_tokens(&ours), CHUNK * CHUNKS);
    ak_importance_free(&ours);
    ak_importance_free(&others);
    akunu_model_free(model);
    test_folder_end(&folder);
}
END_TEST

/* ---- The same bytes ----------------------------------------------------- */
static const char *const kinds[] = { "qwen2", "qwen2moe", "lfm2", "qwen35moe", "mixed" };
enum { N_KINDS = sizeof kinds / sizeof *kinds };

START_TEST(same_bytes)
{
    struct test_folder folder = test_folder_begin();
    char path[4096], other[4096];
    snprintf(path, sizeof path, "%s", test_in(&folder, "importance"));
    snprintf(other, sizeof other, "%s", test_in(&folder, "other"));
    struct akunu_model *model = golden_load(kinds[_i], NULL),
                       *scalar = golden_load(kinds[_i], "scalar");
    make(model, 2, CHUNK, path);
    make(model, 1, CHUNK, other);
    check_same_bytes(path, other);
    make(model, 3, 20, other);
    check_same_bytes(path, other);
    make(scalar, 2, CHUNK, other);
    check_same_bytes(path, other);
    akunu_model_free(model);
    akunu_model_free(scalar);
    test_folder_end(&folder);
}
END_TEST

/* Sums go from the file into a run that reads it. */
START_TEST(resumed)
{
    struct test_folder folder = test_folder_begin();
    char path[4096], other[4096];
    snprintf(path, sizeof path, "%s", test_in(&folder, "importance"));
    snprintf(other, sizeof other, "%s", test_in(&folder, "other"));
    struct akunu_model *model = golden_load(kinds[_i], NULL);
    struct akunu_session *session = golden_session(model, 2, CHUNK, AKUNU_KV_F32);
    make(model, 2, CHUNK, path);
    for (int i = 0; i < CHUNKS; i++) {
        struct akunu_importance *im = new_importance(model);
        if (i > 0)
            ck_assert_msg(akunu_importance_read(im, other) == AKUNU_OK, "%s", akunu_last_error());
        add_chunks(im, session, i, i + 1);
        write_ok(im, other);
        akunu_importance_free(im);
    }
    check_same_bytes(path, other);
    akunu_session_free(session);
    akunu_model_free(model);
    test_folder_end(&folder);
}
END_TEST

/* Logits with input sums, and after them. */
START_TEST(same_logits)
{
    struct akunu_batch_token tokens[CHUNK];
    akunu_token ids[CHUNK * CHUNKS];
    struct akunu_model_info info;
    float *before;
    make_ids(IDS, ids);
    struct akunu_model *model = golden_load(kinds[_i], NULL);
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    before = malloc(CHUNK * info.vocab_size * sizeof *before);
    struct akunu_session *session = golden_session(model, 2, CHUNK, AKUNU_KV_F32);
    struct akunu_importance *im = new_importance(model);
    for (int round = 0; round < 2; round++) {
        akunu_sequence sequence = akunu_sequence_new(session);
        for (int i = 0; i < CHUNK; i++)
            tokens[i] = (struct akunu_batch_token){ ids[i], sequence, true };
        ck_assert_int_eq(akunu_session_decode(session, tokens, CHUNK), AKUNU_OK);
        for (int i = 0; i < CHUNK; i++) {
            const float *logits = akunu_session_logits(session, (size_t)i);
            if (round == 0)
                memcpy(before + (size_t)i * info.vocab_size, logits,
                       info.vocab_size * sizeof *before);
            else
                ck_assert_mem_eq(before + (size_t)i * info.vocab_size, logits,
                                 info.vocab_size * sizeof *before);
        }
        akunu_sequence_free(session, sequence);
        add_chunks(im, session, 0, 1);
        ck_assert_ptr_null(akunu_session_logits(session, 0));
    }
    free(before);
    akunu_importance_free(im);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* Without the output matrix the others have the same sums. */
START_TEST(without_output)
{
    struct test_folder folder = test_folder_begin();
    char path[4096], other[4096];
    snprintf(path, sizeof path, "%s", test_in(&folder, "importance"));
    snprintf(other, sizeof other, "%s", test_in(&folder, "other"));
    struct akunu_model *model = golden_load(kinds[_i], NULL);
    struct akunu_session *session = golden_session(model, 2, CHUNK, AKUNU_KV_F32);
    struct akunu_importance *im = new_importance_of(model, false);
    make(model, 2, CHUNK, path);
    add_chunks(im, session, 0, CHUNKS);
    write_ok(im, other);
    struct ak_importance all = read_ok(path), others = read_ok(other);
    ck_assert_uint_eq(others.n + 1, all.n);
    for (size_t i = 0; i < others.n; i++) {
        const struct ak_importance_entry *b = &others.entries[i],
                                         *a = ak_importance_find(&all, b->name);
        ck_assert(a && a->n == b->n && a->n_matrices == b->n_matrices);
        ck_assert_mem_eq(a->values, b->values, a->n * sizeof *a->values);
        ck_assert_mem_eq(a->counts, b->counts, a->n_matrices * sizeof *a->counts);
    }
    ak_importance_free(&all);
    ak_importance_free(&others);
    akunu_importance_free(im);
    akunu_session_free(session);
    akunu_model_free(model);
    test_folder_end(&folder);
}
END_TEST

/* ---- Names -------------------------------------------------------------- */
static struct akunu_model *load_path(const char *path)
{
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    struct akunu_model *model = akunu_model_load(path, &params);
    ck_assert_msg(model != NULL, "%s: %s", path, akunu_last_error());
    return model;
}

/* Runs the models at two paths; the sums of the same names are the same, up to their rounding. */
static void check_same_sums(const struct test_folder *folder, const char *path, const char *other)
{
    char out[2][4096];
    struct ak_importance im[2];
    for (int i = 0; i < 2; i++) {
        struct akunu_model *model = load_path(i == 0 ? path : other);
        snprintf(out[i], sizeof out[i], "%s", test_in(folder, i == 0 ? "importance" : "other"));
        make(model, 2, CHUNK, out[i]);
        akunu_model_free(model);
        im[i] = read_ok(out[i]);
    }
    ck_assert_uint_gt(im[0].n, 0);
    ck_assert_uint_eq(im[0].n, im[1].n);
    double largest = compare_all(&im[1], &im[0]);
    ck_assert_msg(largest < 1e-5, "%s: %g", path, largest);
    ak_importance_free(&im[0]);
    ak_importance_free(&im[1]);
}

/* A folder gets the names, and the order of columns, of the GGUF file that llama.cpp made of it. */
START_TEST(names_of_llama_cpp)
{
    static const char *const names[] = { "qwen35", "qwen35moe", "qwen3next" };
    struct test_folder folder = test_folder_begin();
    char path[4096], other[4096], source[64];
    snprintf(source, sizeof source, "../folders/%s", names[_i]);
    check_same_sums(&folder, golden_path(source, "", path), golden_path(names[_i], ".gguf", other));
    test_folder_end(&folder);
}
END_TEST

/* Of encoders too, those that convert gives. */
START_TEST(names_of_convert)
{
    static const char *const names[] = { "bert", "modernbert", "nomic-bert" };
    struct test_folder folder = test_folder_begin();
    char path[4096], other[4096], source[64];
    snprintf(source, sizeof source, "../encoders/%s", names[_i]);
    snprintf(other, sizeof other, "%s", test_in(&folder, "model.gguf"));
    ck_assert_msg(test_convert_weights(golden_path(source, "", path), other) == AKUNU_OK, "%s",
                  akunu_last_error());
    check_same_sums(&folder, path, other);
    test_folder_end(&folder);
}
END_TEST

/* ---- Files -------------------------------------------------------------- */
/* Twice the sums of one file, from both of its forms. */
START_TEST(combined)
{
    struct test_folder folder = test_folder_begin();
    char path[4096], golden[4096];
    snprintf(path, sizeof path, "%s", test_in(&folder, "sum"));
    struct akunu_importance *im = new_importance(NULL);
    struct akunu_importance_info info;
    ck_assert_int_eq(akunu_importance_read(im, golden_path("../imatrix/qwen2.gguf", "", golden)),
                     AKUNU_OK);
    ck_assert_int_eq(akunu_importance_read(im, golden_path("../imatrix/old.dat", "", golden)),
                     AKUNU_OK);
    ck_assert_int_eq(akunu_importance_get_info(im, &info, sizeof info), AKUNU_OK);
    ck_assert_uint_eq(info.n_tokens, 2 * CHUNK * CHUNKS);
    ck_assert_uint_eq(info.n_unused, 0);
    write_ok(im, path);
    akunu_importance_free(im);
    struct ak_importance sum = read_ok(path),
                         one = read_ok(golden_path("../imatrix/qwen2.gguf", "", golden));
    ck_assert_uint_eq(sum.n, one.n);
    for (size_t i = 0; i < one.n; i++) {
        const struct ak_importance_entry *b = &one.entries[i],
                                         *a = ak_importance_find(&sum, b->name);
        ck_assert(a && a->n == b->n);
        for (uint64_t j = 0; j < a->n; j++)
            ck_assert(fabs((double)a->values[j] - 2.0 * (double)b->values[j]) <=
                      1e-5 * (double)b->values[j]);
    }
    ak_importance_free(&sum);
    ak_importance_free(&one);
    test_folder_end(&folder);
}
END_TEST

static bool always(void *user)
{
    (void)user;
    return true;
}

START_TEST(refused)
{
    struct test_folder folder = test_folder_begin();
    akunu_token ids[CHUNK * CHUNKS];
    char path[4096], golden[4096];
    make_ids(IDS, ids);
    snprintf(path, sizeof path, "%s", test_in(&folder, "importance"));
    struct akunu_model *model = golden_load("qwen2", NULL), *other = golden_load("mixtral", NULL);
    struct akunu_session *session = golden_session(model, 1, CHUNK, AKUNU_KV_F32),
                         *of_other = golden_session(other, 1, CHUNK, AKUNU_KV_F32);
    struct akunu_importance *im = new_importance(model);
    ck_assert_int_eq(akunu_importance_write(im, path, false), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "nothing was added");
    ck_assert_int_eq(
        akunu_importance_add(im, of_other, &(struct akunu_ids){ ids, CHUNK }, NULL, NULL),
        AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "another model");
    ck_assert_int_eq(akunu_importance_add(im, session, &(struct akunu_ids){ ids, 0 }, NULL, NULL),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_importance_add(im, session,
                                          &(struct akunu_ids){ (akunu_token[]){ 1, 100000 }, 2 },
                                          NULL, NULL),
                     AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "100000");
    ck_assert_int_eq(
        akunu_importance_add(im, session, &(struct akunu_ids){ ids, CHUNK }, always, NULL),
        AKUNU_ERROR_CANCELLED);
    ck_assert_int_eq(akunu_importance_read(im, golden_path("../imatrix/mixtral.gguf", "", golden)),
                     AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "another model");
    ck_assert_int_eq(akunu_importance_read(im, "/nowhere"), AKUNU_ERROR_FORMAT);
    /* none of which has left anything */
    ck_assert_int_eq(akunu_importance_write(im, path, false), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_ne(access(path, F_OK), 0);
    add_chunks(im, session, 0, 1);
    ck_assert_int_eq(akunu_importance_write(im, path, false), AKUNU_OK);
    ck_assert_int_eq(akunu_importance_write(im, path, false), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "exists already");
    ck_assert_int_eq(akunu_importance_check_path("/nowhere/x", true), AKUNU_ERROR_IO);
    ck_assert_int_eq(akunu_importance_check_path(path, true), AKUNU_OK);
    ck_assert_ptr_null(akunu_importance_new(
        model,
        &(struct akunu_importance_params){ .size = sizeof(struct akunu_importance_params) }));
    failed_with(AKUNU_ERROR_ARGUMENT, "chunk_size");
    akunu_importance_free(im);
    akunu_importance_free(NULL);
    akunu_session_free(session);
    akunu_session_free(of_other);
    akunu_model_free(model);
    akunu_model_free(other);
    test_folder_end(&folder);
}
END_TEST

/* An entry of ones in the older form. */
static void write_entry(const struct test_folder *folder, const char *file, uint32_t n)
{
    static const char name[] = "blk.0.ffn_up.weight";
    struct test_bytes b = { 0 };
    test_append_u32(&b, 1);
    test_append_u32(&b, sizeof name - 1);
    test_append(&b, name, sizeof name - 1);
    test_append_u32(&b, 1);
    test_append_u32(&b, n);
    for (uint32_t i = 0; i < n; i++)
        test_append(&b, &(float){ 1.0f }, 4);
    test_write(folder, file, b.data, b.n);
    free(b.data);
}

/* Files with other numbers of columns are of other models. */
START_TEST(other_columns)
{
    static const struct {
        uint32_t first, second;
        const char *said;
    } pairs[] = { { 32, 64, "blk.0.ffn_up.weight: 64 values of 1 matrices, where 32 of 1 are" },
                  { 64, 32, "blk.0.ffn_up.weight: 32 values of 1 matrices, where 64 of 1 are" } };
    struct test_folder folder = test_folder_begin();
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct akunu_importance *im = new_importance(NULL);
        write_entry(&folder, "first", pairs[i].first);
        write_entry(&folder, "second", pairs[i].second);
        ck_assert_int_eq(akunu_importance_read(im, test_in(&folder, "first")), AKUNU_OK);
        ck_assert_int_eq(akunu_importance_read(im, test_in(&folder, "second")),
                         AKUNU_ERROR_ARGUMENT);
        failed_with(AKUNU_ERROR_ARGUMENT, pairs[i].said);
        akunu_importance_free(im);
    }
    test_folder_end(&folder);
}
END_TEST

/* A GGUF file of sums and counts, and what is said about it. */
struct foreign {
    const char *sums, *counts; /* names; NULL: none */
    enum ak_quant_type sums_type, counts_type;
    uint64_t n_sums, n_counts;
    enum { NO_DATASETS, TEXTS, NUMBERS, ONE_TEXT } datasets;
    const char *said; /* NULL: it is read */
};

static void write_foreign(const struct foreign *f, const char *path)
{
    static const struct ak_text texts[] = { { "a", 1 }, { "text b", 6 } };
    static const float ones[64] = { 1.0f, 1.0f };
    struct ak_error error = { 0 };
    struct ak_gguf_writer w = ak_gguf_writer_begin(&error);
    if (f->datasets == TEXTS)
        ak_gguf_writer_put_texts(&w, "imatrix.datasets", texts, 2);
    else if (f->datasets == NUMBERS)
        ak_gguf_writer_put_ints(&w, "imatrix.datasets", (const int32_t[]){ 5, 7 }, 2);
    else if (f->datasets == ONE_TEXT)
        ak_gguf_writer_put_string(&w, "imatrix.datasets", "text");
    if (f->sums)
        ak_gguf_writer_put_tensor(&w, f->sums, f->sums_type, 1, &f->n_sums);
    if (f->counts)
        ak_gguf_writer_put_tensor(&w, f->counts, f->counts_type, 1, &f->n_counts);
    ak_gguf_writer_open(&w, path);
    for (int i = 0; i < !!f->sums + !!f->counts; i++) {
        enum ak_quant_type type = i == 0 ? f->sums_type : f->counts_type;
        ak_gguf_writer_write(&w, ones,
                             (i == 0 ? f->n_sums : f->n_counts) * ak_quant_info(type)->block_bytes);
        ak_gguf_writer_end_tensor(&w);
    }
    ck_assert_msg(ak_gguf_writer_finish(&w) == AKUNU_OK, "%s", error.message);
}

START_TEST(foreign_files)
{
#define SUMS "blk.0.ffn_up.weight.in_sum2"
#define COUNTS "blk.0.ffn_up.weight.counts"
    static const struct foreign files[] = {
        { SUMS, COUNTS, AK_QUANT_F32, AK_QUANT_F32, 2, 1, NO_DATASETS, NULL },
        { SUMS, COUNTS, AK_QUANT_F32, AK_QUANT_F32, 2, 1, TEXTS, NULL },
        /* which are no names of texts */
        { SUMS, COUNTS, AK_QUANT_F32, AK_QUANT_F32, 2, 1, NUMBERS, NULL },
        { SUMS, COUNTS, AK_QUANT_F32, AK_QUANT_F32, 2, 1, ONE_TEXT, NULL },
        { SUMS, NULL, AK_QUANT_F32, AK_QUANT_F32, 2, 1, TEXTS,
          "blk.0.ffn_up.weight.in_sum2 has no .counts beside it" },
        { SUMS, "blk.1.ffn_up.weight.counts", AK_QUANT_F32, AK_QUANT_F32, 2, 1, TEXTS,
          "blk.0.ffn_up.weight.in_sum2 has no .counts beside it" },
        { "blk.0.\x1b.in_sum2", NULL, AK_QUANT_F32, AK_QUANT_F32, 2, 1, TEXTS,
          "blk.0.\\x1b.in_sum2 has no .counts beside it" },
        { SUMS, COUNTS, AK_QUANT_F16, AK_QUANT_F32, 2, 1, TEXTS,
          "blk.0.ffn_up.weight.in_sum2 has 2 values of F16 for 1 matrices; expected F32, as many "
          "for each" },
        { SUMS, COUNTS, AK_QUANT_F32, AK_QUANT_F16, 6, 2, TEXTS,
          "blk.0.ffn_up.weight.in_sum2 has 6 values of F32 for 2 matrices; expected F32, as many "
          "for each" },
        { SUMS, COUNTS, AK_QUANT_F32, AK_QUANT_F32, 5, 3, TEXTS,
          "blk.0.ffn_up.weight.in_sum2 has 5 values of F32 for 3 matrices; expected F32, as many "
          "for each" },
        { NULL, COUNTS, AK_QUANT_F32, AK_QUANT_F32, 2, 1, TEXTS, "no tensor ends in .in_sum2" },
        { NULL, NULL, AK_QUANT_F32, AK_QUANT_F32, 2, 1, NO_DATASETS, "no tensor ends in .in_sum2" },
    };
    struct test_folder folder = test_folder_begin();
    char path[96], said[256];
    snprintf(path, sizeof path, "%s", test_in(&folder, "importance"));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct ak_importance im;
        struct ak_error error = { 0 };
        write_foreign(&files[i], path);
        snprintf(said, sizeof said, "%s: %s", path, files[i].said ? files[i].said : "");
        ak_status status = ak_importance_read(path, &im, &error);
        ck_assert_msg(status == (files[i].said ? AKUNU_ERROR_FORMAT : AKUNU_OK), "case %zu: %s", i,
                      error.message);
        if (files[i].said) {
            ck_assert_str_eq(error.message, said);
        } else {
            ck_assert(im.n == 1 && strcmp(im.entries[0].name, "blk.0.ffn_up.weight") == 0);
            ck_assert_uint_eq(im.n_datasets, files[i].datasets == TEXTS ? 2 : 0);
            ck_assert(im.n_datasets == 0 ||
                      (strcmp(im.datasets[0], "a") == 0 && strcmp(im.datasets[1], "text b") == 0));
        }
        ak_importance_free(&im);
        unlink(path);
    }
    test_folder_end(&folder);
#undef SUMS
#undef COUNTS
}
END_TEST

/* Each length of a file, and each of its bytes changed, is read or refused. */
START_TEST(damaged)
{
    struct test_folder folder = test_folder_begin();
    static const char *const names[] = { "../imatrix/mixtral.gguf", "../imatrix/old.dat" };
    char golden[4096];
    size_t n, step = test_is_full() ? 1 : 97;
    struct ak_importance im;
    struct ak_error error;
    char *bytes = read_bytes(golden_path(names[_i], "", golden), &n);
    for (size_t at = 0; at < n; at += step) {
        char kept = bytes[at];
        test_write(&folder, "damaged", bytes, at);
        ck_assert_int_ne(ak_importance_read(test_in(&folder, "damaged"), &im, &error) == AKUNU_OK &&
                             at < n / 2,
                         1);
        ak_importance_free(&im);
        bytes[at] = (char)(kept ^ 0xff);
        test_write(&folder, "damaged", bytes, n);
        if (ak_importance_read(test_in(&folder, "damaged"), &im, &error) == AKUNU_OK)
            ck_assert(ak_importance_average(&im, &error) == AKUNU_OK ||
                      error.status == AKUNU_ERROR_FORMAT);
        ak_importance_free(&im);
        bytes[at] = kept;
    }
    free(bytes);
    test_folder_end(&folder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("importance");
    TCase *t = tcase_create("importance");
    suite_add_tcase(suite, t);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, sums_of_llama_cpp, 0, N_CASES);
    tcase_add_loop_test(t, same_bytes, 0, N_KINDS);
    tcase_add_loop_test(t, resumed, 0, N_KINDS);
    tcase_add_loop_test(t, same_logits, 0, N_KINDS);
    tcase_add_loop_test(t, without_output, 0, N_KINDS);
    tcase_add_loop_test(t, names_of_llama_cpp, 0, 3);
    tcase_add_loop_test(t, names_of_convert, 0, 3);
    tcase_add_test(t, combined);
    tcase_add_test(t, refused);
    tcase_add_test(t, other_columns);
    tcase_add_test(t, foreign_files);
    tcase_add_loop_test(t, damaged, 0, 2);
    return test_run(suite);
}
