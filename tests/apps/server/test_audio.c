/* The routes of speech models, with the random model of tests/speech/transcribe: every form of an
 * answer is compared with what akunu-cli writes for the same clip. */
#include <math.h>
#include <poll.h>

#include "tests/apps/server/client.h"
#include "tests/speech_clip.h"

#define BOUNDARY "------------------------akunuTest"
#define PATH "/v1/audio/transcriptions"

static char folder[] = "/tmp/akunu-audio-XXXXXX";
static char model[64];
static struct child server;

struct bytes {
    char *data;
    size_t n, capacity;
};

static void add(struct bytes *out, const void *data, size_t n)
{
    if (out->n + n > out->capacity) {
        out->capacity = 2 * (out->n + n);
        out->data = realloc(out->data, out->capacity);
        ck_assert_ptr_nonnull(out->data);
    }
    if (n > 0)
        memcpy(out->data + out->n, data, n);
    out->n += n;
}

static void add_text(struct bytes *out, const char *text)
{
    add(out, text, strlen(text));
}

/* ---- Clips and forms ---------------------------------------------------- */
static void add_u32(struct bytes *out, uint32_t value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add(out, &(char){ (char)(value >> 8 * i) }, 1);
}

/* The head of a WAV file of 8 bits and one channel. */
static struct bytes begin_clip(uint32_t n, unsigned rate)
{
    struct bytes out = { 0 };
    add_text(&out, "RIFF");
    add_u32(&out, 36 + n, 4);
    add_text(&out, "WAVEfmt ");
    add_u32(&out, 16, 4);
    add_u32(&out, 1, 2);
    add_u32(&out, 1, 2);
    add_u32(&out, rate, 4);
    add_u32(&out, rate, 4);
    add_u32(&out, 1, 2);
    add_u32(&out, 8, 2);
    add_text(&out, "data");
    add_u32(&out, n, 4);
    return out;
}

static struct bytes make_clip(unsigned seconds, unsigned rate)
{
    uint32_t n = seconds * rate;
    struct bytes out = begin_clip(n, rate);
    for (uint32_t i = 0; i < n; i++)
        add_u32(&out, (uint32_t)(128.0 + 60.0 * sin(0.3 * (double)(i % 1234))), 1);
    return out;
}

/* A voice of 3 s between 10 s of silence each. */
static struct bytes make_voice(void)
{
    enum { RATE = 16000, QUIET = 10 * RATE, VOICE = 3 * RATE };
    struct bytes out = begin_clip(2 * QUIET + VOICE, RATE);
    float *voice = malloc(VOICE * sizeof *voice);
    ck_assert_ptr_nonnull(voice);
    test_speech_clip(voice, VOICE);
    for (int i = -QUIET; i < VOICE + QUIET; i++)
        add_u32(&out, (uint32_t)(128.0f + 100.0f * (i >= 0 && i < VOICE ? voice[i] : 0.0f)), 1);
    free(voice);
    return out;
}

