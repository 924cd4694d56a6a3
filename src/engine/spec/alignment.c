/* Heads of Whisper's cross-attention that follow the audio. */
#include "engine/spec/stages.h"

/* As tokens are timed by them: a list of pairs in Hugging Face's generation_config.json, a flat
 * list in GGUF. */
static const char *const keys[] = { "generation_config.alignment_heads",
                                    "whisper.alignment_heads" };

struct known {
    uint32_t n_layers, n_heads, vocab_size;
    struct ak_spec_alignment_head heads[32];
};

static const struct known known[] = {
#define AK_ALIGNMENT(layers, heads, vocab, ...) { layers, heads, vocab, { __VA_ARGS__ } },
#include "engine/spec/alignment.def"
#undef AK_ALIGNMENT
};

/* Adds a head once, unless the decoder does not have it: a list may be that of a larger model from
 * which this one was distilled. */
static ak_status add_head(struct ak_spec_config *config, uint64_t layer, uint64_t head,
                          const char *key, struct ak_error *error)
{
    if (layer >= config->n_layers || head >= config->n_heads || layer > UINT8_MAX ||
        head > UINT8_MAX) {
        config->n_foreign_alignment++;
        return AKUNU_OK;
    }
    for (uint32_t i = 0; i < config->n_alignment; i++)
        if (config->alignment[i].layer == layer && config->alignment[i].head == head)
            return AKUNU_OK;
    if (config->n_alignment == AK_SPEC_ALIGNMENT_MAX)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s has more than %d heads", key,
                       AK_SPEC_ALIGNMENT_MAX);
    config->alignment[config->n_alignment++] =
        (struct ak_spec_alignment_head){ (uint8_t)layer, (uint8_t)head };
    return AKUNU_OK;
}

static bool get_number(const struct ak_provider *p, const struct ak_meta *list, uint64_t i,
                       uint64_t *out)
{
    struct ak_meta element;
    if (!ak_provider_element(p, list, i, &element))
        return false;
    if (element.kind == AK_META_INT && element.as.integer >= 0)
        *out = (uint64_t)element.as.integer;
    else if (element.kind == AK_META_UINT)
        *out = element.as.unsigned_integer;
    else
        return false;
    return true;
}

/* Pair i of a list of pairs, or of numbers. */
static bool get_pair(const struct ak_provider *p, const struct ak_meta *list, uint64_t i,
                     uint64_t *layer, uint64_t *head)
{
    struct ak_meta pair = *list;
    uint64_t at = 2 * i;
    if (list->element_kind == AK_META_ARRAY) {
        if (!ak_provider_element(p, list, i, &pair) || pair.n != 2)
            return false;
        at = 0;
    }
    return get_number(p, &pair, at, layer) && get_number(p, &pair, at + 1, head);
}

static ak_status read_list(const struct ak_provider *p, const struct ak_meta *list,
                           struct ak_spec_config *config, struct ak_error *error)
{
    bool is_nested = list->element_kind == AK_META_ARRAY;
    uint64_t n = is_nested ? list->n : list->n / 2, layer, head;
    if (list->kind != AK_META_ARRAY || (!is_nested && list->n % 2 != 0))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is no list of pairs of layer and head",
                       list->key);
    for (uint64_t i = 0; i < n; i++) {
        if (!get_pair(p, list, i, &layer, &head))
            return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is no list of pairs of layer and head",
                           list->key);
        AK_TRY(add_head(config, layer, head, list->key, error));
    }
    return AKUNU_OK;
}

/* Of a head of layer 0 there is no known model, so zeros end a list. */
static bool find_known(struct ak_spec_config *c)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct known *k = &known[i];
        if (k->n_layers != c->n_layers || k->n_heads != c->n_heads ||
            k->vocab_size != c->vocab_size)
            continue;
        while (k->heads[c->n_alignment].layer > 0) {
            c->alignment[c->n_alignment] = k->heads[c->n_alignment];
            c->n_alignment++;
        }
        return true;
    }
    return false;
}

ak_status ak_spec_read_alignment(const struct ak_provider *p, struct ak_spec_config *config,
                                 struct ak_error *error)
{
    struct ak_meta list;
    config->n_alignment = config->n_foreign_alignment = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (ak_provider_find_meta(p, keys[i], &list))
            AK_TRY(read_list(p, &list, config, error));
    if (config->n_alignment > 0 || find_known(config))
        return AKUNU_OK;
    for (uint32_t layer = config->n_layers / 2; layer < config->n_layers; layer++)
        for (uint32_t head = 0; head < config->n_heads; head++)
            if (config->n_alignment < AK_SPEC_ALIGNMENT_MAX && layer <= UINT8_MAX &&
                head <= UINT8_MAX)
                AK_TRY(add_head(config, layer, head, "the model", error));
    return AKUNU_OK;
}

void ak_spec_warn_alignment(const struct ak_spec_config *config, const struct ak_log *log)
{
    if (config->n_foreign_alignment > 0)
        ak_log_line(log, AKUNU_LOG_WARN,
                    "alignment_heads: entries ignored, because the decoder (%u layers of %u heads) "
                    "does not have such heads: %u; heads that time words: %u",
                    (unsigned)config->n_layers, (unsigned)config->n_heads,
                    (unsigned)config->n_foreign_alignment, (unsigned)config->n_alignment);
}
