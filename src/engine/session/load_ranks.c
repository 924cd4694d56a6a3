/* What ranks exchange while they load a model: what to load, and how it went. */
#include "engine/session/load_ranks.h"

#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "engine/backends/list.h"
#include "engine/session/follow.h"

ak_status ak_load_ranks_begin(const struct ak_model_source *source, struct ak_load_ranks *out,
                              struct ak_error *error)
{
    struct ak_ranks *ranks = ak_ranks_from_handle(source->params->comm);
    *out = (struct ak_load_ranks){ .comm = source->comm };
    if (!ranks || !source->path || source->sizes_only || ak_ranks_comm(ranks)->n_ranks == 1)
        return AKUNU_OK;
    struct ak_message m = { 0 };
    ak_ranks_lock(ranks);
    *out = (struct ak_load_ranks){ .comm = ak_ranks_comm(ranks),
                                   .ranks = ranks,
                                   .id = ak_ranks_next_id(ranks) };
    ak_follow_put_load(&m, out->id, source->path, source->params);
    return ak_ranks_send(ranks, &m, error);
}

void ak_load_ranks_end(const struct ak_load_ranks *r)
{
    if (r->ranks)
        ak_ranks_unlock(r->ranks);
}

struct ak_ranks_model ak_load_ranks_model(const struct ak_model *m, uint64_t id,
                                          struct ak_backend *backend)
{
    return (struct ak_ranks_model){ .id = id,
                                    .backend = backend,
                                    .tables = { &m->table, &m->sampled_table, &m->hidden_table,
                                                &m->encoder_table },
                                    .weights = &m->weights,
                                    .spec = &m->own };
}

ak_status ak_load_ranks_share_backend(const struct ak_load_ranks *r, enum akunu_split split,
                                      struct ak_model *m, struct ak_error *error)
{
    if (r->comm && m->backend->ops != ak_backend_list()[0])
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%u ranks are to share a model on the backend \"%s\"; they share models on "
                       "the CPU",
                       (unsigned)r->comm->n_ranks, m->backend->ops->name);
    if (!r->ranks)
        return AKUNU_OK;
    struct ak_ranks_model model = ak_load_ranks_model(m, r->id, m->backend);
    return ak_backend_open_ranks(r->ranks, &model, split, &m->backend, error);
}

ak_status ak_load_ranks_take_shard(const struct ak_load_ranks *r, enum akunu_split split,
                                   struct ak_model *m, struct ak_error *error)
{
    if (!r->comm)
        return AKUNU_OK;
    AK_TRY(ak_spec_take_shard(&m->spec, split, r->comm->n_ranks, r->comm->rank, &m->own, error));
    return ak_bind_take_shard(&m->binding, &m->own, error);
}

/* ---- Agreement ---------------------------------------------------------- */
static void hash_tensor(struct ak_sha256 *h, const struct ak_tensor *t)
{
    const char *type = ak_tensor_type_name(t);
    ak_sha256_add(h, t->name, strlen(t->name) + 1);
    ak_sha256_add(h, type, strlen(type) + 1);
    ak_sha256_add(h, t->shape, t->n_dims * sizeof *t->shape);
}

/* The importance that decides how weights are quantized at load. */
static ak_status add_importance(struct ak_sha256 *h, const char *path, struct ak_error *error)
{
    struct ak_file file;
    if (!path)
        return AKUNU_OK;
    AK_TRY(ak_file_open(path, &file, error));
    ak_sha256_add(h, file.data, (size_t)file.bytes);
    ak_file_close(&file);
    return AKUNU_OK;
}

/* What ranks of one model have in common: the version, names, types and shapes of tensors, the
 * values of the vectors that all of them read, and the importance of weights. */
static ak_status make_digest(const struct ak_model *m, const char *importance,
                             uint8_t digest[AK_SHA256_BYTES], struct ak_error *error)
{
    static const uint32_t version[] = { AKUNU_VERSION_MAJOR, AKUNU_VERSION_MINOR,
                                        AKUNU_VERSION_PATCH };
    struct ak_tensor t;
    struct ak_sha256 h;
    ak_sha256_begin(&h);
    ak_sha256_add(&h, version, sizeof version);
    AK_TRY(add_importance(&h, importance, error));
    for (size_t i = 0; ak_provider_tensor(m->provider, i, &t); i++)
        hash_tensor(&h, &t);
    for (uint32_t i = 0; i < m->weights.n_vectors; i++)
        if (ak_role_is_norm(m->weights.vectors[i].role))
            ak_sha256_add(&h, m->weights.vectors[i].data, m->weights.vectors[i].n * sizeof(float));
    ak_sha256_end(&h, digest);
    return AKUNU_OK;
}

/* Compares this rank's model with rank 0's. */
static ak_status compare_models(struct ak_comm *comm, const struct ak_model *m,
                                const char *importance, struct ak_error *error)
{
    uint8_t(*digests)[AK_SHA256_BYTES] = ak_alloc(comm->n_ranks, sizeof *digests);
    if (!digests)
        return ak_fail_memory(error, "the ranks' answers", comm->n_ranks * sizeof *digests);
    ak_status own = make_digest(m, importance, digests[comm->rank], error),
              status = ak_comm_all_gather_items(comm, digests, sizeof *digests, error);
    if (status == AKUNU_OK)
        status = own;
    if (status == AKUNU_OK && memcmp(digests[0], digests[comm->rank], sizeof *digests) != 0)
        status = ak_fail(error, AKUNU_ERROR_FORMAT,
                         "another file, or another version of akunu, than on rank 0");
    ak_free(digests);
    return status;
}

ak_status ak_load_ranks_agree(const struct ak_load_ranks *r, const struct ak_model_source *source,
                              const struct ak_model *m, ak_status status, struct ak_error *error)
{
    if (!r->comm)
        return status;
    AK_TRY(ak_ranks_agree(r->comm, status, error));
    status = compare_models(r->comm, m, source->params->importance, error);
    if (status != AKUNU_OK && r->comm->failure.status == AKUNU_OK)
        ak_error_prefix(error, source->path);
    return ak_ranks_agree(r->comm, status, error);
}
