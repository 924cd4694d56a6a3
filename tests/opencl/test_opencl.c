/* The OpenCL backend op by op and type by type, on the device that AKUNU_DEVICE names or the
 * first there is: products against sums in double over what the golden blocks stand for
 * (tests/golden/quant_data.py), everything else against the CPU's scalar kernels. Without a
 * device it skips, or fails where AKUNU_REQUIRE_OPENCL is 1. */
#include <math.h>
#include <stdio.h>

#include "tests/gguf_files.h"
#include "tests/table_rig.h"
#include "files/weights/composed.h"

/* One token, another, two, few, those that products take at once in their kernel of many, more. */
static const struct rig_pass sizes[] = { { { 1 } }, { { 1 } }, { { 2 } },  { { 3 } },
                                         { { 8 } }, { { 9 } }, { { 64 } }, { { 70 } } };
enum { N_SIZES = sizeof sizes / sizeof *sizes, ALL_TOKENS = 1 + 1 + 2 + 3 + 8 + 9 + 64 + 70 };

/* ---- Products ----------------------------------------------------------- */
/* A matrix of blocks, and what these stand for. */
struct matrix {
    struct ak_view view;
    void *blocks;
    float *values;
};

/* Blocks of a type that stand for numbers of ordinary size, one after another in any order. */
static struct matrix golden_matrix(enum ak_quant_type type, uint32_t rows, uint32_t cols)
{
    const struct ak_quant_info *info = ak_quant_info(type);
    char name[64];
    snprintf(name, sizeof name, "quant/%s.dequant", info->name);
    struct test_bytes golden = test_read(name);
    size_t n = golden.n / (info->block_bytes + 4u * info->block_elems),
           count = (size_t)rows * cols / info->block_elems;
    const float *values = (const float *)(const void *)(golden.data + n * info->block_bytes);
    struct matrix m = { .blocks = malloc(count * info->block_bytes),
                        .values = malloc((size_t)rows * cols * sizeof(float)) };
    ck_assert(m.blocks && m.values && n > 0);
    for (size_t i = 0, at; i < count; i++) {
        float largest;
        do {
            at = rig_bits() % n;
            largest = 0.0f;
            for (size_t j = 0; j < info->block_elems; j++)
                largest = fmaxf(largest, fabsf(values[at * info->block_elems + j]));
        } while (!(largest > 1e-12f && largest < 1e3f));
        memcpy((uint8_t *)m.blocks + i * info->block_bytes, golden.data + at * info->block_bytes,
               info->block_bytes);
        memcpy(m.values + i * info->block_elems, values + at * info->block_elems,
               info->block_elems * sizeof(float));
    }
    m.view = (struct ak_view){ .type = type,
                               .rows = rows,
                               .cols = cols,
                               .plane = { { m.blocks, count * info->block_bytes } } };
    free(golden.data);
    return m;
}

static void matrix_free(struct matrix *m)
{
    free(m->blocks);
    free(m->values);
}

/* A product with parts that stand `at` in the out slot. */
static void add_product(struct rig *r, uint32_t in, uint32_t out, uint32_t n_parts,
                        const struct matrix *const parts[], const uint32_t *at, uint32_t bias,
                        const uint32_t *order)
{
    uint32_t i = r->weights.n_packed++;
    struct ak_pack_weight *packed = &r->packed[i];
    *packed = (struct ak_pack_weight){ .type = parts[0]->view.type,
                                       .cols = parts[0]->view.cols,
                                       .n_parts = n_parts,
                                       .bias = bias,
                                       .order = order };
    for (uint32_t j = 0; j < n_parts; j++) {
        packed->parts[j].view = &parts[j]->view;
        packed->parts[j].rows = parts[j]->view.rows;
        packed->parts[j].output_offset = at[j] - at[0];
    }
    struct ak_command *c = rig_add(r, AK_OP_LINEAR, in, out);
    c->weight = i;
    c->vector = bias;
    c->params.linear.offset = at[0];
}

/* A sum of k products in float32, in any order, is off by at most k · 2^-24 of the sum of
 * their magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, 3.1). */
static void check_product(const char *what, const struct rig *r, const struct matrix *m,
                          const uint32_t *order, uint32_t at, const float *bias, const float *got)
{
    uint32_t token = 0, k = m->view.cols, position = 0;
    for (size_t pass = 0; pass < N_SIZES; pass++)
        for (uint32_t t = 0; t < sizes[pass].n[0]; t++, token++, position++) {
            const float *x = r->rows + (size_t)(position * 7 % RIG_VOCAB) * k;
            for (uint32_t row = 0; row < m->view.rows; row++) {
                double want = bias ? (double)bias[row] : 0.0, size = fabs(want);
                for (uint32_t i = 0; i < k; i++) {
                    double product =
                        (double)m->values[(size_t)row * k + i] * (double)x[order ? order[i] : i];
                    want += product;
                    size += fabs(product);
                }
                double is = (double)got[(size_t)token * r->n + at + row];
                ck_assert_msg(fabs(is - want) <= (k + 1) * 0x1p-24 * size,
                              "%s, %u tokens: row %u of token %u is %.9g, should be %.9g ± %.2g",
                              what, (unsigned)sizes[pass].n[0], (unsigned)row, (unsigned)t, is,
                              want, (k + 1) * 0x1p-24 * size);
            }
        }
}

/* Two parts, and one that follows as a weight of its own, of numbers of rows that are no multiple
 * of a tile's, with a bias over all of them, in all kernels; then once more, if `reorders`, with
 * the input of the first two in another order. One table has both: a program is built for each. */
