/* Pre-tokenizer patterns by the name in tokenizer.ggml.pre, which llama.cpp's converter writes.
 * They split as llama.cpp does (its src/llama-vocab.cpp and unicode.cpp), also where its classes
 * are wider than those of the model's tokenizer.json, as for capitals beyond ASCII. All patterns
 * match in linear time. */
#include "text/tokenizer/pretokenize.h"

#include <stddef.h>

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
/* Whitespace before a word leaves its last character to the word. */
#define BLANKS "\\s+(?!\\S)|\\s+"
#define LINES "\\s*[\\r\\n]+|" BLANKS
#define SYMBOLS " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES
#define WORD "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|" BLANKS
#define LLAMA3 CONTRACTION "|" WORD "|\\p{N}{1,3}|" SYMBOLS
#define QWEN2 CONTRACTION "|" WORD "|\\p{N}|" SYMBOLS

/* Capitals, then small letters, at least one letter; a letter beyond ASCII counts as both. This is
 * `U*L+|U+L*` without backtracking: the capitals are followed by a small letter, or end in a letter
 * that is both, or are all there is. */
#define CASED(letters)                                                                             \
    "(?:(?:(?![a-z])[" letters "])*+[a-z](?:(?![A-Z])[" letters                                    \
    "])*+|(?:[A-Z]*+(?:(?![A-Za-z])[" letters "])++)++|[A-Z]++)"
#define CASED_WORD "[^\\r\\n\\p{L}\\p{N}]?" CASED("\\p{L}")
#define SLASHED " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" LINES

/* Digits in groups of three from the right; the text before them joins the first group. */
#define THREES                                                                                     \
    "(?:\\P{N}++|(?<!\\p{N}))\\p{N}{1,2}(?=(?:\\p{N}{3})++(?!\\p{N}))|\\P{N}*+\\p{N}{3}|\\P{N}*+"  \
    "\\p{N}{1,2}|\\P{N}++"

#define DEEPSEEK3                                                                                  \
    "[!\"#$%&'()*+,\\-./"                                                                          \
    ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "             \
    "?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES

#define HAN                                                                                        \
    "\\x{4e00}-\\x{9fff}\\x{3400}-\\x{4dbf}\\x{20000}-\\x{2a6df}\\x{2a700}-\\x{2b73f}\\x{2b740}-"  \
    "\\x{2b81f}\\x{2b820}-\\x{2ceaf}"                                                              \
    "\\x{2ceb0}-\\x{2ebef}\\x{f900}-\\x{faff}\\x{2f800}-\\x{2fa1f}"
#define CHINESE "(?:(?!\\s)[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}])++"
#define CHINESE_OR_KANA "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{30ff}]+"
#define BLOOM " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c})]+"

/* Letters of scripts that have upper and lower case. */
#define BICAMERAL                                                                                  \
    "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{"    \
    "293}\\x{295}-\\x{2af}\\x{370}-\\x{373}"                                                       \
    "\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}"  \
    "\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}"                                                           \
    "\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}"  \
    "\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}"                                                       \
    "\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{"   \
    "1f1d}\\x{1f20}-\\x{1f45}"                                                                     \
    "\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{"     \
    "1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}"                                                           \
    "\\x{1fbe}\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{"    \
    "1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}"                                                           \
    "\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{"     \
    "2124}\\x{2126}\\x{2128}"                                                                      \
    "\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}\\x{"    \
    "214e}\\x{2183}\\x{2184}"                                                                      \
    "\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{"    \
    "a66d}\\x{a680}-\\x{a69b}"                                                                     \
    "\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{"   \
    "fb06}\\x{fb13}-\\x{fb17}"                                                                     \
    "\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}\\x{104d8}-"  \
    "\\x{104fb}\\x{10c80}-\\x{10cb2}"                                                              \
    "\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}"

