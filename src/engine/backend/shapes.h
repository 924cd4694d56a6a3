/* Sizes that kernels and their callers share. They are kept apart from the headers that describe
 * models and backends, so that a change of those compiles no kernel anew. */
#ifndef AK_ENGINE_BACKEND_SHAPES_H
#define AK_ENGINE_BACKEND_SHAPES_H

enum { AK_SKINNY_MAX = 16 }; /* most tokens of a skinny GEMM */

/* Classes of weight types, by the activation format that they need. */
enum ak_backend_profile_class {
    AK_BACKEND_PROFILE_FLOAT,    /* F32, F16, BF16 and types without packed kernels */
    AK_BACKEND_PROFILE_SCALE32,  /* a scale per 32 weights */
    AK_BACKEND_PROFILE_SCALE256, /* the K-types */
    AK_BACKEND_PROFILE_CLASSES
};

/* Tokens of a page of the KV cache, and of a group of keys within it. */
enum { AK_KV_PAGE_TOKENS = 64, AK_KV_GROUP_TOKENS = 16 };

#endif
