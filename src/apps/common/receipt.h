/* Receipts: all that a text depends on, as JSON, so that it can be made again. The server adds them
 * to answers, and verify.c reads them. */
#ifndef AK_APPS_COMMON_RECEIPT_H
#define AK_APPS_COMMON_RECEIPT_H

#include <jansson.h>

#include "akunu/akunu.h"
#include "apps/common/conversation.h"
#include "apps/common/message.h"

/* What constrains a text, in the form in which it was asked for. */
struct app_constraint {
    const char *grammar;  /* GBNF; NULL: none */
    const json_t *schema; /* JSON Schema; NULL: none */
    /* a reply to a conversation, in which the grammar constrains the content; NULL: it is none */
    const char *chat_template;
    const char *prompt; /* the rendered one */
    const char *tools;  /* JSON; NULL: none */
    const char *choice; /* NULL: auto */
    bool parallel;
};

/* A receipt without seed, tokens and chain. NULL: out of memory. */
json_t *app_receipt_begin(const char *sha256, const akunu_token *ids, size_t n_ids,
                          const struct akunu_generation_params *generation,
                          const struct app_constraint *constraint);
/* Adds them to a receipt; `tokens` is referred to. False: out of memory. */
bool app_receipt_end(json_t *receipt, uint64_t seed, json_t *tokens, const uint8_t chain[32]);

/* ---- Reading ------------------------------------------------------------ */
enum { APP_RECEIPT_BIAS_MAX = 4096 };

/* What a receipt says. It points into the receipt's JSON, and into itself: do not copy. */
struct app_receipt {
    const char *version, *sha256, *chain;
    akunu_token *prompt, *tokens;
    size_t n_prompt, n_tokens;
    struct akunu_generation_params generation;
    struct akunu_sampling_params sampling;
    struct akunu_reasoning reasoning;
    struct akunu_logit_bias bias[APP_RECEIPT_BIAS_MAX];
    const char *stops[65], *breakers[65];
    bool is_chat;
    struct app_constraint constraint;
};

/* Reads a receipt, or what has one in akunu.receipt. False: *why says what is wrong with it, or is
 * "" if memory is short. Free *out in both cases. */
bool app_receipt_read(const json_t *json, struct app_receipt *out, char why[APP_PROBLEM_BYTES]);
void app_receipt_free(struct app_receipt *receipt);

#endif
