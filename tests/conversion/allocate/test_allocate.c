/* Bit allocation: the choice of types against the best of all choices, and files of a given size
 * from a small model. */
#include "conversion/allocate/allocate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "akunu/akunu.h"
#include "base/mem.h"
#include "tests/conversion/changes.h"
#include "tests/out_of_memory.h"
#include "tests/process.h"
#include "tests/st_files.h"
#include "tests/test.h"

/* ---- Choosing ----------------------------------------------------------- */
enum { N_TENSORS = 6, N_TYPES = 4 };

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void make(struct ak_allocate_tensor *tensors, uint64_t *state)
{
    for (int i = 0; i < N_TENSORS; i++) {
        tensors[i] = (struct ak_allocate_tensor){ .n_types = N_TYPES };
        for (int k = 0; k < N_TYPES; k++)
            tensors[i].types[k] =
                (struct ak_allocate_type){ .type = (enum ak_quant_type)k,
                                           .bytes = 100 + next_random(state) % 400,
                                           .divergence = (double)(next_random(state) % 1000) };
    }
}

/* The least sum of divergences of all choices. */
static double find_least(const struct ak_allocate_tensor *tensors, uint64_t bytes)
{
    double least = 1e9;
    for (int choice = 0; choice < 1 << 2 * N_TENSORS; choice++) {
        uint64_t taken = 0;
        double sum = 0.0;
        for (int i = 0; i < N_TENSORS; i++) {
            const struct ak_allocate_type *type = &tensors[i].types[choice >> 2 * i & 3];
            taken += type->bytes;
            sum += type->divergence;
        }
        if (taken <= bytes && sum < least)
            least = sum;
    }
    return least;
}

static double sum_up(const struct ak_allocate_tensor *tensors, uint64_t *bytes)
{
    double sum = 0.0;
    *bytes = 0;
    for (int i = 0; i < N_TENSORS; i++) {
        *bytes += tensors[i].types[tensors[i].choice].bytes;
        sum += tensors[i].types[tensors[i].choice].divergence;
    }
    return sum;
}

/* Largest gain of one step on the hulls: as far as the choice may be from the best. */
static double largest_step(const struct ak_allocate_tensor *tensors)
{
    double most = 0.0;
    for (int i = 0; i < N_TENSORS; i++)
        for (size_t k = 1; k < tensors[i].n_types; k++) {
            double gain = tensors[i].types[k - 1].divergence - tensors[i].types[k].divergence;
            most = gain > most ? gain : most;
        }
    return most;
}

static double gain(const struct ak_allocate_tensor *tensor, size_t k)
{
    const struct ak_allocate_type *t = &tensor->types[k];
    return (t->divergence - t[1].divergence) / (double)(t[1].bytes - t->bytes);
}

/* No tensor's next type has room. */
static void check_no_room(const struct ak_allocate_tensor *tensors, uint64_t left)
{
    for (int i = 0; i < N_TENSORS; i++) {
        const struct ak_allocate_type *now = &tensors[i].types[tensors[i].choice];
        ck_assert(tensors[i].choice + 1 == tensors[i].n_types || now[1].bytes - now->bytes > left);
    }
}

START_TEST(near_the_best_of_all)
{
    struct ak_allocate_tensor all[N_TENSORS], tensors[N_TENSORS];
    uint64_t state = (uint64_t)_i + 1, taken;
    make(all, &state);
    memcpy(tensors, all, sizeof all);
    for (int i = 0; i < N_TENSORS; i++)
        ak_allocate_prune(&tensors[i]);
    for (uint64_t bytes = 600; bytes < 3000; bytes += 97) {
        double least = find_least(all, bytes);
        bool is_possible = ak_allocate_solve(tensors, N_TENSORS, bytes);
        ck_assert_int_eq(is_possible, least < 1e9);
        if (!is_possible)
            continue;
        double sum = sum_up(tensors, &taken);
        ck_assert_uint_le(taken, bytes);
        ck_assert_double_ge(sum, least);
        ck_assert_double_le(sum, least + largest_step(tensors));
        check_no_room(tensors, bytes - taken);
    }
}
END_TEST

/* At each size that the way along the hulls passes, nothing is better: the types of which a byte
 * gains `rate` or more. */
START_TEST(best_at_each_rate)
{
    struct ak_allocate_tensor all[N_TENSORS], tensors[N_TENSORS];
    uint64_t state = (uint64_t)_i + 101, taken;
    make(all, &state);
    memcpy(tensors, all, sizeof all);
    for (int i = 0; i < N_TENSORS; i++)
        ak_allocate_prune(&tensors[i]);
    for (double rate = 64.0; rate > 0.01; rate *= 0.7) {
        uint64_t bytes = 0;
        for (int i = 0; i < N_TENSORS; i++) {
            size_t k = 0;
            while (k + 1 < tensors[i].n_types && gain(&tensors[i], k) >= rate)
                k++;
            bytes += tensors[i].types[k].bytes;
        }
        ck_assert(ak_allocate_solve(tensors, N_TENSORS, bytes));
        ck_assert_double_eq(sum_up(tensors, &taken), find_least(all, bytes));
        ck_assert_uint_eq(taken, bytes);
    }
}
END_TEST

