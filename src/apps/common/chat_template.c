/* Selects the chat template: the model's, one from a file, one given as text, or a well-known one
 * by name. */
#include "apps/common/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/input.h"
#include "apps/common/message.h"

/* Well-known formats, for model files without a template. */
static const struct {
    const char *name, *text;
} known[] = {
    { "chatml", "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}<|im_end|>\n"
                "{% endfor %}"
                "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}" },
    { "gemma",
      "{{ bos_token }}{% set lead = '' %}{% if messages[0].role == 'system' %}{% set lead = "
      "messages[0].content + '\n\n' if messages[0].content else '' %}"
      "{% set messages = messages[1:] %}{% endif %}"
      "{% for m in messages %}<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n"
      "{{ lead if loop.first }}{{ (m.content or '') | trim }}<end_of_turn>\n{% endfor %}"
      "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}" },
    { "llama3", "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role "
                "}}<|end_header_id|>\n\n{{ (m.content or '') | trim }}<|eot_id|>"
                "{% endfor %}{% if add_generation_prompt "
                "%}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}" },
    { "phi3", "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content or '' }}<|end|>\n{% endfor %}"
              "{% if add_generation_prompt %}<|assistant|>\n{% endif %}" },
    { "zephyr",
      "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content or '' }}{{ eos_token }}\n{% endfor %}"
      "{% if add_generation_prompt %}<|assistant|>\n{% endif %}" },
};

static struct akunu_template *parse_template(const char *text, size_t n,
                                             const struct akunu_template *of_model, int *code)
{
    struct akunu_template *template = akunu_template_parse(text, n, of_model);
    if (!template)
        *code = app_fail_library();
    return template;
}

static struct akunu_template *parse_file(const char *path, const struct akunu_template *of_model,
                                         int *code)
{
    struct app_text text = { 0 };
    struct akunu_template *template = NULL;
    *code = app_read_file("--chat-template-file", path, &text);
    if (*code == APP_EXIT_OK)
        template = parse_template(text.bytes, text.n, of_model, code);
    free(text.bytes);
    return template;
}

/* Finds a template by name: one of the model's own, or a well-known one. */
static struct akunu_template *find_named(const char *name, const struct akunu_template *of_model,
                                         int *code)
{
    char names[256] = "";
    size_t n = 0, n_names = 0;
    const char *text = akunu_template_text(of_model, name, false, &n);
    for (size_t i = 0; !text && i < sizeof known / sizeof *known; i++) {
        n_names += (size_t)snprintf(names + n_names, sizeof names - n_names, "%s%s", i ? ", " : "",
                                    known[i].name);
        if (strcmp(known[i].name, name) == 0) {
            text = known[i].text;
            n = strlen(text);
        }
    }
    if (text)
        return parse_template(text, n, of_model, code);
    *code =
        app_fail_usage("--chat-template %s: no template of that name; there are %s, and what the "
                       "model has; a template itself has braces",
                       name, names);
    return NULL;
}

static struct akunu_template *choose_template(const struct app_options *o,
                                              struct akunu_template *of_model, int *code)
{
    struct akunu_template *chosen = NULL;
    if (!o->chat.template && !o->chat.template_file) {
        if (akunu_template_is_fallback(of_model))
            app_aside(
                "the model has no chat template: ChatML is used (--chat-template takes another)");
        return of_model;
    }
    if (o->chat.template_file)
        chosen = parse_file(o->chat.template_file, of_model, code);
    else if (strchr(o->chat.template, '{'))
        chosen = parse_template(o->chat.template, strlen(o->chat.template), of_model, code);
    else
        chosen = find_named(o->chat.template, of_model, code);
    akunu_template_free(of_model);
    return chosen;
}

struct akunu_template *app_chat_template(const struct app_options *o,
                                         const struct app_model_session *loaded, int *code)
{
    struct akunu_template *of_model = akunu_model_template(loaded->model);
    *code = of_model ? APP_EXIT_OK : app_fail_library();
    struct akunu_template *chosen = of_model ? choose_template(o, of_model, code) : NULL;
    if (chosen)
        app_check_reasoning(o, chosen);
    return chosen;
}
