/* Small synthetic dispatch tables, and a function that runs them on a backend, to test ops without
 * a model: what a token's row holds comes from an embedding of random numbers, commands follow, and
 * the last slot's rows come back. */
#ifndef AK_TESTS_TABLE_RIG_H
#define AK_TESTS_TABLE_RIG_H

#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

#include "engine/backends/list.h"
#include "base/mem.h"
#include "engine/dispatch/table.h"

enum {
    RIG_ITEMS_MAX = 12,
    RIG_VOCAB = 61,
    RIG_SEQUENCES = 2,
    RIG_PAGES = 4,
    RIG_CONTEXT = RIG_PAGES * AK_KV_PAGE_TOKENS,
    RIG_SCORED = 2 * RIG_CONTEXT /* tokens, at most */
};

struct rig {
    struct ak_spec spec;
    struct ak_table table;
    struct ak_weights weights;
    struct ak_kv_shape kv;
    struct ak_gumbel_params gumbel;
    uint32_t n_best;                                 /* of the batches */
    const float *const *frames;                      /* of the batches */
    const uint32_t *cross_sequences, *cross_lengths; /* of the batches */
    const int32_t *matrices; /* [n_heads]: whose scores are wanted; NULL: none */
    uint32_t n_heads;
    float *scores; /* [matrices][RIG_SCORED][RIG_CONTEXT], over all passes */
    struct ak_command commands[RIG_ITEMS_MAX];
    struct ak_op_slot slots[RIG_ITEMS_MAX];
    struct ak_pack_vector vectors[RIG_ITEMS_MAX];
    struct ak_pack_weight packed[RIG_ITEMS_MAX];
    uint32_t widths[AK_OP_LINEAR_COUNT];
    struct ak_view embedding;
    float *rows;          /* of the embedding */
    struct ak_comm *comm; /* to other ranks; NULL: none */
    uint32_t n;           /* elements of a row that come back */
};

/* In a pass `n` tokens of each sequence follow. */
struct rig_pass {
    uint32_t n[RIG_SEQUENCES];
};

static uint64_t rig_state;

static inline uint32_t rig_bits(void)
{
    rig_state ^= rig_state << 13;
    rig_state ^= rig_state >> 7;
    rig_state ^= rig_state << 17;
    return (uint32_t)(rig_state >> 32);
}

static inline float rig_float(float low, float high)
{
    return low + (high - low) * (float)(rig_bits() >> 8) * 0x1p-24f;
}

static inline float *rig_floats(size_t n, float low, float high)
{
    float *x = malloc(n * sizeof *x);
    ck_assert_ptr_nonnull(x);
    for (size_t i = 0; i < n; i++)
        x[i] = rig_float(low, high);
    return x;
}

/* `n` elements and what makes a slot's rows whole lines. */
static inline uint32_t rig_slot(struct rig *r, uint32_t n, enum ak_op_row_set row_set)
{
    struct ak_op_slot *slot = &r->slots[r->table.n_slots];
    ck_assert_uint_lt(r->table.n_slots, RIG_ITEMS_MAX);
    *slot = (struct ak_op_slot){ .width = (n + 15) / 16 * 16,
                                 .row_set = row_set,
                                 .offset = r->table.arena_width[row_set],
                                 .last_use = UINT32_MAX };
    r->table.arena_width[row_set] += slot->width;
    return r->table.n_slots++;
}

static inline struct ak_command *rig_add(struct rig *r, enum ak_op op, uint32_t in, uint32_t out)
{
    struct ak_command *c = &r->commands[r->table.n_commands++];
    ck_assert_uint_le(r->table.n_commands, RIG_ITEMS_MAX);
    *c = (struct ak_command){ .op = op,
                              .in = in,
                              .out = out,
                              .weight = AK_OP_NONE,
                              .vector = AK_OP_NONE,
                              .vector2 = AK_OP_NONE };
    return c;
}

static inline uint32_t rig_vector(struct rig *r, uint32_t n, float low, float high)
{
    ck_assert_uint_lt(r->weights.n_vectors, RIG_ITEMS_MAX);
    r->vectors[r->weights.n_vectors] =
        (struct ak_pack_vector){ .n = n, .data = rig_floats(n, low, high) };
    return r->weights.n_vectors++;
}

