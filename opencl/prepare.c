/* Prepares a table for a session: sizes and allocates all buffers, then makes the launches. */
#include <string.h>

#include "base/mem.h"
#include "opencl/opencl.h"

static ak_status create_buffer(struct ak_ocl_table *p, uint64_t bytes, const char *what,
                               cl_mem *out, struct ak_error *error)
{
    AK_TRY(ak_ocl_create_buffer(p->o, bytes, what, out, error));
    p->memory_bytes += bytes;
    return AKUNU_OK;
}

static uint32_t count_sequences(const struct ak_backend_table_options *options)
{
    return options->kv.n_states ? options->kv.n_states : 1;
}

/* Plans where each list begins in the words of a pass. */
static void lay_out_words(struct ak_ocl_table *p, const struct ak_backend_table_options *options)
{
    uint32_t tokens = options->max_tokens, experts = p->max_rows[AK_OP_ROWS_EXPERTS],
             n_experts = p->spec->config.n_experts, at = AK_OCL_PASS_HEADER;
    const struct {
        uint32_t word, n;
    } lists[] = {
        { AK_OCL_PASS_POSITIONS, tokens },
        { AK_OCL_PASS_TABLES, tokens },
        { AK_OCL_PASS_ENDS, tokens },
        { AK_OCL_PASS_STATES, tokens },
        { AK_OCL_PASS_LOGIT_ROWS, p->max_rows[AK_OP_ROWS_LOGITS] },
        { AK_OCL_PASS_BLOCKS, 2 * tokens },
        { AK_OCL_PASS_CROSS_TABLES, p->is_crossing ? tokens : 0 },
        { AK_OCL_PASS_CROSS_ENDS, p->is_crossing ? tokens : 0 },
        { AK_OCL_PASS_CROSS_BLOCKS, p->is_crossing ? 2 * tokens : 0 },
        { AK_OCL_PASS_RUNS, p->input_command->op == AK_OP_FRAMES ? tokens : 0 },
        { AK_OCL_PASS_EXPERT_OF, experts },
        { AK_OCL_PASS_TOKEN_OF, experts },
        { AK_OCL_PASS_ROW_OF, experts },
        { AK_OCL_PASS_EXPERT_BEGIN, experts ? n_experts + 1 : 0 },
        { AK_OCL_PASS_EXPERT_GROUPS,
          experts ? 1 + 2 * (experts / (16 * p->o->tile) + n_experts) : 0 },
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        p->words_at[lists[i].word] = at;
        at += lists[i].n;
    }
    p->words_fixed = at;
    p->words_capacity =
        at + options->kv.n_pages * count_sequences(options) * (p->is_crossing ? 2u : 1u);
}

/* Floats that a pass brings: rows of the tokens' embeddings, or the frames of all windows. */
static uint64_t count_input(const struct ak_ocl_table *p,
                            const struct ak_backend_table_options *options)
{
    const struct ak_op_frames_params *f = &p->input_command->params.frames;
    uint64_t tokens = options->max_tokens, windows = count_sequences(options);
    if (p->input_command->op == AK_OP_EMBED)
        return tokens * p->spec->config.width;
    return tokens * f->step + (windows < tokens ? windows : tokens) * (f->n - f->step);
}

/* Floats of the longest row that some weight reads in another order. */
static size_t ordered_row(const struct ak_weights *weights)
{
    size_t max = 0;
    for (uint32_t i = 0; i < weights->n_packed; i++)
        if (weights->packed[i].order && ak_ocl_ordered_stride(weights->packed[i].cols) > max)
            max = ak_ocl_ordered_stride(weights->packed[i].cols);
    return max;
}

/* A buffer of a session. */
struct scratch {
    const char *what;
    uint64_t bytes;
    cl_mem *memory;
};
enum { SCRATCH_MAX = AK_OP_ROWS_COUNT + 7 };

