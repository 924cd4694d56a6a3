/* akunu/text.h: text: tokenizers, fill-in-the-middle, grammars, chat templates, tool calls, and the
 * completion of a text or a conversation (akunu_session_complete). Included by akunu.h; compiles
 * alone. */
#ifndef AKUNU_TEXT_H
#define AKUNU_TEXT_H

#include "akunu/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Tokens and text ---------------------------------------------------- */
/* Converts text to tokens and back. Every model with a vocabulary has one (akunu_model_tokenizer).
 */
struct akunu_tokenizer;

/* Reads only the vocabulary of the file at `path`, which need not have anything else. */
AKUNU_API struct akunu_tokenizer *akunu_tokenizer_load(const char *path);
/* override_kv: metadata that replaces the file's, as in akunu_load_params; NULL: none. */
AKUNU_API struct akunu_tokenizer *akunu_tokenizer_load_with(const char *path,
                                                            const char *const *override_kv);
AKUNU_API void akunu_tokenizer_free(struct akunu_tokenizer *tokenizer);

/* Flags of functions that read a text. They differ from the flags of functions that write one, and
 * each function refuses flags that it does not know. */
enum {
    AKUNU_ADD_SPECIAL = 1,  /* add the special tokens that the model asks for, such as BOS */
    AKUNU_PARSE_SPECIAL = 2 /* control tokens that are written in the text become those tokens */
};

/* Encodes a text of n_bytes bytes, which may contain NUL and invalid UTF-8. Writes the first
 * `capacity` ids, and returns the number of all of them, or -1 on failure. ids may be NULL if
 * capacity is 0. */
AKUNU_API int64_t akunu_tokenizer_encode(const struct akunu_tokenizer *tokenizer, const char *text,
                                         size_t n_bytes, unsigned flags, akunu_token *ids,
                                         size_t capacity);

/* Flags of functions that write a text. */
enum {
    AKUNU_SKIP_SPECIAL = 4, /* leave out control tokens */
    /* The tokens continue a text, so a leading space belongs to it. Without the flag, the space
     * that Llama's tokenizer puts before a text is removed. */
    AKUNU_CONTINUE = 8
};

/* Decodes n_ids tokens. Writes the first `capacity` bytes, without a NUL, and returns the number of
 * all of them, or -1 on failure. text may be NULL if capacity is 0. AKUNU_ERROR_ARGUMENT: an id is
 * outside the vocabulary. */
AKUNU_API int64_t akunu_tokenizer_decode(const struct akunu_tokenizer *tokenizer,
                                         const akunu_token *ids, size_t n_ids, unsigned flags,
                                         char *text, size_t capacity);

/* Number of tokens in the vocabulary. */
AKUNU_API size_t akunu_tokenizer_vocab_size(const struct akunu_tokenizer *tokenizer);

/* True for tokens that end a text: end of sequence, of turn, of text. */
AKUNU_API bool akunu_tokenizer_is_end(const struct akunu_tokenizer *tokenizer, akunu_token token);

/* True for control tokens and the unknown token. */
AKUNU_API bool akunu_tokenizer_is_control(const struct akunu_tokenizer *tokenizer,
                                          akunu_token token);

/* The token that begins a text; -1: the model has none. */
AKUNU_API akunu_token akunu_tokenizer_bos(const struct akunu_tokenizer *tokenizer);

/* Purposes of special tokens. */
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
    AKUNU_TOKEN_FIM_REPO = 9, /* precedes the name of a repository */
    AKUNU_TOKEN_FIM_FILE = 10 /* precedes the name of a file */
};

/* The special token for a purpose: the one that the model's files name, otherwise the one with a
 * usual name. -1: the model has none. Other tokens may end a text too: akunu_tokenizer_is_end knows
 * all of them. */
AKUNU_API akunu_token akunu_tokenizer_special(const struct akunu_tokenizer *tokenizer,
                                              enum akunu_special_token purpose);

