/* Quantizing: the types that llama-quantize chooses, exceptions from them, importance in both of
 * its forms, and the same file whatever the threads. How near the blocks are is for
 * tests/conversion/quantize. */
#include "tests/conversion/convert/models.h"
#include "tests/last_logits.h"
#include "tests/process.h"

#include <math.h>
#include <stdlib.h>

static struct akunu_quantize_params params_for(const char *type)
{
    struct akunu_quantize_params params;
    akunu_quantize_params_default(&params, sizeof params);
    params.no_vocab = true;
    params.type = type;
    return params;
}

/* ---- An importance matrix ----------------------------------------------- */
/* Of one tensor. */
static void write_gguf_importance(const struct test_folder *folder, uint64_t n, float count)
{
    struct test_bytes b = { 0 };
    static const uint8_t zeros[32];
    test_append(&b, "GGUF", 4);
    test_append_u32(&b, 3);
    test_append_u64(&b, 2);
    test_append_u64(&b, 0);
    test_append_text(&b, "blk.0.attn_q.weight.in_sum2");
    test_append_u32(&b, 2);
    test_append_u64(&b, n);
    test_append_u64(&b, 1);
    test_append_u32(&b, 0);
    test_append_u64(&b, 0);
    test_append_text(&b, "blk.0.attn_q.weight.counts");
    test_append_u32(&b, 2);
    test_append_u64(&b, 1);
    test_append_u64(&b, 1);
    test_append_u32(&b, 0);
    test_append_u64(&b, (n * 4 + 31) / 32 * 32);
    test_append(&b, zeros, -b.n & 31);
    for (uint64_t i = 0; i < n; i++)
        test_append(&b, &(float){ (float)(i % 7 * i % 11) * count }, 4);
    test_append(&b, zeros, -b.n & 31);
    test_append(&b, &count, 4);
    test_write(folder, "importance", b.data, b.n);
    free(b.data);
}

/* ---- Mixes -------------------------------------------------------------- */
/* As in tests/golden/mixes.py. */
static const struct {
    const char *architecture;
    uint32_t layers, heads, kv_heads, experts, width;
    bool has_output;
} models[] = {
    { "llama", 17, 8, 8, 0, 256, false }, { "llama", 17, 8, 2, 0, 256, true },
    { "llama", 17, 8, 1, 8, 512, true },  { "llama", 5, 8, 4, 4, 96, false },
    { "falcon", 17, 8, 8, 0, 256, true },
};
enum { N_MODELS = sizeof models / sizeof *models, N_CHOICES_MAX = 512 };

struct gguf {
    struct test_bytes metas, tensors;
    uint64_t n_metas, n_tensors, at;
};

static void put_u32(struct gguf *g, const char *architecture, const char *suffix, uint32_t value)
{
    char key[64];
    snprintf(key, sizeof key, "%s.%s", architecture, suffix);
    test_append_text(&g->metas, key);
    test_append_u32(&g->metas, 4);
    test_append_u32(&g->metas, value);
    g->n_metas++;
}

/* dims: the contiguous one first; 0: no more. Vectors are F32, others F16. */
static void put_tensor(struct gguf *g, int layer, const char *part, uint64_t a, uint64_t b,
                       uint64_t c)
{
    char name[64];
    snprintf(name, sizeof name, layer < 0 ? "%.0d%s" : "blk.%d.%s", layer < 0 ? 0 : layer, part);
    test_append_text(&g->tensors, name);
    test_append_u32(&g->tensors, c ? 3 : b ? 2 : 1);
    test_append_u64(&g->tensors, a);
    if (b)
        test_append_u64(&g->tensors, b);
    if (c)
        test_append_u64(&g->tensors, c);
    test_append_u32(&g->tensors, b ? 1 : 0);
    test_append_u64(&g->tensors, g->at);
    g->at += (a * (b ? b : 1) * (c ? c : 1) * (b ? 2 : 4) + 31) / 32 * 32;
    g->n_tensors++;
}

