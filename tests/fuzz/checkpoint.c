/* The two layers of PyTorch's checkpoints. The first byte says which: 'p' a pickle, 'z' an archive.
 * Whatever the bytes: a pickle's values refer to each other inside their lists, tensors stay inside
 * their storages, and entries of an archive inside it and apart. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "files/weights/torch/torch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_tensor(const struct ak_pickle *p, const struct ak_pickle_value *v)
{
    uint64_t n = 1;
    must(v->as.tensor.storage < p->n_values);
    const struct ak_pickle_value *storage = &p->values[v->as.tensor.storage];
    must(storage->kind == AK_PICKLE_STORAGE && v->as.tensor.n_dims <= AK_PICKLE_DIMS_MAX);
    for (uint32_t d = 0; d < v->as.tensor.n_dims; d++) {
        must(v->as.tensor.shape[d] > 0);
        n *= v->as.tensor.shape[d];
    }
    must(v->as.tensor.first <= storage->as.storage.n &&
         n <= storage->as.storage.n - v->as.tensor.first);
}

static void check_value(const struct ak_pickle *p, const struct ak_pickle_value *v,
                        const uint8_t *data, size_t n)
{
    if (v->kind == AK_PICKLE_OBJECT)
        must(v->as.state == AK_PICKLE_NO_STATE || v->as.state < p->n_values);
    if (v->kind == AK_PICKLE_OTHER)
        must(v->as.what && *v->as.what);
    if (v->kind == AK_PICKLE_STRING)
        must((const uint8_t *)v->as.string.bytes >= data &&
             (const uint8_t *)v->as.string.bytes + v->as.string.n <= data + n);
    if (v->kind == AK_PICKLE_TUPLE)
        must(v->as.tuple.first <= p->n_children &&
             v->as.tuple.n <= p->n_children - v->as.tuple.first);
    if (v->kind == AK_PICKLE_STORAGE)
        must(v->as.storage.key < p->n_values &&
             p->values[v->as.storage.key].kind == AK_PICKLE_STRING);
    if (v->kind == AK_PICKLE_TENSOR)
        check_tensor(p, v);
}

static void read_pickle(const uint8_t *data, size_t n)
{
    struct ak_pickle p;
    struct ak_error error;
    if (ak_pickle_read(data, n, &p, &error) == AKUNU_OK) {
        must(p.root < p.n_values && p.n_values <= n && p.n_children <= n && p.n_items <= n);
        for (size_t i = 0; i < p.n_values; i++)
            check_value(&p, &p.values[i], data, n);
        for (size_t i = 0; i < p.n_children; i++)
            must(p.children[i] < p.n_values);
        for (size_t i = 0; i < p.n_items; i++)
            must(p.items[i].dict < p.n_values && p.items[i].key < p.n_values &&
                 p.items[i].value < p.n_values);
        (void)ak_pickle_get(&p, p.root, "dims");
    }
    ak_pickle_free(&p);
}

static void read_archive(const uint8_t *data, size_t n)
{
    struct ak_zip zip;
    struct ak_error error;
    if (ak_zip_read(data, n, &zip, &error) == AKUNU_OK)
        for (size_t i = 0; i < zip.n; i++) {
            const struct ak_zip_entry *e = &zip.entries[i];
            must(e->offset <= n && e->bytes <= n - e->offset && ak_zip_find(&zip, e->name) == e);
            must(i == 0 || e->header >= e[-1].offset + e[-1].bytes);
        }
    ak_zip_free(&zip);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] == 'p')
        read_pickle(data + 1, size - 1);
    if (size > 0 && data[0] == 'z')
        read_archive(data + 1, size - 1);
    return 0;
}
