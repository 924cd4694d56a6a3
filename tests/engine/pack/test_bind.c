/* Which stored tensors a model of Hugging Face uses: the output matrix and the embedding, tensors
 * that it does not use, doubles, two tensors for one weight, quantized matrices without settings.
 * Each case edits a folder of tests/data. The logits are those of tests/golden/bindings.py. */
#include "tests/test.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "akunu/akunu.h"
#include "conversion/convert/gguf_write.h"
#include "tests/st_files.h"

enum { N_IDS = 6, VOCAB = 24, EDITS_MAX = 8, WORDS_MAX = 4 };

/* ---- Edited folders ----------------------------------------------------- */
/* A tensor that is renamed (`to` NULL: removed), or another one that is added: 64 bytes of zeros,
 * unless `from` names one to copy. */
struct edit {
    const char *from, *to;
    const char *dtype, *shape; /* of what is added or renamed; NULL: those of `from` */
    bool keeps;                /* a copy: `from` stays */
    bool differs;              /* in its last number, which is negated */
};

struct change {
    struct edit edits[EDITS_MAX];
    const char *config;      /* members that replace those of config.json, as JSON; NULL: none */
    const char *file, *text; /* a further file; text NULL: what config.json has under `moved` */
    const char *moved;       /* a member that config.json loses */
    bool doubles;            /* all floats become F64 */
};

static const char *data_path(const char *folder, const char *file)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s/%s", getenv("AK_TEST_DATA"), folder, file);
    return path;
}

static const struct edit *find_edit(const struct change *c, const char *name)
{
    for (const struct edit *e = c->edits; e->from || e->to; e++)
        if (e->from && !e->keeps && strcmp(e->from, name) == 0)
            return e;
    return NULL;
}

static void join_shape(const json_t *shape, char *out, size_t capacity)
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < json_array_size(shape); i++)
        at += (size_t)snprintf(out + at, capacity - at, "%s%lld", i ? ", " : "",
                               (long long)json_integer_value(json_array_get(shape, i)));
}

static void add_doubles(struct test_st *st, const char *name, const char *shape,
                        const uint8_t *bf16, size_t n_bytes)
{
    size_t n = n_bytes / 2;
    double *wide = malloc(n * sizeof *wide);
    ck_assert_ptr_nonnull(wide);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)(bf16[2 * i] | bf16[2 * i + 1] << 8) << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        wide[i] = (double)value;
    }
    test_st_add(st, name, "F64", shape, wide, n * sizeof *wide);
    free(wide);
}

static void add_tensor(struct test_st *st, const struct change *c, const struct edit *e,
                       const char *name, const json_t *info, uint8_t *data)
{
    char shape[64];
    json_t *offsets = json_object_get(info, "data_offsets");
    size_t begin = (size_t)json_integer_value(json_array_get(offsets, 0)),
           end = (size_t)json_integer_value(json_array_get(offsets, 1));
    const char *dtype = json_string_value(json_object_get(info, "dtype"));
    join_shape(json_object_get(info, "shape"), shape, sizeof shape);
    if (e && !e->to)
        return;
    if (e && e->differs)
        data[end - 1] ^= 0x80;
    if (c->doubles && strcmp(dtype, "BF16") == 0)
        add_doubles(st, e ? e->to : name, shape, data + begin, end - begin);
    else
        test_st_add(st, e ? e->to : name, e && e->dtype ? e->dtype : dtype,
                    e && e->shape ? e->shape : shape, data + begin, end - begin);
    if (e && e->differs)
        data[end - 1] ^= 0x80;
}

