/* One pass: writes the pass to the device, enqueues the launches and reads back logits or sampled
 * tokens. Nothing waits before sync. */
#include <string.h>

#include "opencl/opencl.h"

static void note_error(struct ak_ocl_table *p, cl_int code)
{
    p->failed = p->failed ? p->failed : code;
}

/* ---- What the host makes ------------------------------------------------ */
static void fill_embeddings(struct ak_ocl_table *p, const struct ak_batch *batch)
{
    const struct ak_command *c = p->table->commands;
    uint32_t width = p->spec->config.width;
    while (c->op != AK_OP_EMBED)
        c++;
    for (uint32_t t = 0; t < batch->n; t++) {
        float *out = p->embedding_rows + (size_t)t * width;
        if (batch->hidden)
            memcpy(out, batch->hidden + t * batch->hidden_stride, width * sizeof *out);
        else
            ak_table_embed_token(p->weights, &c->params.embed, NULL, batch->tokens[t],
                                 batch->positions[t], ak_batch_token_type(batch, t), p->row, out);
    }
}

/* [tables][cosine, sine][tokens][rope_dims/2]. Returns the number of floats. */
static size_t fill_angles(struct ak_ocl_table *p, const struct ak_batch *batch)
{
    uint32_t half = p->spec->config.rope_dims / 2;
    size_t part = (size_t)batch->n * half;
    for (uint32_t table = 0; table < p->spec->n_rotations; table++) {
        float *cosines = p->angle_rows + table * 2 * part;
        for (uint32_t t = 0; t < batch->n; t++)
            ak_table_rope_angles(p->spec, p->frequencies, table, batch->positions[t],
                                 cosines + (size_t)t * half, cosines + part + (size_t)t * half);
    }
    return 2 * part * p->spec->n_rotations;
}

/* Splits each sequence's tokens into blocks that attention takes at once. In small passes, where
 * many pages can be split among groups, each token is a block. */
static void put_blocks(struct ak_ocl_table *p, const struct ak_batch *batch)
{
    int32_t *blocks = p->words + p->words_at[AK_OCL_PASS_BLOCKS],
            *ends = p->words + p->words_at[AK_OCL_PASS_ENDS];
    uint32_t max = batch->n > AK_OCL_SKINNY_MAX ? AK_OCL_QUERIES : 1, last = 0;
    p->single_token_blocks = max == 1;
    p->n_blocks = 0;
    for (uint32_t i = 0, stop; i < batch->n; i = stop) {
        for (stop = i + 1; stop < batch->n && batch->sequences[stop] == batch->sequences[i];)
            stop++;
        uint32_t end = batch->positions[stop - 1] + 1;
        last = end > last ? end : last;
        for (uint32_t first = i, n; first < stop; first += n) {
            n = stop - first < max ? stop - first : max;
            blocks[2 * p->n_blocks] = (int32_t)first;
            blocks[2 * p->n_blocks++ + 1] = (int32_t)n;
        }
        for (uint32_t t = i; t < stop; t++)
            ends[t] = (int32_t)end;
    }
    /* enough groups for the device, with at least two pages each */
    uint32_t pages = (last + AK_KV_PAGE_TOKENS - 1) / AK_KV_PAGE_TOKENS,
             groups = batch->n * p->spec->config.n_heads, wanted = 4 * p->o->device.units;
    p->n_splits = 1;
    while (p->single_token_blocks && p->n_splits < AK_OCL_SPLITS_MAX &&
           groups * p->n_splits < wanted && p->n_splits * 2 <= pages)
        p->n_splits *= 2;
}

/* Writes the page tables of the pass's sequences, one after another. Returns the words in use. */
static uint32_t put_tables(struct ak_ocl_table *p, const struct ak_batch *batch)
{
    int32_t *at = p->words + p->words_at[AK_OCL_PASS_TABLES];
    uint32_t next = p->words_fixed;
    for (uint32_t i = 0, stop; i < batch->n; i = stop) {
        for (stop = i; stop < batch->n && batch->sequences[stop] == batch->sequences[i]; stop++)
            at[stop] = (int32_t)next;
        uint32_t n = batch->positions[stop - 1] / AK_KV_PAGE_TOKENS + 1;
        for (uint32_t page = 0; page < n; page++)
            p->words[next++] = (int32_t)batch->pages[batch->sequences[i]][page];
    }
    return next;
}

