/* akunu/schedule.h: many requests at once. A scheduler runs one session in a thread of its own.
 * Requests from any thread share its passes, so the weights are read once for all of them. Included
 * by akunu.h; compiles alone. */
#ifndef AKUNU_SCHEDULE_H
#define AKUNU_SCHEDULE_H

#include "akunu/core.h"
#include "akunu/files.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Requests ----------------------------------------------------------- */
enum akunu_request_event_kind {
    /* token `prompt_index` of the prompt, with its log-probability (prompt_logprobs) */
    AKUNU_REQUEST_PROMPT = 1,
    /* a token of a completion, and the characters that it completed, maybe none; token -1: text
     * that was withheld, at the end of the completion */
    AKUNU_REQUEST_TOKEN = 2,
    /* the end of a completion; see `status` and `result` */
    AKUNU_REQUEST_END = 3
};

struct akunu_request_event {
    size_t size;
    enum akunu_request_event_kind kind;
    uint64_t request;  /* number from akunu_scheduler_submit */
    size_t index;      /* number of the completion, 0 … n - 1 */
    akunu_token token; /* AKUNU_REQUEST_PROMPT, AKUNU_REQUEST_TOKEN */
    size_t prompt_index;
    const char *text; /* UTF-8, whole characters, n_bytes of them, without a NUL */
    size_t n_bytes;
    /* With `logprobs` or `prompt_logprobs`, the values of akunu_logprobs_compute. The prompt's
     * first token has none: n_top is 0, and logprob is NaN. */
    float logprob;
    const struct akunu_logprob *top; /* [n_top] */
    size_t n_top;
    /* AKUNU_REQUEST_END: AKUNU_OK, or why the completion failed. AKUNU_ERROR_CANCELLED: the request
     * was cancelled or timed out, or the scheduler was freed. */
    enum akunu_status status;
    const char *message; /* "" if status is AKUNU_OK */
    const struct akunu_result *result;
    size_t n_open; /* unfinished completions of the request; 0: this is its last event */
};

/* The scheduler's thread calls it between passes. It must return soon and must not wait for the
 * scheduler. It may submit and cancel requests. Return false to end the completion
 * (AKUNU_STOP_CALLBACK). */
typedef bool akunu_request_fn(const struct akunu_request_event *event, void *user);

/* The scheduler copies everything except for the grammar, which it keeps alive. */
struct akunu_request {
    size_t size;
    const akunu_token *ids; /* the prompt: 1 … akunu_scheduler_context() tokens */
    size_t n_ids;
    /* number of completions (1). Completion i is the text of akunu_session_generate with seed + i,
     * whatever else runs. */
    size_t n;
    /* NULL: defaults. max_tokens 0: the prompt is run, and nothing is generated. There is no
     * speculation. AKUNU_ERROR_UNSUPPORTED: a draft session or a callback is set; on_event takes
     * the place of callbacks. */
    const struct akunu_generation_params *generation;
    bool logprobs; /* of generated tokens, with the generation->n_top_logprobs most likely ones */
    bool prompt_logprobs; /* of the prompt's tokens; the whole prompt is then computed */
    bool chain; /* compute akunu_result.chain, which proves what was computed; changes no text */
    /* Requests of different clients take turns; those of one client run in their order. */
    uint64_t client;
    double timeout; /* seconds after which the request is cancelled; 0: never */
    akunu_request_fn *on_event;
    void *user; /* passed to on_event */
};
AKUNU_API void akunu_request_default(struct akunu_request *request, size_t size);

/* ---- Schedulers --------------------------------------------------------- */
struct akunu_scheduler;

struct akunu_scheduler_params {
    size_t size;
    uint32_t max_waiting; /* requests that may wait for their turn (256) */
    /* While texts are generated, a pass with a part of a prompt takes at most about as long as this
     * many passes without one, or half as long again if the part has fewer than 16 tokens. At least
     * 1 (4). */
    double max_pass_ratio;
    bool no_prefix_cache; /* prompts do not reuse the KV pages of earlier texts */
    /* Where texts are saved for a scheduler that starts later: after 30 seconds without work, and
     * when this one is freed. NULL: texts are not saved. AKUNU_ERROR_UNSUPPORTED: as in
     * akunu_sequence_save. */
    const struct akunu_prompt_cache *prompts;
};
AKUNU_API void akunu_scheduler_params_default(struct akunu_scheduler_params *params, size_t size);

