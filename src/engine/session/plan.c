/* What a session would take: its KV cache, and the memory of its passes. */
#include "base/math.h"
#include "engine/session/session.h"

/* The tables of a session that generates one text, prepared and released again. */
static ak_status count_scratch(struct ak_model *m, struct ak_backend_table_options *options,
                               uint64_t *out, struct ak_error *error)
{
    const struct ak_backend_ops *ops = m->backend->ops;
    const struct ak_table *tables[] = { &m->table, &m->sampled_table };
    *out = 0;
    if (ops->check_memory)
        return AKUNU_OK; /* a device's memory */
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct ak_backend_table *prepared;
        if (tables[i]->n_commands == 0)
            continue;
        AK_TRY(ops->prepare(m->backend, tables[i], &m->weights, ak_model_own_spec(m), options, NULL,
                            &prepared, error));
        *out += ops->memory_bytes(prepared);
        ops->release(prepared);
        options->max_tokens = (uint32_t)ak_min_size(options->max_tokens, AK_SKINNY_MAX);
    }
    return AKUNU_OK;
}

uint32_t ak_session_choose_batch(const struct ak_model *m, uint32_t asked)
{
    enum { LAYERS_BATCH = 64 }; /* bench/notes/ranks.md, "One model over several processes" */
    if (asked > 0)
        return asked;
    return ak_spec_has_layers(ak_model_own_spec(m)) ? LAYERS_BATCH :
                                                      ak_backend_profile_prefill_chunk(&m->profile);
}

ak_status ak_session_plan(struct ak_model *m, const struct akunu_session_params *params,
                          struct ak_session_plan *out, struct ak_error *error)
{
    uint32_t n_sequences = params->max_sequences ? params->max_sequences : 1;
    struct ak_backend_table_options options = { .max_logits = 1 };
    *out =
        (struct ak_session_plan){ .context = params->context ? params->context :
                                                               ak_session_own_context(&m->spec) };
    AK_TRY(ak_session_check_kv_types(params, m->spec.config.head_dim, error));
    AK_TRY(ak_session_choose_threads(params->n_threads, &m->profile, &options.n_threads, error));
    options.kv = ak_model_kv_shape(m, params->k_type, params->v_type);
    options.kv.n_states = n_sequences;
    options.kv.n_pages = ak_session_kv_count_pages(out->context, n_sequences);
    out->kv_bytes = ak_kv_pool_bytes(&options.kv);
    if (out->kv_bytes == 0 || options.kv.n_pages == 0)
        return ak_fail_memory(error, "the KV cache", 0);
    uint32_t batch = ak_session_choose_batch(m, params->batch);
    options.context = out->context;
    options.max_tokens = (uint32_t)ak_min_size(batch, out->context);
    return count_scratch(m, &options, &out->scratch_bytes, error);
}
