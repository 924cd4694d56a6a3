/* The rows for every machine. */
#define AK_LANES 4
#define AK_TARGET

#include "conversion/quantize/grid_table.h"
#include "conversion/quantize/row_table.h"

ak_quantize_row *const ak_quantize_plain[AK_QUANT_COUNT] = { AK_ROW_TABLE, AK_GRID_ROW_TABLE };
ak_quantize_group_row *const ak_quantize_groups_plain = make_groups;
