/* Speech with 0.1 s of silence in place of what is between, as whisper.cpp cuts it. */
#include "transcribe/cut.h"

#include "base/mem.h"

enum { STEPS_PER_PROGRESS = 1000 /* 32 s */ };

struct steps {
    const struct ak_transcribe_sink *sink;
    uint64_t n;
};

static bool on_probability(float probability, void *user)
{
    struct steps *steps = user;
    (void)probability;
    return steps->n++ % STEPS_PER_PROGRESS != 0 || !steps->sink->on_progress ||
           steps->sink->on_progress(0.0, steps->sink->user);
}

static uint64_t samples_of(uint64_t frames)
{
    return frames < UINT64_MAX / AK_MEL_HOP ? frames * AK_MEL_HOP : UINT64_MAX;
}

ak_status ak_transcribe_cut_open(struct ak_audio *audio, const struct ak_transcribe_vad *vad,
                                 uint64_t first, uint64_t end,
                                 const struct ak_transcribe_sink *sink,
                                 struct ak_transcribe_cut *out, struct ak_error *error)
{
    struct steps steps = { sink, 0 };
    *out = (struct ak_transcribe_cut){ .audio = NULL };
    AK_TRY(ak_vad_detect(vad->silero, audio, &vad->params, false, on_probability, &steps,
                         &out->speech, error));
    ak_vad_ranges_clip(&out->speech, samples_of(first), samples_of(end));
    ak_vad_ranges_extend(&out->speech, (uint64_t)(vad->params.overlap_s * (float)AK_MEL_RATE));
    ak_status status = AKUNU_OK;
    if (out->speech.n > 0)
        status = ak_audio_open_ranges(audio, out->speech.ranges, out->speech.n, AK_VAD_SILENCE,
                                      &out->audio, error);
    if (status != AKUNU_OK)
        ak_transcribe_cut_close(out);
    return status;
}

void ak_transcribe_cut_close(struct ak_transcribe_cut *cut)
{
    ak_audio_close(cut->audio);
    ak_vad_ranges_free(&cut->speech);
    ak_free(cut->words);
    *cut = (struct ak_transcribe_cut){ .audio = NULL };
}

/* Whole milliseconds, so that sums of decimal fractions look like what they are. */
static double map_time(const struct ak_transcribe_cut *cut, double seconds, bool is_end)
{
    double time =
        ak_ranges_time(cut->speech.ranges, cut->speech.n, AK_VAD_SILENCE, seconds, is_end);
    return (double)(int64_t)(time * 1000.0 + 0.5) / 1000.0;
}

static void map_times(const struct ak_transcribe_cut *cut, double *start, double *end)
{
    *start = map_time(cut, *start, false);
    *end = map_time(cut, *end, true);
    if (*end < *start) /* both in one silence */
        *end = *start;
}

static bool map_words(struct ak_transcribe_cut *cut, struct akunu_segment *segment)
{
    if (segment->n_words > cut->capacity) {
        void *grown = ak_realloc(cut->words, segment->n_words, sizeof *cut->words);
        if (!grown)
            return false;
        cut->words = grown;
        cut->capacity = segment->n_words;
    }
    for (size_t i = 0; i < segment->n_words; i++) {
        cut->words[i] = segment->words[i];
        map_times(cut, &cut->words[i].start, &cut->words[i].end);
    }
    segment->words = cut->words;
    return true;
}

bool ak_transcribe_cut_map(struct ak_transcribe_cut *cut, struct akunu_segment *segment)
{
    const double per_second = AK_SPEECH_FRAMES_PER_SECOND;
    map_times(cut, &segment->start, &segment->end);
    segment->window =
        (uint64_t)(map_time(cut, (double)segment->window / per_second, false) * per_second + 0.5);
    return map_words(cut, segment);
}
