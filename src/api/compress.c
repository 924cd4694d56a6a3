/* akunu_compress: a model as a folder of NumPy arrays. */
#include "conversion/compress/compress.h"

#include <string.h>

#include "api/handles.h"

void akunu_compress_params_default(struct akunu_compress_params *params, size_t size)
{
    static const struct akunu_compress_params full = {
        .encoding = "int8", .group = 64, .max_divergence = -1.0, .min_agreement = -1.0
    };
    ak_api_give_default(params, size, &full, sizeof full);
}

static ak_status find_encoding(const char *name, enum ak_compress_encoding *out,
                               struct ak_error *error)
{
    for (int e = 0; name && e < AK_COMPRESS_PLAIN; e++)
        if (strcmp(name, ak_compress_encodings[e].name) == 0) {
            *out = (enum ak_compress_encoding)e;
            return AKUNU_OK;
        }
    return ak_fail(error, AKUNU_ERROR_ARGUMENT, "encoding '%s'; expected int8, int4 or int3",
                   name ? name : "");
}

static ak_status give_result(const struct ak_compress_result *from,
                             struct akunu_compress_result *result, size_t size,
                             struct ak_error *error)
{
    const struct akunu_compress_result full = { .source_bytes = from->source_bytes,
                                                .int8_bytes = from->bytes[AK_COMPRESS_INT8],
                                                .int4_bytes = from->bytes[AK_COMPRESS_INT4],
                                                .int3_bytes = from->bytes[AK_COMPRESS_INT3],
                                                .plain_bytes = from->bytes[AK_COMPRESS_PLAIN],
                                                .n_matrices = from->n_matrices,
                                                .n_resumed = from->n_resumed,
                                                .min_cosine = from->min_cosine,
                                                .n_positions = from->n_positions,
                                                .divergence = from->divergence,
                                                .agreement = from->agreement };
    return result ?
               ak_api_copy_out(result, size, &full, sizeof full, "akunu_compress_result", error) :
               AKUNU_OK;
}

static ak_status compress(const char *from, const char *to,
                          const struct akunu_compress_params *given,
                          struct akunu_compress_result *result, size_t size, struct ak_error *error)
{
    struct akunu_compress_params params;
    struct ak_compress_result found;
    akunu_compress_params_default(&params, sizeof params);
    if (!from || !to)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no path is given");
    AK_TRY(ak_api_copy_in(&params, sizeof params, given, "akunu_compress_params", error));
    struct ak_log log = { params.log, params.user };
    struct ak_compress_options options = { .group = params.group,
                                           .importance = params.importance,
                                           .awq = params.awq,
                                           .text = params.text,
                                           .n_text = params.n_text,
                                           .max_divergence = params.max_divergence,
                                           .min_agreement = params.min_agreement,
                                           .requantize = params.requantize,
                                           .overwrite = params.overwrite,
                                           .n_threads = params.n_threads,
                                           .progress = params.progress,
                                           .user = params.user,
                                           .log = &log };
    AK_TRY(find_encoding(params.encoding, &options.encoding, error));
    ak_status status = ak_compress(from, to, &options, &found, error);
    ak_status given_back = give_result(&found, result, size, error);
    return status == AKUNU_OK ? given_back : status;
}

enum akunu_status akunu_compress(const char *from, const char *to,
                                 const struct akunu_compress_params *params,
                                 struct akunu_compress_result *result, size_t size)
{
    struct ak_error error = { 0 };
    compress(from, to, params, result, size, &error);
    return ak_api_finish(&error);
}
