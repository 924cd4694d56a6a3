/* Parts of a tokenizer.json: typed reads of members, then normalizer, pre-tokenizer, decoder and
 * post-processor. A part of an unknown type is refused by name: without it, ids would be wrong. */
#include "text/tokenizer/json_parts.h"

#include "base/mem.h"

#define GPT2_WORDS                                                                                 \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

static ak_status fail_type(const char *where, const char *key, const json_t *found,
                           const char *wanted, struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: %s is %s, where %s is expected", where, key,
                   ak_json_kind(found), wanted);
}

ak_status ak_tok_json_text(const json_t *object, const char *key, bool needed, const char *where,
                           struct ak_text *out, struct ak_error *error)
{
    const json_t *value = json_object_get(object, key);

    *out = (struct ak_text){ NULL, 0 };
    if (!needed && (!value || json_is_null(value)))
        return AKUNU_OK;
    if (!json_is_string(value) || json_string_length(value) > INT32_MAX)
        return fail_type(where, key, value, "a string", error);
    *out = (struct ak_text){ json_string_value(value), (uint32_t)json_string_length(value) };
    return AKUNU_OK;
}

ak_status ak_tok_json_bool(const json_t *object, const char *key, bool fallback, const char *where,
                           bool *out, struct ak_error *error)
{
    const json_t *value = json_object_get(object, key);

    *out = fallback;
    if (!value || json_is_null(value))
        return AKUNU_OK;
    if (!json_is_boolean(value))
        return fail_type(where, key, value, "a bool", error);
    *out = json_is_true(value);
    return AKUNU_OK;
}

bool ak_tok_json_integer(const json_t *value, int64_t *out)
{
    double real = json_real_value(value);

    if (json_is_integer(value))
        *out = json_integer_value(value);
    else if (json_is_real(value) && real >= -0x1p53 && real <= 0x1p53 &&
             (double)(int64_t)real == real)
        *out = (int64_t)real;
    else
        return false;
    return true;
}

ak_status ak_tok_json_object(const json_t *object, const char *key, bool needed, const char *where,
                             json_t **out, struct ak_error *error)
{
    *out = json_object_get(object, key);
    if (json_is_null(*out))
        *out = NULL;
    if ((*out || needed) && !json_is_object(*out))
        return fail_type(where, key, *out, "an object", error);
    return AKUNU_OK;
}

ak_status ak_tok_json_list(const json_t *object, const char *key, bool needed, const char *where,
                           json_t **out, struct ak_error *error)
{
    *out = json_object_get(object, key);
    if (json_is_null(*out))
        *out = NULL;
    if ((*out || needed) && !json_is_array(*out))
        return fail_type(where, key, *out, "a list", error);
    return AKUNU_OK;
}

static ak_status fail_unknown_type(const char *where, struct ak_text type, struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: the type '%.*s' is not supported", where,
                   (int)ak_min_size(type.n, 64), type.bytes);
}

static ak_status copy_text(struct ak_text text, char **out, uint32_t *n, struct ak_error *error)
{
    *out = ak_alloc((size_t)text.n + 1, 1);
    if (!*out)
        return ak_fail_memory(error, "the tokenizer", text.n);
    if (text.n)
        memcpy(*out, text.bytes, text.n);
    *n = text.n;
    return AKUNU_OK;
}

static ak_status add_transform(struct ak_tok_transforms *steps, enum ak_tok_transform_kind kind,
                               struct ak_tok_transform **out, struct ak_error *error)
{
    *out = ak_tok_transforms_add(steps, kind);
    return *out ? AKUNU_OK : ak_fail_memory(error, "the tokenizer", sizeof **out);
}

static ak_status add_kind(struct ak_tok_transforms *steps, enum ak_tok_transform_kind kind,
                          struct ak_error *error)
{
    struct ak_tok_transform *s;
    return add_transform(steps, kind, &s, error);
}

/* Reads "pattern": {"String": …}, {"Regex": …} or a string. */
static ak_status read_pattern(const json_t *part, const char *where, struct ak_tok_transform *s,
                              struct ak_error *error)
{
    const json_t *pattern = json_object_get(part, "pattern");
    struct ak_text text;