/* Of the types two are above the hull, one is worse than a smaller one, one as good as a smaller
 * one, one worse than another of as many bytes, and of two that are the same the first one stays.
 */
START_TEST(hull)
{
    struct ak_allocate_tensor tensor = { .types = { { AK_QUANT_Q6_K, 100, 1.0 },
                                                    { AK_QUANT_Q5_K, 90, 1.5 },
                                                    { AK_QUANT_Q8_K, 90, 1.0 },
                                                    { AK_QUANT_Q8_0, 90, 1.0 },
                                                    { AK_QUANT_Q4_0, 40, 10.0 },
                                                    { AK_QUANT_Q4_1, 50, 9.5 },
                                                    { AK_QUANT_Q5_0, 60, 4.0 },
                                                    { AK_QUANT_Q5_1, 70, 4.5 } },
                                         .n_types = 8 };
    ak_allocate_prune(&tensor);
    ck_assert_uint_eq(tensor.n_types, 3);
    ck_assert_int_eq(tensor.types[0].type, AK_QUANT_Q4_0);
    ck_assert_int_eq(tensor.types[1].type, AK_QUANT_Q5_0);
    ck_assert_int_eq(tensor.types[2].type, AK_QUANT_Q8_0);
}
END_TEST

/* Whether a type is on the hull: no other has as few bytes and as small a divergence, and no two
 * others are, by parts, as small as it in both. */
static bool is_on_hull(const struct ak_allocate_type *types, size_t n,
                       const struct ak_allocate_type *t)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            const struct ak_allocate_type *u = &types[i], *v = &types[k];
            double gain = u->divergence - v->divergence,
                   between = (double)t->bytes - (double)u->bytes,
                   bytes = (double)v->bytes - (double)u->bytes;
            if (u != t && u->bytes <= t->bytes && u->divergence <= t->divergence)
                return false;
            if (u->bytes < t->bytes && t->bytes < v->bytes &&
                t->divergence * bytes >= u->divergence * bytes - gain * between)
                return false;
        }
    return true;
}

START_TEST(hull_of_random_types)
{
    enum { N = 10 };
    struct ak_allocate_tensor all = { .n_types = N }, tensor;
    uint64_t state = (uint64_t)_i + 1;
    size_t kept = 0;
    for (int k = 0; k < N; k++)
        all.types[k] =
            (struct ak_allocate_type){ .type = (enum ak_quant_type)k,
                                       .bytes = next_random(&state) % 10007,
                                       .divergence = (double)(next_random(&state) % 10009) };
    tensor = all;
    ak_allocate_prune(&tensor);
    for (int k = 0; k < N; k++)
        if (is_on_hull(all.types, N, &all.types[k]))
            kept++;
    ck_assert_uint_eq(tensor.n_types, kept);
    for (size_t i = 0; i < tensor.n_types; i++) {
        ck_assert(is_on_hull(all.types, N, &all.types[tensor.types[i].type]));
        ck_assert(i == 0 || tensor.types[i - 1].bytes < tensor.types[i].bytes);
    }
}
END_TEST

/* ---- Layers ------------------------------------------------------------- */
/* Of twelve layers the second, fourth … tenth are measured, the first and the last one; what lies
 * between is the geometric mean. Of few layers all are, and what is in no layer. */
START_TEST(layers)
{
    enum { LAYERS = 12, N = LAYERS + 4 };
    static struct ak_convert_tensor names[N];
    struct ak_allocate_tensor tensors[N];
    int n_measured = 0;
    memset(tensors, 0, sizeof tensors);
    for (int i = 0; i < N; i++) {
        bool is_many = i < LAYERS;
        snprintf(names[i].name, sizeof names[i].name,
                 is_many ? "blk.%d.ffn_up.weight" : "blk.%d.in", is_many ? LAYERS - 1 - i : i);
        tensors[i].tensor = &names[i];
    }
    snprintf(names[N - 1].name, sizeof names[N - 1].name, "output.weight");
    ak_allocate_count_layers(tensors, N);
    for (int i = 0; i < N; i++) {
        n_measured += ak_allocate_is_measured(&tensors[i]);
        if (ak_allocate_is_measured(&tensors[i]))
            tensors[i].sensitivity = i < LAYERS ? (double)(1 << (LAYERS - 1 - i)) : 5.0;
    }
    ck_assert_int_eq(n_measured, 7 + 4);
    ak_allocate_interpolate(tensors, N);
    for (int i = 0; i < LAYERS; i++)
        ck_assert_double_eq_tol(tensors[i].sensitivity, 1 << (LAYERS - 1 - i), 1e-9);
    ck_assert_double_eq(tensors[N - 1].sensitivity, 5.0);
    /* next to a layer whose change shows nowhere it is the arithmetic mean */
    tensors[LAYERS - 1 - 3].sensitivity = 0.0;
    ak_allocate_interpolate(tensors, N);
    ck_assert_double_eq_tol(tensors[LAYERS - 1 - 2].sensitivity, 1.0, 1e-9);
    ck_assert_double_eq_tol(tensors[LAYERS - 1 - 4].sensitivity, 16.0, 1e-9);
}
END_TEST

