/* Writes down what is said in an audio file, and when each word is: transcribe MODEL TALK.mp3
 * Ctrl-C stops it. */
#include <akunu/akunu.h>
#include <signal.h>
#include <stdio.h>

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

/* A segment is final. Its texts are valid until this returns. */
static bool print_segment(const struct akunu_segment *segment, void *user)
{
    (void)user;
    printf("[%7.2f to %7.2f]%.*s\n", segment->start, segment->end, (int)segment->n_bytes,
           segment->text);
    for (size_t i = 0; i < segment->n_words; i++) {
        const struct akunu_word *word = &segment->words[i];
        printf("  %7.2f %3.0f %%%s%.*s\n", word->start, 100.0 * word->probability,
               word->n_bytes > 0 && word->text[0] == ' ' ? "" : " ", (int)word->n_bytes,
               word->text);
    }
    fflush(stdout);
    return !interrupted; /* false stops */
}

/* Is called before each token, so that Ctrl-C stops soon. */
static bool report_progress(double fraction, void *user)
{
    int *shown = user, percent = (int)(100.0 * fraction);
    if (percent > *shown)
        fprintf(stderr, "\r%3d %%\r", *shown = percent);
    return !interrupted;
}

static bool transcribe(struct akunu_session *session, struct akunu_audio *audio)
{
    struct akunu_transcription_params params;
    struct akunu_clip clip;
    const char *language = NULL;
    int shown = -1;
    akunu_transcription_params_default(&params, sizeof params);
    params.language = "auto";
    params.word_times = true;
    akunu_clip_default(&clip, sizeof clip);
    clip.audio = audio;
    clip.params = &params;
    clip.on_segment = print_segment;
    clip.progress = report_progress;
    clip.user = &shown;
    bool good = akunu_session_transcribe(session, &clip, &language) == AKUNU_OK;
    if (good)
        printf("%.1f s of %s\n", akunu_audio_seconds(audio), language);
    return good;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: transcribe MODEL AUDIO\n");
        return 2;
    }
    struct akunu_session_params params;
    akunu_session_params_default(&params, sizeof params);
    params.max_sequences = 5; /* beams */
    signal(SIGINT, on_signal);

    struct akunu_model *model = akunu_model_load(argv[1], NULL);
    struct akunu_audio *audio = model ? akunu_audio_open(argv[2]) : NULL;
    struct akunu_session *session = audio ? akunu_session_new(model, &params) : NULL;
    bool good = session && transcribe(session, audio);
    if (!good)
        fprintf(stderr, "transcribe: %s\n", akunu_last_error());
    akunu_session_free(session);
    akunu_audio_free(audio);
    akunu_model_free(model);
    return good ? 0 : interrupted ? 130 : 1;
}
