/* Embeddings through the public header: the encoders, as Hugging Face folders and
 * as GGUF, against tests/golden/encoders.py; language models as embedders; the same bits
 * whatever the threads, the ISA and the company; what is refused. */
#include <jansson.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/golden_model.h"

enum { N_TEXTS = 7, IDS_MAX = 96, WIDTH = 32, N_POOLINGS = 3 };

static const char *const encoders[] = { "bert", "xlm-roberta", "nomic-bert", "modernbert",
                                        "jina-bert-v2" };
/* largest NMSE of an embedding */
static const double measured[] = { 8.2e-14, 1.1e-13, 3.3e-13, 1.1e-12, 5.7e-13 };
enum { N_ENCODERS = sizeof encoders / sizeof *encoders };

static const char *const pooling_names[] = {
    [AKUNU_POOLING_MEAN] = "mean", [AKUNU_POOLING_CLS] = "cls", [AKUNU_POOLING_LAST] = "last"
};

struct texts {
    akunu_token ids[N_TEXTS][IDS_MAX];
    struct akunu_ids texts[N_TEXTS];
};

static const char *encoder_path(const char *name, const char *file, char path[4096])
{
    const char *data = getenv("AK_TEST_DATA");
    ck_assert_ptr_nonnull(data);
    snprintf(path, 4096, "%s/encoders/%s%s%s", data, name, *file ? "/" : "", file);
    return path;
}

static void read_texts(const char *name, struct texts *out)
{
    char path[4096], line[1024];
    FILE *f = fopen(encoder_path(name, "texts.txt", path), "r");
    ck_assert_ptr_nonnull(f);
    for (size_t i = 0; i < N_TEXTS; i++) {
        ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
        out->texts[i] = (struct akunu_ids){ out->ids[i], 0 };
        char *next = line, *end;
        for (long id = strtol(next, &end, 10); end != next; id = strtol(next, &end, 10)) {
            ck_assert_uint_lt(out->texts[i].n, IDS_MAX);
            out->ids[i][out->texts[i].n++] = (akunu_token)id;
            next = end;
        }
    }
    fclose(f);
}

/* The floats behind the header of a .npy file of version 1. */
static void read_npy(const char *path, float *out, size_t n)
{
    unsigned char head[10];
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    ck_assert_uint_eq(fread(head, 1, sizeof head, f), sizeof head);
    ck_assert_int_eq(fseek(f, head[8] + 256 * head[9], SEEK_CUR), 0);
    ck_assert_uint_eq(fread(out, sizeof *out, n, f), n);
    ck_assert_int_eq(fgetc(f), EOF);
    fclose(f);
}

static struct akunu_model *load(const char *path, const char *cpu)
{
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.cpu = cpu;
    params.n_threads = 2;
    params.no_cache = true;
    params.strict = true;
    params.warm_up = true;
    struct akunu_model *model = akunu_model_load(path, &params);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    return model;
}

static struct akunu_model *load_encoder(const char *name, bool gguf, const char *cpu)
{
    char path[4096];
    return load(encoder_path(name, gguf ? "model.gguf" : "", path), cpu);
}

static struct akunu_session *open_session(const struct akunu_model *model, unsigned threads,
                                          uint32_t batch, uint32_t sequences)
{
    struct akunu_session_params params;
    akunu_session_params_default(&params, sizeof params);
    params.n_threads = threads;
    params.batch = batch;
    params.max_sequences = sequences;
    struct akunu_session *session = akunu_session_new(model, &params);
    ck_assert_msg(session != NULL, "%s", akunu_last_error());
    return session;
}

static void embed(struct akunu_session *session, const struct akunu_ids *texts, size_t n,
                  enum akunu_pooling pooling, enum akunu_normalize normalize, float *out)
{
    struct akunu_embedding_params embedding;
    akunu_embedding_params_default(&embedding, sizeof embedding);
    embedding.pooling = pooling;
    embedding.normalize = normalize;
    ck_assert_msg(akunu_session_embed(session, texts, n, &embedding, out) == AKUNU_OK, "%s",
                  akunu_last_error());
}

static double nmse(const float *got, const float *want, size_t n)
{
    double difference = 0.0, whole = 0.0;
    for (size_t i = 0; i < n; i++) {
        difference += ((double)got[i] - (double)want[i]) * ((double)got[i] - (double)want[i]);
        whole += (double)want[i] * (double)want[i];
    }
    return difference / whole;
}