/* All of eight layers are measured, and six of nine. */
START_TEST(few_layers)
{
    static const char *const measured[] = { "11111111", "110101011" };
    static struct ak_convert_tensor names[9];
    struct ak_allocate_tensor tensors[9];
    size_t n = 8 + (size_t)_i;
    memset(tensors, 0, sizeof tensors);
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i].name, sizeof names[i].name, "blk.%zu.ffn_up.weight", i);
        tensors[i].tensor = &names[i];
    }
    ak_allocate_count_layers(tensors, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(ak_allocate_is_measured(&tensors[i]) == (measured[_i][i] == '1'), "layer %zu",
                      i);
}
END_TEST

/* ---- Files -------------------------------------------------------------- */
static const char text[] =
    "In the beginning there was a model, and it was large. Whoever held it wished that it were "
    "smaller, and whoever made it smaller wished to know what was lost. So they took a text, and "
    "looked at each of its words twice: once as the large model would have it, once as the small "
    "one would. Where both agreed they saved, and where they did not they spent.";

static char from[4096], to[96];

static struct akunu_quantize_params begin(struct test_folder *folder)
{
    struct akunu_quantize_params params;
    *folder = test_folder_begin();
    snprintf(from, sizeof from, "%s", test_path("models/qwen3.gguf"));
    snprintf(to, sizeof to, "%s", test_in(folder, "new.gguf"));
    akunu_quantize_params_default(&params, sizeof params);
    params.no_vocab = true;
    params.text = text;
    params.n_text = sizeof text - 1;
    params.overwrite = true;
    return params;
}

/* The share that is done never shrinks, and the steps of measuring are equal. */
struct steps {
    double last, begun; /* share before the first step */
    unsigned n, n_all;  /* steps; n_all 0: they are counted */
};

static bool watch_progress(double fraction, void *user)
{
    struct steps *steps = user;
    ck_assert_double_ge(fraction, steps->last);
    steps->last = fraction;
    if (fraction <= 0.05 || fraction > 0.95 - 1e-9)
        return true;
    steps->n++;
    if (steps->n_all > 0)
        ck_assert_double_eq_tol(
            fraction, steps->begun + (0.95 - steps->begun) * steps->n / steps->n_all, 1e-9);
    return true;
}

static struct test_bytes quantize(const struct akunu_quantize_params *given)
{
    struct akunu_quantize_params params = *given;
    struct test_bytes bytes = { 0 };
    uint8_t piece[4096];
    size_t n;
    bool is_gguf = strstr(from, ".gguf");
    struct steps steps = { .n = 0 }, again = { .begun = is_gguf ? 0.0 : 0.05 };
    params.progress = watch_progress;
    params.user = &steps;
    ck_assert_msg(akunu_quantize(from, to, &params) == AKUNU_OK, "%s", akunu_last_error());
    again.n_all = steps.n + 1; /* the last one is 0.95, where writing begins */
    params.user = &again;
    ck_assert_msg(akunu_quantize(from, to, &params) == AKUNU_OK, "%s", akunu_last_error());
    ck_assert_uint_gt(steps.n, 5);
    ck_assert_uint_eq(again.n, steps.n);
    ck_assert_double_eq_tol(again.last, 1.0, 1e-9);
    FILE *file = fopen(to, "rb");
    ck_assert_ptr_nonnull(file);
    while ((n = fread(piece, 1, sizeof piece, file)) > 0)
        test_append(&bytes, piece, n);
    fclose(file);
    return bytes;
}

/* What a file has: bits of all tensors, their expected divergence, types of some. */
struct sums {
    double bits, elements, divergence, divergence_of_down;
    char embedding[16], q[16], down[16];
};

