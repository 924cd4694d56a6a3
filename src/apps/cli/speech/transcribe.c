/* transcribe: writes down what is said in audio files. */
#include "apps/common/options.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/clips.h"
#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/common/sampling.h"
#include "apps/cli/speech/stream.h"

/* What the flags name besides the model. NULL: not asked for. */
struct extras {
    struct akunu_vad *vad;
    struct akunu_grammar *grammar;
};

/* ---- What is asked for -------------------------------------------------- */
static struct akunu_transcription_params get_params(const struct app_options *o,
                                                    const struct extras *extras)
{
    struct akunu_transcription_params params = o->transcription;
    if (!params.language)
        params.language = "en";
    params.word_times =
        params.word_times || o->speech.max_line > 0 || o->speech.colors || o->speech.karaoke;
    if (params.beams == 0)
        params.beams = o->speech.stream ? 1 : 5;
    if (o->speech.no_fallback || o->speech.stream) /* it would come too late */
        params.temperature_step = 0.0f;
    params.vad = extras->vad;
    params.grammar = extras->grammar;
    params.vad_params = &o->vad_params;
    params.seed = o->text.seed >= 0 ? (uint64_t)o->text.seed : 0;
    return params;
}

/* ---- Languages ---------------------------------------------------------- */
enum { LANGUAGES_MAX = 128 };

static int detect(struct akunu_session *session, const struct app_options *o,
                  const struct akunu_transcription_params *params, const char *name,
                  struct app_output *out)
{
    float probabilities[LANGUAGES_MAX] = { 0.0f };
    size_t best = 0;
    struct akunu_audio *audio = app_open_clip(name);
    if (!audio) {
        app_fail_library();
        return APP_EXIT_FAILURE; /* the clip's fault, not the model's */
    }
    enum akunu_status status =
        akunu_session_languages(session, audio, params, probabilities, LANGUAGES_MAX);
    akunu_audio_free(audio);
    if (status == AKUNU_ERROR_UNSUPPORTED)
        return app_fail_usage("--detect-language: the model knows English alone");
    if (status != AKUNU_OK)
        return app_fail_library();
    for (size_t i = 0; akunu_language_code(i); i++)
        if (probabilities[i] > probabilities[best])
            best = i;
    if (!(probabilities[best] > 0.0f))
        return app_fail("%s: no speech was found, and so no language", name);
    if (!o->output.json) {
        app_output_format(out, "%s (%.2f)\n", akunu_language_code(best),
                          (double)probabilities[best]);
        return APP_EXIT_OK;
    }
    json_t *all = json_object();
    for (size_t i = 0; akunu_language_code(i); i++)
        if (probabilities[i] > 0.0f)
            json_object_set_new(all, akunu_language_code(i),
                                app_json_real((double)probabilities[i]));
    app_json_print(
        out, json_pack("{s:s, s:o}", "language", akunu_language_code(best), "probabilities", all));
    app_output_text(out, "\n");
    return APP_EXIT_OK;
}

/* ---- The command -------------------------------------------------------- */
static int check_options(const struct app_options *o)
{
    if (o->speech.stream &&
        (o->speech.clips.n > 1 ||
         (o->speech.clips.n == 1 && strcmp(o->speech.clips.values[0], "-") != 0)))
        return app_fail_usage("--stream reads standard input, and no files");
    if (o->speech.stream && app_writes_files(o))
        return app_fail_usage("--stream prints text, or JSON, and writes no files");
    if (o->speech.stream && o->speech.detect_language)
        return app_fail_usage("--detect-language reads files, and --stream none");
    if (o->speech.clips.n == 0 && !o->speech.stream)
        return app_fail_usage("an audio file is missing: give it with -f FILE (- is standard "
                              "input)");
    if ((o->grammar.rule || isfinite(o->transcription.grammar_penalty)) && !o->grammar.text &&
        !o->grammar.file)
        return app_fail_usage("%s needs --grammar",
                              o->grammar.rule ? "--grammar-rule" : "--grammar-penalty");
    if (o->speech.stem && !app_writes_files(o))
        return app_fail_usage("--output-file: no file is asked for; add --output-txt, "
                              "--output-srt or another");
    size_t n_stem = o->speech.stem ? strlen(o->speech.stem) : 0;
    if (n_stem > 0 && o->speech.stem[n_stem - 1] == '/')
        return app_fail_usage("--output-file %s: the name of a file is missing", o->speech.stem);
    if (o->speech.stem && o->speech.clips.n > 1)
        return app_fail_usage("--output-file names the files of one clip, and there are %zu",
                              o->speech.clips.n);
    return APP_EXIT_OK;
}

