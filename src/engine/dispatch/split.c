/* Splits a table before a layer into two, for composite backends. */
#include <string.h>

#include "base/mem.h"
#include "engine/dispatch/table.h"

static uint32_t find_layer(const struct ak_table *t, uint32_t layer)
{
    uint32_t i = 0;
    while (i < t->n_commands && t->commands[i].layer < (int)layer)
        i++;
    return i;
}

/* The slot that is written before command `at` and read from it on. */
static ak_status find_crossing(const struct ak_table *t, uint32_t at, uint32_t *value,
                               struct ak_error *error)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_slots; i++)
        if (t->slots[i].first_use < at && t->slots[i].last_use >= at) {
            *value = i;
            n++;
        }
    if (n == 1 && t->slots[*value].row_set == AK_OP_ROWS_TOKENS)
        return AKUNU_OK;
    return ak_fail(
        error, AKUNU_ERROR_UNSUPPORTED,
        "the model cannot be split between layers: %u values cross the split, and one is expected",
        (unsigned)n);
}

/* Copies commands [begin, end) to index `before`, and the slots that live in that range. */
static ak_status copy_commands(const struct ak_table *t, uint32_t begin, uint32_t end,
                               uint32_t before, struct ak_table *out, struct ak_error *error)
{
    *out = (struct ak_table){ .n_commands = end - begin + before,
                              .n_slots = t->n_slots,
                              .logits = t->logits,
                              .sampled = t->sampled };
    out->commands = ak_alloc(out->n_commands, sizeof *out->commands);
    out->slots = ak_alloc(t->n_slots, sizeof *out->slots);
    if (!out->commands || !out->slots)
        return ak_fail_memory(error, "a part of the dispatch table", ak_table_bytes(out));
    memcpy(out->commands + before, t->commands + begin, (end - begin) * sizeof *out->commands);
    for (uint32_t i = 0; i < t->n_slots; i++) {
        const struct ak_op_slot *slot = &t->slots[i];
        bool lives = slot->first_use < end && slot->last_use >= begin;
        uint32_t last = slot->last_use < end ? slot->last_use : end;
        out->slots[i] =
            (struct ak_op_slot){ .row_set = slot->row_set, .width = lives ? slot->width : 0 };
        out->slots[i].first_use =
            lives && slot->first_use > begin ? slot->first_use - begin + before : 0;
        out->slots[i].last_use = lives ? last - begin + before : 0;
    }
    return AKUNU_OK;
}

/* Counts a command's KV layer and state offset from `layer` and `elem`. */
static void rebase_command(struct ak_command *c, uint32_t layer, uint64_t elem)
{
    switch (c->op) {
#define NOTHING(name)
#define KV(name) c->params.name.kv_layer -= layer;
#define STATE(name) c->params.name.state_at -= elem;
#define AK_OP(symbol, name, rows, keeps, ...)                                                      \
    case AK_OP_##symbol:                                                                           \
        keeps(name) break;
#include "engine/op/op.def"
#undef AK_OP
#undef NOTHING
#undef KV
#undef STATE
    case AK_OP_COUNT: break;
    }
}

ak_status ak_table_split(const struct ak_table *table, const struct ak_spec *spec,
                         uint32_t split_layer, struct ak_table *head, struct ak_table *tail,
                         struct ak_error *error)
{
    uint32_t at = find_layer(table, split_layer), value = 0;
    *head = *tail = (struct ak_table){ 0 };
    ak_status status = find_crossing(table, at, &value, error);
    if (status == AKUNU_OK)
        status = copy_commands(table, 0, at, 0, head, error);
    if (status == AKUNU_OK)
        status = copy_commands(table, at, table->n_commands, 1, tail, error);
    if (status != AKUNU_OK) {
        ak_table_clear(head);
        ak_table_clear(tail);
        return status;
    }
    head->logits = value;
    head->sampled = AK_OP_NONE;
    tail->commands[0] = (struct ak_command){ .op = AK_OP_EMBED,
                                             .layer = AK_ROLE_NO_LAYER,
                                             .in = AK_OP_NONE,
                                             .out = value,
                                             .weight = AK_OP_NONE,
                                             .vector = AK_OP_NONE,
                                             .vector2 = AK_OP_NONE,
                                             .params.embed.scale = 1.0f };
    for (uint32_t i = 1; i < tail->n_commands; i++)
        rebase_command(&tail->commands[i], ak_spec_kv_layer(spec, (int)split_layer),
                       ak_spec_state_offset(spec, (int)split_layer));
    ak_table_plan_arena(head);
    ak_table_plan_arena(tail);
    return AKUNU_OK;
}