static void write_tensors(const struct test_folder *folder, const char *source,
                          const struct change *c)
{
    static const uint8_t zeros[64];
    struct test_st st = { 0 };
    static uint8_t bytes[1 << 20];
    FILE *f = fopen(data_path(source, "model.safetensors"), "rb");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(bytes, 1, sizeof bytes, f), n_header = (size_t)(bytes[0] | bytes[1] << 8);
    ck_assert(n > 8 && n < sizeof bytes && fclose(f) == 0);
    json_t *header = json_loadb((char *)bytes + 8, n_header, 0, NULL), *info;
    uint8_t *data = bytes + 8 + n_header;
    const char *name;
    json_object_del(header, "__metadata__");
    json_object_foreach (header, name, info)
        add_tensor(&st, c, find_edit(c, name), name, info, data);
    for (const struct edit *e = c->edits; e->from || e->to; e++)
        if (!e->from)
            test_st_add(&st, e->to, e->dtype, e->shape, zeros, sizeof zeros);
        else if (e->keeps)
            add_tensor(&st, c, e, e->from, json_object_get(header, e->from), data);
    test_st_write(&st, folder, "model.safetensors", 0);
    json_decref(header);
}

static void write_config(const struct test_folder *folder, const char *source,
                         const struct change *c)
{
    json_t *config = json_load_file(data_path(source, "config.json"), 0, NULL), *moved = NULL;
    ck_assert_ptr_nonnull(config);
    if (c->config) {
        json_t *more = json_loads(c->config, 0, NULL);
        ck_assert_ptr_nonnull(more);
        json_object_update(config, more);
        json_decref(more);
    }
    if (c->moved) {
        moved = json_incref(json_object_get(config, c->moved));
        json_object_del(config, c->moved);
    }
    if (c->file && c->text)
        test_write_text(folder, c->file, c->text);
    else if (c->file)
        ck_assert_int_eq(json_dump_file(moved, test_in(folder, c->file), 0), 0);
    ck_assert_int_eq(json_dump_file(config, test_in(folder, "config.json"), 0), 0);
    json_decref(moved);
    json_decref(config);
}

static struct test_folder make_folder(const char *source, const struct change *c)
{
    struct test_folder folder = test_folder_begin();
    write_tensors(&folder, source, c);
    write_config(&folder, source, c);
    return folder;
}

/* ---- Logits ------------------------------------------------------------- */
static struct akunu_model *load(const char *path)
{
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.no_cache = true;
    params.n_threads = 1;
    return akunu_model_load(path, &params);
}

/* The logits of all ids; the session may refuse. */
static enum akunu_status decode(struct akunu_model *model, const akunu_token ids[N_IDS],
                                size_t n_vocab, float *out)
{
    struct akunu_batch_token tokens[N_IDS];
    struct akunu_session_params params;
    akunu_session_params_default(&params, sizeof params);
    params.k_type = params.v_type = AKUNU_KV_F32;
    struct akunu_session *session = akunu_session_new(model, &params);
    ck_assert_msg(session != NULL, "%s", akunu_last_error());
    akunu_sequence sequence = akunu_sequence_new(session);
    for (int i = 0; i < N_IDS; i++)
        tokens[i] = (struct akunu_batch_token){ ids[i], sequence, true };
    enum akunu_status status = akunu_session_decode(session, tokens, N_IDS);
    for (size_t i = 0; status == AKUNU_OK && i < N_IDS; i++)
        memcpy(out + i * n_vocab, akunu_session_logits(session, i), n_vocab * sizeof *out);
    akunu_session_free(session);
    return status;
}

static void run(const char *path, const akunu_token ids[N_IDS], size_t n_vocab, float *out)
{
    struct akunu_model *model = load(path);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    ck_assert_msg(decode(model, ids, n_vocab, out) == AKUNU_OK, "%s", akunu_last_error());
    akunu_model_free(model);
}

/* The ids, and the logits of the lines that begin with `name`. */
static void read_golden(const char *name, akunu_token ids[N_IDS], double out[N_IDS * VOCAB])
{
    char line[2048], word[16];
    size_t n = 0;
    FILE *f = fopen(data_path("bindings", "logits.txt"), "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f)) {
        char *at = line;
        ck_assert_int_eq(sscanf(line, "%15s", word), 1);
        at += strlen(word);
        if (strcmp(word, "ids") == 0)
            for (int i = 0; i < N_IDS; i++)
                ids[i] = (akunu_token)strtol(at, &at, 10);
        else if (strcmp(word, name) == 0)
            for (int i = 0; i < VOCAB; i++)
                out[n++] = strtod(at, &at);
    }
    ck_assert_uint_eq(n, N_IDS * VOCAB);
    fclose(f);
}