/* ---- Numbers ------------------------------------------------------------ */
START_TEST(goldens_of_encoders)
{
    const char *name = encoders[_i / 2];
    struct texts texts;
    float got[N_TEXTS][WIDTH], want[N_TEXTS][WIDTH];
    char path[4096], file[16];
    read_texts(name, &texts);
    struct akunu_model *model = load_encoder(name, _i % 2, NULL);
    struct akunu_session *session = open_session(model, 2, 0, 0);
    for (int pooling = AKUNU_POOLING_MEAN; pooling <= AKUNU_POOLING_LAST; pooling++) {
        snprintf(file, sizeof file, "%s.npy", pooling_names[pooling]);
        read_npy(encoder_path(name, file, path), want[0], (size_t)N_TEXTS * WIDTH);
        embed(session, texts.texts, N_TEXTS, (enum akunu_pooling)pooling, AKUNU_NORMALIZE_NONE,
              got[0]);
        for (size_t i = 0; i < N_TEXTS; i++) {
            double error = nmse(got[i], want[i], WIDTH);
            ck_assert_msg(error <= golden_bound(measured[_i / 2], 1e-10),
                          "%s, %s of text %zu: NMSE %.2e", name, pooling_names[pooling], i, error);
        }
    }
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* The folder, and the GGUF file that is made of it: the same bits. */
START_TEST(converted)
{
    const char *name = encoders[_i];
    struct texts texts;
    float want[N_TEXTS][WIDTH], got[N_TEXTS][WIDTH];
    char from[4096], to[] = "/tmp/akunu-embed-XXXXXX";
    struct akunu_convert_params params;
    int fd = mkstemp(to);
    ck_assert_int_ge(fd, 0);
    close(fd);
    akunu_convert_params_default(&params, sizeof params);
    params.no_vocab = true;
    params.overwrite = true;
    ck_assert_msg(akunu_convert(encoder_path(name, "", from), to, &params) == AKUNU_OK, "%s",
                  akunu_last_error());
    read_texts(name, &texts);
    for (int made = 0; made < 2; made++) {
        struct akunu_model_info info;
        struct akunu_model *model = made ? load(to, NULL) : load_encoder(name, false, NULL);
        ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
        ck_assert_int_eq(info.pooling, AKUNU_POOLING_CLS);
        ck_assert_uint_eq(info.context, 96);
        struct akunu_session *session = open_session(model, 2, 0, 0);
        ck_assert_int_eq(
            akunu_session_embed(session, texts.texts, N_TEXTS, NULL, made ? got[0] : want[0]),
            AKUNU_OK);
        akunu_session_free(session);
        akunu_model_free(model);
    }
    ck_assert_mem_eq(want, got, sizeof want);
    unlink(to);
}
END_TEST

/* Texts alone, in threes and all together, in any order. */
START_TEST(same_bits)
{
    static const uint32_t batches[] = { 0, 90 }, sequences[] = { 0, 1, 3 };
    const char *name = encoders[_i];
    struct texts texts;
    struct akunu_ids order[N_TEXTS];
    float first[N_TEXTS][WIDTH], again[N_TEXTS][WIDTH];
    bool have_first = false;
    read_texts(name, &texts);
    for (size_t i = 0; i < N_TEXTS; i++)
        order[i] = texts.texts[3 * i % N_TEXTS];
    for (size_t isa = 0; akunu_cpu_name(isa); isa++) {
        struct akunu_model *model = load_encoder(name, true, akunu_cpu_name(isa));
        for (unsigned k = 0; k < 6; k++) {
            struct akunu_session *session =
                open_session(model, 1 + k % 3, batches[k % 2], sequences[k % 3]);
            embed(session, order, N_TEXTS, AKUNU_POOLING_MEAN, AKUNU_NORMALIZE_L2, again[0]);
            for (size_t i = 0; i < N_TEXTS; i++) {
                float *to = first[3 * i % N_TEXTS];
                if (!have_first)
                    memcpy(to, again[i], sizeof again[i]);
                ck_assert_msg(memcmp(to, again[i], sizeof again[i]) == 0,
                              "%s: other bits of text %zu with cpu %s, sessions of kind %u", name,
                              3 * i % N_TEXTS, akunu_cpu_name(isa), k);
            }
            have_first = true;
            akunu_session_free(session);
        }
        akunu_model_free(model);
    }
}
END_TEST

/* What the files say: the first token's state, to unit length. */
START_TEST(as_the_model_says)
{
    struct texts texts;
    struct akunu_model_info info;
    float own[N_TEXTS][WIDTH], raw[N_TEXTS][WIDTH];
    read_texts("bert", &texts);
    struct akunu_model *model = load_encoder("bert", _i, NULL);
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    ck_assert(info.encoder && info.normalized);
    ck_assert_int_eq(info.pooling, AKUNU_POOLING_CLS);
    ck_assert_uint_eq(info.context, 96);
    ck_assert_ptr_null(akunu_model_dump(model, true));
    struct akunu_session *session = open_session(model, 1, 0, 0);
    ck_assert_int_eq(akunu_session_embed(session, texts.texts, N_TEXTS, NULL, own[0]), AKUNU_OK);
    embed(session, texts.texts, N_TEXTS, AKUNU_POOLING_CLS, AKUNU_NORMALIZE_NONE, raw[0]);
    for (size_t i = 0; i < N_TEXTS; i++) {
        double squares = 0.0, length = 0.0;
        for (size_t j = 0; j < WIDTH; j++) {
            squares += (double)raw[i][j] * (double)raw[i][j];
            length += (double)own[i][j] * (double)own[i][j];
        }
        ck_assert_double_eq_tol(length, 1.0, 1e-6);
        for (size_t j = 0; j < WIDTH; j++)
            ck_assert_float_eq_tol(own[i][j], (float)((double)raw[i][j] / sqrt(squares)), 1e-7f);
    }
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* ---- Folders written here ----------------------------------------------- */
static const char *const folder_files[] = { "config.json", "model.safetensors", "modules.json",
                                            "1_Pooling/config.json", "1_Pooling" };
enum { N_FOLDER_FILES = sizeof folder_files / sizeof *folder_files };

/* The encoder's folder again, without modules.json. */
static void make_folder(const char *name, char folder[64])
{
    char from[4096], to[4096];
    strcpy(folder, "/tmp/akunu-embed-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(to, sizeof to, "%s/1_Pooling", folder);
    ck_assert_int_eq(mkdir(to, 0700), 0);
    for (size_t i = 0; i < 2; i++) {
        snprintf(to, sizeof to, "%s/%s", folder, folder_files[i]);
        ck_assert_int_eq(symlink(encoder_path(name, folder_files[i], from), to), 0);
    }
}

static void write_file(const char *folder, const char *name, const void *bytes, size_t n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void remove_folder(const char *folder)
{
    char path[4096];
    for (size_t i = 0; i < N_FOLDER_FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, folder_files[i]);
        (void)remove(path);
    }
    ck_assert_int_eq(rmdir(folder), 0);
}

/* Replaces names in a SafeTensors header; spaces keep its length. */
static void rename_all(char *text, size_t n, const char *from, const char *to)
{
    size_t n_from = strlen(from), n_to = strlen(to);
    for (size_t i = 0; i + n_from < n; i++)
        if (memcmp(text + i, from, n_from) == 0) {
            memcpy(text + i, to, n_to);
            memset(text + i + n_to, ' ', n_from - n_to);
        }
}

START_TEST(old_names_of_norms)
{
    static char bytes[1 << 20];
    struct texts texts;
    float want[N_TEXTS][WIDTH], got[N_TEXTS][WIDTH];
    char folder[64], path[4096];
    read_texts("bert", &texts);
    make_folder("bert", folder);
    FILE *f = fopen(encoder_path("bert", "model.safetensors", path), "rb");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    ck_assert_uint_lt(n, sizeof bytes);
    rename_all(bytes, n, "LayerNorm.weight\":", "LayerNorm.gamma\":");
    rename_all(bytes, n, "LayerNorm.bias\":", "LayerNorm.beta\":");
    write_file(folder, "model.safetensors", bytes, n);

    for (int old = 0; old < 2; old++) {
        struct akunu_model *model = old ? load(folder, NULL) : load_encoder("bert", false, NULL);
        struct akunu_session *session = open_session(model, 1, 0, 0);
        embed(session, texts.texts, N_TEXTS, AKUNU_POOLING_MEAN, AKUNU_NORMALIZE_NONE,
              old ? got[0] : want[0]);
        akunu_session_free(session);
        akunu_model_free(model);
    }
    ck_assert_mem_eq(want, got, sizeof want);
    remove_folder(folder);
}
END_TEST

#define TRANSFORMER "{\"type\": \"sentence_transformers.models.Transformer\", \"path\": \"\"}"
#define POOLING                                                                                    \
    "{\"type\": \"sentence_transformers.sentence_transformer.modules.pooling.Pooling\", "          \
    "\"path\": \"1_Pooling\"}"
#define NORMALIZE "{\"type\": \"sentence_transformers.models.Normalize\", \"path\": \"2\"}"
/* What sentence-transformers' files may say, and the pooling that it gives, or the words
 * of the refusal. */
static const struct {
    const char *modules, *pooling;
    enum akunu_pooling kind;
    bool normalized;
    const char *refused;
} settings[] = {
    { NULL, NULL, AKUNU_POOLING_MEAN, false, NULL },
    { "[" TRANSFORMER ", " POOLING "]",
      "{\"pooling_mode_lasttoken\": true, \"pooling_mode_cls_token\": false}", AKUNU_POOLING_LAST,
      false, NULL },
    { "[" TRANSFORMER ", " POOLING ", " NORMALIZE "]", "{\"pooling_mode\": \"cls\"}",
      AKUNU_POOLING_CLS, true, NULL },
    { "[" TRANSFORMER ", " POOLING "]", "{\"pooling_mode\": \"other\"}", AKUNU_POOLING_MEAN, false,
      "pooling by other" },
    { "[" TRANSFORMER ", " POOLING "]", "{\"pooling_mode\": [\"cls\", 7]}", AKUNU_POOLING_CLS,
      false, "pooling by an integer" },
    { "[" TRANSFORMER ", " POOLING "]", "{\"pooling_mode\": null}", AKUNU_POOLING_MEAN, false,
      "pooling by null" },
    { "[" TRANSFORMER ", " POOLING "]",
      "{\"pooling_mode\": [\"cls\", \"cls\", \"cls\", \"cls\", \"cls\", \"cls\", \"cls\"]}",
      AKUNU_POOLING_MODEL, false, "more than six" },
    { "[" TRANSFORMER ", {\"type\": \"sentence_transformers.models.Pooling\", \"path\": "
      "\"9_Pooling\"}]",
      NULL, AKUNU_POOLING_MEAN, false, "9_Pooling/config.json" },
    { "[" TRANSFORMER ", {\"type\": \"sentence_transformers.models.Pooling\", \"path\": "
      "\"1_Pooling/of_a_folder_whose_name_is_longer_than_any_that_is_looked_for\"}]",
      NULL, AKUNU_POOLING_MEAN, false, "the missing settings 1_Pooling/of_a_folder" },
    { "[" TRANSFORMER ", " POOLING
      ", {\"type\": \"sentence_transformers.models.Dense\", \"path\": \"2_Dense\"}]",
      "{\"pooling_mode\": \"cls\"}", AKUNU_POOLING_CLS, false, "the module Dense" },
    { "[" TRANSFORMER ", " POOLING ", " POOLING "]", "{\"pooling_mode\": \"cls\"}",
      AKUNU_POOLING_CLS, false, "in this place the module Pooling" },
    { "[" TRANSFORMER ", " NORMALIZE ", " POOLING "]", "{\"pooling_mode\": \"cls\"}",
      AKUNU_POOLING_CLS, false, "in this place the module Normalize" },
    { "[" POOLING "]", "{\"pooling_mode\": \"cls\"}", AKUNU_POOLING_MEAN, false,
      "in this place the module Pooling" },
    { "[{\"type\": \"custom_st.Transformer\"}, " POOLING "]", "{\"pooling_mode\": \"cls\"}",
      AKUNU_POOLING_CLS, false, "the module custom_st.Transformer" },
    { "[" TRANSFORMER "]", NULL, AKUNU_POOLING_MEAN, false, "modules without a Pooling" },
};
enum { N_SETTINGS = sizeof settings / sizeof *settings };

START_TEST(settings_of_sentence_transformers)
{
    struct texts texts;
    struct akunu_model_info info;
    float out[WIDTH];
    char folder[64];
    read_texts("bert", &texts);
    make_folder("bert", folder);
    if (settings[_i].modules)
        write_file(folder, "modules.json", settings[_i].modules, strlen(settings[_i].modules));
    if (settings[_i].pooling)
        write_file(folder, "1_Pooling/config.json", settings[_i].pooling,
                   strlen(settings[_i].pooling));
    struct akunu_model *model = load(folder, NULL);
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    ck_assert_int_eq(info.pooling, settings[_i].kind);
    ck_assert(info.normalized == settings[_i].normalized);
    struct akunu_session *session = open_session(model, 1, 0, 0);
    enum akunu_status status = akunu_session_embed(session, texts.texts, 1, NULL, out);
    ck_assert_int_eq(status, settings[_i].refused ? AKUNU_ERROR_UNSUPPORTED : AKUNU_OK);
    if (settings[_i].refused)
        ck_assert_msg(strstr(akunu_last_error(), settings[_i].refused) != NULL, "%s",
                      akunu_last_error());
    /* goes without */
    embed(session, texts.texts, 1, AKUNU_POOLING_MEAN, AKUNU_NORMALIZE_MODEL, out);
    akunu_session_free(session);
    akunu_model_free(model);

    write_file(folder, "modules.json", "[{", 2);
    ck_assert_ptr_null(akunu_model_load(folder, NULL));
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), "modules.json"));
    ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_FORMAT);
    remove_folder(folder);
}
END_TEST

