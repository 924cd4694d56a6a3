/* The tokenizer as GGUF keys: the vocabulary that the tokenizer exports, the ids of special tokens
 * and the flags. */
#include <stdio.h>
#include <string.h>

#include "conversion/convert/convert.h"
#include "text/tokenizer/tokenizer.h"

/* A string of tokenizer_config.json; if it is an object for a token, the object's content. */
static bool find_text(const struct ak_provider *p, const char *key, struct ak_text *out)
{
    static const char *const endings[] = { "", ".content" };
    char full[128];
    struct ak_meta meta;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(full, sizeof full, "tokenizer_config.%s%s", key, endings[i]);
        if (ak_provider_find_meta(p, full, &meta) && meta.kind == AK_META_STRING &&
            meta.n <= UINT32_MAX) {
            *out = (struct ak_text){ meta.as.string, (uint32_t)meta.n };
            return true;
        }
    }
    return false;
}

static int64_t find_token(const struct ak_vocab *v, struct ak_text text)
{
    for (uint32_t id = 0; id < v->n_tokens; id++)
        if (v->tokens[id].n == text.n && memcmp(v->tokens[id].bytes, text.bytes, text.n) == 0)
            return id;
    return -1;
}

/* For "pad": the id of pad_token of tokenizer_config.json, else pad_token_id of config.json. */
static int64_t find_id(const struct ak_provider *p, const struct ak_vocab *v, const char *name)
{
    char key[32];
    struct ak_text text;
    struct ak_meta meta;
    snprintf(key, sizeof key, "%s_token", name);
    int64_t id = find_text(p, key, &text) ? find_token(v, text) : -1;
    snprintf(key, sizeof key, "%s_token_id", name);
    if (id < 0 && ak_provider_find_meta(p, key, &meta) && meta.kind == AK_META_INT)
        id = meta.as.integer;
    return id;
}

static void put_id(struct ak_gguf_writer *w, const char *key, int64_t id, uint32_t n)
{
    if (id >= 0 && id < (int64_t)n)
        ak_gguf_writer_put_u32(w, key, (uint32_t)id);
}

static const char *const fim_keys[AK_VOCAB_FIM_COUNT] = {
    [AK_VOCAB_FIM_PREFIX] = "tokenizer.ggml.fim_pre_token_id",
    [AK_VOCAB_FIM_SUFFIX] = "tokenizer.ggml.fim_suf_token_id",
    [AK_VOCAB_FIM_MIDDLE] = "tokenizer.ggml.fim_mid_token_id",
    [AK_VOCAB_FIM_PAD] = "tokenizer.ggml.fim_pad_token_id",
    [AK_VOCAB_FIM_REPO] = "tokenizer.ggml.fim_rep_token_id",
    [AK_VOCAB_FIM_FILE] = "tokenizer.ggml.fim_sep_token_id",
};

static void put_ids(struct ak_gguf_writer *w, const struct ak_provider *p, const struct ak_vocab *v)
{
    int64_t separator = v->separator >= 0 ? v->separator : find_id(p, v, "sep");
    int64_t unknown = v->unknown >= 0 ? v->unknown : find_id(p, v, "unk");
    int64_t padding = find_id(p, v, "pad");
    put_id(w, "tokenizer.ggml.bos_token_id", v->bos, v->n_tokens);
    put_id(w, "tokenizer.ggml.eos_token_id", v->eos, v->n_tokens);
    put_id(w, "tokenizer.ggml.eot_token_id", v->eot, v->n_tokens);
    put_id(w, "tokenizer.ggml.unknown_token_id", unknown, v->n_tokens);
    put_id(w, "tokenizer.ggml.padding_token_id", padding >= 0 ? padding : v->padding, v->n_tokens);
    put_id(w, "tokenizer.ggml.mask_token_id", find_id(p, v, "mask"), v->n_tokens);
    put_id(w, "tokenizer.ggml.seperator_token_id", separator, v->n_tokens); /* GGUF's spelling */
    put_id(w, "tokenizer.ggml.cls_token_id", v->cls, v->n_tokens);
    for (int i = 0; i < AK_VOCAB_FIM_COUNT; i++)
        put_id(w, fim_keys[i], v->fim[i], v->n_tokens);
}