static void check_logits(const char *what, const float *found, const char *golden)
{
    akunu_token ids[N_IDS];
    double expected[N_IDS * VOCAB];
    read_golden(golden, ids, expected);
    for (int i = 0; i < N_IDS * VOCAB; i++)
        ck_assert_msg(fabs((double)found[i] - expected[i]) < 1e-4, "%s: logit %d is %.9g, not %.9g",
                      what, i, (double)found[i], expected[i]);
}

/* ---- What is used ------------------------------------------------------- */
#define DROPPED(name)                                                                              \
    {                                                                                              \
        .from = name                                                                               \
    }
#define ADDED(name, type, cols)                                                                    \
    {                                                                                              \
        .to = name, .dtype = type, .shape = cols                                                   \
    }
#define RETYPED(name, type, cols)                                                                  \
    {                                                                                              \
        .from = name, .to = name, .dtype = type, .shape = cols                                     \
    }
#define NO_HEAD DROPPED("lm_head.weight")
#define UNTIED "{\"tie_word_embeddings\": false}"

static const struct {
    const char *what, *golden;
    struct change change;
} used[] = {
    { "tied, and another output matrix", "own", { .config = NULL } },
    { "an output matrix", "own", { .config = UNTIED } },
    { "tied", "tied", { .edits = { NO_HEAD } } },
    { "tied, and the embedding again",
      "tied",
      { .edits = { NO_HEAD,
                   { .from = "model.embed_tokens.weight",
                     .to = "lm_head.weight",
                     .keeps = true } } } },
    { "not tied, and the embedding again", /* each may be trained on its own */
      "tied",
      { .config = UNTIED,
        .edits = { NO_HEAD,
                   { .from = "model.embed_tokens.weight",
                     .to = "lm_head.weight",
                     .keeps = true } } } },
    { "floats, and settings of a quantization",
      "own",
      { .file = "quantize_config.json", .text = "{\"bits\": 3}" } },
    { "doubles", "own", { .doubles = true } },
    { "doubles, tied", "tied", { .edits = { NO_HEAD }, .doubles = true } },
    { "unused tensors of all types",
      "own",
      { .edits = { ADDED("model.position_ids", "I64", "8"), ADDED("attention.mask", "BOOL", "64"),
                   ADDED("a", "C64", "8"), ADDED("b", "F4", "128"), ADDED("c", "F8_E5M2", "64"),
                   ADDED("d", "U16", "32"), ADDED("e", "NEWTYPE", "3, 7") } } },
};

/* Converts a folder, which has no vocabulary. */
static void convert(const char *folder, const char *file)
{
    struct akunu_convert_params params;
    akunu_convert_params_default(&params, sizeof params);
    params.no_vocab = true;
    ck_assert_msg(akunu_convert(folder, file, &params) == AKUNU_OK, "%s", akunu_last_error());
}

START_TEST(which_tensors)
{
    akunu_token ids[N_IDS];
    float found[N_IDS * VOCAB];
    double unused[N_IDS * VOCAB];
    char file[96];
    read_golden("own", ids, unused);
    struct test_folder folder = make_folder("bindings", &used[_i].change);
    run(folder.path, ids, VOCAB, found);
    check_logits(used[_i].what, found, used[_i].golden);
    /* the same model as a GGUF file, which has no other way to be tied than to lack the matrix */
    snprintf(file, sizeof file, "%s/new.gguf", folder.path);
    convert(folder.path, file);
    run(file, ids, VOCAB, found);
    check_logits(used[_i].what, found, used[_i].golden);
    struct akunu_file *gguf = akunu_file_open(file);
    struct akunu_file_info info;
    struct akunu_tensor_info t;
    bool has_output = false;
    ck_assert_int_eq(akunu_file_get_info(gguf, &info, sizeof info), AKUNU_OK);
    for (size_t i = 0; i < info.n_tensors; i++) {
        ck_assert_int_eq(akunu_file_get_tensor(gguf, i, &t, sizeof t), AKUNU_OK);
        has_output = has_output || strcmp(t.name, "output.weight") == 0;
    }
    akunu_file_free(gguf);
    ck_assert_int_eq(has_output, strcmp(used[_i].golden, "own") == 0 || used[_i].change.config);
    test_folder_end(&folder);
}
END_TEST

