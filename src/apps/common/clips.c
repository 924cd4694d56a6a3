/* A clip's transcript is printed once those before it are. */
#include "apps/common/clips.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/message.h"
#include "apps/common/transcript.h"

enum { WINDOWS = 8, WINDOWS_BYTES = 512 << 20 };

/* Seconds that a clip's length may differ from what its header says. */
static const double LENGTH_TOLERANCE = 0.1;

struct clips;

struct job {
    struct clips *all;
    const char *name;
    struct akunu_audio *audio;      /* NULL: not opened, or ended */
    double header_seconds, seconds; /* what the header says, and what was found; 0: unknown */
    struct app_transcript transcript;
    size_t n_printed; /* segments */
    double fraction;  /* transcribed */
    bool ended, no_memory;
    int code; /* not APP_EXIT_OK: it was not transcribed, after a message */
    enum akunu_status status;
    char *message; /* why it failed; NULL: out of memory */
};

struct clips {
    const struct app_options *o;
    const struct akunu_transcription_params *params;
    struct app_output *out;
    struct app_transcript_source source;
    struct app_progress progress;
    struct job *jobs; /* [n] */
    size_t n, n_opened, n_written;
    bool names_clips; /* before their lines */
    int code;         /* of the first that failed */
};

bool app_writes_files(const struct app_options *o)
{
    return o->speech.txt || o->speech.vtt || o->speech.srt || o->speech.csv || o->speech.tsv ||
           o->speech.lrc || o->speech.json || o->speech.json_full;
}

uint32_t app_speech_texts(const struct akunu_transcription_params *t)
{
    return t->beams > t->best_of ? t->beams : t->best_of;
}

uint32_t app_speech_windows(const struct akunu_model_info *info,
                            const struct akunu_transcription_params *t)
{
    uint64_t tokens = info->encoder_context + (uint64_t)app_speech_texts(t) * info->context,
             bytes = 2 * sizeof(float) * (uint64_t)info->n_layers * info->width * tokens,
             n = bytes > 0 ? WINDOWS_BYTES / bytes : 1;
    return n < 1 ? 1 : n < WINDOWS ? (uint32_t)n : WINDOWS;
}

/* The clip's name in a message. */
static const char *show_clip(const char *name, char *shown)
{
    return strcmp(name, "-") == 0 ? "standard input" : app_show_text(name, shown);
}

struct akunu_audio *app_open_clip(const char *name)
{
    char shown[APP_SHOWN_BYTES];
    app_interrupt_ends(true); /* a pipe or terminal is read to its end */
    struct akunu_audio *audio = strcmp(name, "-") == 0 ?
                                    akunu_audio_open_fd(STDIN_FILENO, "standard input") :
                                    akunu_audio_open(name);
    app_interrupt_ends(false);
    const char *warning = akunu_audio_warning(audio);
    if (warning)
        app_warn("%s: %s", show_clip(name, shown), warning);
    return audio;
}

/* ---- Files -------------------------------------------------------------- */
/* The clip's name, or --output-file; files have an extension added. */
static const char *find_stem(const struct job *j)
{
    const char *asked = j->all->o->speech.stem;
    return asked ? asked : strcmp(j->name, "-") == 0 ? "stdin" : j->name;
}

/* What is found now is not lost after an hour of transcribing. */
static int check_folder(const struct job *j)
{
    const char *stem = find_stem(j), *slash = strrchr(stem, '/');
    char *folder = slash ? strndup(stem, slash > stem ? (size_t)(slash - stem) : 1) : strdup(".");
    if (!folder)
        return app_fail_memory();
    int code = access(folder, W_OK) == 0 ?
                   APP_EXIT_OK :
                   app_fail("cannot write to the folder %s: %s", folder, strerror(errno));
    free(folder);
    return code;
}

