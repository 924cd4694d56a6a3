/* Tokenizer classes of transformers: their files, their defaults and the pipeline that they make of
 * their options. A model without a class in tokenizer_config.json has that of its model_type. */
#include <string.h>

#include "base/mem.h"
#include "text/tokenizer/pipeline.h"
#include "text/tokenizer/slow.h"

#define QWEN_WORDS(LETTERS, OTHERS)                                                                \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?" LETTERS "+|\\p{N}| ?[^\\s" OTHERS        \
    "\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static ak_status set_root(struct ak_tok_slow *s, json_t *root)
{
    s->root = root;
    return root ? AKUNU_OK : ak_tok_slow_fail_memory(s);
}

static ak_status build_bert(struct ak_tok_slow *s)
{
    bool lower, chinese, strip;

    AK_TRY(ak_tok_slow_flag(s, "do_lower_case", true, &lower));
    AK_TRY(ak_tok_slow_flag(s, "tokenize_chinese_chars", true, &chinese));
    AK_TRY(ak_tok_slow_flag(s, "strip_accents", lower, &strip));
    return set_root(s, json_pack("{s:{s:s,s:b,s:b,s:b,s:b},s:{s:s},s:{s:s,s:s,s:b},s:{s:s,s:s}}",
                                 "normalizer", "type", "BertNormalizer", "clean_text", 1,
                                 "handle_chinese_chars", chinese, "strip_accents", strip,
                                 "lowercase", lower, "pre_tokenizer", "type", "BertPreTokenizer",
                                 "decoder", "type", "WordPiece", "prefix", "##", "cleanup", 1,
                                 "model", "type", "WordPiece", "continuing_subword_prefix", "##"));
}

static ak_status build_gpt2(struct ak_tok_slow *s)
{
    bool prefix;

    AK_TRY(ak_tok_slow_flag(s, "add_prefix_space", false, &prefix));
    return set_root(s, json_pack("{s:{s:s,s:b},s:{s:s},s:{s:s}}", "pre_tokenizer", "type",
                                 "ByteLevel", "add_prefix_space", prefix, "decoder", "type",
                                 "ByteLevel", "model", "type", "BPE"));
}

static ak_status build_qwen(struct ak_tok_slow *s, const char *words)
{
    bool prefix;

    AK_TRY(ak_tok_slow_flag(s, "add_prefix_space", false, &prefix));
    return set_root(s,
                    json_pack("{s:{s:s},s:{s:s,s:[{s:s,s:{s:s}},{s:s,s:b,s:b}]},s:{s:s},s:{s:s}}",
                              "normalizer", "type", "NFC", "pre_tokenizer", "type", "Sequence",
                              "pretokenizers", "type", "Split", "pattern", "Regex", words, "type",
                              "ByteLevel", "add_prefix_space", prefix, "use_regex", 0, "decoder",
                              "type", "ByteLevel", "model", "type", "BPE"));
}

static ak_status build_qwen2(struct ak_tok_slow *s)
{
    return build_qwen(s, QWEN_WORDS("\\p{L}", "\\p{L}"));
}

static ak_status build_qwen35(struct ak_tok_slow *s)
{
    return build_qwen(s, QWEN_WORDS("[\\p{L}\\p{M}]", "\\p{L}\\p{M}"));
}

/* The parts that BPE models of SentencePiece share; the caller adds the others. */
static ak_status build_spm_bpe(struct ak_tok_slow *s, bool strips_space)
{
    AK_TRY(
        set_root(s, json_pack("{s:{s:s,s:[{s:s,s:s,s:s},{s:s},{s:s}]},s:{s:s,s:b,s:b,s:s*}}",
                              "decoder", "type", "Sequence", "decoders", "type", "Replace",
                              "pattern", AK_TOK_METASPACE, "content", " ", "type", "ByteFallback",
                              "type", "Fuse", "model", "type", "BPE", "fuse_unk", 1,
                              "byte_fallback", 1, "unk_token", ak_tok_slow_name(s, "unk_token"))));
    json_t *decoders = json_object_get(json_object_get(s->root, "decoder"), "decoders");
    if (strips_space &&
        json_array_append_new(decoders, json_pack("{s:s,s:s,s:i,s:i}", "type", "Strip", "content",
                                                  " ", "start", 1, "stop", 0)) != 0)
        return ak_tok_slow_fail_memory(s);
    return AKUNU_OK;
}

