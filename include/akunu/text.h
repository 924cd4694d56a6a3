/* akunu/text.h: the part of the public API that handles text: tokenizers, grammars, chat templates,
 * replies with tool calls, fill-in-the-middle, and the completion of a text or a conversation
 * (akunu_session_complete). Included by akunu.h; compiles alone. */
#ifndef AKUNU_TEXT_H
#define AKUNU_TEXT_H

#include "akunu/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Tokens and text ---------------------------------------------------- */
/* Converts text to tokens and back. A model has one; a file with only a vocabulary works too. */
struct akunu_tokenizer;

/* Reads only the vocabulary of the file at `path`. */
AKUNU_API struct akunu_tokenizer *akunu_tokenizer_load(const char *path);
/* The same with metadata that replaces the file's, as in akunu_load_params; NULL allowed. */
AKUNU_API struct akunu_tokenizer *akunu_tokenizer_load_with(const char *path,
                                                            const char *const *override_kv);
AKUNU_API void akunu_tokenizer_free(struct akunu_tokenizer *tokenizer);

/* Flags of calls that read a text. Those of calls that write one have other values, and each call
 * refuses what it does not know. */
enum {
    AKUNU_ADD_SPECIAL = 1,  /* add the special tokens that the model asks for: BOS, EOS … */
    AKUNU_PARSE_SPECIAL = 2 /* control tokens written in the text become those tokens */
};

/* Writes at most `capacity` ids. Returns the number of ids of the whole text, which may be larger,
 * or -1 on failure. `ids` may be NULL if capacity is 0. `text` is any n_bytes bytes: NUL and
 * invalid UTF-8 are allowed. */
AKUNU_API int64_t akunu_tokenizer_encode(const struct akunu_tokenizer *tokenizer, const char *text,
                                         size_t n_bytes, unsigned flags, akunu_token *ids,
                                         size_t capacity);

/* Flags of calls that write a text. */
enum {
    AKUNU_SKIP_SPECIAL = 4, /* omit control tokens */
    AKUNU_CONTINUE = 8 /* the tokens continue a text: a leading space belongs to it. Otherwise the
                          space that Llama's tokenizer puts before a text is removed. */
};

/* Writes at most `capacity` bytes, without a NUL. Returns the number of bytes of the whole text, or
 * -1 on failure (an id outside the vocabulary). */
AKUNU_API int64_t akunu_tokenizer_decode(const struct akunu_tokenizer *tokenizer,
                                         const akunu_token *ids, size_t n_ids, unsigned flags,
                                         char *text, size_t capacity);

AKUNU_API size_t akunu_tokenizer_vocab_size(const struct akunu_tokenizer *tokenizer);

/* True for tokens that end a text: end of sequence, of turn, of text. */
AKUNU_API bool akunu_tokenizer_is_end(const struct akunu_tokenizer *tokenizer, akunu_token token);

/* True for control tokens and the unknown token. */
AKUNU_API bool akunu_tokenizer_is_control(const struct akunu_tokenizer *tokenizer,
                                          akunu_token token);

/* The model's beginning-of-sequence token; -1: it has none. */
AKUNU_API akunu_token akunu_tokenizer_bos(const struct akunu_tokenizer *tokenizer);

/* Special tokens by their purpose. */
enum akunu_special_token {
    AKUNU_TOKEN_BOS = 1, /* begins a text */
    AKUNU_TOKEN_EOS = 2, /* ends a text */
    AKUNU_TOKEN_EOT = 3, /* ends a turn of a conversation; may be the same token as EOS */
    AKUNU_TOKEN_PAD = 4, /* fills up short texts in batches of other programs */
    /* Fill-in-the-middle. A prompt is PREFIX, the text before the gap, SUFFIX, the text after it,
     * MIDDLE; some models expect the suffix first. The model then writes the middle. */
    AKUNU_TOKEN_FIM_PREFIX = 5,
    AKUNU_TOKEN_FIM_SUFFIX = 6,
    AKUNU_TOKEN_FIM_MIDDLE = 7,
    AKUNU_TOKEN_FIM_PAD = 8,
    AKUNU_TOKEN_FIM_REPO = 9, /* before the name of a repository */
    AKUNU_TOKEN_FIM_FILE = 10 /* before the name of a file */
};

