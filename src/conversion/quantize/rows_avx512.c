/* The rows for AVX-512. The search of vectors has eight candidates (AK_GRID_ENTRIES), which fill a
 * register of AVX2. */
#include "config.h"

#if HAVE_AK_AVX512
#define AK_LANES 16
#define AK_TARGET __attribute__((target("avx512f,avx512dq")))

#include "conversion/quantize/row_table.h"

ak_quantize_row *const ak_quantize_avx512[AK_QUANT_COUNT] = { AK_ROW_TABLE };
ak_quantize_group_row *const ak_quantize_groups_avx512 = make_groups;
#else
typedef int ak_no_rows_avx512; /* a source is not empty */
#endif
