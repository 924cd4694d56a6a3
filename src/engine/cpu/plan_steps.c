/* Turns the commands of a dispatch table into steps and decides where barriers are needed. */
#include "engine/cpu/cpu.h"

enum { STEAL_ELEMENTS_MIN = 1 << 20 }; /* weight elements per thread */

static struct ak_cpu_step *add_step(struct ak_cpu_prepared *p, ak_cpu_step_fn *run,
                                    const struct ak_command *command, enum ak_op_row_set row_set)
{
    struct ak_cpu_step *step = &p->steps[p->n_steps++];
    *step = (struct ak_cpu_step){ .run = run,
                                  .command = command,
                                  .row_set = row_set,
                                  .barrier_skinny = true,
                                  .barrier_gemm = true };
    return step;
}

static const struct ak_command *get_command(const struct ak_cpu_prepared *p, uint32_t i)
{
    return i < p->table->n_commands ? &p->table->commands[i] : NULL;
}

static bool is_linear_of(const struct ak_command *c, uint32_t in)
{
    return c && c->op == AK_OP_LINEAR && c->in == in;
}

/* Whether `next` multiplies the same input, prepared in the same way. */
static bool shares_input(const struct ak_cpu_prepared *p, const struct ak_command *linear,
                         const struct ak_command *next)
{
    return is_linear_of(next, linear->in) &&
           ak_pack_has_same_order(&p->weights->packed[linear->weight],
                                  &p->weights->packed[next->weight]);
}

/* Whether linear command i is the last to read its input, whose rows are as wide as interleaved
 * tokens. */
static bool consumes_input(const struct ak_cpu_prepared *p, uint32_t i)
{
    const struct ak_command *linear = get_command(p, i);
    const struct ak_op_slot *slots = p->table->slots, *in = &slots[linear->in];
    const struct ak_pack_weight *packed = &p->weights->packed[linear->weight];
    return in->row_set == AK_OP_ROWS_TOKENS && slots[linear->out].row_set == in->row_set &&
           in->last_use == i && !packed->order && packed->cols == in->width &&
           packed->cols % AK_LANES == 0;
}

/* Adds a step before the products of the linear commands from first_linear on, which share their
 * input. `norm` is the NORM or GATHER command that it includes, or the linear command if its input
 * is ready. */
static struct ak_cpu_step *add_input_step(struct ak_cpu_prepared *p, ak_cpu_step_fn *run,
                                          const struct ak_command *norm, uint32_t first_linear)
{
    const struct ak_command *linear = get_command(p, first_linear);
    struct ak_cpu_step *step = add_step(p, run, norm, p->table->slots[linear->in].row_set);
    step->linears = linear;
    while (shares_input(p, linear, get_command(p, first_linear + step->n_linears)))
        step->n_linears++;
    return step;
}

/* Adds the PREPARE step of these linear commands, and before it the one that sums their input. */
static void add_prepare(struct ak_cpu_prepared *p, const struct ak_command *norm,
                        uint32_t first_linear)
{
    const struct ak_command *linear = get_command(p, first_linear);
    if (p->input_sums)
        add_input_step(p, ak_cpu_step_sum_inputs, norm, first_linear);
    struct ak_cpu_step *step = add_input_step(p, ak_cpu_step_prepare, norm, first_linear);
    step->consumes_input =
        norm == linear && step->n_linears == 1 && consumes_input(p, first_linear);
    step->barrier_skinny = false; /* each thread prepares its own copy */
    if (first_linear > 0 && norm == linear && ak_cpu_can_gather_activations(p, linear - 1))
        step->gather = linear - 1;
    if (p->n_steps > 1 && step[-1].run == ak_cpu_step_norm && step[-1].command->out == linear->in)
        step[-1].barrier_gemm = false; /* both split the tokens in the same way */
}

/* Whether PREPARE includes norm i: only the linear commands right after it read its result, and all
 * of them prepare it in the same way. Input sums need the result in its slot. */
static bool is_norm_included(const struct ak_cpu_prepared *p, uint32_t i)
{
    uint32_t slot = get_command(p, i)->out, last = i;
    if (p->input_sums)
        return false;
    while (is_linear_of(get_command(p, last + 1), slot) &&
           (last == i || shares_input(p, get_command(p, i + 1), get_command(p, last + 1))))
        last++;
    return last > i && p->table->slots[slot].last_use == last;
}

static const struct ak_cpu_op *const ops[AK_OP_COUNT] = {
#define AK_OP(symbol, name, ...) [AK_OP_##symbol] = &ak_cpu_op_##name,
#include "engine/op/op.def"
#undef AK_OP
};

/* Whether all of the op is one step on a chunk of rows. */
static bool is_chunked(enum ak_op op)
{
    return ops[op]->is_chunked && !ops[op]->steps[1];
}

/* Whether `next` only needs the rows that the thread itself computed in `linear`, so that no
 * barrier is needed. */
static bool continues_on_chunk(const struct ak_cpu_prepared *p, const struct ak_command *linear,
                               const struct ak_command *next)
{
    if (!next)
        return false;
    if (shares_input(p, linear, next))
        return true;
    return is_chunked(next->op) && next->in == linear->out;
}

/* Whether nothing edits the logits that command i makes: they may be minus infinity. */
static bool makes_final_logits(const struct ak_cpu_prepared *p, uint32_t i)
{
    const struct ak_command *next = get_command(p, i + 1);
    if (next && next->op == AK_OP_COLLECT)
        next = get_command(p, i + 2);
    return !next || next->op == AK_OP_GUMBEL || next->op == AK_OP_ARGMAX;
}

