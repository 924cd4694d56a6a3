/* Names of roles: expansion and matching of patterns with "{n}" (layer) and "{e}" (expert). */
#include "files/weights/role.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct role {
    const char *canonical;
    enum ak_role_kind kind;
};

static const struct role roles[AK_ROLE_COUNT] = {
#define AK_ROLE(symbol, canonical, kind) [AK_ROLE_##symbol] = { canonical, AK_ROLE_KIND_##kind },
#include "files/weights/role.def"
#undef AK_ROLE
};

static const char layer_mark[] = "{n}", expert_mark[] = "{e}";

enum ak_role_kind ak_role_kind(enum ak_role role)
{
    assert((unsigned)role < AK_ROLE_COUNT);
    return roles[role].kind;
}

bool ak_role_is_expert(enum ak_role role)
{
    return ak_role_kind(role) == AK_ROLE_KIND_EXPERTS ||
           ak_role_kind(role) == AK_ROLE_KIND_EXPERT_VECTORS;
}

bool ak_role_is_vector(enum ak_role role)
{
    return ak_role_kind(role) == AK_ROLE_KIND_VECTOR ||
           ak_role_kind(role) == AK_ROLE_KIND_EXPERT_VECTORS;
}

bool ak_role_has_layer(enum ak_role role)
{
    assert((unsigned)role < AK_ROLE_COUNT);
    return strstr(roles[role].canonical, layer_mark) != NULL;
}

bool ak_role_is_encoder(enum ak_role role)
{
    static const char beginning[] = "encoder.";
    assert((unsigned)role < AK_ROLE_COUNT);
    return strncmp(roles[role].canonical, beginning, strlen(beginning)) == 0;
}

bool ak_role_is_norm(enum ak_role role)
{
    static const char ending[] = "norm.weight";
    assert((unsigned)role < AK_ROLE_COUNT);
    size_t n = strlen(roles[role].canonical), m = strlen(ending);
    return n >= m && strcmp(roles[role].canonical + n - m, ending) == 0;
}

const char *ak_role_name(enum ak_role role, int layer, char *out)
{
    assert((unsigned)role < AK_ROLE_COUNT);
    return ak_role_expand(roles[role].canonical, layer, out);
}

static const char *expand(const char *pattern, const char *mark, int number, char *out)
{
    const char *at = strstr(pattern, mark);
    if (at)
        snprintf(out, AK_ROLE_NAME_BYTES, "%.*s%d%s", (int)(at - pattern), pattern, number,
                 at + strlen(mark));
    else
        snprintf(out, AK_ROLE_NAME_BYTES, "%s", pattern);
    return out;
}

const char *ak_role_expand(const char *pattern, int layer, char *out)
{
    return expand(pattern, layer_mark, layer, out);
}

bool ak_role_has_expert(const char *pattern)
{
    return strstr(pattern, expert_mark) != NULL;
}

const char *ak_role_expand_expert(const char *pattern, uint32_t expert, char *out)
{
    return expand(pattern, expert_mark, (int)expert, out);
}

/* Reads a number; returns the position after it, or NULL if there is none. */
static const char *read_layer(const char *digits, int *number)
{
    const char *next = digits;
    int64_t value = 0;
    for (; *next >= '0' && *next <= '9'; next++) {
        value = value * 10 + (*next - '0');
        if (value > INT32_MAX)
            return NULL;
    }
    if (next == digits || (*digits == '0' && next - digits > 1))
        return NULL;
    *number = (int)value;
    return next;
}

bool ak_role_match(const char *pattern, const char *name, int *layer)
{
    int found = AK_ROLE_NO_LAYER, expert;
    while (*pattern) {
        bool of_layer = strncmp(pattern, layer_mark, strlen(layer_mark)) == 0;
        if (of_layer || strncmp(pattern, expert_mark, strlen(expert_mark)) == 0) {
            name = read_layer(name, of_layer ? &found : &expert);
            if (!name)
                return false;
            pattern += strlen(of_layer ? layer_mark : expert_mark);
        } else if (*pattern++ != *name++) {
            return false;
        }
    }
    if (*name != '\0')
        return false;
    *layer = found;
    return true;
}