/* The special token for a purpose, as the model's files say, else found by its usual names; -1: the
 * model has none. A text may end with other tokens too: akunu_tokenizer_is_end knows them all. */
AKUNU_API akunu_token akunu_tokenizer_special(const struct akunu_tokenizer *tokenizer,
                                              enum akunu_special_token purpose);

/* Converts a stream of tokens to text; never splits a UTF-8 character. */
struct akunu_stream;
AKUNU_API struct akunu_stream *akunu_stream_new(const struct akunu_tokenizer *tokenizer,
                                                unsigned flags);
AKUNU_API void akunu_stream_free(struct akunu_stream *stream);
/* Adds one token. *text: the characters that it completed, maybe none; valid until the next call.
 * akunu_stream_end returns the rest, incomplete bytes as U+FFFD, and resets the stream for the next
 * text. */
AKUNU_API enum akunu_status akunu_stream_push(struct akunu_stream *stream, akunu_token token,
                                              const char **text, size_t *n_bytes);
AKUNU_API enum akunu_status akunu_stream_end(struct akunu_stream *stream, const char **text,
                                             size_t *n_bytes);

/* ---- Fill-in-the-middle ------------------------------------------------- */
/* A text with a gap, for models that were trained to fill one (code models above all). */
struct akunu_infill {
    size_t size;
    const char *prefix, *suffix; /* before and after the gap; NULL if their size is 0 */
    size_t n_prefix_bytes, n_suffix_bytes;
    /* false: prefix and suffix in the order that the model's family wants; true: the suffix first,
     * for models of a family that want it otherwise */
    bool suffix_first;
    /* of the prompt; 0: any number. A longer one loses the beginning of the prefix and the end of
     * the suffix. Prefix and suffix share what remains beside control tokens 3:1; what one leaves
     * unused goes to the other. */
    size_t max_tokens;
    /* set by akunu_tokenizer_encode_infill: tokens left out for max_tokens */
    size_t n_prefix_dropped, n_suffix_dropped;
};
AKUNU_API void akunu_infill_default(struct akunu_infill *infill, size_t size);

/* Encodes the prompt after which the model writes what fills the gap, until a token that ends a
 * text. Like akunu_tokenizer_encode with AKUNU_ADD_SPECIAL: at most `capacity` ids are written, and
 * the number of all is returned, or -1 on failure. Control tokens written in the texts are text.
 * AKUNU_ERROR_UNSUPPORTED: the model has no tokens for this; the message names those looked for. */
AKUNU_API int64_t akunu_tokenizer_encode_infill(const struct akunu_tokenizer *tokenizer,
                                                struct akunu_infill *infill, akunu_token *ids,
                                                size_t capacity);

/* How a text becomes the tokens whose embedding is wanted. */
struct akunu_embedding_text {
    size_t size;
    /* a prompt of the model that goes before the text (sentence-transformers' `prompts`); NULL: the
     * model's default one, if it has one; "": none */
    const char *prompt_name;
    unsigned flags;    /* AKUNU_PARSE_SPECIAL, or 0 */
    size_t max_tokens; /* longer texts are cut; 0: as the model says; SIZE_MAX: they are not */
    /* set by akunu_model_encode_embedding */
    size_t n_whole;  /* tokens before cutting */
    size_t n_prompt; /* leading tokens for akunu_embedding.n_prompt */
};
AKUNU_API void akunu_embedding_text_default(struct akunu_embedding_text *text, size_t size);

/* Tokens of a text whose embedding is wanted, as the model's files say: with the prompt, with the
 * tokens that the tokenizer adds, and cut to the length that the model was made for, as
 * sentence-transformers does it, which keeps the added tokens. At most `capacity` ids are written;
 * returns the number of all of them, or -1. AKUNU_ERROR_ARGUMENT: the model has no prompt of this
 * name; the message lists those that it has. AKUNU_ERROR_UNSUPPORTED: it has no vocabulary. */
