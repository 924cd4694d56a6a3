/* Writes a GGUF file (version 3, as in weights/gguf/gguf.h): metadata, the list of tensors,
 * then their data in order. The file has no name, or another one, until all of it is on
 * the disk.
 *
 * The first failure stays: later calls do nothing, and ak_gguf_writer_finish gives it. */
#ifndef AK_CONVERT_GGUF_WRITE_H
#define AK_CONVERT_GGUF_WRITE_H

#include "base/buffer.h"
#include "weights/provider.h"

enum {
    AK_GGUF_WRITER_ALIGNMENT = 32,
    AK_GGUF_WRITER_NAME_BYTES = 64 /* with the NUL: what llama.cpp reads */
};

struct ak_gguf_writer {
    struct ak_buffer metas, tensors;
    uint64_t n_metas, n_tensors, data_bytes; /* data: with what aligns it */
    ak_status status;
    struct ak_error *error;
    /* the file, where it lies, and its name until it is complete */
    char *path, *folder, *temporary;
    bool is_unnamed; /* it has none until then */
    int fd;
    struct ak_buffer pending; /* data not written yet */
    uint64_t written;         /* bytes of data so far */
    /* the caller's, as in struct ak_convert_options */
    bool (*progress)(double fraction, void *user);
    void *user;
};

struct ak_gguf_writer ak_gguf_writer_begin(struct ak_error *error);

/* ---- Metadata: a key of its own each ------------------------------------ */
void ak_gguf_writer_put_u32(struct ak_gguf_writer *w, const char *key, uint32_t value);
void ak_gguf_writer_put_f32(struct ak_gguf_writer *w, const char *key, float value);
void ak_gguf_writer_put_bool(struct ak_gguf_writer *w, const char *key, bool value);
void ak_gguf_writer_put_text(struct ak_gguf_writer *w, const char *key, struct ak_text value);
void ak_gguf_writer_put_string(struct ak_gguf_writer *w, const char *key, const char *value);
void ak_gguf_writer_put_texts(struct ak_gguf_writer *w, const char *key,
                              const struct ak_text *values, uint32_t n);
void ak_gguf_writer_put_floats(struct ak_gguf_writer *w, const char *key, const float *values,
                               uint32_t n);
void ak_gguf_writer_put_ints(struct ak_gguf_writer *w, const char *key, const int32_t *values,
                             uint32_t n);
void ak_gguf_writer_put_bytes(struct ak_gguf_writer *w, const char *key, struct ak_text value);
/* An entry of another GGUF file, of its own types. */
void ak_gguf_writer_put_meta(struct ak_gguf_writer *w, const struct ak_provider *p,
                             const struct ak_meta *meta);

/* ---- Tensors, in the order of their data -------------------------------- */
/* `shape` as in struct ak_tensor, contiguous last. */
void ak_gguf_writer_put_tensor(struct ak_gguf_writer *w, const char *name, enum ak_quant_type type,
                               unsigned n_dims, const uint64_t *shape);

/* ---- The file ----------------------------------------------------------- */
/* Makes it in the folder of `path`, with room for all of it: a disk without that is refused here
 * (AKUNU_ERROR_IO). A file that is at `path` stays as it is. */
void ak_gguf_writer_open(struct ak_gguf_writer *w, const char *path);
/* The next bytes of the current tensor; and that it is complete. */
void ak_gguf_writer_write(struct ak_gguf_writer *w, const void *data, size_t n);
void ak_gguf_writer_end_tensor(struct ak_gguf_writer *w);
/* Syncs and names it, or removes what there is. Frees. */
ak_status ak_gguf_writer_finish(struct ak_gguf_writer *w);

#endif
