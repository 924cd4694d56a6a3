/* Weight layouts of OpenCL devices: tiles for quantized types, rows for floats. layout.c packs
 * tiles for backend.c, upload.c pads rows, and kernels/types.cl dequantizes both. Other files of
 * this folder use the sizes.
 *
 *   tiles  16 rows × 256 k, or fewer k at the end of a row. Each lane has a row. A tile is split
 *          into planes, so that neighboring lanes read neighboring bytes. A plane has the 16
 *          rows of a block of 32 k side by side, then those of the next block:
 *
 *            low bits   16 (4 bits), 8 (2 bits) or 32 (8 bits) bytes per block and row
 *            high bits  4 (1 bit) or 8 (2 bits) bytes
 *            scales and the rest of the block: the pieces of `beside` in layout.c, in order
 *
 *          4 low bits: byte j has number j in its lower half, number 16 + j in its upper half.
 *          1 bit: number j at bit j. 2 bits: number j at bits 2(j % 16) of word j / 16.
 *          Signed numbers of 8 bits are biased by 128. A tile has as many bytes as its stored
 *          blocks; rows past the last one are zeros.
 *   rows   row after row, each padded with zeros to a multiple of 32 k. Rows of zeros pad each
 *          part of a fused weight to a multiple of 16 rows. */
#ifndef AK_OPENCL_LAYOUT_H
#define AK_OPENCL_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files/quant/type.h"

enum {
    AK_OCL_TILE_ROWS = 16,
    AK_OCL_TILE_K = 256,
    AK_OCL_BLOCK_K = 32,
    AK_OCL_TILE_BLOCKS = AK_OCL_TILE_K / AK_OCL_BLOCK_K
};

/* Part of the packed cache's key. Raise a number when its layout changes. */
enum ak_ocl_layout { AK_OCL_ROWS_1 = 0x0103, AK_OCL_TILES_1 = 0x0203 };

bool ak_ocl_is_tiled(enum ak_quant_type type);

/* Bytes of 16 rows × `blocks` (1 … 8) blocks of 32 k. */
size_t ak_ocl_tile_bytes(enum ak_quant_type type, size_t blocks);

/* Packs k (1 … 256, a multiple of the type's block) elements of 16 stored rows; NULL rows are
 * packed as zeros. */
void ak_ocl_pack_tile(enum ak_quant_type type, const uint8_t *const rows[AK_OCL_TILE_ROWS],
                      size_t k, uint8_t *tile);

#endif
