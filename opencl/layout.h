/* How weights lie on an OpenCL device.
 *
 *   tiles  16 rows × 256 k (a shorter one ends a row whose k is no multiple of 256), for
 *          quantized types. Lanes of a device have a row each, so what lanes read at once
 *          lies side by side: a tile is cut into planes, and in a plane stand, block of 32 k
 *          by block, the words of the 16 rows:
 *
 *            low bits   16 (of four), 8 (of two) or 32 (of eight) bytes a block and row
 *            high bits  4 (of one) or 8 (of two) bytes
 *            what is stored beside, in the pieces and the order of `beside` in layout.c
 *
 *          Of four low bits, byte j has number j in its lower half and number 16 + j in its
 *          upper one. Bits of one: number j at bit j; of two: at bits 2(j % 16) of word j / 16.
 *          Signed numbers of eight bits are biased by 128. A tile takes the bytes that its
 *          blocks take stored; rows beyond the last one are zeros.
 *   rows   floats, row after row, padded to a multiple of 32 with zeros. */
#ifndef AK_OPENCL_LAYOUT_H
#define AK_OPENCL_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quant/type.h"

enum {
    AK_OCL_TILE_ROWS = 16,
    AK_OCL_TILE_K = 256,
    AK_OCL_BLOCK_K = 32,
    AK_OCL_TILE_BLOCKS = AK_OCL_TILE_K / AK_OCL_BLOCK_K
};

/* Part of the packed cache's key. Raise a number when its bytes change. */
enum ak_ocl_layout { AK_OCL_ROWS_1 = 0x0103, AK_OCL_TILES_1 = 0x0203 };

bool ak_ocl_is_tiled(enum ak_quant_type type);

/* Bytes of `blocks` (1 … 8) blocks of 32 k of 16 rows: a tile. */
size_t ak_ocl_tile_bytes(enum ak_quant_type type, size_t blocks);

/* Packs k (1 … 256, a multiple of the type's block) elements of 16 stored rows; a NULL row
 * is packed as zeros. */
void ak_ocl_pack_tile(enum ak_quant_type type, const uint8_t *const rows[AK_OCL_TILE_ROWS],
                      size_t k, uint8_t *tile);

#endif
