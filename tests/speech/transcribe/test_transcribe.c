/* Transcribing through the public header, with a model of Whisper's vocabulary and random weights
 * that is written here: the same segments with any number of threads, cancelling, and what is
 * refused. Texts of a real model are compared elsewhere. Plans and grammars are looked at from
 * inside. Case `any` is for backends of any arithmetic; tests/opencl/test_devices.sh runs it. */
#include "tests/speech_clip.h"
#include "tests/st_files.h"
#include "tests/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "akunu/akunu.h"
#include "api/handles.h"
#include "speech/transcribe/grammar.h"
#include "speech/transcribe/plan.h"
#include "tests/locks.h"

enum {
    N_VOCAB = 51864, /* of the English models; the first others have one more */
    N_TEXT = 50256,
    AUDIO_CTX = 1500,
    TEXT_CTX = 64, /* texts of random weights end with their room alone: 32 tokens */
    STATE = 16,
    HEADS = 2,
    FFN = 64,
    MELS = 80,
    BINS = 201,
    RATE = 16000,
    SAMPLES = 35 * RATE, /* two windows */
    TEXTS = 3
};

static uint32_t seed = 1;

/* Between -1 and 1. */
static float next_random(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (float)(int32_t)seed / 2147483648.0f;
}

static void add_tensor(struct test_bytes *out, const char *name, uint32_t rows, uint32_t cols,
                       uint32_t kernel)
{
    const uint32_t dims[3] = { kernel, cols, rows };
    uint32_t n_dims = 0, n = 1;
    bool is_scale = strstr(name, "ln") && strstr(name, "weight");
    for (int d = 0; d < 3; d++)
        n_dims += dims[d] > 0;
    test_append_u32(out, n_dims);
    test_append_u32(out, (uint32_t)strlen(name));
    test_append_u32(out, 0); /* F32 */
    for (int d = 0; d < 3; d++)
        if (dims[d] > 0) {
            test_append_u32(out, dims[d]);
            n *= dims[d];
        }
    test_append(out, name, strlen(name));
    for (uint32_t i = 0; i < n; i++) {
        float x = (is_scale ? 1.0f : 0.0f) + next_random();
        test_append(out, &x, sizeof x);
    }
}

static void add_parts(struct test_bytes *out, const char *block, const char *attention)
{
    static const char *const weights[] = { "query", "key", "value", "out" };
    char name[128];
    snprintf(name, sizeof name, "%s.%s_ln.weight", block, attention);
    add_tensor(out, name, 0, STATE, 0);
    snprintf(name, sizeof name, "%s.%s_ln.bias", block, attention);
    add_tensor(out, name, 0, STATE, 0);
    for (size_t i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s.%s.%s.weight", block, attention, weights[i]);
        add_tensor(out, name, STATE, STATE, 0);
        snprintf(name, sizeof name, "%s.%s.%s.bias", block, attention, weights[i]);
        if (strcmp(weights[i], "key") != 0)
            add_tensor(out, name, 0, STATE, 0);
    }
}

static void add_block(struct test_bytes *out, const char *side)
{
    char block[64], name[128];
    snprintf(block, sizeof block, "%s.blocks.0", side);
    add_parts(out, block, "attn");
    if (strcmp(side, "decoder") == 0)
        add_parts(out, block, "cross_attn");
    snprintf(name, sizeof name, "%s.mlp_ln.weight", block);
    add_tensor(out, name, 0, STATE, 0);
    snprintf(name, sizeof name, "%s.mlp_ln.bias", block);
    add_tensor(out, name, 0, STATE, 0);
    snprintf(name, sizeof name, "%s.mlp.0.weight", block);
    add_tensor(out, name, FFN, STATE, 0);
    snprintf(name, sizeof name, "%s.mlp.0.bias", block);
    add_tensor(out, name, 0, FFN, 0);
    snprintf(name, sizeof name, "%s.mlp.2.weight", block);
    add_tensor(out, name, STATE, FFN, 0);
    snprintf(name, sizeof name, "%s.mlp.2.bias", block);
    add_tensor(out, name, 0, STATE, 0);
}

/* Tokens: the bytes, then words of letters. */
static void add_tokens(struct test_bytes *out, uint32_t n)
{
    char text[16];
    test_append_u32(out, n);
    for (uint32_t i = 0; i < n; i++) {
        int n_bytes = i < 256 ? 1 : snprintf(text, sizeof text, " w%u", (unsigned)i);
        if (i < 256)
            text[0] = (char)i;
        test_append_u32(out, (uint32_t)n_bytes);
        test_append(out, text, (size_t)n_bytes);
    }
}

/* n_more: 1 for a multilingual model. */
static struct test_bytes make_model(uint32_t n_more, uint32_t audio_ctx)
{
    const uint32_t params[] = {
        N_VOCAB + n_more, audio_ctx, STATE, HEADS, 1, TEXT_CTX, STATE, HEADS, 1, MELS, 0
    };
    struct test_bytes out = { 0 };
    seed = 8; /* texts have several words, and a token that a GGML file does not name */
    test_append_u32(&out, 0x67676d6c);
    for (size_t i = 0; i < sizeof params / sizeof *params; i++)
        test_append_u32(&out, params[i]);
    test_append_u32(&out, MELS);
    test_append_u32(&out, BINS);
    for (int i = 0; i < MELS * BINS; i++) {
        float x = i / BINS == i % BINS ? 0.02f : 0.0f;
        test_append(&out, &x, sizeof x);
    }
    add_tokens(&out, N_TEXT + n_more);
    add_tensor(&out, "encoder.conv1.weight", STATE, MELS, 3);
    add_tensor(&out, "encoder.conv1.bias", STATE, 1, 0);
    add_tensor(&out, "encoder.conv2.weight", STATE, STATE, 3);
    add_tensor(&out, "encoder.conv2.bias", STATE, 1, 0);
    add_tensor(&out, "encoder.positional_embedding", audio_ctx, STATE, 0);
    add_tensor(&out, "encoder.ln_post.weight", 0, STATE, 0);
    add_tensor(&out, "encoder.ln_post.bias", 0, STATE, 0);
    add_block(&out, "encoder");
    add_tensor(&out, "decoder.token_embedding.weight", N_VOCAB + n_more, STATE, 0);
    add_tensor(&out, "decoder.positional_embedding", TEXT_CTX, STATE, 0);
    add_tensor(&out, "decoder.ln.weight", 0, STATE, 0);
    add_tensor(&out, "decoder.ln.bias", 0, STATE, 0);
    add_block(&out, "decoder");
    return out;
}

/* ---- Transcripts -------------------------------------------------------- */
struct transcript {
    char text[1 << 16];
    size_t n, n_segments;
    uint64_t tokens; /* a hash */
    double end;
    size_t stop_after; /* segments; 0: never */
};

static bool on_segment(const struct akunu_segment *segment, void *user)
{
    struct transcript *t = user;
    ck_assert(segment->id == t->n_segments && segment->end >= segment->start);
    ck_assert_uint_lt(t->n + segment->n_bytes, sizeof t->text);
    memcpy(t->text + t->n, segment->text, segment->n_bytes);
    t->n += segment->n_bytes;
    for (size_t i = 0; i < segment->n_tokens; i++) {
        t->tokens = t->tokens * 31 + (uint64_t)segment->tokens[i];
        ck_assert(segment->token_probabilities[i] > 0.0f &&
                  segment->token_probabilities[i] <= 1.0f);
    }
    t->end = segment->end;
    return ++t->n_segments != t->stop_after;
}