static uint32_t list_scratch(struct ak_ocl_table *p, const struct ak_backend_table_options *options,
                             struct scratch out[SCRATCH_MAX])
{
    static const char *const names[AK_OP_ROWS_COUNT] = { "the activations", "the logits",
                                                         "the experts' activations" };
    const struct ak_spec_config *config = &p->spec->config;
    uint64_t tokens = options->max_tokens,
             rows = tokens > options->max_logits ? tokens : options->max_logits;
    uint32_t n = 0;
    for (int d = 0; d < AK_OP_ROWS_COUNT; d++)
        out[n++] =
            (struct scratch){ names[d],
                              (uint64_t)p->max_rows[d] * p->table->arena_width[d] * sizeof(float),
                              &p->arena[d] };
    out[n++] = (struct scratch){ "the pass", p->words_capacity * sizeof(cl_int), &p->pass };
    out[n++] = (struct scratch){ p->input_command->op == AK_OP_EMBED ? "the tokens' embeddings" :
                                                                       "the frames",
                                 count_input(p, options) * sizeof(float), &p->input };
    out[n++] = (struct scratch){ "the rotations",
                                 tokens * (config->rope_dims / 2) * 2 * p->spec->n_rotations *
                                     sizeof(float),
                                 &p->angles };
    out[n++] = (struct scratch){ "attention",
                                 (uint64_t)AK_OCL_SKINNY_MAX * config->n_heads * AK_OCL_SPLITS_MAX *
                                     (config->head_dim + 2) * sizeof(float),
                                 &p->partials };
    out[n++] = (struct scratch){ "activations in order",
                                 rows * ordered_row(p->weights) * sizeof(float), &p->ordered };
    out[n++] =
        (struct scratch){ "the sampled tokens", p->max_rows[AK_OP_ROWS_LOGITS] * sizeof(cl_int),
                          &p->sampled_memory };
    if (p->is_crossing)
        out[n++] = (struct scratch){ "scores of cross-attention",
                                     tokens * config->encoder_context * sizeof(float), &p->scores };
    return n;
}

/* Sets what the sizes of buffers follow from. */
static void count_rows(struct ak_ocl_table *p, const struct ak_backend_table_options *options)
{
    const struct ak_table *table = p->table;
    p->input_command = table->commands;
    while (p->input_command->op != AK_OP_EMBED && p->input_command->op != AK_OP_FRAMES)
        p->input_command++;
    for (uint32_t i = 0; i < table->n_commands; i++)
        p->is_crossing = p->is_crossing || (table->commands[i].op == AK_OP_ATTENTION &&
                                            table->commands[i].params.attention.cross);
    p->max_rows[AK_OP_ROWS_TOKENS] = options->max_tokens;
    p->max_rows[AK_OP_ROWS_LOGITS] =
        options->max_logits < AK_OCL_LOGIT_ROWS ? options->max_logits : AK_OCL_LOGIT_ROWS;
    if (p->table->arena_width[AK_OP_ROWS_EXPERTS] > 0)
        p->max_rows[AK_OP_ROWS_EXPERTS] = options->max_tokens * p->spec->config.n_experts_used;
}

uint64_t ak_ocl_scratch_bytes(struct ak_ocl *o, const struct ak_table *table,
                              const struct ak_weights *weights, const struct ak_spec *spec,
                              const struct ak_backend_table_options *options)
{
    struct ak_ocl_table p = { .o = o, .table = table, .weights = weights, .spec = spec };
    struct scratch scratch[SCRATCH_MAX];
    uint64_t bytes = 0;
    count_rows(&p, options);
    lay_out_words(&p, options);
    for (uint32_t i = list_scratch(&p, options, scratch); i > 0; i--)
        bytes += scratch[i - 1].bytes;
    return bytes;
}

static ak_status allocate_buffers(struct ak_ocl_table *p,
                                  const struct ak_backend_table_options *options,
                                  struct ak_error *error)
{
    const struct ak_spec_config *config = &p->spec->config;
    size_t width = p->table->slots[p->table->logits].width, half = config->rope_dims / 2,
           tokens = options->max_tokens,
           embedded = p->input_command->op == AK_OP_EMBED ? tokens : 0;
    struct scratch scratch[SCRATCH_MAX];
    uint32_t n = list_scratch(p, options, scratch);
    for (uint32_t i = 0; i < n; i++)
        AK_TRY(create_buffer(p, scratch[i].bytes, scratch[i].what, scratch[i].memory, error));
    p->words = ak_alloc(p->words_capacity, sizeof *p->words);
    p->embedding_rows = ak_alloc(embedded * config->width, sizeof *p->embedding_rows);
    p->row = ak_alloc(config->width, sizeof *p->row);
    p->angle_rows = ak_alloc(tokens * half * 2 * p->spec->n_rotations, sizeof *p->angle_rows);
    p->sampled = ak_alloc(p->max_logits, sizeof *p->sampled);
    p->launches = ak_alloc((size_t)p->table->n_commands * AK_OCL_LAUNCHES_MAX, sizeof *p->launches);
    if (!ak_mul_size(width * sizeof(float), p->max_logits, &p->logits_bytes) || !p->words ||
        !p->embedding_rows || !p->row || !p->angle_rows || !p->sampled || !p->launches ||
        !(p->logits = ak_pages_alloc(p->logits_bytes)))
        return ak_fail_memory(error, "a session on an OpenCL device", p->logits_bytes);
    return AKUNU_OK;
}