static void put_layer(struct gguf *g, int m, int layer)
{
    static const char *const llama[] = { "attn_q", "attn_k", "attn_v", "attn_output", NULL };
    static const char *const falcon[] = { "attn_qkv", "attn_output", NULL };
    static const char *const ffn[] = { "ffn_gate", "ffn_up", "ffn_down", NULL };
    bool is_falcon = strcmp(models[m].architecture, "falcon") == 0;
    uint64_t width = models[m].width, experts = models[m].experts;
    char part[64];
    put_tensor(g, layer, "attn_norm.weight", width, 0, 0);
    for (const char *const *name = is_falcon ? falcon : llama; *name; name++) {
        snprintf(part, sizeof part, "%s.weight", *name);
        put_tensor(g, layer, part, width, 2, 0);
    }
    for (const char *const *name = ffn + is_falcon; *name; name++) {
        snprintf(part, sizeof part, "%s%s.weight", *name, experts ? "_exps" : "");
        put_tensor(g, layer, part, width, 2, experts);
    }
    if (experts)
        put_tensor(g, layer, "ffn_gate_inp.weight", width, experts, 0);
}

static struct gguf begin_gguf(const char *architecture)
{
    struct gguf g = { .n_metas = 1 };
    test_append_text(&g.metas, "general.architecture");
    test_append_u32(&g.metas, 8);
    test_append_text(&g.metas, architecture);
    return g;
}

/* model.gguf, whose data are zeros. */
static void write_gguf(const struct test_folder *folder, struct gguf *g)
{
    struct test_bytes file = { 0 };
    test_append(&file, "GGUF", 4);
    test_append_u32(&file, 3);
    test_append_u64(&file, g->n_tensors);
    test_append_u64(&file, g->n_metas);
    test_append(&file, g->metas.data, g->metas.n);
    test_append(&file, g->tensors.data, g->tensors.n);
    uint8_t *zeros = calloc(1, g->at + 32);
    test_append(&file, zeros, -file.n & 31);
    test_append(&file, zeros, g->at);
    test_write(folder, "model.gguf", file.data, file.n);
    free(zeros);
    free(g->metas.data);
    free(g->tensors.data);
    free(file.data);
}

static void write_model(const struct test_folder *folder, int m)
{
    const char *architecture = models[m].architecture;
    struct gguf g = begin_gguf(architecture);
    put_u32(&g, architecture, "block_count", models[m].layers);
    put_u32(&g, architecture, "embedding_length", models[m].width);
    put_u32(&g, architecture, "attention.head_count", models[m].heads);
    put_u32(&g, architecture, "attention.head_count_kv", models[m].kv_heads);
    if (models[m].experts)
        put_u32(&g, architecture, "expert_count", models[m].experts);
    put_tensor(&g, -1, "token_embd.weight", models[m].width, 4, 0);
    put_tensor(&g, -1, "output_norm.weight", models[m].width, 0, 0);
    if (models[m].has_output)
        put_tensor(&g, -1, "output.weight", models[m].width, 4, 0);
    for (uint32_t layer = 0; layer < models[m].layers; layer++)
        put_layer(&g, m, (int)layer);
    write_gguf(folder, &g);
}

struct choices {
    struct {
        char name[64], type[16];
    } of[N_CHOICES_MAX];
    size_t n;
};

static void on_tensor(const struct akunu_quantized_tensor *tensor, void *user)
{
    struct choices *c = user;
    ck_assert_uint_lt(c->n, N_CHOICES_MAX);
    snprintf(c->of[c->n].name, sizeof c->of->name, "%s", tensor->name);
    snprintf(c->of[c->n++].type, sizeof c->of->type, "%s", tensor->type);
}

static const char *find_choice(const struct choices *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->of[i].name, name) == 0)
            return c->of[i].type;
    ck_abort_msg("%s is missing", name);
}

/* importance: used if the mix ends in +. */
static void choose(const char *from, const char *mix, const char *importance, struct choices *c)
{
    char name[16];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(mix, "+"), mix);
    struct akunu_quantize_params params = params_for(name);
    params.importance = strchr(mix, '+') ? importance : NULL;
    params.report = on_tensor;
    params.user = c;
    c->n = 0;
    ck_assert_msg(akunu_quantize(from, NULL, &params) == AKUNU_OK, "%s", akunu_last_error());
}