static ak_status set_part(struct ak_tok_slow *s, const char *key, json_t *part)
{
    return json_object_set_new(s->root, key, part) == 0 ? AKUNU_OK : ak_tok_slow_fail_memory(s);
}

static json_t *pack_replace_spaces(void)
{
    return json_pack("{s:s,s:s,s:s}", "type", "Replace", "pattern", " ", "content",
                     AK_TOK_METASPACE);
}

/* `legacy` is the way of transformers before version 4.31: each text between control tokens begins
 * with a space. */
static ak_status build_llama(struct ak_tok_slow *s)
{
    bool legacy, prefix;

    AK_TRY(ak_tok_slow_flag(s, "legacy", true, &legacy));
    AK_TRY(ak_tok_slow_flag(s, "add_prefix_space", true, &prefix));
    AK_TRY(build_spm_bpe(s, prefix));
    if (!legacy)
        return set_part(s, "pre_tokenizer",
                        json_pack("{s:s,s:s,s:s,s:b}", "type", "Metaspace", "replacement",
                                  AK_TOK_METASPACE, "prepend_scheme", prefix ? "first" : "never",
                                  "split", 0));
    if (!prefix)
        return set_part(s, "normalizer", pack_replace_spaces());
    return set_part(s, "normalizer",
                    json_pack("{s:s,s:[{s:s,s:s},o]}", "type", "Sequence", "normalizers", "type",
                              "Prepend", "prepend", AK_TOK_METASPACE, pack_replace_spaces()));
}

static ak_status build_gemma(struct ak_tok_slow *s)
{
    AK_TRY(build_spm_bpe(s, false));
    AK_TRY(set_part(s, "normalizer", pack_replace_spaces()));
    return set_part(s, "pre_tokenizer",
                    json_pack("{s:s,s:s,s:s}", "type", "Split", "pattern", " ", "behavior",
                              "MergedWithPrevious"));
}

static ak_status build_unigram(struct ak_tok_slow *s)
{
    bool prefix;

    AK_TRY(ak_tok_slow_flag(s, "add_prefix_space", true, &prefix));
    const char *scheme = prefix ? "always" : "never";
    return set_root(s, json_pack("{s:o,s:{s:s,s:[{s:s},{s:s,s:s,s:s}]},s:{s:s,s:s,s:s},s:{s:s}}",
                                 "normalizer", ak_tok_slow_charsmap(s), "pre_tokenizer", "type",
                                 "Sequence", "pretokenizers", "type", "WhitespaceSplit", "type",
                                 "Metaspace", "replacement", AK_TOK_METASPACE, "prepend_scheme",
                                 scheme, "decoder", "type", "Metaspace", "replacement",
                                 AK_TOK_METASPACE, "prepend_scheme", scheme, "model", "type",
                                 "Unigram"));
}

/* ---- The table ---------------------------------------------------------- */
#define BERT_TOKENS                                                                                \
    "{\"unk_token\": \"[UNK]\", \"sep_token\": \"[SEP]\", \"pad_token\": \"[PAD]\", "              \
    "\"cls_token\": \"[CLS]\", \"mask_token\": \"[MASK]\"}"
#define FAIRSEQ_TOKENS(UNKNOWN)                                                                    \
    "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\", \"sep_token\": \"</s>\", "                  \
    "\"cls_token\": \"<s>\", \"unk_token\": \"" UNKNOWN "\", \"pad_token\": \"<pad>\", "           \
    "\"mask_token\": \"<mask>\"}"
#define LLAMA_TOKENS                                                                               \
    "\"unk_token\": \"<unk>\", \"bos_token\": \"<s>\", \"eos_token\": \"</s>\", "                  \
    "\"add_bos_token\": true"
