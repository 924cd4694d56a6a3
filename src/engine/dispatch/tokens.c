/* What the host computes from a pass's tokens: embedding rows and rotation angles. */
#include "engine/dispatch/table.h"

#include "base/math.h"
#include "files/weights/composed.h"

/* A row of a stored or composed matrix as floats. */
static void read_row(const struct ak_view *view, ak_quant_dequantize_fn *const *dequantize,
                     uint64_t row, float *out)
{
    uint64_t row_bytes = 0;
    if (view->composed_tensor) {
        ak_composed_dequantize(view->composed_tensor, ak_composed_row(view, row), 0, view->cols,
                               out);
        return;
    }
    (void)ak_quant_row_bytes(view->type, view->cols, &row_bytes);
    (dequantize ? dequantize[view->type] : ak_quant_info(view->type)->dequantize)(
        (const uint8_t *)view->plane[0].data + row * row_bytes, out, view->cols);
}

static void add_row(const struct ak_view *view, ak_quant_dequantize_fn *const *dequantize,
                    uint64_t row, float *scratch, float *out)
{
    read_row(view, dequantize, row, scratch);
    for (uint32_t i = 0; i < view->cols; i++)
        out[i] += scratch[i];
}

void ak_table_embed_token(const struct ak_weights *weights, const struct ak_op_embed_params *params,
                          ak_quant_dequantize_fn *const *dequantize, int32_t token,
                          uint32_t position, uint32_t type, float *scratch, float *out)
{
    read_row(weights->embedding, dequantize, (uint64_t)token, out);
    for (uint32_t i = 0; params->scale != 1.0f && i < weights->embedding->cols; i++)
        out[i] *= params->scale;
    if (params->types)
        add_row(weights->types, dequantize, type < weights->types->rows ? type : 0, scratch, out);
    if (params->positions)
        add_row(weights->positions, dequantize, (uint64_t)params->first_position + position,
                scratch, out);
}

void ak_table_add_position(const struct ak_weights *weights,
                           ak_quant_dequantize_fn *const *dequantize, uint32_t position,
                           float *scratch, float *out)
{
    add_row(weights->encoder_positions, dequantize, position, scratch, out);
}

void ak_table_rope_frequencies(const struct ak_spec *spec, uint32_t context,
                               const float *out[AK_SPEC_ROPE_TABLES_MAX])
{
    for (uint32_t table = 0; table < spec->n_rotations; table++)
        out[table] = spec->inverse_frequencies + (size_t)table * (spec->config.rope_dims / 2);
    if (spec->short_frequencies && context <= spec->rope.original_context)
        out[AK_SPEC_ROTATE_MAIN] = spec->short_frequencies;
}

void ak_table_rope_angles(const struct ak_spec *spec,
                          const float *const frequencies[AK_SPEC_ROPE_TABLES_MAX], uint32_t table,
                          uint32_t position, float *cosines, float *sines)
{
    double magnitude = (double)spec->magnitude[table];
    for (uint32_t i = 0; i < spec->config.rope_dims / 2; i++) {
        double sine, cosine;
        ak_sincos((double)((float)position * frequencies[table][i]), &sine, &cosine);
        sines[i] = (float)(sine * magnitude);
        cosines[i] = (float)(cosine * magnitude);
    }
}
