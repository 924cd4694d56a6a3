/* What a model writes, taken apart while it comes: see akunu_reply in akunu.h.
 *
 *     bytes → UTF-8 → text and its markers → a call's shape → its body → events → message
 *     utf8_input.c    content.c, harmony.c    call.c          json_call.c â¦  emit.c
 */
#ifndef AK_TOOLCALL_REPLY_H
#define AK_TOOLCALL_REPLY_H

#include "toolcall/toolcall.h"

struct ak_tc_parser;

struct ak_tc_parser_params {
    const struct ak_tc_format *format;
    const char *prompt, *tools; /* NULL allowed */
    bool calls, reasoning;
    uint64_t seed;
    akunu_reply_fn *on_event; /* NULL allowed */
    void *user;
};

/* Copies what it needs of the settings. */
ak_status ak_tc_parser_create(const struct ak_tc_parser_params *settings, struct ak_tc_parser **out,
                              struct ak_error *error);
void ak_tc_parser_free(struct ak_tc_parser *r); /* NULL allowed */

ak_status ak_tc_parser_push(struct ak_tc_parser *r, const char *bytes, size_t n,
                            struct ak_error *error);
ak_status ak_tc_parser_end(struct ak_tc_parser *r, struct ak_error *error);

/* The message as JSON text, which belongs to the reply. */
ak_status ak_tc_parser_message(struct ak_tc_parser *r, const char **out, struct ak_error *error);
const char *ak_tc_parser_notes(const struct ak_tc_parser *r);
const struct ak_tc_format *ak_tc_parser_format(const struct ak_tc_parser *r);

#endif