AKUNU_API int64_t akunu_model_encode_embedding(const struct akunu_model *model, const char *text,
                                               size_t n_bytes, struct akunu_embedding_text *how,
                                               akunu_token *ids, size_t capacity);

/* Tokens of a query and a document as the model's reranker reads them: BERT's "[CLS] query [SEP]
 * document [SEP]", RoBERTa's with two separators, or a language model's prompt
 * (tokenizer.chat_template.rerank, else that of Qwen3's model cards). At most `capacity` ids are
 * written; returns the number of all of them, or -1. *second, unless NULL: as in struct akunu_pair.
 * AKUNU_ERROR_UNSUPPORTED: the model has no vocabulary, or no form of such prompts. */
AKUNU_API int64_t akunu_model_encode_pair(const struct akunu_model *model, const char *query,
                                          size_t n_query_bytes, const char *document,
                                          size_t n_document_bytes, akunu_token *ids,
                                          size_t capacity, size_t *second);

/* ---- Grammars ----------------------------------------------------------- */
/* The texts that a model may write (akunu_sampling.grammar, akunu_transcription.grammar).
 * Immutable; any number of threads may use it. */
struct akunu_grammar;

/* Parses GBNF, llama.cpp's grammars (docs/grammar.md). Messages begin with line and column. Tokens
 * are looked up where the grammar is used. */
AKUNU_API struct akunu_grammar *akunu_grammar_parse(const char *text, size_t n_bytes);
/* The same for texts that begin with another rule than `root`. */
AKUNU_API struct akunu_grammar *akunu_grammar_parse_rule(const char *text, size_t n_bytes,
                                                         const char *rule);

enum akunu_schema_form {
    /* for generation: members in schema order, little whitespace */
    AKUNU_SCHEMA_WRITING = 0,
    AKUNU_SCHEMA_READING = 1 /* for checking: any way to write the JSON */
};
struct akunu_schema_params {
    size_t size;
    enum akunu_schema_form form; /* AKUNU_SCHEMA_WRITING */
    /* false; true: unsupported keywords are ignored with a warning to log, false: refused */
    bool lax;
    akunu_log_fn *log; /* NULL allowed */
    void *user;
};
AKUNU_API void akunu_schema_params_default(struct akunu_schema_params *params, size_t size);

/* From a JSON Schema (draft 2020-12): matches only JSON texts that the schema allows. params may be
 * NULL. AKUNU_ERROR_UNSUPPORTED: the message names the keyword and its position.
 * AKUNU_ERROR_FORMAT: it is not a schema. */
AKUNU_API struct akunu_grammar *akunu_grammar_from_schema(const char *schema, size_t n_bytes,
                                                          const struct akunu_schema_params *params);

/* A lazy grammar: any text until one of the `triggers` (ends with NULL), then a text of
 * `grammar`. `again`: then any text until the next trigger; otherwise the text ends there. Triggers
 * also match the text of control tokens. */
AKUNU_API struct akunu_grammar *akunu_grammar_make_lazy(const struct akunu_grammar *grammar,
                                                        const char *const *triggers, bool again);
/* Samplers and calls that use it keep it alive. */
AKUNU_API void akunu_grammar_free(struct akunu_grammar *grammar);

/* Checks whether the whole text is allowed. *at, which may be NULL: the first byte that is not;
 * n_bytes if the text is allowed, or could be continued to one that is. With a tokenizer, control
 * tokens written in the text become those tokens. NULL: a token that the grammar names by its text
 * stands for that text. */
AKUNU_API enum akunu_status akunu_grammar_check(const struct akunu_grammar *grammar,
                                                const struct akunu_tokenizer *tokenizer,
                                                const char *text, size_t n_bytes, bool *allowed,
                                                size_t *at);

