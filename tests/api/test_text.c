/* The calls of text.h: what each takes and gives, and what it refuses. The texts themselves are
 * tested where they are made: tests/text/tokenizer, grammar, template and toolcall. */
#include "tests/test.h"
#include <stdio.h>
#include <string.h>

#include "akunu/akunu.h"
#include "tests/api/failure.h"
#include "tests/st_files.h"

static struct akunu_tokenizer *load(void)
{
    struct akunu_tokenizer *t = akunu_tokenizer_load(test_path("model.gguf"));
    ck_assert_msg(t != NULL, "%s", akunu_last_error());
    return t;
}

/* ---- Tokens and text ---------------------------------------------------- */
enum { THE = 263, START = 414, END = 415 }; /* " the", <|im_start|>, <|im_end|> */

START_TEST(tokenizers)
{
    struct akunu_tokenizer *t = load();
    akunu_token ids[4] = { -5, -5, -5, -5 };
    char text[16] = "##############";
    ck_assert_uint_eq(akunu_tokenizer_vocab_size(t), 416);
    ck_assert_int_eq(akunu_tokenizer_bos(t), -1);
    ck_assert(akunu_tokenizer_is_end(t, END) && !akunu_tokenizer_is_end(t, THE));
    ck_assert(akunu_tokenizer_is_control(t, START) && !akunu_tokenizer_is_control(t, THE));
    ck_assert(!akunu_tokenizer_is_end(t, -1) && !akunu_tokenizer_is_control(t, 416));

    /* counts of the whole, and no more written than there is room for */
    ck_assert_int_eq(akunu_tokenizer_encode(t, " the the the", 12, 0, ids, 2), 3);
    ck_assert(ids[0] == THE && ids[1] == THE && ids[2] == -5);
    ck_assert_int_eq(akunu_tokenizer_encode(t, " the the", 8, 0, NULL, 0), 2);
    ck_assert_int_eq(akunu_tokenizer_encode(t, NULL, 0, 0, ids, 4), 0);
    ck_assert_int_eq(akunu_tokenizer_encode(t, "<|im_end|>", 10, AKUNU_PARSE_SPECIAL, ids, 4), 1);
    ck_assert_int_eq(ids[0], END);
    ck_assert_int_gt(akunu_tokenizer_encode(t, "<|im_end|>", 10, AKUNU_ADD_SPECIAL, ids, 4), 1);
    ids[0] = ids[1] = THE, ids[2] = END;
    ck_assert_int_eq(akunu_tokenizer_decode(t, ids, 2, 0, text, 6), 8);
    ck_assert_str_eq(text, " the t########");
    ck_assert_int_eq(akunu_tokenizer_decode(t, ids, 3, 0, NULL, 0), 18);
    ck_assert_int_eq(akunu_tokenizer_decode(t, ids, 3, AKUNU_SKIP_SPECIAL, NULL, 0), 8);
    ck_assert_int_eq(akunu_tokenizer_decode(t, ids, 3, AKUNU_CONTINUE, NULL, 0), 18);
    ck_assert_int_eq(akunu_tokenizer_decode(t, NULL, 0, 0, text, 6), 0);
    akunu_tokenizer_free(t);
    akunu_tokenizer_free(NULL);
}
END_TEST

