/* transcribe: writes down what is said in audio files. */
#include "cli/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/load.h"
#include "cli/message.h"
#include "cli/stream.h"
#include "cli/transcript.h"

/* One clip. */
struct job {
    const struct cli_options *o;
    struct cli_transcript transcript;
    struct cli_output *out;
    struct cli_progress progress;
    const struct akunu_vad *vad; /* NULL: everything is transcribed */
    const char *name;            /* "-": standard input */
    bool wants_lines, no_memory;
};

static bool on_segment(const struct akunu_segment *segment, void *user)
{
    struct job *j = user;
    if (!cli_transcript_add(&j->transcript, segment)) {
        j->no_memory = true;
        return false;
    }
    if (j->wants_lines) {
        cli_progress_end(&j->progress);
        cli_transcript_line(j->out, &j->transcript, j->o->transcription.no_timestamps);
        cli_output_flush(j->out);
    }
    return !cli_is_interrupted();
}

static bool on_progress(double fraction, void *user)
{
    struct job *j = user;
    if (!j->o->no_prints)
        cli_progress_show(&j->progress, "transcribing", fraction);
    return !cli_is_interrupted();
}

/* ---- Files -------------------------------------------------------------- */
/* STEM.txt: the clip's name, or --output-file, with an extension added. */
static int write_file(const struct job *j, enum cli_transcript_form form)
{
    const char *stem = j->o->output_stem         ? j->o->output_stem :
                       strcmp(j->name, "-") == 0 ? "stdin" :
                                                   j->name,
               *extension = cli_transcript_extension(form);
    size_t n = strlen(stem) + strlen(extension) + 2;
    char *path = malloc(n);
    if (!path)
        return cli_fail_memory();
    snprintf(path, n, "%s.%s", stem, extension);
    struct cli_output out = { .file = fopen(path, "wb") };
    int code = CLI_EXIT_OK;
    if (out.file) {
        cli_transcript_write(&out, &j->transcript, form);
        if (fclose(out.file) != 0 && !out.error)
            out.error = errno;
    } else {
        out.error = errno;
    }
    if (out.error)
        code = cli_fail("cannot write %s: %s", path, strerror(out.error));
    free(path);
    return code;
}

static int write_files(const struct job *j)
{
    const bool wanted[CLI_TRANSCRIPT_FORMS] = {
        [CLI_TRANSCRIPT_TXT] = j->o->output_txt,  [CLI_TRANSCRIPT_VTT] = j->o->output_vtt,
        [CLI_TRANSCRIPT_SRT] = j->o->output_srt,  [CLI_TRANSCRIPT_CSV] = j->o->output_csv,
        [CLI_TRANSCRIPT_TSV] = j->o->output_tsv,  [CLI_TRANSCRIPT_LRC] = j->o->output_lrc,
        [CLI_TRANSCRIPT_JSON] = j->o->output_json
    };
    int code = CLI_EXIT_OK;
    for (enum cli_transcript_form form = 0; code == CLI_EXIT_OK && form < CLI_TRANSCRIPT_FORMS;
         form++)
        if (wanted[form])
            code = write_file(j, form);
    return code;
}

static bool writes_files(const struct cli_options *o)
{
    return o->output_txt || o->output_vtt || o->output_srt || o->output_csv || o->output_tsv ||
           o->output_lrc || o->output_json;
}

/* ---- Languages ---------------------------------------------------------- */
enum { LANGUAGES_MAX = 128 };

static int detect(struct cli_model_session *loaded, struct akunu_audio *audio, struct job *j)
{
    float probabilities[LANGUAGES_MAX] = { 0.0f };
    size_t best = 0;
    if (akunu_session_languages(loaded->session, audio, probabilities, LANGUAGES_MAX) != AKUNU_OK)
        return cli_fail_library();
    for (size_t i = 0; akunu_language_code(i); i++)
        if (probabilities[i] > probabilities[best])
            best = i;
    if (!j->o->json) {
        cli_output_format(j->out, "%s (%.2f)\n", akunu_language_code(best),
                          (double)probabilities[best]);
        return CLI_EXIT_OK;
    }
    json_t *all = json_object();
    for (size_t i = 0; akunu_language_code(i); i++)
        if (probabilities[i] > 0.0f)
            json_object_set_new(all, akunu_language_code(i),
                                cli_json_real((double)probabilities[i]));
    cli_json_print(j->out, json_pack("{s:s, s:o}", "language", akunu_language_code(best),
                                     "probabilities", all));
    return CLI_EXIT_OK;
}

/* ---- Clips -------------------------------------------------------------- */
static struct akunu_transcription get_params(const struct cli_options *o,
                                             const struct akunu_vad *vad)
{
    struct akunu_transcription params = o->transcription;
    if (!params.language)
        params.language = "en";
    params.word_times = params.word_times || o->max_line > 0 || o->print_colors || o->karaoke;
    if (params.beams == 0)
        params.beams = o->stream ? 1 : 5;
    if (o->no_fallback || o->stream) /* it would come too late */
        params.temperature_step = 0.0f;
    params.vad = vad;
    params.vad_params = &o->vad_params;
    params.seed = o->seed >= 0 ? (uint64_t)o->seed : 0;
    return params;
}

