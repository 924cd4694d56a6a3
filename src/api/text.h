#ifndef AK_API_TEXT_H
#define AK_API_TEXT_H

#include "tokenizer/tokenizer.h"

/* A handle of its own owns `inner`; one inside a model leaves it to the model. */
struct akunu_tokenizer {
    struct ak_tokenizer *inner;
};

#endif
