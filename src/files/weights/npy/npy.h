/* Reader of one .npy file: a text header and a raw array.
 *
 *     "\x93NUMPY", u8 version (1, 2 or 3), u8 0
 *     u16 (version 1) or u32: bytes of the header
 *     the header: {'descr': '<f4', 'fortran_order': False, 'shape': (4, 4), }
 *     the data, little-endian, row-major
 *
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#ifndef AK_FILES_WEIGHTS_NPY_NPY_H
#define AK_FILES_WEIGHTS_NPY_NPY_H

#include "base/file.h"
#include "files/quant/type.h"
#include "files/weights/provider.h"

struct ak_npy {
    enum ak_quant_type type;
    unsigned n_dims;                    /* at least 1: a scalar is given as [1] */
    uint64_t shape[AK_TENSOR_DIMS_MAX]; /* row-major; each and the number of rows fit 32 bits */
    uint64_t offset, bytes;             /* of the data, in the file */
};

bool ak_npy_probe(const struct ak_file *file);

/* Reads and checks the header; also that the data has the size of the shape. */
ak_status ak_npy_read(const struct ak_file *file, struct ak_npy *out, struct ak_error *error);

#endif