static int write_file(const struct job *j, enum app_transcript_form form)
{
    const char *stem = find_stem(j), *extension = app_transcript_extension(form);
    size_t n = strlen(stem) + strlen(extension) + 2;
    char *path = malloc(n);
    if (!path)
        return app_fail_memory();
    snprintf(path, n, "%s.%s", stem, extension);
    struct app_output out = { .file = fopen(path, "wb") };
    int code = APP_EXIT_OK;
    if (out.file) {
        app_transcript_write(&out, &j->transcript, form);
        if (fclose(out.file) != 0 && !out.error)
            out.error = errno;
    } else {
        out.error = errno;
    }
    if (out.error)
        code = app_fail("cannot write %s: %s", path, strerror(out.error));
    free(path);
    return code;
}

static int write_files(const struct job *j)
{
    const bool wanted[APP_TRANSCRIPT_FORMS] = {
        [APP_TRANSCRIPT_TXT] = j->all->o->speech.txt,
        [APP_TRANSCRIPT_VTT] = j->all->o->speech.vtt,
        [APP_TRANSCRIPT_SRT] = j->all->o->speech.srt,
        [APP_TRANSCRIPT_CSV] = j->all->o->speech.csv,
        [APP_TRANSCRIPT_TSV] = j->all->o->speech.tsv,
        [APP_TRANSCRIPT_LRC] = j->all->o->speech.lrc,
        [APP_TRANSCRIPT_JSON] = j->all->o->speech.json && !j->all->o->speech.json_full,
        [APP_TRANSCRIPT_JSON_FULL] = j->all->o->speech.json_full
    };
    int code = APP_EXIT_OK;
    for (enum app_transcript_form form = 0; code == APP_EXIT_OK && form < APP_TRANSCRIPT_FORMS;
         form++)
        if (wanted[form])
            code = write_file(j, form);
    return code;
}

/* ---- Printing ----------------------------------------------------------- */
static void print_lines(struct job *j)
{
    const struct clips *all = j->all;
    if (all->names_clips && j->n_printed == 0 && j->transcript.n > 0)
        app_output_format(all->out, "%s%s:\n", all->n_written > 0 ? "\n" : "", j->name);
    for (; j->n_printed < j->transcript.n; j->n_printed++)
        if (!all->o->output.json)
            app_transcript_line(all->out, &j->transcript, j->n_printed,
                                all->o->transcription.no_timestamps);
    app_output_flush(all->out);
}

/* A clip that was cut off, or is damaged, is decoded up to there. */
static void check_length(const struct job *j)
{
    char shown[APP_SHOWN_BYTES];
    if (j->header_seconds > 0.0 && j->seconds > 0.0 &&
        fabs(j->header_seconds - j->seconds) > LENGTH_TOLERANCE)
        app_warn("%s: ends after %.1f s; its header says %.1f s", show_clip(j->name, shown),
                 j->seconds, j->header_seconds);
}

static int write_job(struct job *j)
{
    if (j->no_memory)
        return app_fail_memory();
    if (j->code != APP_EXIT_OK)
        return j->code;
    if (app_is_interrupted())
        return APP_EXIT_INTERRUPTED;
    if (j->status != AKUNU_OK) {
        app_fail("%s", j->message ? j->message : "out of memory");
        /* the clip's fault, not the model's */
        return j->status == AKUNU_ERROR_FORMAT ? APP_EXIT_FAILURE : app_exit_code(j->status);
    }
    check_length(j);
    if (j->all->o->output.json)
        app_transcript_write(j->all->out, &j->transcript, APP_TRANSCRIPT_JSON);
    app_output_flush(j->all->out); /* Ctrl-C while the next clip is read ends the program */
    return write_files(j);
}

static void free_job(struct job *j)
{
    akunu_audio_free(j->audio);
    app_transcript_free(&j->transcript);
    free(j->message);
    *j = (struct job){ .ended = true };
}

/* Writes clips that have ended, in their order, and what is known of the next one. */
static void write_next(struct clips *all)
{
    for (; all->n_written < all->n_opened; all->n_written++) {
        struct job *j = &all->jobs[all->n_written];
        if (j->transcript.n > j->n_printed || j->ended)
            app_progress_clear(&all->progress);
        print_lines(j);
        if (!j->ended)
            return;
        int code = write_job(j);
        if (all->code == APP_EXIT_OK)
            all->code = code;
        free_job(j);
    }
}

