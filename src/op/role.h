/* What a tensor is for. A role and a layer name one tensor of a model. */
#ifndef AK_OP_ROLE_H
#define AK_OP_ROLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ak_role {
#define AK_ROLE(symbol, canonical, kind) AK_ROLE_##symbol,
#include "op/role.def"
#undef AK_ROLE
    AK_ROLE_COUNT
};

enum ak_role_kind {
    AK_ROLE_KIND_MATRIX,
    AK_ROLE_KIND_EXPERTS,
    AK_ROLE_KIND_VECTOR,
    AK_ROLE_KIND_EXPERT_VECTORS
};

/* The layer of a tensor that belongs to none. */
enum { AK_ROLE_NO_LAYER = -1, AK_ROLE_NAME_BYTES = 96 };

enum ak_role_kind ak_role_kind(enum ak_role role);
bool ak_role_is_expert(enum ak_role role);

/* Whether the role's name has a layer in it. */
bool ak_role_has_layer(enum ak_role role);

/* Whether the role is the weight of a norm. */
bool ak_role_is_norm(enum ak_role role);

/* Writes the canonical name ("layers.3.ffn.up.weight") into `out`, which is
 * AK_ROLE_NAME_BYTES long, and returns it. */
const char *ak_role_name(enum ak_role role, int layer, char *out);

/* Expands "{n}" in `pattern` to `layer`; the same contract. */
const char *ak_role_expand(const char *pattern, int layer, char *out);

/* Whether `pattern` has "{e}" in it, and its expansion to `expert`; the same contract. */
bool ak_role_has_expert(const char *pattern);
const char *ak_role_expand_expert(const char *pattern, uint32_t expert, char *out);

/* Matches `name` against `pattern`, whose "{n}" and "{e}" take a decimal number without
 * leading zeros and below 2^31: true gives the layer, AK_ROLE_NO_LAYER without {n}. */
bool ak_role_match(const char *pattern, const char *name, int *layer);

#endif