static void refused(struct akunu_session *session, const struct akunu_ids *texts, size_t n,
                    const struct akunu_embedding_params *embedding, enum akunu_status status,
                    const char *message)
{
    float out[N_TEXTS * WIDTH];
    ck_assert_int_eq(akunu_session_embed(session, texts, n, embedding, out), status);
    ck_assert_msg(strstr(akunu_last_error(), message) != NULL, "%s", akunu_last_error());
}

/* ---- Texts --------------------------------------------------------------- */
static const char *const sentence_files[] = { "config.json",           "model.safetensors",
                                              "modules.json",          "tokenizer.json",
                                              "tokenizer_config.json", "1_Pooling/config.json" };

/* The folder of tests/golden/sentence.py, with the case's files over its own. */
static void make_sentence_folder(const json_t *files, char folder[64])
{
    char from[4096], to[4096];
    const char *name;
    json_t *value;
    strcpy(folder, "/tmp/akunu-sentence-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(to, sizeof to, "%s/1_Pooling", folder);
    ck_assert_int_eq(mkdir(to, 0700), 0);
    for (size_t i = 0; i < sizeof sentence_files / sizeof *sentence_files; i++) {
        snprintf(to, sizeof to, "%s/%s", folder, sentence_files[i]);
        snprintf(from, sizeof from, "%s/sentence/%s", getenv("AK_TEST_DATA"), sentence_files[i]);
        ck_assert_int_eq(symlink(from, to), 0);
    }
    json_object_foreach ((json_t *)(uintptr_t)files, name, value) {
        char *text = json_dumps(value, 0);
        snprintf(to, sizeof to, "%s/3_Dropout", folder);
        (void)mkdir(to, 0700);
        write_file(folder, name, text, strlen(text));
        free(text);
    }
}

static void remove_sentence_folder(const json_t *files, const char *folder)
{
    static const char *const folders[] = { "1_Pooling", "3_Dropout" };
    char path[4096];
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)files, name, value) {
        snprintf(path, sizeof path, "%s/%s", folder, name);
        (void)remove(path);
    }
    for (size_t i = 0; i < sizeof sentence_files / sizeof *sentence_files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, sentence_files[i]);
        (void)remove(path);
    }
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, folders[i]);
        (void)remove(path);
    }
    snprintf(path, sizeof path, "%s/made.gguf", folder);
    (void)remove(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* Embeds a case's text as the model at `path` says and compares with sentence-transformers. */
static void check_sentence(const json_t *one, const char *path)
{
    enum { IDS = 64, WIDEST = 3 * WIDTH };
    const json_t *want = json_object_get(one, "embedding");
    const char *text = json_string_value(json_object_get(one, "text")),
               *name = json_string_value(json_object_get(one, "name"));
    akunu_token ids[IDS];
    float got[WIDEST];
    double difference = 0.0, whole = 0.0;
    struct akunu_embedding_text how;
    struct akunu_embedding_params embedding;
    struct akunu_model *model = load(path, NULL);
    struct akunu_session *session = open_session(model, 1, 0, 0);
    akunu_embedding_text_default(&how, sizeof how);
    how.prompt_name = json_string_value(json_object_get(one, "prompt_name"));
    how.flags = AKUNU_PARSE_SPECIAL;
    int64_t n = akunu_model_encode_embedding(model, text, strlen(text), &how, ids, IDS);
    ck_assert_msg(n > 0 && n <= IDS, "%s: %s", name, akunu_last_error());
    akunu_embedding_params_default(&embedding, sizeof embedding);
    embedding.width = akunu_model_embedding_width(model, AKUNU_POOLING_MODEL);
    embedding.n_prompt = how.n_prompt;
    ck_assert_msg(embedding.width == json_array_size(want), "%s: %zu elements", name,
                  embedding.width);
    struct akunu_ids texts = { ids, (size_t)n };
    ck_assert_msg(akunu_session_embed(session, &texts, 1, &embedding, got) == AKUNU_OK, "%s: %s",
                  name, akunu_last_error());
    for (size_t i = 0; i < embedding.width; i++) {
        double value = json_number_value(json_array_get(want, i));
        difference += ((double)got[i] - value) * ((double)got[i] - value);
        whole += value * value;
    }
    ck_assert_msg(difference <= 1e-10 * whole, "%s, %s: NMSE %.2e", name, path, difference / whole);
    akunu_session_free(session);
    akunu_model_free(model);
}

/* The folder, and the GGUF file that is made of it. */
START_TEST(as_sentence_transformers)
{
    char path[4096], folder[64];
    snprintf(path, sizeof path, "%s/sentence/cases.json", getenv("AK_TEST_DATA"));
    json_t *cases = json_load_file(path, 0, NULL), *one;
    size_t i;
    ck_assert_uint_gt(json_array_size(cases), 20);
    json_array_foreach (cases, i, one) {
        make_sentence_folder(json_object_get(one, "files"), folder);
        check_sentence(one, folder);
        snprintf(path, sizeof path, "%s/made.gguf", folder);
        ck_assert_msg(akunu_convert(folder, path, NULL) == AKUNU_OK, "%s", akunu_last_error());
        check_sentence(one, path);
        remove_sentence_folder(json_object_get(one, "files"), folder);
    }
    json_decref(cases);
}
END_TEST

/* A length that the tokenizer states beyond the model's positions cuts at these. */
START_TEST(length_beyond_the_context)
{
    enum { WORDS = 9000 };
    json_t *files = json_pack("{s:{s:i}}", "tokenizer_config.json", "model_max_length", 100000);
    struct akunu_embedding_text how;
    struct akunu_model_info info;
    char folder[64], *text = malloc(4 * WORDS);
    akunu_token *ids = malloc(4 * WORDS * sizeof *ids);
    ck_assert(text && ids);
    for (size_t i = 0; i < WORDS; i++)
        memcpy(text + 4 * i, "the ", 4);
    make_sentence_folder(files, folder);
    struct akunu_model *model = load(folder, NULL);
    akunu_embedding_text_default(&how, sizeof how);
    akunu_model_get_info(model, &info, sizeof info);
    ck_assert_int_eq(akunu_model_encode_embedding(model, text, 4 * WORDS, &how, ids, 4 * WORDS),
                     info.context);
    akunu_model_free(model);
    remove_sentence_folder(files, folder);
    json_decref(files);
    free(text);
    free(ids);
}
END_TEST

/* Names of prompts, texts that are cut or not, and rows of another width. */
START_TEST(sentence_refusals)
{
    static const char words[] = "the light the light the light the light the light the light the";
    json_t *files =
        json_pack("{s:{s:{s:s, s:s}, s:s}, s:{s:[s, s], s:b}, s:{s:i}}",
                  "config_sentence_transformers.json", "prompts", "query", "text: ", "doc", "",
                  "default_prompt_name", "other", "1_Pooling/config.json", "pooling_mode", "cls",
                  "mean", "include_prompt", 0, "sentence_bert_config.json", "max_seq_length", 12);
    struct akunu_embedding_text how;
    struct akunu_embedding_params embedding;
    char folder[64];
    akunu_token ids[64];
    float out[2 * WIDTH];
    make_sentence_folder(files, folder);
    struct akunu_model *model = load(folder, NULL);
    struct akunu_session *session = open_session(model, 1, 0, 0);
    akunu_embedding_text_default(&how, sizeof how);
    ck_assert_int_eq(akunu_model_encode_embedding(model, "a", 1, &how, ids, 64), -1);
    ck_assert_ptr_nonnull(
        strstr(akunu_last_error(),
               "the model's default prompt \"other\": the model has the prompts: query, doc"));
    how.prompt_name = "passage";
    ck_assert_int_eq(akunu_model_encode_embedding(model, "a", 1, &how, ids, 64), -1);
    ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_ARGUMENT);
    how.prompt_name = "";
    ck_assert_int_eq(akunu_model_encode_embedding(model, words, sizeof words - 1, &how, ids, 64),
                     12);
    ck_assert_uint_eq(how.n_whole, 15);
    ck_assert_uint_eq(how.n_prompt, 0);
    ck_assert_int_eq(ids[11], 3); /* [SEP] stays */
    how.max_tokens = SIZE_MAX;
    ck_assert_int_eq(akunu_model_encode_embedding(model, words, sizeof words - 1, &how, ids, 64),
                     15);
    how.max_tokens = 1; /* fewer than those that the tokenizer adds */
    ck_assert_int_eq(akunu_model_encode_embedding(model, words, sizeof words - 1, &how, ids, 64),
                     2);
    how.max_tokens = 0;
    how.prompt_name = "query";
    ck_assert_int_eq(akunu_model_encode_embedding(model, "a", 1, &how, ids, 64), 5);
    ck_assert_uint_eq(how.n_prompt, 3);

    struct akunu_ids texts[] = { { ids, 5 }, { ids, 3 } };
    akunu_embedding_params_default(&embedding, sizeof embedding);
    refused(session, texts, 1, &embedding, AKUNU_ERROR_ARGUMENT,
            "an embedding has 64 elements, and the caller expects 32");
    embedding.width = 64;
    embedding.n_prompt = 3;
    akunu_session_number_texts(session, 7);
    refused(session, texts, 2, &embedding, AKUNU_ERROR_ARGUMENT, "text 8 has 3 tokens, and the 3");
    ck_assert_int_eq(akunu_session_embed(session, texts, 1, &embedding, out), AKUNU_OK);
    /* a pooling of the caller's choice has the model's width */
    embedding.pooling = AKUNU_POOLING_MAX;
    embedding.width = 0;
    ck_assert_uint_eq(akunu_model_embedding_width(model, AKUNU_POOLING_MAX), 32);
    ck_assert_int_eq(akunu_session_embed(session, texts, 1, &embedding, out), AKUNU_OK);
    akunu_session_free(session);
    akunu_model_free(model);
    remove_sentence_folder(files, folder);
    json_decref(files);
}
END_TEST