/* The stored matrix is the embedding but for one number: it is not a copy. */
START_TEST(almost_tied)
{
    static const struct change change = { .edits = { NO_HEAD,
                                                     { "model.embed_tokens.weight",
                                                       "lm_head.weight", .keeps = true,
                                                       .differs = true } } };
    akunu_token ids[N_IDS];
    double tied[N_IDS * VOCAB];
    float found[N_IDS * VOCAB];
    char file[96];
    read_golden("tied", ids, tied);
    struct test_folder folder = make_folder("bindings", &change);
    snprintf(file, sizeof file, "%s/new.gguf", folder.path);
    convert(folder.path, file);
    for (int as_gguf = 0; as_gguf < 2; as_gguf++) {
        run(as_gguf ? file : folder.path, ids, VOCAB, found);
        double differs = 0.0;
        for (int i = 0; i < N_IDS * VOCAB; i++)
            if (i % VOCAB == VOCAB - 1)
                differs += fabs((double)found[i] - tied[i]);
            else
                ck_assert_double_eq_tol((double)found[i], tied[i], 1e-4);
        ck_assert_double_gt(differs, 0.1);
    }
    test_folder_end(&folder);
}
END_TEST

/* ---- GGUF ---------------------------------------------------------------- */
static void write_doubles(struct ak_gguf_writer *w, const struct ak_tensor *t)
{
    double wide[1024];
    float values[1024];
    uint64_t n = t->n_dims == 1 ? t->shape[0] : t->shape[0] * t->shape[1];
    ck_assert_uint_le(n, 1024);
    ak_tensor_dequantize(t, 0, n, values);
    for (uint64_t i = 0; i < n; i++)
        wide[i] = (double)values[i];
    ak_gguf_writer_write(w, wide, (size_t)n * sizeof *wide);
    ak_gguf_writer_end_tensor(w);
}

/* The file with doubles, and with whole numbers that no weight is. */
static void write_wide(const char *from, const char *to)
{
    static const int64_t ids[] = { 1, -2, 3, 1ll << 40 };
    static const uint64_t shapes[2][2] = { { 4 }, { 2, 2 } };
    struct ak_error error = { 0 };
    struct ak_provider *p;
    struct ak_tensor t;
    struct ak_meta meta;
    ck_assert_msg(ak_provider_open(from, &p, &error) == AKUNU_OK, "%s", error.message);
    struct ak_gguf_writer w = ak_gguf_writer_begin(&error);
    for (size_t i = 0; ak_provider_meta(p, i, &meta); i++)
        ak_gguf_writer_put_meta(&w, p, &meta);
    for (size_t i = 0; ak_provider_tensor(p, i, &t); i++)
        ak_gguf_writer_put_tensor(&w, t.name, AK_QUANT_F64, t.n_dims, t.shape);
    ak_gguf_writer_put_tensor(&w, "ids", AK_QUANT_I64, 1, shapes[0]);
    ak_gguf_writer_put_tensor(&w, "unused.weight", AK_QUANT_I64, 2, shapes[1]);
    ak_gguf_writer_open(&w, to);
    for (size_t i = 0; ak_provider_tensor(p, i, &t); i++)
        write_doubles(&w, &t);
    for (int i = 0; i < 2; i++) {
        ak_gguf_writer_write(&w, ids, sizeof ids);
        ak_gguf_writer_end_tensor(&w);
    }
    ck_assert_msg(ak_gguf_writer_finish(&w) == AKUNU_OK, "%s", error.message);
    ak_provider_close(p);
}

static void check_types(const char *path, const char *type)
{
    struct ak_error error = { 0 };
    struct ak_provider *p;
    struct ak_tensor t;
    ck_assert_msg(ak_provider_open(path, &p, &error) == AKUNU_OK, "%s", error.message);
    for (size_t i = 0; ak_provider_tensor(p, i, &t); i++) {
        const char *expected = t.has_role ? t.n_dims == 1 ? "F32" : type : "I64";
        ck_assert_msg(strcmp(ak_tensor_type_name(&t), expected) == 0, "%s is %s", t.name,
                      ak_tensor_type_name(&t));
        if (!t.has_role)
            ck_assert_int_eq(((const int64_t *)t.data)[3], 1ll << 40);
    }
    ak_provider_close(p);
}