struct fixture {
    struct test_folder folder;
    char path[128];
    float *samples;
    struct akunu_audio *audio, *brief; /* two windows, and a part of one */
};

/* Writes the model to a file and frees it. */
static void write_bytes(const char *path, struct test_bytes *bytes)
{
    FILE *file = fopen(path, "wb");
    ck_assert(file && fwrite(bytes->data, 1, bytes->n, file) == bytes->n && fclose(file) == 0);
    free(bytes->data);
}

static void write_model(const char *path, uint32_t n_more)
{
    struct test_bytes bytes = make_model(n_more, AUDIO_CTX);
    write_bytes(path, &bytes);
}

/* A multilingual model that has the weights of the languages a and b exchanged. */
static void write_languages(const char *path, size_t a, size_t b)
{
    enum { FIRST_LANGUAGE = N_TEXT + 3, ROW_BYTES = STATE * sizeof(float) };
    static const char name[] = "decoder.token_embedding.weight";
    struct test_bytes bytes = make_model(1, AUDIO_CTX);
    char *rows = memmem(bytes.data, bytes.n, name, sizeof name - 1), row[ROW_BYTES];
    ck_assert_ptr_nonnull(rows);
    rows += sizeof name - 1 + FIRST_LANGUAGE * ROW_BYTES;
    memcpy(row, rows + a * ROW_BYTES, ROW_BYTES);
    memmove(rows + a * ROW_BYTES, rows + b * ROW_BYTES, ROW_BYTES);
    memcpy(rows + b * ROW_BYTES, row, ROW_BYTES);
    write_bytes(path, &bytes);
}

static struct fixture *open_fixture(void)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->folder = test_folder_begin();
    snprintf(f->path, sizeof f->path, "%s", test_in(&f->folder, "model.bin"));
    write_model(f->path, 0);
    f->samples = malloc(SAMPLES * sizeof *f->samples);
    for (int i = 0; i < SAMPLES; i++)
        f->samples[i] = 0.3f * sinf(0.05f * (float)(i % 12345)) + 0.01f * next_random();
    f->audio = akunu_audio_from_samples(f->samples, SAMPLES, RATE);
    f->brief = akunu_audio_from_samples(f->samples, 5 * RATE, RATE);
    ck_assert_msg(f->audio && f->brief, "%s", akunu_last_error());
    return f;
}

static void close_fixture(struct fixture *f)
{
    akunu_audio_free(f->audio);
    akunu_audio_free(f->brief);
    free(f->samples);
    unlink(f->path);
    test_folder_end(&f->folder);
    free(f);
}

static struct akunu_session *open_wide_session(const struct fixture *f, unsigned n_threads,
                                               uint32_t n_windows)
{
    struct akunu_load_params load;
    struct akunu_session_params params;
    akunu_load_params_default(&load, sizeof load);
    akunu_session_params_default(&params, sizeof params);
    load.no_cache = true;
    load.n_threads = params.n_threads = n_threads;
    params.max_windows = n_windows;
    params.max_sequences = TEXTS * n_windows;
    struct akunu_model *model = akunu_model_load(f->path, &load);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    struct akunu_session *session = akunu_session_new(model, &params);
    ck_assert_msg(session != NULL, "%s", akunu_last_error());
    akunu_model_free(model);
    return session;
}

static struct akunu_session *open_session(const struct fixture *f, unsigned n_threads)
{
    return open_wide_session(f, n_threads, 1);
}

static struct akunu_transcription_params make_params(void)
{
    struct akunu_transcription_params params;
    akunu_transcription_params_default(&params, sizeof params);
    params.beams = params.best_of = TEXTS;
    params.max_tokens = 4;
    params.temperature_step = 0.5f;
    return params;
}

static enum akunu_status transcribe(struct akunu_session *session, struct akunu_audio *audio,
                                    const struct akunu_transcription_params *params,
                                    akunu_segment_fn *report, void *user, const char **language)
{
    struct akunu_clip clip;
    akunu_clip_default(&clip, sizeof clip);
    clip.audio = audio;
    clip.params = params;
    clip.on_segment = report;
    clip.user = user;
    return akunu_session_transcribe(session, &clip, language);
}

START_TEST(same_text)
{
    struct fixture *f = open_fixture();
    struct akunu_transcription_params params = make_params();
    struct transcript *found = calloc(2, sizeof *found);
    if (_i == 1)
        params.beams = 1;
    for (unsigned i = 0; i < 2; i++) {
        struct akunu_session *session = open_session(f, i + 1);
        const char *language = NULL;
        ck_assert_msg(transcribe(session, f->audio, &params, on_segment, &found[i], &language) ==
                          AKUNU_OK,
                      "%s", akunu_last_error());
        ck_assert_str_eq(language, "en");
        /* again: nothing is left of the first time */
        struct transcript *again = calloc(1, sizeof *again);
        ck_assert_int_eq(transcribe(session, f->audio, &params, on_segment, again, NULL), AKUNU_OK);
        ck_assert(again->tokens == found[i].tokens && again->n_segments == found[i].n_segments);
        free(again);
        akunu_session_free(session);
    }
    ck_assert_uint_gt(found[0].n_segments, 1);
    ck_assert(found[0].tokens == found[1].tokens && found[0].n == found[1].n &&
              memcmp(found[0].text, found[1].text, found[0].n) == 0);
    free(found);
    close_fixture(f);
}
END_TEST

static bool stop(double fraction, void *user)
{
    (void)user;
    return fraction <= 0.0;
}

/* Stops at a later call. */
static unsigned countdown;
static bool stop_later(double fraction, void *user)
{
    (void)user;
    return fraction <= 0.0 && --countdown > 0;
}

static bool stop_now(double fraction, void *user)
{
    (void)fraction, (void)user;
    return false;
}

static void check_fails(struct akunu_session *session, const struct fixture *f,
                        const struct akunu_transcription_params *params, enum akunu_status status,
                        const char *part)
{
    struct transcript *t = calloc(1, sizeof *t);
    ck_assert_int_eq(transcribe(session, f->audio, params, on_segment, t, NULL), status);
    ck_assert_msg(strstr(akunu_last_error(), part) != NULL, "%s", akunu_last_error());
    free(t);
}

