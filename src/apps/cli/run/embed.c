/* embed: computes the embeddings of texts and prints them or writes a .npy file. */
#include "apps/common/options.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/input.h"
#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/cli/run/npy.h"
#include "apps/common/output.h"

enum {
    AT_ONCE = 256, /* texts between two updates of the progress */
    TEXTS_PER_PASS = 64,
    TOKENS_PER_PASS = 512
};

/* Texts as given, then as tokens. */
struct texts {
    struct app_text *texts;
    struct akunu_ids *ids;
    size_t n, n_ids;  /* n_ids: number of texts tokenized so far */
    char *bytes;      /* contents of the file that the texts point into */
    const char *file; /* file name; NULL: texts are arguments */
    size_t longest;   /* tokens of the longest text */
    size_t n_prompt;  /* tokens of each text's beginning that are not pooled */
};

/* Destination of embeddings: a .npy file, or standard output as JSON or as plain numbers. */
struct sink {
    struct cli_npy npy;
    struct app_output out;
    size_t width;
    bool json, list; /* one JSON object, or a list of them */
    size_t n;        /* embeddings written so far */
};

/* ---- Reading ------------------------------------------------------------ */
static int append_text(struct texts *t, size_t *capacity, const char *bytes, size_t n)
{
    if (t->n == *capacity) {
        *capacity = *capacity ? 2 * *capacity : 64;
        struct app_text *larger = realloc(t->texts, *capacity * sizeof *larger);
        if (!larger)
            return app_fail_memory();
        t->texts = larger;
    }
    t->texts[t->n++] = (struct app_text){ .bytes = (char *)(uintptr_t)bytes, .n = n };
    return APP_EXIT_OK;
}

/* Adds the texts that the separator ends. Empty ones are texts too, so that rows match lines. */
static int split(struct texts *t, size_t *capacity, const char *bytes, size_t n_bytes,
                 const char *separator)
{
    size_t n_separator = strlen(separator);
    bool lines = strcmp(separator, "\n") == 0;
    int code = APP_EXIT_OK;
    for (size_t first = 0, next; code == APP_EXIT_OK && first < n_bytes; first = next) {
        const char *found = memmem(bytes + first, n_bytes - first, separator, n_separator);
        size_t end = found ? (size_t)(found - bytes) : n_bytes;
        next = found ? end + n_separator : n_bytes;
        if (lines && end > first && bytes[end - 1] == '\r')
            end--;
        code = append_text(t, capacity, bytes + first, end - first);
    }
    return code;
}

static int add_argument(const struct app_options *o, struct texts *t, size_t *capacity,
                        const char *text)
{
    return o->embed.separator ? split(t, capacity, text, strlen(text), o->embed.separator) :
                                append_text(t, capacity, text, strlen(text));
}

static int read_texts(const struct app_options *o, struct texts *t)
{
    struct app_text file;
    size_t capacity = 0;
    int code = APP_EXIT_OK;
    for (size_t i = 0; code == APP_EXIT_OK && i < o->prompt.texts.n; i++)
        code = add_argument(o, t, &capacity, o->prompt.texts.values[i]);
    if (o->prompt.texts.n > 0)
        return code;
    code = app_read_text(o, "a text", &file);
    if (code != APP_EXIT_OK)
        return code;
    t->bytes = file.bytes;
    t->file =
        o->prompt.file && strcmp(o->prompt.file, "-") != 0 ? o->prompt.file : "standard input";
    code = split(t, &capacity, t->bytes, file.n, o->embed.separator ? o->embed.separator : "\n");
    return code == APP_EXIT_OK && t->n == 0 ? app_fail_usage("%s has no text", t->file) : code;
}

/* Makes the tokens as the model's files say, and tells how many texts that cut. */
static int tokenize(const struct app_options *o, const struct akunu_model *model, struct texts *t)
{
    struct akunu_embedding_text how;
    size_t n_cut = 0, kept = 0;
    int code = APP_EXIT_OK;
    akunu_embedding_text_default(&how, sizeof how);
    how.prompt_name = o->embed.prompt_name;
    how.flags = o->prompt.no_parse_special ? 0 : AKUNU_PARSE_SPECIAL;
    t->ids = calloc(t->n, sizeof *t->ids);
    if (!t->ids)
        return app_fail_memory();
    for (; code == APP_EXIT_OK && t->n_ids < t->n; t->n_ids++) {
        akunu_token *ids;
        size_t n;
        code = app_encode_embedding(model, &t->texts[t->n_ids], &how, &ids, &n);
        t->ids[t->n_ids] = (struct akunu_ids){ ids, n };
        t->longest = n > t->longest ? n : t->longest;
        if (code == APP_EXIT_OK && n == 0)
            code = app_fail("text %zu has no tokens", t->n_ids + 1);
        n_cut += code == APP_EXIT_OK && n < how.n_whole;
        kept = code == APP_EXIT_OK && n < how.n_whole ? n : kept;
    }
    t->n_prompt = how.n_prompt;
    if (code == APP_EXIT_OK && n_cut > 0)
        app_warn("%zu of %zu texts %s cut to the %zu tokens that the model reads of a text", n_cut,
                 t->n, n_cut == 1 ? "was" : "were", kept);
    return code;
}

static void free_texts(struct texts *t)
{
    for (size_t i = 0; i < t->n_ids; i++)
        free((akunu_token *)(uintptr_t)t->ids[i].ids);
    free(t->ids);
    free(t->texts);
    free(t->bytes);
}