/* Converts tokens to text one by one, and never splits a UTF-8 character. flags: as in
 * akunu_tokenizer_decode. */
struct akunu_stream;
AKUNU_API struct akunu_stream *akunu_stream_new(const struct akunu_tokenizer *tokenizer,
                                                unsigned flags);
AKUNU_API void akunu_stream_free(struct akunu_stream *stream);
/* Adds a token. *text becomes the n_bytes of text that it completed, maybe none, without a NUL. It
 * is valid until the next call for this stream. */
AKUNU_API enum akunu_status akunu_stream_push(struct akunu_stream *stream, akunu_token token,
                                              const char **text, size_t *n_bytes);
/* Returns the rest in the same way, with U+FFFD for incomplete bytes. The stream can then convert
 * another text. */
AKUNU_API enum akunu_status akunu_stream_end(struct akunu_stream *stream, const char **text,
                                             size_t *n_bytes);

/* ---- Fill-in-the-middle ------------------------------------------------- */
/* A text with a gap, for models that were trained to fill it, such as code models. */
struct akunu_infill {
    size_t size;
    const char *prefix, *suffix; /* before and after the gap; NULL if their number of bytes is 0 */
    size_t n_prefix_bytes, n_suffix_bytes;
    /* Put the suffix first, for a model that expects it although others of its family do not.
     * false: the order of the model's family. */
    bool suffix_first;
    /* largest number of tokens in the prompt; 0: no limit. A longer prompt loses the beginning of
     * the prefix and the end of the suffix. They share the tokens in the ratio 3:1, and what one
     * does not need goes to the other. */
    size_t max_tokens;
    /* set by akunu_tokenizer_encode_infill: tokens that were left out because of max_tokens */
    size_t n_prefix_dropped, n_suffix_dropped;
};
AKUNU_API void akunu_infill_default(struct akunu_infill *infill, size_t size);

/* Encodes the prompt after which the model writes what fills the gap, and ends it with an end
 * token. Special tokens are added, and control tokens that are written in the texts stay text.
 * Writes the first `capacity` ids, and returns the number of all of them, or -1.
 * AKUNU_ERROR_UNSUPPORTED: the model has no tokens for this; the message names those that were
 * looked for. */
AKUNU_API int64_t akunu_tokenizer_encode_infill(const struct akunu_tokenizer *tokenizer,
                                                struct akunu_infill *infill, akunu_token *ids,
                                                size_t capacity);

/* ---- Texts for embeddings and scores ------------------------------------ */
/* How a text becomes the tokens that are embedded. */
struct akunu_embedding_text {
    size_t size;
    /* name of a prompt of the model that precedes the text (`prompts` of sentence-transformers);
     * NULL: the model's default prompt, if it has one; "": none */
    const char *prompt_name;
    unsigned flags;    /* AKUNU_PARSE_SPECIAL, or 0 */
    size_t max_tokens; /* longer texts are cut; 0: as the model says; SIZE_MAX: they are not cut */
    /* set by akunu_model_encode_embedding */
    size_t n_whole;  /* tokens before cutting */
    size_t n_prompt; /* value for akunu_embedding_params.n_prompt */
};
AKUNU_API void akunu_embedding_text_default(struct akunu_embedding_text *text, size_t size);

/* Encodes a text to embed, as the model's files say and sentence-transformers does it: with the
 * prompt and the tokens that the tokenizer adds, and cut to the length that the model was made for,
 * which keeps the added tokens. Writes the first `capacity` ids, and returns the number of all of
 * them, or -1. how may be NULL. AKUNU_ERROR_ARGUMENT: the model has no prompt of this name; the
 * message lists those that it has. AKUNU_ERROR_UNSUPPORTED: the model has no vocabulary. */