static void put_flag(struct ak_gguf_writer *w, const char *key, int flag)
{
    if (flag >= 0)
        ak_gguf_writer_put_bool(w, key, flag != 0);
}

static void put_all(struct ak_gguf_writer *w, const struct ak_provider *p,
                    const struct ak_tok_export *e)
{
    const struct ak_vocab *v = &e->vocab;
    ak_gguf_writer_put_text(w, "tokenizer.ggml.model", v->model);
    ak_gguf_writer_put_text(w, "tokenizer.ggml.pre", v->pre);
    ak_gguf_writer_put_texts(w, "tokenizer.ggml.tokens", v->tokens, v->n_tokens);
    if (v->scores)
        ak_gguf_writer_put_floats(w, "tokenizer.ggml.scores", v->scores, v->n_tokens);
    ak_gguf_writer_put_ints(w, "tokenizer.ggml.token_type", v->types, v->n_tokens);
    if (v->merges) /* byte-level BPE, which may have none */
        ak_gguf_writer_put_texts(w, "tokenizer.ggml.merges", v->merges, v->n_merges);
    if (v->charsmap.n > 0)
        ak_gguf_writer_put_bytes(w, "tokenizer.ggml.precompiled_charsmap", v->charsmap);
    put_ids(w, p, v);
    put_flag(w, "tokenizer.ggml.add_bos_token", v->add_bos);
    put_flag(w, "tokenizer.ggml.add_eos_token", v->add_eos);
    put_flag(w, "tokenizer.ggml.add_sep_token", e->add_separator);
    put_flag(w, "tokenizer.ggml.add_space_prefix", v->add_space_prefix);
    put_flag(w, "tokenizer.ggml.remove_extra_whitespaces", v->remove_extra_whitespaces);
    put_flag(w, "tokenizer.ggml.normalizer.lowercase", v->lowercase);
    put_flag(w, "tokenizer.ggml.normalizer.strip_accents", v->strip_accents);
}

/* The name of the pre-tokenizer: the user's, or that of a file which is not GGUF and states one. */
static ak_status choose_pre(const struct ak_provider *p, const char *pre, struct ak_text *out,
                            struct ak_error *error)
{
    struct ak_vocab vocab;
    AK_TRY(ak_provider_vocab(p, &vocab, error));
    *out = pre ? (struct ak_text){ pre, (uint32_t)strlen(pre) } : vocab.pre;
    return AKUNU_OK;
}

static ak_status put_export(struct ak_gguf_writer *w, const struct ak_convert_plan *plan,
                            struct ak_tok_export *e, struct ak_error *error)
{
    struct ak_buffer names = { .n = 0 };
    ak_status status = AKUNU_OK;
    if (plan->spec->arch->emit_encoder)
        status = ak_convert_name_special_tokens(e, &names, error);
    if (status == AKUNU_OK)
        put_all(w, plan->source, e);
    ak_free(names.bytes);
    return status == AKUNU_OK ? ak_convert_put_templates(w, plan->source, error) : status;
}

ak_status ak_convert_put_vocab(struct ak_gguf_writer *w, const struct ak_convert_plan *plan,
                               const struct ak_tokenizer *t, const char *pre,
                               const struct ak_log *log, struct ak_error *error)
{
    struct ak_tok_export e;
    struct ak_text name;
    if (!t) {
        ak_log_line(log, AKUNU_LOG_WARN,
                    "the model has no tokenizer: the file will have no vocabulary");
        ak_gguf_writer_put_string(w, "tokenizer.ggml.model", "none");
        return AKUNU_OK;
    }
    uint32_t n = plan->spec->config.vocab_size;
    if (ak_tok_n_tokens(t) > n)
        ak_log_line(log, AKUNU_LOG_WARN,
                    "the tokenizer has %zu tokens, the model %u: those beyond are left out",
                    ak_tok_n_tokens(t), n);
    AK_TRY(choose_pre(plan->source, pre, &name, error));
    ak_status status = ak_tok_export_vocab(t, n, name, &e, error);
    if (status == AKUNU_OK)
        status = put_export(w, plan, &e, error);
    ak_tok_export_free(&e);
    return status;
}