/* openai/whisper's TO_LANGUAGE_CODE. */
static void check_language_names(void)
{
    static const char *const names[][2] = {
        { "burmese", "my" },  { "valencian", "ca" },      { "flemish", "nl" },
        { "haitian", "ht" },  { "Haitian Creole", "ht" }, { "letzeburgesch", "lb" },
        { "pushto", "ps" },   { "panjabi", "pa" },        { "moldavian", "ro" },
        { "MOLDOVAN", "ro" }, { "sinhalese", "si" },      { "Castilian", "es" },
        { "mandarin", "zh" }, { "Cantonese", "yue" },     { "DE", "de" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_pstr_eq(akunu_language_find(names[i][0]), names[i][1]);
    for (size_t i = 0; akunu_language_code(i); i++) {
        ck_assert_pstr_eq(akunu_language_find(akunu_language_code(i)), akunu_language_code(i));
        ck_assert_pstr_eq(akunu_language_find(akunu_language_name(i)), akunu_language_code(i));
    }
    ck_assert_ptr_null(akunu_language_find("castellano"));
    ck_assert_ptr_null(akunu_language_find("castilian "));
    ck_assert_ptr_null(akunu_language_find(""));
    ck_assert_ptr_null(akunu_language_find(NULL));
}

START_TEST(stopped_and_refused)
{
    struct fixture *f = open_fixture();
    struct akunu_session *session = open_session(f, 2);
    struct akunu_transcription_params params = make_params(), wrong;
    struct transcript *t = calloc(1, sizeof *t);
    struct akunu_clip clip;
    akunu_clip_default(&clip, sizeof clip);
    clip.audio = f->audio;
    clip.params = &params;
    clip.on_segment = on_segment;
    clip.user = t;
    float probabilities[128];
    t->stop_after = 1;
    ck_assert_int_eq(transcribe(session, f->audio, &params, on_segment, t, NULL),
                     AKUNU_ERROR_CANCELLED);
    ck_assert_uint_eq(t->n_segments, 1);
    t->stop_after = t->n_segments = t->n = 0;
    clip.progress = stop;
    ck_assert_int_eq(akunu_session_transcribe(session, &clip, NULL), AKUNU_ERROR_CANCELLED);
    for (unsigned i = 1; i < 24; i++) { /* while the clip is read, then at each token */
        t->n_segments = t->n = 0;
        countdown = i;
        clip.progress = stop_later;
        ck_assert_int_eq(akunu_session_transcribe(session, &clip, NULL), AKUNU_ERROR_CANCELLED);
    }
    free(t);
    ck_assert(fabs(akunu_audio_seconds(f->audio) - 35.0) < 1e-9);
    ck_assert_str_eq(akunu_language_name(0), "english");
    ck_assert_ptr_null(akunu_language_name(100));
    check_language_names();

    wrong = params;
    wrong.language = "xx";
    check_fails(session, f, &wrong, AKUNU_ERROR_ARGUMENT, "\"xx\" is no language");
    wrong.language = "Castilian";
    check_fails(session, f, &wrong, AKUNU_ERROR_ARGUMENT,
                "English alone, and the language is \"Cas");
    wrong.language = "German";
    check_fails(session, f, &wrong, AKUNU_ERROR_ARGUMENT, "English alone");
    wrong = params;
    wrong.translate = true;
    check_fails(session, f, &wrong, AKUNU_ERROR_ARGUMENT, "translates nothing");
    wrong = params;
    wrong.audio_context = AUDIO_CTX + 1;
    check_fails(session, f, &wrong, AKUNU_ERROR_ARGUMENT,
                "1501 positions; the encoder of this model has 1500");
    wrong = params;
    wrong.beams = TEXTS + 1; /* more than the session has */
    check_fails(session, f, &wrong, AKUNU_ERROR_ARGUMENT, "room for 3 of each window");
    ck_assert_int_eq(akunu_session_languages(session, f->audio, NULL, probabilities, 128),
                     AKUNU_ERROR_UNSUPPORTED);
    ck_assert_ptr_null(akunu_audio_open_bytes(NULL, 0, "clip"));
    ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(transcribe(session, NULL, &params, on_segment, NULL, NULL),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(transcribe(session, f->audio, &params, NULL, NULL, NULL),
                     AKUNU_ERROR_ARGUMENT);
    /* after all of this the session still works */
    t = calloc(1, sizeof *t);
    ck_assert_int_eq(transcribe(session, f->audio, &params, on_segment, t, NULL), AKUNU_OK);
    free(t);
    akunu_session_free(session);

    struct test_bytes bytes = make_model(0, AUDIO_CTX / 2);
    write_bytes(f->path, &bytes);
    session = open_session(f, 1);
    check_fails(session, f, &params, AKUNU_ERROR_UNSUPPORTED,
                "the encoder has 750 positions; transcribing needs 1500");
    akunu_session_free(session);
    close_fixture(f);
}
END_TEST

/* ---- Grammars ----------------------------------------------------------- */
/* The text of each window matches the grammar; each is a segment or two. */
struct checked {
    const struct akunu_grammar *grammar;
    char text[1024];
    size_t n, n_windows;
    uint64_t window;
    bool strict;
};

static void check_window(struct checked *c)
{
    bool allowed = false;
    size_t space = c->n > 0 && c->text[0] == ' ';
    if (c->n == 0)
        return;
    ck_assert_int_eq(
        akunu_grammar_check(c->grammar, NULL, c->text + space, c->n - space, &allowed, NULL),
        AKUNU_OK);
    ck_assert_msg(allowed == c->strict, "\"%.*s\"", (int)c->n, c->text);
    c->n_windows++;
    c->n = 0;
}

static bool check_segment(const struct akunu_segment *segment, void *user)
{
    struct checked *c = user;
    if (segment->window != c->window)
        check_window(c);
    c->window = segment->window;
    ck_assert_uint_le(c->n + segment->n_bytes, sizeof c->text);
    memcpy(c->text + c->n, segment->text, segment->n_bytes);
    c->n += segment->n_bytes;
    return true;
}

START_TEST(constrained)
{
    static const char gbnf[] = "lights ::= light (\", \" light)? \".\"\n"
                               "light ::= \"light \" (\"on\" | \"off\")";
    struct fixture *f = open_fixture();
    struct akunu_session *session = open_session(f, 1);
    struct akunu_transcription_params params = make_params();
    struct akunu_grammar *grammar = akunu_grammar_parse_rule(gbnf, sizeof gbnf - 1, "lights");
    ck_assert_msg(grammar != NULL, "%s", akunu_last_error());
    params.grammar = grammar;
    params.max_tokens = 60;
    params.max_no_speech = NAN;
    params.best_of = 2;
    for (int i = 0; i < 4; i++) {
        struct checked checked = { .grammar = grammar, .strict = true };
        params.beams = i < 2 ? 1 : TEXTS;
        params.no_timestamps = i % 2 == 1;
        ck_assert_msg(transcribe(session, f->brief, &params, check_segment, &checked, NULL) ==
                          AKUNU_OK,
                      "%s", akunu_last_error());
        check_window(&checked);
        ck_assert_uint_ge(checked.n_windows, 1);
    }
    struct checked checked = { .grammar = grammar, .strict = false };
    params.grammar_penalty = 1e-6f;
    ck_assert_int_eq(transcribe(session, f->brief, &params, check_segment, &checked, NULL),
                     AKUNU_OK);
    check_window(&checked);
    params.grammar_penalty = 0.0f;
    check_fails(session, f, &params, AKUNU_ERROR_ARGUMENT, "penalty of a grammar is 0");
    akunu_grammar_free(grammar);
    akunu_session_free(session);

    ck_assert_ptr_null(akunu_grammar_parse_rule(gbnf, sizeof gbnf - 1, "root"));
    ck_assert_msg(strstr(akunu_last_error(), "no rule \"root\"") != NULL, "%s", akunu_last_error());
    ck_assert_ptr_null(akunu_grammar_parse_rule(gbnf, sizeof gbnf - 1, NULL));
    close_fixture(f);
}
END_TEST

/* Symbols are not written where a grammar leaves something else, unless the caller keeps them. */
START_TEST(symbols)
{
    static const char gbnf[] = "root ::= [#@*+=<>a]+";
    struct fixture *f = open_fixture();
    struct akunu_session *session = open_session(f, 1);
    struct akunu_transcription_params params = make_params();
    struct akunu_grammar *grammar = akunu_grammar_parse_rule(gbnf, sizeof gbnf - 1, "root");
    ck_assert_msg(grammar != NULL, "%s", akunu_last_error());
    params.grammar = grammar;
    params.audio_context = 300;
    params.beams = params.best_of = 1;
    params.max_tokens = 30;
    params.max_no_speech = NAN;
    for (int keep = 0; keep < 2; keep++) {
        struct transcript *t = calloc(1, sizeof *t);
        params.keep_symbols = keep;
        ck_assert_int_eq(transcribe(session, f->brief, &params, on_segment, t, NULL), AKUNU_OK);
        ck_assert_uint_gt(t->n, 0);
        ck_assert_msg((strpbrk(t->text, "#@*+=<>") != NULL) == keep, "%s", t->text);
        free(t);
    }
    akunu_grammar_free(grammar);
    akunu_session_free(session);
    close_fixture(f);
}
END_TEST

/* Tokens up to 255 are bytes. What may follow a text of them, as a set of bytes. */
static void check_allowed(const struct ak_transcribe_grammar *g, const int32_t *written, size_t n,
                          const char *bytes, bool ends, bool goes_on)
{
    struct ak_speech_allowed allowed;
    struct ak_error error;
    ck_assert_int_eq(g->constraint.find(g->constraint.user, written, n, &allowed, &error),
                     AKUNU_OK);
    ck_assert(allowed.end == ends && allowed.more == goes_on && allowed.penalty >= INFINITY);
    ck_assert((allowed.tokens == NULL) == (bytes == NULL));
    for (int32_t i = 0; bytes && i < N_TEXT; i++)
        ck_assert_msg((allowed.tokens[i / 32] >> (i % 32) & 1) ==
                          (i > 0 && i < 256 && strchr(bytes, i) != NULL),
                      "token %d after %zu", (int)i, n);
}

/* A grammar reads text alone, and lets it begin with a space. */
START_TEST(grammar_of_tokens)
{
    static const char *const gbnf[] = { "root ::= \"on\" | \"off\"",
                                        "root ::= \" \"? (\"on\" | \"off\")" };
    enum { TIME = N_TEXT + 1000 };
    const struct {
        int32_t written[6];
        size_t n;
        const char *bytes; /* NULL: any token */
        bool ends, goes_on;
    } cases[] = {
        { { 0 }, 0, " o", false, true },
        { { TIME }, 1, " o", false, true },
        { { ' ' }, 1, "o", false, true },
        { { TIME, 'o' }, 2, "nf", false, true },
        { { TIME, ' ', 'o', 'n' }, 4, "", true, false },
        { { 'o', 'f', TIME, 'f', TIME }, 5, "", true, false },
        { { 'o', 'x' }, 2, NULL, true, true },
    };
    struct fixture *f = open_fixture();
    struct akunu_model *model = akunu_model_load(f->path, NULL);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    for (size_t k = 0; k < 2; k++) {
        struct akunu_grammar *grammar = akunu_grammar_parse_rule(gbnf[k], strlen(gbnf[k]), "root");
        struct ak_transcribe_grammar g;
        struct ak_error error;
        ck_assert_int_eq(
            ak_transcribe_grammar_open(model->inner, grammar->inner, INFINITY, N_TEXT, &g, &error),
            AKUNU_OK);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            check_allowed(&g, cases[i].written, cases[i].n, cases[i].bytes, cases[i].ends,
                          cases[i].goes_on);
        ak_transcribe_grammar_close(&g);
        akunu_grammar_free(grammar);
    }
    akunu_model_free(model);
    close_fixture(f);
}
END_TEST

/* ---- Plans -------------------------------------------------------------- */
struct planner {
    struct fixture *f;
    struct akunu_model *model;
    struct ak_speech_tokens tokens;
};

static struct planner planner_new(bool multilingual)
{
    struct planner p = { .f = open_fixture() };
    struct ak_error error;
    if (multilingual)
        write_model(p.f->path, 1);
    p.model = akunu_model_load(p.f->path, NULL);
    ck_assert_msg(p.model != NULL, "%s", akunu_last_error());
    ck_assert_int_eq(ak_speech_tokens_find(N_VOCAB + multilingual, &p.tokens, &error), AKUNU_OK);
    return p;
}

static void planner_free(struct planner *p)
{
    akunu_model_free(p->model);
    close_fixture(p->f);
}

/* The caller frees the plan. */
static void make_plan(const struct planner *p, const struct akunu_transcription_params *asked,
                      struct ak_transcribe_plan *plan)
{
    struct ak_error error = { 0 };
    *plan = (struct ak_transcribe_plan){ 0 };
    ck_assert_msg(ak_transcribe_plan_make(p->model->inner, &p->tokens, asked, plan, &error) ==
                      AKUNU_OK,
                  "%s", error.message);
}

static void check_temperatures(const struct planner *p)
{
    static const struct {
        float first, step;
        size_t n;
    } cases[] = { { 0.0f, 0.2f, 6 }, { 0.4f, 0.3f, 3 }, { 0.4f, 0.31f, 2 }, { 0.0f, 0.0f, 1 },
                  { 0.5f, 0.0f, 1 }, { 1.0f, 0.2f, 1 }, { 1.5f, 0.2f, 1 },  { 0.0f, 0.001f, 64 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct akunu_transcription_params asked = make_params();
        struct ak_transcribe_plan plan;
        asked.temperature = cases[i].first;
        asked.temperature_step = cases[i].step;
        make_plan(p, &asked, &plan);
        ck_assert_uint_eq(plan.task.n_temperatures, cases[i].n);
        for (size_t k = 0; k < cases[i].n; k++)
            ck_assert(fabsf(plan.task.temperatures[k] - cases[i].first - (float)k * cases[i].step) <
                      1e-6f);
        ak_transcribe_plan_free(&plan);
    }
}

/* Tokens are the bytes of the text, which has no merges. */
static void check_tokens(const int32_t *tokens, size_t n, const char *text)
{
    ck_assert_uint_eq(n, strlen(text));
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(tokens[i], text[i]);
}

/* What is never written: special tokens; unless symbols are kept, those of a byte, the first byte
 * of the notes, and the space that begins a token of a symbol, as this vocabulary has none. */
static void check_suppressed(const struct planner *p)
{
    static const char bytes[] = "\"#()*+/:;<=>@[\\]^_`{|}~\xe2 ";
    for (int keeps = 0; keeps < 2; keeps++) {
        struct akunu_transcription_params asked = make_params();
        struct ak_transcribe_plan plan;
        bool *found = calloc(N_VOCAB + 1, sizeof *found);
        asked.keep_symbols = keeps;
        make_plan(p, &asked, &plan);
        for (size_t i = 0; i < plan.task.n_suppressed; i++)
            found[plan.task.suppressed[i]] = true;
        for (int32_t i = 0; i < p->tokens.n; i++) {
            const struct ak_speech_tokens *t = &p->tokens;
            bool is_special = i == t->transcribe || i == t->translate || i == t->start ||
                              i == t->previous || i == t->language_model || i == t->no_speech;
            bool is_symbol = !keeps && i > 0 && i < 256 && strchr(bytes, i) != NULL;
            ck_assert_msg(found[i] == (is_special || is_symbol), "token %d", (int)i);
        }
        ck_assert_int_eq(plan.task.blank, ' ');
        ak_transcribe_plan_free(&plan);
        free(found);
    }
}

static void check_languages(const struct planner *p)
{
    static const struct {
        const char *language, *code;
        bool detects;
    } cases[] = {
        { NULL, "en", false }, { "auto", "en", true },     { "AUTO", "en", true },
        { "de", "de", false }, { "Spanish", "es", false }, { "su", "su", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct akunu_transcription_params asked = make_params();
        struct ak_transcribe_plan plan;
        asked.language = cases[i].language;
        make_plan(p, &asked, &plan);
        ck_assert_pstr_eq(ak_speech_language_code(plan.task.language), cases[i].code);
        ck_assert(plan.detects_language == cases[i].detects);
        ak_transcribe_plan_free(&plan);
    }
}

START_TEST(plans)
{
    struct planner english = planner_new(false), all = planner_new(true);
    struct akunu_transcription_params asked = make_params();
    struct ak_transcribe_plan plan;
    check_temperatures(&english);
    check_suppressed(&english);
    check_suppressed(&all);
    check_languages(&all);
    asked.language = "auto";
    make_plan(&english, &asked, &plan);
    ck_assert(!plan.detects_language && plan.task.language == 0);
    ck_assert(plan.task.first == 0 && plan.task.end == UINT64_MAX);
    ck_assert(plan.task.use_previous && plan.task.previous_max == 0 && !plan.task.words);
    ck_assert(plan.task.beams == TEXTS && plan.task.n_prompt == 0 && plan.task.n_prefix == 0 &&
              plan.task.n_hotwords == 0);
    ak_transcribe_plan_free(&plan);

    asked = make_params();
    asked.offset_ms = 1509;
    asked.duration_ms = 2500;
    asked.max_previous = 7;
    asked.beams = 1;
    asked.hallucination_silence = 0.0f;
    asked.prompt = "one two";
    asked.prefix = " \tsix\n";
    asked.hotwords = "ten ";
    make_plan(&english, &asked, &plan);
    ck_assert(plan.task.first == 150 && plan.task.end == 400);
    ck_assert(plan.task.use_previous && plan.task.previous_max == 7 && plan.task.words);
    ck_assert_uint_eq(plan.task.beams, 0);
    check_tokens(plan.task.prompt, plan.task.n_prompt, " one two");
    check_tokens(plan.task.prefix, plan.task.n_prefix, " six");
    check_tokens(plan.task.hotwords, plan.task.n_hotwords, " ten");
    ak_transcribe_plan_free(&plan);
    asked.max_previous = 0;
    make_plan(&english, &asked, &plan);
    ck_assert(!plan.task.use_previous);
    ak_transcribe_plan_free(&plan);

    struct ak_error error;
    asked.hallucination_silence = -1.0f;
    ck_assert_int_eq(
        ak_transcribe_plan_make(english.model->inner, &english.tokens, &asked, &plan, &error),
        AKUNU_ERROR_ARGUMENT);
    ck_assert_str_eq(error.message, "hallucination_silence is -1; expected at least 0 seconds");
    ak_transcribe_plan_free(&plan);
    planner_free(&english);
    planner_free(&all);
}
END_TEST

/* ---- Prompts ------------------------------------------------------------ */
/* Each of the texts that may precede has its own effect; spaces around it have none. */
START_TEST(prompts)
{
    static const char *const texts[] = { NULL, "w300 w400", " \tw300 w400\n" };
    struct fixture *f = open_fixture();
    struct akunu_session *session = open_session(f, 1);
    uint64_t found[3][3];
    for (int kind = 0; kind < 3; kind++)
        for (int i = 0; i < 3; i++) {
            struct akunu_transcription_params params = make_params();
            struct transcript *t = calloc(1, sizeof *t);
            params.beams = params.best_of = 1;
            params.audio_context = 300;
            params.max_tokens = 8;
            params.prompt = kind == 0 ? texts[i] : NULL;
            params.prefix = kind == 1 ? texts[i] : NULL;
            params.hotwords = kind == 2 ? texts[i] : NULL;
            ck_assert_msg(transcribe(session, f->audio, &params, on_segment, t, NULL) == AKUNU_OK,
                          "%s", akunu_last_error());
            found[kind][i] = t->tokens;
            free(t);
        }
    for (int kind = 0; kind < 3; kind++) {
        ck_assert(found[kind][0] == found[0][0]);
        ck_assert(found[kind][1] != found[0][0]);
        ck_assert(found[kind][1] == found[kind][2]);
        ck_assert(kind == 0 || found[kind][1] != found[0][1]);
    }
    akunu_session_free(session);
    close_fixture(f);
}
END_TEST

/* ---- Shorter windows ---------------------------------------------------- */
enum { SHORT_CTX = 300 };

/* Nothing is said after what was encoded, 6 s of each window. */
static bool check_short(const struct akunu_segment *segment, void *user)
{
    double window = (double)segment->window / 100.0;
    for (size_t i = 0; i < segment->n_words; i++)
        ck_assert(segment->words[i].start >= window - 1e-9 &&
                  segment->words[i].start <= window + SHORT_CTX / 50.0 + 1e-9);
    *(size_t *)user += segment->n_words;
    return true;
}

START_TEST(short_context)
{
    struct fixture *f = open_fixture();
    struct akunu_session *session = open_session(f, 1);
    struct akunu_transcription_params params = make_params();
    size_t n_words = 0;
    params.audio_context = SHORT_CTX;
    params.word_times = true;
    params.max_tokens = 0; /* more than one pass times them */
    ck_assert_msg(transcribe(session, f->audio, &params, check_short, &n_words, NULL) == AKUNU_OK,
                  "%s", akunu_last_error());
    ck_assert_uint_gt(n_words, 0);
    akunu_session_free(session);
    close_fixture(f);
}
END_TEST

/* ---- Speech alone ------------------------------------------------------- */
enum { QUIET = 20 * RATE, VOICE_END = 23 * RATE };

/* Quiet but for 3 s from 20 s on. */
static void make_pause(float *samples)
{
    float *voice = malloc(SAMPLES * sizeof *voice);
    test_speech_clip(voice, SAMPLES);
    for (int i = 0; i < SAMPLES; i++)
        samples[i] = i < QUIET || i >= VOICE_END ? 0.001f * next_random() : voice[i - QUIET];
    free(voice);
}

struct times {
    double first, last;
    size_t n, n_words;
    uint64_t window;
};

static bool keep_times(const struct akunu_segment *segment, void *user)
{
    struct times *t = user;
    ck_assert(segment->start <= segment->end && segment->start >= t->last);
    if (t->n++ == 0) {
        t->first = segment->start;
        t->window = segment->window;
    }
    t->last = segment->start;
    ck_assert(segment->end <= 23.5);
    for (size_t i = 0; i < segment->n_words; i++)
        ck_assert(segment->words[i].start >= segment->start - 1e-9 &&
                  segment->words[i].start <= segment->words[i].end &&
                  segment->words[i].end <= segment->end + 1e-9);
    t->n_words += segment->n_words;
    return true;
}

static bool keep_range(double start, double end, void *user)
{
    double *range = user;
    range[0] = range[0] > 0.0 ? range[0] : start;
    range[1] = end;
    return true;
}

START_TEST(speech_alone)
{
    struct fixture *f = open_fixture();
    struct akunu_session *session = open_session(f, 1);
    struct akunu_transcription_params params = make_params();
    char path[4096];
    double range[2] = { 0.0, 0.0 };
    struct times times = { 0 };
    struct transcript *t = calloc(1, sizeof *t);
    snprintf(path, sizeof path, "%s/../../data/vad/silero-v6.2.0.bin", getenv("AK_TEST_DATA"));
    struct akunu_vad *vad = akunu_vad_load(path);
    ck_assert_msg(vad != NULL, "%s", akunu_last_error());
    make_pause(f->samples);
    ck_assert_int_eq(akunu_vad_detect(vad, f->audio, NULL, NULL, keep_range, range), AKUNU_OK);
    ck_assert_msg(range[0] > 19.5 && range[0] < 20.5 && range[1] > 22.0 && range[1] < 23.5,
                  "%g to %g", range[0], range[1]);

    /* times are those of the whole clip, and so is the window's */
    params.vad = vad;
    params.word_times = true;
    ck_assert_msg(transcribe(session, f->audio, &params, keep_times, &times, NULL) == AKUNU_OK,
                  "%s", akunu_last_error());
    ck_assert(times.n > 0 && times.n_words > 0);
    ck_assert(times.first >= range[0] && times.last <= range[1]);
    ck_assert_uint_eq(times.window, (uint64_t)(range[0] * 100.0 + 0.5));

    /* no speech in the part that is asked for, but what is refused stays refused */
    params.duration_ms = 15000;
    ck_assert_int_eq(transcribe(session, f->audio, &params, on_segment, t, NULL), AKUNU_OK);
    ck_assert_uint_eq(t->n_segments, 0);
    params.language = "Auto";
    ck_assert_int_eq(transcribe(session, f->audio, &params, on_segment, t, NULL), AKUNU_OK);
    params.language = "xx";
    check_fails(session, f, &params, AKUNU_ERROR_ARGUMENT, "\"xx\" is no language");
    params = make_params();
    struct akunu_vad_params wrong;
    akunu_vad_params_default(&wrong, sizeof wrong);
    wrong.threshold = 2.0f;
    params.vad = vad;
    params.vad_params = &wrong;
    check_fails(session, f, &params, AKUNU_ERROR_ARGUMENT, "threshold is 2");
    params.vad_params = NULL;
    struct akunu_clip clip;
    akunu_clip_default(&clip, sizeof clip);
    clip.audio = f->audio;
    clip.params = &params;
    clip.on_segment = on_segment;
    clip.progress = stop_now;
    clip.user = t;
    ck_assert_int_eq(akunu_session_transcribe(session, &clip, NULL), AKUNU_ERROR_CANCELLED);
    free(t);
    akunu_vad_free(vad);
    akunu_session_free(session);
    close_fixture(f);
}
END_TEST

/* ---- Several clips ------------------------------------------------------ */
enum { CLIPS = 7, LATE = 5, STOPPED = 2, DAMAGED = 4, NO_CALLBACK = 6 };

/* A clip, what came of it, and what it gives alone. */
struct case_of_clip {
    struct clip_cases *all;
    struct akunu_audio *audio;
    struct transcript found, alone;
    enum akunu_status status;
    bool ended;
};

struct clip_cases {
    struct case_of_clip of[CLIPS];
    struct akunu_transcription_params params;
    size_t n_given, n_progress;
};

static bool on_clip_segment(const struct akunu_segment *segment, void *user)
{
    return on_segment(segment, &((struct case_of_clip *)user)->found);
}

static bool on_clip_progress(double fraction, void *user)
{
    ck_assert(fraction >= 0.0 && fraction <= 1.0);
    ((struct case_of_clip *)user)->all->n_progress++;
    return true;
}

static void on_clip_end(enum akunu_status status, const char *message, const char *language,
                        void *user)
{
    struct case_of_clip *c = user;
    ck_assert(!c->ended && (status == AKUNU_OK) == (*message == '\0'));
    if (status == AKUNU_OK)
        ck_assert_str_eq(language, "en");
    c->status = status;
    c->ended = true;
}

/* The clips from LATE on come while the others are transcribed. */
static bool next_clip(struct akunu_clip *clip, void *user)
{
    struct clip_cases *all = user;
    if (all->n_given == CLIPS || (all->n_given == LATE && all->n_progress < 20))
        return false;
    struct case_of_clip *c = &all->of[all->n_given++];
    clip->audio = c->audio;
    clip->params = &all->params;
    clip->on_segment = c == &all->of[NO_CALLBACK] ? NULL : on_clip_segment;
    clip->progress = on_clip_progress;
    clip->on_end = on_clip_end;
    clip->user = c;
    return true;
}

static void open_cases(struct clip_cases *all, const struct fixture *f)
{
    static const int seconds[CLIPS] = { 35, 12, 20, 3, 2, 31, 1 };
    static const float damaged[] = { 0.0f, NAN };
    for (int i = 0; i < CLIPS; i++) {
        all->of[i].all = all;
        all->of[i].audio = i == DAMAGED ?
                               akunu_audio_from_samples(damaged, 2, RATE) :
                               akunu_audio_from_samples(f->samples + 1000 * i,
                                                        (size_t)seconds[i] * RATE - 6000, RATE);
        ck_assert_ptr_nonnull(all->of[i].audio);
    }
    all->of[STOPPED].found.stop_after = 1;
}

static void check_case(const struct case_of_clip *c, size_t i)
{
    const struct transcript *found = &c->found, *alone = &c->alone;
    const enum akunu_status expected[CLIPS] = { [STOPPED] = AKUNU_ERROR_CANCELLED,
                                                [DAMAGED] = AKUNU_ERROR_FORMAT,
                                                [NO_CALLBACK] = AKUNU_ERROR_ARGUMENT };
    ck_assert(c->ended);
    ck_assert_int_eq(c->status, expected[i]);
    if (c->status != AKUNU_OK)
        return;
    ck_assert(found->tokens == alone->tokens && found->n_segments == alone->n_segments &&
              found->n == alone->n && memcmp(found->text, alone->text, alone->n) == 0);
}

START_TEST(side_by_side)
{
    struct fixture *f = open_fixture();
    struct akunu_session *alone = open_session(f, 1), *wide = open_wide_session(f, 2, 3);
    struct clip_cases *all = calloc(1, sizeof *all);
    open_cases(all, f);
    all->params = make_params();
    all->params.word_times = true;
    for (int i = 0; i < CLIPS; i++)
        transcribe(alone, all->of[i].audio, &all->params, on_segment, &all->of[i].alone, NULL);
    ck_assert_msg(akunu_session_transcribe_clips(wide, next_clip, all) == AKUNU_OK, "%s",
                  akunu_last_error());
    ck_assert_uint_eq(all->n_given, CLIPS);
    for (size_t i = 0; i < CLIPS; i++)
        check_case(&all->of[i], i);
    /* the session is as before */
    all->n_given = CLIPS;
    ck_assert_int_eq(akunu_session_transcribe_clips(wide, next_clip, all), AKUNU_OK);
    ck_assert_int_eq(akunu_session_transcribe_clips(wide, NULL, all), AKUNU_ERROR_ARGUMENT);
    for (int i = 0; i < CLIPS; i++)
        akunu_audio_free(all->of[i].audio);
    free(all);
    akunu_session_free(alone);
    akunu_session_free(wide);
    close_fixture(f);
}
END_TEST

struct order {
    struct transcript t;
    double last;
};

static bool in_order(const struct akunu_segment *segment, void *user)
{
    struct order *o = user;
    ck_assert(segment->start >= o->last - 1e-9);
    o->last = segment->start;
    return on_segment(segment, &o->t);
}

/* Chunks of one clip's speech, with one lane and with several; greedy, and sampled. */
START_TEST(chunks)
{
    enum { LONG = 80 * RATE };
    struct fixture *f = open_fixture();
    struct akunu_transcription_params params = make_params();
    struct order *found = calloc(2, sizeof *found);
    float *samples = malloc(LONG * sizeof *samples);
    char path[4096];
    snprintf(path, sizeof path, "%s/../../data/vad/silero-v6.2.0.bin", getenv("AK_TEST_DATA"));
    struct akunu_vad *vad = akunu_vad_load(path);
    ck_assert_msg(vad != NULL, "%s", akunu_last_error());
    test_speech_clip(samples, LONG);
    struct akunu_audio *audio = akunu_audio_from_samples(samples, LONG, RATE);
    params.vad = vad;
    params.word_times = _i == 0;
    params.temperature = (float)_i;
    for (uint32_t i = 0; i < 2; i++) {
        struct akunu_session *session = open_wide_session(f, i + 1, 1 + 3 * i);
        ck_assert_msg(transcribe(session, audio, &params, in_order, &found[i], NULL) == AKUNU_OK,
                      "%s", akunu_last_error());
        akunu_session_free(session);
    }
    ck_assert_uint_ge(found[0].t.n_segments, 3);
    ck_assert(found[0].t.tokens == found[1].t.tokens && found[0].t.n == found[1].t.n &&
              memcmp(found[0].t.text, found[1].t.text, found[0].t.n) == 0 &&
              found[0].t.n_segments == found[1].t.n_segments);
    struct akunu_session *session = open_wide_session(f, 2, 4);
    params.seed = 1;
    found[1] = (struct order){ .last = 0.0 };
    if (_i > 0)
        transcribe(session, audio, &params, in_order, &found[1], NULL);
    ck_assert(found[1].t.tokens != found[0].t.tokens);
    /* stopped in the middle */
    found[1] = (struct order){ .t.stop_after = 2 };
    ck_assert_int_eq(transcribe(session, audio, &params, in_order, &found[1], NULL),
                     AKUNU_ERROR_CANCELLED);
    ck_assert_uint_eq(found[1].t.n_segments, 2);
    akunu_session_free(session);
    akunu_audio_free(audio);
    akunu_vad_free(vad);
    free(samples);
    free(found);
    close_fixture(f);
}
END_TEST

struct watched {
    double last;
    size_t n, stop_at; /* calls of watch_progress; 0: never */
    bool stopped;
};

static bool watch_progress(double fraction, void *user)
{
    struct watched *w = user;
    ck_assert(!w->stopped && fraction >= w->last && fraction <= 1.0);
    w->last = fraction;
    w->stopped = ++w->n == w->stop_at;
    return !w->stopped;
}

static bool watch_segment(const struct akunu_segment *segment, void *user)
{
    (void)segment;
    ck_assert(!((struct watched *)user)->stopped);
    return true;
}

/* Progress grows with the chunks that are done, and a caller who stops is not called again, though
 * other chunks are transcribed at the time. */
START_TEST(progress_of_chunks)
{
    enum { LONG = 80 * RATE };
    struct fixture *f = open_fixture();
    struct akunu_transcription_params params = make_params();
    float *samples = malloc(LONG * sizeof *samples);
    char path[4096];
    snprintf(path, sizeof path, "%s/../../data/vad/silero-v6.2.0.bin", getenv("AK_TEST_DATA"));
    struct akunu_vad *vad = akunu_vad_load(path);
    ck_assert_msg(vad != NULL, "%s", akunu_last_error());
    test_speech_clip(samples, LONG);
    struct akunu_audio *audio = akunu_audio_from_samples(samples, LONG, RATE);
    struct akunu_session *session = open_wide_session(f, 1, 3);
    params.vad = vad;
    params.beams = params.best_of = 1;
    params.max_tokens = 4;
    struct watched whole = { .last = 0.0 }, part = { .stop_at = 12 };
    struct akunu_clip clip;
    akunu_clip_default(&clip, sizeof clip);
    clip.audio = audio;
    clip.params = &params;
    clip.on_segment = watch_segment;
    clip.progress = watch_progress;
    clip.user = &whole;
    ck_assert_int_eq(akunu_session_transcribe(session, &clip, NULL), AKUNU_OK);
    ck_assert_msg(whole.last > 0.5 && whole.n > part.stop_at, "%g", whole.last);
    clip.user = &part;
    ck_assert_int_eq(akunu_session_transcribe(session, &clip, NULL), AKUNU_ERROR_CANCELLED);
    ck_assert(part.stopped);
    akunu_session_free(session);
    akunu_audio_free(audio);
    akunu_vad_free(vad);
    free(samples);
    close_fixture(f);
}
END_TEST

/* Languages are those of the speech alone, wherever it is. */
START_TEST(languages_of_speech)
{
    struct fixture *f = open_fixture();
    float all[128], speech[128], again[128], none[128];
    char path[4096];
    write_model(f->path, 1);
    struct akunu_session *session = open_session(f, 1);
    struct akunu_transcription_params params = make_params();
    snprintf(path, sizeof path, "%s/../../data/vad/silero-v6.2.0.bin", getenv("AK_TEST_DATA"));
    struct akunu_vad *vad = akunu_vad_load(path);
    ck_assert_msg(vad != NULL, "%s", akunu_last_error());
    make_pause(f->samples);
    ck_assert_int_eq(akunu_session_languages(session, f->audio, NULL, all, 128), AKUNU_OK);
    params.audio_context = 750;
    ck_assert_int_eq(akunu_session_languages(session, f->audio, &params, again, 128), AKUNU_OK);
    ck_assert_mem_ne(all, again, 99 * sizeof *all);
    params.audio_context = 0;
    params.vad = vad;
    ck_assert_int_eq(akunu_session_languages(session, f->audio, &params, speech, 128), AKUNU_OK);
    ck_assert_mem_ne(all, speech, 99 * sizeof *all);

    /* a part that has all of the speech; one that has none */
    params.offset_ms = 15000;
    ck_assert_int_eq(akunu_session_languages(session, f->audio, &params, again, 128), AKUNU_OK);
    ck_assert_mem_eq(speech, again, 99 * sizeof *speech);
    params.offset_ms = 0;
    params.duration_ms = 15000;
    for (int i = 0; i < 128; i++)
        none[i] = 1.0f;
    ck_assert_int_eq(akunu_session_languages(session, f->audio, &params, none, 128), AKUNU_OK);
    double sum = 0.0, sum_none = 0.0;
    for (int i = 0; i < 99; i++) {
        sum += (double)speech[i];
        sum_none += (double)none[i];
    }
    ck_assert(fabs(sum - 1.0) < 1e-4 && sum_none <= 0.0);
    akunu_vad_free(vad);
    akunu_session_free(session);
    close_fixture(f);
}
END_TEST

/* The most probable language is found wherever it is, also the first two. */
START_TEST(language_is_detected)
{
    static const size_t places[] = { 0, 1, 98 };
    struct fixture *f = open_fixture();
    struct akunu_transcription_params params = make_params();
    float probabilities[128];
    size_t best = 0;
    write_model(f->path, 1);
    struct akunu_session *session = open_session(f, 1);
    ck_assert_int_eq(akunu_session_languages(session, f->audio, NULL, probabilities, 128),
                     AKUNU_OK);
    akunu_session_free(session);
    for (size_t i = 1; i < 99; i++)
        best = probabilities[i] > probabilities[best] ? i : best;
    params.language = "auto";
    params.beams = params.best_of = 1;
    params.max_tokens = 1;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct transcript *t = calloc(1, sizeof *t);
        const char *language = NULL;
        write_languages(f->path, best, places[i]);
        session = open_session(f, 1);
        ck_assert_int_eq(transcribe(session, f->audio, &params, on_segment, t, &language),
                         AKUNU_OK);
        ck_assert_pstr_eq(language, akunu_language_code(places[i]));
        akunu_session_free(session);
        free(t);
    }
    close_fixture(f);
}
END_TEST

/* Each of several clips at once has the language that it has alone. */
static void keep_language(enum akunu_status status, const char *message, const char *language,
                          void *user)
{
    ck_assert_msg(status == AKUNU_OK, "%s", message);
    *(const char **)user = language;
}

struct spoken {
    struct akunu_transcription_params params;
    struct akunu_audio *audio[3];
    const char *language[3];
    size_t n;
};

static bool ignore_segment(const struct akunu_segment *segment, void *user)
{
    (void)segment, (void)user;
    return true;
}

static bool next_spoken(struct akunu_clip *clip, void *user)
{
    struct spoken *all = user;
    if (all->n == 3)
        return false;
    *clip = (struct akunu_clip){ .audio = all->audio[all->n],
                                 .params = &all->params,
                                 .on_segment = ignore_segment,
                                 .on_end = keep_language,
                                 .user = &all->language[all->n] };
    all->n++;
    return true;
}

START_TEST(languages_side_by_side)
{
    struct fixture *f = open_fixture();
    struct spoken *all = calloc(1, sizeof *all);
    write_model(f->path, 1);
    struct akunu_session *wide = open_wide_session(f, 1, 2);
    all->params = make_params();
    all->params.language = "auto";
    all->params.beams = all->params.best_of = 1;
    all->params.max_tokens = 2;
    for (size_t i = 0; i < 3; i++)
        all->audio[i] = akunu_audio_from_samples(f->samples + i * 50000, 40000, RATE);
    ck_assert_msg(akunu_session_transcribe_clips(wide, next_spoken, all) == AKUNU_OK, "%s",
                  akunu_last_error());
    akunu_session_free(wide);
    struct akunu_session *session = open_session(f, 1);
    struct akunu_clip ends;
    akunu_clip_default(&ends, sizeof ends);
    ends.audio = all->audio[0];
    ends.on_segment = ignore_segment;
    ends.on_end = keep_language;
    ck_assert_int_eq(akunu_session_transcribe(session, &ends, NULL), AKUNU_ERROR_ARGUMENT);
    ck_assert_str_eq(akunu_last_error(),
                     "on_end of a clip is for akunu_session_transcribe_clips; expected NULL, since "
                     "this call returns when the clip has ended");
    for (size_t i = 0; i < 3; i++) {
        const char *language = NULL;
        ck_assert_int_eq(
            transcribe(session, all->audio[i], &all->params, ignore_segment, NULL, &language),
            AKUNU_OK);
        ck_assert_pstr_eq(all->language[i], language);
        akunu_audio_free(all->audio[i]);
    }
    akunu_session_free(session);
    free(all);
    close_fixture(f);
}
END_TEST

/* ---- Streams ------------------------------------------------------------ */
struct heard {
    char text[1 << 14]; /* of final words */
    size_t n, n_final, n_partial_calls, stop_after;
    double last;
    bool ended; /* the last call had no words that may change */
};

static bool on_words(const struct akunu_word *words, size_t n, bool is_final, void *user)
{
    struct heard *h = user;
    h->n_partial_calls += !is_final;
    h->ended = !is_final && n == 0;
    for (size_t i = 0; i < n && is_final; i++) {
        ck_assert_uint_lt(h->n + words[i].n_bytes, sizeof h->text);
        memcpy(h->text + h->n, words[i].text, words[i].n_bytes);
        h->n += words[i].n_bytes;
        ck_assert(words[i].start >= 0.0 && words[i].end >= words[i].start);
        h->last = words[i].end;
    }
    h->n_final += is_final ? n : 0;
    return h->stop_after == 0 || h->n_partial_calls < h->stop_after;
}

/* Pushes the first `seconds` of the clip, a second at a time. */
static enum akunu_status push_all(struct akunu_speech_stream *stream, const float *samples,
                                  unsigned seconds)
{
    enum akunu_status status = AKUNU_OK;
    for (unsigned i = 0; i < seconds && status == AKUNU_OK; i++)
        status = akunu_speech_stream_push(stream, samples + (size_t)i * RATE, RATE);
    return status;
}

START_TEST(streamed)
{
    struct fixture *f = open_fixture();
    struct akunu_session *session = open_session(f, 1);
    struct akunu_transcription_params params = make_params();
    struct heard *heard = calloc(2, sizeof *heard);
    params.beams = 1;
    params.temperature_step = 0.0f;
    params.max_no_speech = NAN;
    for (int i = 0; i < 2; i++) { /* the same words each time */
        struct akunu_speech_stream *stream =
            akunu_speech_stream_new(session, RATE, &params, on_words, &heard[i]);
        ck_assert_msg(stream != NULL, "%s", akunu_last_error());
        ck_assert_int_eq(akunu_speech_stream_push(stream, NULL, 0), AKUNU_OK);
        ck_assert_int_eq(push_all(stream, f->samples, 12), AKUNU_OK);
        ck_assert_int_eq(akunu_speech_stream_end(stream), AKUNU_OK);
        ck_assert(heard[i].ended && heard[i].n_final > 0 && heard[i].n_partial_calls >= 12);
        ck_assert(heard[i].last <= 12.5);
        ck_assert_int_eq(akunu_speech_stream_end(stream), AKUNU_OK); /* nothing is left */
        akunu_speech_stream_free(stream);
    }
    ck_assert(heard[0].n == heard[1].n && memcmp(heard[0].text, heard[1].text, heard[0].n) == 0);

    /* more than a window without agreement is not kept, and a caller may stop */
    heard[0] = (struct heard){ .stop_after = 0 };
    struct akunu_speech_stream *stream =
        akunu_speech_stream_new(session, RATE, &params, on_words, &heard[0]);
    ck_assert_int_eq(akunu_speech_stream_push(stream, f->samples, SAMPLES), AKUNU_OK);
    ck_assert_uint_gt(heard[0].n_final, 0);
    heard[0].stop_after = 1;
    ck_assert_int_eq(push_all(stream, f->samples, 2), AKUNU_ERROR_CANCELLED);
    akunu_speech_stream_free(stream);
    akunu_speech_stream_free(NULL);

    ck_assert_ptr_null(akunu_speech_stream_new(session, 10, &params, on_words, heard));
    ck_assert_msg(strstr(akunu_last_error(), "10 samples") != NULL, "%s", akunu_last_error());
    ck_assert_ptr_null(akunu_speech_stream_new(session, RATE, &params, NULL, heard));
    ck_assert_int_eq(akunu_speech_stream_push(NULL, f->samples, 1), AKUNU_ERROR_ARGUMENT);
    free(heard);
    akunu_session_free(session);
    close_fixture(f);
}
END_TEST

/* --write FILE, --write-multilingual FILE: writes the model, for tests of the programs. */
int main(int argc, char **argv)
{
    if (argc == 3 && strncmp(argv[1], "--write", strlen("--write")) == 0) {
        write_model(argv[2], strcmp(argv[1], "--write-multilingual") == 0);
        return EXIT_SUCCESS;
    }
    Suite *suite = suite_create("transcribe");
    TCase *any = tcase_create("any"), *tests = tcase_create("transcribe"),
          *threads = tcase_create("threads");
    tcase_set_timeout(any, 600); /* a device's compiler */
    tcase_add_loop_test(any, same_text, 0, 2);
    tcase_add_test(any, speech_alone);
    suite_add_tcase(suite, any);
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, stopped_and_refused);
    tcase_add_test(tests, constrained);
    tcase_add_test(tests, grammar_of_tokens);
    tcase_add_test(tests, plans);
    tcase_add_test(tests, symbols);
    tcase_add_test(tests, prompts);
    tcase_add_test(tests, short_context);
    tcase_add_test(tests, languages_of_speech);
    tcase_add_test(tests, language_is_detected);
    tcase_add_test(tests, streamed);
    suite_add_tcase(suite, tests);
    tcase_set_timeout(threads, 240);
    tcase_add_test(threads, side_by_side);
    tcase_add_test(threads, languages_side_by_side);
    tcase_add_loop_test(threads, chunks, 0, 2);
    tcase_add_test(threads, progress_of_chunks);
    suite_add_tcase(suite, threads);
    return test_run(suite);
}