/* "Q6_K*2 Q4_K*15": the types of the part in its layers. */
static void check_part(const struct choices *c, const char *mix, const char *part, char *types)
{
    char name[128], *rest = NULL;
    int layer = 0;
    for (char *word = strtok_r(types, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
        char *times = strchr(word, '*');
        *times++ = 0;
        for (int i = atoi(times); i > 0; i--, layer++) {
            bool in_layer = strncmp(part, "output", 6) != 0 && strncmp(part, "token", 5) != 0;
            snprintf(name, sizeof name, in_layer ? "blk.%d.%s" : "%.0d%s", in_layer ? layer : 0,
                     part);
            ck_assert_msg(strcmp(find_choice(c, name), word) == 0, "%s, %s: %s, not %s", mix, name,
                          find_choice(c, name), word);
        }
    }
}

START_TEST(mixes_of_llama_cpp)
{
    struct test_folder folder = test_folder_begin();
    struct test_bytes golden = test_read("mixes.txt");
    struct choices *c = calloc(1, sizeof *c);
    char mix[16], part[64], last[16] = "", *rest = NULL, from[96], importance[96];
    int model, at, n_checked = 0;
    write_model(&folder, _i);
    write_gguf_importance(&folder, models[_i].width, 4.0f);
    snprintf(importance, sizeof importance, "%s", test_in(&folder, "importance"));
    snprintf(from, sizeof from, "%s", test_in(&folder, "model.gguf"));
    for (char *line = strtok_r((char *)golden.data, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        ck_assert_int_eq(sscanf(line, "%d %15s %63s %n", &model, mix, part, &at), 3);
        if (model != _i)
            continue;
        if (strcmp(mix, last) != 0)
            choose(from, mix, importance, c);
        snprintf(last, sizeof last, "%s", mix);
        check_part(c, mix, part, line + at);
        n_checked++;
    }
    ck_assert_int_gt(n_checked, 220);
    free(c);
    free(golden.data);
    test_folder_end(&folder);
}
END_TEST

/* Matrices that llama-quantize leaves as they are, by parts of their names, and others. */
START_TEST(left_as_they_are)
{
    static const struct {
        int layer;
        const char *part, *type;
    } cases[] = {
        { 0, "attn_q.weight", "Q4_0" },
        { 0, "attn_q.scale", "F16" },
        { 0, "attn_q_norm.weight", "F16" },
        { 0, "norm.weight", "Q4_0" },
        { 0, "ffn_gate_inp_shexp.weight", "F16" },
        { 0, "ffn_gate.weight", "Q4_0" },
        { -1, "altup_proj.weight", "F16" },
        { 0, "laurel_l.weight", "F16" },
        { -1, "per_layer_model_proj.weight", "F16" },
        { 0, "per_layer_proj.weight", "Q4_0" },
        { -1, "position_embd.weight", "F16" },
        { -1, "token_types.weight", "F16" },
        { 0, "ssm_conv1d.weight", "F16" },
        { 0, "ssm_in.weight", "Q4_0" },
        { 0, "shortconv.conv.weight", "F16" },
        { 0, "shortconv.in_proj.weight", "Q4_0" },
        { 0, "attn_rel_b.weight", "F16" },
        { 0, "ffn_gate_tid2eid.weight", "F16" },
        { 0, "time_mix_w1.weight", "F16" },
        { 0, "channel_mix_key.weight", "Q4_0" },
        { 0, "indexer.attn_k.weight", "F16" },
        { 0, "weigh", "F16" }, /* shorter than the ending of those that are quantized */
    };
    enum { N = sizeof cases / sizeof *cases };
    struct test_folder folder = test_folder_begin();
    struct choices *c = calloc(1, sizeof *c);
    struct gguf g = begin_gguf("falcon");
    char name[64];
    for (size_t i = 0; i < N; i++)
        put_tensor(&g, cases[i].layer, cases[i].part, 256, 2, 0);
    write_gguf(&folder, &g);
    choose(test_in(&folder, "model.gguf"), "Q4_0", NULL, c);
    ck_assert_uint_eq(c->n, N);
    for (size_t i = 0; i < N; i++) {
        snprintf(name, sizeof name, cases[i].layer < 0 ? "%.0d%s" : "blk.%d.%s",
                 cases[i].layer < 0 ? 0 : cases[i].layer, cases[i].part);
        ck_assert_msg(strcmp(find_choice(c, name), cases[i].type) == 0, "%s: %s, not %s", name,
                      find_choice(c, name), cases[i].type);
    }
    free(c);
    test_folder_end(&folder);
}
END_TEST

/* ---- Files -------------------------------------------------------------- */
static char from[4096], to[96];

static void begin(struct test_folder *folder, const char *source)
{
    *folder = test_folder_begin();
    snprintf(from, sizeof from, "%s", test_path(source));
    snprintf(to, sizeof to, "%s", test_in(folder, "new.gguf"));
}

static struct test_bytes quantize(struct akunu_quantize_params *params)
{
    char path[96];
    struct test_bytes bytes = { 0 };
    uint8_t piece[4096];
    size_t n;
    params->overwrite = true;
    ck_assert_msg(akunu_quantize(from, to, params) == AKUNU_OK, "%s", akunu_last_error());
    snprintf(path, sizeof path, "%s", to);
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    while ((n = fread(piece, 1, sizeof piece, file)) > 0)
        test_append(&bytes, piece, n);
    fclose(file);
    return bytes;
}

static void check_fails(const struct akunu_quantize_params *params, enum akunu_status status,
                        const char *named)
{
    ck_assert_int_eq(akunu_quantize(from, to, params), status);
    ck_assert_msg(strstr(akunu_last_error(), named), "\"%s\" does not name %s", akunu_last_error(),
                  named);
    ck_assert(fopen(to, "rb") == NULL);
}

static bool same(const struct test_bytes *a, const struct test_bytes *b)
{
    return a->n == b->n && memcmp(a->data, b->data, a->n) == 0;
}

/* Elements of all matrices differ little, those of vectors not at all; the file of three threads is
 * that of one. */
START_TEST(near_and_the_same)
{
    static const struct {
        const char *type;
        double most; /* Σ error² / Σ x² */
    } cases[] = { { "Q4_0", 0.008 },   { "Q5_1", 0.002 },     { "Q8_0", 4e-5 }, { "q4_k_m", 0.002 },
                  { "IQ4_NL", 0.006 }, { "MXFP4_MOE", 4e-5 }, { "Q2_0", 0.2 } };
    struct test_folder folder;
    begin(&folder, "models/qwen3.gguf");
    struct akunu_quantize_params params = params_for(cases[_i].type);
    params.n_threads = 3;
    struct test_bytes with_three = quantize(&params);
    params.n_threads = 1;
    struct test_bytes with_one = quantize(&params);
    ck_assert(same(&with_three, &with_one));
    struct ak_provider *a = open_ok(from), *b = open_ok(to);
    struct ak_tensor x, y;
    for (size_t i = 0; ak_provider_tensor(a, i, &x); i++) {
        double error = 0.0, all = 0.0;
        ck_assert(ak_provider_tensor(b, i, &y) && strcmp(x.name, y.name) == 0);
        size_t n = (size_t)(x.shape[0] * (x.n_dims > 1 ? x.shape[1] : 1));
        float *values = malloc(2 * n * sizeof *values);
        ak_tensor_dequantize(&x, 0, n, values);
        ak_tensor_dequantize(&y, 0, n, values + n);
        for (size_t j = 0; j < n; j++) {
            error += pow((double)values[j] - (double)values[n + j], 2.0);
            all += pow((double)values[j], 2.0);
        }
        ck_assert_msg(error <= (x.n_dims > 1 ? cases[_i].most : 0.0) * all, "%s, %s: %g",
                      cases[_i].type, x.name, error / all);
        free(values);
    }
    ak_provider_close(a);
    ak_provider_close(b);
    free(with_three.data);
    free(with_one.data);
    test_folder_end(&folder);
}
END_TEST

START_TEST(exceptions)
{
    static const char *const types[] = { "attn_[qk]\\.=Q8_0", "blk\\.1\\.attn_q=F16",
                                         "ffn_down=bf16", NULL };
    struct test_folder folder;
    struct choices *c = calloc(1, sizeof *c);
    begin(&folder, "models/qwen3.gguf");
    struct akunu_quantize_params params = params_for("Q4_0");
    params.tensor_types = types;
    params.embedding_type = "Q5_0";
    params.report = on_tensor;
    params.user = c;
    ck_assert_msg(akunu_quantize(from, NULL, &params) == AKUNU_OK, "%s", akunu_last_error());
    ck_assert_str_eq(find_choice(c, "blk.0.attn_q.weight"), "Q8_0");
    ck_assert_str_eq(find_choice(c, "blk.1.attn_q.weight"), "Q8_0"); /* the first one counts */
    ck_assert_str_eq(find_choice(c, "blk.1.attn_v.weight"), "Q4_0");
    ck_assert_str_eq(find_choice(c, "blk.1.attn_q_norm.weight"), "F32");
    ck_assert_str_eq(find_choice(c, "blk.0.ffn_down.weight"), "BF16");
    ck_assert_str_eq(find_choice(c, "token_embd.weight"), "Q5_0");
    params.tensor_types = NULL;
    params.pure = true;
    c->n = 0;
    ck_assert_msg(akunu_quantize(from, NULL, &params) == AKUNU_OK, "%s", akunu_last_error());
    ck_assert_str_eq(find_choice(c, "blk.0.ffn_down.weight"), "Q4_0");
    free(c);
    test_folder_end(&folder);
}
END_TEST

/* Rows of 96 and 64 elements do not fill blocks of 256: each pair of types is said once, with the
 * number of tensors; a type that was asked for by name is refused. */
struct lines {
    int n;
    char last[512];
};

static void on_warning(enum akunu_log_level level, const char *line, void *user)
{
    struct lines *lines = user;
    if (level != AKUNU_LOG_WARN || !strstr(line, "instead of"))
        return;
    lines->n++;
    snprintf(lines->last, sizeof lines->last, "%s", line);
}

START_TEST(types_that_do_not_fit)
{
    static const char *const by_name[] = { "blk\\.1\\.attn_v=Q4_K", NULL }, *const fitting[] = {
        "blk\\.1\\.attn_v=Q8_0", NULL
    };
    struct test_folder folder;
    struct lines lines = { 0 };
    begin(&folder, "models/qwen3.gguf");
    struct akunu_quantize_params params = params_for("Q4_K");
    params.pure = true;
    params.log = on_warning;
    params.user = &lines;
    ck_assert_msg(akunu_quantize(from, NULL, &params) == AKUNU_OK, "%s", akunu_last_error());
    ck_assert_int_eq(lines.n, 1);
    ck_assert_msg(
        strstr(lines.last, " quantized tensors have Q5_0 instead of Q4_K, because rows of "), "%s",
        lines.last);
    int n = 0, n_all = 0;
    ck_assert_int_eq(sscanf(lines.last, "%d of %d", &n, &n_all), 2);
    ck_assert(n == n_all && n > 10);
    ck_assert_ptr_nonnull(strstr(lines.last, "do not fill blocks of 256"));
    params.tensor_types = fitting; /* one tensor less */
    ck_assert_int_eq(akunu_quantize(from, NULL, &params), AKUNU_OK);
    int fewer = 0;
    ck_assert_int_eq(sscanf(lines.last, "%d of %d", &fewer, &n_all), 2);
    ck_assert(fewer == n - 1 && n_all == n);
    params.type = "Q4_0"; /* all fit */
    lines.n = 0;
    ck_assert_int_eq(akunu_quantize(from, NULL, &params), AKUNU_OK);
    ck_assert_int_eq(lines.n, 0);
    params.tensor_types = by_name;
    check_fails(&params, AKUNU_ERROR_ARGUMENT,
                "blk.1.attn_v.weight cannot be Q4_K, which has blocks of 256 elements");
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "such as Q5_0");
    params.tensor_types = NULL;
    params.embedding_type = "Q6_K";
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "token_embd.weight cannot be Q6_K");
    params.embedding_type = NULL;
    params.output_type = "Q3_K";
    params.type = "Q4_0";
    snprintf(from, sizeof from, "%s", test_path("models/llama-f32.gguf"));
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "output.weight cannot be Q3_K");
    test_folder_end(&folder);
}
END_TEST

