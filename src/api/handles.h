/* The public handle of a model. */
#ifndef AK_API_HANDLES_H
#define AK_API_HANDLES_H

#include "api/text.h"
#include "session/model.h"

struct akunu_model {
    struct ak_model *inner;
    struct akunu_tokenizer tokenizer; /* lends the model's */
    struct akunu_file *file;          /* lends the model's provider */
    char *name, *architecture;
};

#endif
