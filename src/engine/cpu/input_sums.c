/* Input sums: what products are multiplied with, squared and summed per column. While they are off,
 * a pass has no step for them. A thread has a range of columns and adds the rows in their order.
 * The square of a float is exact in double, so the sums depend on the inputs alone, not on threads,
 * batches or fused multiply-adds. */
#include "base/mem.h"
#include "engine/cpu/cpu.h"

enum { UNIT = 16 }; /* columns; a thread has whole ones, so that threads share no cache line */

/* The first of the sums that a thread adds to, and what it reads for them. */
struct input {
    const struct ak_cpu_prepared *p;
    const struct ak_command *command; /* GATHER, or the linear command */
    size_t begin, end;                /* columns */
};

/* Row `row` of the product's input. */
static const float *get_row(const struct input *in, size_t row)
{
    const struct ak_command *c = in->command;
    size_t at = c->op == AK_OP_GATHER ? in->p->pass.routes.token_of[row] : row;
    return ak_cpu_slot(in->p, c->in) + at * ak_cpu_stride(in->p, c->in);
}

/* Adds rows [first, end) to the sums of one matrix. */
static void add_rows(const struct input *in, size_t first, size_t end, double *restrict squares)
{
    for (size_t row = first; row < end; row++) {
        const float *restrict x = get_row(in, row);
        for (size_t i = in->begin; i < in->end; i++)
            squares[i] += (double)x[i] * (double)x[i];
    }
}

static void add_input(const struct input *in, const struct ak_pack_weight *packed, size_t n_rows,
                      bool counts, const struct ak_backend_input_sums *sums)
{
    size_t n_matrices = packed->n_experts ? packed->n_experts : 1;
    const uint32_t *begin = in->p->pass.routes.begin;
    for (size_t m = 0; m < n_matrices; m++) {
        size_t first = packed->n_experts ? begin[m] : 0,
               end = packed->n_experts ? begin[m + 1] : n_rows;
        add_rows(in, first, end, sums->squares + m * packed->cols);
        if (counts)
            sums->counts[m] += end - first;
    }
}

void ak_cpu_step_sum_inputs(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                            unsigned thread)
{
    for (uint32_t i = 0; i < step->n_linears; i++) {
        uint32_t weight = step->linears[i].weight;
        const struct ak_pack_weight *packed = &p->weights->packed[weight];
        struct input in = { .p = p, .command = step->command };
        if (!p->input_sums[weight].squares)
            continue;
        ak_chunk_range(ak_round_up(packed->cols, UNIT) / UNIT, p->n_threads, thread, &in.begin,
                       &in.end);
        in.begin *= UNIT;
        in.end = ak_min_size(in.end * UNIT, packed->cols);
        add_input(&in, packed, ak_cpu_rows(p, step->row_set), thread == 0, &p->input_sums[weight]);
    }
}

void ak_cpu_sum_inputs(struct ak_backend_table *prepared, struct ak_backend_input_sums *sums)
{
    struct ak_cpu_prepared *p = (struct ak_cpu_prepared *)prepared;
    p->input_sums = sums;
    p->n_steps = 0;
    ak_cpu_plan_steps(p);
}
