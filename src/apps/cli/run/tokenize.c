/* tokenize and detokenize: text to ids and back. Only the vocabulary is read. */
#include "apps/common/options.h"

#include <stdlib.h>
#include <unistd.h>

#include "apps/common/input.h"
#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/common/output.h"

/* Decodes ids to a text, to be freed. */
static int decode_ids(const struct akunu_tokenizer *tokenizer, const akunu_token *ids, size_t n,
                      struct app_text *out)
{
    int64_t n_bytes = akunu_tokenizer_decode(tokenizer, ids, n, 0, NULL, 0);
    *out = (struct app_text){ 0 };
    if (n_bytes < 0)
        return app_fail_library();
    out->n = (size_t)n_bytes;
    out->bytes = malloc(out->n + 1);
    if (!out->bytes)
        return app_fail_memory();
    if (akunu_tokenizer_decode(tokenizer, ids, n, 0, out->bytes, out->n) == n_bytes)
        return APP_EXIT_OK;
    free(out->bytes);
    out->bytes = NULL;
    return app_fail_library();
}

static void print_ids(struct app_output *out, const akunu_token *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        app_output_format(out, i ? " %d" : "%d", (int)ids[i]);
    app_output_text(out, "\n");
}

/* Prints each id with its bytes. */
static int print_pieces(struct app_output *out, const struct akunu_tokenizer *tokenizer,
                        const akunu_token *ids, size_t n, bool as_json)
{
    app_output_text(out, as_json ? "[" : "");
    for (size_t i = 0; i < n; i++) {
        struct app_text piece;
        int code = decode_ids(tokenizer, &ids[i], 1, &piece);
        if (code != APP_EXIT_OK)
            return code;
        if (as_json) {
            app_output_text(out, i ? ",\n " : "");
            app_json_print(out, json_pack("{s:i, s:o}", "id", (int)ids[i], "text",
                                          app_json_text(piece.bytes, piece.n)));
        } else {
            app_output_format(out, "%7d  '", (int)ids[i]);
            app_output_escaped(out, piece.bytes, piece.n);
            app_output_text(out, "'\n");
        }
        free(piece.bytes);
    }
    app_output_text(out, as_json ? "]\n" : "");
    return APP_EXIT_OK;
}

int cli_tokenize(const struct app_options *o)
{
    unsigned flags = (o->prompt.no_bos ? 0u : AKUNU_ADD_SPECIAL) |
                     (o->prompt.no_parse_special ? 0u : AKUNU_PARSE_SPECIAL);
    struct app_output out = app_output_stdout();
    struct akunu_tokenizer *tokenizer = NULL;
    akunu_token *ids = NULL;
    size_t n = 0;
    struct app_text text;

    int code = app_read_text(o, "the text", &text);
    if (code == APP_EXIT_OK)
        code = app_load_tokenizer(o, &tokenizer);
    if (code == APP_EXIT_OK)
        code = app_tokenize_text(tokenizer, &text, flags, &ids, &n);
    if (code == APP_EXIT_OK && o->output.ids_only && !o->output.json)
        print_ids(&out, ids, n);
    else if (code == APP_EXIT_OK)
        code = print_pieces(&out, tokenizer, ids, n, o->output.json);
    free(ids);
    free(text.bytes);
    akunu_tokenizer_free(tokenizer);
    return app_output_end(&out, code);
}

int cli_detokenize(const struct app_options *o)
{
    struct app_output out = app_output_stdout();
    struct akunu_tokenizer *tokenizer = NULL;
    struct app_text text = { 0 };
    akunu_token *ids;
    size_t n;

    int code = app_read_ids(o, &ids, &n);
    if (code == APP_EXIT_OK)
        code = app_load_tokenizer(o, &tokenizer);
    if (code == APP_EXIT_OK)
        code = app_check_ids(app_ids_name(o), ids, n, akunu_tokenizer_vocab_size(tokenizer));
    if (code == APP_EXIT_OK)
        code = decode_ids(tokenizer, ids, n, &text);
    if (code == APP_EXIT_OK && o->output.json) {
        app_json_print(&out, json_pack("{s:o}", "text", app_json_text(text.bytes, text.n)));
        app_output_text(&out, "\n");
    } else if (code == APP_EXIT_OK) {
        app_output_bytes(&out, text.bytes, text.n);
        if (text.n > 0 && text.bytes[text.n - 1] != '\n' && isatty(STDOUT_FILENO))
            app_output_text(&out, "\n");
    }
    free(text.bytes);
    free(ids);
    akunu_tokenizer_free(tokenizer);
    return app_output_end(&out, code);
}
