#include <string.h>

#include "template/jinja/string.h"

enum { SMALL = 8 }; /* pairs that are looked through one by one */

struct ak_jdict *ak_j_dict(struct ak_jenv *j)
{
    return ak_j_alloc(j, 1, sizeof(struct ak_jdict));
}

static uint64_t hash_of(struct ak_jenv *j, struct ak_jval key)
{
    uint64_t hash;
    if (!ak_j_hash(j, key, &hash))
        ak_j_fail(j, "unhashable type: '%s'", ak_j_type_name(key));
    return hash;
}

static size_t find_small(struct ak_jenv *j, const struct ak_jdict *dict, struct ak_jval key,
                         uint64_t hash)
{
    for (size_t i = 0; i < dict->n; i++)
        if (dict->pairs[i].hash == hash && ak_j_is_equal(j, dict->pairs[i].key, key))
            return i;
    return SIZE_MAX;
}

/* The slot of a key, or the free one where it would go. */
static uint32_t *slot_of(struct ak_jenv *j, const struct ak_jdict *dict, struct ak_jval key,
                         uint64_t hash)
{
    for (size_t at = hash;; at++) {
        uint32_t *slot = &dict->slots[at & (dict->n_slots - 1)];
        ak_j_spend(j, at != hash);
        if (*slot == 0 || (dict->pairs[*slot - 1].hash == hash &&
                           ak_j_is_equal(j, dict->pairs[*slot - 1].key, key)))
            return slot;
    }
}

static size_t find(struct ak_jenv *j, const struct ak_jdict *dict, struct ak_jval key,
                   uint64_t hash)
{
    return dict->slots ? (size_t)*slot_of(j, dict, key, hash) - 1 : find_small(j, dict, key, hash);
}

static void fill_slots(struct ak_jenv *j, struct ak_jdict *dict)
{
    dict->n_slots = dict->capacity * 2;
    dict->slots = ak_j_alloc(j, dict->n_slots, sizeof *dict->slots);
    for (size_t i = 0; i < dict->n; i++)
        *slot_of(j, dict, dict->pairs[i].key, dict->pairs[i].hash) = (uint32_t)(i + 1);
}

static void grow_pairs(struct ak_jenv *j, struct ak_jdict *dict)
{
    if (dict->n < dict->capacity)
        return;
    size_t capacity = dict->capacity ? 2 * dict->capacity : 4;
    if (capacity > UINT32_MAX / 4)
        ak_j_fail_as(j, AKUNU_ERROR_UNSUPPORTED, "a dict of more than %u keys", UINT32_MAX / 8);
    dict->pairs = ak_j_grow(j, dict->pairs, dict->n, capacity, sizeof *dict->pairs);
    dict->capacity = capacity;
    if (capacity > SMALL)
        fill_slots(j, dict);
}

void ak_j_put(struct ak_jenv *j, struct ak_jdict *dict, struct ak_jval key, struct ak_jval value)
{
    uint64_t hash = hash_of(j, key);
    size_t i = find(j, dict, key, hash);
    if (i != SIZE_MAX) {
        dict->pairs[i].value = value;
        return;
    }
    grow_pairs(j, dict);
    dict->pairs[dict->n] = (struct ak_jpair){ key, value, hash };
    dict->n++;
    if (dict->slots)
        *slot_of(j, dict, key, hash) = (uint32_t)dict->n;
}

const struct ak_jval *ak_j_get(struct ak_jenv *j, const struct ak_jdict *dict, struct ak_jval key)
{
    size_t i = find(j, dict, key, hash_of(j, key));
    return i == SIZE_MAX ? NULL : &dict->pairs[i].value;
}

const struct ak_jval *ak_j_get_named(struct ak_jenv *j, const struct ak_jdict *dict,
                                     const char *name)
{
    struct ak_jstr s = { .bytes = name,
                         .n = strlen(name),
                         .n_chars = ak_j_count_chars(name, strlen(name)) };
    return ak_j_get(j, dict, (struct ak_jval){ .kind = AK_J_STRING, .as.string = &s });
}

struct ak_jlist *ak_j_view(struct ak_jenv *j, const struct ak_jdict *dict, enum ak_jform form)
{
    struct ak_jlist *list = ak_j_list(j, form, dict->n);
    ak_j_spend(j, dict->n);
    for (size_t i = 0; i < dict->n; i++) {
        const struct ak_jpair *pair = &dict->pairs[i];
        ak_j_append(j, list,
                    form == AK_J_KEYS   ? pair->key :
                    form == AK_J_VALUES ? pair->value :
                                          ak_j_pair(j, pair->key, pair->value));
    }
    return list;
}
