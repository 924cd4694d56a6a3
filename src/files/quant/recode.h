/* Recoding: stored blocks as blocks of another type that kernels multiply fast. Every element keeps
 * its value; a block takes more bytes. So types with large codebooks, or digits to the base 3, need
 * no kernels. */
#ifndef AK_FILES_QUANT_RECODE_H
#define AK_FILES_QUANT_RECODE_H

#include "files/quant/type.h"

/* The type that blocks of `type` are recoded to; `type` itself: they are not recoded. */
enum ak_quant_type ak_quant_recoded_type(enum ak_quant_type type);

/* Recodes n elements, a multiple of the block_elems of both types. For types that are recoded. */
void ak_quant_recode(enum ak_quant_type type, const void *restrict blocks, void *restrict out,
                     size_t n);

#endif
