/* The table of commands: name, function, summary, example and words. */
#include "cli/options.h"

#include <string.h>

static const char *const cache_words[] = { "list", "prune", NULL };
static const char *const completion_words[] = { "bash", "zsh", "fish", "models", "cpus", NULL };

const struct cli_command cli_commands[] = {
    { "run", CLI_RUN, cli_run, "chat, or continue a prompt (the default command)",
      "akunu-cli run -p \"The lighthouse keeper climbed\" -n 100", NULL, NULL },
    { "tokenize", CLI_TOKENIZE, cli_tokenize, "convert text to tokens",
      "akunu-cli tokenize -m model.gguf --ids -p \"Hello, world\"", NULL, NULL },
    { "detokenize", CLI_DETOKENIZE, cli_detokenize, "convert tokens to text",
      "akunu-cli detokenize -m model.gguf --ids \"19556 28 905\"", NULL, NULL },
    { "inspect", CLI_INSPECT, cli_inspect, "show metadata and tensors of a model file",
      "akunu-cli inspect -m model.gguf", NULL, NULL },
    { "logits", CLI_LOGITS, cli_logits, "write the logits of every position to a .npy file",
      "akunu-cli logits -m model.gguf --ids \"1 2 3\" --out logits.npy", NULL, NULL },
    { "perplexity", CLI_PERPLEXITY, cli_perplexity, "measure how well a model predicts a text",
      "akunu-cli perplexity -m model.gguf -f text.txt -c 512 --chunks 20", NULL, NULL },
    { "embed", CLI_EMBED, cli_embed, "compute embeddings of texts",
      "akunu-cli embed -m model --json -p \"a first text\" -p \"a second one\"", NULL, "prompt" },
    { "convert", CLI_CONVERT, cli_convert, "convert a model to a GGUF file",
      "akunu-cli convert -m Qwen3-0.6B/ --outtype f16 --outfile qwen3-0.6b-f16.gguf", NULL, NULL },
    { "apply-template", CLI_APPLY_TEMPLATE, cli_apply_template,
      "print a conversation as the prompt that a model expects",
      "akunu-cli apply-template -m model.gguf --messages conversation.json", NULL, NULL },
    { "grammar-check", CLI_GRAMMAR_CHECK, cli_grammar_check,
      "check a text against a grammar or a JSON Schema",
      "akunu-cli grammar-check -j schema.json -f answer.json", NULL, NULL },
    { "bench", CLI_BENCH, cli_bench, "measure the speed of prompts and generation",
      "akunu-cli bench -m model.gguf -p 512 -n 128 -d 0,4096", NULL, NULL },
    { "models", CLI_MODELS, cli_models,
      "list the formats, architectures and types that this build reads", "akunu-cli models", NULL,
      NULL },
    { "cache", CLI_CACHE, cli_cache, "list or prune the cache folder",
      "akunu-cli cache prune --older-than 30", cache_words, NULL },
    { "completion", CLI_COMPLETION, cli_completion, "print a completion script for a shell",
      "source <(akunu-cli completion bash)", completion_words, NULL },
};

const size_t cli_n_commands = sizeof cli_commands / sizeof *cli_commands;

bool cli_is_shown(const struct cli_command *command)
{
    return !(command->bit & CLI_HIDDEN);
}

const struct cli_command *cli_find_command(const char *name)
{
    for (size_t i = 0; i < cli_n_commands; i++)
        if (strcmp(cli_commands[i].name, name) == 0)
            return &cli_commands[i];
    return NULL;
}