    if (json_is_string(pattern)) {
        AK_TRY(ak_tok_json_text(part, "pattern", true, where, &text, error));
    } else if (json_object_get(pattern, "Regex")) {
        AK_TRY(ak_tok_json_text(pattern, "Regex", true, where, &text, error));
        return ak_tok_regex_compile(text, true, &s->pattern, error);
    } else if (json_object_get(pattern, "String")) {
        AK_TRY(ak_tok_json_text(pattern, "String", true, where, &text, error));
    } else {
        return fail_type(where, "pattern", pattern, "an object with String or Regex", error);
    }
    if (text.n == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: pattern is an empty string", where);
    return copy_text(text, &s->literal, &s->n_literal, error);
}

static ak_status read_replace(const json_t *part, const char *where,
                              struct ak_tok_transforms *steps, struct ak_error *error)
{
    struct ak_tok_transform *s;
    struct ak_text content;

    AK_TRY(ak_tok_json_text(part, "content", true, where, &content, error));
    AK_TRY(add_transform(steps, AK_TOK_NORM_REPLACE, &s, error));
    AK_TRY(read_pattern(part, where, s, error));
    return copy_text(content, &s->text, &s->n_text, error);
}

static int digit64(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes Base64 (RFC 4648, section 4) into `out`, which has room for text.n bytes. */
static bool decode64(struct ak_text text, char *out, uint32_t *n)
{
    uint32_t bits = 0, n_bits = 0;

    *n = 0;
    while (text.n > 0 && text.bytes[text.n - 1] == '=')
        text.n--;
    for (uint32_t i = 0; i < text.n; i++) {
        int digit = digit64(text.bytes[i]);
        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            out[(*n)++] = (char)(bits >> n_bits & 0xFF);
        }
    }
    return true;
}

static ak_status read_precompiled(const json_t *part, const char *where,
                                  struct ak_tok_transforms *steps, struct ak_error *error)
{
    struct ak_text text;
    struct ak_tok_transform *s;
    uint32_t n;

    AK_TRY(ak_tok_json_text(part, "precompiled_charsmap", false, where, &text, error));
    if (text.n == 0)
        return AKUNU_OK;
    AK_TRY(add_transform(steps, AK_TOK_NORM_PRECOMPILED, &s, error));
    s->per_grapheme = true;
    char *bytes = ak_alloc(text.n, 1);
    if (!bytes)
        return ak_fail_memory(error, "the precompiled character map", text.n);
    ak_status status = AKUNU_OK;
    if (!decode64(text, bytes, &n))
        status =
            ak_fail(error, AKUNU_ERROR_FORMAT, "%s: precompiled_charsmap is not base64", where);
    else
        status = ak_tok_charsmap_load(&s->map, (struct ak_text){ bytes, n }, error);
    ak_free(bytes);
    return status;
}

static ak_status read_bert(const json_t *part, const char *where, struct ak_tok_transforms *steps,
                           struct ak_error *error)
{
    bool clean, chinese, lower, strip;

    AK_TRY(ak_tok_json_bool(part, "clean_text", true, where, &clean, error));
    AK_TRY(ak_tok_json_bool(part, "handle_chinese_chars", true, where, &chinese, error));
    AK_TRY(ak_tok_json_bool(part, "lowercase", true, where, &lower, error));
    AK_TRY(ak_tok_json_bool(part, "strip_accents", lower, where, &strip, error));
    if (clean)
        AK_TRY(add_kind(steps, AK_TOK_NORM_CLEAN_TEXT, error));
    if (chinese)
        AK_TRY(add_kind(steps, AK_TOK_NORM_CHINESE_CHARS, error));
    if (strip) {
        AK_TRY(add_kind(steps, AK_TOK_NORM_NFD, error));
        AK_TRY(add_kind(steps, AK_TOK_NORM_STRIP_MN, error));
    }
    return lower ? add_kind(steps, AK_TOK_NORM_LOWERCASE, error) : AKUNU_OK;
}

static ak_status read_strip(const json_t *part, const char *where, struct ak_tok_transforms *steps,
                            struct ak_error *error)
{
    struct ak_tok_transform *s;