static int transcribe(struct cli_model_session *loaded, struct akunu_audio *audio, struct job *j)
{
    struct akunu_transcription params = get_params(j->o, j->vad);
    j->progress = cli_progress_begin();
    enum akunu_status status = akunu_session_transcribe(loaded->session, audio, &params, on_segment,
                                                        on_progress, j, &j->transcript.language);
    cli_progress_end(&j->progress);
    if (j->no_memory)
        return cli_fail_memory();
    if (cli_is_interrupted())
        return CLI_EXIT_INTERRUPTED;
    if (status != AKUNU_OK) {
        int code = cli_fail_library();
        return status == AKUNU_ERROR_FORMAT ? CLI_EXIT_FAILURE : code;
    }
    if (j->o->json)
        cli_transcript_write(j->out, &j->transcript, CLI_TRANSCRIPT_JSON);
    return write_files(j);
}

static int one_clip(const struct cli_options *o, struct cli_model_session *loaded,
                    const struct akunu_vad *vad, const char *name, struct cli_output *out)
{
    bool is_standard = strcmp(name, "-") == 0;
    struct job j = { .o = o, .out = out, .vad = vad, .name = name, .wants_lines = !o->json };
    j.transcript.has_words = o->transcription.word_times;
    j.transcript.max_line = o->max_line;
    j.transcript.karaoke = o->karaoke;
    j.transcript.highlights = o->print_colors && cli_supports_color(stdout);
    struct akunu_audio *audio =
        is_standard ? akunu_audio_open_fd(STDIN_FILENO, "standard input") : akunu_audio_open(name);
    if (!audio) {
        cli_fail_library();
        return CLI_EXIT_FAILURE; /* the clip's fault, not the model's */
    }
    int code = o->detect_language ? detect(loaded, audio, &j) : transcribe(loaded, audio, &j);
    akunu_audio_free(audio);
    cli_transcript_free(&j.transcript);
    return code;
}

static int check(const struct cli_options *o)
{
    if (o->stream && (o->clips.n > 1 || (o->clips.n == 1 && strcmp(o->clips.values[0], "-") != 0)))
        return cli_fail_usage("--stream reads standard input, and no files");
    if (o->stream && (writes_files(o) || o->detect_language))
        return cli_fail_usage("--stream prints text, or JSON, and writes no files");
    if (o->clips.n == 0 && !o->stream)
        return cli_fail_usage("an audio file is missing: give it with -f FILE (- is standard "
                              "input)");
    if (o->output_stem && !writes_files(o))
        return cli_fail_usage("--output-file: no file is asked for; add --output-txt, "
                              "--output-srt or another");
    if (o->output_stem && o->clips.n > 1)
        return cli_fail_usage("--output-file names the files of one clip, and there are %zu",
                              o->clips.n);
    return CLI_EXIT_OK;
}

static int load_vad(const struct cli_options *o, const char *model_path, struct akunu_vad **out)
{
    char *path;
    int code = cli_vad_path(o->vad_model, model_path, &path);
    if (code != CLI_EXIT_OK)
        return code;
    *out = akunu_vad_load(path);
    free(path);
    return *out ? CLI_EXIT_OK : cli_fail_library();
}

int cli_transcribe(const struct cli_options *o)
{
    struct cli_model_session loaded = { .sequence = -1 };
    struct akunu_vad *vad = NULL;
    struct cli_output out = cli_output_stdout();
    int code = check(o);
    if (code == CLI_EXIT_OK)
        code = cli_load_model(o, &loaded);
    if (code == CLI_EXIT_OK && loaded.info.n_mels == 0) {
        cli_fail("%s: the architecture \"%s\" is none of speech", loaded.path,
                 loaded.info.architecture);
        code = CLI_EXIT_MODEL;
    }
    if (code == CLI_EXIT_OK && o->vad)
        code = load_vad(o, loaded.path, &vad);
    if (code == CLI_EXIT_OK) {
        struct akunu_transcription t = get_params(o, vad);
        loaded.max_sequences = t.beams > t.best_of ? t.beams : t.best_of;
        code = cli_open_session(o, &loaded, 0);
    }
    if (code == CLI_EXIT_OK) { /* each text opens a sequence of its own */
        akunu_sequence_free(loaded.session, loaded.sequence);
        loaded.sequence = -1;
    }
    if (code == CLI_EXIT_OK && o->stream) {
        struct akunu_transcription params = get_params(o, vad);
        code = cli_stream(o, loaded.session, &params, &out);
    }
    for (size_t i = 0; code == CLI_EXIT_OK && i < o->clips.n && !o->stream; i++)
        code = one_clip(o, &loaded, vad, o->clips.values[i], &out);
    code = cli_output_end(&out, code);
    akunu_vad_free(vad);
    cli_unload(&loaded);
    return code;
}