/* Windows at once: what was asked for, and as many as there is work for. */
static uint32_t count_windows(const struct app_options *o, const struct akunu_model_info *info,
                              const struct akunu_transcription_params *params)
{
    uint32_t most =
        o->session.max_windows ? o->session.max_windows : app_speech_windows(info, params);
    if (o->speech.stream || o->speech.detect_language)
        return 1;
    return o->speech.vad || o->speech.clips.n > most ? most : (uint32_t)o->speech.clips.n;
}

static int open_for_speech(const struct app_options *o,
                           const struct akunu_transcription_params *params,
                           struct app_model_session *loaded)
{
    loaded->max_windows = count_windows(o, &loaded->info, params);
    loaded->max_sequences = app_speech_texts(params) * loaded->max_windows;
    int code = app_open_session(o, loaded, 0);
    if (code != APP_EXIT_OK)
        return code;
    akunu_sequence_free(loaded->session, loaded->sequence); /* each text opens one of its own */
    loaded->sequence = -1;
    return APP_EXIT_OK;
}

static int transcribe_clips(const struct app_options *o, struct app_model_session *loaded,
                            const struct extras *extras, struct app_output *out)
{
    struct akunu_transcription_params params = get_params(o, extras);
    int code = open_for_speech(o, &params, loaded);
    if (code != APP_EXIT_OK)
        return code;
    if (o->speech.stream)
        return cli_stream(o, loaded->session, &params, out);
    if (!o->speech.detect_language)
        return app_transcribe_clips(o, loaded, &params, out);
    for (size_t i = 0; code == APP_EXIT_OK && i < o->speech.clips.n; i++)
        code = detect(loaded->session, o, &params, o->speech.clips.values[i], out);
    return code;
}

/* As in whisper.cpp, --grammar takes a file too. */
static int read_grammar(const struct app_options *o, struct akunu_grammar **out)
{
    struct app_options named = *o;
    char shown[APP_SHOWN_BYTES];
    if (o->grammar.text && !strstr(o->grammar.text, "::=")) {
        if (access(o->grammar.text, R_OK) != 0)
            return app_fail_usage("--grammar: \"%s\" is no file that can be read, and no grammar, "
                                  "which has ::=",
                                  app_show_text(o->grammar.text, shown));
        named.grammar.file = o->grammar.text;
        named.grammar.text = NULL;
    }
    return app_read_grammar(&named, AKUNU_SCHEMA_WRITING, out);
}

int cli_transcribe(const struct app_options *o)
{
    struct app_model_session loaded = { .sequence = -1 };
    struct extras extras = { .vad = NULL };
    struct app_output out = app_output_stdout();
    int code = check_options(o);
    if (code == APP_EXIT_OK)
        code = read_grammar(o, &extras.grammar);
    if (code == APP_EXIT_OK)
        code = app_load_model(o, &loaded);
    if (code == APP_EXIT_OK && loaded.info.n_mels == 0) {
        app_fail("%s is no speech model: its architecture is \"%s\"%s", loaded.path,
                 loaded.info.architecture, o->model.name ? "" : "; give a Whisper model with -m");
        code = APP_EXIT_MODEL;
    }
    if (code == APP_EXIT_OK)
        code = app_need_tokenizer(&loaded, "transcribe");
    if (code == APP_EXIT_OK && o->speech.vad)
        code = app_load_vad(o, loaded.path, true, &extras.vad);
    if (code == APP_EXIT_OK)
        code = transcribe_clips(o, &loaded, &extras, &out);
    code = app_output_end(&out, code);
    akunu_vad_free(extras.vad);
    akunu_grammar_free(extras.grammar);
    app_unload(&loaded);
    return code;
}
