/* Which files of a repository are the model that was asked for; llama.cpp's -hf chooses alike. */
#include "apps/common/pull/hub.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/input.h"
#include "apps/common/message.h"
#include "apps/common/load.h"

enum { MAX_SPLIT = 999 };

/* ---- Split files -------------------------------------------------------- */
static const char *find_split(const char *name, unsigned *number, unsigned *count)
{
    const char *dot = strrchr(name, '.');
    static const char digits[] = "0123456789";
    if (!dot || dot - name < 15 || strncmp(dot - 15, "-", 1) != 0 ||
        strncmp(dot - 9, "-of-", 4) != 0 || strspn(dot - 14, digits) != 5 ||
        strspn(dot - 5, digits) != 5)
        return NULL;
    *number = (unsigned)strtoul(dot - 14, NULL, 10);
    *count = (unsigned)strtoul(dot - 5, NULL, 10);
    return *number >= 1 && *number <= *count && *count <= MAX_SPLIT ? dot - 15 : NULL;
}

unsigned app_split_number(const char *name, unsigned *count)
{
    unsigned number = 0;
    return find_split(name, &number, count) ? number : 0;
}

char *app_split_name(const char *name, unsigned number)
{
    unsigned old, count;
    const char *at = find_split(name, &old, &count);
    char *result = NULL;
    if (!at)
        return strdup(name);
    return asprintf(&result, "%.*s-%05u-of-%05u%s", (int)(at - name), name, number, count,
                    strrchr(name, '.')) < 0 ?
               NULL :
               result;
}

/* ---- GGUF files --------------------------------------------------------- */
static bool is_later_part(const char *path)
{
    unsigned count;
    return app_split_number(path, &count) > 1;
}

/* A model by itself: no projector, no draft head, no importance matrix. */
static bool is_gguf(const char *path)
{
    static const char *const others[] = { "mmproj",  "imatrix", "mtp-",
                                          "eagle3-", "dflash-", "dspark-" };
    const char *name = app_base_name(path);
    if (!app_ends_with(name, ".gguf"))
        return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strstr(name, others[i]))
            return false;
    return true;
}

/* Whether a path has the type, followed by a dot or a dash, as in "model-Q4_K_M.gguf". */
static bool has_type(const char *path, const char *type)
{
    size_t n = strlen(type);
    for (const char *at = path; (at = strcasestr(at, type)) != NULL; at++)
        if (at[n] == '.' || at[n] == '-')
            return true;
    return false;
}

static const struct app_repo_file *find_type(const struct app_repo_files *files, const char *type)
{
    for (size_t i = 0; i < files->n; i++) {
        const char *path = files->list[i].path;
        if (is_gguf(path) && !is_later_part(path) && (!type || has_type(path, type)))
            return &files->list[i];
    }
    return NULL;
}

static const struct app_repo_file *find_path(const struct app_repo_files *files, const char *path)
{
    const struct app_repo_file *found = NULL;
    for (size_t i = 0; i < files->n; i++) {
        const struct app_repo_file *f = &files->list[i];
        if (strcmp(f->path, path) == 0)
            return f;
        if (!found && strcmp(app_base_name(f->path), path) == 0)
            found = f;
    }
    return found;
}

/* ---- SafeTensors folders ------------------------------------------------ */
/* What akunu reads of a folder, beside the weights. */
static bool is_sidecar(const char *path)
{
    static const char *const names[] = {
        "config.json",
        "generation_config.json",
        "quantize_config.json",
        "quant_config.json",
        "hf_quant_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "tokenizer.model",
        "sentencepiece.bpe.model",
        "spiece.model",
        "vocab.json",
        "merges.txt",
        "vocab.txt",
        "chat_template.jinja",
        "chat_template.json",
        "additional_chat_templates/tool_use.jinja",
        "additional_chat_templates/rag.jinja",
        "preprocessor_config.json",
        "modules.json",
        "1_Pooling/config.json",
        "sentence_bert_config.json",
        "sentence_roberta_config.json",
        "sentence_distilbert_config.json",
        "sentence_camembert_config.json",
        "sentence_albert_config.json",
        "sentence_xlm-roberta_config.json",
        "sentence_xlnet_config.json",
        "config_sentence_transformers.json",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(path, names[i]) == 0)
            return true;
    return false;
}

/* Weights of the folder; of two sets, which some repositories have, the one of transformers. */
static bool is_weights(const struct app_repo_files *files, const char *path)
{
    if (strchr(path, '/') ||
        (!app_ends_with(path, ".safetensors") && !app_ends_with(path, ".safetensors.index.json")))
        return false;
    bool has_model = false;
    for (size_t i = 0; i < files->n; i++)
        has_model |= strncmp(files->list[i].path, "model", 5) == 0 &&
                     app_ends_with(files->list[i].path, ".safetensors");
    return !has_model || strncmp(path, "model", 5) == 0;
}

