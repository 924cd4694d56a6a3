/* Texts in files, and prompts that were run before: the same bits as a cold run, and whatever
 * is wrong with a file, it is not used. */
#include "engine/persist/save.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>
#include <unistd.h>

#include "api/handles.h"
#include "tests/golden_model.h"
#include "tests/process.h"

enum { PROMPT = 150, FILES = 192 };

/* The linker sends the library's calls through this (tests/local.mk). */
static int sync_errno; /* why a sync fails; 0: it does not */

int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
    errno = sync_errno;
    return sync_errno ? -1 : __real_fsync(fd);
}

struct fixture {
    char dir[64], file[80];
    struct akunu_model *model;
    struct akunu_session *session;
    size_t n_vocab;
    char log[512];
    int n_warnings, n_notices;
    size_t n_open; /* files, before the test */
};

static void on_log(enum akunu_log_level level, const char *line, void *user)
{
    struct fixture *f = user;
    f->n_notices += level == AKUNU_LOG_NOTICE;
    if (level < AKUNU_LOG_NOTICE)
        return;
    f->n_warnings += level == AKUNU_LOG_WARN;
    snprintf(f->log, sizeof f->log, "%s", line);
}

static struct akunu_session *open_session(struct fixture *f, struct akunu_model *model,
                                          enum akunu_kv_type kv, unsigned n_threads)
{
    struct akunu_session_params params = golden_params(n_threads, 32, kv);
    params.context = 256;
    params.log = on_log;
    params.user = f;
    struct akunu_session *session = akunu_session_new(model, &params);
    ck_assert_msg(session != NULL, "%s", akunu_last_error());
    return session;
}

static void set_up_with(struct fixture *f, const char *name, enum akunu_kv_type kv)
{
    struct akunu_model_info info;
    *f = (struct fixture){ .dir = "/tmp/akunu-prompts-XXXXXX" };
    ck_assert_ptr_nonnull(mkdtemp(f->dir));
    snprintf(f->file, sizeof f->file, "%s/text", f->dir);
    f->model = golden_load(name, NULL);
    ck_assert_int_eq(akunu_model_get_info(f->model, &info, sizeof info), AKUNU_OK);
    f->n_vocab = info.vocab_size;
    f->session = open_session(f, f->model, kv, 2);
    f->n_warnings = 0;
    f->n_open = test_count_open();
}

static void set_up(struct fixture *f)
{
    set_up_with(f, "qwen2", AKUNU_KV_F16);
}

/* Names of the files that end in `ending`; how many. */
static int files_of(const struct fixture *f, const char *ending, char names[FILES][512])
{
    int n = 0;
    DIR *dir = opendir(f->dir);
    for (struct dirent *at; (at = readdir(dir)) != NULL;) {
        size_t length = strlen(at->d_name), n_ending = strlen(ending);
        if (length < n_ending || strcmp(at->d_name + length - n_ending, ending) != 0 ||
            at->d_name[0] == '.')
            continue;
        ck_assert_int_lt(n, FILES);
        snprintf(names[n++], 512, "%s/%s", f->dir, at->d_name);
    }
    closedir(dir);
    return n;
}

static int n_prompts(const struct fixture *f)
{
    char names[FILES][512];
    return files_of(f, ".prompt", names);
}

static void tear_down(struct fixture *f)
{
    char names[FILES][512];
    ck_assert_uint_eq(test_count_open(), f->n_open);
    chmod(f->dir, 0700);
    for (int i = 0, n = files_of(f, "", names); i < n; i++)
        unlink(names[i]);
    rmdir(f->dir);
    akunu_session_free(f->session);
    akunu_model_free(f->model);
}

static struct akunu_prompt_cache cache_of(struct fixture *f)
{
    struct akunu_prompt_cache cache;
    akunu_prompt_cache_default(&cache, sizeof cache);
    cache.dir = f->dir;
    cache.min_tokens = 10;
    return cache;
}

/* A text: that of another number is another one from token `same` on. */
static void text_of(const struct fixture *f, int number, int same, akunu_token ids[PROMPT])
{
    for (int i = 0; i < PROMPT; i++)
        ids[i] = (akunu_token)((size_t)(i * 31 + (i >= same ? number * 7 : 0) + 5) % f->n_vocab);
}

/* Runs what is left of n tokens and gives the logits of all of these; how many were restored. */
static size_t run(struct fixture *f, struct akunu_session *session,
                  const struct akunu_prompt_cache *cache, const akunu_token *ids, size_t n,
                  float *logits, akunu_sequence *sequence)
{
    size_t n_restored = 0, last;
    *sequence = akunu_sequence_new(session);
    ck_assert_int_ge(*sequence, 0);
    if (cache)
        ck_assert_msg(akunu_sequence_restore(session, *sequence, &(struct akunu_ids){ ids, n },
                                             cache, &n_restored) == AKUNU_OK,
                      "%s", akunu_last_error());
    ck_assert_uint_lt(n_restored, n);
    ck_assert_uint_eq(akunu_sequence_length(session, *sequence), n_restored);
    ck_assert_int_eq(akunu_session_prefill(session, *sequence,
                                           &(struct akunu_ids){ ids + n_restored, n - n_restored },
                                           NULL, NULL, &last),
                     AKUNU_OK);
    memcpy(logits, akunu_session_logits(session, last), f->n_vocab * sizeof *logits);
    return n_restored;
}

/* The same bits as without the cache, for this token and the ones after it. */
static size_t check_same(struct fixture *f, struct akunu_session *session,
                         const struct akunu_prompt_cache *cache, const akunu_token *ids, size_t n)
{
    float *cold = malloc(f->n_vocab * sizeof *cold), *warm = malloc(f->n_vocab * sizeof *warm);
    akunu_sequence a, b;
    run(f, session, NULL, ids, n, cold, &a);
    size_t n_restored = run(f, session, cache, ids, n, warm, &b);
    ck_assert_mem_eq(warm, cold, f->n_vocab * sizeof *cold);
    for (akunu_token token = 1; token < 20; token++) {
        struct akunu_batch_token pass[] = { { token, a, true }, { token, b, true } };
        ck_assert_int_eq(akunu_session_decode(session, pass, 2), AKUNU_OK);
        ck_assert_mem_eq(akunu_session_logits(session, 0), akunu_session_logits(session, 1),
                         f->n_vocab * sizeof *cold);
    }
    akunu_sequence_free(session, a);
    akunu_sequence_free(session, b);
    free(cold);
    free(warm);
    return n_restored;
}