START_TEST(tokenizers_refuse)
{
    static const char *const bos[] = { "tokenizer.ggml.bos_token_id=int:413",
                                       "tokenizer.ggml.add_bos_token=bool:true", NULL };
    static const char *const wrong[] = { "tokenizer.ggml.bos_token_id=long:413",
                                         "tokenizer.ggml.bos_token_id=int:413", NULL };
    struct akunu_tokenizer *t = load();
    akunu_token id = THE;
    char text[8];
    ck_assert_int_eq(akunu_tokenizer_encode(NULL, "a", 1, 0, &id, 1), -1);
    failed_with(AKUNU_ERROR_ARGUMENT, "the tokenizer is NULL");
    ck_assert_int_eq(akunu_tokenizer_encode(t, NULL, 1, 0, &id, 1), -1);
    failed_with(AKUNU_ERROR_ARGUMENT, "pointer is NULL");
    forget();
    ck_assert_int_eq(akunu_tokenizer_encode(t, "a", 1, 0, NULL, 1), -1);
    failed_with(AKUNU_ERROR_ARGUMENT, "pointer is NULL");
    ck_assert_int_eq(akunu_tokenizer_encode(t, "a", 1, AKUNU_CONTINUE, &id, 1), -1);
    failed_with(AKUNU_ERROR_ARGUMENT, "unknown flags: 0x8");
    ck_assert_int_eq(akunu_tokenizer_decode(NULL, &id, 1, 0, text, 8), -1);
    failed_with(AKUNU_ERROR_ARGUMENT, "the tokenizer is NULL");
    ck_assert_int_eq(akunu_tokenizer_decode(t, NULL, 1, 0, text, 8), -1);
    failed_with(AKUNU_ERROR_ARGUMENT, "pointer is NULL");
    forget();
    ck_assert_int_eq(akunu_tokenizer_decode(t, &id, 1, 0, NULL, 8), -1);
    failed_with(AKUNU_ERROR_ARGUMENT, "pointer is NULL");
    ck_assert_int_eq(
        akunu_tokenizer_decode(t, &id, 1, AKUNU_ADD_SPECIAL | AKUNU_PARSE_SPECIAL, text, 8), -1);
    failed_with(AKUNU_ERROR_ARGUMENT, "unknown flags: 0x3");
    id = 416;
    ck_assert_int_eq(akunu_tokenizer_decode(t, &id, 1, 0, text, 8), -1);
    failed_with(AKUNU_ERROR_ARGUMENT, "416");
    akunu_tokenizer_free(t);

    ck_assert_ptr_null(akunu_tokenizer_load(NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "no path is given");
    ck_assert_ptr_null(akunu_tokenizer_load("/nowhere"));
    failed_with(AKUNU_ERROR_FORMAT, "/nowhere");
    ck_assert_ptr_null(akunu_tokenizer_load(test_path("models/gemma.gguf")));
    failed_with(AKUNU_ERROR_FORMAT, "no vocabulary");
    ck_assert_ptr_null(akunu_tokenizer_load_with(test_path("model.gguf"), wrong));
    failed_with(AKUNU_ERROR_ARGUMENT, "long");
    t = akunu_tokenizer_load_with(test_path("model.gguf"), bos);
    ck_assert_msg(t != NULL, "%s", akunu_last_error());
    ck_assert_int_eq(akunu_tokenizer_bos(t), 413);
    ck_assert_int_eq(akunu_tokenizer_encode(t, " the", 4, AKUNU_ADD_SPECIAL, NULL, 0), 2);
    ck_assert_int_eq(akunu_tokenizer_encode(t, " the", 4, 0, NULL, 0), 1);
    akunu_tokenizer_free(t);

    /* questions about none */
    ck_assert_uint_eq(akunu_tokenizer_vocab_size(NULL), 0);
    ck_assert_int_eq(akunu_tokenizer_bos(NULL), -1);
    ck_assert(!akunu_tokenizer_is_end(NULL, END) && !akunu_tokenizer_is_control(NULL, END));
}
END_TEST

START_TEST(infill_prompts)
{
    static const char *const markers[] = { "tokenizer.ggml.fim_pre_token_id=int:414",
                                           "tokenizer.ggml.fim_suf_token_id=int:413",
                                           "tokenizer.ggml.fim_mid_token_id=int:415", NULL };
    struct akunu_tokenizer *plain = load();
    struct akunu_tokenizer *t = akunu_tokenizer_load_with(test_path("model.gguf"), markers);
    akunu_token ids[6] = { -5, -5, -5, -5, -5, -5 };
    struct akunu_infill infill;
    ck_assert_msg(t != NULL, "%s", akunu_last_error());
    akunu_infill_default(&infill, sizeof infill);
    infill.prefix = " the";
    infill.n_prefix_bytes = 4;
    infill.suffix = " the the";
    infill.n_suffix_bytes = 8;
    ck_assert_int_eq(akunu_tokenizer_encode_infill(t, &infill, ids, 5), 6);
    ck_assert(ids[0] == START && ids[1] == THE && ids[2] == 413 && ids[4] == THE && ids[5] == -5);
    infill.max_tokens = 5;
    ck_assert_int_eq(akunu_tokenizer_encode_infill(t, &infill, ids, 6), 5);
    ck_assert(ids[4] == END && infill.n_prefix_dropped == 0 && infill.n_suffix_dropped == 1);
    infill.max_tokens = 2;
    ck_assert_int_eq(akunu_tokenizer_encode_infill(t, &infill, ids, 6), -1);
    ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_CONTEXT);
    infill.max_tokens = 0;
    ck_assert_int_eq(akunu_tokenizer_encode_infill(plain, &infill, ids, 6), -1);
    ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_UNSUPPORTED);
    infill.prefix = NULL;
    ck_assert_int_eq(akunu_tokenizer_encode_infill(t, &infill, ids, 6), -1);
    ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_tokenizer_encode_infill(t, NULL, ids, 6), -1);
    ck_assert_int_eq(akunu_tokenizer_encode_infill(NULL, &infill, ids, 6), -1);
    akunu_tokenizer_free(t);
    akunu_tokenizer_free(plain);
}
END_TEST

START_TEST(special_tokens)
{
    static const char *const stated[] = { "tokenizer.ggml.eos_token_id=int:414",
                                          "tokenizer.ggml.padding_token_id=int:413",
                                          "tokenizer.ggml.prefix_token_id=int:8",
                                          "tokenizer.ggml.middle_token_id=int:9",
                                          "tokenizer.ggml.fim_mid_token_id=int:10",
                                          "tokenizer.ggml.fim_suf_token_id=int:416", /* none */
                                          NULL };
    static const akunu_token expected[] = { -1, -1, START, END, 413, 8, -1, 10, -1, -1, -1, -1 };
    struct akunu_tokenizer *t = akunu_tokenizer_load_with(test_path("model.gguf"), stated);
    ck_assert_msg(t != NULL, "%s", akunu_last_error());
    for (int i = -1; i < (int)(sizeof expected / sizeof *expected); i++) {
        akunu_token found = akunu_tokenizer_special(t, (enum akunu_special_token)i);
        ck_assert_msg(found == (i < 0 ? -1 : expected[i]), "%d: %d", i, found);
        ck_assert_int_eq(akunu_tokenizer_special(NULL, (enum akunu_special_token)i), -1);
    }
    akunu_tokenizer_free(t);
}
END_TEST