    AK_TRY(add_transform(steps, AK_TOK_NORM_STRIP, &s, error));
    AK_TRY(ak_tok_json_bool(part, "strip_left", true, where, &s->strip_left, error));
    return ak_tok_json_bool(part, "strip_right", true, where, &s->strip_right, error);
}

static ak_status read_prepend(const json_t *part, const char *where,
                              struct ak_tok_transforms *steps, struct ak_error *error)
{
    struct ak_text text;
    struct ak_tok_transform *s;

    AK_TRY(ak_tok_json_text(part, "prepend", true, where, &text, error));
    AK_TRY(add_transform(steps, AK_TOK_NORM_PREPEND, &s, error));
    return copy_text(text, &s->text, &s->n_text, error);
}

ak_status ak_tok_json_read_normalizer(const json_t *part, struct ak_tok_transforms *steps,
                                      struct ak_error *error)
{
    static const char where[] = "tokenizer.json: normalizer";
    static const struct {
        const char *name;
        enum ak_tok_transform_kind kind;
    } kinds[] = {
        { "NFC", AK_TOK_NORM_NFC },
        { "NFD", AK_TOK_NORM_NFD },
        { "NFKC", AK_TOK_NORM_NFKC },
        { "NFKD", AK_TOK_NORM_NFKD },
        { "Lowercase", AK_TOK_NORM_LOWERCASE },
        { "StripAccents", AK_TOK_NORM_STRIP_ACCENTS },
    };
    struct ak_text type;
    json_t *list, *element;
    size_t i;

    AK_TRY(ak_tok_json_text(part, "type", true, where, &type, error));
    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (ak_text_equals(type, kinds[i].name))
            return add_kind(steps, kinds[i].kind, error);
    if (ak_text_equals(type, "Replace"))
        return read_replace(part, where, steps, error);
    if (ak_text_equals(type, "Prepend"))
        return read_prepend(part, where, steps, error);
    if (ak_text_equals(type, "Strip"))
        return read_strip(part, where, steps, error);
    if (ak_text_equals(type, "BertNormalizer"))
        return read_bert(part, where, steps, error);
    if (ak_text_equals(type, "Precompiled"))
        return read_precompiled(part, where, steps, error);
    if (!ak_text_equals(type, "Sequence"))
        return fail_unknown_type(where, type, error);
    AK_TRY(ak_tok_json_list(part, "normalizers", true, where, &list, error));
    json_array_foreach (list, i, element)
        AK_TRY(ak_tok_json_read_normalizer(element, steps, error));
    return AKUNU_OK;
}

static ak_status read_behavior(const json_t *part, const char *where, enum ak_tok_behavior fallback,
                               enum ak_tok_behavior *out, struct ak_error *error)
{
    static const char *const names[] = { "Removed", "Isolated", "MergedWithPrevious",
                                         "MergedWithNext", "Contiguous" };
    struct ak_text text;

    *out = fallback;
    AK_TRY(ak_tok_json_text(part, "behavior", false, where, &text, error));
    if (!text.bytes)
        return AKUNU_OK;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        *out = (enum ak_tok_behavior)i;
        if (ak_text_equals(text, names[i]))
            return AKUNU_OK;
    }
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: behavior '%.*s' is not known", where,
                   (int)ak_min_size(text.n, 64), text.bytes);
}

static ak_status read_split(const json_t *part, const char *where, struct ak_tok_transforms *steps,
                            struct ak_error *error)
{
    struct ak_tok_transform *s;

    AK_TRY(add_transform(steps, AK_TOK_PRE_SPLIT, &s, error));
    AK_TRY(read_pattern(part, where, s, error));
    AK_TRY(ak_tok_json_bool(part, "invert", false, where, &s->invert, error));
    return read_behavior(part, where, AK_TOK_ISOLATED, &s->behavior, error);
}

static ak_status read_prepend_scheme(const json_t *part, const char *where,
                                     enum ak_tok_prepend_scheme *out, struct ak_error *error)
{
    struct ak_text scheme;
    bool prefix;