static void keep(struct fixture *f, const struct akunu_prompt_cache *cache, const akunu_token *ids,
                 size_t n)
{
    float *logits = malloc(f->n_vocab * sizeof *logits);
    akunu_sequence sequence;
    run(f, f->session, NULL, ids, n, logits, &sequence);
    ck_assert_msg(akunu_sequence_keep(f->session, sequence, n, cache) == AKUNU_OK, "%s",
                  akunu_last_error());
    akunu_sequence_free(f->session, sequence);
    free(logits);
}

/* ---- The same bits ------------------------------------------------------ */
START_TEST(same_bits)
{
    struct fixture f;
    akunu_token ids[PROMPT], other[PROMPT];
    const char *name = golden_at(_i)->name;
    set_up_with(&f, name, AKUNU_KV_F16);
    struct akunu_prompt_cache cache = cache_of(&f);
    bool possible = ak_save_check(f.session->inner, NULL) == AKUNU_OK;
    text_of(&f, 0, 0, ids);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids, 100), 0);
    keep(&f, &cache, ids, 100);
    ck_assert_int_eq(n_prompts(&f), possible);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids, 100), possible ? 99 : 0);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids, 120), possible ? 100 : 0);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids, 64), possible ? 63 : 0);
    text_of(&f, 1, 70, other);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, other, 110), possible ? 70 : 0);
    ck_assert_int_eq(f.n_warnings, 0);
    tear_down(&f);
}
END_TEST

/* Every type of keys and values; another number of threads reads them. */
START_TEST(types_of_caches)
{
    struct fixture f;
    akunu_token ids[PROMPT];
    set_up_with(&f, "qwen3", (enum akunu_kv_type)_i);
    struct akunu_prompt_cache cache = cache_of(&f);
    text_of(&f, 0, 0, ids);
    keep(&f, &cache, ids, 130);
    struct akunu_session *other = open_session(&f, f.model, (enum akunu_kv_type)_i, 1);
    ck_assert_uint_eq(check_same(&f, other, &cache, ids, 140), 130);
    akunu_session_free(other);
    tear_down(&f);
}
END_TEST

/* What one instruction set wrote all others read. */
START_TEST(all_instruction_sets)
{
    struct fixture f;
    akunu_token ids[PROMPT];
    const char *cpu;
    set_up(&f);
    struct akunu_prompt_cache cache = cache_of(&f);
    text_of(&f, 0, 0, ids);
    keep(&f, &cache, ids, 100);
    for (size_t i = 0; (cpu = akunu_cpu_name(i)) != NULL; i++) {
        struct akunu_model *model = golden_load("qwen2", cpu);
        struct akunu_session *session = open_session(&f, model, AKUNU_KV_F16, 1);
        ck_assert_uint_eq(check_same(&f, session, &cache, ids, 110), 100);
        akunu_session_free(session);
        akunu_model_free(model);
    }
    tear_down(&f);
}
END_TEST

/* ---- Keys: no session takes pages of another kind ----------------------- */
enum { N_TYPES = AKUNU_KV_Q5_1 + 1, N_KINDS = N_TYPES * N_TYPES, SHORT = 20 };

static struct akunu_session *open_kind(struct fixture *f, const struct akunu_model *model, int kind)
{
    struct akunu_session_params params = golden_params(1, 32, AKUNU_KV_F16);
    params.context = 128;
    params.k_type = (enum akunu_kv_type)(kind / N_TYPES);
    params.v_type = (enum akunu_kv_type)(kind % N_TYPES);
    params.log = on_log;
    params.user = f;
    struct akunu_session *session = akunu_session_new(model, &params);
    ck_assert_msg(session != NULL, "%s", akunu_last_error());
    return session;
}

static void keep_with(struct fixture *f, struct akunu_session *session,
                      const struct akunu_prompt_cache *cache, const akunu_token *ids)
{
    struct akunu_session *own = f->session;
    f->session = session;
    keep(f, cache, ids, SHORT);
    f->session = own;
}

/* How many tokens of n_ids a session takes from the cache. */
static size_t count_restored(struct akunu_session *session, const struct akunu_prompt_cache *cache,
                             const akunu_token *ids, size_t n_ids)
{
    size_t n;
    akunu_sequence sequence = akunu_sequence_new(session);
    ck_assert_int_eq(
        akunu_sequence_restore(session, sequence, &(struct akunu_ids){ ids, n_ids }, cache, &n),
        AKUNU_OK);
    ck_assert_uint_eq(akunu_sequence_length(session, sequence), n);
    akunu_sequence_free(session, sequence);
    return n;
}

/* Keys and values each have a type of their own. F16 and BF16 have pages of one size, and so
 * have two types that change places. */
START_TEST(types_are_told_apart)
{
    struct fixture f;
    akunu_token ids[PROMPT];
    char files[N_KINDS][96];
    set_up_with(&f, "qwen3", AKUNU_KV_F16);
    struct akunu_prompt_cache folder = cache_of(&f), file = folder;
    text_of(&f, 0, 0, ids);
    for (int kind = 0; kind < N_KINDS; kind++) {
        struct akunu_session *session = open_kind(&f, f.model, kind);
        snprintf(files[kind], sizeof files[kind], "%s/%d", f.dir, kind);
        file.file = files[kind];
        keep_with(&f, session, &file, ids);
        keep_with(&f, session, &folder, ids);
        akunu_session_free(session);
    }
    ck_assert_int_eq(n_prompts(&f), N_KINDS);
    for (int kind = 0; kind < N_KINDS; kind++) {
        struct akunu_session *session = open_kind(&f, f.model, kind);
        ck_assert_uint_eq(check_same(&f, session, &folder, ids, SHORT), SHORT - 1);
        ck_assert_int_eq(f.n_warnings, 0);
        for (int other = 0; other < N_KINDS; other++) {
            file.file = files[other];
            ck_assert_msg(count_restored(session, &file, ids, SHORT) ==
                              (kind == other ? SHORT - 1 : 0),
                          "pages of the types %d %d for those of %d %d", other / N_TYPES,
                          other % N_TYPES, kind / N_TYPES, kind % N_TYPES);
            ck_assert_int_eq(f.n_warnings, kind != other);
            f.n_warnings = 0;
        }
        akunu_session_free(session);
    }
    tear_down(&f);
}
END_TEST

/* Metadata that users give in place of the file's: {overrides} of the model that keeps a text
 * and of the one that looks for it. */