static void check_type(const char *what, enum ak_quant_type type, uint32_t k,
                       const struct ak_composed_tensor *composed_tensor, float *values,
                       bool reorders)
{
    enum { N_PARTS = 3, IN_ORDER_AT = 80, SPACE = 160 };
    static const uint32_t at[2][N_PARTS] = { { 0, 48, 64 }, { 80, 128, 144 } };
    static uint32_t order[1024];
    struct matrix parts[N_PARTS];
    struct rig r;
    char again[96];
    rig_begin(&r, k, -1.0f, 1.0f);
    for (int i = 0; i < N_PARTS; i++)
        parts[i] = golden_matrix(type, i == 0 ? 37 : i == 1 ? 16 : 5, k);
    if (composed_tensor) {
        parts[0].view.composed_tensor = composed_tensor;
        memcpy(parts[0].values, values, (size_t)37 * k * sizeof *values);
    }
    for (uint32_t i = 0; i < k; i++)
        order[i] = (i * 5 + 3) % k; /* k has no factor 5 */
    uint32_t out = rig_slot(&r, SPACE, AK_OP_ROWS_TOKENS),
             bias = rig_vector(&r, SPACE, -1.0f, 1.0f);
    const struct matrix *const both[] = { &parts[0], &parts[1] }, *const last[] = { &parts[2] };
    for (int i = 0; i < 1 + reorders; i++) {
        add_product(&r, 0, out, 2, both, at[i], bias, i == 0 ? NULL : order);
        add_product(&r, 0, out, 1, last, at[i] + 2, bias, NULL);
    }
    rig_end(&r, out, (reorders ? IN_ORDER_AT : 0) + 69);
    float *got = calloc((size_t)ALL_TOKENS * r.n, sizeof *got);
    ck_assert_ptr_nonnull(got);
    rig_run(&r, "opencl", NULL, sizes, N_SIZES, got, NULL);
    snprintf(again, sizeof again, "%s, in another order", what);
    for (int i = 0; i < 1 + reorders; i++)
        for (int part = 0; part < N_PARTS; part++)
            check_product(i == 0 ? what : again, &r, &parts[part],
                          i == 1 && part < 2 ? order : NULL, at[i][part],
                          r.vectors[bias].data + at[i][part], got);
    for (int i = 0; i < N_PARTS; i++)
        matrix_free(&parts[i]);
    free(got);
    rig_free(&r);
}

/* Rows of whole blocks: of tiles and a part of one, where a type's blocks leave the choice, and
 * for floats of lanes and a part of them. */
START_TEST(types)
{
    enum ak_quant_type type = (enum ak_quant_type)_i;
    uint32_t block = ak_quant_info(type)->block_elems;
    char what[64];
    const uint32_t lengths[] = { block == 1 ? 37 : block, block == 1   ? 266 :
                                                          block == 32  ? 352 :
                                                          block == 128 ? 384 :
                                                                         512 };
    for (int i = 0; i < 2; i++) {
        snprintf(what, sizeof what, "%s of %u", ak_quant_info(type)->name, (unsigned)lengths[i]);
        check_type(what, type, lengths[i], NULL, NULL, true);
    }
}
END_TEST

/* ---- Composed weights ---------------------------------------------------- */
static void affine_factors(const struct ak_composed_tensor *a, uint64_t row, uint32_t k,
                           float *scale, float *minimum)
{
    uint64_t i = row * (a->cols / a->group) + k / a->group;
    *scale = ak_composed_factor(a->factor_type, &a->plane[1], i);
    *minimum = ak_composed_factor(a->factor_type, &a->plane[2], i);
}

/* MLX's affine kinds: numbers of `bits` bits, a scale and a bias for each group. */
START_TEST(affine)
{
    static const struct ak_composed_scheme scheme = { .quants = ak_composed_read_bits,
                                                      .factors = affine_factors,
                                                      .is_row_major = true };
    static const uint32_t all_bits[] = { 2, 3, 4, 5, 6, 8 };
    static const enum ak_quant_type factors[] = { AK_QUANT_F16, AK_QUANT_BF16, AK_QUANT_F32 };
    enum { ROWS = 37, COLS = 384 };
    uint32_t bits = all_bits[_i], group = 32;
    for (; group <= 128; group *= 2) {
        enum ak_quant_type factor = factors[((uint32_t)_i + group / 32) % 3];
        struct matrix scales = golden_matrix(factor, ROWS, COLS / group),
                      biases = golden_matrix(factor, ROWS, COLS / group);
        size_t n_words = ROWS * COLS / 32 * bits;
        uint32_t *words = malloc(n_words * sizeof *words);
        float *values = malloc(ROWS * COLS * sizeof *values);
        char what[64];
        ck_assert(words && values);
        for (size_t i = 0; i < n_words; i++)
            words[i] = rig_bits();
        const struct ak_composed_tensor a = { .scheme = &scheme,
                                              .type = ak_composed_affine_type(bits, factor),
                                              .factor_type = factor,
                                              .shape = { ROWS, COLS },
                                              .n_dims = 2,
                                              .rows = ROWS,
                                              .cols = COLS,
                                              .bits = bits,
                                              .group = group,
                                              .plane = { { words, n_words * sizeof *words },
                                                         scales.view.plane[0],
                                                         biases.view.plane[0] } };
        for (size_t i = 0; i < ROWS * COLS; i++) {
            size_t bit = i * bits, g = i / group;
            uint32_t q =
                (uint32_t)((words[bit / 32] |
                            (uint64_t)(bit / 32 + 1 < n_words ? words[bit / 32 + 1] : 0) << 32) >>
                           bit % 32);
            values[i] = scales.values[g] * (float)(q & ((1u << bits) - 1)) + biases.values[g];
        }
        snprintf(what, sizeof what, "%u bits in groups of %u with factors of %s", (unsigned)bits,
                 (unsigned)group, ak_quant_info(factor)->name);
        check_type(what, a.type, COLS, &a, values, false);
        free(words);
        free(values);
        matrix_free(&scales);
        matrix_free(&biases);
    }
}
END_TEST

/* ---- Against the CPU ---------------------------------------------------- */
/* Runs both; the squared error is at most `bound` of the whole. */
static void compare(const char *what, struct rig *on_cpu, struct rig *r,
                    const struct rig_pass *passes, size_t n, double bound)
{
    size_t count = 0;
    double error = 0.0, whole = 0.0;
    for (size_t i = 0; i < n; i++)
        count += (passes[i].n[0] + passes[i].n[1]) * (size_t)r->n;
    float *want = calloc(count, sizeof *want), *got = calloc(count, sizeof *got);
    ck_assert(want && got);
    rig_run(on_cpu, "cpu", "scalar", passes, n, want, NULL);
    rig_run(r, "opencl", NULL, passes, n, got, NULL);
    for (size_t i = 0; i < count; i++) {
        error += ((double)got[i] - (double)want[i]) * ((double)got[i] - (double)want[i]);
        whole += (double)want[i] * (double)want[i];
    }
    ck_assert_msg(whole > 0.0 && error <= bound * whole, "%s: NMSE %.2e, at most %.2e", what,
                  error / whole, bound);
    free(want);
    free(got);
}