START_TEST(refused)
{
    static const struct {
        const char *type, *exception, *named;
    } cases[] = { { "Q9", NULL, "'Q9'" },
                  { "Q4_0", "attn_q", "'attn_q' is no PATTERN=TYPE" },
                  { "Q4_0", "attn_q=", "no type ''" },
                  { "Q4_0", "attn_q=Q8_K", "'Q8_K'" },
                  { "Q4_0", "attn_(=Q8_0", "pattern 'attn_('" } };
    struct test_folder folder;
    begin(&folder, "models/qwen3.gguf");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct akunu_quantize_params params = params_for(cases[i].type);
        const char *types[] = { cases[i].exception, NULL };
        params.tensor_types = types;
        check_fails(&params, AKUNU_ERROR_ARGUMENT, cases[i].named);
    }
    struct akunu_quantize_params params = params_for("Q4_0");
    params.importance = "/nonexistent";
    check_fails(&params, AKUNU_ERROR_FORMAT, "/nonexistent");
    params.importance = NULL;
    params.type = NULL;
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "no type is given");
    snprintf(from, sizeof from, "%s", test_path("models/mixed.gguf"));
    params.type = "Q4_0";
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "already");
    params.requantize = true;
    ck_assert_msg(akunu_quantize(from, to, &params) == AKUNU_OK, "%s", akunu_last_error());
    test_folder_end(&folder);
}
END_TEST