static const struct {
    const char *kept[3], *other[3];
    bool same;
} overrides[] = {
    { { NULL }, { NULL }, true },
    { { "qwen3.rope.freq_base=float:500", NULL },
      { "qwen3.rope.freq_base=float:500", NULL },
      true },
    { { NULL }, { "qwen3.rope.freq_base=float:500", NULL }, false },
    { { "qwen3.rope.freq_base=float:500", NULL }, { NULL }, false },
    { { "qwen3.rope.freq_base=float:500", NULL },
      { "qwen3.rope.freq_base=float:500.0001", NULL },
      false },
    { { NULL },
      { "qwen3.rope.scaling.type=str:linear", "qwen3.rope.scaling.factor=float:4", NULL },
      false },
    { { "qwen3.rope.scaling.type=str:linear", "qwen3.rope.scaling.factor=float:4", NULL },
      { "qwen3.rope.scaling.type=str:linear", "qwen3.rope.scaling.factor=float:8", NULL },
      false },
    { { NULL }, { "qwen3.attention.layer_norm_rms_epsilon=float:0.01", NULL }, false },
    { { "qwen3.context_length=int:200", NULL }, { "qwen3.context_length=int:201", NULL }, false },
    { { "general.name=str:a", NULL }, { "general.name=str:b", NULL }, false },
    { { "tokenizer.ggml.add_bos_token=bool:true", NULL },
      { "tokenizer.ggml.add_bos_token=bool:false", NULL },
      false },
};
enum { N_OVERRIDES = sizeof overrides / sizeof *overrides };

static struct akunu_model *load_path(const char *path, const char *const *override_kv)
{
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.n_threads = 1;
    params.no_cache = true;
    params.override_kv = override_kv;
    struct akunu_model *model = akunu_model_load(path, &params);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    return model;
}

START_TEST(overrides_are_told_apart)
{
    struct fixture f;
    akunu_token ids[PROMPT];
    char path[4096];
    set_up_with(&f, "qwen3", AKUNU_KV_F16);
    struct akunu_prompt_cache cache = cache_of(&f);
    text_of(&f, 0, 0, ids);
    for (int other = 0; other < 2; other++) {
        struct akunu_model *model = load_path(golden_path("qwen3", ".gguf", path),
                                              other ? overrides[_i].other : overrides[_i].kept);
        struct akunu_session *session = open_session(&f, model, AKUNU_KV_F16, 1);
        if (other)
            ck_assert_uint_eq(check_same(&f, session, &cache, ids, SHORT),
                              overrides[_i].same ? SHORT - 1 : 0);
        else
            keep_with(&f, session, &cache, ids);
        akunu_session_free(session);
        akunu_model_free(model);
    }
    tear_down(&f);
}
END_TEST

/* Every value of the rotation that users give in place of the model's. */
START_TEST(rotations_are_told_apart)
{
    static const struct {
        size_t offset;
        float value;
    } values[] = {
        { offsetof(struct akunu_rope, freq_base), 500.0f },
        { offsetof(struct akunu_rope, freq_scale), 0.5f },
        { offsetof(struct akunu_rope, yarn_ext_factor), 0.5f },
        { offsetof(struct akunu_rope, yarn_attn_factor), 1.5f },
        { offsetof(struct akunu_rope, yarn_beta_fast), 16.0f },
        { offsetof(struct akunu_rope, yarn_beta_slow), 2.0f },
    };
    enum { N_VALUES = sizeof values / sizeof *values, SCALING = N_VALUES, CONTEXT, OWN };
    struct fixture f;
    akunu_token ids[PROMPT];
    char path[4096];
    set_up_with(&f, "qwen3", AKUNU_KV_F16);
    struct akunu_prompt_cache cache = cache_of(&f);
    text_of(&f, 0, 0, ids);
    for (size_t kind = 0; kind <= OWN; kind++) {
        struct akunu_load_params params;
        akunu_load_params_default(&params, sizeof params);
        params.n_threads = 1;
        params.no_cache = true;
        if (kind < N_VALUES)
            memcpy((char *)&params.rope + values[kind].offset, &values[kind].value, sizeof(float));
        else if (kind == SCALING)
            params.rope.scaling = AKUNU_ROPE_SCALING_LINEAR;
        else if (kind == CONTEXT)
            params.rope.yarn_orig_ctx = 100;
        struct akunu_model *model = akunu_model_load(golden_path("qwen3", ".gguf", path), &params);
        ck_assert_msg(model != NULL, "%s", akunu_last_error());
        struct akunu_session *session = open_session(&f, model, AKUNU_KV_F16, 1);
        ck_assert_msg(check_same(&f, session, &cache, ids, SHORT) == 0, "kind %zu", kind);
        keep_with(&f, session, &cache, ids);
        ck_assert_uint_eq(check_same(&f, session, &cache, ids, SHORT), SHORT - 1);
        akunu_session_free(session);
        akunu_model_free(model);
    }
    ck_assert_int_eq(n_prompts(&f), OWN + 1);
    tear_down(&f);
}
END_TEST

/* LongRoPE rotates keys in another way where the context is at most the original one, 16. */
START_TEST(contexts_are_told_apart)
{
    enum { N = 12 };
    struct fixture f;
    akunu_token ids[PROMPT];
    set_up_with(&f, "phi3", AKUNU_KV_F16);
    struct akunu_prompt_cache cache = cache_of(&f);
    text_of(&f, 0, 0, ids);
    for (uint32_t context = 16; context <= 48; context += 16) {
        struct akunu_session_params params = golden_params(1, 32, AKUNU_KV_F16);
        params.context = context;
        params.max_sequences = 1;
        struct akunu_session *session = akunu_session_new(f.model, &params);
        ck_assert_msg(session != NULL, "%s", akunu_last_error());
        ck_assert_uint_eq(count_restored(session, &cache, ids, N), context < 48 ? 0 : N - 1);
        float *logits = malloc(f.n_vocab * sizeof *logits);
        akunu_sequence sequence;
        run(&f, session, NULL, ids, N, logits, &sequence);
        ck_assert_int_eq(akunu_sequence_keep(session, sequence, N, &cache), AKUNU_OK);
        akunu_session_free(session);
        free(logits);
    }
    ck_assert_int_eq(n_prompts(&f), 2);
    tear_down(&f);
}
END_TEST

