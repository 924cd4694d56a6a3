#include "cli/options.h"

static const char *const kv_types[] = { "f16", "f32", "bf16", "q8_0", "q4_0", NULL }; /* in the order of enum akunu_kv_type */
static const char *const prefills[] = { "auto", "own", "blas", NULL }; /* in the order of enum akunu_prefill */
static const char *const out_types[] = { "auto", "f32", "f16", "bf16", "q8_0", NULL };
static const char *const forms[] = { "md", "csv", "json", NULL };

static const char *const poolings[] = { "model", "mean", "cls", "last", NULL }; /* in the order of enum akunu_pooling */

enum { LOADS = CLI_RUN | CLI_LOGITS | CLI_PERPLEXITY | CLI_BENCH | CLI_EMBED };

#define MEMBER(name) offsetof(struct cli_options, name)

/* Two rows may share a name where no command takes both. */
const struct cli_flag cli_flags[] = {
    { .name = "model", .brief = "m", .kind = CLI_FLAG_TEXT, .value = "FILE", .group = "Model", .commands = CLI_ALL & ~CLI_BENCH & ~CLI_CACHE & ~CLI_MODELS,
      .offset = MEMBER(model),
      .help = "model file or folder, or the name of one in the models folder; without it the one that quickstart fetched" },
    { .name = "model", .brief = "m", .kind = CLI_FLAG_TEXTS, .value = "FILE", .group = "Model", .commands = CLI_BENCH,
      .offset = MEMBER(models), .help = "as elsewhere; several: -m A -m B" },
    { .name = "cpu", .kind = CLI_FLAG_TEXT, .value = "ISA", .group = "Model", .commands = LOADS, .offset = MEMBER(cpu),
      .help = "highest instruction set to use: scalar, avx2, avxvnni, avx512, amx, neon, neon_i8mm (the best there is)" },
    { .name = "no-cache", .kind = CLI_FLAG_SWITCH, .group = "Model", .commands = LOADS, .offset = MEMBER(no_cache),
      .help = "do not use the cache of packed weights: pack into memory" },
    { .name = "cache-dir", .kind = CLI_FLAG_TEXT, .value = "DIR", .group = "Model", .commands = LOADS, .offset = MEMBER(cache_dir),
      .help = "folder of that cache (${XDG_CACHE_HOME:-~/.cache}/akunu)" },
    { .name = "profile", .kind = CLI_FLAG_TEXT, .value = "FILE", .group = "Model", .commands = LOADS, .offset = MEMBER(profile),
      .help = "chip profile to use alone (the system's and the user's akunu/profile.yaml, where they exist)" },
    { .name = "strict", .kind = CLI_FLAG_SWITCH, .group = "Model", .commands = LOADS, .offset = MEMBER(strict),
      .help = "a tensor that the architecture does not know is an error" },
    { .name = "override-kv", .kind = CLI_FLAG_TEXTS, .value = "KEY=TYPE:VALUE", .group = "Model",
      .commands = LOADS | CLI_TOKENIZE | CLI_DETOKENIZE | CLI_INSPECT | CLI_CONVERT, .offset = MEMBER(override_kv),
      .help = "metadata in place of the file's; TYPE is int, float, bool or str; several: give it again" },
    { .name = "relaxed", .kind = CLI_FLAG_SWITCH, .group = "Model", .commands = LOADS, .offset = MEMBER(relaxed),
      .help = "faster kernels for float weights that round otherwise; results then depend on machine, batch and threads" },
    { .name = "prefill", .kind = CLI_FLAG_CHOICE, .value = "WHAT", .group = "Model", .commands = LOADS, .offset = MEMBER(prefill),
      .choices = prefills, .help = "what runs prompts: auto, own or blas: OpenBLAS over weights as floats, which rounds otherwise (auto)" },

    { .name = "prompt", .brief = "p", .kind = CLI_FLAG_TEXT, .value = "TEXT", .group = "Prompt",
      .commands = CLI_RUN | CLI_TOKENIZE | CLI_PERPLEXITY, .offset = MEMBER(prompt), .source = true, .help = "the text" },
    { .name = "file", .brief = "f", .kind = CLI_FLAG_TEXT, .value = "FILE", .group = "Prompt",
      .commands = CLI_RUN | CLI_TOKENIZE | CLI_PERPLEXITY, .offset = MEMBER(file), .source = true,
      .help = "the text is this file's bytes (- is standard input)" },
    { .name = "prompt", .brief = "p", .kind = CLI_FLAG_TEXTS, .value = "TEXT", .group = "Prompt", .commands = CLI_EMBED,
      .offset = MEMBER(texts), .source = true, .help = "a text; several: give it again, or without the flag" },
    { .name = "file", .brief = "f", .kind = CLI_FLAG_TEXT, .value = "FILE", .group = "Prompt", .commands = CLI_EMBED,
      .offset = MEMBER(file), .source = true, .help = "a file whose lines are texts (- is standard input)" },
    { .name = "ids", .kind = CLI_FLAG_TEXT, .value = "IDS", .group = "Prompt", .commands = CLI_LOGITS | CLI_DETOKENIZE,
      .offset = MEMBER(ids), .source = true, .help = "token ids, separated by blanks or commas; taken as they are" },
    { .name = "file", .brief = "f", .kind = CLI_FLAG_TEXT, .value = "FILE", .group = "Prompt", .commands = CLI_LOGITS | CLI_DETOKENIZE,
      .offset = MEMBER(file), .source = true, .help = "a file of token ids (- is standard input)" },
    { .name = "no-bos", .kind = CLI_FLAG_SWITCH, .group = "Prompt", .commands = CLI_RUN | CLI_TOKENIZE, .offset = MEMBER(no_bos),
      .help = "add no token to the text: no BOS, no EOS" },
    { .name = "no-parse-special", .kind = CLI_FLAG_SWITCH, .group = "Prompt", .commands = CLI_RUN | CLI_TOKENIZE | CLI_EMBED,
      .offset = MEMBER(no_parse_special), .help = "control tokens written in the text are ordinary text" },
    { .name = "no-display-prompt", .kind = CLI_FLAG_SWITCH, .group = "Prompt", .commands = CLI_RUN, .offset = MEMBER(no_display_prompt),
      .help = "print only the continuation" },

    { .name = "predict", .alias = "n-predict", .brief = "n", .kind = CLI_FLAG_INT, .value = "N", .group = "Size", .commands = CLI_RUN,
      .offset = MEMBER(n_predict), .low = -1, .high = INT32_MAX, .help = "tokens to generate (-1: until the text or the context ends)" },
    { .name = "ctx-size", .brief = "c", .kind = CLI_FLAG_INT, .value = "N", .group = "Size", .commands = CLI_RUN,
      .offset = MEMBER(context), .low = 0, .high = INT32_MAX, .help = "tokens that fit in the context (0: as many as the model allows)" },
    { .name = "ctx-size", .brief = "c", .kind = CLI_FLAG_INT, .value = "N", .group = "Size",
      .commands = CLI_LOGITS | CLI_BENCH | CLI_EMBED, .offset = MEMBER(context), .low = 0, .high = INT32_MAX,
      .help = "tokens that fit in the context (0: as many as are needed)" },
    { .name = "ctx-size", .brief = "c", .kind = CLI_FLAG_INT, .value = "N", .group = "Size", .commands = CLI_PERPLEXITY,
      .offset = MEMBER(context), .low = 4, .high = INT32_MAX, .help = "tokens of a chunk (512)" },
    { .name = "batch-size", .brief = "b", .kind = CLI_FLAG_INT, .value = "N", .group = "Size", .commands = LOADS & ~CLI_BENCH,
      .offset = MEMBER(batch), .low = 1, .high = 65536, .help = "most tokens of one pass over a prompt (512)" },
    { .name = "batch-size", .brief = "b", .kind = CLI_FLAG_LIST, .value = "N,…", .group = "Size", .commands = CLI_BENCH,
      .offset = MEMBER(batches), .low = 1, .high = 65536, .help = "most tokens of one pass over a prompt (512)" },
    { .name = "threads", .brief = "t", .kind = CLI_FLAG_INT, .value = "N", .group = "Size", .commands = LOADS & ~CLI_BENCH,
      .offset = MEMBER(threads), .low = 1, .high = 1024, .help = "threads (the physical cores)" },
    { .name = "threads", .brief = "t", .kind = CLI_FLAG_LIST, .value = "N,…", .group = "Size", .commands = CLI_BENCH,
      .offset = MEMBER(thread_counts), .low = 1, .high = 1024, .help = "threads (the physical cores)" },
    { .name = "cpu-range", .brief = "Cr", .kind = CLI_FLAG_TEXT, .value = "LIST", .group = "Size", .commands = LOADS,
      .offset = MEMBER(cpus), .help = "pin threads to these CPUs, as 0-3,8 (the system places them)" },
    { .name = "cache-type-k", .brief = "ctk", .kind = CLI_FLAG_CHOICE, .value = "TYPE", .group = "Size", .commands = LOADS,
      .offset = MEMBER(k_type), .choices = kv_types, .help = "keys of the KV cache: f16, f32, bf16, q8_0, q4_0 (f16)" },
    { .name = "cache-type-v", .brief = "ctv", .kind = CLI_FLAG_CHOICE, .value = "TYPE", .group = "Size", .commands = LOADS,
      .offset = MEMBER(v_type), .choices = kv_types, .help = "values of the KV cache: f16, f32, bf16, q8_0, q4_0 (f16)" },

    { .name = "seed", .brief = "s", .kind = CLI_FLAG_INT, .value = "N", .group = "Sampling", .commands = CLI_RUN,
      .offset = MEMBER(seed), .low = -1, .high = 0x1p53, .help = "seed of the draws (-1: a random one)" },
    { .name = "temp", .alias = "temperature", .kind = CLI_FLAG_REAL, .value = "X", .group = "Sampling", .commands = CLI_RUN,
      .offset = MEMBER(temperature), .low = 0, .high = 1000, .help = "temperature (0.8); 0: always the likeliest token" },
    { .name = "top-k", .kind = CLI_FLAG_INT, .value = "N", .group = "Sampling", .commands = CLI_RUN, .offset = MEMBER(top_k), .low = -1,
      .high = INT32_MAX, .help = "draw from the N likeliest tokens (40; 0 or -1: off)" },
    { .name = "top-p", .kind = CLI_FLAG_REAL, .value = "X", .group = "Sampling", .commands = CLI_RUN, .offset = MEMBER(top_p), .low = 0,
      .high = 1, .help = "draw from the likeliest tokens that together have probability X (0.95; 1: off)" },
    { .name = "min-p", .kind = CLI_FLAG_REAL, .value = "X", .group = "Sampling", .commands = CLI_RUN, .offset = MEMBER(min_p), .low = 0,
      .high = 1, .help = "drop tokens less likely than X times the likeliest (0.05; 0: off)" },
    { .name = "repeat-penalty", .kind = CLI_FLAG_REAL, .value = "X", .group = "Sampling", .commands = CLI_RUN,
      .offset = MEMBER(repeat_penalty), .low = 0x1p-20, .high = 1000, .help = "divides the logits of tokens seen before (1.0: off)" },
    { .name = "repeat-last-n", .kind = CLI_FLAG_INT, .value = "N", .group = "Sampling", .commands = CLI_RUN,
      .offset = MEMBER(repeat_last_n), .low = -1, .high = INT32_MAX,
      .help = "tokens that the penalties look back (64; 0: off, -1: all)" },
    { .name = "presence-penalty", .kind = CLI_FLAG_REAL, .value = "X", .group = "Sampling", .commands = CLI_RUN,
      .offset = MEMBER(presence_penalty), .low = -1000, .high = 1000, .help = "taken from the logits of tokens seen before (0.0)" },
    { .name = "frequency-penalty", .kind = CLI_FLAG_REAL, .value = "X", .group = "Sampling", .commands = CLI_RUN,
      .offset = MEMBER(frequency_penalty), .low = -1000, .high = 1000, .help = "the same, as often as the token was seen (0.0)" },
    { .name = "ignore-eos", .kind = CLI_FLAG_SWITCH, .group = "Sampling", .commands = CLI_RUN, .offset = MEMBER(ignore_eos),
      .help = "never end the text before -n tokens" },

    { .name = "chunks", .kind = CLI_FLAG_INT, .value = "K", .group = "Measuring", .commands = CLI_PERPLEXITY, .offset = MEMBER(chunks),
      .low = -1, .high = INT32_MAX, .help = "chunks to score (0 or -1: all)" },
    { .name = "n-prompt", .brief = "p", .kind = CLI_FLAG_LIST, .value = "N,…", .group = "Measuring", .commands = CLI_BENCH,
      .offset = MEMBER(n_prompt), .low = 0, .high = 1 << 24, .help = "prompt lengths to test (512; 0: none)" },
    { .name = "n-gen", .brief = "n", .kind = CLI_FLAG_LIST, .value = "N,…", .group = "Measuring", .commands = CLI_BENCH,
      .offset = MEMBER(n_generate), .low = 0, .high = 1 << 24, .help = "numbers of tokens to generate (128; 0: none)" },
    { .name = "n-depth", .brief = "d", .kind = CLI_FLAG_LIST, .value = "N,…", .group = "Measuring", .commands = CLI_BENCH,
      .offset = MEMBER(depth), .low = 0, .high = 1 << 24, .help = "tokens already in the context (0)" },
    { .name = "parallel", .brief = "np", .kind = CLI_FLAG_LIST, .value = "N,…", .group = "Measuring", .commands = CLI_BENCH,
      .offset = MEMBER(n_parallel), .low = 1, .high = 4096, .help = "sequences that generate at once; speeds are their total (1)" },
    { .name = "load", .kind = CLI_FLAG_SWITCH, .group = "Measuring", .commands = CLI_BENCH, .offset = MEMBER(load),
      .help = "also time loading: to ready and to the first token, cold and warm" },
    { .name = "tune", .kind = CLI_FLAG_SWITCH, .group = "Measuring", .commands = CLI_BENCH, .offset = MEMBER(tune),
      .help = "measure what is best for this machine, with -m also threads and batch, and write a chip profile" },
    { .name = "profile-out", .kind = CLI_FLAG_TEXT, .value = "FILE", .group = "Measuring", .commands = CLI_BENCH,
      .offset = MEMBER(profile_out), .help = "where --tune writes (the user's akunu/profile.yaml)" },
    { .name = "repetitions", .brief = "r", .kind = CLI_FLAG_INT, .value = "N", .group = "Measuring", .commands = CLI_BENCH,
      .offset = MEMBER(repetitions), .low = 1, .high = 10000, .help = "timed runs of each test, after one that is not timed (5)" },

    { .name = "cache-dir", .kind = CLI_FLAG_TEXT, .value = "DIR", .group = "Cache", .commands = CLI_CACHE, .offset = MEMBER(cache_dir),
      .help = "the folder (${XDG_CACHE_HOME:-~/.cache}/akunu)" },
    { .name = "all", .kind = CLI_FLAG_SWITCH, .group = "Cache", .commands = CLI_CACHE, .offset = MEMBER(all),
      .help = "prune: everything" },
    { .name = "older-than", .kind = CLI_FLAG_INT, .value = "DAYS", .group = "Cache", .commands = CLI_CACHE, .offset = MEMBER(older_than),
      .low = 0, .high = 1 << 20, .help = "prune: also what was not used for that many days" },

    { .name = "pooling", .kind = CLI_FLAG_CHOICE, .value = "WHAT", .group = "Embedding", .commands = CLI_EMBED, .offset = MEMBER(pooling),
      .choices = poolings, .help = "what becomes the embedding: mean of the tokens, cls (the first one), last, or as the model says (model)" },
    { .name = "normalize", .kind = CLI_FLAG_SWITCH, .group = "Embedding", .commands = CLI_EMBED, .offset = MEMBER(normalize),
      .help = "to unit length (as the model says; from GGUF always)" },
    { .name = "no-normalize", .kind = CLI_FLAG_SWITCH, .group = "Embedding", .commands = CLI_EMBED, .offset = MEMBER(no_normalize),
      .help = "as the model gives it" },

    { .name = "ids", .kind = CLI_FLAG_SWITCH, .group = "Output", .commands = CLI_TOKENIZE, .offset = MEMBER(ids_only),
      .help = "only the ids, on one line" },
    { .name = "out", .kind = CLI_FLAG_TEXT, .value = "FILE", .group = "Output", .commands = CLI_LOGITS, .offset = MEMBER(out),
      .help = "the .npy file to write: float32 [tokens, vocabulary]" },
    { .name = "out", .kind = CLI_FLAG_TEXT, .value = "FILE", .group = "Output", .commands = CLI_EMBED, .offset = MEMBER(out),
      .help = "write a .npy file instead: float32 [texts, width]" },
    { .name = "outfile", .alias = "out", .kind = CLI_FLAG_TEXT, .value = "FILE", .group = "Output", .commands = CLI_CONVERT,
      .offset = MEMBER(out), .help = "the GGUF file to write" },
    { .name = "outtype", .kind = CLI_FLAG_CHOICE, .value = "TYPE", .group = "Output", .commands = CLI_CONVERT, .offset = MEMBER(out_type),
      .choices = out_types, .help = "of the matrices: f32, f16, bf16, q8_0, or auto: as stored (auto)" },
    { .name = "pre", .kind = CLI_FLAG_TEXT, .value = "NAME", .group = "Output", .commands = CLI_CONVERT, .offset = MEMBER(pre),
      .help = "pre-tokenizer to name in the file (the known one that cuts words as the model's does)" },
    { .name = "overwrite", .kind = CLI_FLAG_SWITCH, .group = "Output", .commands = CLI_CONVERT, .offset = MEMBER(overwrite),
      .help = "replace the file where there is one" },
    { .name = "output", .brief = "o", .kind = CLI_FLAG_CHOICE, .value = "FORM", .group = "Output", .commands = CLI_BENCH,
      .offset = MEMBER(form), .choices = forms, .help = "md, csv or json (md)" },
    { .name = "markdown", .kind = CLI_FLAG_SWITCH, .group = "Output", .commands = CLI_MODELS, .offset = MEMBER(markdown),
      .help = "as docs/models.md has it" },
    { .name = "json", .kind = CLI_FLAG_SWITCH, .group = "Output", .commands = CLI_ALL & ~CLI_LOGITS & ~CLI_CONVERT, .offset = MEMBER(json),
      .help = "the result as JSON" },
    { .name = "sha256", .kind = CLI_FLAG_SWITCH, .group = "Output", .commands = CLI_INSPECT, .offset = MEMBER(sha256),
      .help = "add the hash of each tensor's values as float32" },
    { .name = "verbose", .brief = "v", .kind = CLI_FLAG_SWITCH, .group = "Output", .commands = LOADS, .offset = MEMBER(verbose),
      .help = "tell what is chosen and done" },

    { .name = "help", .brief = "h", .kind = CLI_FLAG_SWITCH, .group = "Other", .commands = CLI_ALL, .offset = MEMBER(help),
      .help = "this text" },
    { .name = "version", .kind = CLI_FLAG_SWITCH, .group = "Other", .commands = CLI_ALL, .offset = MEMBER(version),
      .help = "version, build and instruction sets" },
};

const char *cli_out_type_name(int type)
{
    return type == 0 ? NULL : out_types[type];
}

const char *cli_kv_type_name(int type)
{
    return kv_types[type];
}

const size_t cli_n_flags = sizeof cli_flags / sizeof *cli_flags;