/* What float32 leaves. */
static const double exact = 1e-12;

/* What stands behind a row's elements has no part in a product, infinite or no number. */
START_TEST(padding)
{
    enum { COLS = 37, ROWS = 20 };
    static const enum ak_quant_type floats[] = { AK_QUANT_F32, AK_QUANT_F16, AK_QUANT_BF16 };
    static const uint32_t at[] = { 0 };
    rig_state = 5;
    /* and the floats that it stands for */
    struct matrix m[2] = { golden_matrix(floats[_i], ROWS, COLS) };
    struct rig r[2];
    m[1] = m[0];
    m[1].view.type = AK_QUANT_F32;
    m[1].view.plane[0].data = m[1].values;
    for (int i = 0; i < 2; i++) {
        const struct matrix *const part[] = { &m[i] };
        rig_begin(&r[i], COLS, -2.0f, 2.0f);
        uint32_t x = rig_slot(&r[i], COLS, AK_OP_ROWS_TOKENS),
                 out = rig_slot(&r[i], ROWS, AK_OP_ROWS_TOKENS);
        rig_add(&r[i], AK_OP_DIVIDE, x, x)->params.divide =
            (struct ak_op_divide_params){ .value = 0.0f, .n = r[i].slots[x].width };
        rig_add(&r[i], AK_OP_ACTIVATE, 0, x)->params.activate =
            (struct ak_op_activate_params){ .activation = AK_OP_ACTIVATION_GELU_ERF, .n = COLS };
        add_product(&r[i], x, out, 1, part, at, AK_OP_NONE, NULL);
        rig_end(&r[i], out, ROWS);
    }
    compare(ak_quant_info(floats[_i])->name, &r[1], &r[0], sizes, N_SIZES, exact);
    rig_free(&r[0]);
    rig_free(&r[1]);
    matrix_free(&m[0]);
}
END_TEST

/* ---- Steps over rows ---------------------------------------------------- */
enum { WIDTH = 150 };

/* RMS of a row and of a part of it in place, LayerNorm without and with a bias. */
static void norm(struct rig *r, uint32_t variant)
{
    uint32_t weight = rig_vector(r, WIDTH, -1.0f, 1.0f), bias = rig_vector(r, WIDTH, -1.0f, 1.0f);
    uint32_t out = variant == 1 ? 0 : rig_slot(r, WIDTH, AK_OP_ROWS_TOKENS);
    struct ak_command *c = rig_add(r, AK_OP_NORM, 0, out);
    c->vector = weight;
    c->vector2 = variant == 3 ? bias : AK_OP_NONE;
    c->params.norm = (struct ak_op_norm_params){ .eps = 1e-5f,
                                                 .offset = variant == 1 ? 37 : 0,
                                                 .n = variant == 1 ? 64 : WIDTH,
                                                 .layer_norm = variant > 1 };
    rig_end(r, out, WIDTH);
}

static void gated(struct rig *r, uint32_t activation)
{
    uint32_t out = rig_slot(r, 67, AK_OP_ROWS_TOKENS);
    rig_add(r, AK_OP_GATED, 0, out)->params.gated = (struct ak_op_gated_params){
        .activation = (enum ak_op_activation)activation, .gate_at = 80, .up_at = 0, .n = 67
    };
    rig_end(r, out, 67);
}

static void activate(struct rig *r, uint32_t activation)
{
    uint32_t out = rig_slot(r, 67, AK_OP_ROWS_TOKENS);
    rig_add(r, AK_OP_ACTIVATE, 0, out)->params.activate =
        (struct ak_op_activate_params){ .activation = (enum ak_op_activation)activation, .n = 67 };
    rig_end(r, out, 67);
}

/* out = act(in) + in · scale, by 3.7, capped */
static void add(struct rig *r, uint32_t scaled)
{
    activate(r, AK_OP_ACTIVATION_GELU_TANH);
    r->table.n_commands--;
    rig_add(r, AK_OP_ADD, 0, 1)->params.add =
        (struct ak_op_add_params){ .scale = scaled ? 0.37f : 1.0f, .n = 67 };
    rig_add(r, AK_OP_SELECT, 1, r->table.logits)->params.select.n = 67;
    rig_add(r, AK_OP_DIVIDE, r->table.logits, r->table.logits)->params.divide =
        (struct ak_op_divide_params){ .value = 3.7f, .n = 67 };
    rig_add(r, AK_OP_CAP, r->table.logits, r->table.logits)->params.cap =
        (struct ak_op_cap_params){ .value = 1.3f, .n = 67 };
}

/* Of whole lines, as the CPU has vectors that it multiplies with. */
static void add_gated(struct rig *r, uint32_t unused)
{
    enum { N = 128 };
    (void)unused;
    uint32_t gate = rig_vector(r, N, -0.1f, 0.1f), out = rig_slot(r, N, AK_OP_ROWS_TOKENS);
    rig_add(r, AK_OP_ACTIVATE, 0, out)->params.activate =
        (struct ak_op_activate_params){ .activation = AK_OP_ACTIVATION_GELU_ERF, .n = N };
    struct ak_command *c = rig_add(r, AK_OP_ADD_GATED, 0, out);
    c->vector = gate;
    c->params.add_gated = (struct ak_op_add_gated_params){ .gate = 0, .n = N };
    rig_end(r, out, N);
}