/* ---- Writing ------------------------------------------------------------ */
static int open_sink(const struct app_options *o, const struct texts *t, size_t width,
                     struct sink *sink)
{
    *sink = (struct sink){ .out = app_output_stdout(),
                           .width = width,
                           .json = o->output.json,
                           .list = t->file || t->n > 1 };
    if (o->output.path)
        return cli_npy_create(o->output.path, t->n, width, &sink->npy);
    if (sink->json && sink->list)
        app_output_text(&sink->out, "[");
    return APP_EXIT_OK;
}

static int write_row(struct sink *sink, const float *row)
{
    if (sink->npy.file)
        return cli_npy_row(&sink->npy, row);
    if (sink->json)
        app_output_text(&sink->out, sink->n > 0 ? ",\n{\"embedding\": [" : "{\"embedding\": [");
    for (size_t i = 0; i < sink->width; i++)
        app_output_format(&sink->out, "%s%.9g",
                          i == 0     ? "" :
                          sink->json ? ", " :
                                       " ",
                          (double)row[i]);
    app_output_text(&sink->out, sink->json ? "]}" : "\n");
    sink->n++;
    return APP_EXIT_OK;
}

static int close_sink(struct sink *sink, int code)
{
    if (sink->npy.path)
        return cli_npy_close(&sink->npy, code);
    if (sink->json && code == APP_EXIT_OK)
        app_output_text(&sink->out, sink->list ? "]\n" : "\n");
    return app_output_end(&sink->out, code);
}

/* ---- Embedding ---------------------------------------------------------- */
/* Opens a session with a context for the longest text, and for passes of several short ones. */
static int open_for_texts(const struct app_options *o, const struct texts *t,
                          struct app_model_session *loaded)
{
    uint32_t context = 0, batch = o->session.batch;
    bool encoder = loaded->info.encoder;
    if (!encoder) {
        loaded->max_sequences = TEXTS_PER_PASS + 1;
        context = loaded->info.context < TOKENS_PER_PASS ? loaded->info.context : TOKENS_PER_PASS;
        if (t->longest > context)
            context = (uint32_t)t->longest; /* at most info.context, else refused below */
    }
    size_t max_tokens = o->session.context ? o->session.context : loaded->info.context;
    if (encoder && batch > 0 && batch < max_tokens)
        max_tokens = batch;
    for (size_t i = 0; i < t->n; i++)
        if (t->ids[i].n > max_tokens)
            return app_fail("text %zu%s%s has %zu tokens and the %s holds %zu", i + 1,
                            t->file ? " of " : "", t->file ? t->file : "", t->ids[i].n,
                            encoder && batch > 0 ? "pass (-b)" : "context", max_tokens);
    int code = app_open_session(o, loaded, context);
    if (code == APP_EXIT_OK) { /* every text opens a sequence of its own */
        akunu_sequence_free(loaded->session, loaded->sequence);
        loaded->sequence = -1;
    }
    return code;
}

static bool is_interrupted(void *user)
{
    (void)user;
    return app_is_interrupted();
}

static int embed_all(const struct app_options *o, const struct texts *t,
                     struct app_model_session *loaded, struct sink *sink)
{
    struct akunu_embedding_params embedding = o->embedding;
    embedding.width = sink->width;
    embedding.n_prompt = t->n_prompt;
    embedding.cancel = is_interrupted;
    embedding.normalize =
        o->embed.normalize || o->embed.how_normalized == 2    ? AKUNU_NORMALIZE_L2 :
        o->embed.no_normalize || o->embed.how_normalized == 1 ? AKUNU_NORMALIZE_NONE :
                                                                AKUNU_NORMALIZE_MODEL;
    float *rows = malloc((t->n < AT_ONCE ? t->n : AT_ONCE) * sink->width * sizeof *rows);
    if (!rows)
        return app_fail_memory();
    struct app_progress progress = app_progress_begin();
    int code = APP_EXIT_OK;
    for (size_t first = 0, n; code == APP_EXIT_OK && first < t->n; first += n) {
        n = t->n - first < AT_ONCE ? t->n - first : AT_ONCE;
        akunu_session_number_texts(loaded->session, first + 1);
        if (akunu_session_embed(loaded->session, t->ids + first, n, &embedding, rows) != AKUNU_OK)
            code = app_is_interrupted() ? APP_EXIT_INTERRUPTED : app_fail_library();
        for (size_t i = 0; code == APP_EXIT_OK && i < n; i++)
            code = write_row(sink, rows + i * sink->width);
        app_progress_show(&progress, "embedding", (double)(first + n) / (double)t->n);
    }
    app_progress_end(&progress);
    free(rows);
    return code;
}

int cli_embed(const struct app_options *o)
{
    struct app_model_session loaded = { .sequence = -1 };
    struct texts texts = { 0 };
    if (o->output.path && o->output.json)
        return app_fail_usage("--out and --json: only one of them can be given");
    if (o->embed.normalize && o->embed.no_normalize)
        return app_fail_usage("--normalize and --no-normalize: only one of them can be given");
    if (o->embed.separator && !*o->embed.separator)
        return app_fail_usage("--embd-separator \"\": expected the text that ends a text");
    int code = read_texts(o, &texts);
    if (code == APP_EXIT_OK)
        code = app_load_model(o, &loaded);
    if (code == APP_EXIT_OK)
        code = app_need_tokenizer(&loaded, "embed");
    if (code == APP_EXIT_OK)
        code = tokenize(o, loaded.model, &texts);
    if (code == APP_EXIT_OK)
        code = open_for_texts(o, &texts, &loaded);
    if (code == APP_EXIT_OK) {
        struct sink sink;
        code = open_sink(o, &texts, akunu_model_embedding_width(loaded.model, o->embedding.pooling),
                         &sink);
        if (code == APP_EXIT_OK)
            code = embed_all(o, &texts, &loaded, &sink);
        code = close_sink(&sink, code);
    }
    app_unload(&loaded);
    free_texts(&texts);
    return code;
}