#define END_TOKEN "\"<|endoftext|>\""

static const struct ak_tok_slow_class classes[] = {
    { "BertTokenizer",
      AK_TOK_SLOW_WORDPIECE,
      { "vocab.txt" },
      AK_TOK_SLOW_CLS_SEP,
      BERT_TOKENS,
      false,
      NULL,
      build_bert },
    { "DistilBertTokenizer",
      AK_TOK_SLOW_WORDPIECE,
      { "vocab.txt" },
      AK_TOK_SLOW_CLS_SEP,
      BERT_TOKENS,
      false,
      NULL,
      build_bert },
    { "ElectraTokenizer",
      AK_TOK_SLOW_WORDPIECE,
      { "vocab.txt" },
      AK_TOK_SLOW_CLS_SEP,
      BERT_TOKENS,
      false,
      NULL,
      build_bert },
    { "MPNetTokenizer",
      AK_TOK_SLOW_WORDPIECE,
      { "vocab.txt" },
      AK_TOK_SLOW_CLS_SEP_SEP,
      FAIRSEQ_TOKENS("[UNK]"),
      true,
      NULL,
      build_bert },
    { "GPT2Tokenizer",
      AK_TOK_SLOW_BPE,
      { "vocab.json", "merges.txt" },
      AK_TOK_SLOW_BOS_EOS,
      "{\"unk_token\": " END_TOKEN ", \"bos_token\": " END_TOKEN ", \"eos_token\": " END_TOKEN "}",
      false,
      NULL,
      build_gpt2 },
    { "RobertaTokenizer",
      AK_TOK_SLOW_BPE,
      { "vocab.json", "merges.txt" },
      AK_TOK_SLOW_CLS_SEP_SEP,
      FAIRSEQ_TOKENS("<unk>"),
      false,
      NULL,
      build_gpt2 },
    { "Qwen2Tokenizer",
      AK_TOK_SLOW_BPE,
      { "vocab.json", "merges.txt" },
      AK_TOK_SLOW_BOS_EOS,
      "{\"unk_token\": " END_TOKEN ", \"eos_token\": " END_TOKEN ", \"pad_token\": " END_TOKEN "}",
      false,
      NULL,
      build_qwen2 },
    { "Qwen3_5Tokenizer",
      AK_TOK_SLOW_BPE,
      { "vocab.json", "merges.txt" },
      AK_TOK_SLOW_BOS_EOS,
      "{\"unk_token\": " END_TOKEN ", \"eos_token\": " END_TOKEN ", \"pad_token\": " END_TOKEN "}",
      false,
      NULL,
      build_qwen35 },
    { "WhisperTokenizer",
      AK_TOK_SLOW_BPE,
      { "vocab.json", "merges.txt" },
      AK_TOK_SLOW_WHISPER,
      "{\"unk_token\": " END_TOKEN ", \"bos_token\": " END_TOKEN ", \"eos_token\": " END_TOKEN "}",
      false,
      NULL,
      build_gpt2 },
    { "LlamaTokenizer",
      AK_TOK_SLOW_SPM_BPE,
      { "tokenizer.model" },
      AK_TOK_SLOW_BOS_EOS,
      "{" LLAMA_TOKENS "}",
      false,
      NULL,
      build_llama },
    { "CodeLlamaTokenizer",
      AK_TOK_SLOW_SPM_BPE,
      { "tokenizer.model" },
      AK_TOK_SLOW_BOS_EOS,
      "{" LLAMA_TOKENS "}",
      false,
      NULL,
      build_llama },
    { "GemmaTokenizer",
      AK_TOK_SLOW_SPM_BPE,
      { "tokenizer.model" },
      AK_TOK_SLOW_BOS_EOS,
      "{\"unk_token\": \"<unk>\", \"bos_token\": \"<bos>\", \"eos_token\": \"<eos>\", "
      "\"pad_token\": \"<pad>\", \"mask_token\": \"<mask>\", \"add_bos_token\": true}",
      false,
      NULL,
      build_gemma },
    { "XLMRobertaTokenizer",
      AK_TOK_SLOW_SPM_UNIGRAM,
      { "sentencepiece.bpe.model" },
      AK_TOK_SLOW_BOS_EOS_EOS,
      FAIRSEQ_TOKENS("<unk>"),
      false,
      ak_tok_slow_arrange_xlm_roberta,
      build_unigram },
    { "CamembertTokenizer",
      AK_TOK_SLOW_SPM_UNIGRAM,
      { "sentencepiece.bpe.model" },
      AK_TOK_SLOW_BOS_EOS_EOS,
      FAIRSEQ_TOKENS("<unk>"),
      true,
      ak_tok_slow_arrange_camembert,
      build_unigram },
    { "T5Tokenizer",
      AK_TOK_SLOW_SPM_UNIGRAM,
      { "spiece.model" },
      AK_TOK_SLOW_EOS,
      "{\"eos_token\": \"</s>\", \"unk_token\": \"<unk>\", \"pad_token\": \"<pad>\", "
      "\"extra_ids\": 100, \"extra_special_tokens\": []}",
      false,
      ak_tok_slow_arrange_t5,
      build_unigram },
};