static uint32_t put_words(struct ak_ocl_table *p, const struct ak_batch *batch)
{
    int32_t *words = p->words;
    uint32_t temperature;
    memcpy(&temperature, &batch->gumbel.temperature, sizeof temperature);
    for (uint32_t i = AK_OCL_PASS_POSITIONS; i <= AK_OCL_PASS_EXPERT_GROUPS; i++)
        words[i] = (int32_t)p->words_at[i];
    words[AK_OCL_PASS_TOKENS] = (int32_t)batch->n;
    words[AK_OCL_PASS_EXPERTS] = (int32_t)(batch->n * p->spec->config.n_experts_used);
    words[AK_OCL_PASS_SEED_LOW] = (int32_t)(uint32_t)batch->gumbel.seed;
    words[AK_OCL_PASS_SEED_HIGH] = (int32_t)(uint32_t)(batch->gumbel.seed >> 32);
    words[AK_OCL_PASS_TEMPERATURE] = (int32_t)temperature;
    for (uint32_t t = 0; t < batch->n; t++) {
        words[words[AK_OCL_PASS_POSITIONS] + (int32_t)t] = (int32_t)batch->positions[t];
        words[words[AK_OCL_PASS_STATES] + (int32_t)t] = (int32_t)batch->sequences[t];
    }
    put_blocks(p, batch);
    return put_tables(p, batch);
}

static void write_buffer(struct ak_ocl_table *p, cl_mem to, const void *from, size_t bytes)
{
    if (bytes > 0)
        note_error(p, p->o->cl->clEnqueueWriteBuffer(p->queue, to, CL_FALSE, 0, bytes, from, 0,
                                                     NULL, NULL));
}

/* ---- Launches ----------------------------------------------------------- */
static void enqueue(struct ak_ocl_table *p, cl_kernel kernel, uint32_t dims, const size_t *global,
                    const size_t *local)
{
    note_error(p, p->is_recording ? ak_ocl_record(p, kernel, dims, global, local) :
                                    p->o->cl->clEnqueueNDRangeKernel(p->queue, kernel, dims, NULL,
                                                                     global, local, 0, NULL, NULL));
}

static uint32_t count_groups(uint32_t n, uint32_t each)
{
    return (n + each - 1) / each;
}

static void enqueue_product(struct ak_ocl_table *p, const struct ak_ocl_launch *launch,
                            uint32_t rows)
{
    bool tiled = ak_ocl_is_tiled(p->weights->packed[launch->command->weight].type);
    uint32_t side = 16 * p->o->tile, slices = p->o->slices, lanes = tiled ? 16 : p->o->lanes;
    /* experts with few rows each stream their matrices, a row at a time */
    bool is_skinny = launch->experts ? rows <= AK_OCL_SKINNY_MAX * p->spec->config.n_experts_used :
                                       rows <= AK_OCL_SKINNY_MAX;
    if (is_skinny) {
        uint32_t variant = launch->experts || rows == 1 ? 0 :
                           rows == 2                    ? 1 :
                           rows <= 4                    ? 2 :
                                                          3,
                 tokens = 1u << variant;
        size_t local[2] = { lanes, slices },
               global[2] = { (size_t)count_groups(launch->columns, tiled ? 16 : slices) * lanes,
                             (size_t)count_groups(rows, tokens) * slices };
        enqueue(p, launch->kernels[variant], 2, global, local);
        *(rows == 1 ? &p->counts.gemv : &p->counts.skinny) += 1;
        return;
    }
    uint32_t groups =
        launch->experts ? rows / side + p->spec->config.n_experts : count_groups(rows, side);
    size_t local[2] = { 16, 16 },
           global[2] = { (size_t)count_groups(launch->columns, side) * 16, (size_t)groups * 16 };
    enqueue(p, launch->kernels[AK_OCL_VARIANTS - 1], 2, global, local);
    p->counts.gemm++;
}

