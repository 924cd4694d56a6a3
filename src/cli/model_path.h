/* Which file -m means. */
#ifndef AK_CLI_MODEL_PATH_H
#define AK_CLI_MODEL_PATH_H

/* The path of the model that `name` means; NULL: none was named. A name with a
 * folder in it, or of something that is here, is taken as it is; else it is
 * looked for in the models folder, with and without ".gguf". Without a name it
 * is the model that quickstart fetches, else the only one in that folder.
 * On success *path is to be freed; else an exit code after a message:
 * CLI_EXIT_MODEL for a name that is nowhere, CLI_EXIT_USAGE where none was
 * named and there is none to choose. */
int cli_model_path(const char *name, char **path);

/* Calls `each` with the name of every model in the models folder. Gives CLI_EXIT_OK, or
 * CLI_EXIT_MEMORY after a message; a folder that is not there is empty. */
int cli_visit_models(void (*each)(const char *name, void *user), void *user);

#endif