/* ---- Chat templates ----------------------------------------------------- */
/* Converts a conversation to the prompt that a model was trained on: the Jinja templates of its
 * files, run as Hugging Face's transformers runs them, and the special tokens that they name.
 * Immutable. JSON is passed as UTF-8 text that ends with NUL. */
struct akunu_template;

/* The templates of the model at `path`; only headers and vocabulary are read. A model without a
 * template gets ChatML's (akunu_template_is_fallback). override_kv as in akunu_load_params, NULL
 * allowed. A template that cannot be parsed is an error and is never replaced. */
AKUNU_API struct akunu_template *akunu_template_load(const char *path,
                                                     const char *const *override_kv);
/* The same for a loaded model. The caller frees it; it may outlive the model. */
AKUNU_API struct akunu_template *akunu_model_template(const struct akunu_model *model);
/* One template from its text. Special tokens are those of `tokens`; NULL: none. */
AKUNU_API struct akunu_template *akunu_template_parse(const char *text, size_t n_bytes,
                                                      const struct akunu_template *tokens);
AKUNU_API void akunu_template_free(struct akunu_template *chat);

/* True if the model has no template and ChatML is used. */
AKUNU_API bool akunu_template_is_fallback(const struct akunu_template *chat);
/* Name of template i; "default" is among them unless the model has none of that name. NULL past the
 * end. */
AKUNU_API const char *akunu_template_name(const struct akunu_template *chat, size_t i);
/* The text of the template for a conversation with or without tools, ending with NUL; *n_bytes,
 * unless NULL: its length. Returns NULL if there is no template `name`. name NULL: "tool_use" if
 * there are tools and it exists, else "default". */
AKUNU_API const char *akunu_template_text(const struct akunu_template *chat, const char *name,
                                          bool tools, size_t *n_bytes);

struct akunu_chat {
    size_t size;
    /* JSON list of messages: [{"role": "user", "content": "Hi"}, …]. "content": null is None in the
     * template; any other member of a message that is null counts as absent */
    const char *messages;
    const char *tools;     /* a list of objects, NULL: none */
    const char *documents; /* a list of objects, NULL: none */
    /* JSON object of variables for the template, special tokens included: {"enable_thinking":
     * false}; NULL: none */
    const char *kwargs;
    const char *name;           /* template; NULL: as akunu_template_text chooses */
    bool add_generation_prompt; /* true: end with the beginning of an answer */
    /* the prompt ends inside this field ("content") of the last message, for the model to continue;
     * add_generation_prompt must then be false. NULL: off */
    const char *continue_final_message;
    const char *bos_token, *eos_token; /* replace the model's; NULL: the model's */
    /* time for strftime_now in seconds since 1970; 0: the clock */
    int64_t now;
};
AKUNU_API void akunu_chat_default(struct akunu_chat *chat, size_t size);

/* Renders the prompt. It ends with a NUL after its *n_bytes (NULL allowed); free it with
 * akunu_text_free. NULL on failure: the message names line and column, or is the template's own if
 * it refused (raise_exception). Time, memory and output of a template are limited, so rendering
 * always ends. */
AKUNU_API char *akunu_template_render(const struct akunu_template *chat,
                                      const struct akunu_chat *input, size_t *n_bytes);

/* Frees a text returned to the caller. NULL allowed. */
AKUNU_API void akunu_text_free(char *text);

/* ---- Text in, text out -------------------------------------------------- */
/* What a text is to the model. */
enum akunu_prompt_form {
    AKUNU_PROMPT_AUTO = 0,    /* a message if the model has a chat template, else raw */
    AKUNU_PROMPT_MESSAGE = 1, /* a user's message, which the model answers */
    AKUNU_PROMPT_RAW = 2      /* the beginning of a text, which the model continues */
};

struct akunu_completion {
    size_t size;
    enum akunu_prompt_form form;   /* AKUNU_PROMPT_AUTO */
    const char *system;            /* system message before the user's, ends with NUL; NULL: none */
    const struct akunu_chat *chat; /* a whole conversation in place of a text; NULL: a text */
    const struct akunu_template *chat_template; /* NULL: the model's */
    const struct akunu_generation *generation;  /* NULL: defaults */
};
AKUNU_API void akunu_completion_default(struct akunu_completion *completion, size_t size);