/* A weight that is not a number ends the work, and leaves no file. */
START_TEST(no_number)
{
    struct test_folder folder;
    begin(&folder, "models/qwen3.gguf");
    struct test_bytes bytes = test_read("models/qwen3.gguf");
    struct ak_provider *p = open_ok(from);
    struct ak_tensor t;
    size_t i = 0;
    while (ak_provider_tensor(p, i, &t) && strcmp(t.name, "blk.1.ffn_up.weight") != 0)
        i++;
    bytes.data[t.offset + 101] = 0x7f; /* of a BF16: infinity */
    bytes.data[t.offset + 100] = 0x80;
    ak_provider_close(p);
    test_write(&folder, "model.gguf", bytes.data, bytes.n);
    snprintf(from, sizeof from, "%s", test_in(&folder, "model.gguf"));
    struct akunu_quantize_params params = params_for("Q4_0");
    check_fails(&params, AKUNU_ERROR_FORMAT, "blk.1.ffn_up.weight");
    free(bytes.data);
    test_folder_end(&folder);
}
END_TEST

/* ---- Importance --------------------------------------------------------- */
/* With the mean over its calls, 2 of them. */
static void write_old_importance(const struct test_folder *folder, uint32_t n, size_t cut)
{
    static const char name[] = "blk.0.attn_q.weight";
    struct test_bytes b = { 0 };
    test_append_u32(&b, 1);
    test_append_u32(&b, sizeof name - 1);
    test_append(&b, name, sizeof name - 1);
    test_append_u32(&b, 2);
    test_append_u32(&b, n);
    for (uint32_t i = 0; i < n; i++)
        test_append(&b, &(float){ (float)(i % 7 * i % 11) * 2.0f }, 4);
    test_append_u32(&b, 2);
    test_write(folder, "importance", b.data, b.n - cut);
    free(b.data);
}

