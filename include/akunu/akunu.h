/* akunu.h: the API of akunu, a library that runs language models and encoders on the CPU,
 * and on OpenCL devices.
 *
 * Programs in C11 or C++17 include this header, as akunu-cli (src/apps/cli/), examples/ and bench/
 * do. The library uses its types throughout. It includes all of the API:
 *
 *     core.h      errors; models, sessions, embeddings, generating
 *     sample.h    how the next token is sampled
 *     text.h      tokenizers, grammars, chat templates, tool calls, completing texts
 *     files.h     looking into files, the cache, saved sequences, converting
 *     schedule.h  many requests at once
 *     comm.h      several processes that share a model
 *     speech.h    audio, and the stages of a speech model
 *     measure.h   the machine, rooflines, chip profiles, memory, counters
 *
 * Outline of a program:
 *
 *     model   = akunu_model_load(path, NULL);          shared, immutable
 *     session = akunu_session_new(model, NULL);        one thread's, mutable
 *     akunu_session_complete(session, -1, text, n_bytes, NULL, on_piece, NULL, user, NULL);
 *
 * Or, by tokens:
 *
 *     seq     = akunu_sequence_new(session);           one conversation
 *     n_ids   = akunu_tokenizer_encode(akunu_model_tokenizer(model), text, n_bytes,
 *                                      AKUNU_ADD_SPECIAL, ids, capacity);
 *     akunu_session_generate(session, seq, ids, n_ids, &generation, on_piece, NULL, user, NULL);
 *     akunu_session_embed(session, texts, n_texts, NULL, NULL, NULL, out);   or embeddings
 *     akunu_session_free(session);
 *     akunu_model_free(model);
 *
 * docs/c-api.md shows how to chat, batch, constrain, embed, cancel and share threads.
 *
 * Errors. On failure a status is not AKUNU_OK, a pointer is NULL, and a number is -1 unless its
 * comment says otherwise. akunu_last_error() then returns the calling thread's message, which says
 * what was found and what was expected. The library never aborts, exits, prints or changes
 * process-wide state.
 *
 * Threads. Any number of threads may use a model, a tokenizer, a template or a grammar at once. A
 * session and all else belong to one thread at a time.
 *
 * Ownership. The caller owns a handle that a function returns, and frees it with the …_free of its
 * type, which accepts NULL. A const handle is only lent. Handles may be freed in any order: each
 * keeps alive what it needs of another. A lent handle or string lives as long as the handle passed
 * to the function.
 *
 * Versions. A struct that the program fills begins with `size`: akunu_X_default(&x, sizeof x) sets
 * it and all defaults, then change what you need. A struct that the library fills is passed with
 * its size. So both may grow while a program and a library of different versions work together:
 * what one side does not know is left out, or 0. Structs without a size, which only arrays hold
 * (akunu_batch_token, akunu_ids, akunu_logit_bias, akunu_logprob), do not grow. Enum values never
 * change. */
#ifndef AKUNU_AKUNU_H
#define AKUNU_AKUNU_H

#include "akunu/comm.h"
#include "akunu/core.h"
#include "akunu/files.h"
#include "akunu/measure.h"
#include "akunu/sample.h"
#include "akunu/schedule.h"
#include "akunu/speech.h"
#include "akunu/text.h"

#endif