/* Adapters, their scales, and their order, which is that of sums. */
START_TEST(adapters_are_told_apart)
{
    char paths[2][4096], path[4096];
    golden_path("../adapters/", "llama.gguf", paths[0]);
    golden_path("../adapters/", "llama-peft", paths[1]);
    const struct {
        size_t n;
        struct akunu_adapter adapters[2];
        bool is_base;
    } kinds[] = { { 0, { { 0 } }, false },
                  { 1, { { paths[0], 1 } }, false },
                  { 1, { { paths[1], 1 } }, false },
                  { 1, { { paths[0], 0.5f } }, false },
                  { 2, { { paths[0], 1 }, { paths[1], 1 } }, false },
                  { 2, { { paths[1], 1 }, { paths[0], 1 } }, false },
                  { 2, { { paths[0], 0 }, { paths[1], 0 } }, true } };
    enum { N_MODELS = sizeof kinds / sizeof *kinds };
    struct fixture f;
    akunu_token ids[PROMPT];
    set_up_with(&f, "llama-f32", AKUNU_KV_F16);
    struct akunu_prompt_cache cache = cache_of(&f);
    text_of(&f, 0, 0, ids);
    for (size_t kind = 0; kind < N_MODELS; kind++) {
        struct akunu_load_params params;
        akunu_load_params_default(&params, sizeof params);
        params.n_threads = 1;
        params.no_cache = true;
        params.adapters = kinds[kind].adapters;
        params.n_adapters = kinds[kind].n;
        struct akunu_model *model =
            akunu_model_load(golden_path("llama-f32", ".gguf", path), &params);
        ck_assert_msg(model != NULL, "%s", akunu_last_error());
        struct akunu_session *session = open_session(&f, model, AKUNU_KV_F16, 1);
        ck_assert_msg(check_same(&f, session, &cache, ids, SHORT) ==
                          (kinds[kind].is_base ? SHORT - 1 : 0),
                      "kind %zu", kind);
        keep_with(&f, session, &cache, ids);
        ck_assert_uint_eq(check_same(&f, session, &cache, ids, SHORT), SHORT - 1);
        akunu_session_free(session);
        akunu_model_free(model);
    }
    ck_assert_int_eq(n_prompts(&f), N_MODELS - 1);
    tear_down(&f);
}
END_TEST

static void write_copy(const char *path, const uint8_t *bytes, size_t n,
                       const struct timespec times[2])
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A model of the same shape that somebody trained on: its file has the same size, and differs
 * by its time (0) or by its metadata (1). */
START_TEST(weights_are_told_apart)
{
    struct fixture f;
    akunu_token ids[PROMPT];
    char path[4096], paths[2][96];
    set_up_with(&f, "qwen3", AKUNU_KV_F16);
    struct akunu_prompt_cache cache = cache_of(&f);
    text_of(&f, 0, 0, ids);
    FILE *file = fopen(golden_path("qwen3", ".gguf", path), "rb");
    ck_assert_ptr_nonnull(file);
    static uint8_t bytes[1 << 20];
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    ck_assert_uint_lt(n, sizeof bytes);
    for (int other = 0; other < 2; other++) {
        struct timespec times[2] = { { .tv_sec = 1700000000 },
                                     { .tv_sec = 1700000000, .tv_nsec = _i == 0 ? other : 0 } };
        snprintf(paths[other], sizeof paths[other], "%s/%d.gguf", f.dir, other);
        for (size_t i = n / 2; other && i < n; i += 2) /* BF16 of the second half of the tensors */
            bytes[i] ^= 0x3c;
        uint8_t *name = other && _i == 1 ? memmem(bytes, n, "qwen3-bf16", 10) : NULL;
        ck_assert(_i == 0 || !other || name);
        if (name)
            name[0] = 'Q';
        write_copy(paths[other], bytes, n, times);
        struct akunu_model *model = load_path(paths[other], NULL);
        struct akunu_session *session = open_session(&f, model, AKUNU_KV_F16, 1);
        ck_assert_uint_eq(check_same(&f, session, &cache, ids, SHORT), 0);
        keep_with(&f, session, &cache, ids);
        ck_assert_uint_eq(check_same(&f, session, &cache, ids, SHORT), SHORT - 1);
        akunu_session_free(session);
        akunu_model_free(model);
    }
    ck_assert_int_eq(n_prompts(&f), 2);
    tear_down(&f);
}
END_TEST

/* With relaxed rounding keys and values depend on the instruction set; and so they do on how
 * prompts are run. */
START_TEST(rounding_is_told_apart)
{
    struct fixture f;
    akunu_token ids[PROMPT];
    char path[4096];
    struct akunu_load_params params;
    enum { EXACT, RELAXED, RELAXED_SCALAR, OWN, KINDS };
    set_up(&f);
    struct akunu_prompt_cache cache = cache_of(&f);
    bool scalar_only = akunu_cpu_name(1) == NULL;
    text_of(&f, 0, 0, ids);
    for (int kind = 0; kind < KINDS; kind++) {
        if (kind == RELAXED_SCALAR && scalar_only)
            continue;
        akunu_load_params_default(&params, sizeof params);
        params.n_threads = 1;
        params.no_cache = true;
        params.relaxed = kind == RELAXED || kind == RELAXED_SCALAR;
        /* not what AKUNU_CPU says */
        params.cpu = kind == RELAXED_SCALAR ? "scalar" : akunu_cpu_best();
        params.prefill = kind == OWN ? AKUNU_PREFILL_OWN : AKUNU_PREFILL_AUTO;
        struct akunu_model *model = akunu_model_load(golden_path("qwen2", ".gguf", path), &params);
        ck_assert_msg(model != NULL, "%s", akunu_last_error());
        struct akunu_session *session = open_session(&f, model, AKUNU_KV_F16, 1);
        ck_assert_msg(count_restored(session, &cache, ids, SHORT) == 0, "kind %d", kind);
        keep_with(&f, session, &cache, ids);
        ck_assert_uint_eq(count_restored(session, &cache, ids, SHORT), SHORT - 1);
        akunu_session_free(session);
        akunu_model_free(model);
    }
    ck_assert_int_eq(n_prompts(&f), scalar_only ? KINDS - 1 : KINDS);
    tear_down(&f);
}
END_TEST

