/* akunu.h: the API of akunu, a library that runs language models, text encoders and speech models
 * on the CPU and on OpenCL devices.
 *
 * Include this header from C11 or C++17. It includes the whole API:
 *
 *     core.h      errors, models, sessions, embeddings, generating text
 *     sample.h    how the next token is sampled
 *     text.h      tokenizers, grammars, chat templates, tool calls, completing texts
 *     files.h     model files, the cache, saved sequences, converting and quantizing
 *     schedule.h  many requests at once
 *     comm.h      several processes that share a model
 *     speech.h    audio, transcribing, and the stages of a speech model
 *     measure.h   the machine, rooflines, chip profiles, memory, counters
 *
 * Outline of a program:
 *
 *     model   = akunu_model_load(path, NULL);          immutable; threads may share it
 *     session = akunu_session_new(model, NULL);        mutable; one call at a time
 *     akunu_session_complete(session, -1, text, n_bytes, &completion, NULL);
 *     akunu_session_free(session);
 *     akunu_model_free(model);
 *
 * completion.generation points to a struct akunu_generation_params, whose on_piece gets the text.
 * Programs that handle tokens themselves call akunu_tokenizer_encode and akunu_session_generate
 * instead. docs/c-api.md shows how to chat, batch, constrain, embed, cancel and share threads, and
 * examples/ has a program for each.
 *
 * Errors. A function that fails returns a status other than AKUNU_OK, a NULL pointer, or -1, unless
 * its comment says otherwise. akunu_last_error() then returns the calling thread's message, which
 * says what was found and what was expected. A comment lists a status if its cause is particular to
 * the function. Besides these, a function may return AKUNU_ERROR_ARGUMENT for a NULL where a value
 * is needed, AKUNU_ERROR_MEMORY, and AKUNU_ERROR_BUSY if it uses a session. The library never
 * aborts, exits, prints or changes process-wide state.
 *
 * Threads. Any number of threads may use a model, a tokenizer, a template, a grammar, a thread
 * pool, a VAD model or a scheduler at once. Other handles belong to one thread at a time.
 *
 * Callbacks. A callback is a member of the struct of parameters to which it belongs, or a parameter
 * if the function has no such struct. It gets the `user` next to it. It runs in the thread that
 * called the library, unless its comment names another one, and may call everything except the
 * session that is running. What it gets is valid until it returns.
 *
 * Ownership. The caller owns a handle that a function returns, and frees it with the …_free
 * function of its type, which accepts NULL. A const handle is lent: do not free it. Handles may be
 * freed in any order, because each keeps alive what it needs of another. A string or a lent handle
 * lives as long as the handle from which it came, unless its comment says otherwise. A struct of
 * parameters and what it points to are needed during the call only, unless its comment says
 * otherwise.
 *
 * Structs. These functions fill a struct of the program, given its address and its size:
 *
 *     akunu_X_default(&x, sizeof x)           sets the defaults of a struct akunu_X
 *     akunu_Y_get_X(y, …, &x, sizeof x)       reads an X from the handle y
 *     akunu_get_X(…, &x, sizeof x)            reads an X without a handle
 *
 * Functions that do work before they fill a struct are named for the work: measure, tune, compress.
 * A function with an index i returns NULL or AKUNU_ERROR_ARGUMENT past the end of its list.
 * To pass a struct that has defaults, call akunu_X_default and then set what should differ. NULL
 * means all defaults, unless the struct has a member that the program must set. In the comments of
 * members, a value in parentheses is the default; the other members default to 0, false or NULL.
 *
 * `size`. A struct that has defaults begins with `size`, the bytes of the program's version of it,
 * which akunu_X_default sets. So a struct can grow, and a program still works with a library of
 * another version: members that one side does not know are ignored, or read as 0. An event that a
 * callback gets has in `size` the bytes of the library's version. Structs that are elements of
 * arrays (akunu_adapter, akunu_batch_token, akunu_ids, akunu_logit_bias, akunu_logprob, akunu_pair,
 * akunu_word) have no size and do not grow. Enum values never change.
 *
 * Strings are UTF-8 and end with NUL unless a length is given beside them. A list of strings ends
 * with NULL unless its number is given beside it. Names that begin with `n_` are numbers of
 * elements; other numbers have their unit in the name or the comment. An array parameter or member
 * has its shape in brackets, row-major: [n, width]. Token ids begin with 0, and -1 stands for no
 * token. */
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