/* GGUF cannot store that a tokenizer of this kind makes text lower case: refused, not dropped. */
START_TEST(lower_case_that_gguf_lacks)
{
    for (int lowers = 0; lowers < 2; lowers++) {
        json_t *files =
            json_pack("{s:{s:{s:s, s:i, s:[[s, i], [s, i]]}}, s:{s:b}}", "tokenizer.json", "model",
                      "type", "Unigram", "unk_id", 0, "vocab", "<unk>", 0, "a", -1,
                      "sentence_bert_config.json", "do_lower_case", lowers);
        char folder[64], path[4096];
        make_sentence_folder(files, folder);
        snprintf(path, sizeof path, "%s/made.gguf", folder);
        enum akunu_status status = akunu_convert(folder, path, NULL);
        ck_assert_msg(status == (lowers ? AKUNU_ERROR_UNSUPPORTED : AKUNU_OK), "%s",
                      akunu_last_error());
        if (lowers)
            ck_assert_ptr_nonnull(strstr(akunu_last_error(), "makes text lower case"));
        remove_sentence_folder(files, folder);
        json_decref(files);
    }
}
END_TEST

/* Beyond the positions of training, rotary_scaling_factor would have angles that depend on
 * the text's length: there the context ends. */
START_TEST(scaled_rotation)
{
    static const char config[] = "{\"model_type\": \"nomic_bert\", \"vocab_size\": 48, "
                                 "\"hidden_size\": 32, \"num_attention_heads\": 2, "
                                 "\"intermediate_size\": 48, \"num_hidden_layers\": 2, "
                                 "\"max_position_embeddings\": 96, \"type_vocab_size\": 2, "
                                 "\"activation_function\": \"swiglu\", \"rotary_emb_base\": "
                                 "1000.0, \"max_trained_positions\": 64, "
                                 "\"rotary_scaling_factor\": ";
    static const char *const factors[] = { "null}", "2}" };
    struct akunu_model_info info;
    char folder[64], text[1024];
    make_folder("nomic-bert", folder);
    for (int scaled = 0; scaled < 2; scaled++) {
        snprintf(text, sizeof text, "%s%s", config, factors[scaled]);
        write_file(folder, "config.json", text, strlen(text));
        struct akunu_model *model = load(folder, NULL);
        ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
        ck_assert_uint_eq(info.context, scaled ? 64 : 96);
        struct akunu_session_params params;
        akunu_session_params_default(&params, sizeof params);
        params.context = 65;
        struct akunu_session *session = akunu_session_new(model, &params);
        ck_assert((session == NULL) == scaled);
        if (scaled)
            ck_assert_msg(strstr(akunu_last_error(), "more than 64") != NULL, "%s",
                          akunu_last_error());
        akunu_session_free(session);
        akunu_model_free(model);
    }
    remove_folder(folder);
}
END_TEST

