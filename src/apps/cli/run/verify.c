/* verify: makes the text of a receipt again, and compares. */
#include "apps/common/options.h"

#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/common/input.h"
#include "apps/common/json_text.h"
#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/common/output.h"
#include "apps/common/receipt.h"

/* ---- The text, made again ----------------------------------------------- */
struct replay {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const struct app_receipt *receipt;
    size_t n;         /* tokens that are the receipt's */
    akunu_token made; /* where they part; -1: nowhere */
    uint8_t chain[32];
    enum akunu_status status;
    bool has_ended;
    char message[512];
};

/* In the scheduler's thread. */
static bool on_event(const struct akunu_request_event *event, void *user)
{
    struct replay *r = user;
    bool same = true;
    if (event->kind == AKUNU_REQUEST_TOKEN && event->token >= 0) {
        same = r->n < r->receipt->n_tokens && r->receipt->tokens[r->n] == event->token;
        r->n += same;
        r->made = same ? -1 : event->token;
    } else if (event->kind == AKUNU_REQUEST_END) {
        pthread_mutex_lock(&r->lock);
        memcpy(r->chain, event->result->chain, sizeof r->chain);
        r->status = event->status;
        snprintf(r->message, sizeof r->message, "%s", event->message);
        r->has_ended = true;
        pthread_cond_signal(&r->changed);
        pthread_mutex_unlock(&r->lock);
    }
    return same;
}

static void wait_for_end(struct replay *r, struct akunu_scheduler *scheduler, uint64_t id)
{
    enum { LOOK_NS = 100000000 }; /* between looks at Ctrl-C */
    pthread_mutex_lock(&r->lock);
    while (!r->has_ended) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&r->changed, &r->lock, &until);
        if (app_is_interrupted() && !r->has_ended)
            akunu_scheduler_cancel(scheduler, id);
    }
    pthread_mutex_unlock(&r->lock);
}

static int replay_request(struct replay *r, struct akunu_scheduler *scheduler)
{
    struct akunu_request request;
    struct akunu_generation_params generation = r->receipt->generation;
    int64_t enough = (int64_t)r->receipt->n_tokens + 1;
    uint64_t id;
    if (generation.max_tokens < 0 || generation.max_tokens > enough)
        generation.max_tokens = enough;
    akunu_request_default(&request, sizeof request);
    request.ids = r->receipt->prompt;
    request.n_ids = r->receipt->n_prompt;
    request.generation = &generation;
    request.chain = true;
    request.on_event = on_event;
    request.user = r;
    if (akunu_scheduler_submit(scheduler, &request, &id) != AKUNU_OK)
        return app_fail("the receipt: %s", akunu_last_error());
    wait_for_end(r, scheduler, id);
    if (r->status == AKUNU_OK)
        return APP_EXIT_OK;
    return app_is_interrupted() ? APP_EXIT_INTERRUPTED : app_fail("%s", r->message);
}

/* A scheduler, whose texts are those of the server. */
static int replay(const struct app_options *o, const struct app_model_session *loaded,
                  struct replay *r)
{
    struct akunu_session_params session = o->session;
    struct akunu_scheduler_params params;
    akunu_scheduler_params_default(&params, sizeof params);
    params.no_prefix_cache = true;
    session.max_sequences = 1;
    session.context = (uint32_t)(r->receipt->n_prompt + r->receipt->n_tokens + 1);
    struct akunu_scheduler *scheduler = akunu_scheduler_new(loaded->model, &session, &params);
    if (!scheduler)
        return app_fail_library();
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    int code = replay_request(r, scheduler);
    akunu_scheduler_free(scheduler);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    return code;
}