AKUNU_API int64_t akunu_model_encode_embedding(const struct akunu_model *model, const char *text,
                                               size_t n_bytes, struct akunu_embedding_text *how,
                                               akunu_token *ids, size_t capacity);

/* A query and a document to score (akunu_session_score). */
struct akunu_pair_text {
    size_t size;
    const char *query, *document; /* NULL if their number of bytes is 0 */
    size_t n_query_bytes, n_document_bytes;
    size_t second; /* set by akunu_model_encode_pair: value for akunu_pair.second */
};
AKUNU_API void akunu_pair_text_default(struct akunu_pair_text *text, size_t size);

/* Encodes a pair as the model's reranker reads it: BERT's "[CLS] query [SEP] document [SEP]",
 * RoBERTa's with two separators, or a language model's prompt (tokenizer.chat_template.rerank,
 * otherwise that of Qwen3's model cards). Writes the first `capacity` ids, and returns the number
 * of all of them, or -1. AKUNU_ERROR_UNSUPPORTED: the model has no vocabulary or no such prompt. */
AKUNU_API int64_t akunu_model_encode_pair(const struct akunu_model *model,
                                          struct akunu_pair_text *text, akunu_token *ids,
                                          size_t capacity);

/* ---- Grammars ----------------------------------------------------------- */
/* The set of texts that a model may write (akunu_sampling_params.grammar,
 * akunu_transcription_params.grammar). Immutable. */
struct akunu_grammar;

/* Parses GBNF, the format of llama.cpp's grammars (docs/grammar.md). Error messages begin with line
 * and column. Tokens are looked up when the grammar is used with a model. */
AKUNU_API struct akunu_grammar *akunu_grammar_parse(const char *text, size_t n_bytes);
/* Uses `rule` in place of `root` as the rule of a whole text. */
AKUNU_API struct akunu_grammar *akunu_grammar_parse_rule(const char *text, size_t n_bytes,
                                                         const char *rule);

enum akunu_schema_form {
    /* to generate JSON: members in the order of the schema, with little whitespace */
    AKUNU_SCHEMA_WRITING = 0,
    AKUNU_SCHEMA_READING = 1 /* to check JSON: any way to write it */
};
struct akunu_schema_params {
    size_t size;
    enum akunu_schema_form form; /* (AKUNU_SCHEMA_WRITING) */
    bool lax; /* ignore unsupported keywords with a warning to `log`, instead of refusing them */
    akunu_log_fn *log; /* NULL: silent */
    void *user;        /* passed to `log` */
};
AKUNU_API void akunu_schema_params_default(struct akunu_schema_params *params, size_t size);

/* Makes a grammar from a JSON Schema (draft 2020-12). It matches only JSON that the schema allows.
 * AKUNU_ERROR_UNSUPPORTED: the message names the keyword and its position. AKUNU_ERROR_FORMAT: not
 * a schema. */
AKUNU_API struct akunu_grammar *akunu_grammar_from_schema(const char *schema, size_t n_bytes,
                                                          const struct akunu_schema_params *params);

/* Makes a lazy grammar: any text up to one of the `triggers`, then a text of `grammar`. With
 * `again`, any text up to the next trigger may follow; otherwise the text ends there. Triggers also
 * match the text of control tokens. */
AKUNU_API struct akunu_grammar *akunu_grammar_make_lazy(const struct akunu_grammar *grammar,
                                                        const char *const *triggers, bool again);
/* Samplers and calls that use the grammar keep it alive. */
AKUNU_API void akunu_grammar_free(struct akunu_grammar *grammar);

/* Sets *allowed if the grammar allows the whole text. *at, unless at is NULL, becomes the offset of
 * the first byte that is not allowed, or n_bytes if the text is allowed or could be continued to
 * one that is. With a tokenizer, control tokens that are written in the text become those tokens;
 * without (NULL), a token that the grammar names by its text stands for that text. */