const struct ak_tok_pre_rule ak_tok_pre_rules[] = {
    { " default ", { "[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]" }, false, false },
    { " gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert "
      "jina-v1-en jina-v2-code roberta-bpe exaone4 "
      "mpt olmo jais trillion granite-docling ",
      { GPT2 },
      false,
      false },
    { " smollm starcoder refact command-r codeshell exaone minerva-7b mellum2 ",
      { "\\p{N}", GPT2 },
      false,
      false },
    { " qwen2 deepseek-r1-qwen megrez kormo f2llmv2 stablelm2 hunyuan solar-open grok-2 ",
      { QWEN2 },
      false,
      false },
    { " llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano ",
      { LLAMA3 },
      true,
      true },
    { " dbrx smaug-bpe glm4 chatglm-bpe ", { LLAMA3 }, false, false },
    { " qwen35 ",
      { CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| "
                    "?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES },
      false,
      false },
    { " falcon ", { "[\\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]" }, false, false },
    { " deepseek-llm ",
      { "[\\r\\n]", "\\s?[" BICAMERAL "]+",
        "\\s?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3001}\\x{3002}]+",
        "(?<!\\s)\\s++\\z", CHINESE, "\\p{N}+" },
      false,
      false },
    { " deepseek-coder ",
      { "[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", CHINESE, "\\p{N}" },
      false,
      false },
    { " deepseek-v3 hunyuan-dense joyai-llm ",
      { "\\p{N}{1,3}", CHINESE_OR_KANA, DEEPSEEK3 },
      false,
      false },
    { " tekken ", { CASED_WORD "|\\p{N}|" SLASHED }, true, true },
    { " gpt-4o llama4 kanana2 talkie minimax-m2 ",
      { CASED_WORD CONTRACTION "?|\\p{N}{1,3}|" SLASHED },
      false,
      false },
    { " granite-embed-multi-97m ",
      { "[^\\r\\n\\p{L}\\p{N}]?" CASED("\\p{L}\\p{M}") CONTRACTION "?|\\p{N}{1,3}|" SLASHED },
      false,
      true },
    { " bloom poro-chat gpt3-finnish ", { BLOOM }, false, false },
    { " viking ", { BLOOM, "\\p{N}" }, false, false },
    { " jais-2 ",
      { CONTRACTION "|" WORD "|\\p{N}{1,3}| "
                    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s{512}(?!\\S)|\\s{256}("
                    "?!\\S)|\\s{128}(?!\\S)|"
                    "\\s{64}(?!\\S)|\\s{32}(?!\\S)|\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{"
                    "1,2}(?!\\S)|\\s{1}" },
      false,
      false },
    { " youtu ",
      { "[\\x{ac00}-\\x{d7a3}\\x{3131}-\\x{318e}]+|[\\x{ff01}\\x{2026}\\x{201c}\\x{201d}\\x{2018}"
        "\\x{2019}\\x{2014}\\x{ff1a}\\x{ff1b}"
        "\\x{ff0c}\\x{3001}-\\x{303f}\\x{fe30}-\\x{fe4f}]+|[\\x{3105}-\\x{312f}]+|" CHINESE_OR_KANA,
        "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+" CONTRACTION "?|\\p{N}|" SLASHED },
      false,
      true },
    { " tiny_aya cohere2moe ",
      { THREES, "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+" CONTRACTION "?|\\p{N}{1,3}|" SLASHED },
      false,
      false },
    { " kimi-k2 ",
      { "[" HAN "]+|(?:(?![" HAN "])[^\\r\\n\\p{L}\\p{N}])?(?:(?![" HAN "])\\p{L})++" CONTRACTION
        "?|\\p{N}{1,3}|" SYMBOLS },
      false,
      false },
    { " superbpe ",
      { "\\p{N}+", "(?<![0-9])[0-9]{1,2}(?=(?:[0-9]{3})++(?![0-9]))|[0-9]{3}" },
      false,
      false },
    { " bailingmoe bailingmoe2 llada-moe ",
      { "'(?i:[sdmt]|ll|ve|re)|" WORD
        "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]|" BLANKS },
      false,
      false },
    { " seed-coder ",
      { CONTRACTION "|" WORD "|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" LINES },
      false,
      false },
    { " exaone-moe ",
      { CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*+(?: \\p{L}\\p{M}*+)*+)++|\\p{N}| "
                    "?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|"
                    "\\s*[\\r\\n]|" BLANKS },
      false,
      false },
    { " chameleon ",
      { "<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", "[\\t\\n]|    |  ", "\\p{N}",
        "[\\p{P}!-/:-@\\[-`{-~]", GPT2 },
      true,
      false },
    { " afmoe ",
      { THREES,
        "[\\x{4e00}-\\x{9fff}\\x{3400}-\\x{4dbf}\\x{8c48}-\\x{faff}\\x{3040}-\\x{30ff}\\x{ff65}-"
        "\\x{ff9f}\\x{2f00}-\\x{2fdf}"
        "\\x{e40}-\\x{eff}\\x{1780}-\\x{17ff}\\x{1000}-\\x{109f}\\x{aa60}-\\x{aa7f}\\x{a9e0}-\\x{"
        "a9ff}\\x{1100}-\\x{11ff}]+",
        DEEPSEEK3 },
      false,
      false },
    { " laguna ", { "[^\\n]+|\\n+", QWEN2 }, false, false },
    { " minicpm5 ", { "\\p{N}{1,3}", CONTRACTION "|" WORD "|\\p{N}+|" SYMBOLS }, false, true },
    { NULL, { NULL }, false, false },
};

const struct ak_tok_char_rule ak_tok_char_rules[] = {
    { " gemma4 granite-embed-multi-311m ", "[^\\n]+|[\\n]+", true, true, true },
    { " sarvam-moe ", "[^\\n]+|[\\n]+", true, false, false },
    { " whitespace ", NULL, false, false, false },
    { NULL, NULL, false, false, false },
};
