/* Packs rows into the tiles of a backend, from the file or from composed tensors. */
#include "engine/pack/pack.h"

#include "files/weights/composed.h"

_Static_assert((int)AK_PACK_ROWS == (int)AK_COMPOSED_ROWS_MAX, "a tile row is made at once");

enum { BLOCK_K = 32, BLOCK_BYTES_MAX = 40 }; /* bytes of 32 elements, the largest type with tiles */

uint64_t ak_pack_tile_bytes(const struct ak_pack_tile_format *tiles, enum ak_quant_type type,
                            uint32_t rows, uint32_t cols)
{
    if (!tiles->is_tiled(type))
        return 0;
    return ((uint64_t)rows + AK_PACK_ROWS - 1) / AK_PACK_ROWS * tiles->bytes(type, cols);
}

/* 16 rows of a composed tensor, or fewer at its end: one tile's columns at a time. */
static void pack_composed(const struct ak_pack_tile_format *tiles, const struct ak_view *view,
                          uint32_t first, uint8_t *to)
{
    uint8_t stored[AK_PACK_ROWS][AK_PACK_K / BLOCK_K * BLOCK_BYTES_MAX];
    const void *rows[AK_PACK_ROWS] = { NULL };
    uint32_t n_rows = view->rows - first < AK_PACK_ROWS ? view->rows - first : AK_PACK_ROWS;
    for (uint32_t k = 0, n; k < view->cols; k += n) {
        n = view->cols - k < AK_PACK_K ? view->cols - k : AK_PACK_K;
        for (uint32_t r = 0; r < n_rows; r++) {
            ak_composed_make_blocks(view->composed_tensor,
                                    ak_composed_row(view, (uint64_t)first + r), k, n, stored[r]);
            rows[r] = stored[r];
        }
        tiles->pack(view->type, rows, n, to);
        to += tiles->bytes(view->type, n);
    }
}

/* The rows of one tile row. */
struct tile_row {
    const struct ak_pack_tile_format *tiles;
    const struct ak_view *view;
    uint8_t *to;
};

static void pack_made(const void *const *rows, void *user)
{
    const struct tile_row *t = user;
    t->tiles->pack(t->view->type, rows, t->view->cols, t->to);
}

/* 16 rows of a composed tensor, or fewer at its end, each of which is made at once. */
static void pack_whole(const struct ak_pack_tile_format *tiles, const struct ak_view *view,
                       uint32_t first, uint8_t *to)
{
    struct tile_row t = { tiles, view, to };
    uint32_t n_rows = view->rows - first < AK_PACK_ROWS ? view->rows - first : AK_PACK_ROWS;
    ak_composed_make_rows(view, first, n_rows, pack_made, &t);
}

static void pack_stored(const struct ak_pack_tile_format *tiles, const struct ak_view *view,
                        uint32_t first, uint64_t row_bytes, uint8_t *to)
{
    const void *rows[AK_PACK_ROWS];
    for (uint32_t r = 0; r < AK_PACK_ROWS; r++)
        rows[r] = first + r < view->rows ?
                      (const uint8_t *)view->plane[0].data + (first + r) * row_bytes :
                      NULL;
    tiles->pack(view->type, rows, view->cols, to);
}

/* Types without tiles are composed row by row. */
static void compose_rows(const struct ak_view *view, uint32_t first, uint32_t n, uint64_t row_bytes,
                         uint8_t *to)
{
    for (uint32_t row = first; row < first + n; row++, to += row_bytes)
        ak_composed_make_blocks(view->composed_tensor, ak_composed_row(view, row), 0, view->cols,
                                to);
}

void ak_pack_tile_rows(const struct ak_pack_tile_format *tiles, const struct ak_view *view,
                       uint32_t first, uint32_t n, void *packed)
{
    uint64_t row_bytes = 0;
    uint8_t *to = packed;
    (void)ak_quant_row_bytes(view->type, view->cols,
                             &row_bytes); /* cannot fail: checked when the file was opened */
    if (!tiles->is_tiled(view->type)) {
        compose_rows(view, first, n, row_bytes, to);
        return;
    }
    size_t bytes = tiles->bytes(view->type, view->cols);
    for (uint32_t row = first; row < first + n; row += AK_PACK_ROWS, to += bytes)
        if (ak_composed_has_rows(view))
            pack_whole(tiles, view, row, to);
        else if (view->composed_tensor)
            pack_composed(tiles, view, row, to);
        else
            pack_stored(tiles, view, row, row_bytes, to);
}