static const struct {
    const char *name;
    void (*build)(struct rig *r, uint32_t variant);
    uint32_t variant;
} steps[] = {
    { "RMS norm", norm, 0 },
    { "RMS norm of a part", norm, 1 },
    { "LayerNorm", norm, 2 },
    { "LayerNorm with a bias", norm, 3 },
    { "SiLU gate", gated, AK_OP_ACTIVATION_SILU },
    { "GELU gate, tanh", gated, AK_OP_ACTIVATION_GELU_TANH },
    { "GELU gate, erf", gated, AK_OP_ACTIVATION_GELU_ERF },
    { "SwiGLU, clamped", gated, AK_OP_ACTIVATION_SWIGLU_CLAMPED },
    { "ReLU gate", gated, AK_OP_ACTIVATION_RELU },
    { "SiLU", activate, AK_OP_ACTIVATION_SILU },
    { "GELU, tanh", activate, AK_OP_ACTIVATION_GELU_TANH },
    { "GELU, erf", activate, AK_OP_ACTIVATION_GELU_ERF },
    { "ReLU", activate, AK_OP_ACTIVATION_RELU },
    { "sum, quotient, cap", add, 0 },
    { "scaled sum", add, 1 },
    { "gated sum", add_gated, 0 },
};

START_TEST(steps_over_rows)
{
    struct rig r;
    rig_begin(&r, WIDTH, -9.0f, 9.0f);
    r.spec.config.n_experts_used = 1; /* the CPU has gates of experts alone */
    r.table.arena_width[AK_OP_ROWS_EXPERTS] = 16;
    steps[_i].build(&r, steps[_i].variant);
    compare(steps[_i].name, &r, &r, sizes, N_SIZES, exact);
    rig_free(&r);
}
END_TEST

/* ---- Attention ---------------------------------------------------------- */
struct attention_case {
    const char *name;
    uint32_t n_heads, n_kv_heads, head_dim, rope_dims;
    enum akunu_kv_type k_type, v_type;
    uint32_t window;
    float cap;
    bool interleaved, norms, bidirectional, alibi, sinks, gated;
    /* of the narrower types: what values that fall to the other side of a rounding leave */
    double bound;
};

static const struct attention_case attentions[] = {
    { "one head", 1, 1, 32, 32, AKUNU_KV_F32, AKUNU_KV_F32, .bound = 1e-11 },
    { "an odd head", 3, 1, 50, 20, AKUNU_KV_F32, AKUNU_KV_F32, .bound = 1e-11 },
    { "groups", 6, 2, 64, 64, AKUNU_KV_F32, AKUNU_KV_F32, .bound = 1e-11 },
    { "a head of 256", 2, 1, 256, 128, AKUNU_KV_F32, AKUNU_KV_F32, .bound = 1e-11 },
    { "neighbors turn", 4, 4, 80, 40, AKUNU_KV_F32, AKUNU_KV_F32, .interleaved = true,
      .bound = 1e-11 },
    { "norms of heads", 4, 2, 64, 64, AKUNU_KV_F32, AKUNU_KV_F32, .norms = true, .bound = 1e-11 },
    { "no rotation", 2, 2, 64, 0, AKUNU_KV_F32, AKUNU_KV_F32, .bound = 1e-11 },
    { "a window", 4, 2, 64, 64, AKUNU_KV_F32, AKUNU_KV_F32, .window = 37, .bound = 1e-11 },
    { "a window of pages", 2, 1, 64, 64, AKUNU_KV_F32, AKUNU_KV_F32, .window = 100,
      .bound = 1e-11 },
    { "a cap", 4, 2, 64, 64, AKUNU_KV_F32, AKUNU_KV_F32, .cap = 2.0f, .bound = 1e-11 },
    { "sinks", 4, 2, 64, 64, AKUNU_KV_F32, AKUNU_KV_F32, .sinks = true, .window = 70,
      .bound = 1e-11 },
    { "distances", 6, 6, 32, 0, AKUNU_KV_F32, AKUNU_KV_F32, .alibi = true, .bound = 1e-11 },
    { "gates", 4, 2, 64, 16, AKUNU_KV_F32, AKUNU_KV_F32, .gated = true, .bound = 1e-11 },
    { "both ways", 4, 4, 32, 32, AKUNU_KV_F32, AKUNU_KV_F32, .bidirectional = true,
      .bound = 1e-11 },
    { "both ways in a window", 4, 4, 32, 32, AKUNU_KV_F32, AKUNU_KV_F32, .bidirectional = true,
      .window = 40, .bound = 1e-11 },
    { "both ways with distances", 4, 4, 32, 0, AKUNU_KV_F32, AKUNU_KV_F32, .bidirectional = true,
      .alibi = true, .bound = 1e-11 },
    { "F16", 4, 2, 64, 64, AKUNU_KV_F16, AKUNU_KV_F16, .bound = 1e-9 },
    { "BF16", 4, 2, 64, 64, AKUNU_KV_BF16, AKUNU_KV_BF16, .bound = 1e-8 },
    { "Q8_0", 4, 2, 64, 64, AKUNU_KV_Q8_0, AKUNU_KV_Q8_0, .bound = 1e-8 },
    { "Q4_0", 4, 2, 64, 64, AKUNU_KV_Q4_0, AKUNU_KV_Q4_0, .bound = 1e-6 },
    { "keys of Q8_0, values of Q4_0", 4, 2, 96, 96, AKUNU_KV_Q8_0, AKUNU_KV_Q4_0, .bound = 1e-6 },
    { "keys of F16, values of Q8_0", 2, 2, 32, 32, AKUNU_KV_F16, AKUNU_KV_Q8_0, .bound = 1e-8 },
    { "keys of Q4_0, values of F32", 2, 1, 128, 64, AKUNU_KV_Q4_0, AKUNU_KV_F32, .bound = 1e-6 },
    { "keys of BF16, values of F16", 3, 1, 50, 20, AKUNU_KV_BF16, AKUNU_KV_F16, .bound = 1e-8 },
};

