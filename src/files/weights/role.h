/* Roles: what a tensor is for. A role and a layer identify one tensor of a model, whatever its name
 * in the file. files/weights/ finds tensors by role, engine/spec/ declares the roles of an
 * architecture, and engine/pack/, engine/dispatch/ and conversion/convert/ look up weights by role.
 * api/ shows the names of roles; engine/backends/, opencl/ and bench/ use only AK_ROLE_NO_LAYER. */
#ifndef AK_FILES_WEIGHTS_ROLE_H
#define AK_FILES_WEIGHTS_ROLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ak_role {
#define AK_ROLE(symbol, canonical, kind) AK_ROLE_##symbol,
#include "files/weights/role.def"
#undef AK_ROLE
    AK_ROLE_COUNT
};

enum ak_role_kind {
    AK_ROLE_KIND_MATRIX,
    AK_ROLE_KIND_EXPERTS,
    AK_ROLE_KIND_VECTOR,
    AK_ROLE_KIND_EXPERT_VECTORS
};

/* AK_ROLE_NO_LAYER: layer of tensors outside of layers. */
enum { AK_ROLE_NO_LAYER = -1, AK_ROLE_NAME_BYTES = 96 };

enum ak_role_kind ak_role_kind(enum ak_role role);
bool ak_role_is_expert(enum ak_role role);
/* Whether the role is a vector, or one vector per expert. */
bool ak_role_is_vector(enum ak_role role);

/* Whether the role's name contains "{n}". */
bool ak_role_has_layer(enum ak_role role);

/* Whether the role belongs to the encoder of a model that also has a decoder; its layers are then
 * the encoder's. */
bool ak_role_is_encoder(enum ak_role role);

/* Whether the role is the weight of a norm. */
bool ak_role_is_norm(enum ak_role role);

/* Writes the canonical name ("layers.3.ffn.up.weight") into out[AK_ROLE_NAME_BYTES] and returns
 * it. */
const char *ak_role_name(enum ak_role role, int layer, char *out);

/* The same for `pattern`, with "{n}" replaced by `layer`. */
const char *ak_role_expand(const char *pattern, int layer, char *out);

/* Whether `pattern` contains "{e}"; the same for `pattern`, with "{e}" replaced by `expert`. */
bool ak_role_has_expert(const char *pattern);
const char *ak_role_expand_expert(const char *pattern, uint32_t expert, char *out);

/* Matches `name` against `pattern`. "{n}" and "{e}" match a decimal number below 2^31 without
 * leading zeros. If true, *layer is the number of "{n}", or AK_ROLE_NO_LAYER without one. */
bool ak_role_match(const char *pattern, const char *name, int *layer);

#endif