START_TEST(doubles_in_gguf)
{
    static const struct change none = { .config = NULL };
    static const char *const types[] = { NULL, "F16" };
    akunu_token ids[N_IDS];
    double unused[N_IDS * VOCAB];
    float found[N_IDS * VOCAB];
    char from[96], wide[96], to[96];
    struct akunu_convert_params params;
    read_golden("own", ids, unused);
    struct test_folder folder = make_folder("bindings", &none);
    snprintf(from, sizeof from, "%s/from.gguf", folder.path);
    snprintf(wide, sizeof wide, "%s/wide.gguf", folder.path);
    convert(folder.path, from);
    write_wide(from, wide);
    run(wide, ids, VOCAB, found);
    check_logits("doubles in GGUF", found, "own");
    for (int i = 0; i < 2; i++) {
        snprintf(to, sizeof to, "%s/%d.gguf", folder.path, i);
        akunu_convert_params_default(&params, sizeof params);
        params.type = types[i];
        params.no_vocab = true;
        ck_assert_msg(akunu_convert(wide, to, &params) == AKUNU_OK, "%s", akunu_last_error());
        check_types(to, types[i] ? types[i] : "F32");
    }
    test_folder_end(&folder);
}
END_TEST

/* The class is one of embeddings: they need no output matrix, and there are no logits. */
START_TEST(embeddings_alone)
{
    static const struct change change = {
        .edits = { NO_HEAD },
        .config = "{\"tie_word_embeddings\": false, \"architectures\": [\"LlamaModel\"]}"
    };
    akunu_token ids[N_IDS];
    double unused[N_IDS * VOCAB];
    float logits[N_IDS * VOCAB], embedding[16];
    read_golden("own", ids, unused);
    struct test_folder folder = make_folder("bindings", &change);
    struct akunu_model *model = load(folder.path);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    ck_assert_int_eq(decode(model, ids, VOCAB, logits), AKUNU_ERROR_UNSUPPORTED);
    ck_assert_msg(strstr(akunu_last_error(), "lm_head.weight"), "%s", akunu_last_error());
    struct akunu_session *session = akunu_session_new(model, NULL);
    struct akunu_ids text = { ids, N_IDS };
    ck_assert_int_eq(akunu_session_embed(session, &text, 1, NULL, embedding), AKUNU_OK);
    akunu_session_free(session);
    akunu_model_free(model);
    test_folder_end(&folder);
}
END_TEST

/* ---- Settings of quantized matrices in a file of their own -------------- */
static const struct {
    const char *source;
    struct change change;
} elsewhere[] = {
    { "quantized/gptq", { .moved = "quantization_config", .file = "quantize_config.json" } },
    { "quantized/gptq",
      { .moved = "quantization_config",
        .file = "quantize_config.json",
        .text = "{\"bits\": 4, \"group_size\": 32, \"desc_act\": false, \"sym\": false}" } },
    { "quantized/awq",
      { .moved = "quantization_config",
        .file = "quant_config.json",
        .text = "{\"zero_point\": true, \"q_group_size\": 32, \"w_bit\": 4, \"version\": "
                "\"GEMM\"}" } },
    { "quantized/fp8-rows",
      { .moved = "quantization_config",
        .file = "hf_quant_config.json",
        .text = "{\"producer\": {\"name\": \"modelopt\"}, \"quantization\": {\"quant_algo\": "
                "\"FP8\", \"exclude_modules\": [\"lm_head\"]}}" } },
};

START_TEST(settings_elsewhere)
{
    enum { N = 80 };
    static const akunu_token ids[N_IDS] = { 3, 17, 0, 22, 9, 79 };
    static const struct change none = { .config = NULL };
    static float expected[N_IDS * N], found[N_IDS * N];
    struct test_folder before = make_folder(elsewhere[_i].source, &none),
                       after = make_folder(elsewhere[_i].source, &elsewhere[_i].change);
    run(before.path, ids, N, expected);
    run(after.path, ids, N, found);
    ck_assert_mem_eq(found, expected, sizeof found);
    test_folder_end(&before);
    test_folder_end(&after);
}
END_TEST

