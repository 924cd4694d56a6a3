/* akunu/schedule.h: the part of the public API that serves many requests at once. A scheduler runs
 * one session in a thread of its own: requests of any thread share its passes, so the weights are
 * read once for all of them. Included by akunu.h; compiles alone. */
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
    /* a token of a completion and the characters that it completed, maybe none; token -1: text that
     * was withheld, at the end of the completion */
    AKUNU_REQUEST_TOKEN = 2,
    /* a completion ended: see `status` and `result` */
    AKUNU_REQUEST_END = 3
};

/* Valid until the callback returns, its pointers too. */
struct akunu_request_event {
    size_t size;
    enum akunu_request_event_kind kind;
    uint64_t request;  /* as akunu_scheduler_submit returned it */
    size_t index;      /* 0 … n-1 */
    akunu_token token; /* AKUNU_REQUEST_PROMPT, AKUNU_REQUEST_TOKEN */
    size_t prompt_index;
    const char *text; /* UTF-8, whole characters, not NUL-terminated */
    size_t n_bytes;
    /* with `logprobs` or `prompt_logprobs`; as from akunu_logprobs_compute. The prompt's first
     * token has none: n_top is 0 and logprob NAN */
    float logprob;
    const struct akunu_logprob *top;
    size_t n_top;
    /* AKUNU_REQUEST_END: AKUNU_OK, or why the completion failed. AKUNU_ERROR_CANCELLED: cancelled,
     * past its time-out, or the scheduler was freed */
    enum akunu_status status;
    const char *message; /* "" if status is AKUNU_OK */
    const struct akunu_result *result;
    size_t n_open; /* completions of the request that go on; 0: this is its last event */
};

/* Called by the scheduler's thread, between passes: return soon, and never block on the scheduler.
 * It may submit and cancel requests. Return false to end the completion (AKUNU_STOP_CALLBACK). */
typedef bool akunu_request_fn(const struct akunu_request_event *event, void *user);

/* Everything is copied, except for the grammar, which the request keeps alive. */
struct akunu_request {
    size_t size;
    const akunu_token *ids; /* the prompt: 1 … akunu_scheduler_context() tokens */
    size_t n_ids;
    /* texts that are generated from the prompt (1). Completion i is the text of
     * akunu_session_generate with seed + i, whatever else runs */
    size_t n;
    /* NULL: defaults. There is no speculation; draft sessions and callbacks are
     * AKUNU_ERROR_UNSUPPORTED. max_tokens 0: the prompt is run, and nothing is generated */
    const struct akunu_generation *generation;
    bool logprobs; /* of generated tokens, with generation->n_top_logprobs most likely ones */
    bool prompt_logprobs; /* of the prompt's; all of the prompt is then computed */
    bool chain;           /* akunu_result.chain, which proves what was computed; changes no text */
    /* requests of different clients take turns, those of one come in their order (0) */
    uint64_t client;
    double timeout; /* seconds from now until the request is cancelled; 0: none */
    akunu_request_fn *on_event;
    void *user;
};
AKUNU_API void akunu_request_default(struct akunu_request *request, size_t size);

/* ---- Schedulers --------------------------------------------------------- */
struct akunu_scheduler;

struct akunu_scheduler_params {
    size_t size;
    uint32_t max_waiting; /* requests that wait for their turn (256) */
    /* While texts grow, a pass with a part of a prompt takes at most about as long as this many
     * passes without (4), or half as long again if the part is shorter than 16 tokens. At least
     * 1. */
    double max_pass_ratio;
    bool no_prefix_cache; /* false; true: no prompt reuses the pages of earlier texts */
    /* Where texts are kept, and found again by a later scheduler: after 30 seconds without work,
     * and when this one is freed. NULL: nowhere. AKUNU_ERROR_UNSUPPORTED as in akunu_sequence_save
     */
    const struct akunu_prompt_cache *prompts;
};
AKUNU_API void akunu_scheduler_params_default(struct akunu_scheduler_params *params, size_t size);

