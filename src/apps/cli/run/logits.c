/* logits: writes the logits of every position of some ids as a .npy file. Of a speech model, over
 * the first 30 s of a clip; or its log-mel frames, or the encoder's output. */
#include "apps/common/options.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/clips.h"
#include "apps/common/input.h"
#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/cli/run/npy.h"

/* Runs ids [first, first + n) as one pass and writes their rows. */
static int one_pass(struct app_model_session *loaded, const akunu_token *ids, size_t n,
                    struct akunu_batch_token *tokens, struct cli_npy *npy)
{
    for (size_t i = 0; i < n; i++)
        tokens[i] = (struct akunu_batch_token){ .token = ids[i],
                                                .sequence = loaded->sequence,
                                                .logits = true };
    if (akunu_session_decode(loaded->session, tokens, n) != AKUNU_OK)
        return app_fail_library();
    for (size_t i = 0; i < n; i++) {
        int code = cli_npy_row(npy, akunu_session_logits(loaded->session, i));
        if (code != APP_EXIT_OK)
            return code;
    }
    return app_is_interrupted() ? APP_EXIT_INTERRUPTED : APP_EXIT_OK;
}

/* Runs all positions in passes of the session's batch; memory does not grow with n. */
static int all_passes(struct app_model_session *loaded, const akunu_token *ids, size_t n,
                      const char *path)
{
    size_t batch = akunu_session_batch(loaded->session);
    struct akunu_batch_token *tokens = malloc(batch * sizeof *tokens);
    if (!tokens)
        return app_fail_memory();
    struct app_progress progress = app_progress_begin();
    struct cli_npy npy;
    int code = cli_npy_create(path, n, loaded->info.vocab_size, &npy);
    for (size_t first = 0; code == APP_EXIT_OK && first < n; first += batch) {
        size_t count = n - first < batch ? n - first : batch;
        code = one_pass(loaded, ids + first, count, tokens, &npy);
        app_progress_show(&progress, "logits", (double)(first + count) / (double)n);
    }
    app_progress_end(&progress);
    free(tokens);
    return cli_npy_close(&npy, code);
}

/* The context that n ids need, unless -c says otherwise. */
static int open_for_ids(const struct app_options *o, struct app_model_session *loaded, size_t n)
{
    size_t context = o->session.context ? o->session.context : loaded->info.context;
    if (n > context)
        return app_fail("%s has %zu tokens and the context holds %zu (-c sets its size)",
                        app_ids_name(o), n, context);
    return app_open_session(o, loaded, (uint32_t)n);
}

static int read_ids(const struct app_options *o, const struct app_model_session *loaded,
                    akunu_token **ids, size_t *n)
{
    int code = app_read_ids(o, ids, n);
    if (code == APP_EXIT_OK && *n == 0)
        code = app_fail_usage("%s: no token ids", app_ids_name(o));
    if (code == APP_EXIT_OK)
        code = app_check_ids(app_ids_name(o), *ids, *n, loaded->info.vocab_size);
    return code;
}

/* ---- Speech ------------------------------------------------------------- */
/* Frames of the clip's first window, [2 · encoder_context][n_mels]; free *out. */
static int read_frames(const struct app_options *o, const struct akunu_model_info *info,
                       const struct akunu_model *model, float **out)
{
    size_t n = 2 * (size_t)info->encoder_context;
    if (!o->prompt.file)
        return app_fail_usage("a speech model needs audio: -f CLIP");
    struct akunu_audio *audio = app_open_clip(o->prompt.file);
    if (!audio)
        return app_fail_library();
    *out = malloc(n * info->n_mels * sizeof **out);
    int code = *out ? APP_EXIT_OK : app_fail_memory();
    if (code == APP_EXIT_OK && akunu_audio_mel(audio, model, 0, n, *out) != AKUNU_OK)
        code = app_fail_library();
    akunu_audio_free(audio);
    return code;
}

