#include "op/role.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct role {
    const char *canonical;
    enum ak_role_kind kind;
};

static const struct role roles[AK_ROLE_COUNT] = {
#define AK_ROLE(symbol, canonical, kind) [AK_ROLE_##symbol] = {canonical, AK_ROLE_KIND_##kind},
#include "op/role.def"
#undef AK_ROLE
};

static const char placeholder[] = "{n}";

enum ak_role_kind ak_role_kind(enum ak_role role)
{
    assert((unsigned)role < AK_ROLE_COUNT);
    return roles[role].kind;
}

bool ak_role_in_layer(enum ak_role role)
{
    assert((unsigned)role < AK_ROLE_COUNT);
    return strstr(roles[role].canonical, placeholder) != NULL;
}

const char *ak_role_name(enum ak_role role, int layer, char *out)
{
    assert((unsigned)role < AK_ROLE_COUNT);
    return ak_role_expand(roles[role].canonical, layer, out);
}

const char *ak_role_expand(const char *pattern, int layer, char *out)
{
    const char *at = strstr(pattern, placeholder);
    if (at)
        snprintf(out, AK_ROLE_NAME_BYTES, "%.*s%d%s", (int)(at - pattern), pattern, layer, at + strlen(placeholder));
    else
        snprintf(out, AK_ROLE_NAME_BYTES, "%s", pattern);
    return out;
}

/* Reads a number and passes it; NULL where there is none. */
static const char *read_layer(const char *digits, int *layer)
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
    *layer = (int)value;
    return next;
}

bool ak_role_match(const char *pattern, const char *name, int *layer)
{
    int found = AK_NO_LAYER;
    const char *at = strstr(pattern, placeholder);
    if (at) {
        size_t before = (size_t)(at - pattern);
        if (strncmp(pattern, name, before) != 0)
            return false;
        name = read_layer(name + before, &found);
        if (!name)
            return false;
        pattern = at + strlen(placeholder);
    }
    if (strcmp(pattern, name) != 0)
        return false;
    *layer = found;
    return true;
}