/* Starts a thread with a session of the model. session: NULL, or as in akunu_session_new, but
 * max_sequences is 16 by default: so many texts grow at once, and others wait. Its context holds
 * the pages of all texts and of the prefix cache. params may be NULL. AKUNU_ERROR_UNSUPPORTED: the
 * model is an encoder. AKUNU_ERROR_ARGUMENT: a pass holds fewer tokens than there are sequences. */
AKUNU_API struct akunu_scheduler *akunu_scheduler_new(const struct akunu_model *model,
                                                      const struct akunu_session_params *session,
                                                      const struct akunu_scheduler_params *params);

/* Cancels all requests, reports their ends, and stops the thread. Not in a callback. NULL
 * allowed. */
AKUNU_API void akunu_scheduler_free(struct akunu_scheduler *scheduler);

/* Queues a request. *id, unless NULL: its number, from 1. Every request that was queued ends with
 * an AKUNU_REQUEST_END for each completion; the first event may come before this call returns.
 *
 * AKUNU_ERROR_BUSY: max_waiting requests wait already. AKUNU_ERROR_CONTEXT: the prompt is longer
 * than the context; the message has both counts. AKUNU_ERROR_ARGUMENT, AKUNU_ERROR_UNSUPPORTED: as
 * in akunu_session_generate. Any thread may call it, as all below. */
AKUNU_API enum akunu_status akunu_scheduler_submit(struct akunu_scheduler *scheduler,
                                                   const struct akunu_request *request,
                                                   uint64_t *id);

/* The request ends before the next pass; no effect if it has ended. */
AKUNU_API void akunu_scheduler_cancel(struct akunu_scheduler *scheduler, uint64_t id);

/* A paused request takes part in no pass until `paused` is false again: for a client that does not
 * read. Its time-out goes on. No effect if it has ended. */
AKUNU_API void akunu_scheduler_pause(struct akunu_scheduler *scheduler, uint64_t id, bool paused);

/* Tokens that a text, with its prompt, may have. */
AKUNU_API uint32_t akunu_scheduler_context(const struct akunu_scheduler *scheduler);

/* What was done, and what goes on. */
struct akunu_scheduler_stats {
    uint64_t n_requests, n_cancelled; /* ended ones; those of them with AKUNU_ERROR_CANCELLED */
    uint64_t n_prompt_tokens;         /* of started requests, computed or not */
    uint64_t n_cached_tokens;         /* of these, found in the prefix cache */
    uint64_t n_generated, n_passes;
    uint64_t n_preempted; /* texts whose pages were dropped for others, to be computed again */
    uint32_t n_running, n_waiting;  /* requests */
    uint32_t n_pages, n_used_pages; /* pages of the KV cache; those of texts that grow */
    uint32_t n_cached_pages;        /* kept for later prompts; freed when pages are needed */
    uint64_t page_bytes;
    uint64_t session_bytes; /* memory of its session: KV cache and scratch, touched or not */
};
AKUNU_API enum akunu_status akunu_scheduler_get_stats(struct akunu_scheduler *scheduler,
                                                      struct akunu_scheduler_stats *stats,
                                                      size_t size);

/* A text that grows, after the last pass. */
struct akunu_scheduler_slot {
    uint64_t request;            /* 0: none grows here, and all else is 0 */
    size_t index;                /* completion of the request */
    uint32_t n_prompt, n_cached; /* tokens of the prompt; those of them in the prefix cache */
    uint32_t n_done;             /* of the prompt, computed or cached */
    uint32_t n_generated;
};
/* Slot i of 0 … max_sequences - 1. AKUNU_ERROR_ARGUMENT: there is no such slot. */
AKUNU_API enum akunu_status akunu_scheduler_slot_at(struct akunu_scheduler *scheduler, size_t i,
                                                    struct akunu_scheduler_slot *slot, size_t size);

#ifdef __cplusplus
}
#endif

#endif