static void on_tensor(const struct akunu_quantized_tensor *t, void *user)
{
    struct sums *sums = user;
    double elements = 1.0;
    for (unsigned i = 0; i < t->n_dims; i++)
        elements *= (double)t->shape[i];
    sums->bits += 8.0 * (double)t->bytes;
    sums->elements += elements;
    sums->divergence += t->divergence;
    if (strcmp(t->name, "token_embd.weight") == 0)
        snprintf(sums->embedding, sizeof sums->embedding, "%s", t->type);
    if (strcmp(t->name, "blk.0.attn_q.weight") == 0)
        snprintf(sums->q, sizeof sums->q, "%s", t->type);
    if (strcmp(t->name, "blk.1.ffn_down.weight") == 0) {
        snprintf(sums->down, sizeof sums->down, "%s", t->type);
        sums->divergence_of_down = t->divergence;
    }
}

/* What a call that writes no file reports. */
static struct sums report(const struct akunu_quantize_params *given)
{
    struct akunu_quantize_params params = *given;
    struct sums sums = { 0 };
    params.report = on_tensor;
    params.user = &sums;
    ck_assert_msg(akunu_quantize(from, NULL, &params) == AKUNU_OK, "%s", akunu_last_error());
    return sums;
}

START_TEST(bits_per_weight)
{
    struct test_folder folder;
    struct akunu_quantize_params params = begin(&folder);
    double last = 1e9;
    for (double bits = 5.0; bits < 9.0; bits += 1.0) {
        params.target_bits = bits;
        struct sums sums = report(&params);
        ck_assert_double_le(sums.bits, bits * sums.elements);
        ck_assert_double_ge(sums.bits, (bits - 0.3) * sums.elements);
        ck_assert_double_gt(sums.divergence, 0.0);
        ck_assert_double_lt(sums.divergence, last);
        last = sums.divergence;
    }
    test_folder_end(&folder);
}
END_TEST

START_TEST(bytes_and_the_same)
{
    struct test_folder folder;
    struct akunu_quantize_params params = begin(&folder);
    params.target_bytes = 150000;
    params.n_threads = 3;
    struct test_bytes with_three = quantize(&params);
    params.n_threads = 1;
    struct test_bytes with_one = quantize(&params);
    ck_assert_uint_le(with_three.n, 150000);
    ck_assert_uint_ge(with_three.n, 145000);
    ck_assert_uint_eq(with_one.n, with_three.n);
    ck_assert_mem_eq(with_one.data, with_three.data, with_one.n);
    free(with_one.data);
    free(with_three.data);
    test_folder_end(&folder);
}
END_TEST

static char logged[256];

static void on_log(enum akunu_log_level level, const char *line, void *user)
{
    (void)user;
    if (level == AKUNU_LOG_INFO)
        snprintf(logged, sizeof logged, "%s", line);
}

/* Numbers of llama.cpp's mixes that are called after a type. */
static const struct {
    const char *type;
    uint64_t number;
} mixes[] = {
    { "Q4_0", 2 },  { "Q4_1", 3 },  { "Q8_0", 7 },    { "Q5_0", 8 },    { "Q5_1", 9 },
    { "Q2_K", 10 }, { "Q3_K", 12 }, { "Q4_K", 15 },   { "Q5_K", 17 },   { "Q6_K", 18 },
    { "F16", 1 },   { "F32", 0 },   { "IQ4_NL", 25 }, { "IQ4_XS", 30 }, { "NVFP4", 39 },
};
enum { N_MIXES = sizeof mixes / sizeof *mixes };

static uint64_t type_bytes[N_MIXES];

static void count_bytes(const struct akunu_quantized_tensor *t, void *user)
{
    on_tensor(t, user);
    for (size_t i = 0; i < N_MIXES; i++)
        if (strcmp(t->type, mixes[i].type) == 0)
            type_bytes[i] += t->bytes;
}

static uint64_t read_file_type(const char *path)
{
    struct akunu_meta meta;
    uint64_t number = UINT64_MAX;
    struct akunu_file *file = akunu_file_open(path);
    for (size_t i = 0; akunu_file_get_meta(file, i, &meta, sizeof meta) == AKUNU_OK; i++)
        if (strcmp(meta.key, "general.file_type") == 0)
            number = meta.unsigned_integer;
    akunu_file_free(file);
    return number;
}

/* The file has the number of the mix of most bytes, and the log what it costs. */
START_TEST(file_type)
{
    static const double bits[] = { 5.0, 6.5, 9.0 };
    struct test_folder folder;
    char line[64];
    struct akunu_quantize_params params = begin(&folder);
    struct sums sums = { 0 };
    size_t most = 0;
    params.target_bits = bits[_i];
    params.report = count_bytes;
    params.log = on_log;
    params.user = &sums;
    ck_assert_msg(akunu_quantize(from, to, &params) == AKUNU_OK, "%s", akunu_last_error());
    for (size_t i = 1; i < N_MIXES; i++)
        most = type_bytes[i] > type_bytes[most] ? i : most;
    ck_assert_uint_eq(read_file_type(to), mixes[most].number);
    snprintf(line, sizeof line, "expected KL divergence: %.4f", sums.divergence);
    ck_assert_str_eq(logged, line);
    test_folder_end(&folder);
}
END_TEST