static ak_status check_model(const struct ak_ocl_table *p, struct ak_error *error)
{
    if (p->spec->config.head_dim > AK_OCL_HEAD_MAX)
        return ak_fail(
            error, AKUNU_ERROR_UNSUPPORTED,
            "the opencl backend has attention heads of up to %d elements; this model's have %u",
            AK_OCL_HEAD_MAX, (unsigned)p->spec->config.head_dim);
    return AKUNU_OK;
}

static ak_status set_up(struct ak_ocl_table *p, const struct ak_backend_table_options *options,
                        struct ak_error *error)
{
    cl_int code;
    AK_TRY(check_model(p, error));
    AK_TRY(ak_ocl_upload(p->o, p->weights, error));
    AK_TRY(ak_ocl_build_rows(p->o, &p->rows, error));
    AK_TRY(
        ak_ocl_build_attention(p->o, options->kv.k_type, options->kv.v_type, &p->attention, error));
    lay_out_words(p, options);
    AK_TRY(allocate_buffers(p, options, error));
    p->queue = p->o->cl->clCreateCommandQueue(p->o->context, p->o->device.id, 0, &code);
    if (code != CL_SUCCESS)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s gives no queue: %s", p->o->device.name,
                       ak_ocl_error_name(code));
    return ak_ocl_add_launches(p, error);
}

ak_status ak_ocl_prepare(struct ak_backend *b, const struct ak_table *table,
                         const struct ak_weights *weights, const struct ak_spec *spec,
                         const struct ak_backend_table_options *options, void *kv,
                         struct ak_backend_table **out, struct ak_error *error)
{
    struct ak_ocl_table *p = ak_alloc(1, sizeof *p);
    if (!p)
        return ak_fail_memory(error, "a session", sizeof *p);
    p->o = (struct ak_ocl *)b;
    p->table = table;
    p->weights = weights;
    p->spec = spec;
    p->context = options->context;
    p->max_logits = options->max_logits;
    count_rows(p, options);
    p->kv = kv;
    p->n_kv_layers = options->kv.n_layers;
    p->states_at = ak_kv_state_offset(&options->kv, 0) / sizeof(float);
    p->state_elems = options->kv.state_elems;
    p->keys_bytes = ak_kv_k_bytes(&options->kv);
    p->keys_wait = ak_quant_info(ak_kv_stored_type(options->kv.k_type))->block_elems > 1;
    p->head_bytes = p->keys_bytes + ak_kv_v_bytes(&options->kv);
    ak_table_rope_frequencies(spec, options->context, p->frequencies);
    ak_status status = set_up(p, options, error);
    if (status != AKUNU_OK) {
        ak_ocl_release((struct ak_backend_table *)p);
        return status;
    }
    *out = (struct ak_backend_table *)p;
    return AKUNU_OK;
}

void ak_ocl_release(struct ak_backend_table *prepared)
{
    struct ak_ocl_table *p = (struct ak_ocl_table *)prepared;
    if (!p)
        return;
    const struct ak_ocl_api *cl = p->o->cl;
    if (p->queue) {
        cl->clFinish(p->queue);
        ak_ocl_drop_recording(p);
        cl->clReleaseCommandQueue(p->queue);
    }
    for (uint32_t i = 0; i < p->n_launches; i++)
        for (uint32_t j = 0; j < p->launches[i].n_kernels; j++)
            cl->clReleaseKernel(p->launches[i].kernels[j]);
    const cl_mem buffers[] = {
        p->arena[0], p->arena[1], p->arena[2], p->pass,           p->input,
        p->angles,   p->partials, p->ordered,  p->sampled_memory, p->scores
    };
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i])
            cl->clReleaseMemObject(buffers[i]);
    if (p->logits)
        ak_pages_free(p->logits, p->logits_bytes);
    ak_free(p->words);
    ak_free(p->embedding_rows);
    ak_free(p->angle_rows);
    ak_free(p->row);
    ak_free(p->sampled);
    ak_free(p->launches);
    ak_free(p);
}
