/* The table as text: the same for every backend and machine, so that tests can compare it with
 * golden files. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "engine/dispatch/table.h"

static const char *const activations[] = { [AK_OP_ACTIVATION_SILU] = "silu",
                                           [AK_OP_ACTIVATION_GELU_TANH] = "gelu_tanh",
                                           [AK_OP_ACTIVATION_GELU_ERF] = "gelu_erf",
                                           [AK_OP_ACTIVATION_SWIGLU_CLAMPED] = "swiglu_clamped",
                                           [AK_OP_ACTIVATION_RELU] = "relu" };

static void dump_nonzero(FILE *f, const char *label, float value)
{
    if (value != 0.0f)
        fprintf(f, " %s=%.9g", label, (double)value);
}

static void dump_vector(FILE *f, const char *label, const struct ak_weights *w, uint32_t vector)
{
    char name[AK_ROLE_NAME_BYTES];
    if (vector != AK_OP_NONE)
        fprintf(f, " %s=%s", label,
                ak_role_name(w->vectors[vector].role, w->vectors[vector].layer, name));
}

/* Shown only if it is not the layer itself. */
static void dump_kv_layer(FILE *f, const struct ak_command *c, uint32_t kv_layer)
{
    if (kv_layer != (uint32_t)c->layer)
        fprintf(f, " kv_layer=%u", kv_layer);
}

static void dump_linear(FILE *f, const struct ak_command *c, const struct ak_weights *w)
{
    const struct ak_pack_weight *packed = &w->packed[c->weight];
    fprintf(f, " weight=%s[", ak_op_linear_info(packed->linear)->name);
    for (uint32_t i = 0; i < packed->n_parts; i++)
        fprintf(f, "%s%u", i ? "+" : "", packed->parts[i].rows);
    fprintf(f, ", %u] at=%u", packed->cols, c->params.linear.offset);
    fputs(packed->order ? " ordered" : "", f);
    dump_vector(f, "bias", w, c->vector);
}

static void dump_params(FILE *f, const struct ak_command *c, const struct ak_weights *w)
{
    switch (c->op) {
    case AK_OP_EMBED:
        fprintf(f, " scale=%.9g%s%s", (double)c->params.embed.scale,
                c->params.embed.types ? " types" : "",
                c->params.embed.positions ? " positions" : "");
        if (c->params.embed.first_position > 0)
            fprintf(f, " from=%u", c->params.embed.first_position);
        break;
    case AK_OP_FRAMES:
        fprintf(f, " step=%u n=%u", c->params.frames.step, c->params.frames.n);
        break;
    case AK_OP_ADD_POSITION: fprintf(f, " n=%u", c->params.add_position.n); break;
    case AK_OP_PREVIOUS: fprintf(f, " n=%u", c->params.previous.n); break;
    case AK_OP_NORM:
        dump_vector(f, "vector", w, c->vector);
        dump_vector(f, "bias", w, c->vector2);
        if (c->in == c->out)
            fprintf(f, " at=%u", c->params.norm.offset);
        fprintf(f, " n=%u eps=%.9g", c->params.norm.n, (double)c->params.norm.eps);
        fputs(c->params.norm.layer_norm ? " layer_norm" : "", f);
        break;
    case AK_OP_LINEAR: dump_linear(f, c, w); break;
    case AK_OP_QKV: {
        const struct ak_op_qkv_params *p = &c->params.qkv;
        fprintf(f, " at=%u,%u,%u heads=%u/%u head_dim=%u rope=%u%s", p->q_at, p->k_at, p->v_at,
                p->n_heads, p->n_kv_heads, p->head_dim, p->rope_dims,
                p->interleaved ? " interleaved" : " halves");
        if (p->rope_table > 0)
            fprintf(f, " table=%u", p->rope_table);
        dump_vector(f, "q_norm", w, c->vector);
        dump_vector(f, "k_norm", w, c->vector2);
        dump_kv_layer(f, c, p->kv_layer);
        break;
    }
    case AK_OP_ATTENTION: {
        const struct ak_op_attention_params *p = &c->params.attention;
        fprintf(f, " at=%u heads=%u/%u head_dim=%u window=%u scale=%.9g", p->q_at, p->n_heads,
                p->n_kv_heads, p->head_dim, p->window, (double)p->scale);
        dump_nonzero(f, "cap", p->cap);
        fputs(p->bidirectional ? " both_ways" : "", f);
        fputs(p->cross ? " cross" : "", f);
        fputs(p->alibi ? " alibi" : "", f);
        fputs(p->gated ? " gated" : "", f);
        dump_vector(f, "sinks", w, c->vector);
        dump_kv_layer(f, c, p->kv_layer);
        break;
    }
    case AK_OP_SHORT_CONV:
        fprintf(f, " taps=%u state=%llu n=%u", c->params.short_conv.taps,
                (unsigned long long)c->params.short_conv.state_at, c->params.short_conv.n);
        dump_vector(f, "kernel", w, c->vector);
        break;
    case AK_OP_CONV:
        fprintf(f, " taps=%u state=%llu n=%u at=", c->params.conv.taps,
                (unsigned long long)c->params.conv.state_at, c->params.conv.n);
        for (int i = 0; i < AK_OP_CONV_PARTS; i++)
            fprintf(f, "%s%u+%u·%u[%u]", i ? "," : "", c->params.conv.parts[i].offset,
                    c->params.conv.n_groups, c->params.conv.parts[i].step,
                    c->params.conv.parts[i].n);
        dump_vector(f, "kernel", w, c->vector);
        break;
    case AK_OP_DELTA: {
        const struct ak_op_delta_params *p = &c->params.delta;
        fprintf(f, " heads=%u/%u%s dims=%u,%u gates=s%u at=%u,%u+%u state=%llu", p->n_v_heads,
                p->n_k_heads, p->tiled ? " tiled" : "", p->k_dim, p->v_dim, p->gates, p->beta_at,
                p->alpha_at, p->gate_step, (unsigned long long)p->state_at);
        dump_vector(f, "decay", w, c->vector);
        dump_vector(f, "bias", w, c->vector2);
        break;
    }
    case AK_OP_NORM_GATED: {
        const struct ak_op_norm_gated_params *p = &c->params.norm_gated;
        dump_vector(f, "vector", w, c->vector);
        fprintf(f, " heads=%u n=%u eps=%.9g gate=s%u at=%u+%u/%u", p->n_heads, p->n, (double)p->eps,
                p->gate, p->gate_at, p->gate_step, p->per_group);
        break;
    }
    case AK_OP_GATED:
        fprintf(f, " %s at=%u,%u n=%u", activations[c->params.gated.activation],
                c->params.gated.gate_at, c->params.gated.up_at, c->params.gated.n);
        break;
    case AK_OP_ACTIVATE:
        fprintf(f, " %s n=%u", activations[c->params.activate.activation], c->params.activate.n);
        break;
    case AK_OP_ADD:
        if (c->params.add.at > 0)
            fprintf(f, " at=%u", c->params.add.at);
        fprintf(f, " n=%u", c->params.add.n);
        dump_nonzero(f, "scale", c->params.add.scale == 1.0f ? 0.0f : c->params.add.scale);
        break;
    case AK_OP_DIVIDE:
        fprintf(f, " by=%.9g n=%u", (double)c->params.divide.value, c->params.divide.n);
        break;
    case AK_OP_CAP:
        fprintf(f, " by=%.9g n=%u", (double)c->params.cap.value, c->params.cap.n);
        break;
    case AK_OP_ROUTE:
        fprintf(f, " experts=%u/%u%s", c->params.route.n_used, c->params.route.n_experts,
                c->params.route.normalized ? " normalized" : "");
        break;
    case AK_OP_GATHER:
        fprintf(f, " routes=s%u n=%u", c->params.gather.routes, c->params.gather.n);
        break;
    case AK_OP_COMBINE:
        fprintf(f, " routes=s%u n=%u", c->params.combine.routes, c->params.combine.n);
        break;
    case AK_OP_ADD_GATED:
        fprintf(f, " gate=s%u", c->params.add_gated.gate);
        dump_vector(f, "vector", w, c->vector);
        fprintf(f, " n=%u", c->params.add_gated.n);
        break;
    case AK_OP_ALL_GATHER:
        fprintf(f, " at=%u to=%u n=%u", c->params.all_gather.at, c->params.all_gather.to,
                c->params.all_gather.shard.n);
        break;
    case AK_OP_SEND: fprintf(f, " to=%u", c->params.send.to); break;
    case AK_OP_RECEIVE: fprintf(f, " from=%u", c->params.receive.from); break;
    case AK_OP_COLLECT: fprintf(f, " n=%u", c->params.collect.shard.n); break;
    case AK_OP_SELECT: fprintf(f, " n=%u", c->params.select.n); break;
    case AK_OP_GUMBEL: fprintf(f, " n=%u", c->params.gumbel.n); break;
    case AK_OP_ARGMAX: fprintf(f, " n=%u", c->params.argmax.n); break;
    case AK_OP_COUNT: break;
    }
}