/* Tensors of an exception keep its type. */
START_TEST(exceptions)
{
    static const char *const types[] = { "blk\\.0\\.attn_q=Q8_0", NULL };
    struct test_folder folder;
    struct akunu_quantize_params params = begin(&folder);
    params.target_bits = 6.0;
    params.tensor_types = types;
    params.embedding_type = "Q5_1";
    struct sums sums = report(&params);
    ck_assert_str_eq(sums.embedding, "Q5_1");
    ck_assert_str_eq(sums.q, "Q8_0");
    ck_assert_double_le(sums.bits, 6.0 * sums.elements);
    test_folder_end(&folder);
}
END_TEST

/* ---- One tensor --------------------------------------------------------- */
static enum ak_quant_type find_type(const char *name)
{
    for (int type = 0; type < AK_QUANT_COUNT; type++)
        if (strcmp(ak_quant_info((enum ak_quant_type)type)->name, name) == 0)
            return (enum ak_quant_type)type;
    ck_abort_msg("no type %s", name);
}

/* How much a column of the tensor counts, if there is importance. */
static float get_importance(uint64_t column)
{
    return column % 7 == 0 ? 25.0f : 0.5f;
}

/* The tensor's squared error with a type, which is also that of the values that it becomes. */
static double get_error(struct ak_convert_plan *plan, const struct ak_convert_tensor *t,
                        enum ak_quant_type type, const float *values, float *after,
                        bool has_importance)
{
    struct ak_error error = { 0 };
    double found, sum = 0.0;
    uint64_t n = t->shape[0] * t->shape[1];
    ck_assert_int_eq(ak_convert_prepare(plan, type, &error), AKUNU_OK);
    ck_assert_int_eq(ak_allocate_error(plan, t, type, values, &found, &error), AKUNU_OK);
    memcpy(after, values, n * sizeof *after);
    ck_assert_int_eq(ak_allocate_quantize(plan, t, type, after, &error), AKUNU_OK);
    for (uint64_t i = 0; i < n; i++)
        sum += ((double)values[i] - (double)after[i]) * ((double)values[i] - (double)after[i]) *
               (has_importance ? (double)get_importance(i % t->shape[1]) : 1.0);
    ck_assert_double_gt(sum, 0.0);
    ck_assert_double_eq_tol(found, sum, 1e-9 * sum);
    return sum;
}

static const char down[] = "blk.1.ffn_down.weight";

/* The mean divergence of a model with other values of the tensor, over the second half of the
 * text's tokens or, if more than 256 are run, over the last 256. */
static double compare_with(const struct test_folder *folder, const char *said, const float *values)
{
    char path[128];
    struct akunu_model_info info;
    akunu_token ids[2048];
    struct akunu_compress_result sums = { 0 };
    snprintf(path, sizeof path, "%s", test_in(folder, "replaced.gguf"));
    test_write_changed(from, path, &(struct test_change){ .tensor = down, .values = values });
    struct akunu_model *a = akunu_model_load(from, NULL), *b = akunu_model_load(path, NULL);
    ck_assert_int_eq(akunu_model_get_info(a, &info, sizeof info), AKUNU_OK);
    int64_t n = akunu_tokenizer_encode(akunu_model_tokenizer(a), said, strlen(said),
                                       AKUNU_ADD_SPECIAL, ids, 2048);
    size_t n_run = (size_t)n < info.context ? (size_t)n : info.context,
           first = n_run > 256 ? n_run - 256 : n_run - n_run / 2;
    float *x = test_run_chunk(a, ids, n_run, first, info.vocab_size),
          *y = test_run_chunk(b, ids, n_run, first, info.vocab_size);
    for (size_t i = 0; i < n_run - first; i++)
        test_compare_logits(x + i * info.vocab_size, y + i * info.vocab_size, info.vocab_size,
                            &sums);
    free(x);
    free(y);
    akunu_model_free(a);
    akunu_model_free(b);
    return sums.divergence / (double)sums.n_positions;
}

/* What a type of one tensor costs, if the others have theirs: the divergence of a run in which it
 * is Q4_0, times the ratio of the squared errors. */
static double expect_divergence(const struct test_folder *folder, const char *said,
                                enum ak_quant_type type, const char *importance)
{
    const struct ak_convert_quantize how = { .mix = "Q8_0", .importance = importance };
    const struct ak_convert_options options = { .quantize = &how, .n_threads = 1 };
    struct ak_error error = { 0 };
    struct ak_convert_job *job = NULL;
    ck_assert_msg(ak_convert_begin(from, NULL, &options, &job, &error) == AKUNU_OK, "%s",
                  error.message);
    struct ak_convert_plan *plan = ak_convert_get_plan(job);
    const struct ak_convert_tensor *t = plan->tensors;
    while (strcmp(t->name, down) != 0)
        t++;
    float *values = ak_allocate_read(plan, t),
          *after = malloc(t->shape[0] * t->shape[1] * sizeof *after);
    double ratio = get_error(plan, t, type, values, after, importance);
    ratio /= get_error(plan, t, AK_QUANT_Q4_0, values, after, importance);
    double divergence = compare_with(folder, said, after);
    ak_convert_end(job);
    ak_free(values);
    free(after);
    return divergence * ratio;
}