/* What a session computes keys and values with is in its key: every bit of it counts. */
START_TEST(bits_are_told_apart)
{
    struct fixture f;
    struct ak_store_key key, other;
    struct ak_model_adapter adapter = { .bytes = 1 };
    set_up(&f);
    struct ak_model *m = f.model->inner;
    struct ak_kv_shape *shape = &f.session->inner->kv.shape;
    const struct {
        const char *name;
        void *at;
        size_t n;
    } fields[] = {
#define FIELD(of) { #of, &(of), sizeof(of) }
        FIELD(m->rope.scaling),
        FIELD(m->rope.yarn_orig_ctx),
        FIELD(m->rope.freq_base),
        FIELD(m->rope.freq_scale),
        FIELD(m->rope.yarn_ext_factor),
        FIELD(m->rope.yarn_attn_factor),
        FIELD(m->rope.yarn_beta_fast),
        FIELD(m->rope.yarn_beta_slow),
        FIELD(adapter.bytes),
        FIELD(adapter.mtime_ns),
        FIELD(adapter.hash[0]),
        FIELD(adapter.hash[1]),
        FIELD(adapter.scale),
        FIELD(shape->n_layers),
        FIELD(shape->n_kv_heads),
        FIELD(shape->head_dim),
        FIELD(m->prefill),
#undef FIELD
    };
    struct ak_model_adapter *adapters = m->adapters;
    size_t n_adapters = m->n_adapters;
    m->adapters = &adapter;
    m->n_adapters = 1;
    ak_save_key(f.session->inner, &key);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        for (size_t bit = 0; bit < 8 * fields[i].n; bit++) {
            uint8_t *byte = (uint8_t *)fields[i].at + bit / 8, kept = *byte;
            *byte ^= (uint8_t)(1 << bit % 8);
            ak_save_key(f.session->inner, &other);
            *byte = kept;
            ck_assert_msg(memcmp(&key, &other, sizeof key) != 0, "bit %zu of %s", bit,
                          fields[i].name);
        }
    ak_save_key(f.session->inner, &other);
    ck_assert_mem_eq(&key, &other, sizeof key);
    m->n_adapters = 0;
    ak_save_key(f.session->inner, &other);
    ck_assert_int_ne(memcmp(&key, &other, sizeof key), 0);
    m->adapters = adapters;
    m->n_adapters = n_adapters;
    tear_down(&f);
}
END_TEST

/* ---- What is kept ------------------------------------------------------- */
/* The places of a file's parts (engine/persist/save.h): no page lies where hashes are. */
START_TEST(parts_of_files)
{
    struct fixture f;
    set_up(&f);
    uint64_t page_bytes = ak_kv_page_bytes(&f.session->inner->kv.shape);
    for (uint32_t n = 1; n < 4200; n++) {
        uint64_t n_pages = (n + 63) / 64, hashes = 4096 + (4 * (uint64_t)n + 63) / 64 * 64,
                 pages = (hashes + 16 * n_pages + 4095) / 4096 * 4096;
        ck_assert_uint_eq(ak_save_bytes(f.session->inner, n), pages + n_pages * page_bytes - 4096);
    }
    tear_down(&f);
}
END_TEST

START_TEST(longer_texts)
{
    struct fixture f;
    akunu_token ids[PROMPT];
    set_up(&f);
    struct akunu_prompt_cache cache = cache_of(&f);
    text_of(&f, 0, 0, ids);
    keep(&f, &cache, ids, 9); /* shorter than the least */
    ck_assert_int_eq(n_prompts(&f), 0);
    keep(&f, &cache, ids, 50);
    keep(&f, &cache, ids, 50);
    keep(&f, &cache, ids, 90); /* nearly all of it is kept */
    ck_assert_int_eq(n_prompts(&f), 1);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids, 100), 50);
    keep(&f, &cache, ids, 140); /* in place of its beginning */
    ck_assert_int_eq(n_prompts(&f), 1);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids, 150), 140);
    tear_down(&f);
}
END_TEST

/* Of several texts with a common beginning the longest one is taken, in whatever order the folder
 * lists them. No file stays open. */
START_TEST(longest_beginning)
{
    static const struct {
        int same; /* tokens of text 0 */
        size_t n; /* tokens kept */
    } kept[] = { { 150, 100 }, { 70, 140 }, { 30, 140 }, { 12, 140 } };
    struct fixture f;
    akunu_token ids[PROMPT];
    set_up(&f);
    struct akunu_prompt_cache cache = cache_of(&f);
    for (int i = 0; i < 4; i++) {
        text_of(&f, i, kept[i].same, ids);
        keep(&f, &cache, ids, kept[i].n);
    }
    ck_assert_int_eq(n_prompts(&f), 4);
    size_t n_open = test_count_open();
    for (int i = 0; i < 4; i++) {
        text_of(&f, i, kept[i].same, ids);
        ck_assert_uint_eq(count_restored(f.session, &cache, ids, PROMPT), kept[i].n);
        text_of(&f, 9, kept[i].same, ids); /* of another text, as much as is the same */
        ck_assert_uint_eq(count_restored(f.session, &cache, ids, PROMPT),
                          i == 0 ? kept[i].n : (size_t)kept[i].same);
    }
    text_of(&f, 9, 0, ids); /* of one without the first token nothing is */
    ck_assert_uint_eq(count_restored(f.session, &cache, ids, PROMPT), 0);
    ck_assert_uint_eq(test_count_open(), n_open);
    tear_down(&f);
}
END_TEST

/* A file is written for 64 new tokens, and for no fewer; a prompt has the least length or more. */
START_TEST(least_lengths)
{
    struct fixture f;
    akunu_token ids[PROMPT];
    size_t n = 7;
    set_up(&f);
    struct akunu_prompt_cache cache = cache_of(&f);
    text_of(&f, 0, 0, ids);
    keep(&f, &cache, ids, 10);
    ck_assert_int_eq(n_prompts(&f), 1);
    ck_assert_uint_eq(count_restored(f.session, &cache, ids, 10), 9);
    ck_assert_uint_eq(count_restored(f.session, &cache, ids, 9), 0);
    cache.min_tokens = 0;
    ck_assert_uint_eq(count_restored(f.session, &cache, ids, 2), 1);
    ck_assert_uint_eq(count_restored(f.session, &cache, ids, 1), 0);
    keep(&f, &cache, ids, 10 + 63);
    ck_assert_uint_eq(count_restored(f.session, &cache, ids, PROMPT), 10);
    keep(&f, &cache, ids, 10 + 64);
    ck_assert_uint_eq(count_restored(f.session, &cache, ids, PROMPT), 10 + 64);
    ck_assert_int_eq(n_prompts(&f), 1);
    for (size_t n_min = 73; n_min <= 75; n_min++) { /* 74 are worth it if that many are wanted */
        int32_t at_least = ak_session_kv_sequence_new(&f.session->inner->kv);
        ck_assert_int_eq(ak_prompt_cache_restore(f.session->inner, at_least, ids, PROMPT, n_min,
                                                 &cache, &n, NULL),
                         AKUNU_OK);
        ck_assert_uint_eq(n, n_min <= 74 ? 74 : 0);
        ak_session_kv_sequence_free(&f.session->inner->kv, at_least);
    }

    akunu_sequence sequence = akunu_sequence_new(f.session);
    size_t last;
    ck_assert_int_eq(akunu_sequence_keep(f.session, sequence, 0, &cache), AKUNU_OK);
    ck_assert_int_eq(akunu_session_prefill(f.session, sequence, &(struct akunu_ids){ ids, 5 }, NULL,
                                           NULL, &last),
                     AKUNU_OK);
    ck_assert_int_eq(akunu_sequence_keep(f.session, sequence, 6, &cache), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), "has 5 tokens, and 6 are to be kept"));
    ck_assert_int_eq(
        akunu_sequence_restore(f.session, sequence, &(struct akunu_ids){ ids, 100 }, &cache, &n),
        AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), "has 5 tokens, and must be empty"));
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(n_prompts(&f), 1);

    struct akunu_session_params small = golden_params(1, 32, AKUNU_KV_F16);
    small.max_sequences = 1; /* the last context that holds it, and one that does not */
    for (small.context = 73; small.context <= 74; small.context++) {
        struct akunu_session *session = akunu_session_new(f.model, &small);
        ck_assert_uint_eq(count_restored(session, &cache, ids, 100), small.context < 74 ? 0 : 74);
        akunu_session_free(session);
    }
    tear_down(&f);
}
END_TEST

