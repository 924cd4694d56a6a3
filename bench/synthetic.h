/* Small synthetic dispatch tables, run through a backend's vtable to time single commands without a
 * model: EMBED of synthetic rows, commands that a program adds, SELECT of a few elements of one
 * row. */
#ifndef AK_BENCH_SYNTHETIC_H
#define AK_BENCH_SYNTHETIC_H

#include "engine/backends/list.h"
#include "engine/dispatch/table.h"
#include "measure.h"

enum {
    TOKENS_MAX = 512, /* tokens per pass */
    COMMANDS_MAX = 4096,
    VOCAB = 64,   /* embedding rows */
    SELECTED = 16 /* elements that a pass returns */
};

struct device {
    const struct ak_backend_ops *ops;
    struct ak_backend_options options;
    struct ak_backend *backend;
    unsigned threads;
};

/* A table that begins with EMBED and ends with SELECT, with its weights and buffers. */
struct synthetic {
    struct ak_spec spec;
    struct ak_weights weights;
    struct ak_pack_weight packed;
    struct ak_kv_shape shape;
    struct ak_view embedding, matrix;
    uint32_t widths[AK_OP_LINEAR_COUNT];
    struct ak_op_slot slots[3]; /* embedded rows, result rows, selected elements */
    struct ak_table table;
    struct ak_command commands[COMMANDS_MAX + 2];
    void *kv;
    uint32_t *pages; /* [shape.n_pages] */
};

/* A pass over tokens of one sequence. */
struct pass {
    const struct device *device;
    struct ak_backend_table *prepared;
    struct ak_batch batch;
    int32_t tokens[TOKENS_MAX];
    uint32_t positions[TOKENS_MAX], sequences[TOKENS_MAX], last;
};

/* Ends the program on failure, as all functions here do. */
static inline void end_unless(ak_status status, const struct ak_error *error)
{
    if (status == AKUNU_OK)
        return;
    fprintf(stderr, "%s\n", error->message);
    exit(1);
}

/* ---- Tables ------------------------------------------------------------- */
static inline void set_slot(struct synthetic *m, uint32_t i, uint32_t width,
                            enum ak_op_row_set row_set)
{
    m->slots[i] = (struct ak_op_slot){ .width = (uint32_t)ak_round_up(width, 16),
                                       .row_set = row_set,
                                       .offset = m->table.arena_width[row_set],
                                       .last_use = UINT32_MAX };
    m->table.arena_width[row_set] += m->slots[i].width;
}

/* Creates a table of commands that turn rows of `width` elements into rows of `out`. */
static inline struct synthetic *new_table(struct device *d, uint32_t width, uint32_t out,
                                          uint32_t n_heads, const struct ak_kv_shape *shape)
{
    struct ak_error error = { 0 };
    struct synthetic *m = new_pages(sizeof *m);
    float *rows = new_pages((size_t)VOCAB * width * sizeof *rows);
    fill_floats(rows, (size_t)VOCAB * width);
    m->embedding = (struct ak_view){ .type = AK_QUANT_F32,
                                     .rows = VOCAB,
                                     .cols = width,
                                     .plane = { { rows, (size_t)VOCAB * width * sizeof *rows } } };
    m->spec.config = (struct ak_spec_config){ .n_layers = shape->n_layers,
                                              .width = width,
                                              .n_heads = n_heads,
                                              .n_kv_heads = shape->n_kv_heads,
                                              .head_dim = shape->head_dim,
                                              .vocab_size = VOCAB };
    m->weights = (struct ak_weights){
        .packed = &m->packed, .widths = m->widths, .n_layers = 1, .embedding = &m->embedding
    };
    m->table = (struct ak_table){
        .commands = m->commands, .slots = m->slots, .n_slots = 3, .logits = 2, .sampled = AK_OP_NONE
    };
    set_slot(m, 0, width, AK_OP_ROWS_TOKENS);
    set_slot(m, 1, out, AK_OP_ROWS_TOKENS);
    set_slot(m, 2, SELECTED, AK_OP_ROWS_LOGITS);
    m->shape = *shape;
    m->pages = new_pages(shape->n_pages * sizeof *m->pages);
    for (uint32_t i = 0; i < shape->n_pages; i++)
        m->pages[i] = i;
    end_unless(d->ops->alloc_kv(d->backend, shape, &m->kv, &error), &error);
    return m;
}

/* Call before the weights are freed: they may be lent to the device. */
static inline void close_device(struct device *d, struct synthetic *m)
{
    d->ops->free_kv(d->backend, m->kv, &m->shape);
    d->ops->close(d->backend);
    d->backend = NULL;
}

static inline void free_table(struct synthetic *m)
{
    ak_pages_free(m->pages, m->shape.n_pages * sizeof *m->pages);
    ak_pages_free((void *)(uintptr_t)m->embedding.plane[0].data,
                  (size_t)m->embedding.plane[0].bytes);
    ak_pages_free(m, sizeof *m);
}

/* A table is rewritten by begin, then commands on slots 0 and 1, then end. */
static inline struct ak_command *add(struct synthetic *m, enum ak_op op, uint32_t in, uint32_t out)
{
    struct ak_command *c = &m->commands[m->table.n_commands++];
    *c = (struct ak_command){ .op = op,
                              .in = in,
                              .out = out,
                              .weight = AK_OP_NONE,
                              .vector = AK_OP_NONE,
                              .vector2 = AK_OP_NONE };
    return c;
}

static inline void begin(struct synthetic *m)
{
    m->table.n_commands = 0;
    add(m, AK_OP_EMBED, AK_OP_NONE, 0)->params.embed.scale = 1.0f;
}

static inline void end(struct synthetic *m, uint32_t slot)
{
    add(m, AK_OP_SELECT, slot, 2)->params.select.n = SELECTED;
}

static inline void prepare(const struct device *d, struct synthetic *m, uint32_t tokens_max,
                           struct pass *pass)
{
    const struct ak_backend_table_options options = { .n_threads = d->threads,
                                                      .context =
                                                          m->shape.n_pages * AK_KV_PAGE_TOKENS,
                                                      .max_tokens = tokens_max,
                                                      .max_logits = 1,
                                                      .kv = m->shape };
    struct ak_error error = { 0 };
    *pass = (struct pass){ .device = d };
    end_unless(d->ops->prepare(d->backend, &m->table, &m->weights, &m->spec, &options, m->kv,
                               &pass->prepared, &error),
               &error);
}

static inline void run_pass(void *context, unsigned thread)
{
    struct pass *pass = context;
    struct ak_error error = { 0 };
    (void)thread;
    pass->device->ops->run(pass->prepared, &pass->batch);
    end_unless(pass->device->ops->sync(pass->prepared, &error), &error);
}

/* Sets the batch to n tokens from position `first` on. */
static inline void set_batch(struct pass *pass, struct synthetic *m, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        pass->tokens[i] = (int32_t)((first + i) * 7 % VOCAB);
        pass->positions[i] = first + i;
    }
    pass->last = n - 1;
    pass->batch = (struct ak_batch){ .n = n,
                                     .tokens = pass->tokens,
                                     .positions = pass->positions,
                                     .sequences = pass->sequences,
                                     .pages = (const uint32_t *const *)&m->pages,
                                     .n_logits = 1,
                                     .logit_rows = &pass->last };
}

#endif