/* Rows of q, of each head beside its gate where it has one, k and v. */
static void build_attention(struct rig *r, const struct attention_case *a, float *frequencies)
{
    uint32_t step = a->gated ? 2 * a->head_dim : a->head_dim, k_at = a->n_heads * step,
             v_at = k_at + a->n_kv_heads * a->head_dim;
    rig_begin(r, v_at + a->n_kv_heads * a->head_dim, -2.0f, 2.0f);
    uint32_t q_norm = rig_vector(r, a->head_dim, 0.5f, 2.0f),
             k_norm = rig_vector(r, a->head_dim, 0.5f, 2.0f);
    uint32_t sinks = rig_vector(r, a->n_heads, -2.0f, 4.0f),
             out = rig_slot(r, a->n_heads * a->head_dim, AK_OP_ROWS_TOKENS);
    r->kv.n_kv_heads = a->n_kv_heads;
    r->kv.head_dim = a->head_dim;
    r->kv.k_type = a->k_type;
    r->kv.v_type = a->v_type;
    r->kv.n_layers = 2;
    struct ak_spec_config *config = &r->spec.config;
    config->n_layers = 2;
    config->n_heads = a->n_heads;
    config->n_kv_heads = a->n_kv_heads;
    config->head_dim = a->head_dim;
    config->rope_dims = a->rope_dims;
    r->spec.descriptor.alibi = a->alibi;
    /* the second of two tables */
    r->spec.n_rotations = a->rope_dims ? 2 : 0;
    r->spec.magnitude[0] = 1.0f;
    r->spec.magnitude[1] = 1.2f;
    r->spec.inverse_frequencies = frequencies;
    for (uint32_t i = 0; i < a->rope_dims; i++)
        frequencies[i] = rig_float(0.01f, 1.0f);
    struct ak_command *c = rig_add(r, AK_OP_QKV, 0, 0);
    c->vector = a->norms ? q_norm : AK_OP_NONE;
    c->vector2 = a->norms ? k_norm : AK_OP_NONE;
    c->params.qkv = (struct ak_op_qkv_params){ .q_at = 0,
                                               .k_at = k_at,
                                               .v_at = v_at,
                                               .q_step = step,
                                               .n_heads = a->n_heads,
                                               .n_kv_heads = a->n_kv_heads,
                                               .head_dim = a->head_dim,
                                               .rope_dims = a->rope_dims,
                                               .rope_table = 1,
                                               .interleaved = a->interleaved,
                                               .kv_layer = 1,
                                               .norm_eps = 1e-6f };
    c = rig_add(r, AK_OP_ATTENTION, 0, out);
    c->vector = a->sinks ? sinks : AK_OP_NONE;
    c->params.attention = (struct ak_op_attention_params){ .q_at = 0,
                                                           .q_step = step,
                                                           .n_heads = a->n_heads,
                                                           .n_kv_heads = a->n_kv_heads,
                                                           .head_dim = a->head_dim,
                                                           .kv_layer = 1,
                                                           .window = a->window,
                                                           .bidirectional = a->bidirectional,
                                                           .alibi = a->alibi,
                                                           .gated = a->gated,
                                                           .scale = 0.2f,
                                                           .cap = a->cap };
    rig_end(r, out, a->n_heads * a->head_dim);
}

/* One way: a long prompt, a token, the next ones, another sequence, both, until the context is
 * full; and one token after another, over pages' ends, from one sequence to the other and back.
 * Both ways: whole texts, which have one pass each. */
START_TEST(attention)
{
    static const struct rig_pass one_way[] = { { { 130, 0 } }, { { 1, 0 } },
                                               { { 5, 0 } },   { { 0, 70 } },
                                               { { 1, 1 } },   { { 20, 30 } },
                                               { { 1, 0 } },   { { RIG_CONTEXT - 158, 0 } } };
    static const struct rig_pass one_by_one[] = { { { 62, 0 } }, { { 1, 0 } }, { { 1, 0 } },
                                                  { { 1, 0 } },  { { 0, 1 } }, { { 1, 0 } },
                                                  { { 2, 0 } },  { { 1, 0 } }, { { 130, 1 } },
                                                  { { 1, 0 } },  { { 4, 0 } }, { { 1, 0 } },
                                                  { { 0, 1 } },  { { 1, 0 } } };
    static const struct rig_pass bidirectional[] = { { { 70, 130 } } },
                                 short_ones[] = { { { 3, 4 } } };
    const struct attention_case *a = &attentions[_i];
    float frequencies[256];
    struct rig r;
    build_attention(&r, a, frequencies);
    if (a->bidirectional) {
        compare(a->name, &r, &r, bidirectional, 1, a->bound);
        compare(a->name, &r, &r, short_ones, 1, a->bound);
    } else {
        compare(a->name, &r, &r, one_way, sizeof one_way / sizeof *one_way, a->bound);
        compare(a->name, &r, &r, one_by_one, sizeof one_by_one / sizeof *one_by_one, a->bound);
    }
    rig_free(&r);
}
END_TEST

/* ---- Speech ------------------------------------------------------------- */
enum { FRAME_STEP = 14, FRAME_ELEMS = 34, POSITION_ELEMS = 51 };

/* Frames; the row before and the row; its position is added. */
static void build_frames(struct rig *r, const struct ak_view *positions)
{
    uint32_t both = rig_slot(r, FRAME_ELEMS / 2 + FRAME_ELEMS, AK_OP_ROWS_TOKENS);
    r->commands[0].op = AK_OP_FRAMES;
    r->commands[0].params.frames =
        (struct ak_op_frames_params){ .step = FRAME_STEP, .n = FRAME_ELEMS };
    rig_add(r, AK_OP_PREVIOUS, 0, both)->params.previous.n = FRAME_ELEMS;
    rig_add(r, AK_OP_ADD_POSITION, both, both)->params.add_position.n = POSITION_ELEMS;
    r->weights.encoder_positions = positions;
    rig_end(r, both, POSITION_ELEMS);
}

/* One sequence, two of them, one of a single position. */
START_TEST(frames)
{
    static const struct rig_pass passes[] = { { { 1 } },       { { 9 } },    { { 0, 70 } },
                                              { { 70, 130 } }, { { 1, 3 } }, { { RIG_CONTEXT } } };
    enum { N = RIG_CONTEXT * FRAME_STEP + FRAME_ELEMS };
    struct rig r;
    rig_begin(&r, POSITION_ELEMS, -2.0f, 2.0f);
    float *positions = rig_floats((size_t)RIG_CONTEXT * POSITION_ELEMS, -1.0f, 1.0f),
          *of_sequences[] = { rig_floats(N, -1.0f, 1.0f), rig_floats(N, -1.0f, 1.0f) };
    const struct ak_view view = { .type = AK_QUANT_F32,
                                  .rows = RIG_CONTEXT,
                                  .cols = POSITION_ELEMS,
                                  .plane = { { positions, (size_t)RIG_CONTEXT * POSITION_ELEMS *
                                                              sizeof *positions } } };
    r.frames = (const float *const *)of_sequences;
    build_frames(&r, &view);
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        compare("frames", &r, &r, &passes[i], 1, 0x1p-80);
    free(of_sequences[0]);
    free(of_sequences[1]);
    free(positions);
    rig_free(&r);
}
END_TEST

