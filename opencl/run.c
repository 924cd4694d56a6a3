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
    uint32_t width = p->spec->config.width;
    for (uint32_t t = 0; t < batch->n; t++) {
        float *out = p->embedding_rows + (size_t)t * width;
        if (batch->hidden)
            memcpy(out, batch->hidden + t * batch->hidden_stride, width * sizeof *out);
        else
            ak_table_embed_token(p->weights, &p->input_command->params.embed, NULL,
                                 batch->tokens[t], batch->positions[t],
                                 ak_batch_token_type(batch, t), p->row, out);
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

/* Tokens [begin, stop) in blocks of at most `max`, which see tokens before `end`. */
static void add_blocks(struct ak_ocl_blocks *b, uint32_t begin, uint32_t stop, uint32_t max,
                       uint32_t end, int32_t *blocks, int32_t *ends)
{
    uint32_t pages = (end + AK_KV_PAGE_TOKENS - 1) / AK_KV_PAGE_TOKENS;
    b->pages = pages > b->pages ? pages : b->pages;
    for (uint32_t first = begin, n; first < stop; first += n) {
        n = stop - first < max ? stop - first : max;
        blocks[2 * b->n] = (int32_t)first;
        blocks[2 * b->n++ + 1] = (int32_t)n;
        b->single_token = b->single_token && n == 1;
    }
    for (uint32_t t = begin; t < stop; t++)
        ends[t] = (int32_t)end;
}

/* Splits pages until there are enough groups for the device, with at least two pages each, and as
 * long as partial softmaxes have room. */
static void split_pages(const struct ak_ocl_table *p, const struct ak_batch *batch,
                        struct ak_ocl_blocks *b)
{
    uint32_t groups = b->n * p->spec->config.n_heads, wanted = 4 * p->o->device.units;
    b->n_splits = 1;
    while (b->n_splits < AK_OCL_SPLITS_MAX &&
           batch->n * b->n_splits * 2 <= AK_OCL_SKINNY_MAX * AK_OCL_SPLITS_MAX &&
           groups * b->n_splits < wanted && b->n_splits * 2 <= b->pages)
        b->n_splits *= 2;
}

/* Splits each sequence's tokens into blocks that attention takes at once. In small passes, which
 * have few tokens and many pages, each token is a block. */
static void put_blocks(struct ak_ocl_table *p, const struct ak_batch *batch)
{
    int32_t *blocks = p->words + p->words_at[AK_OCL_PASS_BLOCKS],
            *ends = p->words + p->words_at[AK_OCL_PASS_ENDS];
    uint32_t max = batch->n > AK_OCL_SKINNY_MAX ? AK_OCL_QUERIES : 1;
    p->own = (struct ak_ocl_blocks){ .single_token = true };
    for (uint32_t i = 0, stop; i < batch->n; i = stop) {
        for (stop = i + 1; stop < batch->n && batch->sequences[stop] == batch->sequences[i];)
            stop++;
        add_blocks(&p->own, i, stop, max, batch->positions[stop - 1] + 1, blocks, ends);
    }
    split_pages(p, batch, &p->own);
}

/* The end of the tokens from `begin` on that read the same cross sequence. */
static uint32_t find_cross_end(const struct ak_batch *batch, uint32_t begin)
{
    uint32_t read = batch->cross_sequences[batch->sequences[begin]], stop = begin + 1;
    while (stop < batch->n && batch->cross_sequences[batch->sequences[stop]] == read)
        stop++;
    return stop;
}

/* Page tables and blocks of cross sequences; texts of one window share blocks, so that its pages
 * are read once. None if the batch has no cross sequences, as in a warm-up. `next`: the first free
 * word; returns the one after. */
static uint32_t put_cross(struct ak_ocl_table *p, const struct ak_batch *batch, uint32_t next)
{
    int32_t *blocks = p->words + p->words_at[AK_OCL_PASS_CROSS_BLOCKS],
            *ends = p->words + p->words_at[AK_OCL_PASS_CROSS_ENDS],
            *at = p->words + p->words_at[AK_OCL_PASS_CROSS_TABLES];
    p->cross = (struct ak_ocl_blocks){ .single_token = true };
    if (!batch->cross_sequences)
        return next;
    for (uint32_t i = 0, stop; i < batch->n; i = stop) {
        uint32_t read = batch->cross_sequences[batch->sequences[i]],
                 end = batch->cross_lengths[batch->sequences[i]];
        stop = find_cross_end(batch, i);
        add_blocks(&p->cross, i, stop, AK_OCL_QUERIES, end, blocks, ends);
        for (uint32_t t = i; t < stop; t++)
            at[t] = (int32_t)next;
        for (uint32_t page = 0; page * AK_KV_PAGE_TOKENS < end; page++)
            p->words[next++] = (int32_t)batch->pages[read][page];
    }
    split_pages(p, batch, &p->cross);
    return next;
}

/* Counts the sequences before each token's own. */
static void put_runs(struct ak_ocl_table *p, const struct ak_batch *batch)
{
    int32_t *runs = p->words + p->words_at[AK_OCL_PASS_RUNS], n = 0;
    for (uint32_t t = 0; t < batch->n; t++) {
        n += t > 0 && batch->sequences[t] != batch->sequences[t - 1];
        runs[t] = n;
    }
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
    if (p->input_command->op == AK_OP_FRAMES)
        put_runs(p, batch);
    put_blocks(p, batch);
    uint32_t next = put_tables(p, batch);
    return p->is_crossing ? put_cross(p, batch, next) : next;
}

static void write_part(struct ak_ocl_table *p, cl_mem to, size_t at, const void *from, size_t bytes)
{
    if (bytes > 0)
        note_error(p, p->o->cl->clEnqueueWriteBuffer(p->queue, to, CL_FALSE, at, bytes, from, 0,
                                                     NULL, NULL));
}

static void write_buffer(struct ak_ocl_table *p, cl_mem to, const void *from, size_t bytes)
{
    write_part(p, to, 0, from, bytes);
}

/* Writes the frames of each sequence's positions, one sequence after another. */
static void write_frames(struct ak_ocl_table *p, const struct ak_batch *batch)
{
    const struct ak_op_frames_params *f = &p->input_command->params.frames;
    size_t at = 0;
    for (uint32_t i = 0, stop; i < batch->n; i = stop) {
        for (stop = i + 1; stop < batch->n && batch->sequences[stop] == batch->sequences[i];)
            stop++;
        size_t n = (size_t)(stop - i - 1) * f->step + f->n;
        write_part(p, p->input, at * sizeof(float),
                   batch->frames[batch->sequences[i]] + (size_t)batch->positions[i] * f->step,
                   n * sizeof(float));
        at += n;
    }
}

static void write_input(struct ak_ocl_table *p, const struct ak_batch *batch)
{
    if (p->input_command->op == AK_OP_FRAMES) {
        write_frames(p, batch);
        return;
    }
    fill_embeddings(p, batch);
    write_buffer(p, p->input, p->embedding_rows,
                 (size_t)batch->n * p->spec->config.width * sizeof *p->embedding_rows);
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

/* Reads a head's scores into its matrix, the tokens of each cross sequence at once. */
static void read_scores(struct ak_ocl_table *p, int32_t matrix)
{
    const struct ak_batch *batch = p->batch;
    const struct ak_batch_scores *s = batch->scores;
    size_t row = p->spec->config.encoder_context * sizeof(float);
    for (uint32_t i = 0, stop; i < batch->n; i = stop) {
        stop = find_cross_end(batch, i);
        const size_t from[3] = { 0, i, 0 }, to[3] = { 0, 0, 0 },
                     region[3] = { batch->cross_lengths[batch->sequences[i]] * sizeof(float),
                                   stop - i, 1 };
        note_error(p,
                   p->o->cl->clEnqueueReadBufferRect(
                       p->queue, p->scores, CL_FALSE, from, to, region, row, 0,
                       s->stride * sizeof(float), 0,
                       s->data + (size_t)matrix * s->matrix_stride + i * s->stride, 0, NULL, NULL));
    }
}

/* Computes the scores that the batch wants of a cross-attention, head by head: all have the same
 * buffer. */
static void enqueue_scores(struct ak_ocl_table *p, const struct ak_ocl_launch *launch)
{
    const int32_t *matrices =
        p->batch->scores->matrices + (size_t)launch->command->layer * launch->columns;
    cl_kernel kernel = launch->kernels[AK_OCL_ATTENTION_SCORES];
    size_t local[2] = { launch->group[0], 1 },
           global[2] = { p->cross.pages * launch->group[0], p->cross.n };
    for (cl_uint head = 0; head < launch->columns; head++) {
        if (matrices[head] < 0)
            continue;
        note_error(p, p->o->cl->clSetKernelArg(kernel, 6, sizeof head, &head));
        enqueue(p, kernel, 2, global, local);
        read_scores(p, matrices[head]);
    }
}

static void enqueue_attention(struct ak_ocl_table *p, const struct ak_ocl_launch *launch,
                              uint32_t rows)
{
    bool is_cross = launch->command->params.attention.cross;
    const struct ak_ocl_blocks *blocks = is_cross ? &p->cross : &p->own;
    size_t local[3] = { launch->group[0], 1, 1 },
           global[3] = { launch->columns * launch->group[0], blocks->n, blocks->n_splits };
    cl_uint splits = blocks->n_splits;
    cl_kernel merge =
        launch->kernels[p->is_recording ? AK_OCL_ATTENTION_MERGE_RECORDED : AK_OCL_ATTENTION_MERGE];
    if (blocks->n == 0)
        return;
    if (is_cross && p->batch->scores)
        enqueue_scores(p, launch);
    enqueue(p,
            launch->kernels[blocks->single_token ? AK_OCL_ATTENTION_ONE : AK_OCL_ATTENTION_BLOCKS],
            3, global, local);
    if (splits == 1)
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
    p->recording.n_splits = p->own.n_splits;
    p->recording.n_cross_splits = p->cross.n_splits;
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
        batch->n_logits > 1 || batch->scores)
        return false;
    if (!p->recording.list || p->recording.n_launches != n_launches ||
        p->recording.n_splits != p->own.n_splits ||
        p->recording.n_cross_splits != p->cross.n_splits)
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
    p->batch = batch;
    used = put_words(p, batch);
    first_logits = batch->n_logits < p->max_rows[AK_OP_ROWS_LOGITS] ?
                       batch->n_logits :
                       p->max_rows[AK_OP_ROWS_LOGITS];
    put_logit_rows(p, batch, 0, first_logits);
    write_buffer(p, p->pass, p->words, used * sizeof *p->words);
    write_buffer(p, p->angles, p->angle_rows, fill_angles(p, batch) * sizeof *p->angle_rows);
    write_input(p, batch);
    recorded = run_recorded(p, batch);
    if (!recorded)
        enqueue_launches(p, 0, p->n_before_logits);
    run_logits(p, batch, recorded);
    p->batch = NULL;
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