/* ---- What is refused ---------------------------------------------------- */
#define Q0 "model.layers.0.self_attn.q_proj"
/* the 512 bytes of q_proj as another type */
#define AS_QUANTS(suffix, type)                                                                    \
    {                                                                                              \
        .from = Q0 ".weight", .to = Q0 suffix, .dtype = type,                                      \
        .shape = type[sizeof type - 2] == '2' ? "16, 8" : "16, 32"                                 \
    }
#define NEXT(suffix, type, cols) ADDED(Q0 suffix, type, cols)

static const struct {
    struct change change;
    const char *words[WORDS_MAX];
} refused[] = {
    { { .edits = { NO_HEAD }, .config = UNTIED }, { "lm_head.weight", "tie_word_embeddings" } },
    { { .edits = { RETYPED("model.norm.weight", "C64", "4") } },
      { "model.norm.weight", "type C64", "F32" } },
    { { .edits = { RETYPED("model.norm.weight", "I16", "16") } },
      { "model.norm.weight", "type I16", "F32" } },
    { { .edits = { RETYPED("lm_head.weight", "NEWTYPE", "7") } },
      { "lm_head.weight", "type NEWTYPE" } },
    { { .edits = { { .from = "model.norm.weight",
                     .to = "language_model.model.norm.weight",
                     .keeps = true } } },
      { "model.norm.weight", "language_model.model.norm.weight", "same weight" } },
    { { .edits = { DROPPED("model.layers.1.mlp.up_proj.weight") } },
      { "model.layers.1.mlp.up_proj.weight is missing" } },
    { { .config = "{\"num_hidden_layers\": 3}" },
      { "model.layers.2.", "missing", "num_hidden_layers is 3" } },
    { { .edits = { AS_QUANTS(".qweight", "I32"), NEXT(".qzeros", "I32", "16"),
                   NEXT(".scales", "F16", "32") } },
      { Q0 ".weight is missing", ".qweight (I32)", "GPTQ or AWQ", "quantize_config.json" } },
    { { .edits = { AS_QUANTS(".weight_packed", "I32"), NEXT(".weight_scale", "F16", "32") } },
      { Q0 ".weight is missing", "compressed-tensors", "quantization_config" } },
    { { .edits = { AS_QUANTS(".codes", "I8"), NEXT(".codebooks", "F16", "32") },
        .config = "{\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4}}" },
      { Q0, "AQLM", "of another kind" } },
    { { .edits = { AS_QUANTS(".W_q", "U8"), NEXT(".scale", "F16", "32") } }, { Q0, "HQQ" } },
    { { .edits = { AS_QUANTS(".codes", "I8"), NEXT(".codebooks", "F16", "32") } }, { Q0, "AQLM" } },
    { { .edits = { AS_QUANTS(".weight", "U32"), NEXT(".scales", "F16", "32"),
                   NEXT(".biases", "F16", "32") } },
      { Q0 ".weight has the type U32", ".biases", "MLX" } },
    { { .edits = { AS_QUANTS(".weight", "U8"), NEXT(".weight.absmax", "F32", "16") } },
      { Q0 ".weight has the type U8", "bitsandbytes" } },
    { { .edits = { AS_QUANTS(".weight", "F8_E4M3"), NEXT(".weight_scale_inv", "F32", "16") } },
      { Q0 ".weight has the type F8_E4M3", "FP8" } },
    { { .edits = { AS_QUANTS(".weight", "U8"), NEXT(".weight_scale", "F8_E4M3", "64") },
        .file = "hf_quant_config.json",
        .text = "{\"quantization\": {\"quant_algo\": \"NVFP4\"}}" },
      { "hf_quant_config.json", "NVFP4", "FP8" } },
    { { .edits = { AS_QUANTS(".qweight", "I32") },
        .file = "quantize_config.json",
        .text = "{\"bits\": 3, \"group_size\": 32}" },
      { "quantize_config.json", "3 bits" } },
    { { .edits = { AS_QUANTS(".qweight", "I32") }, .file = "quant_config.json", .text = "[]" },
      { "quant_config.json", "object" } },
};

