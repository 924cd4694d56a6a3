/* Which tokens end a text. Files name one or two, but chat models end their turns with others too;
 * those are known by name. */
#include "text/tokenizer/internal.h"

static const char *const end_names[] = {
    "<|im_end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<end_of_turn>",
    "<turn|>",
    "</s>",
    "<eos>",
    "[EOS]",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<EOT>",
    "▁<EOT>",
    "[EOT]",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
    /* fill-in-the-middle: after these the model continues with another file */
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
};

/* A name counts only if it is a control token: "</s>" is also HTML. */
static const struct ak_tok_special *find_control(const struct ak_tokenizer *t, const char *name)
{
    const struct ak_tok_special *special = ak_tok_specials_find(&t->specials, name);
    return special && !special->matches_always ? special : NULL;
}

static void mark_end(struct ak_tokenizer *t, int64_t id)
{
    if (id >= 0 && id < (int64_t)t->token_bytes.n)
        t->token_flags[id] |= AK_TOK_END_FLAG;
}

void ak_tok_mark_ends(struct ak_tokenizer *t, const struct ak_vocab *vocab)
{
    for (size_t i = 0; i < sizeof end_names / sizeof end_names[0]; i++) {
        const struct ak_tok_special *special = find_control(t, end_names[i]);
        if (special)
            mark_end(t, special->id);
    }
    /* In the harmony format <|end|> ends a message, and more messages follow. */
    const struct ak_tok_special *end = find_control(t, "<|end|>");
    if (end && find_control(t, "<|return|>") && find_control(t, "<|call|>"))
        t->token_flags[end->id] &= (uint8_t)~AK_TOK_END_FLAG;
    for (int i = AK_VOCAB_FIM_PAD; i < AK_VOCAB_FIM_COUNT; i++)
        mark_end(t, t->fim[i]);
    mark_end(t, t->eos);
    mark_end(t, vocab->eot);
}
