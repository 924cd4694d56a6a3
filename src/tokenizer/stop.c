/* Which tokens end a text. The file names one or two; models end their turns
 * with others as well. */
#include "tokenizer/state.h"

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
    /* after these a model that fills in code goes on with another file */
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
};

/* A name counts only where it is a control token: "</s>" is also HTML. */
static const struct ak_special *control_named(const struct ak_tokenizer *t, const char *name)
{
    const struct ak_special *special = ak_specials_named(&t->specials, name);
    return special && !special->always ? special : NULL;
}

static void mark(struct ak_tokenizer *t, int64_t id)
{
    if (id >= 0 && id < (int64_t)t->pieces.n)
        t->marks[id] |= AK_TOKEN_END;
}

void ak_mark_ends(struct ak_tokenizer *t, const struct ak_vocab *vocab)
{
    for (size_t i = 0; i < sizeof end_names / sizeof end_names[0]; i++) {
        const struct ak_special *special = control_named(t, end_names[i]);
        if (special)
            mark(t, special->id);
    }
    /* In the harmony format <|end|> ends a message, after which more come. */
    const struct ak_special *end = control_named(t, "<|end|>");
    if (end && control_named(t, "<|return|>") && control_named(t, "<|call|>"))
        t->marks[end->id] &= (uint8_t)~AK_TOKEN_END;
    mark(t, t->eos);
    mark(t, vocab->eot);
}
