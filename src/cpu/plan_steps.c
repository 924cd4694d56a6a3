/* Turns the commands of a dispatch table into steps and decides where barriers are needed. */
#include "cpu/cpu.h"

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

/* Adds the PREPARE step of the linear commands from first_linear on. `norm` is the NORM or GATHER
 * command that it includes, or the linear command if its input is ready. */
static void add_prepare(struct ak_cpu_prepared *p, const struct ak_command *norm,
                        uint32_t first_linear)
{
    const struct ak_command *linear = get_command(p, first_linear);
    struct ak_cpu_step *step =
        add_step(p, ak_cpu_step_prepare, norm, p->table->slots[linear->in].row_set);
    step->linears = linear;
    while (shares_input(p, linear, get_command(p, first_linear + step->n_linears)))
        step->n_linears++;
    step->barrier_skinny = false; /* each thread prepares its own copy */
    if (p->n_steps > 1 && step[-1].run == ak_cpu_step_norm && step[-1].command->out == linear->in)
        step[-1].barrier_gemm = false; /* both split the tokens in the same way */
}

/* Whether only the linear commands right after command i read its result, and all of them prepare
 * it in the same way. */
static bool feeds_linears_only(const struct ak_cpu_prepared *p, uint32_t i)
{
    uint32_t slot = get_command(p, i)->out, last = i;
    while (is_linear_of(get_command(p, last + 1), slot) &&
           (last == i || shares_input(p, get_command(p, i + 1), get_command(p, last + 1))))
        last++;
    return last > i && p->table->slots[slot].last_use == last;
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
    switch (next->op) {
    case AK_OP_ADD:
    case AK_OP_GATED:
    case AK_OP_ACTIVATE:
    case AK_OP_COMBINE:
    case AK_OP_DIVIDE:
    case AK_OP_CAP: return next->in == linear->out;
    default: return false;
    }
}

static void add_linear(struct ak_cpu_prepared *p, uint32_t i)
{
    const struct ak_command *c = get_command(p, i);
    const struct ak_pack_weight *packed = &p->weights->packed[c->weight];
    struct ak_cpu_step *step =
        add_step(p, packed->n_experts ? ak_cpu_step_experts : ak_cpu_step_linear, c,
                 p->table->slots[c->out].row_set);
    uint64_t elements = 0;
    for (uint32_t j = 0; j < packed->n_parts; j++) {
        elements += (uint64_t)packed->parts[j].rows * packed->cols;
        step->n_rows = packed->parts[j].rows > step->n_rows ? packed->parts[j].rows : step->n_rows;
    }
    step->barrier_skinny = step->barrier_gemm = !continues_on_chunk(p, c, get_command(p, i + 1));
    step->is_chunked = true;
    step->is_stealable = elements / p->n_threads >= STEAL_ELEMENTS_MIN;
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

static void plan_commands(struct ak_cpu_prepared *p)
{
    for (uint32_t i = 0; get_command(p, i); i++) {
        const struct ak_command *c = get_command(p, i), *before = i ? get_command(p, i - 1) : NULL;
        enum ak_op_row_set row_set = p->table->slots[c->out].row_set;
        switch (c->op) {
        case AK_OP_EMBED: add_step(p, ak_cpu_step_embed, c, row_set); break;
        case AK_OP_NORM:
            if (feeds_linears_only(p, i))
                add_prepare(p, c, i + 1);
            else
                add_step(p, ak_cpu_step_norm, c, row_set);
            break;
        case AK_OP_LINEAR: {
            bool after_norm = before && before->op == AK_OP_NORM && before->out == c->in &&
                              feeds_linears_only(p, i - 1);
            after_norm = after_norm || (before && before->op == AK_OP_GATHER);
            bool after_linear = before && before->op == AK_OP_LINEAR && shares_input(p, before, c);
            if (!after_norm && !after_linear)
                add_prepare(p, c, i);
            add_linear(p, i);
            break;
        }
        case AK_OP_QKV: add_step(p, ak_cpu_step_qkv, c, row_set); break;
        case AK_OP_SHORT_CONV: add_step(p, ak_cpu_step_short_conv, c, row_set); break;
        case AK_OP_CONV: add_step(p, ak_cpu_step_conv, c, row_set); break;
        case AK_OP_DELTA:
            add_step(p, ak_cpu_step_delta_gates, c, row_set);
            add_step(p, ak_cpu_step_delta, c, row_set);
            break;
        case AK_OP_NORM_GATED: add_step(p, ak_cpu_step_norm_gated, c, row_set); break;
        case AK_OP_ATTENTION: add_step(p, ak_cpu_step_attention, c, row_set); break;
        case AK_OP_GATED: add_step(p, ak_cpu_step_gated, c, row_set)->is_chunked = true; break;
        case AK_OP_ACTIVATE:
            add_step(p, ak_cpu_step_activate, c, row_set)->is_chunked = true;
            break;
        case AK_OP_ROUTE:
            add_step(p, ak_cpu_step_route, c, row_set);
            add_step(p, ak_cpu_step_route_end, c, row_set);
            break;
        case AK_OP_GATHER: add_prepare(p, c, i + 1); break;
        case AK_OP_COMBINE:
            add_step(p, ak_cpu_step_combine, c, p->table->slots[c->in].row_set)->is_chunked = true;
            break;
        case AK_OP_ADD_GATED:
            add_step(p, ak_cpu_step_gate, c, row_set);
            add_step(p, ak_cpu_step_add_gated, c, row_set)->is_chunked = true;
            break;
        case AK_OP_ADD: add_step(p, ak_cpu_step_add, c, row_set)->is_chunked = true; break;
        case AK_OP_SELECT: add_step(p, ak_cpu_step_select, c, row_set); break;
        case AK_OP_DIVIDE: add_step(p, ak_cpu_step_divide, c, row_set)->is_chunked = true; break;
        case AK_OP_CAP: add_step(p, ak_cpu_step_cap, c, row_set)->is_chunked = true; break;
        case AK_OP_GUMBEL: add_step(p, ak_cpu_step_gumbel, c, row_set); break;
        case AK_OP_ARGMAX:
            add_step(p, ak_cpu_step_argmax, c, row_set);
            add_step(p, ak_cpu_step_argmax_end, c, row_set);
            break;
        case AK_OP_COUNT: break;
        }
    }
}

void ak_cpu_plan_steps(struct ak_cpu_prepared *p)
{
    plan_commands(p);
    keep_inputs(p);
}