const struct ak_tok_slow_class *ak_tok_slow_class_at(size_t i)
{
    return i < sizeof classes / sizeof *classes ? &classes[i] : NULL;
}

const struct ak_tok_slow_class *ak_tok_slow_find_class(const char *name)
{
    static const char fast[] = "Fast";
    size_t n = strlen(name), n_fast = sizeof fast - 1;

    if (n > n_fast && strcmp(name + n - n_fast, fast) == 0)
        n -= n_fast;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strlen(classes[i].name) == n && memcmp(classes[i].name, name, n) == 0)
            return &classes[i];
    return NULL;
}

static const struct {
    const char *type, *class_name;
    bool always;
} model_types[] = {
    { "bert", "BertTokenizer", false },
    { "distilbert", "DistilBertTokenizer", false },
    { "electra", "ElectraTokenizer", false },
    { "mpnet", "MPNetTokenizer", false },
    { "nomic_bert", "BertTokenizer", false },
    { "roberta", "RobertaTokenizer", false },
    { "xlm-roberta", "XLMRobertaTokenizer", false },
    { "camembert", "CamembertTokenizer", false },
    { "gpt2", "GPT2Tokenizer", false },
    { "granite", "GPT2Tokenizer", false },
    { "olmo2", "GPT2Tokenizer", false },
    { "qwen2", "Qwen2Tokenizer", true },
    { "qwen2_moe", "Qwen2Tokenizer", false },
    { "qwen3", "Qwen2Tokenizer", false },
    { "qwen3_moe", "Qwen2Tokenizer", false },
    { "qwen3_next", "Qwen2Tokenizer", false },
    { "qwen3_5", "Qwen3_5Tokenizer", true },
    { "qwen3_5_text", "Qwen3_5Tokenizer", false },
    { "qwen3_5_moe", "Qwen3_5Tokenizer", true },
    { "qwen3_5_moe_text", "Qwen3_5Tokenizer", true },
    { "whisper", "WhisperTokenizer", false },
    { "llama", "LlamaTokenizer", false },
    { "mistral", "LlamaTokenizer", false },
    { "mixtral", "LlamaTokenizer", false },
    { "phi3", "LlamaTokenizer", false },
    { "gemma", "GemmaTokenizer", false },
    { "gemma2", "GemmaTokenizer", false },
    { "gemma3", "GemmaTokenizer", false },
    { "gemma3_text", "GemmaTokenizer", false },
};

const char *ak_tok_slow_class_of_model(struct ak_text model_type, bool *always)
{
    *always = false;
    for (size_t i = 0; i < sizeof model_types / sizeof *model_types; i++) {
        const char *type = model_types[i].type;
        if (strlen(type) == model_type.n && memcmp(type, model_type.bytes, model_type.n) == 0) {
            *always = model_types[i].always;
            return model_types[i].class_name;
        }
    }
    return NULL;
}