/* Answers or continues a text of n_bytes bytes, or a conversation: makes the prompt, tokenizes it,
 * runs it and generates. completion may be NULL: defaults. With completion->chat, text is NULL and
 * n_bytes 0. Control tokens written in a text become those tokens.
 *
 * Pass the whole text or conversation each time. Tokens at the beginning of the sequence that equal
 * the prompt's are kept, its other tokens are removed, and the rest of the prompt is run. sequence
 * -1: one that the call makes and frees.
 *
 * on_piece, cancel, user and result are those of akunu_session_generate.
 * AKUNU_ERROR_ARGUMENT: a text and a conversation, or neither; a system message without a user's; a
 * message is not UTF-8; an empty prompt. AKUNU_ERROR_CONTEXT: the message has both counts.
 * AKUNU_ERROR_UNSUPPORTED: the model has no vocabulary, or is an encoder. Also every error of
 * akunu_template_render. */
AKUNU_API enum akunu_status
akunu_session_complete(struct akunu_session *session, akunu_sequence sequence, const char *text,
                       size_t n_bytes, const struct akunu_completion *completion,
                       akunu_piece_fn *on_piece, akunu_cancel_fn *cancel, void *user,
                       struct akunu_result *result);

/* ---- Tool calls and reasoning ------------------------------------------- */
/* Parses a reply while it is generated: reasoning, content, and tool calls in the model's format.
 *
 *     reply = akunu_reply_new(&params, on_event, user);
 *     akunu_reply_push(reply, text, n_bytes);     for every piece that is generated
 *     akunu_reply_end(reply);
 *     puts(akunu_reply_message(reply));           the whole as an OpenAI message
 *
 * Generate with `special` true, because models mark these parts by control tokens. To split off
 * reasoning only, set `calls` to false. The events are then AKUNU_REPLY_REASONING and
 * AKUNU_REPLY_CONTENT, and the prompt tells whether reasoning has begun already.
 *
 * Pieces may end anywhere: the same text gives the same message and the same events, except for
 * where their texts are split. Text that could still become a marker is withheld until it is
 * decided, at the latest by akunu_reply_end. Nothing is lost: text that begins like a call but is
 * none becomes content. Whitespace next to a marker belongs to the marker. If text continues after
 * a call or a block of reasoning, a newline separates them. */
struct akunu_reply;

struct akunu_reply_params {
    size_t size;
    /* NULL or "auto": detected from template and vocabulary; else a name of
     * akunu_reply_format_name */
    const char *format;
    const char *chat_template; /* text of the template; NULL: unknown */
    /* vocabulary; NULL: unknown. Used by akunu_reply_new only */
    const struct akunu_tokenizer *tokenizer;
    /* the rendered prompt or its end; NULL: the model begins its answer */
    const char *prompt;
    /* JSON list of tools in OpenAI's form. NULL: any name is a tool's, and values without a type in
     * the format get the type that they look like */
    const char *tools;
    bool calls; /* look for calls; default true */
    /* separate the reasoning; default true. false: it stays in the content, with its markers */
    bool reasoning;
    uint64_t seed; /* ids of calls derive from it: use another one per reply */
};
AKUNU_API void akunu_reply_params_default(struct akunu_reply_params *params, size_t size);

enum akunu_reply_kind {
    AKUNU_REPLY_REASONING = 1, /* a piece of reasoning */
    AKUNU_REPLY_CONTENT = 2,   /* a piece of content */
    AKUNU_REPLY_CALL = 3,      /* a call begins: text is the tool's name, id the call's */
    AKUNU_REPLY_ARGUMENTS = 4, /* a piece of its arguments, JSON text */
    /* the call is complete: text is its arguments, a checked JSON object */
    AKUNU_REPLY_CALL_END = 5,
    /* the call is invalid: text says why; what the model wrote follows as content */
    AKUNU_REPLY_BROKEN = 6
};

