/* The output matrix: a tensor of its own, or the token embedding.
 *
 * A checkpoint with tie_word_embeddings in its config.json may store both, and fine-tunes that
 * trained both do. The stored matrix counts, as in transformers: it is never wrong, because a copy
 * of the embedding gives the same logits. It costs nothing either, since of the embedding only the
 * rows of the tokens are read. So loading compares nothing; convert, which reads every byte anyway,
 * drops a matrix that is the embedding. */
#include <string.h>

#include "engine/pack/bind.h"
#include "engine/spec/arch.h"
#include "files/weights/composed.h"

/* Whether two views have the same numbers by having the same bytes. Stops at the first difference:
 * two trained matrices differ in their first row. */
static bool has_same_bytes(const struct ak_view *a, const struct ak_view *b)
{
    const struct ak_composed_tensor *x = a->composed_tensor, *y = b->composed_tensor;
    if (a->type != b->type || a->rows != b->rows || a->cols != b->cols || !x != !y ||
        (x && (strcmp(x->name, y->name) != 0 || x->order || y->order)))
        return false;
    for (int i = 0; i < AK_VIEW_PLANES_MAX; i++)
        if (a->plane[i].bytes != b->plane[i].bytes ||
            (a->plane[i].bytes > 0 &&
             memcmp(a->plane[i].data, b->plane[i].data, (size_t)a->plane[i].bytes) != 0))
            return false;
    return true;
}

/* Whether the output matrix is a stored copy of the embedding that the config declares tied. */
static bool is_copy(const struct ak_provider *p, const struct ak_binding *b,
                    const struct ak_view *output)
{
    struct ak_view embedding;
    return b->shapes_only && b->spec->config.tied &&
           ak_arch_find_weight(b->spec->arch, p, AK_ROLE_TOKEN_EMBEDDING, AK_ROLE_NO_LAYER,
                               &embedding) &&
           has_same_bytes(&embedding, output);
}

ak_status ak_bind_output(const struct ak_provider *p, bool found, struct ak_binding *b,
                         struct ak_view *view, struct ak_error *error)
{
    if (found && !is_copy(p, b, view))
        return AKUNU_OK;
    *view = (struct ak_view){ 0 };
    b->tied = true;
    if (found || b->spec->config.naming != AK_PROVIDER_NAMING_HF || b->spec->config.tied)
        return AKUNU_OK;
    b->lacks_output = !ak_spec_has_output_matrix(p);
    return b->lacks_output ?
               AKUNU_OK :
               ak_fail(error, AKUNU_ERROR_FORMAT,
                       "lm_head.weight is missing, and tie_word_embeddings in config.json is "
                       "false: the model has no output matrix; set tie_word_embeddings to true if "
                       "the embedding serves as one");
}
