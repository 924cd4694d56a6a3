/* The model of a chat: loading it with its template, and going on with another one. */
#include "apps/cli/chat/chat.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/configuration.h"
#include "apps/common/message.h"
#include "apps/common/prompt.h"

int cli_chat_open_model(const struct cli_chat *chat, const struct app_options *o,
                        struct app_model_session *loaded, struct akunu_template **template)
{
    *template = NULL;
    int code = app_load_model(o, loaded);
    if (code == APP_EXIT_OK)
        code = app_need_tokenizer(loaded, "run");
    if (code == APP_EXIT_OK)
        *template = app_chat_template(o, loaded, &code);
    if (code == APP_EXIT_OK)
        code = app_check_bias(&chat->sampling, loaded->model);
    if (code == APP_EXIT_OK)
        code = app_open_session(o, loaded, 0);
    return code;
}

const char *cli_chat_model_name(const struct cli_chat *chat)
{
    const char *path = chat->loaded->path, *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* ---- Another model ------------------------------------------------------ */
static void list_one(const char *name, void *user)
{
    (void)user;
    app_report("  %s", name);
}

static int list_models(const struct cli_chat *chat)
{
    char *folder = app_models_folder();
    if (!folder)
        return app_fail_memory();
    app_report("%s; /model NAME goes on with another one, a file or one of %s:",
               cli_chat_model_name(chat), folder);
    free(folder);
    return app_visit_models(list_one, NULL);
}

/* The flags for another model. What the flags say of the first model's file does not hold for it:
 * its metadata and its template. */
static int read_model_name(const struct cli_chat *chat, const char *name, struct app_options *o)
{
    char *path = cli_chat_path(name);
    const char *kept = path ? app_config_keep(o->configuration, path, strlen(path)) : NULL;
    *o = *chat->options;
    free(path);
    if (!kept)
        return app_fail_memory();
    o->model.name = kept;
    if (app_config_has_preset(o->configuration, kept)) {
        o->model.name = app_config_model(o->configuration, kept);
        app_aside("of the preset %s, only the model is taken", kept);
    }
    o->model.override_kv = o->model.ignore_keys = (struct app_texts){ 0 };
    o->chat.template = o->chat.template_file = NULL;
    return APP_EXIT_OK;
}

/* Checks that the template takes the conversation. */
static int check_conversation(const struct cli_chat *chat, const struct app_options *o,
                              const struct akunu_template *template)
{
    size_t n = 0;
    if (json_array_size(chat->messages) == (cli_chat_system(chat) != NULL))
        return APP_EXIT_OK; /* nothing was said yet */
    char *prompt = app_render_prompt(o, template, chat->messages, &n);
    akunu_text_free(prompt);
    return prompt ? APP_EXIT_OK : APP_EXIT_FAILURE;
}

/* A draft model needs the vocabulary of the first model. */
static void drop_draft(struct cli_chat *chat)
{
    if (!chat->draft.session)
        return;
    chat->generation.draft = NULL;
    if (chat->generation.speculation == AKUNU_SPECULATION_DRAFT)
        chat->generation.speculation = AKUNU_SPECULATION_AUTO;
    app_unload(&chat->draft);
    app_aside("the draft model is for the first model and is not used any more");
}

static void use(struct cli_chat *chat, struct app_model_session *next,
                struct akunu_template *template)
{
    drop_draft(chat);
    akunu_template_free(chat->template);
    app_unload(chat->loaded);
    chat->template = template;
    chat->loaded = next;
    chat->n_context_ids = 0;
    chat->n_turns = chat->n_prompt = chat->n_reused = chat->n_generated = 0;
    chat->prompt_seconds = chat->generate_seconds = 0.0;
    app_aside("%s, %u tokens of context", cli_chat_model_name(chat),
              akunu_session_context(next->session));
}

int cli_chat_change_model(struct cli_chat *chat, const char *name)
{
    struct app_model_session *next = &chat->models[chat->loaded == &chat->models[0]];
    struct akunu_template *template = NULL;
    struct app_options changed = *chat->options;
    if (!*name)
        return list_models(chat);
    int code = read_model_name(chat, name, &changed);
    if (code == APP_EXIT_OK)
        code = cli_chat_open_model(chat, &changed, next, &template);
    if (code == APP_EXIT_OK)
        code = check_conversation(chat, &changed, template);
    if (code == APP_EXIT_OK) {
        use(chat, next, template);
        *chat->options = changed;
        return code;
    }
    akunu_template_free(template);
    app_unload(next);
    app_interrupt_clear();
    app_aside("%s stays", cli_chat_model_name(chat));
    /* too little memory for the other model is no reason to leave */
    return code == APP_EXIT_MEMORY && cli_line_is_typed(chat->editor) ? APP_EXIT_FAILURE : code;
}