/* Says once per folder that prompts are kept; never of a file that the caller names. */
START_TEST(noticed)
{
    struct fixture f;
    akunu_token ids[2][PROMPT];
    char names[FILES][512], line[512], size[AK_STORE_SIZE_BYTES];
    struct stat st;
    set_up(&f);
    struct akunu_prompt_cache cache = cache_of(&f), own = cache;
    for (int i = 0; i < 2; i++)
        text_of(&f, i, 0, ids[i]);
    own.file = f.file;
    keep(&f, &own, ids[0], 100);
    ck_assert_int_eq(f.n_notices, 0);
    keep(&f, &cache, ids[0], 100);
    ck_assert_int_eq(f.n_notices, 1);
    ck_assert_int_eq(files_of(&f, ".prompt", names), 1);
    ck_assert_int_eq(stat(names[0], &st), 0);
    snprintf(line, sizeof line,
             "prompts are kept for later runs: this one of 100 tokens, %s, in %s, where they may "
             "take 2.0 GB",
             ak_store_show_size((uint64_t)st.st_size - AK_STORE_HEADER_BYTES, size), f.dir);
    ck_assert_str_eq(f.log, line);
    keep(&f, &cache, ids[1], 100);
    ck_assert_int_eq(f.n_notices, 1);
    ck_assert_int_eq(f.n_warnings, 0);
    tear_down(&f);
}
END_TEST

/* Those that were not used for longest go first. */
START_TEST(bounded)
{
    struct fixture f;
    akunu_token ids[4][PROMPT];
    char names[FILES][512];
    set_up(&f);
    struct akunu_prompt_cache cache = cache_of(&f);
    for (int i = 0; i < 4; i++)
        text_of(&f, i, 0, ids[i]);
    for (int i = 0; i < 3; i++) {
        keep(&f, &cache, ids[i], 100);
        for (int j = 0, n = files_of(&f, ".prompt", names); j < n; j++) { /* all a minute older */
            struct stat st;
            ck_assert_int_eq(stat(names[j], &st), 0);
            struct timespec times[2] = { { .tv_sec = st.st_atim.tv_sec - 60 },
                                         { .tv_nsec = UTIME_OMIT } };
            ck_assert_int_eq(utimensat(AT_FDCWD, names[j], times, 0), 0);
        }
    }
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids[0], 100), 99); /* used now */
    struct stat st;
    ck_assert_int_eq(files_of(&f, ".prompt", names), 3);
    ck_assert_int_eq(stat(names[0], &st), 0);
    cache.max_bytes = (uint64_t)st.st_blocks * 512 * 5 / 2; /* of two and a half */
    keep(&f, &cache, ids[3], 100);
    ck_assert_int_eq(n_prompts(&f), 2);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids[0], 100), 99);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids[3], 100), 99);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids[1], 100), 0);
    ck_assert_int_eq(f.n_warnings, 0);
    cache.max_bytes = 1000;
    keep(&f, &cache, ids[2], 100);
    ck_assert_str_eq(f.log, "prompt cache: not used: this prompt: it would take more than all kept "
                            "prompts may");
    tear_down(&f);
}
END_TEST

/* ---- Damage ------------------------------------------------------------- */
static void change_byte(const char *path, off_t at)
{
    uint8_t byte;
    struct stat st;
    int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
    byte ^= 0x40;
    ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    const struct timespec times[2] = { st.st_atim, st.st_mtim }; /* as a disk would do it */
    ck_assert_int_eq(futimens(fd, times), 0);
    close(fd);
}

/* A header that is whole and says another number of tokens. */
static void set_token_count(const char *path, uint64_t n_tokens)
{
    uint8_t page[AK_STORE_HEADER_BYTES];
    struct ak_store_header header;
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(pread(fd, page, sizeof page, 0), sizeof page);
    ck_assert(ak_store_header_read(page, &header));
    header.n_tokens = n_tokens;
    ak_store_header_write(&header, page);
    ck_assert_int_eq(pwrite(fd, page, sizeof page, 0), sizeof page);
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = header.built } };
    ck_assert_int_eq(futimens(fd, times), 0);
    close(fd);
}

START_TEST(damaged)
{
    struct fixture f;
    akunu_token ids[PROMPT];
    char names[FILES][512];
    struct stat st;
    set_up(&f);
    struct akunu_prompt_cache cache = cache_of(&f);
    text_of(&f, 0, 0, ids);
    keep(&f, &cache, ids, 100);
    ck_assert_int_eq(files_of(&f, ".prompt", names), 1);
    ck_assert_int_eq(stat(names[0], &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    const off_t places[] = { 0,
                             9,
                             40,
                             81,
                             2180,
                             4070,
                             4096,
                             4096 + 4 * 100,
                             4096 + 448,
                             4096 + 448 + 31, /* the last one of the hashes of two pages */
                             8192,
                             8192 + st.st_size / 2,
                             st.st_size - 1 };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        change_byte(names[0], places[i]);
        bool index = places[i] < 4496 || (places[i] >= 4544 && places[i] < 4576),
             between = !index && places[i] < 8192;
        size_t expected = between ? 99 : 0;
        f.n_warnings = 0;
        ck_assert_msg(check_same(&f, f.session, &cache, ids, 100) == expected, "byte %lld",
                      (long long)places[i]);
        ck_assert_int_eq(f.n_warnings, !index && !between); /* pages: it was thought to be good */
        if (!index && !between)
            ck_assert_ptr_nonnull(strstr(f.log, "it is damaged"));
        if (!between)
            unlink(names[0]); /* pages: it is gone already */
        keep(&f, &cache, ids, 100);
        ck_assert_int_eq(files_of(&f, ".prompt", names), 1);
        ck_assert_uint_eq(check_same(&f, f.session, &cache, ids, 100), 99);
    }
    const off_t sizes[] = { 0, 100, 4095, 4096, 5000, 8192, st.st_size - 1, st.st_size + 1 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct timespec times[2] = { st.st_atim, st.st_mtim };
        ck_assert_int_eq(truncate(names[0], sizes[i]), 0);
        ck_assert_int_eq(utimensat(AT_FDCWD, names[0], times, 0), 0);
        ck_assert_uint_eq(check_same(&f, f.session, &cache, ids, 100), 0);
        unlink(names[0]);
        keep(&f, &cache, ids, 100);
        ck_assert_int_eq(stat(names[0], &st), 0);
    }
    set_token_count(names[0], UINT64_C(100) << 32 | 100);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids, 100), 0);
    set_token_count(names[0], 100);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids, 100), 99);
    ck_assert_int_eq(chmod(names[0], 0622), 0); /* somebody else may have written it */
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids, 100), 0);
    tear_down(&f);
}
END_TEST