static void enqueue_attention(struct ak_ocl_table *p, const struct ak_ocl_launch *launch,
                              uint32_t rows)
{
    size_t local[3] = { launch->group[0], 1, 1 },
           global[3] = { launch->columns * launch->group[0], p->n_blocks, p->n_splits };
    cl_uint splits = p->n_splits;
    /* PoCL replays a kernel with the arguments it has at replay */
    cl_kernel merge = launch->kernels[p->is_recording ? 3 : 2];
    enqueue(p, launch->kernels[p->single_token_blocks ? 0 : 1], 3, global, local);
    if (p->n_splits == 1)
        return;
    global[1] = rows;
    note_error(p, p->o->cl->clSetKernelArg(merge, 5, sizeof splits, &splits));
    enqueue(p, merge, 2, global, local);
}

static void enqueue_launch(struct ak_ocl_table *p, const struct ak_ocl_launch *launch)
{
    uint32_t rows = (uint32_t)p->words[launch->row_set];
    size_t global[2] = { launch->columns * launch->group[0], rows * launch->group[1] };
    switch (launch->grid) {
    case AK_OCL_PRODUCT: enqueue_product(p, launch, rows); return;
    case AK_OCL_ATTENTION: enqueue_attention(p, launch, rows); return;
    case AK_OCL_ELEMENTS:
        global[0] = count_groups(launch->columns, (uint32_t)launch->group[0]) * launch->group[0];
        break;
    case AK_OCL_GROUPS: break;
    case AK_OCL_FIXED_GROUPS: global[1] = launch->lines * launch->group[1]; break;
    }
    enqueue(p, launch->kernels[0], 2, global, launch->group);
}

static void enqueue_launches(struct ak_ocl_table *p, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        enqueue_launch(p, &p->launches[i]);
}

/* ---- The launches of one token, as one ---------------------------------- */
/* A failure here is not a failure of the pass. */
static cl_int record(struct ak_ocl_table *p, uint32_t n_launches)
{
    const struct ak_backend_counts counts = p->counts;
    cl_int failed = p->failed, code;
    memset(&p->counts, 0, sizeof p->counts);
    p->failed = ak_ocl_begin_recording(p);
    if (p->failed == CL_SUCCESS) {
        p->is_recording = true;
        enqueue_launches(p, 0, n_launches);
        p->is_recording = false;
        note_error(p, ak_ocl_end_recording(p));
    }
    p->recording.n_launches = n_launches;
    p->recording.n_splits = p->n_splits;
    p->recording.counts = p->counts;
    code = p->failed;
    p->counts = counts;
    p->failed = failed;
    return code;
}

/* Enqueues all launches of a one-token pass. They are recorded anew if attention splits the pages
 * among another number of groups. False: nothing was enqueued. */
static bool run_recorded(struct ak_ocl_table *p, const struct ak_batch *batch)
{
    uint32_t n_launches = batch->n_logits > 0 ? p->n_launches : p->n_before_logits;
    cl_int code = CL_SUCCESS;
    if (!p->o->recorder || atomic_load(&p->o->refuses_lists) || batch->n != 1 ||
        batch->n_logits > 1)
        return false;
    if (!p->recording.list || p->recording.n_launches != n_launches ||
        p->recording.n_splits != p->n_splits)
        code = record(p, n_launches);
    if (code == CL_SUCCESS)
        code = ak_ocl_replay(p);
    if (code == CL_SUCCESS) {
        p->counts.gemv += p->recording.counts.gemv;
        p->counts.skinny += p->recording.counts.skinny;
        p->counts.gemm += p->recording.counts.gemm;
        return true;
    }
    ak_ocl_drop_recording(p);
    if (!atomic_exchange(&p->o->refuses_lists, true))
        ak_log_line(&p->o->log, AKUNU_LOG_WARN,
                    "opencl: %s takes no recorded launches (%s): they are enqueued one by one",
                    p->o->device.name, ak_ocl_error_name(code));
    return false;
}