/* With importance or without it, and with 400 tokens of a long text. */
START_TEST(expected_divergence)
{
    static const char *const types[] = { "blk\\.0=Q8_0", "blk\\.1\\.attn=Q8_0",
                                         "blk\\.1\\.ffn_gate=Q8_0", "blk\\.1\\.ffn_up=Q8_0", NULL };
    static const char *const names[] = { down };
    struct test_folder folder;
    char sums_path[128], longer[128], said[4 * sizeof text] = "";
    float importance[160];
    struct akunu_quantize_params params = begin(&folder);
    snprintf(sums_path, sizeof sums_path, "%s", test_in(&folder, "sums"));
    for (uint64_t j = 0; j < 160; j++)
        importance[j] = get_importance(j);
    params.target_bits = 8.4;
    params.tensor_types = types;
    params.embedding_type = "Q8_0";
    if (_i == 1) {
        test_write_sums(sums_path, names, 1, importance, 160);
        params.importance = sums_path;
    }
    if (_i == 2) {
        snprintf(longer, sizeof longer, "%s", test_in(&folder, "longer.gguf"));
        test_write_changed(from, longer,
                           &(struct test_change){ .key = "qwen3.context_length", .number = 400 });
        snprintf(from, sizeof from, "%s", longer);
    }
    for (int i = 0; i < (_i == 2 ? 4 : 1); i++)
        snprintf(said + strlen(said), sizeof text, "%s", text);
    params.text = said;
    params.n_text = strlen(said);
    struct sums sums = report(&params);
    double expected = expect_divergence(&folder, said, find_type(sums.down), params.importance);
    ck_assert_double_gt(expected, 0.0);
    ck_assert_double_eq_tol(sums.divergence_of_down, expected, 1e-4 * expected);
    ck_assert_double_eq_tol(sums.divergence, sums.divergence_of_down, 1e-9 * expected);
    test_folder_end(&folder);
}
END_TEST

/* A matrix of zeros loses nothing, so it gets the smallest type, and the others the largest. Each
 * byte of this text is a token. */
START_TEST(zeros)
{
    struct test_folder folder;
    char changed[128], bytes[101] = "";
    float *values = calloc(96 * 160, sizeof *values);
    struct akunu_quantize_params params = begin(&folder);
    snprintf(changed, sizeof changed, "%s", test_in(&folder, "zeros.gguf"));
    test_write_changed(from, changed, &(struct test_change){ .tensor = down, .values = values });
    snprintf(from, sizeof from, "%s", changed);
    for (int i = 0; i < 100; i++)
        bytes[i] = (char)(128 + i * 37 % 125);
    params.text = bytes;
    params.n_text = 100;
    params.target_bits = 64.0; /* as many as there may be */
    struct sums sums = report(&params);
    ck_assert_double_eq(sums.divergence_of_down, 0.0);
    ck_assert_str_eq(sums.down, "MXFP4");
    ck_assert_str_eq(sums.q, "Q8_0");
    free(values);
    test_folder_end(&folder);
}
END_TEST

/* Of a table of 416 rows every third one is looked at. */
START_TEST(sampled_rows)
{
    const struct ak_convert_quantize how = { .mix = "Q8_0" };
    const struct ak_convert_options options = { .quantize = &how, .n_threads = 3 };
    struct test_folder folder;
    struct ak_error error = { 0 };
    struct ak_convert_job *job = NULL;
    double found, sum = 0.0;
    begin(&folder);
    ck_assert_int_eq(ak_convert_begin(from, NULL, &options, &job, &error), AKUNU_OK);
    struct ak_convert_plan *plan = ak_convert_get_plan(job);
    const struct ak_convert_tensor *t = plan->tensors;
    while (strcmp(t->name, "token_embd.weight") != 0)
        t++;
    uint64_t rows = t->shape[0], cols = t->shape[1];
    float *values = ak_allocate_read(plan, t), *after = malloc(rows * cols * sizeof *after);
    ck_assert_uint_eq(rows, 416);
    memcpy(after, values, rows * cols * sizeof *after);
    ck_assert_int_eq(ak_allocate_error(plan, t, AK_QUANT_Q4_0, values, &found, &error), AKUNU_OK);
    ck_assert_mem_eq(after, values, rows * cols * sizeof *after);
    ck_assert_int_eq(ak_allocate_quantize(plan, t, AK_QUANT_Q4_0, after, &error), AKUNU_OK);
    for (uint64_t row = 0; row < rows; row += 3)
        for (uint64_t i = row * cols; i < (row + 1) * cols; i++)
            sum += ((double)values[i] - (double)after[i]) * ((double)values[i] - (double)after[i]);
    ck_assert_double_eq_tol(found, sum, 1e-9 * sum);
    ak_convert_end(job);
    ak_free(values);
    free(after);
    test_folder_end(&folder);
}
END_TEST