AKUNU_API enum akunu_status akunu_grammar_check(const struct akunu_grammar *grammar,
                                                const struct akunu_tokenizer *tokenizer,
                                                const char *text, size_t n_bytes, bool *allowed,
                                                size_t *at);

/* ---- Chat templates ----------------------------------------------------- */
/* Converts a conversation to the prompt that a model was trained on: the Jinja templates of its
 * files and the special tokens that they name, rendered as Hugging Face's transformers does it.
 * Immutable. JSON is passed as a string. */
struct akunu_template;

/* Reads the templates of the model at `path`, without its weights. A model without a template gets
 * ChatML's (akunu_template_is_fallback). A template that cannot be parsed is an error and is never
 * replaced. override_kv: as in akunu_load_params; NULL: none. */
AKUNU_API struct akunu_template *akunu_template_load(const char *path,
                                                     const char *const *override_kv);
/* Reads the templates of a loaded model. The caller frees the result, which may outlive the
 * model. */
AKUNU_API struct akunu_template *akunu_model_template(const struct akunu_model *model);
/* Parses one template. Its special tokens are those of `tokens`; NULL: none. */
AKUNU_API struct akunu_template *akunu_template_parse(const char *text, size_t n_bytes,
                                                      const struct akunu_template *tokens);
AKUNU_API void akunu_template_free(struct akunu_template *chat);

/* True if the model has no template and ChatML's is used. */
AKUNU_API bool akunu_template_is_fallback(const struct akunu_template *chat);
/* Name of template i; NULL past the end. The model's usual template is "default". */
AKUNU_API const char *akunu_template_name(const struct akunu_template *chat, size_t i);
/* Text of the template `name`, and its length in *n_bytes unless that is NULL. name NULL: the
 * template for a conversation with or without tools, which is "tool_use" if there are tools and it
 * exists, and "default" otherwise. Returns NULL if the model lacks that template. */
AKUNU_API const char *akunu_template_text(const struct akunu_template *chat, const char *name,
                                          bool tools, size_t *n_bytes);

/* A conversation. */
struct akunu_chat {
    size_t size;
    /* JSON list of messages: [{"role": "user", "content": "Hi"}, …]. "content": null is None in the
     * template; any other member of a message that is null counts as absent. */
    const char *messages;
    const char *tools;     /* JSON list of objects; NULL: none */
    const char *documents; /* JSON list of objects; NULL: none */
    /* JSON object with variables for the template, which may be special tokens:
     * {"enable_thinking": false}; NULL: none */
    const char *kwargs;
    const char *name;           /* name of the template; NULL: as in akunu_template_text */
    bool add_generation_prompt; /* end with the beginning of an answer (true) */
    /* The prompt ends inside this member ("content") of the last message, so that the model
     * continues it; add_generation_prompt must then be false. NULL: off. */
    const char *continue_final_message;
    const char *bos_token, *eos_token; /* replace the model's; NULL: the model's */
    /* time for strftime_now, in seconds since 1970; 0: now */
    int64_t now;
};
AKUNU_API void akunu_chat_default(struct akunu_chat *chat, size_t size);

/* Renders the prompt. It ends with a NUL, which *n_bytes, unless NULL, does not count. Free it with
 * akunu_text_free. If it fails, the message names line and column, or is the template's own
 * (raise_exception). Time, memory and output of a template are limited, so rendering always ends.
 */
AKUNU_API char *akunu_template_render(const struct akunu_template *chat,
                                      const struct akunu_chat *input, size_t *n_bytes);

/* Frees a text that akunu_template_render returned. Accepts NULL. */
AKUNU_API void akunu_text_free(char *text);

/* ---- Text in, text out -------------------------------------------------- */
/* What a text is to the model. */
enum akunu_prompt_form {
    AKUNU_PROMPT_AUTO = 0,    /* a message if the model has a chat template, otherwise raw */
    AKUNU_PROMPT_MESSAGE = 1, /* a user's message, which the model answers */
    AKUNU_PROMPT_RAW = 2      /* the beginning of a text, which the model continues */
};