/* ---- What the library calls --------------------------------------------- */
static bool clip_on_segment(const struct akunu_segment *segment, void *user)
{
    struct job *j = user;
    j->no_memory = j->no_memory || !app_transcript_add(&j->transcript, segment);
    if (j == &j->all->jobs[j->all->n_written])
        write_next(j->all);
    return !j->no_memory && !app_is_interrupted();
}

static bool clip_on_progress(double fraction, void *user)
{
    struct job *j = user;
    struct clips *all = j->all;
    double sum = (double)all->n_written;
    j->fraction = fraction;
    for (size_t i = all->n_written; i < all->n_opened; i++)
        sum += all->jobs[i].fraction;
    if (!all->o->speech.no_prints)
        app_progress_show(&all->progress, "transcribing", sum / (double)all->n);
    return !app_is_interrupted();
}

static void clip_on_end(enum akunu_status status, const char *message, const char *language,
                        void *user)
{
    struct job *j = user;
    j->transcript.language = language;
    j->status = status;
    j->message = status == AKUNU_OK ? NULL : strdup(message);
    j->fraction = 1.0;
    j->ended = true;
    j->seconds = akunu_audio_seconds(j->audio);
    akunu_audio_free(j->audio);
    j->audio = NULL;
    write_next(j->all);
}

static void open_job(struct clips *all, struct job *j, const char *name)
{
    const struct app_options *o = all->o;
    *j = (struct job){ .all = all, .name = name };
    j->transcript.has_words = o->transcription.word_times;
    j->transcript.max_line = o->speech.max_line;
    j->transcript.karaoke = o->speech.karaoke;
    j->transcript.source = &all->source;
    j->transcript.highlights = o->speech.colors && app_supports_color(stdout);
    if (app_writes_files(o))
        j->code = check_folder(j);
    if (j->code == APP_EXIT_OK && !(j->audio = app_open_clip(name))) {
        j->status = AKUNU_ERROR_FORMAT;
        j->message = strdup(akunu_last_error());
    }
    j->header_seconds = akunu_audio_seconds(j->audio);
    j->ended = !j->audio;
    j->fraction = j->ended ? 1.0 : 0.0;
}

static bool next_clip(struct akunu_clip *clip, void *user)
{
    struct clips *all = user;
    while (all->n_opened < all->n && !app_is_interrupted()) {
        struct job *j = &all->jobs[all->n_opened];
        open_job(all, j, all->o->speech.clips.values[all->n_opened]);
        all->n_opened++;
        if (j->audio) {
            clip->audio = j->audio;
            clip->params = all->params;
            clip->on_segment = clip_on_segment;
            clip->progress = clip_on_progress;
            clip->on_end = clip_on_end;
            clip->user = j;
            return true;
        }
        write_next(all);
    }
    return false;
}

int app_transcribe_clips(const struct app_options *o, const struct app_model_session *loaded,
                         const struct akunu_transcription_params *params, struct app_output *out)
{
    struct clips all = { .o = o, .params = params, .out = out, .n = o->speech.clips.n };
    all.source = (struct app_transcript_source){ .model = &loaded->info,
                                                 .tokenizer = loaded->tokenizer,
                                                 .path = loaded->path,
                                                 .language = params->language,
                                                 .translate = params->translate };
    all.jobs = calloc(all.n, sizeof *all.jobs);
    if (!all.jobs)
        return app_fail_memory();
    all.progress = app_progress_begin();
    all.names_clips = all.n > 1 && !o->output.json && isatty(STDOUT_FILENO);
    if (akunu_session_transcribe_clips(loaded->session, next_clip, &all) != AKUNU_OK)
        all.code = app_fail_library();
    app_progress_end(&all.progress);
    for (size_t i = all.n_written; i < all.n_opened; i++)
        free_job(&all.jobs[i]);
    free(all.jobs);
    return app_is_interrupted() ? APP_EXIT_INTERRUPTED : all.code;
}