START_TEST(folders_that_cannot_be_used)
{
    struct fixture f;
    akunu_token ids[PROMPT];
    set_up(&f);
    struct akunu_prompt_cache cache = cache_of(&f);
    text_of(&f, 0, 0, ids);
    cache.dir = "/dev/null/no";
    keep(&f, &cache, ids, 100);
    ck_assert_int_eq(f.n_warnings, 1);
    ck_assert_ptr_nonnull(strstr(f.log, "prompt cache: not used: /dev/null/no"));
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids, 100), 0);

    /* a full disk, as a limit of files' sizes; asked for before, it costs no signal */
    cache.dir = f.dir;
    struct rlimit before, small = { 10000, 10000 };
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    keep(&f, &cache, ids, 100);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(f.n_warnings, 2);
    ck_assert_int_eq(n_prompts(&f), 0);
    keep(&f, &cache, ids, 100);
    ck_assert_int_eq(n_prompts(&f), 1);
    tear_down(&f);
}
END_TEST

/* A write that fails leaves no file, not even a part, and says why. */
START_TEST(writes_that_fail)
{
    static const struct {
        int number;
        const char *said;
    } faults[] = { { ENOSPC, "the disk is full" },
                   { EDQUOT, "the disk is full" },
                   { EIO, "Input/output error" } };
    struct fixture f;
    akunu_token ids[PROMPT];
    char names[FILES][512], line[256];
    set_up(&f);
    struct akunu_prompt_cache cache = cache_of(&f), file = cache;
    file.file = f.file;
    text_of(&f, 0, 0, ids);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        sync_errno = faults[i].number;
        keep(&f, &cache, ids, 100);
        snprintf(line, sizeof line, "prompt cache: not used: this prompt: %s", faults[i].said);
        ck_assert_str_eq(f.log, line);
        keep(&f, &file, ids, 100);
        snprintf(line, sizeof line, "prompt cache: not used: %s: %s", f.file, faults[i].said);
        ck_assert_str_eq(f.log, line);
        sync_errno = 0;
        ck_assert_int_eq(files_of(&f, "", names), 0);
    }
    tear_down(&f);
}
END_TEST

/* A host that has closed its standard input: then the first file that is opened has number 0. */
START_TEST(without_standard_input)
{
    struct fixture f;
    akunu_token ids[PROMPT];
    char names[FILES][512];
    struct stat st;
    int input = dup(0);
    set_up(&f);
    struct akunu_prompt_cache cache = cache_of(&f), file = cache;
    file.file = f.file;
    text_of(&f, 0, 0, ids);
    size_t n_open = test_count_open();
    close(0);
    keep(&f, &cache, ids, 100);
    ck_assert_int_eq(f.n_warnings, 0);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids, 100), 99);
    ck_assert_int_eq(files_of(&f, ".prompt", names), 1);
    change_byte(names[0], 20000);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids, 100), 0);
    ck_assert_int_ne(stat(names[0], &st), 0); /* a damaged file goes */
    keep(&f, &file, ids, 100);
    ck_assert_uint_eq(check_same(&f, f.session, &file, ids, 100), 99);
    ck_assert_uint_eq(test_count_open(), n_open - 1);
    ck_assert_int_eq(dup(input), 0);
    tear_down(&f);
    close(input);
}
END_TEST

/* ---- One file ----------------------------------------------------------- */
static void check_load(struct akunu_session *session, const char *path, enum akunu_status expected,
                       const char *said)
{
    akunu_sequence sequence = akunu_sequence_new(session);
    ck_assert_int_eq(akunu_sequence_load(session, sequence, path), expected);
    ck_assert_msg(strstr(akunu_last_error(), said) != NULL, "'%s' lacks '%s'", akunu_last_error(),
                  said);
    ck_assert_uint_eq(akunu_sequence_length(session, sequence), 0);
    akunu_sequence_free(session, sequence);
}

START_TEST(save_and_load)
{
    struct fixture f;
    akunu_token ids[PROMPT];
    set_up(&f);
    float *first = malloc(f.n_vocab * sizeof *first);
    akunu_sequence a, b = akunu_sequence_new(f.session);
    text_of(&f, 0, 0, ids);
    check_load(f.session, f.file, AKUNU_ERROR_IO, "No such file");
    /* nothing in it */
    ck_assert_int_eq(akunu_sequence_save(f.session, b, f.file), AKUNU_ERROR_ARGUMENT);
    run(&f, f.session, NULL, ids, 150, first, &a);
    ck_assert_msg(akunu_sequence_save(f.session, a, f.file) == AKUNU_OK, "%s", akunu_last_error());
    ck_assert_msg(akunu_sequence_load(f.session, b, f.file) == AKUNU_OK, "%s", akunu_last_error());
    ck_assert_uint_eq(akunu_sequence_length(f.session, b), 150);
    struct akunu_batch_token pass[] = { { 3, a, true }, { 3, b, true } };
    ck_assert_int_eq(akunu_session_decode(f.session, pass, 2), AKUNU_OK);
    ck_assert_mem_eq(akunu_session_logits(f.session, 0), akunu_session_logits(f.session, 1),
                     f.n_vocab * sizeof *first);
    /* not empty */
    ck_assert_int_eq(akunu_sequence_load(f.session, b, f.file), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_sequence_save(f.session, 9, f.file), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_sequence_save(f.session, a, NULL), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_sequence_save(f.session, a, "/dev/null/text"), AKUNU_ERROR_IO);
    ck_assert_str_eq(akunu_last_error(), "/dev/null/text cannot be written: Not a directory");

    struct akunu_session *full = open_session(&f, f.model, AKUNU_KV_F32, 1);
    check_load(full, f.file, AKUNU_ERROR_FORMAT, "another model");
    akunu_session_free(full);
    struct akunu_session_params small = golden_params(1, 32, AKUNU_KV_F16);
    small.context = 100;
    full = akunu_session_new(f.model, &small);
    check_load(full, f.file, AKUNU_ERROR_CONTEXT, "150 tokens, and the context holds 100");
    akunu_session_free(full);
    struct akunu_model *state = golden_load("lfm2", NULL);
    full = open_session(&f, state, AKUNU_KV_F16, 1);
    check_load(full, f.file, AKUNU_ERROR_UNSUPPORTED, "recurrent state");
    akunu_session_free(full);
    akunu_model_free(state);

    change_byte(f.file, 20000);
    akunu_sequence_free(f.session, b);
    check_load(f.session, f.file, AKUNU_ERROR_FORMAT, "it is damaged");
    free(first);
    tear_down(&f);
}
END_TEST