static void dump_command(FILE *f, const struct ak_table *t, uint32_t i, const struct ak_weights *w)
{
    const struct ak_command *c = &t->commands[i];
    fprintf(f, "%4u ", i);
    if (c->layer == AK_ROLE_NO_LAYER)
        fprintf(f, "    -");
    else
        fprintf(f, "%5d", c->layer);
    fprintf(f, " %-9s", ak_op_name(c->op));
    if (c->in != AK_OP_NONE)
        fprintf(f, " in=s%u", c->in);
    fprintf(f, " out=s%u", c->out);
    dump_params(f, c, w);
    fputc('\n', f);
}

ak_status ak_table_dump(struct ak_table *t, const struct ak_weights *weights,
                        struct ak_error *error)
{
    static const char *const row_sets[] = { "tokens", "logits", "experts" };
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f)
        return ak_fail_memory(error, "the table's text", 0);
    fprintf(f, "arena tokens %u, logits %u", t->arena_width[AK_OP_ROWS_TOKENS],
            t->arena_width[AK_OP_ROWS_LOGITS]);
    if (t->arena_width[AK_OP_ROWS_EXPERTS])
        fprintf(f, ", experts %u", t->arena_width[AK_OP_ROWS_EXPERTS]);
    fputc('\n', f);
    for (uint32_t i = 0; i < t->n_slots; i++) {
        const struct ak_op_slot *slot = &t->slots[i];
        fprintf(f, "s%-4u %s width=%u offset=%u live=%u..%u", i, row_sets[slot->row_set],
                slot->width, slot->offset, slot->first_use, slot->last_use);
        if (slot->is_part)
            fprintf(f, " part of s%u", slot->whole);
        fputc('\n', f);
    }
    for (uint32_t i = 0; i < t->n_commands; i++)
        dump_command(f, t, i, weights);
    bool ok = !ferror(f);
    if (fclose(f) != 0 || !ok) {
        free(text);
        return ak_fail_memory(error, "the table's text", n);
    }
    t->dump = ak_strndup(text, n);
    free(text);
    return t->dump ? AKUNU_OK : ak_fail_memory(error, "the table's text", n);
}
