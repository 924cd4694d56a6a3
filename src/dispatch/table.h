/* The dispatch table of a model: its commands and the activation slots, planned
 * by liveness into one arena. */
#ifndef AK_DISPATCH_TABLE_H
#define AK_DISPATCH_TABLE_H

#include "pack/pack.h"

/* An activation slot. Rows lie `width` elements apart; `offset` is the slot's
 * number of elements into a row of the arena, shared by slots that do not live
 * at the same time. Each row set has an arena of its own. */
struct ak_table_slot {
    uint32_t width; /* float elements of a row, a multiple of 16 */
    enum ak_op_row_set row_set;
    uint32_t offset;
    uint32_t first_use, last_use; /* commands */
};

struct ak_table {
    struct ak_command *commands;
    uint32_t n_commands;
    struct ak_table_slot *slots;
    uint32_t n_slots;
    uint32_t arena_width[AK_OP_ROWS_COUNT]; /* elements of a row of each row set's arena */
    uint32_t logits;                        /* slot of the logits, or of the hidden states */
    uint32_t sampled; /* slot of the sampled tokens, AK_OP_NONE in the plain table */
    char *dump;
};

/* What a pass gives: logits, the tokens drawn from them, or the hidden states
 * that logits would be made of. An encoder's table always ends in hidden states. */
enum ak_table_variant { AK_TABLE_LOGITS, AK_TABLE_SAMPLED, AK_TABLE_HIDDEN };

/* Emits the family's commands. */
ak_status ak_table_build(const struct ak_spec *spec, const struct ak_weights *weights,
                         enum ak_table_variant variant, struct ak_table *out,
                         struct ak_error *error);
void ak_table_clear(struct ak_table *t);
uint64_t ak_table_bytes(const struct ak_table *t);

/* Splits a table before `split_layer`, 1 to one less than the layers, in two, for backends that
 * share a model. `head` ends in the one value that goes from layer to layer, as hidden
 * states of all rows. `tail` begins with an EMBED that takes it from the batch (its
 * `hidden`); its layers of the KV cache and places in a sequence's state are counted from
 * its own first ones. AKUNU_ERROR_UNSUPPORTED: more than one value crosses the cut. */
ak_status ak_table_split(const struct ak_table *table, const struct ak_spec *spec,
                         uint32_t split_layer, struct ak_table *head, struct ak_table *tail,
                         struct ak_error *error);

/* Fills t->dump: a line a slot and a command. */
ak_status ak_table_dump(struct ak_table *t, const struct ak_weights *weights,
                        struct ak_error *error);

#endif