START_TEST(importance)
{
    struct test_folder folder;
    begin(&folder, "models/qwen3.gguf");
    struct akunu_quantize_params params = params_for("Q4_0");
    struct test_bytes without = quantize(&params);
    char path[96];
    snprintf(path, sizeof path, "%s", test_in(&folder, "importance"));
    params.importance = path;
    write_gguf_importance(&folder, 96, 4.0f);
    struct test_bytes with = quantize(&params);
    write_old_importance(&folder, 96, 0);
    struct test_bytes old = quantize(&params);
    ck_assert_uint_eq(with.n, without.n);
    ck_assert(!same(&with, &without));
    ck_assert(same(&with, &old));
    free(without.data);
    free(with.data);
    free(old.data);
    test_folder_end(&folder);
}
END_TEST

/* The blocks of an expert are those of its own importance: where two files differ in the last
 * expert alone, so do the tensors. */
START_TEST(importance_of_experts)
{
    enum { EXPERTS = 6, COLS = 64 };
    static const char name[] = "blk.1.ffn_up_exps.weight";
    struct test_folder folder;
    struct ak_tensor t;
    char path[96];
    struct test_bytes blocks[2] = { { 0 }, { 0 } };
    begin(&folder, "models/mixtral.gguf");
    struct akunu_quantize_params params = params_for("Q4_0");
    params.requantize = true;
    snprintf(path, sizeof path, "%s", test_in(&folder, "importance"));
    params.importance = path;
    for (int uneven = 0; uneven < 2; uneven++) {
        struct test_bytes b = { 0 };
        test_append_u32(&b, 1);
        test_append_u32(&b, sizeof name - 1);
        test_append(&b, name, sizeof name - 1);
        test_append_u32(&b, 1);
        test_append_u32(&b, EXPERTS * COLS);
        for (int i = 0; i < EXPERTS * COLS; i++)
            test_append(&b, &(float){ uneven && i / COLS == EXPERTS - 1 && i % 3 ? 1e-3f : 1.0f },
                        4);
        test_write(&folder, "importance", b.data, b.n);
        free(b.data);
        struct test_bytes file = quantize(&params);
        free(file.data);
        struct ak_provider *p = open_ok(to);
        size_t i = 0;
        while (ak_provider_tensor(p, i, &t) && strcmp(t.name, name) != 0)
            i++;
        test_append(&blocks[uneven], t.data, (size_t)t.bytes);
        ak_provider_close(p);
    }
    size_t n = blocks[0].n / EXPERTS;
    for (size_t e = 0; e < EXPERTS; e++)
        ck_assert_int_eq(memcmp(blocks[0].data + e * n, blocks[1].data + e * n, n) == 0,
                         e < EXPERTS - 1);
    free(blocks[0].data);
    free(blocks[1].data);
    test_folder_end(&folder);
}
END_TEST

