/* A transcript and its forms: lines for people, JSON with openai/whisper's fields, and the files of
 * whisper.cpp. */
#ifndef AK_APPS_COMMON_TRANSCRIPT_H
#define AK_APPS_COMMON_TRANSCRIPT_H

#include "akunu/akunu.h"
#include "apps/common/output.h"

/* A segment, and the memory that its members point to. */
struct app_segment {
    struct akunu_segment of;
    char *text; /* terminated */
    akunu_token *tokens;
    float *probabilities;
    struct akunu_word *words;
    char *spoken; /* the words, one after another */
};

/* What APP_TRANSCRIPT_JSON_FULL tells besides. */
struct app_transcript_source {
    const struct akunu_model_info *model;
    const struct akunu_tokenizer *tokenizer;
    const char *path;     /* of the model */
    const char *language; /* that was asked for */
    bool translate;
};

struct app_transcript {
    struct app_segment *segments;
    size_t n, capacity;
    const char *language; /* code */
    bool has_words;       /* they were asked for */
    /* with word times: characters of a line and a subtitle, which are cut between words; 0: a
     * segment is one */
    uint32_t max_line;
    bool highlights;                            /* colors words of lines by their probability */
    bool karaoke;                               /* WebVTT and LRC have the times of words */
    const struct app_transcript_source *source; /* NULL: there is no APP_TRANSCRIPT_JSON_FULL */
};

enum app_transcript_form {
    APP_TRANSCRIPT_TXT,
    APP_TRANSCRIPT_VTT,
    APP_TRANSCRIPT_SRT,
    APP_TRANSCRIPT_CSV,
    APP_TRANSCRIPT_TSV,
    APP_TRANSCRIPT_LRC,
    APP_TRANSCRIPT_JSON,
    APP_TRANSCRIPT_JSON_FULL,
    APP_TRANSCRIPT_FORMS
};
/* "txt" */
const char *app_transcript_extension(enum app_transcript_form form);

/* Copies a segment. False: out of memory. */
bool app_transcript_add(struct app_transcript *t, const struct akunu_segment *segment);
void app_transcript_free(struct app_transcript *t);

/* All text, terminated, to be freed. NULL: out of memory. */
char *app_transcript_text(const struct app_transcript *t, size_t *n);
/* A word as APP_TRANSCRIPT_JSON has it. */
json_t *app_transcript_word(const struct akunu_word *word);
/* The text without the whitespace at its ends. */
const char *app_transcript_strip(const char *text, size_t *n);
/* The list of segments, as APP_TRANSCRIPT_JSON has it. */
json_t *app_transcript_segments(const struct app_transcript *t);

/* The lines of segment i: times, unless `text_only`, and text. Segments without a text have
 * none. */
void app_transcript_line(struct app_output *out, const struct app_transcript *t, size_t i,
                         bool text_only);

/* "01:02:03.456", with `mark` before the milliseconds. */
enum { APP_TRANSCRIPT_TIME_BYTES = 32 };
const char *app_transcript_time(double seconds, char mark, char out[APP_TRANSCRIPT_TIME_BYTES]);
json_int_t app_transcript_milliseconds(double seconds);

/* whisper.cpp's full JSON: transcript_full.c. NULL: out of memory. */
json_t *app_transcript_full(const struct app_transcript *t);

/* The whole transcript. */
void app_transcript_write(struct app_output *out, const struct app_transcript *t,
                          enum app_transcript_form form);

#endif
