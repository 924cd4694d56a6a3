/* What panel_f32.c of every ISA ends with: the unpackers of the stored types, and their places in
 * the table of kernels. Included behind TOKENS, unpack_panel_f32 and dot_panel_f32. */
static AK_UNPACK_PANEL_F32(unpack_f32, AK_QUANT_F32);
static AK_UNPACK_PANEL_F32(unpack_f16, AK_QUANT_F16);
static AK_UNPACK_PANEL_F32(unpack_bf16, AK_QUANT_BF16);
static AK_UNPACK_PANEL_F32(unpack_f8, AK_QUANT_F8);

static void interleave_token_f32(const float *restrict x, size_t k, size_t token,
                                 float *restrict tokens)
{
    ak_panel_interleave_token(x, k, token, TOKENS, tokens);
}

static void set_panel_f32(struct ak_cpu_kernels *k)
{
    k->unpack_panel_f32[AK_QUANT_F32] = unpack_f32;
    k->unpack_panel_f32[AK_QUANT_F16] = unpack_f16;
    k->unpack_panel_f32[AK_QUANT_BF16] = unpack_bf16;
    k->unpack_panel_f32[AK_QUANT_F8] = unpack_f8;
    k->interleave_token_f32 = interleave_token_f32;
    k->dot_panel_f32 = dot_panel_f32;
}