/* Logits so far apart that their exponentials overflow, of a few tokens and of more than a block;
 * what is behind the last one is not read. */
START_TEST(far_logits)
{
    static const uint32_t sizes[] = { 1, 2, 256, 257, 700 };
    float x[701], y[701];
    uint32_t n = sizes[_i];
    for (uint32_t i = 0; i <= n; i++)
        x[i] = y[i] = i == n ? 1e30f : 1.0f;
    ck_assert_double_eq_tol(ak_allocate_diverge(x, y, n), 0.0, 1e-6);
    x[0] = 301.0f;
    y[n - 1] = 201.0f;
    /* all of x is in its first token, whose logit is 200 below the largest of y */
    ck_assert_double_eq_tol(ak_allocate_diverge(x, y, n), n == 1 ? 0.0 : 200.0, 1e-4);
}
END_TEST

/* ---- Limits ------------------------------------------------------------- */
static void check_fails(const struct akunu_quantize_params *params, const char *named)
{
    ck_assert_int_eq(akunu_quantize(from, to, params), AKUNU_ERROR_ARGUMENT);
    ck_assert_msg(strstr(akunu_last_error(), named), "\"%s\" does not name %s", akunu_last_error(),
                  named);
    ck_assert(fopen(to, "rb") == NULL);
}

/* What the refusal of a size says: bytes that are left for matrices, and that they take at least.
 */
static void find_room(struct akunu_quantize_params *params, uint64_t bytes,
                      unsigned long long *left, unsigned long long *least)
{
    size_t n;
    params->target_bytes = bytes;
    check_fails(params, "bytes are left");
    ck_assert_int_eq(sscanf(strstr(akunu_last_error(), "small: "),
                            "small: %llu bytes are left for %zu matrices, which take %llu at least",
                            left, &n, least),
                     3);
}

/* The smallest file that is possible has just its size, and a byte less is refused. Tables of 266
 * rows are padded, the one that is chosen and the one that has its type. */
START_TEST(smallest)
{
    struct test_folder folder;
    char gguf[96];
    unsigned long long left, least;
    struct akunu_quantize_params params = begin(&folder);
    params.embedding_type = _i == 0 ? NULL : "Q8_0";
    snprintf(gguf, sizeof gguf, "%s", test_in(&folder, "floats.gguf"));
    ck_assert_int_eq(test_convert_weights(test_path("rerankers/qwen3"), gguf), AKUNU_OK);
    snprintf(from, sizeof from, "%s", gguf);
    uint64_t bytes = 1;
    for (find_room(&params, bytes, &left, &least); left == 0;) {
        bytes += least / 2;
        find_room(&params, bytes, &left, &least);
    }
    params.target_bytes = bytes - left + least;
    struct test_bytes file = quantize(&params);
    ck_assert_uint_eq(file.n, params.target_bytes);
    free(file.data);
    unlink(to);
    params.target_bytes--;
    check_fails(&params, "at least");
    test_folder_end(&folder);
}
END_TEST

START_TEST(refused)
{
    static const char *const all_types[] = { ".=Q8_0", NULL };
    struct test_folder folder;
    struct akunu_quantize_params params = begin(&folder);
    params.target_bits = 1.0;
    check_fails(&params, "at least");
    params.tensor_types = all_types;
    check_fails(&params, "no type is left to choose: all tensors have theirs");
    params.tensor_types = NULL;
    params.target_bits = -1.0;
    check_fails(&params, "-1 bits per weight; expected 1 to 16, or so");
    params.target_bits = 64.5;
    check_fails(&params, "64.5 bits per weight; expected 1 to 16, or so");
    params.target_bits = NAN;
    check_fails(&params, "nan bits per weight; expected 1 to 16, or so");
    params.target_bits = 5.0;
    params.pure = true;
    check_fails(&params, "pure");
    params.pure = false;
    params.n_text = 20;
    check_fails(&params, "tokens; expected 64 or more, best of all 512");
    params.text = NULL;
    check_fails(&params, "none is given");
    params.text = text; /* a stack of experts has three dimensions */
    params.target_bits = 1.0;
    params.requantize = true;
    snprintf(from, sizeof from, "%s", test_path("models/mixtral.gguf"));
    check_fails(&params, "at least");
    test_folder_end(&folder);
}
END_TEST