/* Writes [rows, cols]; `values` has them row by row or, if transposed, column by column. */
static int write_matrix(const char *path, const float *values, size_t rows, size_t cols,
                        bool transposed)
{
    struct cli_npy npy;
    float *row = malloc(cols * sizeof *row);
    if (!row)
        return app_fail_memory();
    int code = cli_npy_create(path, rows, cols, &npy);
    for (size_t i = 0; code == APP_EXIT_OK && i < rows; i++) {
        for (size_t j = 0; j < cols; j++)
            row[j] = transposed ? values[j * rows + i] : values[i * cols + j];
        code = cli_npy_row(&npy, row);
    }
    free(row);
    return cli_npy_close(&npy, code);
}

/* Encodes the window; with --stage encoder writes its output. */
static int encode_window(const struct app_options *o, struct app_model_session *loaded,
                         const float *frames)
{
    const struct akunu_model_info *info = &loaded->info;
    bool wanted = o->output.stage == APP_STAGE_ENCODER;
    float *out = wanted ? malloc((size_t)info->encoder_context * info->width * sizeof *out) : NULL;
    akunu_sequence window = akunu_sequence_new(loaded->session);
    int code = wanted && !out ? app_fail_memory() : APP_EXIT_OK;
    if (code == APP_EXIT_OK &&
        (window < 0 || akunu_session_encode(loaded->session, window, frames, 0, out) != AKUNU_OK ||
         akunu_sequence_attend(loaded->session, loaded->sequence, window) != AKUNU_OK))
        code = app_fail_library();
    if (code == APP_EXIT_OK && wanted)
        code = write_matrix(o->output.path, out, info->encoder_context, info->width, false);
    free(out);
    return code;
}

static int speech(const struct app_options *o, struct app_model_session *loaded)
{
    const struct akunu_model_info *info = &loaded->info;
    akunu_token *ids = NULL;
    float *frames = NULL;
    size_t n = 0;
    bool wants_logits = o->output.stage == APP_STAGE_LOGITS;
    int code = wants_logits && !o->prompt.ids ?
                   app_fail_usage("--ids is missing: the text whose logits are wanted; or --stage "
                                  "mel, --stage encoder") :
                   APP_EXIT_OK;
    if (code == APP_EXIT_OK && wants_logits)
        code = read_ids(o, loaded, &ids, &n);
    if (code == APP_EXIT_OK)
        code = read_frames(o, info, loaded->model, &frames);
    if (code == APP_EXIT_OK && o->output.stage == APP_STAGE_MEL)
        code = write_matrix(o->output.path, frames, info->n_mels, 2 * (size_t)info->encoder_context,
                            true);
    if (code == APP_EXIT_OK && o->output.stage != APP_STAGE_MEL)
        code = open_for_ids(o, loaded, wants_logits ? n : 1);
    if (code == APP_EXIT_OK && o->output.stage != APP_STAGE_MEL)
        code = encode_window(o, loaded, frames);
    if (code == APP_EXIT_OK && wants_logits)
        code = all_passes(loaded, ids, n, o->output.path);
    free(frames);
    free(ids);
    return code;
}

static int text(const struct app_options *o, struct app_model_session *loaded)
{
    akunu_token *ids = NULL;
    size_t n = 0;
    if (o->output.stage != APP_STAGE_LOGITS)
        return app_fail_usage("--stage is for speech models; this one reads text");
    int code = o->prompt.ids && o->prompt.file ?
                   app_fail_usage("--ids and -f exclude each other, unless the "
                                  "model is one of speech") :
                   read_ids(o, loaded, &ids, &n);
    if (code == APP_EXIT_OK)
        code = open_for_ids(o, loaded, n);
    if (code == APP_EXIT_OK)
        code = all_passes(loaded, ids, n, o->output.path);
    free(ids);
    return code;
}

int cli_logits(const struct app_options *o)
{
    struct app_model_session loaded = { .sequence = -1 };
    if (!o->output.path)
        return app_fail_usage("--out FILE is missing: where the logits go");
    int code = app_load_model(o, &loaded);
    if (code == APP_EXIT_OK)
        code = loaded.info.n_mels > 0 ? speech(o, &loaded) : text(o, &loaded);
    app_unload(&loaded);
    return code;
}
