/* A transcript and its forms: lines for people, JSON with openai/whisper's fields, and the files of
 * whisper.cpp. */
#ifndef AK_APPS_COMMON_TRANSCRIPT_H
#define AK_APPS_COMMON_TRANSCRIPT_H

#include "akunu/akunu.h"
#include "apps/common/output.h"

/* A segment, and the memory that its members point to. */
struct cli_segment {
    struct akunu_segment of;
    char *text; /* terminated */
    akunu_token *tokens;
    float *probabilities;
    struct akunu_word *words;
    char *spoken; /* the words, one after another */
};

/* What CLI_TRANSCRIPT_JSON_FULL tells besides. */
struct cli_transcript_source {
    const struct akunu_model_info *model;
    const struct akunu_tokenizer *tokenizer;
    const char *path;     /* of the model */
    const char *language; /* that was asked for */
    bool translate;
};

struct cli_transcript {
    struct cli_segment *segments;
    size_t n, capacity;
    const char *language; /* code */
    bool has_words;       /* they were asked for */
    /* with word times: characters of a line and a subtitle, which are cut between words; 0: a
     * segment is one */
    uint32_t max_line;
    bool highlights;                            /* colors words of lines by their probability */
    bool karaoke;                               /* WebVTT and LRC have the times of words */
    const struct cli_transcript_source *source; /* NULL: there is no CLI_TRANSCRIPT_JSON_FULL */
};

enum cli_transcript_form {
    CLI_TRANSCRIPT_TXT,
    CLI_TRANSCRIPT_VTT,
    CLI_TRANSCRIPT_SRT,
    CLI_TRANSCRIPT_CSV,
    CLI_TRANSCRIPT_TSV,
    CLI_TRANSCRIPT_LRC,
    CLI_TRANSCRIPT_JSON,
    CLI_TRANSCRIPT_JSON_FULL,
    CLI_TRANSCRIPT_FORMS
};
/* "txt" */
const char *cli_transcript_extension(enum cli_transcript_form form);

/* Copies a segment. False: out of memory. */
bool cli_transcript_add(struct cli_transcript *t, const struct akunu_segment *segment);
void cli_transcript_free(struct cli_transcript *t);

/* All text, terminated, to be freed. NULL: out of memory. */
char *cli_transcript_text(const struct cli_transcript *t, size_t *n);
/* A word as CLI_TRANSCRIPT_JSON has it. */
json_t *cli_transcript_word(const struct akunu_word *word);
/* The text without the whitespace at its ends. */
const char *cli_transcript_strip(const char *text, size_t *n);
/* The list of segments, as CLI_TRANSCRIPT_JSON has it. */
json_t *cli_transcript_segments(const struct cli_transcript *t);

/* The lines of segment i: times, unless `text_only`, and text. Segments without a text have
 * none. */
void cli_transcript_line(struct cli_output *out, const struct cli_transcript *t, size_t i,
                         bool text_only);

/* "01:02:03.456", with `mark` before the milliseconds. */
enum { CLI_TRANSCRIPT_TIME_BYTES = 32 };
const char *cli_transcript_time(double seconds, char mark, char out[CLI_TRANSCRIPT_TIME_BYTES]);
json_int_t cli_transcript_milliseconds(double seconds);

/* whisper.cpp's full JSON: transcript_full.c. NULL: out of memory. */
json_t *cli_transcript_full(const struct cli_transcript *t);

/* The whole transcript. */
void cli_transcript_write(struct cli_output *out, const struct cli_transcript *t,
                          enum cli_transcript_form form);

#endif
