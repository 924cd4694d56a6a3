/* Voice activity detection for transcriptions: the weights of a model, and what a request asks for,
 * as OpenAI's chunking_strategy or as whisper.cpp's fields. */
#include <string.h>

#include "apps/server/speech.h"

#include "apps/common/json_text.h"

enum { MS_MAX = 600000, SPEECH_S_MAX = 3600, OVERLAP_S_MAX = 60 };

int server_open_vad(struct server_model *m)
{
    const struct app_options *o = m->options;
    return app_load_vad(o, m->loaded.path, o->speech.vad || o->speech.vad_model, &m->vad);
}

static bool read_integer(struct http_exchange *x, const json_t *object, const char *name,
                         uint32_t *out)
{
    int64_t value = (int64_t)*out;
    bool good = server_get_integer(x, object, name, 0, MS_MAX, &value);
    *out = good ? (uint32_t)value : *out;
    return good;
}

static bool check_members(struct http_exchange *x, const json_t *object)
{
    static const char *const known[] = { "type", "threshold", "prefix_padding_ms",
                                         "silence_duration_ms" };
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)object, name, value) {
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            found = found || strcmp(name, known[i]) == 0;
        if (!found) {
            char shown[APP_SHOWN_BYTES];
            server_fail(x, 400, "chunking_strategy", NULL,
                        "chunking_strategy has %s; expected type, threshold, prefix_padding_ms and "
                        "silence_duration_ms",
                        app_show_text(name, shown));
            return false;
        }
    }
    return true;
}

/* {"type": "server_vad", …} */
static bool read_server_vad(struct http_exchange *x, const json_t *object,
                            struct akunu_vad_params *out)
{
    const char *type = json_string_value(json_object_get(object, "type"));
    double threshold = (double)out->threshold;
    if (!type || strcmp(type, "server_vad") != 0) {
        server_fail_member(x, "chunking_strategy.type", json_object_get(object, "type"),
                           "\"server_vad\"");
        return false;
    }
    if (!check_members(x, object) ||
        !server_get_real(x, object, "threshold", 0.0, 1.0, &threshold) ||
        !read_integer(x, object, "prefix_padding_ms", &out->speech_pad_ms) ||
        !read_integer(x, object, "silence_duration_ms", &out->min_silence_ms))
        return false;
    out->threshold = (float)threshold;
    return true;
}

static bool read_strategy(struct http_exchange *x, const json_t *form, bool *on,
                          struct akunu_vad_params *out)
{
    const json_t *found = json_object_get(form, "chunking_strategy");
    const char *text = json_string_value(found);
    if (!found)
        return true;
    *on = true;
    if (text && strcmp(text, "auto") == 0)
        return true;
    json_t *object = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    bool good = app_json_is_object(object);
    if (!good)
        server_fail_member(x, "chunking_strategy", found, "auto or an object");
    else
        good = read_server_vad(x, object, out);
    json_decref(object);
    return good;
}

static bool read_real(struct http_exchange *x, const json_t *form, const char *name, double max,
                      float *out)
{
    double value = (double)*out;
    bool good = server_form_get_real(x, form, name, 0.0, max, &value);
    *out = good ? (float)value : *out;
    return good;
}

/* Reads milliseconds; *out stays if the form has none. False: it has been answered with an error.
 */
static bool read_ms(struct http_exchange *x, const json_t *form, const char *name, uint32_t *out)
{
    double value = (double)*out;
    bool good = server_form_get_real(x, form, name, 0.0, MS_MAX, &value);
    *out = good ? (uint32_t)value : *out;
    return good;
}

static bool read_fields(struct http_exchange *x, const json_t *form, bool *on,
                        struct akunu_vad_params *out)
{
    return server_form_get_bool(x, form, "vad", on) &&
           read_real(x, form, "vad_threshold", 1.0, &out->threshold) &&
           read_ms(x, form, "vad_min_speech_duration_ms", &out->min_speech_ms) &&
           read_ms(x, form, "vad_min_silence_duration_ms", &out->min_silence_ms) &&
           read_real(x, form, "vad_max_speech_duration_s", SPEECH_S_MAX, &out->max_speech_s) &&
           read_ms(x, form, "vad_speech_pad_ms", &out->speech_pad_ms) &&
           read_real(x, form, "vad_samples_overlap", OVERLAP_S_MAX, &out->overlap_s);
}

bool server_read_vad(struct server_model *m, struct http_exchange *x, const json_t *form,
                     const struct akunu_vad **vad, struct akunu_vad_params *out)
{
    bool on = m->options->speech.vad;
    *out = m->options->vad_params;
    if (!read_strategy(x, form, &on, out) || !read_fields(x, form, &on, out))
        return false;
    if (on && !m->vad) {
        server_fail(x, 501, NULL, NULL,
                    "the server has no weights of Silero VAD; expected a file named with "
                    "--vad-model");
        return false;
    }
    *vad = on ? m->vad : NULL;
    return true;
}