enum { CROSS_HEADS = 4 };

static const struct cross_case {
    uint32_t n_kv_heads, head_dim, sequences[RIG_SEQUENCES], lengths[RIG_SEQUENCES];
    enum akunu_kv_type kv_type;
    double bound;
} crosses[] = {
    /* both read the second sequence; each the other; few keys */
    { 4, 64, { 1, 1 }, { 130, 130 }, AKUNU_KV_F32, 1e-11 },
    { 2, 32, { 1, 0 }, { 130, 40 }, AKUNU_KV_F32, 1e-11 },
    { 1, 50, { 1, 1 }, { 3, 3 }, AKUNU_KV_F32, 1e-11 },
    { 4, 64, { 1, 1 }, { 130, 130 }, AKUNU_KV_F16, 1e-9 },
};

static void build_cross(struct rig *r, const struct cross_case *c)
{
    uint32_t k_at = CROSS_HEADS * c->head_dim, v_at = k_at + c->n_kv_heads * c->head_dim;
    rig_begin(r, v_at + c->n_kv_heads * c->head_dim, -2.0f, 2.0f);
    uint32_t out = rig_slot(r, CROSS_HEADS * c->head_dim, AK_OP_ROWS_TOKENS);
    r->kv.n_kv_heads = r->spec.config.n_kv_heads = c->n_kv_heads;
    r->kv.head_dim = r->spec.config.head_dim = c->head_dim;
    r->kv.k_type = r->kv.v_type = c->kv_type;
    r->spec.config.n_heads = CROSS_HEADS;
    r->spec.config.n_encoder_layers = 1;
    r->spec.config.encoder_context = 130;
    rig_add(r, AK_OP_QKV, 0, 0)->params.qkv =
        (struct ak_op_qkv_params){ .k_at = k_at,
                                   .v_at = v_at,
                                   .q_step = c->head_dim,
                                   .n_heads = CROSS_HEADS,
                                   .n_kv_heads = c->n_kv_heads,
                                   .head_dim = c->head_dim };
    rig_add(r, AK_OP_ATTENTION, 0, out)->params.attention =
        (struct ak_op_attention_params){ .q_step = c->head_dim,
                                         .n_heads = CROSS_HEADS,
                                         .n_kv_heads = c->n_kv_heads,
                                         .head_dim = c->head_dim,
                                         .cross = true,
                                         .scale = 0.2f };
    r->cross_sequences = c->sequences;
    r->cross_lengths = c->lengths;
    rig_end(r, out, CROSS_HEADS * c->head_dim);
}

/* Scores of the backend over the passes; the caller frees them. */
static float *run_scores(struct rig *r, const char *backend, const char *cpu,
                         const struct rig_pass *passes, size_t n)
{
    static const int32_t matrices[CROSS_HEADS] = { 1, -1, 0, -1 };
    float *scores = calloc((size_t)2 * RIG_SCORED * RIG_CONTEXT, sizeof *scores);
    ck_assert_ptr_nonnull(scores);
    r->matrices = matrices;
    r->n_heads = CROSS_HEADS;
    r->scores = scores;
    rig_run(r, backend, cpu, passes, n, NULL, NULL);
    r->matrices = NULL;
    return scores;
}

static void check_scores(struct rig *r, const struct cross_case *c, const struct rig_pass *passes,
                         size_t n)
{
    float *want = run_scores(r, "cpu", "scalar", passes, n),
          *got = run_scores(r, "opencl", NULL, passes, n);
    double error = 0.0, whole = 0.0;
    for (size_t i = 0; i < (size_t)2 * RIG_SCORED * RIG_CONTEXT; i++) {
        double difference = (double)got[i] - (double)want[i];
        ck_assert(want[i] != 0.0f || got[i] == 0.0f); /* nothing beside the positions */
        error += difference * difference;
        whole += (double)want[i] * (double)want[i];
    }
    ck_assert_msg(whole > 0.0 && error <= c->bound * whole, "scores: NMSE %.2e", error / whole);
    free(want);
    free(got);
}

/* Tokens of one sequence and of both, so few that pages are split, and more than that. */
START_TEST(cross_attention)
{
    static const struct rig_pass passes[] = { { { 40, 130 } }, { { 1, 0 } }, { { 5, 0 } },
                                              { { 1, 1 } },    { { 3, 2 } }, { { 20, 0 } },
                                              { { 9, 11 } },   { { 1, 0 } } };
    const size_t n = sizeof passes / sizeof *passes;
    const struct cross_case *c = &crosses[_i];
    struct rig r;
    build_cross(&r, c);
    compare("cross-attention", &r, &r, passes, n, c->bound);
    check_scores(&r, c, passes, n);
    rig_free(&r);
}
END_TEST

/* ---- States ------------------------------------------------------------- */
/* A sequence begins, one token at a time goes on, another one joins, both go on in one pass. */
static const struct rig_pass lives[] = { { { 3, 0 } }, { { 1, 0 } },  { { 1, 0 } },  { { 1, 2 } },
                                         { { 0, 1 } }, { { 20, 1 } }, { { 40, 30 } } };
enum { N_LIVES = sizeof lives / sizeof *lives };

START_TEST(short_conv)
{
    enum { N = 37 };
    uint32_t taps = (uint32_t)_i;
    struct rig r;
    rig_begin(&r, 3 * N, -1.0f, 1.0f);
    uint32_t out = rig_slot(&r, N, AK_OP_ROWS_TOKENS);
    struct ak_command *c = rig_add(&r, AK_OP_SHORT_CONV, 0, out);
    c->vector = rig_vector(&r, N * taps, -1.0f, 1.0f);
    c->params.short_conv = (struct ak_op_short_conv_params){ .n = N, .taps = taps, .state_at = 5 };
    r.kv.state_elems = 5 + (taps - 1) * N;
    rig_end(&r, out, N);
    compare("short convolution", &r, &r, lives, N_LIVES, exact);
    rig_free(&r);
}
END_TEST