/* Starts a thread with a session of the model. session: parameters as in akunu_session_new, but
 * max_sequences is 16 by default. That many texts are generated at once, and other requests wait.
 * The session's context holds the KV pages of all texts and of the prefix cache. Strings of both
 * structs are copied. AKUNU_ERROR_UNSUPPORTED: the model is an encoder. AKUNU_ERROR_ARGUMENT: a
 * pass takes fewer tokens than there are sequences. */
AKUNU_API struct akunu_scheduler *akunu_scheduler_new(const struct akunu_model *model,
                                                      const struct akunu_session_params *session,
                                                      const struct akunu_scheduler_params *params);

/* Cancels all requests, reports their ends and stops the thread. A callback must not call it. */
AKUNU_API void akunu_scheduler_free(struct akunu_scheduler *scheduler);

/* Queues a request. *id, unless id is NULL, becomes its number, from 1. A request that was queued
 * ends with an AKUNU_REQUEST_END for each completion. Its first event may come before this call
 * returns. Any thread may call this function and those below.
 *
 * AKUNU_ERROR_BUSY: max_waiting requests wait already. AKUNU_ERROR_CONTEXT: the prompt is longer
 * than the context; the message has both counts. AKUNU_ERROR_ARGUMENT, AKUNU_ERROR_UNSUPPORTED: as
 * in akunu_session_generate. */
AKUNU_API enum akunu_status akunu_scheduler_submit(struct akunu_scheduler *scheduler,
                                                   const struct akunu_request *request,
                                                   uint64_t *id);

/* Ends the request before the next pass. Has no effect if the request has ended. */
AKUNU_API void akunu_scheduler_cancel(struct akunu_scheduler *scheduler, uint64_t id);

/* Pauses a request, or resumes it: for clients that do not read. A paused request takes part in no
 * pass, but its timeout continues. Has no effect if the request has ended. */
AKUNU_API void akunu_scheduler_pause(struct akunu_scheduler *scheduler, uint64_t id, bool paused);

/* Most tokens that a text can have, including its prompt. */
AKUNU_API uint32_t akunu_scheduler_context(const struct akunu_scheduler *scheduler);

/* What the scheduler has done since it started, and what runs now. */
struct akunu_scheduler_stats {
    uint64_t n_requests, n_cancelled; /* requests that have ended; those that were cancelled */
    uint64_t n_prompt_tokens;         /* of requests that started, computed or not */
    uint64_t n_cached_tokens;         /* of these, tokens found in the prefix cache */
    uint64_t n_generated, n_passes;   /* tokens; passes */
    uint64_t n_preempted; /* texts whose pages were freed for others, and are computed again */
    uint32_t n_running, n_waiting;  /* requests */
    uint32_t n_pages, n_used_pages; /* pages of the KV cache; pages of active texts */
    uint32_t n_cached_pages;        /* pages kept for later prompts, and freed when needed */
    uint64_t page_bytes;            /* bytes of a page */
    uint64_t session_bytes; /* allocated for the session: KV cache and scratch, touched or not */
};
AKUNU_API enum akunu_status akunu_scheduler_get_stats(struct akunu_scheduler *scheduler,
                                                      struct akunu_scheduler_stats *stats,
                                                      size_t size);

/* An active text, after the last pass. */
struct akunu_scheduler_slot {
    uint64_t request; /* number of its request; 0: the slot is empty, and all else is 0 */
    size_t index;     /* number of the completion */
    uint32_t n_prompt, n_cached; /* tokens of the prompt; of these, found in the prefix cache */
    uint32_t n_done;             /* tokens of the prompt that are computed or cached */
    uint32_t n_generated;
};
/* Slot i of 0 … max_sequences - 1. AKUNU_ERROR_ARGUMENT: there is no such slot. */
AKUNU_API enum akunu_status akunu_scheduler_get_slot(struct akunu_scheduler *scheduler, size_t i,
                                                     struct akunu_scheduler_slot *slot,
                                                     size_t size);

#ifdef __cplusplus
}
#endif

#endif