    /* older files have only this */
    AK_TRY(ak_tok_json_bool(part, "add_prefix_space", true, where, &prefix, error));
    AK_TRY(ak_tok_json_text(part, "prepend_scheme", false, where, &scheme, error));
    *out = prefix ? AK_TOK_PREPEND_ALWAYS : AK_TOK_PREPEND_NEVER;
    if (!scheme.bytes)
        return AKUNU_OK;
    *out = ak_text_equals(scheme, "first") ? AK_TOK_PREPEND_FIRST :
           ak_text_equals(scheme, "never") ? AK_TOK_PREPEND_NEVER :
                                             AK_TOK_PREPEND_ALWAYS;
    if (*out != AK_TOK_PREPEND_ALWAYS || ak_text_equals(scheme, "always"))
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: prepend_scheme '%.*s' is not known", where,
                   (int)ak_min_size(scheme.n, 64), scheme.bytes);
}

static ak_status read_metaspace(const json_t *part, const char *where,
                                struct ak_tok_transforms *steps, struct ak_error *error)
{
    struct ak_text mark;
    struct ak_tok_transform *s;

    AK_TRY(ak_tok_json_text(part, "replacement", true, where, &mark, error));
    if (mark.n == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: replacement is an empty string", where);
    AK_TRY(add_transform(steps, AK_TOK_PRE_METASPACE, &s, error));
    AK_TRY(ak_tok_json_bool(part, "split", true, where, &s->split, error));
    AK_TRY(read_prepend_scheme(part, where, &s->prepend, error));
    return copy_text(mark, &s->text, &s->n_text, error);
}

static ak_status read_byte_level(const json_t *part, const char *where,
                                 struct ak_tok_transforms *steps, struct ak_error *error)
{
    bool prefix, words;
    struct ak_tok_transform *s;

    AK_TRY(ak_tok_json_bool(part, "add_prefix_space", true, where, &prefix, error));
    AK_TRY(ak_tok_json_bool(part, "use_regex", true, where, &words, error));
    if (prefix)
        AK_TRY(add_kind(steps, AK_TOK_PRE_PREFIX_SPACE, error));
    if (!words)
        return AKUNU_OK;
    AK_TRY(add_transform(steps, AK_TOK_PRE_SPLIT, &s, error));
    s->behavior = AK_TOK_ISOLATED;
    return ak_tok_regex_compile((struct ak_text){ GPT2_WORDS, sizeof GPT2_WORDS - 1 }, false,
                                &s->pattern, error);
}

static ak_status add_with_behavior(struct ak_tok_transforms *steps, enum ak_tok_transform_kind kind,
                                   enum ak_tok_behavior behavior, struct ak_error *error)
{
    struct ak_tok_transform *s;

    AK_TRY(add_transform(steps, kind, &s, error));
    s->behavior = behavior;
    return AKUNU_OK;
}

static ak_status read_digits(const json_t *part, const char *where, struct ak_tok_transforms *steps,
                             struct ak_error *error)
{
    bool individual;