static bool is_folder_file(const struct app_repo_files *files, const char *path)
{
    return is_sidecar(path) || is_weights(files, path);
}

/* ---- The choice --------------------------------------------------------- */
static void swap_to(struct app_repo_files *files, size_t to, size_t from)
{
    struct app_repo_file f = files->list[to];
    files->list[to] = files->list[from];
    files->list[from] = f;
}

/* Moves a file, and of a split one all parts, to the front. */
static int move_to_front(const struct app_repo *repo, struct app_repo_files *files,
                         const char *path, size_t *n)
{
    unsigned count = 1, number = app_split_number(path, &count);
    int code = APP_EXIT_OK;
    char *first = strdup(path);
    count = number > 0 ? count : 1;
    for (unsigned i = 1; first && code == APP_EXIT_OK && i <= count; i++) {
        char *part = app_split_name(first, i);
        size_t at = 0;
        while (part && at < files->n && strcmp(files->list[at].path, part) != 0)
            at++;
        if (!part)
            code = app_fail_memory();
        else if (at == files->n) {
            app_fail("%s: there is no %s, a part of the split file", repo->name, part);
            code = APP_EXIT_MODEL;
        } else
            swap_to(files, (*n)++, at);
        free(part);
    }
    free(first);
    return code;
}

static void append_to_list(char *list, size_t capacity, const char *name)
{
    size_t n = strlen(list);
    if (n + strlen(name) + 8 < capacity)
        snprintf(list + n, capacity - n, "%s%s", n ? ", " : "", name);
    else if (n + 8 < capacity && !app_ends_with(list, "\xe2\x80\xa6"))
        snprintf(list + n, capacity - n, ", \xe2\x80\xa6");
}

/* Says what the repository has: its GGUF files, else all of them. */
static int fail_choice(const struct app_repo *repo, const struct app_repo_files *files)
{
    char list[600] = "", shown[APP_SHOWN_BYTES];
    const char *nearest = NULL, **names = calloc(files->n + 1, sizeof *names);
    size_t n = 0;
    bool has_gguf = find_type(files, NULL) != NULL;
    for (size_t i = 0; names && i < files->n; i++)
        if (has_gguf ? is_gguf(files->list[i].path) && !is_later_part(files->list[i].path) : true) {
            names[n++] = files->list[i].path;
            append_to_list(list, sizeof list, files->list[i].path);
        }
    if (names && repo->what)
        nearest = app_find_nearest(repo->what, names, n);
    if (repo->what)
        app_fail("%s has no file or type '%s'%s%s%s; it has %s", repo->name,
                 app_show_text(repo->what, shown), nearest ? "; did you mean " : "",
                 nearest ? nearest : "", nearest ? "?" : "", *list ? list : "no files");
    else
        app_fail("%s has neither a GGUF file nor SafeTensors with config.json; it has %s",
                 repo->name, *list ? list : "no files");
    free(names);
    return APP_EXIT_MODEL;
}

static int take_folder(const struct app_repo *repo, struct app_repo_files *files, size_t *n)
{
    bool has_config = false, has_weights = false;
    for (size_t i = 0; i < files->n; i++) {
        has_config |= strcmp(files->list[i].path, "config.json") == 0;
        has_weights |= is_weights(files, files->list[i].path) &&
                       app_ends_with(files->list[i].path, ".safetensors");
    }
    if (!has_config || !has_weights)
        return fail_choice(repo, files);
    struct app_repo_file *sorted = calloc(files->n, sizeof *sorted);
    if (!sorted)
        return app_fail_memory();
    size_t n_others = 0;
    for (size_t i = 0; i < files->n; i++)
        if (is_folder_file(files, files->list[i].path))
            sorted[(*n)++] = files->list[i];
    for (size_t i = 0; i < files->n; i++)
        if (!is_folder_file(files, files->list[i].path))
            sorted[*n + n_others++] = files->list[i];
    free(files->list);
    files->list = sorted;
    return APP_EXIT_OK;
}

int app_repo_select(const struct app_repo *repo, struct app_repo_files *files, size_t *n,
                    bool *is_folder)
{
    static const char *const defaults[] = { "Q4_K_M", "Q8_0", NULL };
    const struct app_repo_file *found = NULL;
    *n = 0;
    *is_folder = false;
    if (repo->what) {
        found = find_path(files, repo->what);
        found = found ? found : find_type(files, repo->what);
        return found ? move_to_front(repo, files, found->path, n) : fail_choice(repo, files);
    }
    for (size_t i = 0; !found && i < sizeof defaults / sizeof *defaults; i++)
        found = find_type(files, defaults[i]);
    if (found)
        return move_to_front(repo, files, found->path, n);
    *is_folder = true;
    return take_folder(repo, files, n);
}
