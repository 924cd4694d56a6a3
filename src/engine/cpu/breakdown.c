/* Times of the steps of passes, by kind of operation: what akunu-cli bench --breakdown shows. Off,
 * a step costs one test of a pointer. */
#include <math.h>

#include "base/mem.h"
#include "base/system.h"
#include "engine/cpu/cpu.h"

enum { PREPARE = AK_OP_COUNT + AK_OP_LINEAR_COUNT, KINDS };

struct thread_times {
    double seconds[KINDS], wait[KINDS];
};

/* Sums since the times were switched on. */
struct ak_cpu_times {
    struct thread_times *threads;
    /* of the first thread's steps, which all threads run */
    uint64_t calls[KINDS];
    double bytes[KINDS], ops[KINDS];
};

static unsigned kind_of(const struct ak_cpu_prepared *p, const struct ak_cpu_step *step)
{
    if (step->run == ak_cpu_step_prepare)
        return PREPARE;
    if (step->command->op == AK_OP_LINEAR)
        return AK_OP_COUNT + p->weights->packed[step->command->weight].linear;
    return step->command->op;
}

static const char *kind_name(unsigned kind)
{
    static const char *const linears[AK_OP_LINEAR_COUNT] = {
#define AK_LINEAR(symbol, name, n_parts, ...) [AK_OP_LINEAR_##symbol] = "linear " name,
#include "engine/op/linear.def"
#undef AK_LINEAR
    };
    return kind == PREPARE    ? "norm, quantize" :
           kind < AK_OP_COUNT ? ak_op_name((enum ak_op)kind) :
                                linears[kind - AK_OP_COUNT];
}

/* Matrices of a weight that the pass reads. */
static double count_matrices(const struct ak_cpu_prepared *p, const struct ak_pack_weight *packed)
{
    double n = 0.0;
    for (uint32_t e = 0; e < packed->n_experts; e++)
        n += p->pass.routes.begin[e + 1] > p->pass.routes.begin[e];
    return packed->n_experts ? n / packed->n_experts : 1.0;
}

static void count_linear(struct ak_cpu_times *t, const struct ak_cpu_prepared *p, unsigned kind,
                         const struct ak_cpu_step *step)
{
    const struct ak_pack_weight *packed = &p->weights->packed[step->command->weight];
    double elements = 0.0;
    for (uint32_t i = 0; i < packed->n_parts; i++)
        elements += (double)packed->parts[i].rows * packed->cols;
    enum ak_quant_type type = ak_cpu_wants_best(p, step) ? AK_QUANT_Q5_0 : packed->type;
    double bytes = elements * ak_quant_info(type)->block_bytes / ak_quant_info(type)->block_elems;
    t->bytes[kind] += bytes * count_matrices(p, packed);
    t->ops[kind] += 2.0 * elements / (packed->n_experts ? packed->n_experts : 1) *
                    ak_cpu_rows(p, step->row_set) * ak_cpu_n_terms(packed);
}

/* Keys and values that the tokens of a block read, and the products with those that each sees. */
static void count_attention(struct ak_cpu_times *t, const struct ak_cpu_prepared *p, unsigned kind,
                            const struct ak_op_attention_params *a)
{
    bool sees_all = a->bidirectional || a->cross;
    uint32_t n_blocks;
    const struct ak_cpu_token_block *block = ak_cpu_blocks(p, a, &n_blocks),
                                    *stop = block + n_blocks;
    for (; block < stop; block++) {
        uint32_t end = sees_all ? block->end : p->pass.batch->positions[block->first] + block->n;
        double read = end, seen = sees_all ? end : end - (block->n - 1) / 2.0;
        if (a->window) {
            read = fmin(read, (double)a->window + block->n - 1);
            seen = fmin(seen, a->window);
        }
        t->bytes[kind] += read / AK_KV_PAGE_TOKENS * (double)p->kv.head_bytes * a->n_kv_heads;
        t->ops[kind] += 4.0 * seen * block->n * a->head_dim * a->n_heads;
    }
}

static void count(struct ak_cpu_times *t, const struct ak_cpu_prepared *p, unsigned kind,
                  const struct ak_cpu_step *step)
{
    bool is_product = kind >= AK_OP_COUNT && kind < PREPARE;
    if (is_product && step->n_rows == 0)
        return; /* a further step of the output */
    t->calls[kind]++;
    if (is_product)
        count_linear(t, p, kind, step);
    else if (kind == AK_OP_ATTENTION)
        count_attention(t, p, kind, &step->command->params.attention);
}

void ak_cpu_time_step(struct ak_cpu_prepared *p, const struct ak_cpu_step *step, unsigned thread)
{
    unsigned kind = kind_of(p, step);
    bool is_first = p->memory.scratch[thread].chunk == 0 || !step->is_chunked;
    double start = ak_seconds();
    step->run(step, p, thread);
    p->times->threads[thread].seconds[kind] += ak_seconds() - start;
    if (thread == 0 && is_first)
        count(p->times, p, kind, step);
}

void ak_cpu_time_barrier(struct ak_cpu_prepared *p, const struct ak_cpu_step *step, unsigned thread)
{
    double start = ak_seconds();
    ak_pool_barrier(p->pool, thread);
    p->times->threads[thread].wait[kind_of(p, step)] += ak_seconds() - start;
}

/* ---- Vtable ------------------------------------------------------------- */
void ak_cpu_free_times(struct ak_cpu_prepared *p)
{
    if (p->times)
        ak_free(p->times->threads);
    ak_free(p->times);
    p->times = NULL;
}

bool ak_cpu_enable_times(struct ak_backend_table *prepared, bool on)
{
    struct ak_cpu_prepared *p = (struct ak_cpu_prepared *)prepared;
    ak_cpu_free_times(p);
    if (!on)
        return true;
    p->times = ak_alloc(1, sizeof *p->times);
    if (p->times && !(p->times->threads = ak_alloc(p->n_threads, sizeof *p->times->threads)))
        ak_cpu_free_times(p);
    return p->times != NULL;
}

bool ak_cpu_get_time(const struct ak_backend_table *prepared, size_t i, struct ak_backend_time *out)
{
    const struct ak_cpu_prepared *p = (const struct ak_cpu_prepared *)prepared;
    *out = (struct ak_backend_time){ 0 };
    if (!p->times || i >= KINDS)
        return false;
    out->name = kind_name((unsigned)i);
    out->calls = p->times->calls[i];
    out->bytes = p->times->bytes[i];
    out->ops = p->times->ops[i];
    for (unsigned thread = 0; thread < p->n_threads; thread++) {
        out->seconds += p->times->threads[thread].seconds[i] / p->n_threads;
        out->wait_seconds += p->times->threads[thread].wait[i] / p->n_threads;
    }
    return true;
}