static const struct delta_case {
    uint32_t n_k_heads, n_v_heads, k_dim, v_dim, taps;
    bool together, tiled; /* what a key head has of q, k, v and z stands together */
} deltas[] = {
    { 1, 1, 32, 32, 4, false, false },  { 2, 4, 64, 32, 4, true, false },
    { 2, 6, 32, 96, 2, false, true },   { 3, 3, 128, 128, 3, true, true },
    { 1, 2, 512, 32, 4, false, false },
};

START_TEST(delta)
{
    const struct delta_case *d = &deltas[_i];
    uint32_t per_group = d->n_v_heads / d->n_k_heads, values = per_group * d->v_dim,
             keys = d->n_k_heads * d->k_dim, at = 0;
    uint32_t n = 2 * keys + d->n_v_heads * d->v_dim, z_at = 0,
             gates_at = n + d->n_v_heads * d->v_dim;
    const uint32_t widths[] = { d->k_dim, d->k_dim, values, values };
    struct ak_op_conv_params conv = { .n = n, .taps = d->taps, .n_groups = d->n_k_heads };
    struct rig r;
    rig_begin(&r, gates_at + 2 * d->n_v_heads, -2.0f, 2.0f);
    uint32_t convolved = rig_slot(&r, n, AK_OP_ROWS_TOKENS),
             given = rig_slot(&r, d->n_v_heads * d->v_dim, AK_OP_ROWS_TOKENS);
    uint32_t normed = rig_slot(&r, d->n_v_heads * d->v_dim, AK_OP_ROWS_TOKENS);
    for (int i = 0; i < 4; i++) {
        if (i < AK_OP_CONV_PARTS)
            conv.parts[i] =
                (struct ak_op_conv_part){ .offset = at,
                                          .step = d->together ? 2 * (d->k_dim + values) : widths[i],
                                          .n = widths[i] };
        else
            z_at = at;
        at += d->together ? widths[i] : widths[i] * d->n_k_heads;
    }
    struct ak_command *c = rig_add(&r, AK_OP_CONV, 0, convolved);
    c->vector = rig_vector(&r, n * d->taps, -1.0f, 1.0f);
    c->params.conv = conv;
    c = rig_add(&r, AK_OP_DELTA, convolved, given);
    c->vector = rig_vector(&r, d->n_v_heads, -2.0f, -0.01f);
    c->vector2 = rig_vector(&r, d->n_v_heads, -1.0f, 1.0f);
    c->params.delta =
        (struct ak_op_delta_params){ .n_k_heads = d->n_k_heads,
                                     .n_v_heads = d->n_v_heads,
                                     .k_dim = d->k_dim,
                                     .v_dim = d->v_dim,
                                     .gates = 0,
                                     .beta_at = gates_at,
                                     .alpha_at =
                                         gates_at + (d->together ? per_group : d->n_v_heads),
                                     .gate_step = d->together ? 2 * per_group : per_group,
                                     .tiled = d->tiled,
                                     .state_at = (d->taps - 1) * n };
    c = rig_add(&r, AK_OP_NORM_GATED, given, normed);
    c->vector = rig_vector(&r, d->v_dim, -1.0f, 1.0f);
    c->params.norm_gated =
        (struct ak_op_norm_gated_params){ .eps = 1e-6f,
                                          .n_heads = d->n_v_heads,
                                          .n = d->v_dim,
                                          .gate = 0,
                                          .gate_at = z_at,
                                          .gate_step =
                                              d->together ? 2 * (d->k_dim + values) : values,
                                          .per_group = per_group };
    r.kv.state_elems = (d->taps - 1) * n + d->n_v_heads * d->k_dim * d->v_dim;
    rig_end(&r, normed, d->n_v_heads * d->v_dim);
    compare("delta rule", &r, &r, lives, N_LIVES, 1e-10);
    rig_free(&r);
}
END_TEST

/* ---- Experts ------------------------------------------------------------ */
enum { EXPERTS = 5, USED = 2, GATE = 0, UP, DOWN, EXPERT_PARTS };

/* The logits that choose are the first elements of a row. */
static void build_experts(struct rig *r, const struct matrix m[EXPERT_PARTS], bool normalized)
{
    uint32_t width = m[DOWN].view.rows / EXPERTS, inner = m[DOWN].view.cols;
    const uint32_t at[] = { 0, inner };
    const struct matrix *const gate_up[] = { &m[GATE], &m[UP] }, *const down[] = { &m[DOWN] };
    rig_begin(r, width, -2.0f, 2.0f);
    uint32_t routes = rig_slot(r, 2 * USED, AK_OP_ROWS_TOKENS),
             rows = rig_slot(r, width, AK_OP_ROWS_EXPERTS);
    uint32_t both = rig_slot(r, 2 * inner, AK_OP_ROWS_EXPERTS),
             act = rig_slot(r, inner, AK_OP_ROWS_EXPERTS);
    uint32_t made = rig_slot(r, width, AK_OP_ROWS_EXPERTS);
    r->spec.config.n_experts = EXPERTS;
    r->spec.config.n_experts_used = USED;
    rig_add(r, AK_OP_ROUTE, 0, routes)->params.route = (struct ak_op_route_params){
        .n_experts = EXPERTS, .n_used = USED, .normalized = normalized
    };
    rig_add(r, AK_OP_GATHER, 0, rows)->params.gather =
        (struct ak_op_gather_params){ .routes = routes, .n = width };
    add_product(r, rows, both, 2, gate_up, at, rig_vector(r, EXPERTS * 2 * inner, -1.0f, 1.0f),
                NULL);
    rig_add(r, AK_OP_GATED, both, act)->params.gated = (struct ak_op_gated_params){
        .activation = AK_OP_ACTIVATION_SILU, .up_at = inner, .n = inner
    };
    add_product(r, act, made, 1, down, at, AK_OP_NONE, NULL);
    rig_add(r, AK_OP_COMBINE, made, 0)->params.combine =
        (struct ak_op_combine_params){ .routes = routes, .n = width };
    r->packed[0].n_experts = r->packed[1].n_experts = EXPERTS;
    r->packed[0].linear = AK_OP_LINEAR_EXPERTS_GATE_UP;
    r->packed[1].linear = AK_OP_LINEAR_EXPERTS_DOWN;
    r->widths[AK_OP_LINEAR_EXPERTS_GATE_UP] = 2 * inner;
    r->widths[AK_OP_LINEAR_EXPERTS_DOWN] = width;
    rig_end(r, 0, width);
}

