/* Flags and commands of llama.cpp and ollama without a counterpart, and what to do instead. Flags
 * that can be taken are in options.def. */
#include "apps/common/options.h"

#include <string.h>

#define MODELS "${XDG_DATA_HOME:-~/.local/share}/akunu/models"

struct instead {
    const char *name, *text;
};

static const char no_media[] = "images and audio are not supported";
static const char no_vectors[] = "control vectors are not supported";
static const char no_server[] = "a command loads the model that it uses, and the model leaves the "
                                "memory with it; akunu-server serves one over HTTP";
static const char choices[] = "'akunu-cli eval --tasks FILE.jsonl' asks questions with choices";
static const char whole_layers[] = "-ngl sets how many layers a device runs, each with all tensors";
static const char pinning[] = "-Cr 0-3 pins the threads to CPUs";
static const char messages[] = "the chat template formats messages; --chat-template-file takes "
                               "another, and --raw continues a text as it is";
static const char chats[] = "-cnv chats";
static const char no_account[] = "akunu-cli uploads nothing; HF_TOKEN is the token for downloads";

static const struct instead flags[] = {
    { "control-vector", no_vectors },
    { "control-vector-scaled", no_vectors },
    { "control-vector-layer-range", no_vectors },
    { "mmproj", no_media },
    { "mm", no_media },
    { "mmproj-url", no_media },
    { "image", no_media },
    { "audio", no_media },
    { "video", no_media },
    { "in-prefix", messages },
    { "in-suffix", messages },
    { "interactive", chats },
    { "i", chats },
    { "interactive-first", chats },
    { "completion-bash", "'akunu-cli completion bash' prints it" },
    { "override-tensor", whole_layers },
    { "ot", whole_layers },
    { "cpu-moe", whole_layers },
    { "cmoe", whole_layers },
    { "n-cpu-moe", whole_layers },
    { "ncmoe", whole_layers },
    { "cpu-mask", pinning },
    { "C", pinning },
    { "cpu-strict", pinning },
    { "prio", "nice sets the priority of a program" },
    { "poll", "threads that wait spin for a short time, then sleep" },
    { "rpc", "a model runs on one machine" },
    { "hellaswag", choices },
    { "winogrande", choices },
    { "multiple-choice", choices },
    { "kl-divergence", "--kl-base FILE measures it" },
    { "kl-divergence-base", "--save-logits FILE writes it, and --kl-base FILE reads it" },
    { "host", no_server },
    { "port", no_server },
    { "keepalive", no_server },
    { "hf-token", "the environment variable HF_TOKEN has the token" },
    { "hft", "the environment variable HF_TOKEN has the token" },
    { "hf-repo-draft", "-md hf:USER/REPO:TYPE downloads a draft model" },
    { "hfd", "-md hf:USER/REPO:TYPE downloads a draft model" },
    { "docker-repo", "-hf USER/REPO:TYPE downloads from Hugging Face, -m URL from elsewhere" },
    { "dr", "-hf USER/REPO:TYPE downloads from Hugging Face, -m URL from elsewhere" },
    { "modelfile", "there are no Modelfiles; presets of config.yaml take their place" },
    { "format", "-j SCHEMA holds the answer to JSON, --grammar-file FILE to a grammar" },
};

static const struct instead commands[] = {
    { "push", no_account },
    { "signin", no_account },
    { "signout", no_account },
    { "serve", no_server },
    { "ps", no_server },
    { "stop", no_server },
    { "create", "there are no Modelfiles; presets of config.yaml take their place" },
    { "cp", "copy the file in " MODELS },
    { "rm", "remove the file from " MODELS ", then run 'akunu-cli cache prune'" },
};

static const char *find_in_table(const struct instead *table, size_t n_table, const char *name,
                                 size_t n)
{
    for (size_t i = 0; i < n_table; i++)
        if (strlen(table[i].name) == n && memcmp(table[i].name, name, n) == 0)
            return table[i].text;
    return NULL;
}

const char *app_instead_of_flag(const char *name, size_t n)
{
    return find_in_table(flags, sizeof flags / sizeof *flags, name, n);
}

const char *app_instead_of_command(const char *name)
{
    return find_in_table(commands, sizeof commands / sizeof *commands, name, strlen(name));
}
