/* What mixes cost in predictions: one table for all models. */
#include "conversion/advise/advise.h"

#include <string.h>

/* Mean KL divergence from the model in F16, in nats per token, of Llama 3 8B quantized by
 * llama.cpp, as llama.cpp's tools/perplexity/README.md has it: without an importance matrix, and
 * with one of 10 million tokens. The text is that of Wikitext-2. 0: not measured. Q4_0 with
 * importance is 0.59 of the figure without, as on SmolLM2-135M.
 *
 * Our own quantizers lose 0.86 to 1.01 of theirs. On SmolLM2-135M they lose 0.6 to 1.6 of these
 * figures with most types, up to 3.7 with Q4_0 (bench/notes/quantizers.md, "Expected divergence").
 * No rule for the size of a model follows from that, but the order of the types is nearly the
 * same. */
static const struct {
    const char *mix;
    double plain, importance;
} table[] = {
    { "Q8_0", 0.001355, 0.0 },        { "Q6_K", 0.005452, 0.0 },
    { "Q5_K_M", 0.010762, 0.0 },      { "Q5_K_S", 0.016595, 0.0 },
    { "Q5_1", 0.018045, 0.0 },        { "Q5_0", 0.022239, 0.0 },
    { "Q4_K_M", 0.031273, 0.028152 }, { "Q4_K_S", 0.043136, 0.031951 },
    { "IQ4_NL", 0.0, 0.035742 },      { "IQ4_XS", 0.0, 0.036334 },
    { "Q4_1", 0.071683, 0.0 },        { "Q4_0", 0.071940, 0.042445 },
    { "Q3_K_L", 0.087176, 0.073077 }, { "Q3_K_M", 0.101913, 0.084358 },
    { "IQ3_M", 0.0, 0.102534 },       { "IQ3_S", 0.0, 0.111278 },
    { "IQ3_XS", 0.0, 0.138693 },      { "IQ3_XXS", 0.0, 0.183625 },
    { "Q3_K_S", 0.228217, 0.199821 }, { "IQ2_M", 0.0, 0.325989 },
    { "Q2_K", 0.445132, 0.332223 },   { "Q2_K_S", 0.0, 0.403360 },
    { "IQ2_S", 0.0, 0.439197 },       { "IQ2_XS", 0.0, 0.546290 },
    { "IQ2_XXS", 0.0, 0.812022 },     { "IQ1_M", 0.0, 1.393084 },
    { "IQ1_S", 0.0, 2.254554 },
};

double ak_advise_divergence(const char *mix, bool has_importance)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        double value = has_importance ? table[i].importance : table[i].plain;
        if (strcmp(table[i].mix, mix) == 0)
            return value > 0.0 ? value : -1.0;
    }
    return -1.0;
}