START_TEST(refusals)
{
    struct test_folder folder = make_folder("bindings", &refused[_i].change);
    struct akunu_model *model = load(folder.path);
    ck_assert_msg(model == NULL, "case %d is accepted", _i);
    for (int i = 0; i < WORDS_MAX && refused[_i].words[i]; i++)
        ck_assert_msg(strstr(akunu_last_error(), refused[_i].words[i]), "%s: no %s",
                      akunu_last_error(), refused[_i].words[i]);
    test_folder_end(&folder);
}
END_TEST

/* ---- Heads -------------------------------------------------------------- */
/* Scores of a pair by RoBERTa, whose class does not use the pooler that a checkpoint may have. */
static void score(const char *path, float out[3])
{
    static const akunu_token ids[] = { 0, 40, 41, 2, 2, 50, 60, 2 };
    struct akunu_pair pair = { ids, sizeof ids / sizeof *ids, 5 };
    struct akunu_model *model = load(path);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    struct akunu_session *session = akunu_session_new(model, NULL);
    ck_assert_msg(akunu_session_score(session, &pair, 1, NULL, NULL, out) == AKUNU_OK, "%s",
                  akunu_last_error());
    akunu_session_free(session);
    akunu_model_free(model);
}

START_TEST(unused_pooler)
{
    static const struct change none = { .config = NULL }, pooler = {
        .edits = { { .from = "classifier.dense.weight",
                     .to = "roberta.pooler.dense.weight",
                     .keeps = true },
                   { "roberta.encoder.layer.0.output.dense.bias", "roberta.pooler.dense.bias",
                     .keeps = true },
                   { .from = "classifier.out_proj.weight", .to = "score.weight", .keeps = true } }
    };
    float expected[3], found[3];
    struct test_folder before = make_folder("rerankers/roberta", &none),
                       after = make_folder("rerankers/roberta", &pooler);
    score(before.path, expected);
    score(after.path, found);
    ck_assert_mem_eq(found, expected, sizeof found);
    test_folder_end(&before);
    test_folder_end(&after);
}
END_TEST

static const struct {
    const char *source;
    struct change change;
    const char *words[WORDS_MAX];
} heads[] = {
    { "rerankers/roberta",
      { .edits = { { .from = "classifier.dense.weight", .to = "roberta.pooler.dense.weight" } } },
      { "classifier.dense.weight is missing", "RobertaForSequenceClassification" } },
    { "rerankers/bert",
      { .edits = { { .from = "classifier.weight", .to = "score.weight" } } },
      { "classifier.weight is missing", "BertForSequenceClassification" } },
    { "rerankers/bert",
      { .edits = { { .from = "bert.pooler.dense.weight",
                     .to = "pooler.dense.weight",
                     .keeps = true } } },
      { "bert.pooler.dense.weight", "pooler.dense.weight", "expected one" } },
};

START_TEST(wrong_heads)
{
    struct test_folder folder = make_folder(heads[_i].source, &heads[_i].change);
    ck_assert_ptr_null(load(folder.path));
    for (int i = 0; i < WORDS_MAX && heads[_i].words[i]; i++)
        ck_assert_msg(strstr(akunu_last_error(), heads[_i].words[i]), "%s: no %s",
                      akunu_last_error(), heads[_i].words[i]);
    test_folder_end(&folder);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("bind");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, which_tensors, 0, sizeof used / sizeof *used);
    tcase_add_test(cases, almost_tied);
    tcase_add_test(cases, doubles_in_gguf);
    tcase_add_test(cases, embeddings_alone);
    tcase_add_loop_test(cases, settings_elsewhere, 0, sizeof elsewhere / sizeof *elsewhere);
    tcase_add_loop_test(cases, refusals, 0, sizeof refused / sizeof *refused);
    tcase_add_test(cases, unused_pooler);
    tcase_add_loop_test(cases, wrong_heads, 0, sizeof heads / sizeof *heads);
    Suite *suite = suite_create("bind");
    suite_add_tcase(suite, cases);
    return test_run(suite);
}