struct akunu_completion_params {
    size_t size;
    /* parameters and callbacks, as in akunu_session_generate; NULL: defaults */
    const struct akunu_generation_params *generation;
    enum akunu_prompt_form form;                /* (AKUNU_PROMPT_AUTO) */
    const char *system;                         /* system message before the user's; NULL: none */
    const struct akunu_chat *chat;              /* a conversation instead of a text; NULL: a text */
    const struct akunu_template *chat_template; /* NULL: the model's */
};
AKUNU_API void akunu_completion_params_default(struct akunu_completion_params *completion,
                                               size_t size);

/* Answers or continues a text of n_bytes bytes, or a conversation: makes the prompt, tokenizes it,
 * runs it and generates. For a conversation (completion->chat), text is NULL and n_bytes 0. Control
 * tokens that are written in a text become those tokens.
 *
 * Pass the whole text or conversation each time. Tokens at the beginning of the sequence that equal
 * those of the prompt are kept, the others are removed, and the rest of the prompt is run. sequence
 * -1: the call makes a sequence and frees it. `result` may be NULL, as in akunu_session_generate.
 *
 * AKUNU_ERROR_ARGUMENT: both a text and a conversation, or neither; a system message without a
 * user's; a message that is not UTF-8; an empty prompt. AKUNU_ERROR_CONTEXT: the prompt is too
 * long; the message has both counts. AKUNU_ERROR_UNSUPPORTED: the model has no vocabulary, or is an
 * encoder. Also every error of akunu_template_render and akunu_session_generate. */
AKUNU_API enum akunu_status akunu_session_complete(struct akunu_session *session,
                                                   akunu_sequence sequence, const char *text,
                                                   size_t n_bytes,
                                                   const struct akunu_completion_params *completion,
                                                   struct akunu_result *result);

/* ---- Tool calls and reasoning ------------------------------------------- */
/* Parses a reply while it is generated: reasoning, content, and tool calls in the model's format.
 *
 *     reply = akunu_reply_new(&params, on_event, user);
 *     akunu_reply_push(reply, text, n_bytes);     for every piece that is generated
 *     akunu_reply_end(reply);
 *     puts(akunu_reply_message(reply));           the whole reply as an OpenAI message
 *
 * Set akunu_generation_params.special, because models mark these parts with control tokens. To
 * split off reasoning only, set `calls` to false: the events are then AKUNU_REPLY_REASONING and
 * AKUNU_REPLY_CONTENT. `prompt` tells whether reasoning has begun already.
 *
 * Pieces may end anywhere: the same text gives the same message and the same events, although their
 * texts may be split elsewhere. Text that could still become a marker is withheld until this is
 * decided, at the latest by akunu_reply_end. Nothing is lost: text that begins like a call but is
 * not one becomes content. Whitespace next to a marker belongs to the marker. If text continues
 * after a call or after reasoning, a newline separates the two parts. */
struct akunu_reply;

struct akunu_reply_params {
    size_t size;
    /* a name of akunu_reply_format_name; NULL or "auto": detected from template and vocabulary */
    const char *format;
    const char *chat_template; /* text of the template; NULL: unknown */
    /* vocabulary, which only akunu_reply_new uses; NULL: unknown */
    const struct akunu_tokenizer *tokenizer;
    /* the rendered prompt, or its end; NULL: the model begins its answer */
    const char *prompt;
    /* JSON list of tools in OpenAI's form. NULL: every name is a tool's, and a value without a type
     * in the format gets the type that it looks like. */
    const char *tools;
    bool calls; /* look for calls (true) */
    /* separate reasoning from the content; false: it stays there, with its markers (true) */
    bool reasoning;
    uint64_t seed; /* ids of calls derive from it: use a different one for each reply */
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
    /* n_bytes of UTF-8 without a NUL: whole characters, U+FFFD for invalid bytes */
    const char *text;
    size_t n_bytes;
    size_t call;    /* number of the call, from 0; broken calls count too */
    const char *id; /* AKUNU_REPLY_CALL: id of the call; else NULL */
};