static const enum ak_quant_type expert_types[] = { AK_QUANT_F32,   AK_QUANT_F16,  AK_QUANT_BF16,
                                                   AK_QUANT_Q4_0,  AK_QUANT_Q8_0, AK_QUANT_A4,
                                                   AK_QUANT_A8,    AK_QUANT_Q4_K, AK_QUANT_Q6_K,
                                                   AK_QUANT_MXFP4, AK_QUANT_F8 };

/* The CPU has the floats that the blocks stand for. */
START_TEST(experts)
{
    enum ak_quant_type type = expert_types[_i];
    uint32_t block = ak_quant_info(type)->block_elems, width = block > 64 ? block : 64;
    struct matrix m[EXPERT_PARTS], wide[EXPERT_PARTS];
    struct rig r, reference;
    rig_state = 77;
    for (int i = 0; i < EXPERT_PARTS; i++) {
        wide[i] = m[i] = golden_matrix(type, EXPERTS * width, width);
        wide[i].view.type = AK_QUANT_F32;
        wide[i].view.plane[0].data = wide[i].values;
    }
    for (int normalized = 0; normalized < 2; normalized++) {
        build_experts(&r, m, normalized);
        build_experts(&reference, wide, normalized);
        compare(ak_quant_info(type)->name, &reference, &r, sizes, N_SIZES, 1e-11);
        rig_free(&r);
        rig_free(&reference);
    }
    for (int i = 0; i < EXPERT_PARTS; i++)
        matrix_free(&m[i]);
}
END_TEST

/* ---- Sampling ----------------------------------------------------------- */
/* With and without noise; logits that are no numbers are never chosen, of equal ones the first. */
START_TEST(sampling)
{
    enum { VOCABULARY = 1000 };
    struct rig r;
    int32_t want[ALL_TOKENS], got[ALL_TOKENS];
    rig_begin(&r, VOCABULARY, -5.0f, 5.0f);
    for (uint32_t i = 0; i < RIG_VOCAB; i++) {
        float *row = r.rows + i * VOCABULARY;
        row[rig_bits() % VOCABULARY] = NAN;
        row[0] = i % 3 == 0 ? NAN : row[0];
        row[VOCABULARY - 1 - i % 7] = row[13 + i] = 5.5f;
    }
    uint32_t logits = rig_end(&r, 0, VOCABULARY);
    r.table.sampled = rig_slot(&r, 1, AK_OP_ROWS_LOGITS);
    if (_i > 0)
        rig_add(&r, AK_OP_GUMBEL, logits, logits)->params.gumbel.n = VOCABULARY;
    rig_add(&r, AK_OP_ARGMAX, logits, r.table.sampled)->params.argmax.n = VOCABULARY;
    r.gumbel = (struct ak_gumbel_params){ .temperature = 0.2f + (float)_i,
                                          .seed = 0x0123456789abcdefu * (uint64_t)_i };
    rig_run(&r, "cpu", "scalar", sizes, N_SIZES, NULL, want);
    rig_run(&r, "opencl", NULL, sizes, N_SIZES, NULL, got);
    for (int i = 0; i < ALL_TOKENS; i++)
        ck_assert_msg(got[i] == want[i], "sample %d, token %d: %d, the CPU chose %d", _i, i,
                      (int)got[i], (int)want[i]);
    rig_free(&r);
}
END_TEST

int main(void)
{
    const struct ak_backend_ops *ops;
    struct ak_error error = { 0 };
    if (ak_backend_find("opencl", &ops, &error) != AKUNU_OK || !ops->is_available()) {
        const char *required = getenv("AKUNU_REQUIRE_OPENCL");
        bool fails = required && strcmp(required, "1") == 0;
        printf("%s: test_opencl, no OpenCL device%s%s\n", fails ? "FAILED" : "SKIPPED",
               *error.message ? ": " : "", error.message);
        return fails ? EXIT_FAILURE : 77;
    }
    Suite *suite = suite_create("opencl");
    TCase *of_steps = tcase_create("steps");
    tcase_add_loop_test(of_steps, steps_over_rows, 0, sizeof steps / sizeof *steps);
    suite_add_tcase(suite, of_steps);
    TCase *of_attention = tcase_create("attention");
    tcase_add_loop_test(of_attention, attention, 0, sizeof attentions / sizeof *attentions);
    suite_add_tcase(suite, of_attention);
    TCase *of_speech = tcase_create("speech");
    tcase_add_test(of_speech, frames);
    tcase_add_loop_test(of_speech, cross_attention, 0, sizeof crosses / sizeof *crosses);
    suite_add_tcase(suite, of_speech);
    TCase *of_states = tcase_create("states");
    tcase_add_loop_test(of_states, short_conv, 2, 6);
    tcase_add_loop_test(of_states, delta, 0, sizeof deltas / sizeof *deltas);
    suite_add_tcase(suite, of_states);
    TCase *of_experts = tcase_create("experts");
    tcase_add_loop_test(of_experts, experts, 0, sizeof expert_types / sizeof *expert_types);
    suite_add_tcase(suite, of_experts);
    TCase *of_sampling = tcase_create("sampling");
    tcase_add_loop_test(of_sampling, sampling, 0, 4);
    suite_add_tcase(suite, of_sampling);
    TCase *of_products = tcase_create("products");
    tcase_add_loop_test(of_products, types, 0, AK_QUANT_F8 + 1); /* devices have no later ones */
    tcase_add_loop_test(of_products, affine, 0, 6);
    tcase_add_loop_test(of_products, padding, 0, 3);
    suite_add_tcase(suite, of_products);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* a driver's threads do not outlive a fork */
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