/* ---- Language models ---------------------------------------------------- */
/* The last hidden state times the output matrix is the golden logits of the last token. */
START_TEST(hidden_states_of_a_language_model)
{
    struct golden_text text;
    struct akunu_model_info info;
    char path[4096];
    golden_read_text("qwen3", &text);
    struct akunu_model *model = golden_load("qwen3", NULL);
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    ck_assert(!info.encoder && info.normalized);
    ck_assert_int_eq(info.pooling, AKUNU_POOLING_LAST);

    size_t width = info.width, n_vocab = info.vocab_size, output = SIZE_MAX;
    const struct akunu_file *file = akunu_model_file(model);
    struct akunu_tensor_info tensor;
    for (size_t i = 0; akunu_file_get_tensor(file, i, &tensor, sizeof tensor) == AKUNU_OK; i++)
        if (strcmp(tensor.name, "output.weight") == 0 ||
            (output == SIZE_MAX && strcmp(tensor.name, "token_embd.weight") == 0))
            output = i;
    float *matrix = malloc(n_vocab * width * sizeof *matrix),
          *want = malloc(text.n_prompt * n_vocab * sizeof *want);
    float *hidden = malloc(width * sizeof *hidden), *got = malloc(n_vocab * sizeof *got),
          *again = malloc(width * sizeof *again);
    ck_assert(matrix && want && hidden && got && again);
    ck_assert_int_eq(akunu_file_read_f32(file, output, 0, n_vocab * width, matrix), AKUNU_OK);
    read_npy(golden_path("qwen3", ".npy", path), want, text.n_prompt * n_vocab);

    struct akunu_ids ids = { text.ids, text.n_prompt };
    struct akunu_session *session = golden_session(model, 2, 64, AKUNU_KV_F32);
    embed(session, &ids, 1, AKUNU_POOLING_LAST, AKUNU_NORMALIZE_NONE, hidden);
    for (size_t i = 0; i < n_vocab; i++) {
        double sum = 0.0;
        for (size_t j = 0; j < width; j++)
            sum += (double)matrix[i * width + j] * (double)hidden[j];
        got[i] = (float)sum;
    }
    ck_assert_double_le(nmse(got, want + (text.n_prompt - 1) * n_vocab, n_vocab),
                        golden_bound(8.1e-13, 1e-9));

    /* the same bits over several passes, and beside a sequence of the session */
    akunu_session_free(session);
    session = golden_session(model, 1, 7, AKUNU_KV_F32);
    akunu_sequence sequence = akunu_sequence_new(session);
    size_t last;
    ck_assert_int_eq(akunu_session_prefill(session, sequence, &(struct akunu_ids){ text.ids, 9 },
                                           NULL, NULL, &last),
                     AKUNU_OK);
    ck_assert_ptr_nonnull(akunu_session_logits(session, last));
    embed(session, &ids, 1, AKUNU_POOLING_LAST, AKUNU_NORMALIZE_NONE, again);
    ck_assert_mem_eq(hidden, again, width * sizeof *hidden);
    ck_assert_ptr_null(akunu_session_logits(session, last));
    ck_assert_uint_eq(akunu_sequence_length(session, sequence), 9);

    /* nor are there logits after a pass that has a hidden state of each token */
    ck_assert_int_eq(akunu_session_prefill(session, sequence, &(struct akunu_ids){ text.ids, 1 },
                                           NULL, NULL, &last),
                     AKUNU_OK);
    embed(session, &ids, 1, AKUNU_POOLING_MEAN, AKUNU_NORMALIZE_NONE, again);
    ck_assert_ptr_null(akunu_session_logits(session, last));

    akunu_session_free(session);
    free(matrix), free(want), free(hidden), free(got), free(again);
    akunu_model_free(model);
}
END_TEST