START_TEST(streams)
{
    struct akunu_tokenizer *t = load();
    struct akunu_stream *s = akunu_stream_new(t, 0),
                        *skipping = akunu_stream_new(t, AKUNU_SKIP_SPECIAL | AKUNU_CONTINUE);
    const char *text = "";
    size_t n = 9;
    ck_assert(s && skipping);
    ck_assert_int_eq(akunu_stream_push(s, THE, &text, &n), AKUNU_OK);
    ck_assert(n == 4 && memcmp(text, " the", 4) == 0);
    ck_assert_int_eq(akunu_stream_push(s, END, &text, &n), AKUNU_OK);
    ck_assert_uint_eq(n, 10);
    ck_assert_int_eq(akunu_stream_push(skipping, END, &text, &n), AKUNU_OK);
    ck_assert_uint_eq(n, 0);
    n = 9;
    ck_assert_int_eq(akunu_stream_end(s, &text, &n), AKUNU_OK);
    ck_assert_uint_eq(n, 0);

    ck_assert_int_eq(akunu_stream_push(s, 416, &text, &n), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "416");
    ck_assert_int_eq(akunu_stream_push(NULL, THE, &text, &n), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_stream_push(s, THE, NULL, &n), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_stream_push(s, THE, &text, NULL), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the stream, or where");
    forget();
    ck_assert_int_eq(akunu_stream_end(NULL, &text, &n), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_stream_end(s, NULL, &n), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_stream_end(s, &text, NULL), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the stream, or where");
    ck_assert_ptr_null(akunu_stream_new(NULL, 0));
    failed_with(AKUNU_ERROR_ARGUMENT, "the tokenizer is NULL");
    ck_assert_ptr_null(akunu_stream_new(t, AKUNU_ADD_SPECIAL));
    failed_with(AKUNU_ERROR_ARGUMENT, "unknown flags");
    akunu_stream_free(NULL);
    akunu_stream_free(s);
    akunu_stream_free(skipping);
    akunu_tokenizer_free(t);
}
END_TEST

/* ---- Grammars ----------------------------------------------------------- */
static void count_lines(enum akunu_log_level level, const char *line, void *user)
{
    ck_assert_int_eq(level, AKUNU_LOG_WARN);
    ck_assert_ptr_nonnull(line);
    ++*(int *)user;
}

static bool is_allowed(const struct akunu_grammar *g, const struct akunu_tokenizer *t,
                       const char *text, size_t accepted)
{
    bool allowed = false;
    size_t at = SIZE_MAX;
    ck_assert_msg(akunu_grammar_check(g, t, text, strlen(text), &allowed, &at) == AKUNU_OK, "%s",
                  akunu_last_error());
    ck_assert_msg(at == accepted, "'%s': accepted %zu bytes, not %zu", text, at, accepted);
    return allowed;
}

START_TEST(schemas)
{
    static const char lax[] = "{\"type\": \"integer\", \"not\": {\"const\": [1]}}";
    struct akunu_schema_params params;
    int n_lines = 0;
    akunu_schema_params_default(&params, sizeof params);
    ck_assert(params.size == sizeof params && params.form == AKUNU_SCHEMA_WRITING && !params.lax &&
              !params.log && !params.user);
    /* the form is the caller's: only READING allows any whitespace */
    struct akunu_grammar *g = akunu_grammar_from_schema("{\"type\": \"null\"}", 16, &params);
    ck_assert(g && is_allowed(g, NULL, "null", 4) && !is_allowed(g, NULL, "\n\n\n\nnull", 0));
    akunu_grammar_free(g);
    params.form = AKUNU_SCHEMA_READING;
    g = akunu_grammar_from_schema("{\"type\": \"null\"}", 16, &params);
    ck_assert(g && is_allowed(g, NULL, "\n\n\n\nnull", 8));
    akunu_grammar_free(g);
    params.form = (enum akunu_schema_form)2;
    ck_assert_ptr_null(akunu_grammar_from_schema("{}", 2, &params));
    failed_with(AKUNU_ERROR_ARGUMENT, "is 2, which is none");
    params.form = AKUNU_SCHEMA_READING;
    params.log = count_lines;
    params.user = &n_lines;
    ck_assert_ptr_null(akunu_grammar_from_schema(lax, sizeof lax - 1, &params));
    failed_with(AKUNU_ERROR_UNSUPPORTED, "not");
    params.lax = true;
    g = akunu_grammar_from_schema(lax, sizeof lax - 1, &params);
    ck_assert_msg(g && n_lines == 1, "%d lines", n_lines);
    akunu_grammar_free(g);
    params.size = offsetof(struct akunu_schema_params, lax); /* an older program's */
    ck_assert_ptr_null(akunu_grammar_from_schema(lax, sizeof lax - 1, &params));
    params.size = 8;
    ck_assert_ptr_null(akunu_grammar_from_schema("{}", 2, &params));
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_schema_params");
    ck_assert_ptr_null(akunu_grammar_from_schema(NULL, 0, NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "the schema is NULL");
    ck_assert_ptr_null(akunu_grammar_from_schema("{} ,", 4, NULL));
    ck_assert_ptr_nonnull(g = akunu_grammar_from_schema("{} ,", 2, NULL)); /* n_bytes of it */
    akunu_grammar_free(g);
    ck_assert_ptr_null(akunu_grammar_parse(NULL, 0));
    failed_with(AKUNU_ERROR_ARGUMENT, "the grammar is NULL");
}
END_TEST

START_TEST(checking)
{
    static const char gbnf[] = "root ::= \" the\"{2} <|im_end|>?";
    struct akunu_tokenizer *t = load();
    struct akunu_grammar *g = akunu_grammar_parse(gbnf, sizeof gbnf - 1);
    bool allowed = false;
    size_t at = 7;
    ck_assert_msg(g != NULL, "%s", akunu_last_error());
    for (int i = 0; i < 2; i++) {
        const struct akunu_tokenizer *with = i ? t : NULL;
        ck_assert(is_allowed(g, with, " the the", 8));
        ck_assert(!is_allowed(g, with, " the", 4));
        ck_assert(!is_allowed(g, with, " the a", 4 + (size_t)!i));
        ck_assert(is_allowed(g, with, " the the<|im_end|>", 18));
        ck_assert(!is_allowed(g, with, " the the the", 8));
        ck_assert(!is_allowed(g, with, " the a the", 4 + (size_t)!i));
        ck_assert(!is_allowed(g, with, "", 0));
    }
    ck_assert_int_eq(akunu_grammar_check(g, NULL, NULL, 0, &allowed, &at), AKUNU_OK);
    ck_assert(!allowed && at == 0);
    ck_assert_int_eq(akunu_grammar_check(g, NULL, " the the", 8, &allowed, NULL), AKUNU_OK);
    ck_assert(allowed);
    at = 7;
    ck_assert_int_eq(akunu_grammar_check(NULL, NULL, "a", 1, &allowed, &at), AKUNU_ERROR_ARGUMENT);
    ck_assert_uint_eq(at, 0);
    ck_assert_int_eq(akunu_grammar_check(g, NULL, NULL, 1, &allowed, NULL), AKUNU_ERROR_ARGUMENT);
    ck_assert_int_eq(akunu_grammar_check(g, NULL, "a", 1, NULL, NULL), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the grammar, the text");
    akunu_grammar_free(g);

    /* a token that the vocabulary lacks is found where the grammar meets it */
    static const char other[] = "root ::= <|none|>";
    g = akunu_grammar_parse(other, sizeof other - 1);
    ck_assert(g && is_allowed(g, NULL, "<|none|>", 8));
    allowed = true;
    ck_assert_int_ne(akunu_grammar_check(g, t, "a", 1, &allowed, NULL), AKUNU_OK);
    ck_assert(!allowed);
    failed_with(akunu_last_status(), "<|none|>");
    akunu_grammar_free(g);
    akunu_tokenizer_free(t);
}
END_TEST

START_TEST(lazy)
{
    static const char *const triggers[] = { "<x>", "<y>", NULL }, *const none[] = { NULL };
    struct akunu_grammar *g = akunu_grammar_parse("root ::= \"1\"", 12);
    struct akunu_grammar *once = akunu_grammar_make_lazy(g, triggers, false),
                         *again = akunu_grammar_make_lazy(g, triggers, true);
    ck_assert(g && once && again);
    ck_assert(is_allowed(once, NULL, "any", 3) && is_allowed(once, NULL, "a<y>1", 5));
    ck_assert(!is_allowed(once, NULL, "<x>2", 3) && !is_allowed(once, NULL, "<x>1<y>1", 4));
    ck_assert(is_allowed(again, NULL, "<x>1b<y>1", 9) && !is_allowed(again, NULL, "<x>1<y>2", 7));
    ck_assert_ptr_null(akunu_grammar_make_lazy(NULL, triggers, false));
    failed_with(AKUNU_ERROR_ARGUMENT, "the grammar or the triggers are NULL");
    forget();
    ck_assert_ptr_null(akunu_grammar_make_lazy(g, NULL, false));
    failed_with(AKUNU_ERROR_ARGUMENT, "the grammar or the triggers are NULL");
    ck_assert_ptr_null(akunu_grammar_make_lazy(g, none, false));
    failed_with(AKUNU_ERROR_ARGUMENT, "trigger");
    akunu_grammar_free(g);
    akunu_grammar_free(once);
    akunu_grammar_free(again);
}
END_TEST

/* ---- Chat templates ----------------------------------------------------- */
static void renders(const struct akunu_template *t, const struct akunu_chat *chat, const char *want)
{
    size_t n = 0;
    char *text = akunu_template_render(t, chat, &n);
    ck_assert_msg(text && strcmp(text, want) == 0 && n == strlen(want), "%s: %s",
                  text ? text : akunu_last_error(), want);
    akunu_text_free(text);
}

START_TEST(templates)
{
    static const char *const own[] = { "tokenizer.chat_template=str:{{ eos_token }}", NULL };
    static const char *const wrong[] = { "tokenizer.chat_template=text:x",
                                         "tokenizer.chat_template=str:x", NULL };
    struct akunu_chat chat;
    size_t n = 7;
    akunu_chat_default(&chat, sizeof chat);
    ck_assert(chat.size == sizeof chat && chat.add_generation_prompt && !chat.messages);
    struct akunu_template *t = akunu_template_load(test_path("model.gguf"), NULL),
                          *other = akunu_template_load(test_path("model.gguf"), own);
    ck_assert_msg(t && other, "%s", akunu_last_error());
    ck_assert(!akunu_template_is_fallback(t));
    ck_assert_str_eq(akunu_template_name(t, 0), "default");
    ck_assert_ptr_null(akunu_template_name(t, 1));
    chat.messages = "[{\"role\": \"user\", \"content\": \"Hi\"}]";
    renders(t, &chat, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
    chat.add_generation_prompt = false;
    renders(t, &chat, "<|im_start|>user\nHi<|im_end|>\n");
    renders(other, &chat, "<|im_end|>");
    chat.size = offsetof(struct akunu_chat, add_generation_prompt); /* an older program's */
    renders(t, &chat, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
    chat.size = sizeof chat;

    /* of a text, whose special tokens are those of a model or none */
    struct akunu_template *with = akunu_template_parse("{{ eos_token }}!###", 16, other),
                          *without = akunu_template_parse("{{ eos_token }}!", 16, NULL),
                          *empty = akunu_template_parse(NULL, 0, NULL);
    ck_assert_msg(with && without && empty, "%s", akunu_last_error());
    renders(with, &chat, "<|im_end|>!");
    renders(without, &chat, "!");
    renders(empty, &chat, "");
    ck_assert_str_eq(akunu_template_text(with, "default", false, &n), "{{ eos_token }}!");
    ck_assert_uint_eq(n, 16);
    ck_assert_ptr_nonnull(akunu_template_text(with, NULL, false, NULL));

    n = 7;
    ck_assert_ptr_null(akunu_template_render(NULL, &chat, &n));
    failed_with(AKUNU_ERROR_ARGUMENT, "the template is NULL");
    ck_assert_uint_eq(n, 0);
    ck_assert_ptr_null(akunu_template_render(t, NULL, NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "no messages are given");
    chat.size = 8;
    ck_assert_ptr_null(akunu_template_render(t, &chat, NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_chat");
    ck_assert_ptr_null(akunu_template_parse(NULL, 1, NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "the template's text is NULL");
    ck_assert_ptr_null(akunu_template_parse("x", (size_t)UINT32_MAX + 1, NULL));
    failed_with(AKUNU_ERROR_UNSUPPORTED, "4294967296 bytes");
    ck_assert_ptr_null(akunu_template_parse("{% if %}", 8, NULL));
    failed_with(AKUNU_ERROR_FORMAT, "line 1");
    ck_assert_ptr_null(akunu_template_load(NULL, NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "no path is given");
    ck_assert_ptr_null(akunu_template_load("/nowhere", NULL));
    failed_with(AKUNU_ERROR_FORMAT, "/nowhere");
    ck_assert_ptr_null(akunu_template_load(test_path("model.gguf"), wrong));
    failed_with(AKUNU_ERROR_ARGUMENT, "text");
    ck_assert_ptr_null(akunu_model_template(NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "the model is NULL");

    n = 7;
    ck_assert(!akunu_template_is_fallback(NULL) && !akunu_template_name(NULL, 0) &&
              !akunu_template_text(NULL, NULL, false, &n));
    ck_assert_uint_eq(n, 0);
    akunu_template_free(t);
    akunu_template_free(other);
    akunu_template_free(with);
    akunu_template_free(without);
    akunu_template_free(empty);
    akunu_template_free(NULL);
    akunu_text_free(NULL);
}
END_TEST

/* It may outlive its model. */
START_TEST(template_of_a_model)
{
    struct akunu_chat chat;
    struct akunu_model *model = akunu_model_load(test_path("model.gguf"), NULL);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    struct akunu_template *t = akunu_model_template(model);
    akunu_model_free(model);
    akunu_chat_default(&chat, sizeof chat);
    chat.messages = "[]";
    chat.messages = "[{\"role\": \"user\", \"content\": \"Hi\"}]";
    renders(t, &chat, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
    akunu_template_free(t);
}
END_TEST

/* ---- Tool calls --------------------------------------------------------- */
#define TOOLS                                                                                      \
    "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"type\": "        \
    "\"object\", \"properties\": {\"n\": {\"type\": \"integer\"}}, \"required\": [\"n\"], "        \
    "\"additionalProperties\": false}}}]"
#define HERMES "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"n\": 1}}\n</tool_call>"

static void on_event(const struct akunu_reply_event *event, void *user)
{
    ck_assert_uint_eq(event->size, sizeof *event);
    ((int *)user)[event->kind]++;
}

static const char *message_of(struct akunu_reply *reply, const char *text)
{
    ck_assert_msg(reply != NULL, "%s", akunu_last_error());
    ck_assert_int_eq(akunu_reply_push(reply, text, strlen(text)), AKUNU_OK);
    ck_assert_int_eq(akunu_reply_end(reply), AKUNU_OK);
    const char *message = akunu_reply_message(reply);
    ck_assert_msg(message != NULL, "%s", akunu_last_error());
    return message;
}

START_TEST(replies)
{
    struct akunu_reply_params params;
    int events[AKUNU_REPLY_BROKEN + 1] = { 0 };
    char id[2][64] = { "" };
    akunu_reply_params_default(&params, sizeof params);
    ck_assert(params.size == sizeof params && params.calls && params.reasoning && !params.format &&
              !params.tools && params.seed == 0);
    params.format = "hermes";
    params.tools = TOOLS;
    for (unsigned i = 0; i < 2; i++) {
        params.seed = i; /* ids derive from it */
        struct akunu_reply *reply = akunu_reply_new(&params, on_event, events);
        const char *message = message_of(reply, "<think>r</think>a" HERMES);
        ck_assert_ptr_nonnull(strstr(message, "\"reasoning_content\": \"r\""));
        ck_assert_ptr_nonnull(strstr(message, "\"content\": \"a\""));
        const char *at = strstr(message, "\"id\": \"");
        ck_assert_ptr_nonnull(at);
        snprintf(id[i], sizeof id[i], "%.20s", at);
        ck_assert_str_eq(akunu_reply_format(reply), "hermes");
        ck_assert_str_eq(akunu_reply_notes(reply), "");
        akunu_reply_free(reply);
    }
    ck_assert_str_ne(id[0], id[1]);
    ck_assert(events[AKUNU_REPLY_CALL] == 2 && events[AKUNU_REPLY_CALL_END] == 2);

    /* a call that is none; what is switched off; what the prompt has begun */
    struct akunu_reply *reply = akunu_reply_new(&params, NULL, NULL);
    ck_assert_ptr_null(strstr(message_of(reply, "<tool_call>{\"name\": 1}"), "tool_calls"));
    ck_assert_str_ne(akunu_reply_notes(reply), "");
    akunu_reply_free(reply);
    params.calls = false;
    reply = akunu_reply_new(&params, NULL, NULL);
    ck_assert_ptr_null(strstr(message_of(reply, HERMES), "tool_calls"));
    akunu_reply_free(reply);
    params.reasoning = false;
    reply = akunu_reply_new(&params, NULL, NULL);
    ck_assert_ptr_null(strstr(message_of(reply, "<think>r</think>a"), "reasoning_content"));
    akunu_reply_free(reply);
    params.reasoning = true;
    params.prompt = "<think>\n";
    reply = akunu_reply_new(&params, NULL, NULL);
    ck_assert_ptr_nonnull(strstr(message_of(reply, "r</think>a"), "\"reasoning_content\": \"r\""));
    akunu_reply_free(reply);
}
END_TEST

/* The format of NULL and of "auto" is that of the template, else of the vocabulary. */
START_TEST(formats)
{
    struct akunu_tokenizer *t = load();
    struct akunu_reply_params params;
    akunu_reply_params_default(&params, sizeof params);
    params.tokenizer = t;
    for (int i = 0; i < 2; i++) {
        params.format = i ? "auto" : NULL;
        params.chat_template = "{{ '[TOOL_CALLS]' }}{{ '[ARGS]' }}";
        struct akunu_reply *reply = akunu_reply_new(&params, NULL, NULL);
        ck_assert_msg(reply && strncmp(akunu_reply_format(reply), "mistral", 7) == 0, "%s",
                      akunu_reply_format(reply));
        akunu_reply_free(reply);
        params.chat_template = "{{ '<tool_call>' }}";
        reply = akunu_reply_new(&params, NULL, NULL);
        ck_assert_str_eq(akunu_reply_format(reply), "hermes");
        akunu_reply_free(reply);
    }
    size_t n = 0;
    while (akunu_reply_format_name(n)) {
        params.format = akunu_reply_format_name(n++);
        struct akunu_reply *reply = akunu_reply_new(&params, NULL, NULL);
        ck_assert_str_eq(akunu_reply_format(reply), params.format);
        akunu_reply_free(reply);
    }
    ck_assert_uint_gt(n, 5);
    ck_assert_ptr_null(akunu_reply_format_name(SIZE_MAX));
    akunu_tokenizer_free(t);
}
END_TEST

START_TEST(replies_refuse)
{
    struct akunu_reply_params params;
    akunu_reply_params_default(&params, sizeof params);
    params.format = "morse";
    ck_assert_ptr_null(akunu_reply_new(&params, NULL, NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "\"morse\"");
    params.format = NULL;
    params.tools = "{}";
    ck_assert_ptr_null(akunu_reply_new(&params, NULL, NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "tools");
    params.size = 8;
    ck_assert_ptr_null(akunu_reply_new(&params, NULL, NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_reply_params");

    struct akunu_reply *reply = akunu_reply_new(NULL, NULL, NULL);
    ck_assert_msg(reply != NULL, "%s", akunu_last_error());
    ck_assert_ptr_null(akunu_reply_message(reply)); /* not before the end */
    ck_assert_int_eq(akunu_reply_push(reply, NULL, 1), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the reply, or its text, is NULL");
    forget();
    ck_assert_int_eq(akunu_reply_push(NULL, "x", 1), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the reply, or its text, is NULL");
    ck_assert_int_eq(akunu_reply_push(reply, NULL, 0), AKUNU_OK);
    ck_assert_ptr_nonnull(strstr(message_of(reply, "abc"), "\"content\": \"abc\""));
    ck_assert_int_eq(akunu_reply_end(NULL), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "the reply is NULL");
    forget();
    ck_assert_ptr_null(akunu_reply_message(NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "the reply is NULL");
    ck_assert_str_eq(akunu_reply_notes(NULL), "");
    ck_assert_str_eq(akunu_reply_format(NULL), "");
    akunu_reply_free(reply);
    akunu_reply_free(NULL);
}
END_TEST

/* The grammar of a reply: free with "auto", a call with "required"; one call or several. */
START_TEST(grammars_of_tools)
{
    struct akunu_reply_params params;
    struct akunu_tool_grammar_params calls;
    struct akunu_grammar *g = (struct akunu_grammar *)&params;
    int n_lines = 0;
    akunu_reply_params_default(&params, sizeof params);
    akunu_tool_grammar_params_default(&calls, sizeof calls);
    ck_assert(calls.size == sizeof calls && calls.parallel && !calls.lax && !calls.choice);
    params.format = "hermes";
    ck_assert_int_eq(akunu_grammar_from_tools(&params, NULL, &g), AKUNU_OK);
    ck_assert_ptr_null(g); /* no tools */
    params.tools = TOOLS;
    ck_assert_int_eq(akunu_grammar_from_tools(&params, NULL, &g), AKUNU_OK);
    ck_assert(g && is_allowed(g, NULL, "any", 3) && is_allowed(g, NULL, HERMES, strlen(HERMES)));
    akunu_grammar_free(g);
    calls.choice = "required";
    ck_assert_int_eq(akunu_grammar_from_tools(&params, &calls, &g), AKUNU_OK);
    ck_assert(!is_allowed(g, NULL, "any", 0) && is_allowed(g, NULL, HERMES, strlen(HERMES)));
    ck_assert(is_allowed(g, NULL, HERMES "\n" HERMES, 2 * strlen(HERMES) + 1));
    akunu_grammar_free(g);
    calls.parallel = false;
    ck_assert_int_eq(akunu_grammar_from_tools(&params, &calls, &g), AKUNU_OK);
    ck_assert(!is_allowed(g, NULL, HERMES "\n" HERMES, strlen(HERMES)));
    akunu_grammar_free(g);
    calls.choice = "g";
    g = (struct akunu_grammar *)&params;
    ck_assert_int_eq(akunu_grammar_from_tools(&params, &calls, &g), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "g");
    ck_assert_ptr_null(g);
    calls.choice = NULL;
    params.tools = "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": "
                   "{\"type\": \"object\", \"not\": {\"format\": \"date\"}}}}]";
    calls.log = count_lines;
    calls.user = &n_lines;
    ck_assert_int_eq(akunu_grammar_from_tools(&params, &calls, &g), AKUNU_ERROR_UNSUPPORTED);
    failed_with(AKUNU_ERROR_UNSUPPORTED, "not");
    calls.lax = true;
    ck_assert_int_eq(akunu_grammar_from_tools(&params, &calls, &g), AKUNU_OK);
    ck_assert_int_eq(n_lines, 1);
    akunu_grammar_free(g);

    /* reasoning that the prompt has begun, or that the template has */
    calls.choice = "required";
    params.tools = TOOLS;
    params.prompt = "<think>\n";
    ck_assert_int_eq(akunu_grammar_from_tools(&params, &calls, &g), AKUNU_OK);
    ck_assert(is_allowed(g, NULL, "r</think>" HERMES, 9 + strlen(HERMES)));
    akunu_grammar_free(g);
    params.prompt = NULL;
    params.chat_template = "<think></think>";
    ck_assert_int_eq(akunu_grammar_from_tools(&params, &calls, &g), AKUNU_OK);
    ck_assert(is_allowed(g, NULL, "<think>r</think>" HERMES, 16 + strlen(HERMES)));
    akunu_grammar_free(g);
    params.chat_template = NULL;
    ck_assert_int_eq(akunu_grammar_from_tools(&params, &calls, &g), AKUNU_OK);
    ck_assert(!is_allowed(g, NULL, "<think>r</think>" HERMES, 2));
    akunu_grammar_free(g);
    ck_assert_int_eq(akunu_grammar_from_tools(NULL, NULL, &g), AKUNU_OK);
    ck_assert_ptr_null(g);                                    /* no tools, again */
    params.size = offsetof(struct akunu_reply_params, tools); /* an older program's */
    ck_assert_int_eq(akunu_grammar_from_tools(&params, &calls, &g), AKUNU_OK);
    ck_assert_ptr_null(g);
    params.size = sizeof params;
    ck_assert_int_eq(akunu_grammar_from_tools(&params, &calls, NULL), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "where the grammar goes");
    calls.size = 8;
    ck_assert_int_eq(akunu_grammar_from_tools(&params, &calls, &g), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_tool_grammar_params");
    params.size = 8;
    ck_assert_int_eq(akunu_grammar_from_tools(&params, NULL, &g), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_reply_params");
    akunu_reply_params_default(&params, sizeof params);
    params.format = "morse";
    ck_assert_int_eq(akunu_grammar_from_tools(&params, NULL, &g), AKUNU_ERROR_ARGUMENT);
    failed_with(AKUNU_ERROR_ARGUMENT, "\"morse\"");
    akunu_grammar_free(NULL);
}
END_TEST

/* The tokenizer of a tokenizer.json. */
static struct akunu_tokenizer *load_json(const char *text)
{
    struct test_folder folder = test_folder_begin();
    struct test_st st = { 0 };
    test_st_add(&st, "x", "F32", "1", "\0\0\0\0", 4);
    test_st_write(&st, &folder, "model.safetensors", 0);
    test_write_text(&folder, "config.json", "{\"model_type\": \"llama\"}");
    test_write_text(&folder, "tokenizer.json", text);
    struct akunu_tokenizer *t = akunu_tokenizer_load(folder.path);
    ck_assert_msg(t != NULL, "%s", akunu_last_error());
    test_folder_end(&folder);
    return t;
}

/* A vocabulary of the characters of HERMES and its two control tokens. */
static struct akunu_tokenizer *load_hermes(void)
{
    static const char chars[] = "abcdefghijklmnopqrstuvwxyz01{}:,/<>";
    char text[2048];
    size_t at = (size_t)snprintf(
        text, sizeof text,
        "{\"added_tokens\": [{\"id\": 90, \"content\": \"<tool_call>\", \"special\": true}, "
        "{\"id\": 91, \"content\": \"</tool_call>\", \"special\": true}], \"pre_tokenizer\": "
        "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": true}, \"model\": "
        "{\"type\": \"BPE\", \"merges\": [], \"vocab\": {\"\u0120\": 0, \"\u010a\": 1, "
        "\"\\\"\": 2");
    for (size_t i = 0; chars[i]; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, ", \"%c\": %zu", chars[i], i + 3);
    snprintf(text + at, sizeof text - at, "}}}");
    return load_json(text);
}

/* A vocabulary in which every text is one unknown token. */
static struct akunu_tokenizer *load_unknown(void)
{
    return load_json("{\"added_tokens\": [], \"model\": {\"type\": \"BPE\", \"merges\": [], "
                     "\"unk_token\": \"?\", \"fuse_unk\": true, \"vocab\": {\"?\": 0}}}");
}

/* Without a template the vocabulary decides the format, and markers are its tokens. */
START_TEST(formats_of_vocabularies)
{
    static const char *const expected[] = { "generic", "hermes", "generic" };
    struct akunu_tokenizer *t = load_hermes(), *all[] = { load(), t, load_unknown() };
    struct akunu_reply_params params;
    struct akunu_tool_grammar_params calls;
    struct akunu_grammar *g;
    akunu_reply_params_default(&params, sizeof params);
    akunu_tool_grammar_params_default(&calls, sizeof calls);
    ck_assert_int_eq(akunu_tokenizer_encode(all[2], "[ARGS]", 6, AKUNU_PARSE_SPECIAL, NULL, 0), 1);
    for (int i = 0; i < 3; i++) {
        params.tokenizer = all[i];
        struct akunu_reply *reply = akunu_reply_new(&params, NULL, NULL);
        ck_assert_str_eq(akunu_reply_format(reply), expected[i]);
        akunu_reply_free(reply);
    }
    params.tokenizer = t;
    params.tools = TOOLS;
    calls.choice = "required";
    ck_assert_int_eq(akunu_grammar_from_tools(&params, &calls, &g), AKUNU_OK);
    ck_assert(is_allowed(g, t, HERMES, strlen(HERMES)));
    ck_assert(!is_allowed(g, t, "a", 0));
    akunu_grammar_free(g);
    for (int i = 0; i < 3; i++)
        akunu_tokenizer_free(all[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("text");
    TCase *t = tcase_create("text");
    suite_add_tcase(suite, t);
    tcase_add_test(t, tokenizers);
    tcase_add_test(t, tokenizers_refuse);
    tcase_add_test(t, infill_prompts);
    tcase_add_test(t, special_tokens);
    tcase_add_test(t, streams);
    tcase_add_test(t, schemas);
    tcase_add_test(t, checking);
    tcase_add_test(t, lazy);
    tcase_add_test(t, templates);
    tcase_add_test(t, template_of_a_model);
    tcase_add_test(t, replies);
    tcase_add_test(t, formats);
    tcase_add_test(t, replies_refuse);
    tcase_add_test(t, grammars_of_tools);
    tcase_add_test(t, formats_of_vocabularies);
    return test_run(suite);
}
