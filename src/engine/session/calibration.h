/* Calibration of the backend at load, and its result in the cache folder: a machine is measured
 * once, or at each load without a cache. */
#ifndef AK_ENGINE_SESSION_CALIBRATION_H
#define AK_ENGINE_SESSION_CALIBRATION_H

#include "engine/backend/profile.h"
#include "engine/pack/pack.h"

/* The measured profile is a file of the cache folder, chip-KEY.yaml in the format of
 * engine/backend/profile.h. KEY stands for processor, ISA, threads and version. With
 * params->no_cache, no file is read or written. *profile: in, what the user's profile sets; out,
 * with the measured values below it. What goes wrong is logged and leaves defaults. */
void ak_model_calibrate(struct ak_backend *backend, const struct ak_weights *weights,
                        struct ak_pool *pool, const struct akunu_load_params *params,
                        const struct ak_log *log, struct ak_backend_profile *profile);

#endif