/* The PREPARE step of the product that was added last. */
static const struct ak_cpu_step *find_prepare(const struct ak_cpu_prepared *p)
{
    const struct ak_cpu_step *step = &p->steps[p->n_steps - 1];
    while (step->run != ak_cpu_step_prepare)
        step--;
    return step;
}

static void add_linear(struct ak_cpu_prepared *p, uint32_t i)
{
    const struct ak_command *c = get_command(p, i);
    const struct ak_pack_weight *packed = &p->weights->packed[c->weight];
    struct ak_cpu_step *step =
        add_step(p, packed->n_experts ? ak_cpu_step_experts : ak_cpu_step_linear, c,
                 p->table->slots[c->out].row_set);
    uint64_t elements = 0;
    step->consumes_input = find_prepare(p)->consumes_input;
    for (uint32_t j = 0; j < packed->n_parts; j++) {
        elements += (uint64_t)packed->parts[j].rows * packed->cols;
        step->n_rows = packed->parts[j].rows > step->n_rows ? packed->parts[j].rows : step->n_rows;
    }
    step->is_chunked = true;
    step->is_stealable = elements / p->n_threads >= STEAL_ELEMENTS_MIN;
    if (packed->layout == AK_CPU_LAYOUT_SLICES_1 && makes_final_logits(p, i)) {
        p->pass.output.has_slices = true;
        add_step(p, ak_cpu_step_output_largest, c, step->row_set);
        add_step(p, ak_cpu_step_output_rest, c, step->row_set);
    } else {
        step->barrier_skinny = step->barrier_gemm =
            !continues_on_chunk(p, c, get_command(p, i + 1));
    }
}

static bool slots_overlap(const struct ak_table *t, uint32_t a, uint32_t b)
{
    const struct ak_op_slot *x = &t->slots[a], *y = &t->slots[b];
    return x->row_set == y->row_set && x->offset < y->offset + y->width &&
           y->offset < x->offset + x->width;
}

/* In skinny GEMM each thread prepares the activations itself, possibly late. Adds barriers, so that
 * no later step overwrites the input before all threads have read it. */
static void keep_inputs(struct ak_cpu_prepared *p)
{
    for (uint32_t i = 0; i < p->n_steps; i++) {
        struct ak_cpu_step *step = &p->steps[i];
        if (step->run != ak_cpu_step_prepare)
            continue;
        for (uint32_t j = i + 1; j < p->n_steps && !step->barrier_skinny; j++) {
            step->barrier_skinny =
                slots_overlap(p->table, p->steps[j].command->out, step->command->in);
            if (p->steps[j].barrier_skinny)
                break;
        }
    }
}

/* The same for tokens that were interleaved in the slot of the input: they are read until the end
 * of the product. */
static void keep_consumed(struct ak_cpu_prepared *p)
{
    for (uint32_t i = 0; i < p->n_steps; i++) {
        struct ak_cpu_step *step = &p->steps[i];
        for (uint32_t j = i + 1; j < p->n_steps && step->consumes_input && !step->barrier_gemm;
             j++) {
            step->barrier_gemm =
                slots_overlap(p->table, p->steps[j].command->out, step->command->in);
            if (p->steps[j].barrier_gemm)
                break;
        }
    }
}

static void add_steps(struct ak_cpu_prepared *p, const struct ak_command *c)
{
    const struct ak_cpu_op *op = ops[c->op];
    enum ak_op_row_set row_set = p->table->slots[op->has_rows_of_input ? c->in : c->out].row_set;
    const struct ak_command *gather = ak_cpu_can_gather_activations(p, c) ? c : NULL;
    struct ak_cpu_step *step = NULL;
    for (size_t i = 0; i < AK_CPU_STEPS_PER_COMMAND && op->steps[i]; i++) {
        if (op->steps[i] == ak_cpu_step_copy_shard && ak_cpu_is_in_place(p, c))
            continue; /* it is where it belongs */
        if (op->steps[i] == ak_cpu_step_quantize_shard && !gather)
            continue;
        step = add_step(p, op->steps[i], c, row_set);
        step->gather = gather;
        step->barrier_gemm = op->steps[i] != ak_cpu_step_send_shard; /* another step awaits them */
        step->barrier_skinny = step->barrier_gemm;
    }
    if (step)
        step->is_chunked = op->is_chunked;
}

static void plan_commands(struct ak_cpu_prepared *p)
{
    for (uint32_t i = 0; get_command(p, i); i++) {
        const struct ak_command *c = get_command(p, i), *before = i ? get_command(p, i - 1) : NULL;
        if (c->op == AK_OP_GATHER || (c->op == AK_OP_NORM && is_norm_included(p, i))) {
            add_prepare(p, c, i + 1);
        } else if (c->op == AK_OP_LINEAR) {
            bool after_norm = before && before->op == AK_OP_NORM && before->out == c->in &&
                              is_norm_included(p, i - 1);
            after_norm = after_norm || (before && before->op == AK_OP_GATHER);
            bool after_linear = before && before->op == AK_OP_LINEAR && shares_input(p, before, c);
            if (!after_norm && !after_linear)
                add_prepare(p, c, i);
            add_linear(p, i);
        } else {
            add_steps(p, c);
        }
    }
}

void ak_cpu_plan_steps(struct ak_cpu_prepared *p)
{
    plan_commands(p);
    keep_inputs(p);
    keep_consumed(p);
}