/* Begins a table whose slot 0 has `width` random elements a token. */
static inline void rig_begin(struct rig *r, uint32_t width, float low, float high)
{
    *r = (struct rig){ .kv = { .n_layers = 1,
                               .n_kv_heads = 1,
                               .head_dim = 32,
                               .k_type = AKUNU_KV_F32,
                               .v_type = AKUNU_KV_F32,
                               .n_pages = RIG_SEQUENCES * RIG_PAGES,
                               .n_states = RIG_SEQUENCES } };
    rig_state = 0x9e3779b97f4a7c15u;
    r->rows = rig_floats((size_t)RIG_VOCAB * width, low, high);
    r->embedding = (struct ak_view){ .type = AK_QUANT_F32,
                                     .rows = RIG_VOCAB,
                                     .cols = width,
                                     .plane = { { r->rows, (size_t)RIG_VOCAB * width * 4 } } };
    r->spec.config = (struct ak_spec_config){ .n_layers = 1,
                                              .width = width,
                                              .n_heads = 1,
                                              .n_kv_heads = 1,
                                              .head_dim = 32,
                                              .vocab_size = RIG_VOCAB };
    rig_add(r, AK_OP_EMBED, AK_OP_NONE, rig_slot(r, width, AK_OP_ROWS_TOKENS))->params.embed.scale =
        1.0f;
    r->table.sampled = AK_OP_NONE;
}

/* The product of slot `in` with the matrix, the rig's only weight. */
static inline void rig_linear(struct rig *r, const struct ak_view *view, enum ak_op_linear linear,
                              uint32_t in, uint32_t out)
{
    r->packed[0] = (struct ak_pack_weight){ .linear = linear,
                                            .layer = AK_ROLE_NO_LAYER,
                                            .type = view->type,
                                            .cols = (uint32_t)view->cols,
                                            .n_parts = 1,
                                            .bias = AK_OP_NONE };
    r->packed[0].parts[0].view = view;
    r->packed[0].parts[0].rows = (uint32_t)view->rows;
    r->weights.n_packed = 1;
    rig_add(r, AK_OP_LINEAR, in, out)->weight = 0;
}

/* Ends it: n elements of the slot come back. */
static inline uint32_t rig_end(struct rig *r, uint32_t slot, uint32_t n)
{
    r->n = n;
    r->table.logits = rig_slot(r, n, AK_OP_ROWS_LOGITS);
    rig_add(r, AK_OP_SELECT, slot, r->table.logits)->params.select.n = n;
    return r->table.logits;
}

static inline void rig_free(struct rig *r)
{
    for (uint32_t i = 0; i < r->weights.n_vectors; i++)
        free(r->vectors[i].data);
    free(r->rows);
}

/* ---- Running ------------------------------------------------------------ */
/* The weights as the backend has them; *block is to be freed. */
static inline void rig_pack(struct rig *r, struct ak_backend *b, uint8_t **block)
{
    uint64_t bytes = 0, at = 0;
    for (uint32_t i = 0; i < r->weights.n_packed; i++)
        for (uint32_t j = 0; j < r->packed[i].n_parts; j++)
            bytes += b->ops->packed_bytes(
                         b, b->ops->layout(b, r->packed[i].linear, r->packed[i].parts[j].view),
                         r->packed[i].type, r->packed[i].parts[j].rows, r->packed[i].cols) +
                     64;
    ck_assert_int_eq(posix_memalign((void **)block, 64, bytes + 64), 0);
    for (uint32_t i = 0; i < r->weights.n_packed; i++) {
        struct ak_pack_weight *packed = &r->packed[i];
        packed->bytes = 0;
        packed->backend = b;
        for (uint32_t j = 0; j < packed->n_parts; j++) {
            struct ak_pack_part *part = &packed->parts[j];
            packed->layout = b->ops->layout(b, packed->linear, part->view);
            uint64_t size =
                b->ops->packed_bytes(b, packed->layout, packed->type, part->rows, packed->cols);
            packed->bytes += size;
            part->data = size ? *block + at : part->view->plane[0].data;
            if (size)
                b->ops->pack(b, packed->layout, part->view, 0, part->rows, *block + at);
            at += size;
        }
        at = ak_round_up(at, 64);
    }
}

