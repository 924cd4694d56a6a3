/* Metadata of speech models: GGUF's keys for Whisper, the mel filters, the heads of attention that
 * follow the audio, and the names of the special tokens, which GGML files leave out.
 * https://github.com/ggml-org/ggml/blob/master/docs/gguf.md has the keys of the sizes; those of
 * filters and heads are akunu's own. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "conversion/convert/convert.h"
#include "speech/search/rules.h"

enum { TYPE_CONTROL = 3, TYPE_UNUSED = 5, NAME_BYTES = 32 };

static void put_sizes(struct ak_gguf_writer *w, const struct ak_spec_config *c)
{
    const struct {
        const char *key;
        uint32_t value;
    } sizes[] = {
        { "whisper.vocab_size", c->vocab_size },
        { "whisper.encoder.context_length", c->encoder_context },
        { "whisper.encoder.embedding_length", c->width },
        { "whisper.encoder.feed_forward_length", c->ffn_width },
        { "whisper.encoder.block_count", c->n_encoder_layers },
        { "whisper.encoder.mels_count", c->n_mels },
        { "whisper.encoder.attention.head_count", c->n_heads },
        { "whisper.decoder.context_length", c->context },
        { "whisper.decoder.embedding_length", c->width },
        { "whisper.decoder.feed_forward_length", c->ffn_width },
        { "whisper.decoder.block_count", c->n_layers },
        { "whisper.decoder.attention.head_count", c->n_heads },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        ak_gguf_writer_put_u32(w, sizes[i].key, sizes[i].value);
}

/* [n_mels][bins]; sources without filters leave them to be computed. */
static ak_status put_filters(struct ak_gguf_writer *w, const struct ak_provider *p,
                             struct ak_error *error)
{
    static const char key[] = "whisper.encoder.mel_filters";
    float *values;
    uint32_t n;
    AK_TRY(ak_provider_read_floats(p, key, &values, &n, error));
    if (values)
        ak_gguf_writer_put_floats(w, key, values, n);
    ak_free(values);
    return w->status;
}

/* Layer, head, layer, head, …, if the source names them; else readers know them by the sizes. */
static void put_heads(struct ak_gguf_writer *w, const struct ak_provider *p,
                      const struct ak_spec_config *c)
{
    int32_t heads[2 * AK_SPEC_ALIGNMENT_MAX];
    struct ak_meta meta;
    if (!ak_provider_find_meta(p, "generation_config.alignment_heads", &meta))
        return;
    for (uint32_t i = 0; i < c->n_alignment; i++) {
        heads[2 * i] = c->alignment[i].layer;
        heads[2 * i + 1] = c->alignment[i].head;
    }
    if (c->n_alignment > 0)
        ak_gguf_writer_put_ints(w, "whisper.alignment_heads", heads, 2 * c->n_alignment);
}

ak_status ak_convert_put_speech(struct ak_gguf_writer *w, const struct ak_convert_plan *plan,
                                struct ak_error *error)
{
    put_sizes(w, &plan->spec->config);
    put_heads(w, plan->source, &plan->spec->config);
    return put_filters(w, plan->source, error);
}

/* ---- Special tokens ----------------------------------------------------- */
static void format_name(const struct ak_speech_tokens *t, int32_t id, char out[NAME_BYTES])
{
    const struct {
        int32_t id;
        const char *name;
    } named[] = {
        { t->end, "endoftext" },
        { t->start, "startoftranscript" },
        { t->translate, "translate" },
        { t->transcribe, "transcribe" },
        { t->language_model, "startoflm" },
        { t->previous, "startofprev" },
        { t->no_speech, "nospeech" },
        { t->no_timestamps, "notimestamps" },
    };
    int32_t time = id - t->first_time;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (named[i].id == id)
            snprintf(out, NAME_BYTES, "<|%s|>", named[i].name);
    if (id >= t->first_language && id < t->first_language + t->n_languages)
        snprintf(out, NAME_BYTES, "<|%s|>", ak_speech_language_code(id - t->first_language));
    if (time >= 0)
        snprintf(out, NAME_BYTES, "<|%d.%02d|>", time / AK_SPEECH_TIMES_PER_SECOND,
                 time % AK_SPEECH_TIMES_PER_SECOND * (100 / AK_SPEECH_TIMES_PER_SECOND));
}

ak_status ak_convert_name_special_tokens(struct ak_tok_export *e, struct ak_buffer *names,
                                         struct ak_error *error)
{
    struct ak_speech_tokens tokens;
    char name[NAME_BYTES];
    if (ak_speech_tokens_find(e->vocab.n_tokens, &tokens, NULL) != AKUNU_OK)
        return AKUNU_OK; /* none of OpenAI's vocabularies */
    size_t n = (size_t)(tokens.n - tokens.end);
    AK_TRY(ak_buffer_reserve(names, n * NAME_BYTES, error)); /* stays where it is from here on */
    for (int32_t id = tokens.end; id < tokens.n; id++) {
        if (e->types[id] != TYPE_UNUSED)
            continue;
        format_name(&tokens, id, name);
        char *place = names->bytes + names->n;
        memcpy(place, name, strlen(name));
        e->tokens[id] = (struct ak_text){ place, (uint32_t)strlen(name) };
        e->types[id] = TYPE_CONTROL;
        names->n += strlen(name);
    }
    return AKUNU_OK;
}
