/* logits: writes the logits of every position of some ids as a .npy file. */
#include "cli/options.h"

#include <stdlib.h>

#include "cli/input.h"
#include "cli/load.h"
#include "cli/message.h"
#include "cli/npy.h"

/* Runs ids [first, first + n) as one pass and writes their rows. */
static int one_pass(struct cli_model_session *loaded, const akunu_token *ids, size_t n,
                    struct akunu_batch_token *tokens, struct cli_npy *npy)
{
    for (size_t i = 0; i < n; i++)
        tokens[i] = (struct akunu_batch_token){ .token = ids[i],
                                                .sequence = loaded->sequence,
                                                .logits = true };
    if (akunu_session_decode(loaded->session, tokens, n) != AKUNU_OK)
        return cli_fail_library();
    for (size_t i = 0; i < n; i++) {
        int code = cli_npy_row(npy, akunu_session_logits(loaded->session, i));
        if (code != CLI_EXIT_OK)
            return code;
    }
    return cli_is_interrupted() ? CLI_EXIT_INTERRUPTED : CLI_EXIT_OK;
}

/* Runs all positions in passes of the session's batch; memory does not grow with n. */
static int all_passes(struct cli_model_session *loaded, const akunu_token *ids, size_t n,
                      const char *path)
{
    size_t batch = akunu_session_batch(loaded->session);
    struct akunu_batch_token *tokens = malloc(batch * sizeof *tokens);
    if (!tokens)
        return cli_fail_memory();
    struct cli_progress progress = cli_progress_begin();
    struct cli_npy npy;
    int code = cli_npy_create(path, n, loaded->info.vocab_size, &npy);
    for (size_t first = 0; code == CLI_EXIT_OK && first < n; first += batch) {
        size_t count = n - first < batch ? n - first : batch;
        code = one_pass(loaded, ids + first, count, tokens, &npy);
        cli_progress_show(&progress, "logits", (double)(first + count) / (double)n);
    }
    cli_progress_end(&progress);
    free(tokens);
    return cli_npy_close(&npy, code);
}

/* The context that n ids need, unless -c says otherwise. */
static int open_session(const struct cli_options *o, struct cli_model_session *loaded, size_t n)
{
    size_t context = o->session.context ? o->session.context : loaded->info.context;
    if (n > context)
        return cli_fail("%s has %zu tokens and the context holds %zu (-c sets its size)",
                        cli_ids_name(o), n, context);
    return cli_open_session(o, loaded, (uint32_t)n);
}

int cli_logits(const struct cli_options *o)
{
    struct cli_model_session loaded = { .sequence = -1 };
    akunu_token *ids = NULL;
    size_t n = 0;
    if (!o->out)
        return cli_fail_usage("--out FILE is missing: where the logits go");
    int code = cli_read_ids(o, &ids, &n);
    if (code == CLI_EXIT_OK && n == 0)
        code = cli_fail_usage("%s: no token ids", cli_ids_name(o));
    if (code == CLI_EXIT_OK)
        code = cli_load_model(o, &loaded);
    if (code == CLI_EXIT_OK)
        code = cli_check_ids(cli_ids_name(o), ids, n, loaded.info.vocab_size);
    if (code == CLI_EXIT_OK)
        code = open_session(o, &loaded, n);
    if (code == CLI_EXIT_OK)
        code = all_passes(&loaded, ids, n, o->out);
    cli_unload(&loaded);
    free(ids);
    return code;
}
