/* What backends that lay weights out in tiles of 16 rows have in common: where a view's rows
 * come from, and what to do with types that have no tiles. */
#ifndef AK_PACK_TILES_H
#define AK_PACK_TILES_H

#include "pack/pack.h"

enum { AK_PACK_ROWS = 16, AK_PACK_K = 256 };

/* A backend's tiles. Tiles of the same rows follow each other, so that AK_PACK_K columns
 * can be packed behind those before them. */
struct ak_pack_tile_format {
    /* NULL rows are packed as zeros; k is a multiple of the type's block. */
    void (*pack)(enum ak_quant_type type, const void *const rows[AK_PACK_ROWS], size_t k,
                 uint8_t *to);
    size_t (*bytes)(enum ak_quant_type type, size_t k); /* of 16 rows */
    bool (*is_tiled)(enum ak_quant_type type);
};

/* The backend's `packed_bytes` and `pack`. */
uint64_t ak_pack_tile_bytes(const struct ak_pack_tile_format *tiles, enum ak_quant_type type,
                            uint32_t rows, uint32_t cols);
void ak_pack_tile_rows(const struct ak_pack_tile_format *tiles, const struct ak_view *view,
                       uint32_t first, uint32_t n, void *packed);

#endif