    AK_TRY(ak_tok_json_bool(part, "individual_digits", false, where, &individual, error));
    return add_with_behavior(steps, AK_TOK_PRE_DIGITS,
                             individual ? AK_TOK_ISOLATED : AK_TOK_CONTIGUOUS, error);
}

ak_status ak_tok_json_read_pretokenizer(const json_t *part, struct ak_tok_transforms *steps,
                                        bool *byte_level, struct ak_error *error)
{
    static const char where[] = "tokenizer.json: pre_tokenizer";
    struct ak_text type;
    json_t *list, *element;
    enum ak_tok_behavior behavior;
    size_t i;

    AK_TRY(ak_tok_json_text(part, "type", true, where, &type, error));
    if (*byte_level)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: %.*s comes after ByteLevel, which is not supported", where,
                       (int)ak_min_size(type.n, 64), type.bytes);
    if (ak_text_equals(type, "ByteLevel")) {
        *byte_level = true;
        return read_byte_level(part, where, steps, error);
    }
    if (ak_text_equals(type, "Metaspace"))
        return read_metaspace(part, where, steps, error);
    if (ak_text_equals(type, "Split"))
        return read_split(part, where, steps, error);
    if (ak_text_equals(type, "Digits"))
        return read_digits(part, where, steps, error);
    if (ak_text_equals(type, "Punctuation")) {
        AK_TRY(read_behavior(part, where, AK_TOK_ISOLATED, &behavior, error));
        return add_with_behavior(steps, AK_TOK_PRE_PUNCTUATION, behavior, error);
    }
    if (ak_text_equals(type, "WhitespaceSplit"))
        return add_with_behavior(steps, AK_TOK_PRE_WHITESPACE_SPLIT, AK_TOK_REMOVED, error);
    if (ak_text_equals(type, "Whitespace"))
        return add_with_behavior(steps, AK_TOK_PRE_WORDS, AK_TOK_REMOVED, error);
    if (ak_text_equals(type, "BertPreTokenizer")) {
        AK_TRY(add_with_behavior(steps, AK_TOK_PRE_WHITESPACE_SPLIT, AK_TOK_REMOVED, error));
        return add_with_behavior(steps, AK_TOK_PRE_PUNCTUATION, AK_TOK_ISOLATED, error);
    }
    if (!ak_text_equals(type, "Sequence"))
        return fail_unknown_type(where, type, error);
    AK_TRY(ak_tok_json_list(part, "pretokenizers", true, where, &list, error));
    json_array_foreach (list, i, element)
        AK_TRY(ak_tok_json_read_pretokenizer(element, steps, byte_level, error));
    return AKUNU_OK;
}

static ak_status read_metaspace_decoder(const json_t *part, const char *where,
                                        struct ak_tok_json_decoder *out, struct ak_error *error)
{
    struct ak_text mark;
    struct ak_tok_transform *s;
    enum ak_tok_prepend_scheme first;

    AK_TRY(ak_tok_json_text(part, "replacement", true, where, &mark, error));
    AK_TRY(read_prepend_scheme(part, where, &first, error));
    if (mark.n == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: replacement is an empty string", where);
    out->strips_space = first != AK_TOK_PREPEND_NEVER;
    AK_TRY(add_transform(&out->steps, AK_TOK_NORM_REPLACE, &s, error));
    AK_TRY(copy_text(mark, &s->literal, &s->n_literal, error));
    return copy_text((struct ak_text){ " ", 1 }, &s->text, &s->n_text, error);
}

/* Spaces at the beginning of the whole text; published files use no other kind. */
static ak_status read_strip_decoder(const json_t *part, const char *where,
                                    struct ak_tok_json_decoder *out, struct ak_error *error)
{
    struct ak_text content;
    int64_t start = 0, stop = 0;

    AK_TRY(ak_tok_json_text(part, "content", true, where, &content, error));
    bool counts = ak_tok_json_integer(json_object_get(part, "start"), &start) &&
                  ak_tok_json_integer(json_object_get(part, "stop"), &stop);
    if (!counts || !ak_text_equals(content, " ") || start < 0 || start > 1 || stop != 0 ||
        !out->fused)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: Strip is supported only of one space at the start, after Fuse", where);
    out->strips_space = start == 1;
    return AKUNU_OK;
}

ak_status ak_tok_json_read_decoder(const json_t *part, struct ak_tok_json_decoder *out,
                                   struct ak_error *error)
{
    static const char where[] = "tokenizer.json: decoder";
    struct ak_text type;
    json_t *list, *element;
    size_t i;

