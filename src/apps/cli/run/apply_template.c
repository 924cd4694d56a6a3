/* apply-template: renders a conversation as the prompt that a model expects. Only headers,
 * vocabulary and template are read. */
#include "apps/common/options.h"

#include <stdlib.h>

#include "akunu/akunu.h"
#include "apps/common/input.h"
#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/common/output.h"

/* A template that fails is bad input, not an unreadable model. */
static int template_failure(void)
{
    int code = app_fail_library();
    return akunu_last_status() == AKUNU_ERROR_ARGUMENT ? APP_EXIT_FAILURE : code;
}

static int load_model(const struct app_options *o, struct akunu_template **out)
{
    char *path;
    int code = app_model_path(o, o->model.name, &path);
    if (code != APP_EXIT_OK)
        return code;
    *out = akunu_template_load(path, o->model.override_kv.values);
    if (*out && akunu_template_is_fallback(*out) && !o->chat.template_file)
        app_warn("%s has no chat template: ChatML is used", path);
    free(path);
    return *out ? APP_EXIT_OK : app_fail_library();
}

/* Loads a template file. It replaces the model's templates; their special tokens stay. */
static int load_file(const struct app_options *o, struct akunu_template **chat)
{
    struct app_text text;
    int code = app_read_file("--chat-template-file", o->chat.template_file, &text);
    if (code != APP_EXIT_OK)
        return code;
    struct akunu_template *parsed = akunu_template_parse(text.bytes, text.n, *chat);
    free(text.bytes);
    akunu_template_free(*chat);
    *chat = parsed;
    return parsed ? APP_EXIT_OK : app_fail_library();
}

static int load_template(const struct app_options *o, struct akunu_template **chat)
{
    int code = o->chat.template_file && !o->model.name ? APP_EXIT_OK : load_model(o, chat);
    if (code == APP_EXIT_OK && o->chat.template_file)
        code = load_file(o, chat);
    return code;
}

static int read_optional(const char *path, const char *flag, struct app_text *out)
{
    *out = (struct app_text){ 0 };
    return path ? app_read_file(flag, path, out) : APP_EXIT_OK;
}

static int print_rendered(const struct app_options *o, const struct akunu_template *chat,
                          struct akunu_chat *input)
{
    struct app_output out = app_output_stdout();
    size_t n;
    input->name = o->chat.template;
    input->kwargs = o->chat.kwargs;
    input->bos_token = o->chat.bos_token;
    input->eos_token = o->chat.eos_token;
    input->continue_final_message = o->chat.continue_message;
    input->add_generation_prompt = !o->chat.no_generation_prompt && !o->chat.continue_message;
    char *prompt = akunu_template_render(chat, input, &n);
    if (!prompt)
        return template_failure();
    if (o->output.json) {
        app_json_print(&out, json_pack("{s:o}", "prompt", app_json_text(prompt, n)));
        app_output_text(&out, "\n");
    } else {
        app_output_bytes(&out, prompt, n);
    }
    akunu_text_free(prompt);
    return app_output_end(&out, APP_EXIT_OK);
}

int cli_apply_template(const struct app_options *o)
{
    struct akunu_template *chat = NULL;
    struct app_text messages, tools = { 0 }, documents = { 0 };
    struct akunu_chat input;
    if (!o->chat.messages)
        return app_fail_usage("the conversation is missing: give it with --messages FILE");
    int code = app_read_file("--messages", o->chat.messages, &messages);
    if (code == APP_EXIT_OK)
        code = read_optional(o->chat.tools, "--tools", &tools);
    if (code == APP_EXIT_OK)
        code = read_optional(o->chat.documents, "--documents", &documents);
    if (code == APP_EXIT_OK)
        code = load_template(o, &chat);
    akunu_chat_default(&input, sizeof input);
    input.messages = messages.bytes;
    input.tools = tools.bytes;
    input.documents = documents.bytes;
    if (code == APP_EXIT_OK)
        code = print_rendered(o, chat, &input);
    akunu_template_free(chat);
    free(messages.bytes);
    free(tools.bytes);
    free(documents.bytes);
    return code;
}