struct akunu_reply_event {
    size_t size;
    enum akunu_reply_kind kind;
    /* UTF-8, whole characters (invalid bytes become U+FFFD), not NUL-terminated */
    const char *text;
    size_t n_bytes;
    size_t call;    /* index of the call, broken ones included */
    const char *id; /* for AKUNU_REPLY_CALL, NUL-terminated; else NULL */
};

/* Callback of a reply parser. An event is valid until the function returns. */
typedef void akunu_reply_fn(const struct akunu_reply_event *event, void *user);

/* params NULL: defaults. on_event NULL: no events, only the message. Everything in params is
 * copied. Fails for an unknown format, and for tools that are not a list of functions. */
AKUNU_API struct akunu_reply *akunu_reply_new(const struct akunu_reply_params *params,
                                              akunu_reply_fn *on_event, void *user);
AKUNU_API void akunu_reply_free(struct akunu_reply *reply);

/* Fails only if out of memory. */
AKUNU_API enum akunu_status akunu_reply_push(struct akunu_reply *reply, const char *text,
                                             size_t n_bytes);
/* Ends the reply. An incomplete call is a broken one. */
AKUNU_API enum akunu_status akunu_reply_end(struct akunu_reply *reply);

/* The message after akunu_reply_end; NULL before, or if out of memory: {"role": "assistant",
 * "content", "reasoning_content", "tool_calls": [{"id", "type": "function", "function": {"name",
 * "arguments"}}]}. content is null if there is none; the other two are omitted. */
AKUNU_API const char *akunu_reply_message(struct akunu_reply *reply);
/* Why text that began like a call became content, one line each; "" if there is nothing to
 * report. */
AKUNU_API const char *akunu_reply_notes(const struct akunu_reply *reply);
/* The format in use: "hermes", … */
AKUNU_API const char *akunu_reply_format(const struct akunu_reply *reply);
/* Name of known format i; NULL past the end. */
AKUNU_API const char *akunu_reply_format_name(size_t i);

/* Sets the markers of *reasoning (core.h), not its budget, for answers by reply's chat_template to
 * reply's prompt; begin is NULL if such answers have no reasoning. The strings are the
 * library's. */
AKUNU_API enum akunu_status akunu_reply_find_reasoning(const struct akunu_reply_params *reply,
                                                       struct akunu_reasoning *reasoning);

struct akunu_tool_grammar_params {
    size_t size;
    /* OpenAI's tool_choice: "auto" (also NULL), "none", "required", a tool's name, or the object
     * that names one */
    const char *choice;
    bool parallel; /* more than one call in a reply; default true */
    /* false; true: what no grammar can express of a tool's schema is ignored with a warning to log,
     * false: refused */
    bool lax;
    akunu_log_fn *log; /* NULL allowed */
    void *user;
    /* what a reply without calls must be, after its reasoning; NULL: any text */
    const struct akunu_grammar *content;
};
AKUNU_API void akunu_tool_grammar_params_default(struct akunu_tool_grammar_params *params,
                                                 size_t size);

/* A grammar (akunu_sampling.grammar) for calls of these tools, with arguments that their schemas
 * allow, in the format that akunu_reply parses. `reply` has the format, as in akunu_reply_new, and
 * the tools. With "auto" any text is allowed: the grammar starts at any marker of a call, or with
 * the reply if the format has no marker, and ends with the call. With "required" or a name only
 * reasoning may precede the call. With `content`, "auto" allows reasoning, and then a text of that
 * grammar or calls. calls NULL: defaults. *out is NULL if there is nothing to constrain: no
 * `content`, and no tools or "none". AKUNU_ERROR_UNSUPPORTED: the message names the keyword. */
AKUNU_API enum akunu_status akunu_grammar_from_tools(const struct akunu_reply_params *reply,
                                                     const struct akunu_tool_grammar_params *calls,
                                                     struct akunu_grammar **out);

#ifdef __cplusplus
}
#endif

#endif