    AK_TRY(ak_tok_json_text(part, "type", true, where, &type, error));
    if (ak_text_equals(type, "ByteLevel")) {
        out->byte_level = true;
        return AKUNU_OK;
    }
    if (ak_text_equals(type, "ByteFallback")) {
        out->byte_fallback = true;
        return AKUNU_OK;
    }
    if (ak_text_equals(type, "Fuse")) {
        out->fused = true;
        return AKUNU_OK;
    }
    if (ak_text_equals(type, "WordPiece")) {
        out->wordpiece = true;
        return ak_tok_json_bool(part, "cleanup", true, where, &out->cleanup, error);
    }
    if (ak_text_equals(type, "Metaspace"))
        return read_metaspace_decoder(part, where, out, error);
    if (ak_text_equals(type, "Replace"))
        return read_replace(part, where, &out->steps, error);
    if (ak_text_equals(type, "Strip"))
        return read_strip_decoder(part, where, out, error);
    if (!ak_text_equals(type, "Sequence"))
        return fail_unknown_type(where, type, error);
    AK_TRY(ak_tok_json_list(part, "decoders", true, where, &list, error));
    json_array_foreach (list, i, element)
        AK_TRY(ak_tok_json_read_decoder(element, out, error));
    return AKUNU_OK;
}

static ak_status add_affix(struct ak_tok_pipeline *p, bool after, const json_t *id,
                           const char *where, struct ak_error *error)
{
    int64_t value;
    uint32_t *n = after ? &p->n_suffix : &p->n_prefix;

    if (!ak_tok_json_integer(id, &value) || value < 0 || value > INT32_MAX)
        return fail_type(where, "a special token's id", id, "an integer from 0 on", error);
    if (*n == AK_TOK_AFFIX_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: more than %d special tokens are added",
                       where, AK_TOK_AFFIX_MAX);
    (after ? p->suffix_ids : p->prefix_ids)[(*n)++] = (int32_t)value;
    return AKUNU_OK;
}

static const char *get_special(const json_t *element)
{
    return json_string_value(json_object_get(json_object_get(element, "SpecialToken"), "id"));
}

/* Counts the special tokens between the two texts of a pair, without those that begin a text. */
static uint32_t count_separators(const json_t *pair)
{
    const char *first = get_special(json_array_get(pair, 0));
    json_t *element;
    size_t i;
    uint32_t n = 0;
    bool inside = false;

    json_array_foreach (pair, i, element) {
        const char *special = get_special(element);
        if (inside && !special)
            return n;
        inside = inside || !special;
        n += inside && special && (!first || strcmp(special, first) != 0);
    }
    return 0;
}

/* A template: a list of special tokens and one place for the text. */
static ak_status read_template(const json_t *part, const char *where, struct ak_tok_pipeline *p,
                               struct ak_error *error)
{
    json_t *single, *specials, *element, *ids, *id;
    size_t i, k;
    bool after = false;
    struct ak_text name;

    AK_TRY(ak_tok_json_list(part, "single", true, where, &single, error));
    AK_TRY(ak_tok_json_object(part, "special_tokens", true, where, &specials, error));
    p->n_separators = count_separators(json_object_get(part, "pair"));
    json_array_foreach (single, i, element) {
        const json_t *special = json_object_get(element, "SpecialToken");
        if (!special) {
            after = true;
            continue;
        }
        AK_TRY(ak_tok_json_text(special, "id", true, where, &name, error));
        AK_TRY(ak_tok_json_list(json_object_get(specials, name.bytes), "ids", true, where, &ids,
                                error));
        json_array_foreach (ids, k, id)
            AK_TRY(add_affix(p, after, id, where, error));
    }
    return AKUNU_OK;
}

ak_status ak_tok_json_read_post_processor(const json_t *part, struct ak_tok_pipeline *p,
                                          struct ak_error *error)
{
    static const char where[] = "tokenizer.json: post_processor";
    struct ak_text type;
    json_t *list, *element;
    size_t i;

    AK_TRY(ak_tok_json_text(part, "type", true, where, &type, error));
    if (ak_text_equals(type, "ByteLevel"))
        return AKUNU_OK;
    if (ak_text_equals(type, "TemplateProcessing"))
        return read_template(part, where, p, error);
    if (ak_text_equals(type, "BertProcessing") || ak_text_equals(type, "RobertaProcessing")) {
        p->n_separators = ak_text_equals(type, "BertProcessing") ? 1 : 2;
        AK_TRY(add_affix(p, false, json_array_get(json_object_get(part, "cls"), 1), where, error));
        return add_affix(p, true, json_array_get(json_object_get(part, "sep"), 1), where, error);
    }
    if (!ak_text_equals(type, "Sequence"))
        return fail_unknown_type(where, type, error);
    AK_TRY(ak_tok_json_list(part, "processors", true, where, &list, error));
    json_array_foreach (list, i, element)
        AK_TRY(ak_tok_json_read_post_processor(element, p, error));
    return AKUNU_OK;
}