/* Of types with few bits every matrix needs its importance; a dry run tells the types without. */
START_TEST(importance_needed)
{
    struct test_folder folder;
    struct choices *c = calloc(1, sizeof *c);
    char matrix[96];
    folder = test_folder_begin();
    write_model(&folder, 0);
    write_gguf_importance(&folder, 256, 4.0f);
    snprintf(from, sizeof from, "%s", test_in(&folder, "model.gguf"));
    snprintf(to, sizeof to, "%s", test_in(&folder, "new.gguf"));
    snprintf(matrix, sizeof matrix, "%s", test_in(&folder, "importance"));
    choose(from, "IQ2_XXS", NULL, c);
    ck_assert_str_eq(find_choice(c, "blk.1.attn_q.weight"), "IQ2_XXS");
    struct akunu_quantize_params params = params_for("IQ2_XXS");
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "needs an importance matrix");
    params.importance = matrix;
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "blk.0.attn_k.weight as IQ2_XXS needs");
    static const char *const types[] = { "attn_q=IQ2_XXS", NULL };
    params.type = "Q4_0";
    params.tensor_types = types;
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "blk.1.attn_q.weight as IQ2_XXS needs");
    free(c);
    test_folder_end(&folder);
}
END_TEST

START_TEST(importance_refused)
{
    struct test_folder folder;
    begin(&folder, "models/qwen3.gguf");
    struct akunu_quantize_params params = params_for("Q4_0");
    char path[96];
    snprintf(path, sizeof path, "%s", test_in(&folder, "importance"));
    params.importance = path;
    write_gguf_importance(&folder, 64, 4.0f);
    check_fails(&params, AKUNU_ERROR_ARGUMENT, "another model");
    write_gguf_importance(&folder, 96, INFINITY);
    check_fails(&params, AKUNU_ERROR_FORMAT, "blk.0.attn_q.weight");
    write_old_importance(&folder, 96, 40);
    check_fails(&params, AKUNU_ERROR_FORMAT, "ends within entry 0");
    test_write_text(&folder, "importance", "what is this");
    check_fails(&params, AKUNU_ERROR_FORMAT, "importance matrix");
    snprintf(path, sizeof path, "%s", test_in(&folder, "copy.gguf"));
    struct test_bytes model = test_read("models/qwen3.gguf");
    test_write(&folder, "copy.gguf", model.data, model.n);
    check_fails(&params, AKUNU_ERROR_FORMAT, "copy.gguf: no tensor ends in .in_sum2");
    free(model.data);
    test_folder_end(&folder);
}
END_TEST

