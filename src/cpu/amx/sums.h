/* How kernels use the eight registers of the tile unit: sums of (group of tokens g,
 * tile row r) in 2g + r, activations of g in 4 + g, weights of r in 6 + r. Four loads
 * feed four products then. */
#ifndef AK_CPU_AMX_SUMS_H
#define AK_CPU_AMX_SUMS_H

#include <tile_unit.h> /* of this folder, or the model of it in tests/amx */

#include "cpu/generic.h"

enum { GROUP = 16, MOST_GROUPS = 2, MOST_TILES = AK_SLAB_TILES };

AK_KERNEL void clear_sums(size_t n_groups, size_t n_tiles)
{
    ak_tile_zero(0);
    if (n_tiles > 1)
        ak_tile_zero(1);
    if (n_groups > 1)
        ak_tile_zero(2);
    if (n_groups > 1 && n_tiles > 1)
        ak_tile_zero(3);
}

/* Sums of (g, r) go to `to` + g · group_bytes + r · tile_bytes, a token's `stride` bytes
 * after those of the one before it. */
AK_KERNEL void store_sums(size_t n_groups, size_t n_tiles, void *to, size_t group_bytes, size_t tile_bytes, size_t stride)
{
    uint8_t *at = to;
    ak_tile_store(0, at, stride);
    if (n_tiles > 1)
        ak_tile_store(1, at + tile_bytes, stride);
    if (n_groups > 1)
        ak_tile_store(2, at + group_bytes, stride);
    if (n_groups > 1 && n_tiles > 1)
        ak_tile_store(3, at + group_bytes + tile_bytes, stride);
}

#endif
