/* Turns commands into steps and says where barriers are needed. */
#include "cpu/cpu.h"

enum { WORTH_STEALING = 1 << 20 }; /* elements of a thread's part of a weight */

static struct ak_cpu_step *add(struct ak_cpu_prepared *p, ak_step_fn *run,
                               const struct ak_command *command, enum ak_op_row_set row_set)
{
    struct ak_cpu_step *step = &p->steps[p->n_steps++];
    *step = (struct ak_cpu_step){ .run = run,
                                  .command = command,
                                  .row_set = row_set,
                                  .barrier_few = true,
                                  .barrier_many = true };
    return step;
}

static const struct ak_command *at(const struct ak_cpu_prepared *p, uint32_t i)
{
    return i < p->table->n_commands ? &p->table->commands[i] : NULL;
}

static bool is_linear_of(const struct ak_command *c, uint32_t in)
{
    return c && c->op == AK_OP_LINEAR && c->in == in;
}

/* Whether `next` is a product of the same input, prepared in the same way. */
static bool shares_input(const struct ak_cpu_prepared *p, const struct ak_command *linear,
                         const struct ak_command *next)
{
    return is_linear_of(next, linear->in) &&
           ak_packed_same_order(&p->weights->packed[linear->weight],
                                &p->weights->packed[next->weight]);
}

/* `norm` is a NORM or GATHER command, or the linear one itself where its input is
 * ready. */
static void add_prepare(struct ak_cpu_prepared *p, const struct ak_command *norm,
                        uint32_t first_linear)
{
    const struct ak_command *linear = at(p, first_linear);
    struct ak_cpu_step *step = add(p, ak_step_prepare, norm, p->table->slots[linear->in].row_set);
    step->linears = linear;
    while (shares_input(p, linear, at(p, first_linear + step->n_linears)))
        step->n_linears++;
    step->barrier_few = false; /* each thread has made its own */
    if (p->n_steps > 1 && step[-1].run == ak_step_norm && step[-1].command->out == linear->in)
        step[-1].barrier_many = false; /* both split the tokens alike */
}

/* Whether the value that command i makes goes to the linear commands after it
 * and nowhere else, and all take it alike. */
static bool feeds_linears_only(const struct ak_cpu_prepared *p, uint32_t i)
{
    uint32_t slot = at(p, i)->out, last = i;
    while (is_linear_of(at(p, last + 1), slot) &&
           (last == i || shares_input(p, at(p, i + 1), at(p, last + 1))))
        last++;
    return last > i && p->table->slots[slot].last_use == last;
}

/* What command `next` does with its own rows of what the linear command made
 * needs no barrier. */
static bool continues_on_own_rows(const struct ak_cpu_prepared *p, const struct ak_command *linear,
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
    const struct ak_command *c = at(p, i);
    const struct ak_packed *packed = &p->weights->packed[c->weight];
    struct ak_cpu_step *step = add(p, packed->n_experts ? ak_step_experts : ak_step_linear, c,
                                   p->table->slots[c->out].row_set);
    uint64_t elements = 0;
    for (uint32_t j = 0; j < packed->n_parts; j++) {
        elements += (uint64_t)packed->parts[j].rows * packed->cols;
        step->n_rows = packed->parts[j].rows > step->n_rows ? packed->parts[j].rows : step->n_rows;
    }
    step->barrier_few = step->barrier_many = !continues_on_own_rows(p, c, at(p, i + 1));
    step->on_rows = true;
    step->steal = elements / p->n_threads >= WORTH_STEALING;
}

static bool overlap(const struct ak_table *t, uint32_t a, uint32_t b)
{
    const struct ak_slot *x = &t->slots[a], *y = &t->slots[b];
    return x->row_set == y->row_set && x->place < y->place + y->width &&
           y->place < x->place + x->width;
}

/* Where tokens are few every thread reads what its activations are made of by itself,
 * later than the table has it: then nobody may be so far as to write there. */
static void keep_inputs(struct ak_cpu_prepared *p)
{
    for (uint32_t i = 0; i < p->n_steps; i++) {
        struct ak_cpu_step *step = &p->steps[i];
        if (step->run != ak_step_prepare)
            continue;
        for (uint32_t j = i + 1; j < p->n_steps && !step->barrier_few; j++) {
            step->barrier_few = overlap(p->table, p->steps[j].command->out, step->command->in);
            if (p->steps[j].barrier_few)
                break;
        }
    }
}

static void plan(struct ak_cpu_prepared *p)
{
    for (uint32_t i = 0; at(p, i); i++) {
        const struct ak_command *c = at(p, i), *before = i ? at(p, i - 1) : NULL;
        enum ak_op_row_set row_set = p->table->slots[c->out].row_set;
        switch (c->op) {
        case AK_OP_EMBED: add(p, ak_step_embed, c, row_set); break;
        case AK_OP_NORM:
            if (feeds_linears_only(p, i))
                add_prepare(p, c, i + 1);
            else
                add(p, ak_step_norm, c, row_set);
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
        case AK_OP_QKV: add(p, ak_step_qkv, c, row_set); break;
        case AK_OP_SHORT_CONV: add(p, ak_step_short_conv, c, row_set); break;
        case AK_OP_CONV: add(p, ak_step_conv, c, row_set); break;
        case AK_OP_DELTA:
            add(p, ak_step_delta_gates, c, row_set);
            add(p, ak_step_delta, c, row_set);
            break;
        case AK_OP_NORM_GATED: add(p, ak_step_norm_gated, c, row_set); break;
        case AK_OP_ATTENTION: add(p, ak_step_attention, c, row_set); break;
        case AK_OP_GATED: add(p, ak_step_gated, c, row_set)->on_rows = true; break;
        case AK_OP_ACTIVATE: add(p, ak_step_activate, c, row_set)->on_rows = true; break;
        case AK_OP_ROUTE:
            add(p, ak_step_route, c, row_set);
            add(p, ak_step_route_end, c, row_set);
            break;
        case AK_OP_GATHER: add_prepare(p, c, i + 1); break;
        case AK_OP_COMBINE:
            add(p, ak_step_combine, c, p->table->slots[c->in].row_set)->on_rows = true;
            break;
        case AK_OP_ADD_GATED:
            add(p, ak_step_gate, c, row_set);
            add(p, ak_step_add_gated, c, row_set)->on_rows = true;
            break;
        case AK_OP_ADD: add(p, ak_step_add, c, row_set)->on_rows = true; break;
        case AK_OP_SELECT: add(p, ak_step_select, c, row_set); break;
        case AK_OP_DIVIDE: add(p, ak_step_divide, c, row_set)->on_rows = true; break;
        case AK_OP_CAP: add(p, ak_step_cap, c, row_set)->on_rows = true; break;
        case AK_OP_GUMBEL: add(p, ak_step_gumbel, c, row_set); break;
        case AK_OP_ARGMAX:
            add(p, ak_step_argmax, c, row_set);
            add(p, ak_step_argmax_end, c, row_set);
            break;
        case AK_OP_COUNT: break;
        }
    }
}

void ak_cpu_plan_steps(struct ak_cpu_prepared *p)
{
    plan(p);
    keep_inputs(p);
}