/* ---- While a model is loaded -------------------------------------------- */
/* A model that is quantized while it is loaded gives the logits of the file. */
START_TEST(while_loading)
{
    static const char *const sources[] = { "models/qwen3.gguf", "folders/qwen3next",
                                           "folders/qwen35", "folders/qwen35moe" };
    struct test_folder folder;
    uint32_t n, n_file;
    begin(&folder, sources[_i]);
    struct akunu_quantize_params params = params_for("Q4_0");
    struct test_bytes file = quantize(&params);
    struct akunu_load_params load;
    akunu_load_params_default(&load, sizeof load);
    load.no_cache = true;
    load.n_threads = 3;
    float *of_file = test_last_logits(to, &load, &n_file);
    load.quantize = "Q4_0";
    size_t n_open = test_count_open();
    float *loaded = test_last_logits(from, &load, &n);
    ck_assert_uint_eq(test_count_open(), n_open);
    ck_assert_uint_eq(n, n_file);
    ck_assert_mem_eq(loaded, of_file, n * sizeof *loaded);
    free(loaded);
    free(of_file);
    free(file.data);
    test_folder_end(&folder);
}
END_TEST

/* What is refused for a file is refused here too, with the same words, and nothing stays open. */
START_TEST(not_while_loading)
{
    static const struct {
        const char *source, *type, *said; /* source NULL: that of write_model */
    } cases[] = {
        { "models/qwen3.gguf", "Q9", "no type or mix is called 'Q9'" },
        { NULL, "IQ2_XXS",
          "blk.0.attn_q.weight as IQ2_XXS needs an importance matrix (--imatrix)" },
        { "models/mixed.gguf", "Q4_0", "already" },
        { "nothing", "Q4_0", "no such file" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct akunu_load_params load;
        struct test_folder folder;
        begin(&folder, cases[i].source ? cases[i].source : "");
        if (!cases[i].source) {
            write_model(&folder, 0);
            snprintf(from, sizeof from, "%s", test_in(&folder, "model.gguf"));
        }
        akunu_load_params_default(&load, sizeof load);
        load.no_cache = true;
        load.quantize = cases[i].type;
        size_t n_open = test_count_open();
        ck_assert_msg(akunu_model_load(from, &load) == NULL, "%s as %s", from, cases[i].type);
        ck_assert_msg(strstr(akunu_last_error(), cases[i].said), "%s", akunu_last_error());
        ck_assert_uint_eq(test_count_open(), n_open);
        test_check_unmapped();
        test_folder_end(&folder);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantize");
    TCase *t = tcase_create("quantize");
    suite_add_tcase(suite, t);
    tcase_add_loop_test(t, mixes_of_llama_cpp, 0, N_MODELS);
    tcase_add_test(t, left_as_they_are);
    tcase_add_loop_test(t, near_and_the_same, 0, 7);
    tcase_add_test(t, exceptions);
    tcase_add_test(t, types_that_do_not_fit);
    tcase_add_test(t, refused);
    tcase_add_test(t, no_number);
    tcase_add_test(t, importance);
    tcase_add_test(t, importance_of_experts);
    tcase_add_test(t, importance_needed);
    tcase_add_test(t, importance_refused);
    tcase_add_loop_test(t, while_loading, 0, 4);
    tcase_add_test(t, not_while_loading);
    return test_run(suite);
}
