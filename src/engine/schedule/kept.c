/* Texts of the prefix cache on disk, for the time after a restart. They are the files of the prompt
 * cache, and akunu-cli reads them too. */
#include "engine/schedule/internal.h"

#include "base/mem.h"
#include "engine/persist/save.h"

static ak_status copy_path(const char *path, char **copy, struct ak_error *error)
{
    if (path && !(*copy = ak_strndup(path, strlen(path))))
        return ak_fail_memory(error, "a path", 0);
    return AKUNU_OK;
}

ak_status ak_sched_open_prompts(struct ak_sched *s, const struct akunu_prompt_cache *prompts,
                                struct ak_error *error)
{
    if (!prompts)
        return AKUNU_OK;
    AK_TRY(ak_save_check(s->session, error));
    AK_TRY(copy_path(prompts->dir, &s->prompt_dir, error));
    AK_TRY(copy_path(prompts->file, &s->prompt_file, error));
    s->prompts = *prompts;
    s->prompts.dir = s->prompt_dir;
    s->prompts.file = s->prompt_file;
    s->has_prompts = true;
    return AKUNU_OK;
}

void ak_sched_close_prompts(struct ak_sched *s)
{
    ak_free(s->prompt_dir);
    ak_free(s->prompt_file);
}

void ak_sched_restore_prefix(struct ak_sched *s, struct ak_sched_task *t)
{
    struct ak_session_kv *kv = &s->session->kv;
    uint32_t length = ak_sched_sequence(s, t)->length, n_min = length + s->prompts.min_tokens;
    size_t n_restored = 0;
    if (!s->has_prompts || !s->has_tree || t->was_looked_up || t->n_ids < n_min ||
        ak_sched_reports_prompt(t))
        return;
    t->was_looked_up = true;
    ak_session_kv_rewind(kv, t->sequence, 0);
    (void)ak_sched_make_free(s, ak_session_kv_count_new_pages(kv, t->sequence, t->n_ids));
    ak_prompt_cache_restore(s->session, t->sequence, t->ids, t->n_ids, n_min, &s->prompts,
                            &n_restored, NULL);
    t->result.n_kept = n_restored;
    if (n_restored > 0)
        ak_sched_tree_add(&s->tree, t->sequence, true);
    else
        ak_sched_share_prefix(s, t);
}

bool ak_sched_keep_text(struct ak_sched *s)
{
    if (!s->has_prompts || !s->has_tree)
        return false;
    int32_t sequence = ak_session_kv_sequence_new(&s->session->kv);
    if (sequence < 0)
        return false;
    bool given = ak_sched_tree_give(&s->tree, sequence, s->prompts.min_tokens);
    if (given)
        ak_prompt_cache_keep(s->session, sequence,
                             ak_session_kv_sequence(&s->session->kv, sequence)->length, &s->prompts,
                             NULL);
    ak_session_kv_sequence_free(&s->session->kv, sequence);
    return given;
}
