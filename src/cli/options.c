#include "cli/options.h"

static const char *const kv_types[] = { "f16", "f32", NULL }; /* in the order of enum akunu_kv_type */
static const char *const kv_types_later[] = { "bf16", "q8_0", "q4_0", NULL };
static const char *const forms[] = { "md", "csv", "json", NULL };

enum { LOADS = CLI_RUN | CLI_LOGITS | CLI_PERPLEXITY | CLI_BENCH };

#define MEMBER(name) offsetof(struct cli_options, name)

/* Two rows may share a name where no command takes both. */
const struct cli_flag cli_flags[] = {
    { .name = "model", .brief = "m", .kind = CLI_FLAG_TEXT, .value = "FILE", .group = "Model", .commands = CLI_ALL, .offset = MEMBER(model),
      .help = "model file, or the name of one in the models folder; without it the one that quickstart fetched" },
    { .name = "cpu", .kind = CLI_FLAG_TEXT, .value = "ISA", .group = "Model", .commands = LOADS, .offset = MEMBER(cpu),
      .help = "highest instruction set to use: scalar, avx2, avx512, neon (the best there is)" },
    { .name = "no-cache", .kind = CLI_FLAG_SWITCH, .group = "Model", .commands = LOADS, .offset = MEMBER(no_cache),
      .help = "do not use the cache of packed weights" },
    { .name = "cache-dir", .kind = CLI_FLAG_TEXT, .value = "DIR", .group = "Model", .commands = LOADS, .offset = MEMBER(cache_dir),
      .help = "where that cache lies" },
    { .name = "strict", .kind = CLI_FLAG_SWITCH, .group = "Model", .commands = LOADS, .offset = MEMBER(strict),
      .help = "a tensor that the architecture does not know is an error" },

    { .name = "prompt", .brief = "p", .kind = CLI_FLAG_TEXT, .value = "TEXT", .group = "Prompt", .commands = CLI_RUN | CLI_TOKENIZE | CLI_PERPLEXITY,
      .offset = MEMBER(prompt), .source = true, .help = "the text" },
    { .name = "file", .brief = "f", .kind = CLI_FLAG_TEXT, .value = "FILE", .group = "Prompt", .commands = CLI_RUN | CLI_TOKENIZE | CLI_PERPLEXITY,
      .offset = MEMBER(file), .source = true, .help = "the text is this file's bytes (- is standard input)" },
    { .name = "ids", .kind = CLI_FLAG_TEXT, .value = "IDS", .group = "Prompt", .commands = CLI_LOGITS | CLI_DETOKENIZE, .offset = MEMBER(ids),
      .source = true, .help = "token ids, separated by blanks or commas; taken as they are" },
    { .name = "file", .brief = "f", .kind = CLI_FLAG_TEXT, .value = "FILE", .group = "Prompt", .commands = CLI_LOGITS | CLI_DETOKENIZE,
      .offset = MEMBER(file), .source = true, .help = "a file of token ids (- is standard input)" },
    { .name = "no-bos", .kind = CLI_FLAG_SWITCH, .group = "Prompt", .commands = CLI_RUN | CLI_TOKENIZE, .offset = MEMBER(no_bos),
      .help = "add no token to the text: no BOS, no EOS" },
    { .name = "no-parse-special", .kind = CLI_FLAG_SWITCH, .group = "Prompt", .commands = CLI_RUN | CLI_TOKENIZE, .offset = MEMBER(no_parse_special),
      .help = "control tokens written in the text are ordinary text" },
    { .name = "no-display-prompt", .kind = CLI_FLAG_SWITCH, .group = "Prompt", .commands = CLI_RUN, .offset = MEMBER(no_display_prompt),
      .help = "print only the continuation" },

    { .name = "predict", .alias = "n-predict", .brief = "n", .kind = CLI_FLAG_INT, .value = "N", .group = "Size", .commands = CLI_RUN,
      .offset = MEMBER(n_predict), .low = -1, .high = INT32_MAX, .help = "tokens to generate (-1: until the text or the context ends)" },
    { .name = "ctx-size", .brief = "c", .kind = CLI_FLAG_INT, .value = "N", .group = "Size", .commands = CLI_RUN,
      .offset = MEMBER(context), .low = 0, .high = INT32_MAX, .help = "tokens that fit in the context (0: as many as the model allows)" },
    { .name = "ctx-size", .brief = "c", .kind = CLI_FLAG_INT, .value = "N", .group = "Size", .commands = CLI_LOGITS | CLI_BENCH,
      .offset = MEMBER(context), .low = 0, .high = INT32_MAX, .help = "tokens that fit in the context (0: as many as are needed)" },
    { .name = "ctx-size", .brief = "c", .kind = CLI_FLAG_INT, .value = "N", .group = "Size", .commands = CLI_PERPLEXITY,
      .offset = MEMBER(context), .low = 4, .high = INT32_MAX, .help = "tokens of a chunk (512)" },
    { .name = "batch-size", .brief = "b", .kind = CLI_FLAG_INT, .value = "N", .group = "Size", .commands = LOADS, .offset = MEMBER(batch),
      .low = 1, .high = 65536, .help = "most tokens of one pass over a prompt (512)" },
    { .name = "threads", .brief = "t", .kind = CLI_FLAG_INT, .value = "N", .group = "Size", .commands = LOADS, .offset = MEMBER(threads),
      .low = 1, .high = 1024, .help = "threads (the physical cores)" },
    { .name = "cache-type-k", .brief = "ctk", .kind = CLI_FLAG_CHOICE, .value = "TYPE", .group = "Size", .commands = LOADS, .offset = MEMBER(k_type),
      .choices = kv_types, .later = kv_types_later, .help = "keys of the KV cache: f16, f32 (f16)" },
    { .name = "cache-type-v", .brief = "ctv", .kind = CLI_FLAG_CHOICE, .value = "TYPE", .group = "Size", .commands = LOADS, .offset = MEMBER(v_type),
      .choices = kv_types, .later = kv_types_later, .help = "values of the KV cache: f16, f32 (f16)" },

    { .name = "seed", .brief = "s", .kind = CLI_FLAG_INT, .value = "N", .group = "Sampling", .commands = CLI_RUN, .offset = MEMBER(seed),
      .low = -1, .high = 0x1p53, .help = "seed of the draws (-1: a random one)" },
    { .name = "temp", .alias = "temperature", .kind = CLI_FLAG_REAL, .value = "X", .group = "Sampling", .commands = CLI_RUN,
      .offset = MEMBER(temperature), .low = 0, .high = 1000, .help = "temperature (0.8); 0: always the likeliest token" },
    { .name = "top-k", .kind = CLI_FLAG_INT, .value = "N", .group = "Sampling", .commands = CLI_RUN, .offset = MEMBER(top_k),
      .low = -1, .high = INT32_MAX, .help = "draw from the N likeliest tokens (40; 0 or -1: off)" },
    { .name = "top-p", .kind = CLI_FLAG_REAL, .value = "X", .group = "Sampling", .commands = CLI_RUN, .offset = MEMBER(top_p),
      .low = 0, .high = 1, .help = "draw from the likeliest tokens that together have probability X (0.95; 1: off)" },
    { .name = "min-p", .kind = CLI_FLAG_REAL, .value = "X", .group = "Sampling", .commands = CLI_RUN, .offset = MEMBER(min_p),
      .low = 0, .high = 1, .help = "drop tokens less likely than X times the likeliest (0.05; 0: off)" },
    { .name = "repeat-penalty", .kind = CLI_FLAG_REAL, .value = "X", .group = "Sampling", .commands = CLI_RUN, .offset = MEMBER(repeat_penalty),
      .low = 0x1p-20, .high = 1000, .help = "divides the logits of tokens seen before (1.0: off)" },
    { .name = "repeat-last-n", .kind = CLI_FLAG_INT, .value = "N", .group = "Sampling", .commands = CLI_RUN, .offset = MEMBER(repeat_last_n),
      .low = -1, .high = INT32_MAX, .help = "tokens that the penalties look back (64; 0: off, -1: all)" },
    { .name = "presence-penalty", .kind = CLI_FLAG_REAL, .value = "X", .group = "Sampling", .commands = CLI_RUN, .offset = MEMBER(presence_penalty),
      .low = -1000, .high = 1000, .help = "taken from the logits of tokens seen before (0.0)" },
    { .name = "frequency-penalty", .kind = CLI_FLAG_REAL, .value = "X", .group = "Sampling", .commands = CLI_RUN, .offset = MEMBER(frequency_penalty),
      .low = -1000, .high = 1000, .help = "the same, as often as the token was seen (0.0)" },
    { .name = "ignore-eos", .kind = CLI_FLAG_SWITCH, .group = "Sampling", .commands = CLI_RUN, .offset = MEMBER(ignore_eos),
      .help = "never end the text before -n tokens" },

    { .name = "chunks", .kind = CLI_FLAG_INT, .value = "K", .group = "Measuring", .commands = CLI_PERPLEXITY, .offset = MEMBER(chunks),
      .low = -1, .high = INT32_MAX, .help = "chunks to score (0 or -1: all)" },
    { .name = "n-prompt", .brief = "p", .kind = CLI_FLAG_LIST, .value = "N,…", .group = "Measuring", .commands = CLI_BENCH, .offset = MEMBER(n_prompt),
      .low = 0, .high = 1 << 24, .help = "prompt lengths to test (512; 0: none)" },
    { .name = "n-gen", .brief = "n", .kind = CLI_FLAG_LIST, .value = "N,…", .group = "Measuring", .commands = CLI_BENCH, .offset = MEMBER(n_generate),
      .low = 0, .high = 1 << 24, .help = "numbers of tokens to generate (128; 0: none)" },
    { .name = "n-depth", .brief = "d", .kind = CLI_FLAG_LIST, .value = "N,…", .group = "Measuring", .commands = CLI_BENCH, .offset = MEMBER(depth),
      .low = 0, .high = 1 << 24, .help = "tokens already in the context (0)" },
    { .name = "repetitions", .brief = "r", .kind = CLI_FLAG_INT, .value = "N", .group = "Measuring", .commands = CLI_BENCH, .offset = MEMBER(repetitions),
      .low = 1, .high = 10000, .help = "timed runs of each test, after one that is not timed (5)" },

    { .name = "ids", .kind = CLI_FLAG_SWITCH, .group = "Output", .commands = CLI_TOKENIZE, .offset = MEMBER(ids_only),
      .help = "only the ids, on one line" },
    { .name = "out", .kind = CLI_FLAG_TEXT, .value = "FILE", .group = "Output", .commands = CLI_LOGITS, .offset = MEMBER(out),
      .help = "the .npy file to write: float32 [tokens, vocabulary]" },
    { .name = "output", .brief = "o", .kind = CLI_FLAG_CHOICE, .value = "FORM", .group = "Output", .commands = CLI_BENCH, .offset = MEMBER(form),
      .choices = forms, .help = "md, csv or json (md)" },
    { .name = "json", .kind = CLI_FLAG_SWITCH, .group = "Output", .commands = CLI_ALL & ~CLI_LOGITS, .offset = MEMBER(json),
      .help = "the result as JSON" },
    { .name = "sha256", .kind = CLI_FLAG_SWITCH, .group = "Output", .commands = CLI_INSPECT, .offset = MEMBER(sha256),
      .help = "add the hash of each tensor's values as float32" },
    { .name = "verbose", .brief = "v", .kind = CLI_FLAG_SWITCH, .group = "Output", .commands = LOADS, .offset = MEMBER(verbose),
      .help = "tell what is chosen and done" },

    { .name = "help", .brief = "h", .kind = CLI_FLAG_SWITCH, .group = "Other", .commands = CLI_ALL, .offset = MEMBER(help), .help = "this text" },
    { .name = "version", .kind = CLI_FLAG_SWITCH, .group = "Other", .commands = CLI_ALL, .offset = MEMBER(version),
      .help = "version, build and instruction sets" },
};

const size_t cli_n_flags = sizeof cli_flags / sizeof *cli_flags;