/* Gets an event of a reply. */
typedef void akunu_reply_fn(const struct akunu_reply_event *event, void *user);

/* Everything in params is copied. on_event NULL: there is only the message. AKUNU_ERROR_ARGUMENT:
 * the format is unknown, or tools is not a list of functions. */
AKUNU_API struct akunu_reply *akunu_reply_new(const struct akunu_reply_params *params,
                                              akunu_reply_fn *on_event, void *user);
AKUNU_API void akunu_reply_free(struct akunu_reply *reply);

/* Adds a piece of n_bytes bytes. Fails only if out of memory. */
AKUNU_API enum akunu_status akunu_reply_push(struct akunu_reply *reply, const char *text,
                                             size_t n_bytes);
/* Ends the reply. A call that is incomplete then is broken. */
AKUNU_API enum akunu_status akunu_reply_end(struct akunu_reply *reply);

/* The message, as JSON: {"role": "assistant", "content", "reasoning_content", "tool_calls": [{"id",
 * "type": "function", "function": {"name", "arguments"}}]}. content is null if there is none; the
 * last two members are left out if there are none. NULL before akunu_reply_end. */
AKUNU_API const char *akunu_reply_message(struct akunu_reply *reply);
/* Why text that began like a call became content, one reason per line; "": there was none. */
AKUNU_API const char *akunu_reply_notes(const struct akunu_reply *reply);
/* Name of the format in use ("hermes"). */
AKUNU_API const char *akunu_reply_format(const struct akunu_reply *reply);
/* Name of format i; NULL past the end. */
AKUNU_API const char *akunu_reply_format_name(size_t i);

/* Reads the reasoning (core.h) of answers to params->prompt by params->chat_template; its budget is
 * -1. begin is NULL if such answers have no reasoning. The strings live as long as the program. */
AKUNU_API enum akunu_status akunu_get_reasoning(const struct akunu_reply_params *params,
                                                struct akunu_reasoning *reasoning, size_t size);

struct akunu_tool_grammar_params {
    size_t size;
    /* tool_choice of OpenAI: "auto" (also NULL), "none", "required", a tool's name, or the object
     * that names one */
    const char *choice;
    bool parallel; /* a reply may have several calls (true) */
    /* ignore what a grammar cannot express of a tool's schema, with a warning to `log`, instead of
     * refusing it */
    bool lax;
    akunu_log_fn *log; /* NULL: silent */
    void *user;        /* passed to `log` */
    /* what a reply without calls must be, after its reasoning; NULL: any text */
    const struct akunu_grammar *content;
};
AKUNU_API void akunu_tool_grammar_params_default(struct akunu_tool_grammar_params *params,
                                                 size_t size);

/* Makes a grammar (akunu_sampling_params.grammar) for calls of tools, with arguments that their
 * schemas allow, in the format that akunu_reply parses. `reply` has the tools and the format, as in
 * akunu_reply_new.
 *
 * With "auto" any text is allowed. The grammar starts at a marker of a call, or with the reply if
 * the format has no marker, and ends with the call. With "required" or a name, only reasoning may
 * precede the call. With `content`, "auto" allows reasoning, and then a text of that grammar or
 * calls. *out becomes NULL if there is nothing to constrain: no `content`, and either no tools or
 * "none". AKUNU_ERROR_UNSUPPORTED: the message names the keyword. */
AKUNU_API enum akunu_status akunu_grammar_from_tools(const struct akunu_reply_params *reply,
                                                     const struct akunu_tool_grammar_params *calls,
                                                     struct akunu_grammar **out);

#ifdef __cplusplus
}
#endif

#endif
