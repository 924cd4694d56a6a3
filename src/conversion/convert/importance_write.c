/* Writes importance matrices as llama-imatrix does, for llama-quantize and quantize. */
#include "conversion/convert/importance.h"

#include <stdio.h>
#include <string.h>

#include "conversion/convert/gguf_write.h"

static void put_names(struct ak_gguf_writer *w, const struct ak_importance *im)
{
    struct ak_text *names = ak_alloc(im->n_datasets, sizeof *names);
    if (!names) {
        w->status = ak_fail_memory(w->error, "names of texts", im->n_datasets * sizeof *names);
        return;
    }
    for (size_t i = 0; i < im->n_datasets; i++)
        names[i] = (struct ak_text){ im->datasets[i], (uint32_t)strlen(im->datasets[i]) };
    ak_gguf_writer_put_texts(w, "imatrix.datasets", names, (uint32_t)im->n_datasets);
    ak_free(names);
}

/* The entry that is i-th by name. */
static const struct ak_importance_entry *get_entry(const struct ak_importance *im, size_t i)
{
    return &im->entries[im->index.entries[i].position];
}

static void put_tensor(struct ak_gguf_writer *w, const struct ak_importance_entry *e,
                       const char *suffix, uint64_t cols)
{
    char name[2 * AK_GGUF_WRITER_NAME_BYTES];
    const uint64_t shape[] = { e->n_matrices, cols };
    snprintf(name, sizeof name, "%.*s%s", AK_GGUF_WRITER_NAME_BYTES, e->name, suffix);
    unsigned n_dims = e->n_matrices > 1 ? 2 : 1;
    ak_gguf_writer_put_tensor(w, name, AK_QUANT_F32, n_dims, shape + 2 - n_dims);
}

ak_status ak_importance_write(const struct ak_importance *im, uint32_t chunk_size, const char *path,
                              struct ak_error *error)
{
    struct ak_gguf_writer w = ak_gguf_writer_begin(error);
    ak_gguf_writer_put_string(&w, "general.type", "imatrix");
    put_names(&w, im);
    ak_gguf_writer_put_u32(&w, "imatrix.chunk_count",
                           (uint32_t)(ak_importance_tokens(im) / chunk_size));
    ak_gguf_writer_put_u32(&w, "imatrix.chunk_size", chunk_size);
    for (size_t i = 0; i < im->n; i++) {
        const struct ak_importance_entry *e = get_entry(im, i);
        put_tensor(&w, e, ".in_sum2", e->n / e->n_matrices);
        put_tensor(&w, e, ".counts", 1);
    }
    ak_gguf_writer_open(&w, path);
    for (size_t i = 0; i < im->n && w.status == AKUNU_OK; i++) {
        const struct ak_importance_entry *e = get_entry(im, i);
        ak_gguf_writer_write(&w, e->values, e->n * sizeof *e->values);
        ak_gguf_writer_end_tensor(&w);
        ak_gguf_writer_write(&w, e->counts, e->n_matrices * sizeof *e->counts);
        ak_gguf_writer_end_tensor(&w);
    }
    return ak_gguf_writer_finish(&w);
}

ak_status ak_importance_check_path(const char *path, bool overwrite, struct ak_error *error)
{
    AK_TRY(ak_gguf_writer_check_path(path, overwrite, error));
    struct ak_gguf_writer w = ak_gguf_writer_begin(error);
    ak_gguf_writer_open(&w, path);
    bool possible = w.status == AKUNU_OK;
    if (possible)
        w.status = AKUNU_ERROR_CANCELLED; /* so that nothing gets the name */
    ak_status status = ak_gguf_writer_finish(&w);
    return possible ? AKUNU_OK : status;
}