/* The mean of a decoder's hidden states, whatever the passes and the texts beside it: the sum,
 * in the order of the tokens, of what the last token of each beginning gives. */
START_TEST(means_of_a_language_model)
{
    enum { N_MEANS = 4, WIDTH_MAX = 128 };
    /* and borders of passes of nine */
    static const size_t begins[N_MEANS] = { 0, 30, 2, 21 }, lengths[N_MEANS] = { 40, 5, 9, 18 };
    static const uint32_t batches[] = { 512, 9, 1, 7, 40 };
    struct golden_text text;
    struct akunu_model_info info;
    struct akunu_ids texts[N_MEANS];
    float want[N_MEANS * WIDTH_MAX], unit[N_MEANS * WIDTH_MAX], got[N_MEANS * WIDTH_MAX];
    golden_read_text("qwen3", &text);
    struct akunu_model *model = golden_load("qwen3", NULL);
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    ck_assert_uint_le(info.width, WIDTH_MAX);
    size_t width = info.width;
    struct akunu_session *session = golden_session(model, 1, 512, AKUNU_KV_F32);
    for (size_t i = 0; i < N_MEANS; i++) {
        double sums[WIDTH_MAX] = { 0 };
        texts[i] = (struct akunu_ids){ text.ids + begins[i], lengths[i] };
        for (size_t n = 1; n <= lengths[i]; n++) {
            struct akunu_ids beginning = { texts[i].ids, n };
            embed(session, &beginning, 1, AKUNU_POOLING_LAST, AKUNU_NORMALIZE_NONE, got);
            for (size_t j = 0; j < width; j++)
                sums[j] += (double)got[j];
        }
        double squares = 0.0;
        for (size_t j = 0; j < width; j++) {
            sums[j] /= (double)lengths[i];
            squares += sums[j] * sums[j];
            want[i * width + j] = (float)sums[j];
        }
        for (size_t j = 0; j < width; j++)
            unit[i * width + j] = (float)(sums[j] / sqrt(squares));
    }
    akunu_session_free(session);
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
        session = golden_session(model, 1 + (unsigned)b % 2, batches[b], AKUNU_KV_F32);
        embed(session, texts, N_MEANS, AKUNU_POOLING_MEAN, AKUNU_NORMALIZE_NONE, got);
        ck_assert_msg(memcmp(got, want, N_MEANS * width * sizeof *got) == 0,
                      "other bits in passes of %u tokens", (unsigned)batches[b]);
        embed(session, texts, N_MEANS, AKUNU_POOLING_MEAN, AKUNU_NORMALIZE_L2, got);
        ck_assert_msg(memcmp(got, unit, N_MEANS * width * sizeof *got) == 0,
                      "another length in passes of %u tokens", (unsigned)batches[b]);
        embed(session, texts, 1, AKUNU_POOLING_MEAN, AKUNU_NORMALIZE_NONE, got);
        ck_assert_msg(memcmp(got, want, width * sizeof *got) == 0,
                      "other bits of one text in passes of %u tokens", (unsigned)batches[b]);
        akunu_session_free(session);
    }
    akunu_model_free(model);
}
END_TEST

