/* GGUF writer (version 3, as in files/weights/gguf/gguf.h): metadata, the list of tensors, then
 * their data in order. The file is unnamed, or has a temporary name, until all of it is on disk, so
 * an interrupted conversion leaves no broken model.
 *
 * Errors are sticky: after the first, calls do nothing, and ak_gguf_writer_finish returns it. */
#ifndef AK_CONVERSION_CONVERT_GGUF_WRITE_H
#define AK_CONVERSION_CONVERT_GGUF_WRITE_H

#include "base/buffer.h"
#include "files/weights/provider.h"

enum {
    AK_GGUF_WRITER_ALIGNMENT = 32,
    AK_GGUF_WRITER_NAME_BYTES = 64 /* of a tensor, with the NUL: llama.cpp's limit */
};

struct ak_gguf_writer {
    struct ak_buffer metas, tensors;
    uint64_t n_metas, n_tensors, data_bytes; /* data_bytes includes padding */
    ak_status status;
    struct ak_error *error;
    /* the file, its folder, and its temporary name until it is complete */
    char *path, *folder, *temporary;
    bool is_unnamed;          /* it has no name until it is complete; `temporary` links it then */
    int fd;                   /* −1: not open */
    struct ak_buffer pending; /* data not written yet */
    uint64_t written;         /* bytes of tensor data so far */
    /* set by the caller; as in struct ak_convert_options */
    bool (*progress)(double fraction, void *user);
    void *user;
};

struct ak_gguf_writer ak_gguf_writer_begin(struct ak_error *error);

/* ---- Metadata: each call adds an entry ---------------------------------- */
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
void ak_gguf_writer_put_bools(struct ak_gguf_writer *w, const char *key, const bool *values,
                              uint32_t n);
void ak_gguf_writer_put_bytes(struct ak_gguf_writer *w, const char *key, struct ak_text value);
/* An entry of another GGUF file; keeps its types. */
void ak_gguf_writer_put_meta(struct ak_gguf_writer *w, const struct ak_provider *p,
                             const struct ak_meta *meta);

/* ---- Tensors, in the order of their data -------------------------------- */
/* `shape` is row-major, as in struct ak_tensor. */
void ak_gguf_writer_put_tensor(struct ak_gguf_writer *w, const char *name, enum ak_quant_type type,
                               unsigned n_dims, const uint64_t *shape);

/* Bytes before the data, once all metadata and tensors are put. */
uint64_t ak_gguf_writer_header_bytes(const struct ak_gguf_writer *w);

/* ---- The file ----------------------------------------------------------- */
/* AKUNU_ERROR_ARGUMENT: `path` exists and may not be replaced, or is no regular file. */
ak_status ak_gguf_writer_check_path(const char *path, bool overwrite, struct ak_error *error);
/* Creates the file in the folder of `path` and reserves disk space for all of it: a full disk is
 * refused here (AKUNU_ERROR_IO). A file at `path` stays until ak_gguf_writer_finish. */
void ak_gguf_writer_open(struct ak_gguf_writer *w, const char *path);
/* Adds bytes to the current tensor; ends it. */
void ak_gguf_writer_write(struct ak_gguf_writer *w, const void *data, size_t n);
void ak_gguf_writer_end_tensor(struct ak_gguf_writer *w);
/* In place of all bytes of a tensor: a hole. */
void ak_gguf_writer_skip_tensor(struct ak_gguf_writer *w, uint64_t bytes);
/* On success syncs the file and renames it to `path`; after a failure removes it. Frees the
 * writer. */
ak_status ak_gguf_writer_finish(struct ak_gguf_writer *w);

/* The same for a file in memory that has no name: *fd is the caller's after success. */
void ak_gguf_writer_open_memory(struct ak_gguf_writer *w);
ak_status ak_gguf_writer_finish_memory(struct ak_gguf_writer *w, int *fd);

#endif
