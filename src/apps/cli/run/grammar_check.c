/* grammar-check: whether a text matches a grammar or a JSON schema, and if not, where it fails. */
#include "apps/common/options.h"

#include <stdlib.h>

#include "apps/common/input.h"
#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/common/output.h"
#include "apps/common/sampling.h"

/* Position of a byte for people: line and character, both from 1. */
struct place {
    size_t byte, line, column;
};

static struct place place_of(const struct app_text *text, size_t byte)
{
    struct place p = { byte, 1, 1 };
    for (size_t i = 0; i < byte; i++) {
        if (text->bytes[i] == '\n') {
            p.line++;
            p.column = 1;
        } else if (((unsigned char)text->bytes[i] & 0xc0) != 0x80) {
            p.column++;
        }
    }
    return p;
}

/* Bytes of the character at `at`; a malformed byte counts as one. */
static size_t character_bytes(const struct app_text *text, size_t at)
{
    size_t n = 1;
    while (at + n < text->n && n < 4 && ((unsigned char)text->bytes[at + n] & 0xc0) == 0x80)
        n++;
    return n;
}

static void report_check(struct app_output *out, const struct app_text *text, bool allowed,
                         size_t at, bool as_json)
{
    struct place p = place_of(text, at);
    if (as_json) {
        json_t *answer = json_pack("{s:b}", "match", allowed);
        if (!allowed) {
            json_object_set_new(answer, "byte", json_integer((json_int_t)p.byte));
            json_object_set_new(answer, "line", json_integer((json_int_t)p.line));
            json_object_set_new(answer, "column", json_integer((json_int_t)p.column));
        }
        app_json_print(out, answer);
        app_output_text(out, "\n");
    } else if (allowed) {
        app_output_text(out, "match\n");
    } else if (at == text->n) {
        app_output_format(out,
                          "no match: line %zu, column %zu (byte %zu): the text ends too early\n",
                          p.line, p.column, p.byte);
    } else {
        app_output_format(out, "no match: line %zu, column %zu (byte %zu): found '", p.line,
                          p.column, p.byte);
        app_output_escaped(out, text->bytes + at, character_bytes(text, at));
        app_output_text(out, "'\n");
    }
}

int cli_grammar_check(const struct app_options *o)
{
    struct app_output out = app_output_stdout();
    struct akunu_tokenizer *tokenizer = NULL;
    struct akunu_grammar *grammar = NULL;
    struct app_text text = { 0 };
    bool allowed = false;
    size_t at = 0;

    int code = app_read_grammar(o, AKUNU_SCHEMA_READING, &grammar);
    if (code == APP_EXIT_OK && !grammar)
        code = app_fail_usage("a grammar is expected: --grammar, --grammar-file or -j");
    if (code == APP_EXIT_OK)
        code = app_read_text(o, "the text", &text);
    if (code == APP_EXIT_OK && o->model.name)
        code = app_load_tokenizer(o, &tokenizer);
    if (code == APP_EXIT_OK &&
        akunu_grammar_check(grammar, tokenizer, text.bytes, text.n, &allowed, &at) != AKUNU_OK)
        code = akunu_last_status() == AKUNU_ERROR_MEMORY ? app_fail_memory() :
                                                           app_fail_usage("%s", akunu_last_error());
    if (code == APP_EXIT_OK) {
        report_check(&out, &text, allowed, at, o->output.json);
        code = allowed ? APP_EXIT_OK : APP_EXIT_FAILURE;
    }
    free(text.bytes);
    akunu_grammar_free(grammar);
    akunu_tokenizer_free(tokenizer);
    return app_output_end(&out, code);
}