/* Fields: pairs of a name and a value, which end with NULL. */
static struct bytes make_form(const struct bytes *clip, const char *const *fields)
{
    struct bytes out = { 0 };
    for (; fields && *fields; fields += 2) {
        add_text(&out, "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"");
        add_text(&out, fields[0]);
        add_text(&out, "\"\r\n\r\n");
        add_text(&out, fields[1]);
        add_text(&out, "\r\n");
    }
    if (clip) {
        add_text(&out, "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"file\"; "
                       "filename=\"clip.wav\"\r\nContent-Type: audio/wav\r\n\r\n");
        add(&out, clip->data, clip->n);
        add_text(&out, "\r\n");
    }
    add_text(&out, "--" BOUNDARY "--\r\n");
    return out;
}

/* Sends a request; its answer is read from the connection. */
static int send_form(const struct child *child, const char *path, const char *headers,
                     const struct bytes *body)
{
    char head[1024];
    int fd = open_connection(child);
    int n = snprintf(head, sizeof head,
                     "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n%s"
                     "Content-Length: %zu\r\n\r\n",
                     path, headers, body->n);
    send_text(fd, head, (size_t)n);
    send_text(fd, body->data, body->n);
    return fd;
}

#define FORM_HEADER "Content-Type: multipart/form-data; boundary=" BOUNDARY "\r\n"

static int send_clip(const struct child *child, const char *path, const struct bytes *clip,
                     const char *const *fields)
{
    struct bytes body = make_form(clip, fields);
    int fd = send_form(child, path, FORM_HEADER, &body);
    free(body.data);
    return fd;
}

static struct answer ask_clip(const char *path, const struct bytes *clip, const char *const *fields)
{
    return read_answer(send_clip(&server, path, clip, fields));
}

static json_t *ask_json(const char *path, const struct bytes *clip, const char *const *fields,
                        int code)
{
    struct answer a = ask_clip(path, clip, fields);
    return json_of(&a, code);
}

/* ---- The server --------------------------------------------------------- */
static int run_program(const char *const *arguments)
{
    char program[4096];
    int status;
    pid_t pid;
    snprintf(program, sizeof program, "%s/%s", getenv("AK_TEST_BUILD"), arguments[0]);
    pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        dup2(null, 2);
        execv(program, (char *const *)(uintptr_t)arguments);
        _exit(99);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void start_with(const char *const *more)
{
    const char *flags[24] = { "-m", model, "--no-cache", "-bs", "1", "-nf", "--metrics" };
    for (int i = 0; more && more[i]; i++)
        flags[7 + i] = more[i];
    server = start_server(flags);
}

/* `how`: --write, or --write-multilingual. */
static void write_model(const char *how)
{
    const char *const write[] = { "tests/speech/transcribe/test_transcribe", how, model, NULL };
    ck_assert_int_eq(run_program(write), 0);
}

static void start(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(model, sizeof model, "%s/model.bin", folder);
    write_model("--write");
}

static void stop(void)
{
    static const char *const names[] = { "model.bin", "clip.wav",  "clip.srt",
                                         "clip.vtt",  "clip.json", "config.yaml" };
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* Whether this build decodes audio files; else the routes must say that it does not. */
static bool decodes_audio(void)
{
    struct bytes clip = make_clip(1, 8000);
    struct answer a = ask_clip(PATH, &clip, NULL);
    free(clip.data);
    if (a.code == 501)
        ck_assert(strstr(a.body, "built without libsndfile") != NULL);
    bool decodes = a.code != 501;
    free(a.text);
    return decodes;
}

static double metric(const char *name)
{
    char line[64];
    struct answer a = ask(&server, "/metrics", "");
    snprintf(line, sizeof line, "\nakunu_%s ", name);
    const char *found = strstr(a.body, line);
    ck_assert_ptr_nonnull(found);
    double value = atof(found + strlen(line));
    free(a.text);
    return value;
}

static void end_server(void)
{
    ck_assert_int_eq(stop_server(&server, SIGTERM), 0);
}

/* ---- Forms of answers --------------------------------------------------- */
static void read_file(const char *name, struct bytes *out)
{
    char path[128], piece[4096];
    size_t n;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    while ((n = fread(piece, 1, sizeof piece, file)) > 0)
        add(out, piece, n);
    add(out, "", 1);
    fclose(file);
}

/* Has akunu-cli write the clip's transcript as clip.srt, clip.vtt and clip.json. `more`: a flag, or
 * NULL. */
static void run_cli(const struct bytes *clip, const char *more)
{
    char path[128], stem[128];
    snprintf(path, sizeof path, "%s/clip.wav", folder);
    snprintf(stem, sizeof stem, "%s/clip", folder);
    FILE *file = fopen(path, "wb");
    ck_assert(file && fwrite(clip->data, 1, clip->n, file) == clip->n && fclose(file) == 0);
    const char *const arguments[] = { "akunu-cli", "transcribe", "-m",  model,   "--no-cache",
                                      "-bs",       "1",          "-nf", "-osrt", "-ovtt",
                                      "-oj",       "-of",        stem,  "-t",    "2",
                                      path,        more,         NULL };
    ck_assert_int_eq(run_program(arguments), 0);
}

/* `name`, `value`: a field; NULL: none. */
static void check_file_with(const struct bytes *clip, const char *format, const char *field,
                            const char *value)
{
    const char *const fields[] = { "response_format", format, field, value, NULL };
    char name[32];
    struct bytes expected = { 0 };
    snprintf(name, sizeof name, "clip.%s", format);
    read_file(name, &expected);
    struct answer a = ask_clip(PATH, clip, fields);
    ck_assert_int_eq(a.code, 200);
    ck_assert_str_eq(a.body, expected.data);
    free(a.text);
    free(expected.data);
}

static void check_file(const struct bytes *clip, const char *format)
{
    check_file_with(clip, format, NULL, NULL);
}

static const char *skip_spaces(const char *text)
{
    return text + strspn(text, " ");
}

static void check_verbose(const struct bytes *clip, const json_t *expected)
{
    static const char *const fields[] = { "response_format",
                                          "verbose_json",
                                          "timestamp_granularities[]",
                                          "segment",
                                          "language",
                                          "en",
                                          "temperature",
                                          "0",
                                          NULL };
    json_t *value = ask_json(PATH, clip, fields, 200);
    ck_assert_str_eq(text_at(value, "task"), "transcribe");
    ck_assert_str_eq(text_at(value, "language"), "english");
    ck_assert(fabs(json_number_value(at(value, "duration")) - 40.0) < 1e-9);
    ck_assert(json_equal((json_t *)(uintptr_t)at(value, "segments"),
                         (json_t *)(uintptr_t)at(expected, "segments")));
    ck_assert_str_eq(text_at(value, "usage.type"), "duration");
    ck_assert_ptr_null(at(value, "words"));
    json_decref(value);
}

/* Words in one list, as akunu-cli finds them for the segments; alone, or beside segments. */
static void check_words(const struct bytes *clip, const json_t *expected)
{
    static const char *const both[] = { "response_format",
                                        "verbose_json",
                                        "timestamp_granularities[]",
                                        "word",
                                        "timestamp_granularities[]",
                                        "segment",
                                        NULL };
    static const char *const alone[] = { "response_format", "verbose_json",
                                         "timestamp_granularities", "word", NULL };
    json_t *value = ask_json(PATH, clip, both, 200), *same = ask_json(PATH, clip, alone, 200);
    const json_t *words = at(value, "words"), *segment, *word;
    size_t i, k, n = 0;
    json_array_foreach ((json_t *)(uintptr_t)at(expected, "segments"), i, segment)
        json_array_foreach (json_object_get(segment, "words"), k, word) {
            const json_t *found = json_array_get(words, n++);
            const char *text = skip_spaces(text_at(word, "word"));
            ck_assert(strncmp(text_at(found, "word"), text, strlen(text_at(found, "word"))) == 0);
            ck_assert(json_equal(json_object_get(word, "start"), json_object_get(found, "start")));
            ck_assert(json_equal(json_object_get(word, "end"), json_object_get(found, "end")));
            ck_assert_uint_eq(json_object_size(found), 3);
        }
    ck_assert(n > 1 && json_array_size(words) == n);
    ck_assert(json_equal((json_t *)(uintptr_t)words, (json_t *)(uintptr_t)at(same, "words")));
    ck_assert_ptr_null(at(same, "segments"));
    ck_assert_ptr_nonnull(at(value, "segments.0.text"));
    ck_assert_ptr_null(at(value, "segments.0.words"));
    json_decref(value);
    json_decref(same);
}

/* The deltas together are the text. */
static void check_stream(const struct bytes *clip, const char *text)
{
    static const char *const fields[] = { "stream", "true", NULL };
    struct bytes all = { 0 };
    struct answer a = ask_clip(PATH, clip, fields);
    size_t n_deltas = 0;
    bool is_done = false;
    ck_assert_int_eq(a.code, 200);
    ck_assert(strcasestr(a.text, "Content-Type: text/event-stream") != NULL);
    ck_assert(strcasestr(a.text, "Cache-Control: no-cache") != NULL);
    for (char *line = strtok((char *)(uintptr_t)a.body, "\n"); line; line = strtok(NULL, "\n")) {
        ck_assert(strncmp(line, "data: ", 6) == 0);
        if (strcmp(line, "data: [DONE]") == 0) {
            ck_assert(is_done);
            continue;
        }
        json_t *value = json_loads(line + 6, 0, NULL);
        is_done = strcmp(text_at(value, "type"), "transcript.text.done") == 0;
        if (is_done) {
            ck_assert_str_eq(text_at(value, "text"), text);
            ck_assert_int_eq(json_integer_value(at(value, "usage.seconds")), 40);
        } else {
            ck_assert_str_eq(text_at(value, "type"), "transcript.text.delta");
            add_text(&all, text_at(value, "delta"));
            n_deltas++;
        }
        json_decref(value);
    }
    add(&all, "", 1);
    ck_assert(is_done && n_deltas > 1);
    ck_assert_str_eq(all.data, text);
    free(all.data);
    free(a.text);
}

START_TEST(every_format)
{
    start_with(NULL);
    if (decodes_audio()) {
        static const char *const as_text[] = { "response_format", "text", NULL };
        struct bytes clip = make_clip(40, 11025), written = { 0 };
        run_cli(&clip, NULL);
        read_file("clip.json", &written);
        json_t *expected = json_loads(written.data, 0, NULL), *value;
        const char *text = skip_spaces(text_at(expected, "text"));
        ck_assert_uint_gt(json_array_size(at(expected, "segments")), 1);

        value = ask_json(PATH, &clip, NULL, 200);
        ck_assert_str_eq(text_at(value, "text"), text);
        ck_assert_str_eq(text_at(value, "usage.type"), "duration");
        ck_assert_int_eq(json_integer_value(at(value, "usage.seconds")), 40);
        json_decref(value);
        value = ask_json("/inference", &clip, NULL, 200);
        ck_assert_str_eq(text_at(value, "text"), text);
        json_decref(value);
        struct answer a = ask_clip(PATH, &clip, as_text);
        ck_assert(a.code == 200 && a.n == strlen(text) + 1);
        ck_assert(memcmp(a.body, text, strlen(text)) == 0 && a.body[a.n - 1] == '\n');
        free(a.text);
        check_file(&clip, "srt");
        check_file(&clip, "vtt");
        check_verbose(&clip, expected);
        check_stream(&clip, text);
        ck_assert(fabs(metric("audio_seconds_total") - 281.0) < 0.5);
        json_decref(expected);
        written.n = 0;
        run_cli(&clip, "--word-timestamps");
        read_file("clip.json", &written);
        expected = json_loads(written.data, 0, NULL);
        check_words(&clip, expected);
        json_decref(expected);
        free(clip.data);
        free(written.data);
    }
    end_server();
}
END_TEST

/* A multilingual model: the language is found, or given; a translation is English. */
START_TEST(languages)
{
    static const char *const detected[] = { "response_format", "verbose_json", NULL };
    static const char *const german[] = { "response_format", "verbose_json", "language", "de",
                                          NULL };
    static const char *const castilian[] = { "response_format", "verbose_json", "language",
                                             "Castilian", NULL };
    static const char *const translated[] = { "response_format", "verbose_json", "translate",
                                              "true", NULL };
    write_model("--write-multilingual");
    start_with(NULL);
    if (decodes_audio()) {
        struct bytes clip = make_clip(5, 8000);
        json_t *value = ask_json(PATH, &clip, detected, 200);
        ck_assert_uint_gt(strlen(text_at(value, "language")), 2);
        json_decref(value);
        value = ask_json(PATH, &clip, german, 200);
        ck_assert_str_eq(text_at(value, "language"), "german");
        ck_assert_str_eq(text_at(value, "task"), "transcribe");
        json_decref(value);
        value = ask_json(PATH, &clip, castilian, 200);
        ck_assert_str_eq(text_at(value, "language"), "spanish");
        json_decref(value);
        value = ask_json("/v1/audio/translations", &clip, german, 200);
        ck_assert_str_eq(text_at(value, "language"), "english");
        ck_assert_str_eq(text_at(value, "task"), "translate");
        json_t *same = ask_json("/inference", &clip, translated, 200);
        ck_assert_str_eq(text_at(same, "task"), "translate");
        json_decref(same);
        json_decref(value);
        free(clip.data);
    }
    end_server();
}
END_TEST

/* Speech alone: as --vad, by either API's fields, or by the server's flags. */
START_TEST(speech_alone)
{
    static const char *const by_flag[] = { "--vad", NULL };
    struct bytes clip = make_voice(), all = { 0 }, speech = { 0 };
    start_with(NULL);
    bool decodes = decodes_audio();
    if (decodes) {
        run_cli(&clip, NULL);
        read_file("clip.srt", &all);
        check_file_with(&clip, "srt", "vad", "false");
        run_cli(&clip, "--vad");
        read_file("clip.srt", &speech);
        ck_assert(speech.n > 1 && strcmp(all.data, speech.data) != 0);
        check_file_with(&clip, "srt", "vad", "true");
        check_file_with(&clip, "srt", "chunking_strategy", "auto");
        check_file_with(&clip, "srt", "chunking_strategy",
                        "{\"type\": \"server_vad\", \"threshold\": 0.5, \"silence_duration_ms\": "
                        "100, \"prefix_padding_ms\": 30}");
        static const char *const deaf[] = { "vad", "1", "vad_min_speech_duration_ms", "5000",
                                            NULL };
        json_t *value = ask_json(PATH, &clip, deaf, 200);
        ck_assert_str_eq(text_at(value, "text"), "");
        json_decref(value);
    }
    end_server();
    start_with(by_flag);
    if (decodes)
        check_file(&clip, "srt");
    end_server();
    free(clip.data);
    free(all.data);
    free(speech.data);
}
END_TEST

/* ---- Refusals ----------------------------------------------------------- */
START_TEST(fields_are_refused)
{
    static const struct {
        const char *name, *value, *param, *said;
    } cases[] = {
        { "response_format", "xml", "response_format", "\"xml\"; expected json, text" },
        { "response_format", "diarized_json", "response_format", "expected json" },
        { "language", "xx", "language", "\"xx\"; expected a language" },
        { "language", "castellano", "language", "\"castellano\"; expected a language" },
        { "language", "de", "language", "the model knows English alone" },
        { "language", "Mandarin", "language", "the model knows English alone" },
        { "temperature", "warm", "temperature", "\"warm\"; expected a number from 0 to 1" },
        { "temperature", "1.5", "temperature", "expected a number from 0 to 1" },
        { "temperature", "nan", "temperature", "expected a number from 0 to 1" },
        { "temperature", "", "temperature", "expected a number" },
        { "stream", "yes", "stream", "\"yes\"; expected true or false" },
        { "timestamp_granularities[]", "word", "timestamp_granularities", "verbose_json" },
        { "timestamp_granularities[]", "letter", "timestamp_granularities", "\"letter\"" },
        { "timestamp_granularities[]", "segment", "timestamp_granularities", "verbose_json" },
        { "include[]", "logprobs", "include", "include is not supported" },
        { "known_speaker_names[]", "Ann", "known_speaker_names", "is not supported" },
        { "chunking_strategy", "loud", "chunking_strategy", "\"loud\"; expected auto" },
        { "chunking_strategy", "[]", "chunking_strategy", "expected auto or an object" },
        { "chunking_strategy", "{\"type\": \"semantic_vad\"}", "chunking_strategy.type",
          "expected \"server_vad\"" },
        { "chunking_strategy", "{\"type\": \"server_vad\", \"threshold\": 2}", "threshold",
          "threshold" },
        { "chunking_strategy", "{\"type\": \"server_vad\", \"eagerness\": \"low\"}",
          "chunking_strategy", "has eagerness; expected type, threshold" },
        { "vad", "maybe", "vad", "\"maybe\"; expected true or false" },
        { "vad_threshold", "2", "vad_threshold", "\"2\"; expected a number from 0 to 1" },
        { "vad_speech_pad_ms", "-1", "vad_speech_pad_ms", "expected a number from 0 to 600000" },
        { "audio_ctx", "1501", "audio_ctx", "\"1501\"; expected a number from 0 to 1500" },
        { "file", "again", NULL, "two parts file" },
    };
    start_with(NULL);
    if (decodes_audio()) {
        struct bytes clip = make_clip(1, 8000), text = { 0 };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const char *const fields[] = { cases[i].name, cases[i].value, NULL };
            json_t *value = ask_json(PATH, &clip, fields, 400);
            const char *param = json_string_value(at(value, "error.param"));
            ck_assert_msg(strstr(text_at(value, "error.message"), cases[i].said) != NULL, "%s: %s",
                          cases[i].name, text_at(value, "error.message"));
            ck_assert_msg(cases[i].param ? param && strcmp(param, cases[i].param) == 0 : !param,
                          "%s: param %s", cases[i].name, param ? param : "null");
            json_decref(value);
        }
        static const char *const accepted[] = { "chunking_strategy",
                                                "{\"type\": \"server_vad\"}",
                                                "audio_ctx",
                                                "50",
                                                "language",
                                                "English",
                                                "prompt",
                                                "Akunu.",
                                                "user",
                                                "ignored",
                                                "stream",
                                                "false",
                                                NULL };
        json_decref(ask_json(PATH, &clip, accepted, 200));
        static const char *const stream_of_subtitles[] = { "stream", "true", "response_format",
                                                           "srt", NULL };
        json_t *value = ask_json(PATH, &clip, stream_of_subtitles, 400);
        ck_assert_str_eq(text_at(value, "error.param"), "stream");
        json_decref(value);
        value = ask_json("/v1/audio/translations", &clip, NULL, 400); /* an English model */
        ck_assert_str_eq(text_at(value, "error.param"), "model");
        json_decref(value);
        add_text(&text, "this is no audio at all, whatever its name says");
        value = ask_json(PATH, &text, NULL, 400);
        ck_assert_str_eq(text_at(value, "error.param"), "file");
        ck_assert(strstr(text_at(value, "error.message"), "clip.wav: not audio") != NULL);
        json_decref(value);
        text.n = 0;
        add_text(&text, "....ftypM4A is what phones record, where WAV is expected");
        value = ask_json(PATH, &text, NULL, 400);
        ck_assert(strstr(text_at(value, "error.message"), "clip.wav: an M4A file") != NULL);
        ck_assert(strstr(text_at(value, "error.message"), "ffmpeg -i") != NULL);
        json_decref(value);
        text.n = 0;
        value = ask_json(PATH, &text, NULL, 400);
        ck_assert(strstr(text_at(value, "error.message"), "empty") != NULL);
        json_decref(value);
        value = ask_json(PATH, NULL, NULL, 400);
        ck_assert_str_eq(text_at(value, "error.param"), "file");
        json_decref(value);
        free(clip.data);
        free(text.data);
    }
    end_server();
}
END_TEST

/* A clip that cannot be kept until its turn. */
START_TEST(no_temporary_file)
{
    const char *before = getenv("TMPDIR");
    char *kept = before ? strdup(before) : NULL;
    setenv("TMPDIR", "/nonexistent", 1);
    start_with(NULL);
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    free(kept);
    struct bytes clip = make_clip(1, 8000);
    struct answer a = ask_clip(PATH, &clip, NULL);
    ck_assert(a.code == 503 || a.code == 501);
    if (a.code == 503)
        ck_assert(strstr(a.body, "clip.wav: no temporary file in /nonexistent") != NULL);
    free(a.text);
    free(clip.data);
    end_server();
}
END_TEST

#define PART(name) "--b\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n"
#define AS_B "multipart/form-data; boundary=b"

START_TEST(bodies_are_refused)
{
    static const struct {
        int code;
        const char *type, *body, *said;
    } cases[] = {
        { 415, "application/json", "{}", "not multipart/form-data" },
        { 415, "multipart/mixed; boundary=b", "--b--", "not multipart/form-data" },
        { 400, "multipart/form-data", "--b--", "names no boundary" },
        { 400, "multipart/form-data; boundary=", "--b--", "has 0 characters" },
        { 400, "multipart/form-data; boundary=\"\"", "--b--", "has 0 characters" },
        { 400, AS_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "x",
          "has 71 characters; expected 1 to 70" },
        { 400, AS_B, "", "does not have the boundary" },
        { 400, AS_B, "--c\r\n", "does not have the boundary" },
        { 400, AS_B, "--b", "does not have the boundary" },
        { 400, AS_B, "--bb--", "does not have the boundary" },
        { 400, AS_B, "--b--\r\n", "file is nothing" },
        { 400, "Multipart/Form-Data; charset=x; BOUNDARY=\"b\"", "--b--", "file is nothing" },
        { 400, AS_B, "preamble\r\n--b \t\r\nA: b\r\n\r\n", "no Content-Disposition" },
        { 400, AS_B, "--b\r\n\r\ntext\r\n--b--", "part 1 has no Content-Disposition" },
        { 400, AS_B, "--b\r\nContent-Disposition: form-data\r\n\r\n\r\n--b--",
          "part 1 has no name" },
        { 400, AS_B, "--b\r\nContent-Disposition: form-data; name=\"\"\r\n\r\n\r\n--b--",
          "part 1 has no name" },
        { 400, AS_B, "--b\r\nContent-Disposition: form-data; name\r\n\r\n\r\n--b--",
          "part 1 has no name" },
        { 400, AS_B, "--b\r\nContent-Disposition: attachment; name=a\r\n\r\n\r\n--b--",
          "other than form-data" },
        { 400, AS_B,
          "--b\r\nContent-Disposition: form-data; name=a\r\nContent-Disposition: form-data; "
          "name=b\r\n\r\n\r\n--b--",
          "two headers Content-Disposition" },
        { 400, AS_B,
          "--b\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: "
          "base64\r\n\r\n\r\n--b--",
          "Content-Transfer-Encoding" },
        { 400, AS_B, PART("model") "x", "part 1 has no end" },
        { 400, AS_B, PART("model") "x\r\n--b\r\nContent-Disp", "ends in the headers of part 2" },
        { 400, AS_B, PART("model") "x\r\n--bb--", "part 1 has no end" },
        { 400, AS_B, PART("model") "\xff\r\n--b--", "model is not a text in UTF-8" },
        { 400, AS_B, PART("\xff") "x\r\n--b--", "a name that is not a text" },
        { 400, AS_B, PART("prompt") "x\r\n" PART("prompt") "y\r\n--b--", "two parts prompt" },
        { 400, AS_B, PART("a[]") "x\r\n" PART("a") "y\r\n--b--", "two parts a" },
        { 400, AS_B, PART("file[]") "x\r\n--b--", "file is a list" },
        { 400, AS_B, PART("model[]") "x\r\n--b--", "model is a list" },
        { 400, AS_B, PART("prompt[]") "x\r\n--b--", "prompt is a list" },
        { 400, AS_B,
          PART("a123456789012345678901234567890123456789012345678901234567890123") "x\r\n--b--",
          "a name of 64 bytes" },
    };
    char header[256];
    start_with(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes body = { 0 };
        add(&body, cases[i].body, strlen(cases[i].body));
        snprintf(header, sizeof header, "Content-Type: %s\r\n", cases[i].type);
        struct answer a = read_answer(send_form(&server, PATH, header, &body));
        ck_assert_msg(a.code == cases[i].code, "case %zu: %d, %s", i, a.code, a.body);
        json_t *value = json_of(&a, cases[i].code);
        ck_assert_msg(strstr(text_at(value, "error.message"), cases[i].said) != NULL, "%s: %s",
                      cases[i].body, text_at(value, "error.message"));
        json_decref(value);
        free(body.data);
    }
    end_server();
}
END_TEST

static void check_body(struct bytes *body, const char *type, const char *said)
{
    struct answer a = read_answer(send_form(&server, PATH, type, body));
    json_t *value = json_of(&a, 400);
    ck_assert_msg(strstr(text_at(value, "error.message"), said) != NULL, "%s",
                  text_at(value, "error.message"));
    json_decref(value);
    free(body->data);
    *body = (struct bytes){ 0 };
}

/* Headers, fields and numbers of parts beyond the limits; bodies beyond --max-body. */
START_TEST(sizes_are_bounded)
{
    static const char *const flags[] = { "--max-body", "400000", NULL };
    struct bytes body = { 0 };
    char *long_text = calloc(1, 70001);
    memset(long_text, 'a', 70000);
    start_with(flags);
    add_text(&body, "--" BOUNDARY "\r\nX: ");
    add(&body, long_text, 5000);
    add_text(&body, "\r\n\r\n");
    check_body(&body, FORM_HEADER, "part 1 has headers of more than 4096 bytes");
    for (int i = 0; i < 65; i++)
        add_text(&body,
                 "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"a[]\"\r\n\r\n\r\n");
    add_text(&body, "--" BOUNDARY "--");
    check_body(&body, FORM_HEADER, "more than 64 parts");
    const char *const fields[] = { "prompt", long_text, NULL };
    body = make_form(NULL, fields);
    check_body(&body, FORM_HEADER, "prompt has 70000 bytes; expected at most 65536");
    struct bytes clip = make_clip(60, 8000);
    struct answer a = ask_clip(PATH, &clip, NULL);
    ck_assert(a.code == 413 || a.code == 0); /* 0: it stopped reading before we stopped writing */
    free(a.text);
    free(clip.data);
    free(long_text);
    end_server();
}
END_TEST

/* ---- Models, keys, origins ---------------------------------------------- */
START_TEST(models_do_what_they_can)
{
    static const char *const paths[] = { "/v1/chat/completions", "/v1/completions",
                                         "/v1/embeddings",       "/v1/responses",
                                         "/completion",          "/v1/rerank" };
    static const char *const names[] = { "model", "one", NULL };
    char path[128];
    snprintf(path, sizeof path, "%s/config.yaml", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "models:\n  one:\n    model: %s\n  spoken:\n    model: %s\n", test_model(),
            model);
    fclose(file);
    const char *const flags[] = { "--config", path, NULL };
    start_with(flags);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct answer a = ask(&server, paths[i], "{\"model\": \"model.bin\", \"prompt\": \"a\"}");
        json_t *value = json_of(&a, 400);
        ck_assert_str_eq(text_at(value, "error.param"), "model");
        ck_assert(strstr(text_at(value, "error.message"), "is a speech model") != NULL);
        json_decref(value);
    }
    struct bytes clip = make_clip(1, 8000);
    json_t *value = ask_json(PATH, &clip, names, 400);
    ck_assert_str_eq(text_at(value, "error.param"), "model");
    ck_assert(strstr(text_at(value, "error.message"), "one is no speech model") != NULL);
    json_decref(value);
    struct answer a = ask(&server, "/v1/models/model.bin", "");
    value = json_of(&a, 200);
    ck_assert_str_eq(text_at(value, "capabilities.0"), "transcription");
    json_decref(value);
    if (decodes_audio()) { /* a preset, which is loaded now */
        static const char *const spoken[] = { "model", "spoken", NULL };
        json_decref(ask_json(PATH, &clip, spoken, 200));
        struct bytes minutes = make_clip(600, 1000);
        int fd = send_clip(&server, PATH, &minutes, NULL);
        double before = metric("audio_seconds_total");
        a = ask(&server, "/v1/completions",
                "{\"model\": \"one\", \"prompt\": \"Once\", \"max_tokens\": 3}");
        json_decref(json_of(&a, 200));
        ck_assert(metric("audio_seconds_total") - before < 1.0); /* it did not wait for the clip */
        close(fd);
        free(minutes.data);
    }
    free(clip.data);
    end_server();
}
END_TEST

START_TEST(keys_and_origins)
{
    static const char *const flags[] = { "--api-key", "secret", NULL };
    struct bytes clip = make_clip(1, 8000), body = make_form(&clip, NULL);
    start_with(flags);
    struct answer a = read_answer(send_form(&server, PATH, FORM_HEADER, &body));
    ck_assert_int_eq(a.code, 401);
    free(a.text);
    a = read_answer(send_form(&server, PATH, FORM_HEADER "x-api-key: secret\r\n", &body));
    ck_assert(a.code == 200 || a.code == 501);
    free(a.text);
    a = read_answer(send_form(&server, PATH,
                              FORM_HEADER "x-api-key: secret\r\nOrigin: https://other.example\r\n",
                              &body));
    ck_assert_int_eq(a.code, 403);
    free(a.text);
    a = ask_with(&server, "GET", PATH, "x-api-key: secret\r\n", "");
    ck_assert(a.code == 405 && strcasestr(a.text, "Allow: POST, OPTIONS") != NULL);
    free(a.text);
    free(body.data);
    free(clip.data);
    end_server();
}
END_TEST

/* ---- Many clips --------------------------------------------------------- */
/* Clips wait for each other; beyond the queue is a 429; a client that leaves ends its clip. */
START_TEST(clips_take_turns)
{
    static const char *const flags[] = { "--queue", "2", NULL };
    start_with(flags);
    if (decodes_audio()) {
        struct bytes minutes = make_clip(600, 1000), clip = make_clip(5, 8000);
        double before = metric("audio_seconds_total");
        int running = send_clip(&server, PATH, &minutes, NULL), fds[2];
        nap(0.3);
        for (int i = 0; i < 2; i++) {
            fds[i] = send_clip(&server, PATH, &clip, NULL);
            nap(0.1);
        }
        struct answer a = ask_clip(PATH, &clip, NULL);
        ck_assert_msg(a.code == 429 && strcasestr(a.text, "Retry-After: ") != NULL, "%s", a.text);
        free(a.text);
        close(running);
        json_t *first = NULL;
        for (int i = 0; i < 2; i++) {
            a = read_answer(fds[i]);
            json_t *value = json_of(&a, 200);
            if (first)
                ck_assert(json_equal(first, value));
            json_decref(first);
            first = value;
        }
        json_decref(first);
        ck_assert(fabs(metric("audio_seconds_total") - before - 10.0) < 0.1);
        free(minutes.data);
        free(clip.data);
    }
    end_server();
}
END_TEST

/* A client with several clips does not keep another one waiting. */
START_TEST(clients_take_turns)
{
    static const char *const flags[] = { "--api-key", "a,b", NULL };
    static const char *const keys[] = { FORM_HEADER "x-api-key: a\r\n",
                                        FORM_HEADER "x-api-key: a\r\n",
                                        FORM_HEADER "x-api-key: b\r\n" };
    struct bytes minutes = make_clip(600, 1000), clip = make_clip(60, 8000);
    struct bytes longer = make_form(&minutes, NULL), body = make_form(&clip, NULL);
    struct pollfd fds[3];
    start_with(flags);
    int running = send_form(&server, PATH, keys[0], &longer);
    nap(0.3);
    for (int i = 0; i < 3; i++) {
        fds[i] =
            (struct pollfd){ .fd = send_form(&server, PATH, keys[i], &body), .events = POLLIN };
        nap(0.1);
    }
    close(running);
    ck_assert_int_gt(poll(fds, 3, 60000), 0);
    bool b_is_first = fds[2].revents != 0;
    for (int i = 0; i < 3; i++) {
        struct answer a = read_answer(fds[i].fd);
        ck_assert(a.code == 200 || a.code == 501);
        b_is_first |= a.code == 501;
        free(a.text);
    }
    ck_assert(b_is_first);
    free(minutes.data);
    free(clip.data);
    free(longer.data);
    free(body.data);
    end_server();
}
END_TEST

/* One that streams, and one that waits, are left; the next is answered as before. */
START_TEST(clients_leave)
{
    static const char *const stream[] = { "stream", "true", NULL };
    start_with(NULL);
    if (decodes_audio()) {
        struct bytes minutes = make_clip(600, 1000), clip = make_clip(5, 8000);
        char piece[512] = "";
        json_t *before = ask_json(PATH, &clip, NULL, 200);
        int running = send_clip(&server, PATH, &minutes, stream),
            waiting = send_clip(&server, PATH, &minutes, NULL);
        ck_assert_int_gt(recv(running, piece, sizeof piece - 1, 0), 0);
        ck_assert(strstr(piece, "200 OK") != NULL);
        close(waiting);
        close(running);
        json_t *after = ask_json(PATH, &clip, NULL, 200);
        ck_assert(json_equal(before, after));
        ck_assert(metric("audio_seconds_total") < 20.0);
        json_decref(before);
        json_decref(after);
        free(minutes.data);
        free(clip.data);
    }
    end_server();
}
END_TEST

START_TEST(time_is_bounded)
{
    static const char *const flags[] = { "--timeout", "1", "-bs", "5", NULL };
    start_with(flags);
    if (decodes_audio()) {
        struct bytes minutes = make_clip(1800, 1000);
        int fds[2];
        for (int i = 0; i < 2; i++)
            fds[i] = send_clip(&server, PATH, &minutes, NULL);
        for (int i = 0; i < 2; i++) {
            struct answer a = read_answer(fds[i]);
            json_t *value = json_of(&a, 503);
            ck_assert(strstr(text_at(value, "error.message"), "--timeout") != NULL);
            json_decref(value);
        }
        free(minutes.data);
    }
    end_server();
}
END_TEST

/* SIGTERM lets clips end that have come; a second one does not. */
START_TEST(signals)
{
    for (int i = 0; i < 2; i++) {
        start_with(NULL);
        if (decodes_audio()) {
            struct bytes clip = make_clip(i ? 7200 : 60, 1000);
            int fd = send_clip(&server, PATH, &clip, NULL);
            nap(0.3);
            if (i == 1)
                kill(server.pid, SIGTERM);
            nap(0.1);
            end_server();
            struct answer a = read_answer(fd);
            ck_assert_int_eq(a.code, i ? 0 : 200);
            free(a.text);
            free(clip.data);
        } else {
            end_server();
        }
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { every_format,
                                   languages,
                                   fields_are_refused,
                                   no_temporary_file,
                                   speech_alone,
                                   bodies_are_refused,
                                   sizes_are_bounded,
                                   models_do_what_they_can,
                                   keys_and_origins,
                                   clips_take_turns,
                                   clients_take_turns,
                                   clients_leave,
                                   time_is_bounded,
                                   signals,
                                   NULL };
    return run_server_tests("audio", start, stop, tests);
}
