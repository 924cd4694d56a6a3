/* akunu_get_load_plan: where a load would get the weights from, and what model and session take. */
#include <stdio.h>
#include <string.h>

#include "api/handles.h"
#include "engine/pack/cache.h"

const char *akunu_tier_name(enum akunu_tier tier)
{
    switch (tier) {
    case AKUNU_TIER_PACKED: return "packed cache";
    case AKUNU_TIER_COMPRESSED: return "compressed directory";
    case AKUNU_TIER_SOURCE: return "source";
    }
    return "unknown";
}

const char *akunu_packing_name(enum akunu_packing packing)
{
    switch (packing) {
    case AKUNU_PACKING_CACHED: return "cached";
    case AKUNU_PACKING_KEPT: return "kept";
    case AKUNU_PACKING_MEMORY: return "memory";
    case AKUNU_PACKING_NONE: return "none";
    }
    return "unknown";
}

static enum akunu_tier get_tier(const struct ak_model *m, enum akunu_packing packing)
{
    if (packing == AKUNU_PACKING_CACHED)
        return AKUNU_TIER_PACKED;
    return strcmp(m->provider->format->name, "npy-dir") == 0 ? AKUNU_TIER_COMPRESSED :
                                                               AKUNU_TIER_SOURCE;
}

void ak_api_fill_plan(struct ak_model *m, const struct ak_pack_cache_plan *cache,
                      const struct ak_session_plan *session, struct akunu_load_plan *out)
{
    *out = (struct akunu_load_plan){
        .format = m->provider->format->name,
        .tier = get_tier(m, cache->packing),
        .packing = cache->packing,
        .cache_state = cache->state,
        .built = cache->built,
        .used = cache->used,
        .cache_limit = cache->limit,
        .source_bytes = ak_provider_bytes(m->provider),
        .packed_bytes = m->weights.block_bytes,
        .token_weight_bytes = ak_api_all_token_bytes(m),
        .kv_bytes = session->kv_bytes,
        .scratch_bytes = session->scratch_bytes,
        .context = session->context,
    };
    for (uint32_t i = 0; i < m->weights.n_packed; i++)
        if (m->weights.packed[i].bytes == 0)
            out->in_place_bytes += ak_pack_read_bytes(&m->weights.packed[i]);
    snprintf(out->cache_file, sizeof out->cache_file, "%s", cache->file);
    snprintf(out->reason, sizeof out->reason, "%s", cache->why);
    snprintf(out->backend, sizeof out->backend, "%s", m->backend->ops->name);
}

static ak_status make_plan(const char *path, const struct akunu_load_params *given_load,
                           const struct akunu_session_params *given_session,
                           struct akunu_load_plan *out, struct ak_error *error)
{
    struct akunu_load_params params;
    struct akunu_session_params session;
    struct ak_session_plan sizes;
    struct ak_pack_cache_plan cache;
    struct ak_model *model;
    const struct ak_model_source source = { .path = path,
                                            .params = &params,
                                            .open_quantized = ak_api_open_quantized,
                                            .sizes_only = true,
                                            .cache_plan = &cache };
    akunu_load_params_default(&params, sizeof params);
    akunu_session_params_default(&session, sizeof session);
    if (!path)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no path is given");
    AK_TRY(ak_api_copy_in(&params, sizeof params, given_load, "akunu_load_params", error));
    AK_TRY(ak_api_copy_in(&session, sizeof session, given_session, "akunu_session_params", error));
    AK_TRY(ak_model_load(&source, &model, error));
    ak_status status = ak_session_plan(model, &session, &sizes, error);
    if (status == AKUNU_OK)
        ak_api_fill_plan(model, &cache, &sizes, out);
    ak_model_free(model);
    return status;
}

enum akunu_status akunu_get_load_plan(const char *path, const struct akunu_load_params *params,
                                      const struct akunu_session_params *session,
                                      struct akunu_load_plan *out, size_t size)
{
    struct ak_error error = { 0 };
    struct akunu_load_plan full;
    if (make_plan(path, params, session, &full, &error) == AKUNU_OK)
        ak_api_copy_out(out, size, &full, sizeof full, "akunu_load_plan", &error);
    return ak_api_finish(&error);
}