static inline void rig_pass(struct rig *r, struct ak_backend *b, struct ak_backend_table *p,
                            const struct rig_pass *pass, uint32_t lengths[RIG_SEQUENCES],
                            float *out, int32_t *sampled)
{
    static const uint32_t first_pages[RIG_PAGES] = { 6, 1, 4, 3 },
                          second_pages[RIG_PAGES] = { 0, 5, 7, 2 };
    static const uint32_t *const pages[RIG_SEQUENCES] = { first_pages, second_pages };
    int32_t tokens[RIG_CONTEXT];
    uint32_t positions[RIG_CONTEXT], sequences[RIG_CONTEXT], rows[RIG_CONTEXT];
    struct ak_batch batch = { .tokens = tokens,
                              .positions = positions,
                              .sequences = sequences,
                              .pages = pages,
                              .logit_rows = rows,
                              .n_best = r->n_best,
                              .gumbel = r->gumbel,
                              .frames = r->frames,
                              .cross_sequences = r->cross_sequences,
                              .cross_lengths = r->cross_lengths };
    const struct ak_batch_scores scores = {
        .data = r->matrices ? r->scores + (size_t)(lengths[0] + lengths[1]) * RIG_CONTEXT : NULL,
        .matrices = r->matrices,
        .n_heads = r->n_heads,
        .matrix_stride = (size_t)RIG_SCORED * RIG_CONTEXT,
        .stride = RIG_CONTEXT
    };
    struct ak_error error = { 0 };
    batch.scores = r->matrices ? &scores : NULL;
    for (uint32_t s = 0; s < RIG_SEQUENCES; s++)
        for (uint32_t i = 0; i < pass->n[s]; i++, batch.n++) {
            rows[batch.n] = batch.n;
            sequences[batch.n] = s;
            positions[batch.n] = lengths[s]++;
            tokens[batch.n] = (int32_t)((positions[batch.n] * 7 + s * 13) % RIG_VOCAB);
        }
    batch.n_logits = batch.n;
    b->ops->run(p, &batch);
    ck_assert_msg(b->ops->sync(p, &error) == AKUNU_OK, "%s", error.message);
    for (uint32_t i = 0; out && i < batch.n; i++)
        memcpy(out + (size_t)i * r->n, b->ops->logits(p, i), r->n * sizeof *out);
    if (sampled)
        memcpy(sampled, b->ops->sampled(p), batch.n * sizeof *sampled);
}

/* Splits n tokens of the first sequence into passes of pass_tokens; returns their number. */
static inline uint32_t rig_split(struct rig_pass *passes, uint32_t n, uint32_t pass_tokens)
{
    uint32_t n_passes = 0;
    for (uint32_t done = 0; done < n; done += pass_tokens)
        passes[n_passes++] =
            (struct rig_pass){ { n - done < pass_tokens ? n - done : pass_tokens, 0 } };
    return n_passes;
}

/* Opens the backend, runs the passes one after another and closes it. The rows of all tokens
 * of all passes go to `out`, what was sampled to `sampled`; either may be NULL. */
static inline void rig_run(struct rig *r, const char *backend, const char *cpu,
                           const struct rig_pass *passes, size_t n, float *out, int32_t *sampled)
{
    /* to keep a program, PoCL would compile each of its kernels, used or not */
    const struct ak_backend_options open = { .cpu = cpu,
                                             .device = getenv("AKUNU_DEVICE"),
                                             .no_cache = true };
    const struct ak_backend_ops *ops;
    struct ak_backend *b;
    struct ak_backend_table *p;
    struct ak_error error = { 0 };
    uint32_t lengths[RIG_SEQUENCES] = { 0 };
    uint8_t *block;
    ck_assert_msg(ak_backend_find(backend, &ops, &error) == AKUNU_OK &&
                      ops->open(&open, &b, &error) == AKUNU_OK,
                  "%s", error.message);
    r->table.commands = r->commands;
    r->table.slots = r->slots;
    r->weights.packed = r->packed;
    r->weights.vectors = r->vectors;
    r->weights.widths = r->widths;
    r->weights.n_layers = 1;
    r->weights.embedding = &r->embedding;
    rig_pack(r, b, &block);
    struct ak_backend_table_options options = { .n_threads = 2,
                                                .context = RIG_CONTEXT,
                                                .max_tokens = RIG_CONTEXT,
                                                .max_logits = RIG_CONTEXT,
                                                .kv = r->kv,
                                                .comm = r->comm };
    void *kv;
    ck_assert_msg(ops->alloc_kv(b, &r->kv, &kv, &error) == AKUNU_OK, "%s", error.message);
    ck_assert_msg(ops->prepare(b, &r->table, &r->weights, &r->spec, &options, kv, &p, &error) ==
                      AKUNU_OK,
                  "%s", error.message);
    for (size_t i = 0; i < n; i++) {
        uint32_t tokens = passes[i].n[0] + passes[i].n[1];
        rig_pass(r, b, p, &passes[i], lengths, out, sampled);
        out = out ? out + (size_t)tokens * r->n : NULL;
        sampled = sampled ? sampled + tokens : NULL;
    }
    ops->release(p);
    ops->free_kv(b, kv, &r->kv);
    ops->close(b);
    free(block);
}

#endif
