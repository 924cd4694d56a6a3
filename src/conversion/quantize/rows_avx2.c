/* The rows for AVX2. */
#include "config.h"

#if HAVE_AK_AVX2
#define AK_LANES 8
#define AK_TARGET __attribute__((target("avx2")))

#include "conversion/quantize/grid_table.h"
#include "conversion/quantize/row_table.h"

ak_quantize_row *const ak_quantize_avx2[AK_QUANT_COUNT] = { AK_ROW_TABLE, AK_GRID_ROW_TABLE };
ak_quantize_group_row *const ak_quantize_groups_avx2 = make_groups;
#else
typedef int ak_no_rows_avx2; /* a source is not empty */
#endif