/* A folder's types are those of its GGUF file, and nothing else remains beside the new file. */
START_TEST(folders)
{
    static const char *const overridden[] = { "rms_norm_eps=float:1e-5", NULL };
    struct test_folder folder;
    struct akunu_convert_params convert;
    struct akunu_quantize_params params = begin(&folder);
    char gguf[96], temporary[160];
    params.target_bits = 7.5;
    params.override_kv = overridden;
    snprintf(from, sizeof from, "%s", test_path("rerankers/qwen3"));
    struct test_bytes of_folder = quantize(&params);
    struct sums written = report(&params);
    snprintf(temporary, sizeof temporary, "%s.%ld.source", to, (long)getpid());
    ck_assert(fopen(temporary, "rb") == NULL);
    snprintf(gguf, sizeof gguf, "%s", test_in(&folder, "floats.gguf"));
    akunu_convert_params_default(&convert, sizeof convert);
    convert.no_vocab = true;
    convert.override_kv = overridden;
    ck_assert_int_eq(akunu_convert(from, gguf, &convert), AKUNU_OK);
    snprintf(from, sizeof from, "%s", gguf);
    params.override_kv = NULL; /* the file has the value */
    struct test_bytes of_gguf = quantize(&params);
    struct sums sums = report(&params);
    ck_assert_double_eq(written.bits, sums.bits);
    ck_assert_double_eq(written.divergence, sums.divergence);
    ck_assert_uint_eq(of_folder.n, of_gguf.n);
    ck_assert_mem_eq(of_folder.data, of_gguf.data, of_gguf.n);
    free(of_folder.data);
    free(of_gguf.data);
    test_folder_end(&folder);
}
END_TEST

/* Without memory the call fails and leaves no file, unless it does without what it did not get. */
START_TEST(without_memory)
{
    struct test_folder folder;
    struct akunu_quantize_params params = begin(&folder);
    params.target_bits = 6.0;
    params.n_threads = 1;
    size_t n_open = test_count_open();
    long n = 0;
    for (bool is_over = false; !is_over; n += 1 + n / 12) {
        refuse_allocation(n);
        enum akunu_status status = akunu_quantize(from, to, &params);
        is_over = !allow_allocations();
        bool is_opening = strstr(akunu_last_error(), "an unknown format"); /* nobody read it */
        ck_assert_msg(status == AKUNU_OK || (!is_over && status == AKUNU_ERROR_MEMORY) ||
                          (!is_over && is_opening),
                      "%ld: %d: %s", n, (int)status, akunu_last_error());
        ck_assert_int_eq(access(to, F_OK) == 0, status == AKUNU_OK);
        unlink(to);
        ck_assert_uint_eq(test_count_open(), n_open);
    }
    ck_assert_int_gt(n, 200);
    test_folder_end(&folder);
}
END_TEST

static bool on_progress(double fraction, void *user)
{
    *(double *)user = fraction;
    return fraction < 0.3;
}

/* Stopping leaves no file. */
START_TEST(cancelled)
{
    struct test_folder folder;
    struct akunu_quantize_params params = begin(&folder);
    double last = 0.0;
    params.target_bits = 5.0;
    params.progress = on_progress;
    params.user = &last;
    ck_assert_int_eq(akunu_quantize(from, to, &params), AKUNU_ERROR_CANCELLED);
    ck_assert_double_ge(last, 0.3);
    ck_assert_double_lt(last, 0.5);
    ck_assert(fopen(to, "rb") == NULL);
    test_folder_end(&folder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("allocate");
    TCase *tc = tcase_create("allocate");
    suite_add_tcase(suite, tc);
    tcase_add_loop_test(tc, near_the_best_of_all, 0, 20);
    tcase_add_loop_test(tc, best_at_each_rate, 0, 20);
    tcase_add_test(tc, hull);
    tcase_add_loop_test(tc, hull_of_random_types, 0, 50);
    tcase_add_test(tc, layers);
    tcase_add_loop_test(tc, few_layers, 0, 2);
    tcase_add_loop_test(tc, file_type, 0, 3);
    tcase_add_test(tc, without_memory);
    tcase_add_test(tc, bits_per_weight);
    tcase_add_test(tc, bytes_and_the_same);
    tcase_add_test(tc, exceptions);
    tcase_add_test(tc, folders);
    tcase_add_loop_test(tc, expected_divergence, 0, 3);
    tcase_add_test(tc, zeros);
    tcase_add_test(tc, sampled_rows);
    tcase_add_loop_test(tc, far_logits, 0, 5);
    tcase_add_loop_test(tc, smallest, 0, 2);
    tcase_add_test(tc, refused);
    tcase_add_test(tc, cancelled);
    return test_run(suite);
}