/* ---- Grammar ------------------------------------------------------------ */
/* The grammar of a schema or of GBNF; NULL with *code APP_EXIT_OK: there is none. */
static struct akunu_grammar *read_plain(const struct app_constraint *c, int *code)
{
    struct akunu_grammar *grammar = NULL;
    char *schema = c->schema ? app_json_write(c->schema, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    *code = APP_EXIT_OK;
    if (c->grammar)
        grammar = akunu_grammar_parse(c->grammar, strlen(c->grammar));
    else if (schema)
        grammar = akunu_grammar_from_schema(schema, strlen(schema), NULL);
    if (!grammar && (c->grammar || c->schema))
        *code = app_fail("the receipt's grammar: %s", akunu_last_error());
    free(schema);
    return grammar;
}

static int read_grammar(const struct app_receipt *r, const struct app_model_session *loaded,
                        struct akunu_grammar **out)
{
    const struct app_constraint *c = &r->constraint;
    struct akunu_reply_params reply;
    struct akunu_tool_grammar_params calls;
    int code;
    struct akunu_grammar *content = read_plain(c, &code);
    *out = content;
    if (code != APP_EXIT_OK || !c->chat_template)
        return code;
    *out = NULL;
    akunu_reply_params_default(&reply, sizeof reply);
    reply.chat_template = c->chat_template;
    reply.tokenizer = loaded->tokenizer;
    reply.prompt = c->prompt;
    reply.tools = c->tools;
    reply.calls = c->tools != NULL;
    akunu_tool_grammar_params_default(&calls, sizeof calls);
    calls.choice = c->choice;
    calls.parallel = c->parallel;
    calls.content = content;
    if (akunu_grammar_from_tools(&reply, &calls, out) != AKUNU_OK)
        code = app_fail("the receipt's tools: %s", akunu_last_error());
    akunu_grammar_free(content);
    return code;
}

/* ---- What was found ----------------------------------------------------- */
/* A token and its text, as "345 (\" the\")". */
static const char *show_token(const struct app_model_session *loaded, akunu_token token,
                              char out[APP_SHOWN_BYTES * 2])
{
    char shown[APP_SHOWN_BYTES];
    size_t n;
    char *text =
        loaded->tokenizer ? app_token_bytes(loaded->tokenizer, token, AKUNU_CONTINUE, &n) : NULL;
    snprintf(out, APP_SHOWN_BYTES * 2, "%d (\"%s\")", (int)token,
             app_show_text(text ? text : "", shown));
    free(text);
    return out;
}

struct finding {
    const char *what; /* "model", "token", "chain"; NULL: all is the same */
    char text[512];
};

static void compare_receipt(const struct replay *r, const struct app_model_session *loaded,
                            struct finding *f)
{
    const struct app_receipt *receipt = r->receipt;
    char ours[APP_SHOWN_BYTES * 2], theirs[APP_SHOWN_BYTES * 2], hex[65];
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", r->chain[i]);
    bool more = r->n < receipt->n_tokens;
    f->what = more || r->made >= 0 ? "token" : strcmp(hex, receipt->chain) != 0 ? "chain" : NULL;
    if (more && r->made >= 0)
        snprintf(f->text, sizeof f->text, "token %zu of %zu is %s, and the model makes %s",
                 r->n + 1, receipt->n_tokens, show_token(loaded, receipt->tokens[r->n], theirs),
                 show_token(loaded, r->made, ours));
    else if (more)
        snprintf(f->text, sizeof f->text, "token %zu of %zu is %s, and the model ends the text",
                 r->n + 1, receipt->n_tokens, show_token(loaded, receipt->tokens[r->n], theirs));
    else if (r->made >= 0)
        snprintf(f->text, sizeof f->text, "it ends after %zu tokens, and the model goes on with %s",
                 receipt->n_tokens, show_token(loaded, r->made, ours));
    else if (f->what)
        snprintf(f->text, sizeof f->text,
                 "the %zu tokens are the same, and the chain is not: the logits were others",
                 receipt->n_tokens);
    else
        snprintf(f->text, sizeof f->text, "%zu tokens and their logits are the same",
                 receipt->n_tokens);
}

static int report_finding(const struct app_options *o, const struct replay *r,
                          const struct finding *f)
{
    struct app_output out = app_output_stdout();
    bool verified = f->what == NULL;
    if (o->output.json) {
        json_t *value = json_pack("{s:b, s:I}", "verified", (int)verified, "tokens",
                                  (json_int_t)r->receipt->n_tokens);
        if (!verified)
            json_object_set_new(value, "differs", json_string(f->what));
        if (!verified && strcmp(f->what, "token") == 0)
            json_object_set_new(value, "token", json_integer((json_int_t)r->n));
        app_json_print(&out, value);
        app_output_text(&out, "\n");
    } else {
        app_output_format(&out, "%s: %s\n", verified ? "verified" : "not verified", f->text);
    }
    return app_output_end(&out, verified ? APP_EXIT_OK : APP_EXIT_FAILURE);
}

/* ---- The command -------------------------------------------------------- */
static bool is_interrupted(void *user)
{
    (void)user;
    return app_is_interrupted();
}

static int check_model(const struct app_model_session *loaded, const struct app_receipt *receipt,
                       struct finding *f)
{
    char hex[65];
    if (akunu_path_sha256(loaded->path, is_interrupted, NULL, hex) != AKUNU_OK)
        return app_is_interrupted() ? APP_EXIT_INTERRUPTED : app_fail_library();
    if (strcmp(hex, receipt->sha256) != 0) {
        f->what = "model";
        snprintf(f->text, sizeof f->text,
                 "it is of another model: its SHA-256 is %s, and this model's is %s",
                 receipt->sha256, hex);
    }
    return APP_EXIT_OK;
}

static int check_ids(const struct app_receipt *receipt, const struct app_model_session *loaded)
{
    int64_t most = loaded->info.context;
    if (receipt->n_prompt == 0)
        return app_fail("the receipt's prompt has no tokens");
    if ((int64_t)(receipt->n_prompt + receipt->n_tokens) > most + 1)
        return app_fail("the receipt has %zu tokens with its prompt, and the model's context "
                        "holds %lld",
                        receipt->n_prompt + receipt->n_tokens, (long long)most);
    bool good = app_check_ids("prompt", receipt->prompt, receipt->n_prompt,
                              loaded->info.vocab_size) == APP_EXIT_OK &&
                app_check_ids("tokens", receipt->tokens, receipt->n_tokens,
                              loaded->info.vocab_size) == APP_EXIT_OK;
    return good ? APP_EXIT_OK : APP_EXIT_FAILURE;
}

static int verify(const struct app_options *o, struct app_receipt *receipt)
{
    struct app_model_session loaded = { .sequence = -1 };
    struct replay r = { .receipt = receipt, .made = -1 };
    struct akunu_grammar *grammar = NULL;
    struct finding f = { .what = NULL };
    if (receipt->version && strcmp(receipt->version, akunu_version()) != 0)
        app_warn("the receipt is of version %.32s, and this is %s", receipt->version,
                 akunu_version());
    int code = app_load_model(o, &loaded);
    if (code == APP_EXIT_OK)
        code = check_model(&loaded, receipt, &f);
    if (code == APP_EXIT_OK && !f.what)
        code = check_ids(receipt, &loaded);
    if (code == APP_EXIT_OK && !f.what)
        code = read_grammar(receipt, &loaded, &grammar);
    receipt->sampling.grammar = grammar;
    if (code == APP_EXIT_OK && !f.what) {
        code = replay(o, &loaded, &r);
        compare_receipt(&r, &loaded, &f);
    }
    if (code == APP_EXIT_OK)
        code = report_finding(o, &r, &f);
    akunu_grammar_free(grammar);
    app_unload(&loaded);
    return code;
}

static int read_json(const struct app_options *o, json_t **out)
{
    struct app_text text;
    json_error_t error;
    *out = NULL;
    if (!app_has_input(o))
        return app_fail_usage("the receipt is missing: a file, or - for standard input");
    int code = app_read_file("the receipt", o->prompt.file ? o->prompt.file : "-", &text);
    if (code != APP_EXIT_OK)
        return code;
    *out = app_json_read(text.bytes, text.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL,
                         APP_JSON_STRICT, &error);
    free(text.bytes);
    char shown[APP_SHOWN_BYTES];
    return *out ? APP_EXIT_OK :
                  app_fail("the receipt is no valid JSON: line %d, column %d: %s", error.line,
                           error.column, app_show_text(error.text, shown));
}

int cli_verify(const struct app_options *o)
{
    char why[APP_PROBLEM_BYTES];
    json_t *json;
    int code = read_json(o, &json);
    struct app_receipt *receipt = calloc(1, sizeof *receipt);
    if (code == APP_EXIT_OK && !receipt)
        code = app_fail_memory();
    if (code == APP_EXIT_OK && !app_receipt_read(json, receipt, why))
        code = *why ? app_fail("the receipt: %s", why) : app_fail_memory();
    if (code == APP_EXIT_OK)
        code = verify(o, receipt);
    if (receipt)
        app_receipt_free(receipt);
    free(receipt);
    json_decref(json);
    return code;
}