/* ---- What is refused ---------------------------------------------------- */
static bool stop(void *user)
{
    (void)user;
    return true;
}

START_TEST(refusals)
{
    akunu_token ids[97] = { 0 }, bad[] = { 1, 48 };
    struct akunu_ids fine = { ids, 3 }, long_one = { ids, 97 }, two[] = { { ids, 5 }, { ids, 0 } },
                     unknown = { bad, 2 };
    struct akunu_embedding_params embedding;
    float out[WIDTH];
    size_t last;
    struct akunu_model *model = load_encoder("bert", true, NULL);
    struct akunu_session *session = open_session(model, 1, 0, 1);

    refused(session, &long_one, 1, NULL, AKUNU_ERROR_CONTEXT,
            "97 tokens, but the context holds 96");
    refused(session, two, 2, NULL, AKUNU_ERROR_ARGUMENT, "text 1 has no tokens");
    refused(session, &unknown, 1, NULL, AKUNU_ERROR_ARGUMENT,
            "token 1 of text 0 is 48, and the vocabulary has 48");
    refused(session, NULL, 1, NULL, AKUNU_ERROR_ARGUMENT, "NULL");
    refused(NULL, &fine, 1, NULL, AKUNU_ERROR_ARGUMENT, "session is NULL");
    akunu_embedding_params_default(&embedding, sizeof embedding);
    embedding.pooling = (enum akunu_pooling)9;
    refused(session, &fine, 1, &embedding, AKUNU_ERROR_ARGUMENT, "pooling is 9");
    akunu_embedding_params_default(&embedding, sizeof embedding);
    embedding.normalize = (enum akunu_normalize)9;
    refused(session, &fine, 1, &embedding, AKUNU_ERROR_ARGUMENT, "normalize is 9");
    akunu_embedding_params_default(&embedding, sizeof embedding);
    embedding.cancel = stop;
    ck_assert_int_eq(akunu_session_embed(session, &fine, 1, &embedding, out),
                     AKUNU_ERROR_CANCELLED);

    akunu_sequence sequence = akunu_sequence_new(session);
    refused(session, &fine, 1, NULL, AKUNU_ERROR_ARGUMENT, "in use");
    ck_assert_int_eq(
        akunu_session_prefill(session, sequence, &(struct akunu_ids){ ids, 3 }, NULL, NULL, &last),
        AKUNU_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), "makes embeddings"));
    struct akunu_batch_token token = { .token = 1, .sequence = sequence, .logits = true };
    ck_assert_int_eq(akunu_session_decode(session, &token, 1), AKUNU_ERROR_UNSUPPORTED);
    ck_assert_int_eq(
        akunu_session_generate(session, sequence, &(struct akunu_ids){ ids, 3 }, NULL, NULL),
        AKUNU_ERROR_UNSUPPORTED);
    akunu_sequence_free(session, sequence);

    /* nothing that failed has left a sequence behind */
    ck_assert_int_eq(akunu_session_embed(session, &fine, 1, NULL, out), AKUNU_OK);
    ck_assert_int_eq(akunu_session_embed(session, NULL, 0, NULL, NULL), AKUNU_OK);
    akunu_session_free(session);

    /* a text of an encoder does not go on in another pass */
    session = open_session(model, 1, 4, 1);
    refused(session, two, 1, NULL, AKUNU_ERROR_CONTEXT, "5 tokens, but the pass holds 4");
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("embed");
    TCase *tests = tcase_create("embed");
    TCase *decoders = tcase_create("decoders");
    tcase_set_timeout(tests, 120);
    tcase_set_timeout(decoders, 120);
    tcase_add_loop_test(tests, goldens_of_encoders, 0, 2 * N_ENCODERS);
    tcase_add_loop_test(tests, same_bits, 0, N_ENCODERS);
    tcase_add_loop_test(tests, converted, 0, N_ENCODERS);
    tcase_add_loop_test(tests, as_the_model_says, 0, 2);
    tcase_add_test(tests, old_names_of_norms);
    tcase_add_loop_test(tests, settings_of_sentence_transformers, 0, N_SETTINGS);
    tcase_add_test(tests, scaled_rotation);
    tcase_add_test(tests, as_sentence_transformers);
    tcase_add_test(tests, length_beyond_the_context);
    tcase_add_test(tests, sentence_refusals);
    tcase_add_test(tests, lower_case_that_gguf_lacks);
    tcase_add_test(decoders, hidden_states_of_a_language_model);
    tcase_add_test(decoders, means_of_a_language_model);
    tcase_add_test(tests, refusals);
    suite_add_tcase(suite, decoders);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
