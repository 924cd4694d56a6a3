#include "cli/speculation.h"

#include "cli/message.h"

int cli_read_speculation(const struct cli_options *o, const struct akunu_session *session,
                         struct cli_model_session *draft, struct akunu_generation *generation)
{
    *draft = (struct cli_model_session){ .sequence = -1 };
    generation->speculation = (enum akunu_speculation)o->spec_type;
    generation->draft_max = (uint32_t)o->draft_max;
    generation->draft_min = (uint32_t)o->draft_min;
    generation->draft_p_min = (float)o->draft_p_min;
    if (generation->speculation == AKUNU_SPECULATION_DRAFT && !o->draft_model)
        return cli_fail_usage("--spec-type draft-simple needs a draft model: -md FILE");
    if (!o->draft_model)
        return CLI_EXIT_OK;
    if (generation->speculation == AKUNU_SPECULATION_NONE ||
        generation->speculation == AKUNU_SPECULATION_NGRAM)
        return cli_fail_usage(
            "--model-draft %s: --spec-type says that no draft model is to be used", o->draft_model);
    struct cli_options of_draft = *o;
    of_draft.model = o->draft_model;
    of_draft.override_kv = (struct cli_texts){ 0 };
    int code = cli_load_model(&of_draft, draft);
    if (code == CLI_EXIT_OK)
        code =
            cli_open_session(&of_draft, draft, akunu_session_context(session), (uint32_t)o->batch);
    generation->draft = draft->session;
    generation->draft_sequence = draft->sequence;
    return code;
}