/* ---- Logits ------------------------------------------------------------- */
static void put_logit_rows(struct ak_ocl_table *p, const struct ak_batch *batch, uint32_t first,
                           uint32_t n)
{
    p->words[AK_OCL_PASS_LOGITS] = (int32_t)n;
    for (uint32_t i = 0; i < n; i++)
        p->words[p->words_at[AK_OCL_PASS_LOGIT_ROWS] + i] = (int32_t)batch->logit_rows[first + i];
}

/* Logits by as many rows as the device buffer holds. `recorded`: the launches have been
 * enqueued. */
static void run_logits(struct ak_ocl_table *p, const struct ak_batch *batch, bool recorded)
{
    size_t width = p->table->slots[p->table->logits].width,
           at = (size_t)p->table->slots[p->table->logits].offset * p->max_rows[AK_OP_ROWS_LOGITS];
    for (uint32_t first = 0, n; first < batch->n_logits; first += n) {
        n = batch->n_logits - first < p->max_rows[AK_OP_ROWS_LOGITS] ?
                batch->n_logits - first :
                p->max_rows[AK_OP_ROWS_LOGITS];
        if (first > 0) { /* the device may not have read the words yet */
            note_error(p, p->o->cl->clFinish(p->queue));
            put_logit_rows(p, batch, first, n);
            write_buffer(p, p->pass, p->words,
                         (p->words_at[AK_OCL_PASS_LOGIT_ROWS] + n) * sizeof *p->words);
        }
        if (!recorded)
            enqueue_launches(p, p->n_before_logits, p->n_launches);
        if (p->table->sampled != AK_OP_NONE)
            note_error(p, p->o->cl->clEnqueueReadBuffer(p->queue, p->sampled_memory, CL_FALSE, 0,
                                                        n * sizeof *p->sampled, p->sampled + first,
                                                        0, NULL, NULL));
        else
            note_error(p, p->o->cl->clEnqueueReadBuffer(
                              p->queue, p->arena[AK_OP_ROWS_LOGITS], CL_FALSE, at * sizeof(float),
                              n * width * sizeof(float), p->logits + first * width, 0, NULL, NULL));
    }
}

void ak_ocl_run(struct ak_backend_table *prepared, const struct ak_batch *batch)
{
    struct ak_ocl_table *p = (struct ak_ocl_table *)prepared;
    uint32_t used, first_logits;
    bool recorded;
    p->failed = p->kv->failed;
    used = put_words(p, batch);
    first_logits = batch->n_logits < p->max_rows[AK_OP_ROWS_LOGITS] ?
                       batch->n_logits :
                       p->max_rows[AK_OP_ROWS_LOGITS];
    put_logit_rows(p, batch, 0, first_logits);
    fill_embeddings(p, batch);
    write_buffer(p, p->pass, p->words, used * sizeof *p->words);
    write_buffer(p, p->angles, p->angle_rows, fill_angles(p, batch) * sizeof *p->angle_rows);
    write_buffer(p, p->embeddings, p->embedding_rows,
                 (size_t)batch->n * p->spec->config.width * sizeof *p->embedding_rows);
    recorded = run_recorded(p, batch);
    if (!recorded)
        enqueue_launches(p, 0, p->n_before_logits);
    run_logits(p, batch, recorded);
    note_error(p, p->o->cl->clFlush(p->queue));
}

ak_status ak_ocl_sync(struct ak_backend_table *prepared, struct ak_error *error)
{
    struct ak_ocl_table *p = (struct ak_ocl_table *)prepared;
    note_error(p, p->o->cl->clFinish(p->queue));
    if (p->failed == CL_SUCCESS)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s failed while it computed a pass: %s",
                   p->o->device.name, ak_ocl_error_name(p->failed));
}