/* A name without a folder is one of the working directory. */
START_TEST(names_without_folders)
{
    struct fixture f;
    akunu_token ids[PROMPT];
    struct stat st;
    set_up(&f);
    float *logits = malloc(f.n_vocab * sizeof *logits);
    int before = open(".", O_RDONLY | O_DIRECTORY);
    akunu_sequence a, b = akunu_sequence_new(f.session);
    text_of(&f, 0, 0, ids);
    run(&f, f.session, NULL, ids, 20, logits, &a);
    ck_assert_int_eq(chdir(f.dir), 0);
    ck_assert_msg(akunu_sequence_save(f.session, a, "text") == AKUNU_OK, "%s", akunu_last_error());
    ck_assert_int_eq(stat(f.file, &st), 0);
    ck_assert_int_eq(akunu_sequence_load(f.session, b, "text"), AKUNU_OK);
    ck_assert_uint_eq(akunu_sequence_length(f.session, b), 20);
    ck_assert_int_eq(akunu_sequence_save(f.session, a, "/"), AKUNU_ERROR_IO);
    ck_assert_int_eq(fchdir(before), 0);
    close(before);
    free(logits);
    tear_down(&f);
}
END_TEST

/* A prompt cache of one file: it follows the prompts, and no other file is ever replaced. */
START_TEST(one_file)
{
    struct fixture f;
    akunu_token ids[PROMPT], other[PROMPT];
    set_up(&f);
    struct akunu_prompt_cache cache = cache_of(&f);
    cache.file = f.file;
    cache.min_tokens = 0;
    text_of(&f, 0, 0, ids);
    text_of(&f, 1, 0, other);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids, 100), 0);
    keep(&f, &cache, ids, 100);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids, 100), 99);
    keep(&f, &cache, other, 100);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, other, 100), 99);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids, 100), 0);
    ck_assert_int_eq(n_prompts(&f), 0);
    ck_assert_int_eq(f.n_warnings, 0);

    change_byte(f.file, 20000);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, other, 100), 0);
    ck_assert_int_eq(f.n_warnings, 1);
    keep(&f, &cache, other, 100);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, other, 100), 99);

    FILE *precious = fopen(f.file, "w");
    fputs("a letter that nobody wants to lose", precious);
    fclose(precious);
    ck_assert_uint_eq(check_same(&f, f.session, &cache, ids, 100), 0);
    keep(&f, &cache, ids, 100);
    ck_assert_ptr_nonnull(strstr(f.log, "it is another file, and stays as it is"));
    char text[64] = "";
    precious = fopen(f.file, "r");
    ck_assert_ptr_nonnull(fgets(text, sizeof text, precious));
    fclose(precious);
    ck_assert_str_eq(text, "a letter that nobody wants to lose");
    tear_down(&f);
}
END_TEST

/* ---- Several at once ---------------------------------------------------- */
static void *keep_many(void *user)
{
    struct fixture *f = user;
    akunu_token ids[PROMPT];
    struct akunu_prompt_cache cache = cache_of(f);
    struct akunu_session *session = open_session(f, f->model, AKUNU_KV_F16, 1);
    cache.max_bytes = 400000;
    for (int round = 0; round < 12; round++) {
        float *logits = malloc(f->n_vocab * sizeof *logits);
        akunu_sequence sequence;
        text_of(f, round % 5, 0, ids);
        run(f, session, &cache, ids, 100, logits, &sequence);
        akunu_sequence_keep(session, sequence, 100, &cache);
        akunu_sequence_free(session, sequence);
        ck_assert_uint_lt(check_same(f, session, &cache, ids, 100), 100);
        free(logits);
    }
    akunu_session_free(session);
    return NULL;
}

START_TEST(at_once)
{
    struct fixture f;
    pthread_t threads[3];
    set_up(&f);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, keep_many, &f), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    tear_down(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prompt_cache");
    TCase *tests = tcase_create("prompt_cache");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, same_bits, 0, golden_count());
    tcase_add_loop_test(tests, types_of_caches, 0, 5);
    tcase_add_test(tests, all_instruction_sets);
    TCase *told_apart = tcase_create("keys");
    tcase_set_timeout(told_apart, 300);
    tcase_add_test(told_apart, types_are_told_apart);
    tcase_add_loop_test(told_apart, overrides_are_told_apart, 0, N_OVERRIDES);
    tcase_add_test(told_apart, rotations_are_told_apart);
    tcase_add_test(told_apart, adapters_are_told_apart);
    tcase_add_test(told_apart, contexts_are_told_apart);
    tcase_add_loop_test(told_apart, weights_are_told_apart, 0, 2);
    tcase_add_test(told_apart, rounding_is_told_apart);
    tcase_add_test(told_apart, bits_are_told_apart);
    tcase_add_test(tests, parts_of_files);
    tcase_add_test(tests, longer_texts);
    tcase_add_test(tests, longest_beginning);
    tcase_add_test(tests, least_lengths);
    tcase_add_test(tests, noticed);
    tcase_add_test(tests, bounded);
    tcase_add_test(tests, damaged);
    tcase_add_test(tests, folders_that_cannot_be_used);
    tcase_add_test(tests, writes_that_fail);
    tcase_add_test(tests, without_standard_input);
    tcase_add_test(tests, save_and_load);
    tcase_add_test(tests, names_without_folders);
    tcase_add_test(tests, one_file);
    tcase_add_test(tests, at_once);
    suite_add_tcase(suite, told_apart);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
