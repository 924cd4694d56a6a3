/* The OpenCL backend's host code over devices that fail:
 * every call that can fail is made to, and each time there is a message, nothing is left
 * behind, and a session goes on or says again and again that it cannot. */
#include <dlfcn.h>
#include <ftw.h>
#include <pthread.h>
#include <unistd.h>

#include "tests/opencl/fake_opencl.h"
#include "api/handles.h"
#include "engine/session/session.h"
#include "tests/golden_model.h"

static struct fake_opencl_state state(void)
{
    static struct fake_opencl_state (*get)(void);
    if (!get) {
        void *module = dlopen(AK_FAKE_OPENCL, RTLD_NOW | RTLD_LOCAL);
        ck_assert_msg(module != NULL, "%s", dlerror());
        *(void **)&get = dlsym(module, "fake_opencl_state");
        ck_assert_ptr_nonnull(get);
    }
    return get();
}

static void set_plan(const char *plan)
{
    ck_assert_int_eq(setenv("AKUNU_FAKE_OPENCL", plan, 1), 0);
}

static struct akunu_load_params load_params(void)
{
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.backend = "opencl";
    params.no_cache = true;
    params.n_threads = 1;
    return params;
}

static struct akunu_model *load(const char *name, const struct akunu_load_params *params)
{
    char path[4096];
    return akunu_model_load(golden_path(name, ".gguf", path), params);
}

static struct akunu_session *open_session(const struct akunu_model *model)
{
    struct akunu_session_params params = golden_params(1, 16, AKUNU_KV_F16);
    return akunu_session_new(model, &params);
}

/* ---- A life, from loading to the end ------------------------------------ */
/* How far it came. */
enum { LOADED = 1, OPENED = 2, DECODED = 4, FORKED = 8, GENERATED = 16, ALL = 31 };

static int decode(struct akunu_session *session, akunu_sequence sequence, uint32_t n)
{
    struct akunu_batch_token tokens[16];
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = (struct akunu_batch_token){ (int32_t)(i + 1), sequence, true };
    uint32_t before = akunu_sequence_length(session, sequence);
    if (akunu_session_decode(session, tokens, n) == AKUNU_OK) {
        ck_assert_ptr_nonnull(akunu_session_logits(session, n - 1));
        return DECODED;
    }
    ck_assert_uint_eq(akunu_sequence_length(session, sequence), before);
    ck_assert_ptr_null(akunu_session_logits(session, 0));
    return 0;
}

static int fork_and_generate(struct akunu_session *session, akunu_sequence sequence)
{
    akunu_sequence fork =
        akunu_sequence_fork(session, sequence, akunu_sequence_length(session, sequence));
    struct akunu_generation_params generation;
    struct akunu_sampling_params sampling;
    akunu_token token = 3;
    int reached = fork >= 0 && decode(session, fork, 1) ? FORKED : 0;
    akunu_generation_params_default(&generation, sizeof generation);
    akunu_sampling_params_default(&sampling, sizeof sampling);
    generation.sampling = &sampling;
    generation.max_tokens = 3;
    sampling.temperature = 0.0f;
    sampling.ignore_end = true;
    return reached | (akunu_session_generate(session, sequence, &(struct akunu_ids){ &token, 1 },
                                             &generation, NULL) == AKUNU_OK ?
                          GENERATED :
                          0);
}

/* Runs a model under a plan and gives how far it came; `message` has what went wrong. */
static int live(const char *name, const struct akunu_load_params *params, const char *plan,
                char message[1100])
{
    int reached = 0;
    set_plan(plan);
    message[0] = 0;
    struct akunu_model *model = load(name, params);
    struct akunu_session *session = model ? open_session(model) : NULL;
    reached |= (model ? LOADED : 0) | (session ? OPENED : 0);
    if (session) {
        akunu_sequence sequence = akunu_sequence_new(session);
        ck_assert_int_ge(sequence, 0);
        reached |= decode(session, sequence, 16);
        if (!(reached & DECODED)) {
            snprintf(message, 1100, "%s", akunu_last_error());
            (void)decode(session, sequence, 1); /* whatever comes of it */
        }
        reached |= fork_and_generate(session, sequence);
    }
    if (reached != ALL && !message[0])
        snprintf(message, 1100, "%s", akunu_last_error());
    akunu_session_free(session);
    akunu_model_free(model);
    ck_assert_msg(state().objects == 0, "%s: %lld objects are left, having come to %d (%s)", plan,
                  (long long)state().objects, reached, message);
    ck_assert_uint_eq(state().bytes + state().borrowed_bytes, 0);
    return reached;
}

static const struct {
    const char *function;
    const char *says; /* in each message; NULL: anything */
    bool stops;       /* whatever call it is, something is not done */
} faults[] = {
    { "clGetPlatformIDs", "OpenCL has no driver here (CL_PLATFORM_NOT_FOUND_KHR)", false },
    { "clGetPlatformInfo", NULL, false },
    { "clGetDeviceIDs", "OpenCL has a driver here, but no device", false },
    { "clGetDeviceInfo", NULL, false },
    { "clCreateContext", "Fake device 0 cannot be opened: CL_DEVICE_NOT_AVAILABLE", true },
    { "clCreateCommandQueue", "Fake device 0 gives no queue: CL_OUT_OF_RESOURCES", true },
    { "clCreateBuffer", "Fake device 0 has no room for ", true },
    { "clCreateProgramWithSource", "Fake device 0 takes no kernels: CL_OUT_OF_HOST_MEMORY", true },
    { "clCreateProgramWithBinary", NULL, false },
    { "clBuildProgram", NULL, false }, /* of a binary that is kept: it is built again */
    { "clGetProgramInfo", NULL, false },
    { "clCreateKernel", "Fake device 0 has no kernel ", true },
    { "clSetKernelArg", "CL_INVALID_ARG_VALUE", true },
    { "clEnqueueWriteBuffer", "CL_OUT_OF_RESOURCES", true },
    { "clEnqueueFillBuffer", "CL_OUT_OF_RESOURCES", true },
    { "clEnqueueReadBuffer", "Fake device 0 failed while it computed a pass: CL_OUT_OF_RESOURCES",
      true },
    { "clEnqueueCopyBuffer", "Fake device 0 failed while it computed a pass: CL_OUT_OF_RESOURCES",
      true },
    { "clEnqueueNDRangeKernel",
      "Fake device 0 failed while it computed a pass: CL_OUT_OF_RESOURCES", true },
    { "clFlush", "Fake device 0 failed while it computed a pass: CL_OUT_OF_RESOURCES", true },
    { "clFinish", "Fake device 0 failed while it computed a pass: CL_INVALID_COMMAND_QUEUE",
      false },
};
enum { N_FAULTS = sizeof faults / sizeof *faults };

static int on_file(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)kind, (void)where;
    return remove(path);
}

static void empty_folder(const char *path)
{
    nftw(path, on_file, 8, FTW_DEPTH | FTW_PHYS);
}

/* Of a call that is made often, the later ones further apart. */
static uint64_t next_call(uint64_t call)
{
    return call < 24 ? call + 1 : call + call / 3;
}

START_TEST(every_call_fails)
{
    static const char *const models[] = { "mixed", "gpt-oss" };
    char plan[80], message[1100], folder[] = "/tmp/akunu-opencl-XXXXXX";
    int failed = 0;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    /* once or for good; keeping binaries, and with those that are kept */
    for (int way = 0; way < 4; way++) {
        struct akunu_load_params params = load_params();
        params.no_cache = way < 2;
        params.cache_dir = folder;
        params.warm_up = way == 1;
        for (uint64_t call = 1;; call = next_call(call)) {
            snprintf(plan, sizeof plan, "%s=%llu%s", faults[_i].function, (unsigned long long)call,
                     way % 2 ? "+" : "");
            if (way == 2)
                empty_folder(folder);
            int reached = live(models[way / 2], &params, plan, message);
            if (state().failures == 0) {
                ck_assert_msg(reached == ALL, "%s: %s", plan, message);
                break;
            }
            failed++;
            ck_assert_msg(reached == ALL || message[0], "%s: no message", plan);
            ck_assert_msg(reached == ALL || !faults[_i].says || strstr(message, faults[_i].says),
                          "%s: %s", plan, message);
            ck_assert_msg(reached != ALL || !faults[_i].stops, "%s: nothing is said", plan);
        }
    }
    empty_folder(folder);
    ck_assert_msg(failed > 0, "%s is not called", faults[_i].function);
}
END_TEST

START_TEST(nothing_fails)
{
    char message[1100];
    struct akunu_load_params params = load_params();
    for (size_t i = 0; i < N_GOLDENS; i++)
        ck_assert_msg(live(goldens[i].name, &params, "", message) == ALL, "%s: %s", goldens[i].name,
                      message);
}
END_TEST

/* ---- Speech ------------------------------------------------------------- */
enum { SPEECH_MELS = 4, SPEECH_CONTEXT = 40, SPEECH_IDS = 5, SPEECH_HEADS = 2 };

static struct akunu_model *load_speech(const struct akunu_load_params *params)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/speech/model.bin", getenv("AK_TEST_DATA"));
    return akunu_model_load(path, params);
}

static struct akunu_session *open_speech(const struct akunu_model *model)
{
    struct akunu_session_params params;
    akunu_session_params_default(&params, sizeof params);
    params.n_threads = 1;
    return akunu_session_new(model, &params);
}

/* A window, then a text with the scores of all heads. False: `message` says why not. */
static bool transcribe(struct akunu_session *session, char message[1100])
{
    static const float mel[2 * SPEECH_CONTEXT * SPEECH_MELS];
    static const int32_t matrices[2 * SPEECH_HEADS];
    float scores[SPEECH_IDS * SPEECH_CONTEXT], encoded[SPEECH_CONTEXT * 32];
    const struct ak_batch_scores wanted = {
        .data = scores, .matrices = matrices, .n_heads = SPEECH_HEADS, .stride = SPEECH_CONTEXT
    };
    struct akunu_batch_token tokens[SPEECH_IDS];
    struct ak_error error = { 0 };
    akunu_sequence window = akunu_sequence_new(session), text = akunu_sequence_new(session);
    enum akunu_status status = akunu_session_encode(session, window, mel, 0, encoded);
    if (status == AKUNU_OK)
        status = akunu_sequence_attend(session, text, window);
    for (int i = 0; i < SPEECH_IDS; i++)
        tokens[i] = (struct akunu_batch_token){ i + 1, text, true };
    if (status == AKUNU_OK)
        status = akunu_session_decode(session, tokens, 1);
    snprintf(message, 1100, "%s", status == AKUNU_OK ? "" : akunu_last_error());
    if (status == AKUNU_OK &&
        ak_session_decode_scores(session->inner, tokens, SPEECH_IDS, &wanted, &error) != AKUNU_OK) {
        snprintf(message, 1100, "%s", error.message);
        status = AKUNU_ERROR_UNSUPPORTED;
    }
    akunu_sequence_free(session, text);
    akunu_sequence_free(session, window);
    return status == AKUNU_OK;
}

/* Whatever fails of a speech model: a message, nothing is left, and the session goes on. */
START_TEST(speech_fails)
{
    static const char *const functions[] = { "clCreateBuffer",        "clCreateKernel",
                                             "clSetKernelArg",        "clEnqueueWriteBuffer",
                                             "clEnqueueReadBuffer",   "clEnqueueReadBufferRect",
                                             "clEnqueueNDRangeKernel" };
    struct akunu_load_params params = load_params();
    int failed = 0;
    for (uint64_t call = 1;; call = next_call(call)) {
        char plan[80], message[1100];
        snprintf(plan, sizeof plan, "%s=%llu", functions[_i], (unsigned long long)call);
        set_plan(plan);
        struct akunu_model *model = load_speech(&params);
        struct akunu_session *session = model ? open_speech(model) : NULL;
        snprintf(message, sizeof message, "%s", session ? "" : akunu_last_error());
        bool done = session && transcribe(session, message), injected = state().failures > 0;
        ck_assert_msg(done != injected, "%s: %s", plan, message);
        ck_assert_msg(done || strstr(message, "Fake device 0 "), "%s: %s", plan, message);
        if (session && injected)
            ck_assert_msg(transcribe(session, message), "%s: %s", plan, message);
        akunu_session_free(session);
        akunu_model_free(model);
        ck_assert_msg(state().objects == 0, "%s: %lld objects are left", plan,
                      (long long)state().objects);
        if (!injected)
            break;
        failed++;
    }
    ck_assert_msg(failed > 0, "%s is not called", functions[_i]);
}
END_TEST

/* Its layers are not divided, and a device that is too small says what is wanted. */
START_TEST(speech_is_whole)
{
    struct akunu_load_params params = load_params();
    set_plan("");
    params.n_gpu_layers = 1;
    ck_assert_ptr_null(load_speech(&params));
    ck_assert_str_eq(akunu_last_error(),
                     "model.bin: n_gpu_layers is 1, and a speech model is not divided: -1 "
                     "runs all of it on the device, 0 on the CPU");
    params.n_gpu_layers = -1;
    params.warm_up = true; /* a pass without a window */
    set_plan("memory=300000");
    struct akunu_model *model = load_speech(&params);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    ck_assert_ptr_null(open_speech(model));
    ck_assert_msg(strstr(akunu_last_error(), "Fake device 0 has too little memory for ") &&
                      strstr(akunu_last_error(), "; n_gpu_layers 0 runs the model on the CPU"),
                  "%s", akunu_last_error());
    akunu_model_free(model);
}
END_TEST

/* ---- Messages ----------------------------------------------------------- */
START_TEST(compiler_says_why)
{
    char message[1100];
    struct akunu_load_params params = load_params();
    live("qwen2", &params, "clBuildProgram=1+", message);
    ck_assert_str_eq(message,
                     "Fake device 0 does not build akunu's kernels (CL_BUILD_PROGRAM_FAILURE): "
                     "kernels.cl:7:3: error: this compiler has no '?[1mfloat4'");
    live("qwen2", &params, "clGetProgramBuildInfo=1", message);
}
END_TEST

START_TEST(devices_are_listed)
{
    struct akunu_device_info info;
    set_plan("devices=2;memory=123456;unified");
    ck_assert_int_eq(akunu_get_device(1, &info, sizeof info), AKUNU_OK);
    ck_assert_str_eq(info.name, "Fake device 1");
    ck_assert_str_eq(info.features, "gpu, unified memory, fp16");
    ck_assert_uint_eq(info.memory, 123456);
    ck_assert(info.usable);
    ck_assert_int_eq(akunu_get_device(2, &info, sizeof info), AKUNU_ERROR_ARGUMENT);
    set_plan("devices=0");
    ck_assert_int_eq(akunu_get_device(0, &info, sizeof info), AKUNU_ERROR_UNSUPPORTED);
    ck_assert_str_eq(akunu_last_error(), "OpenCL has a driver here, but no device");
    set_plan("clGetPlatformIDs=1+");
    ck_assert_int_eq(akunu_get_device(0, &info, sizeof info), AKUNU_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), "no driver here"));
}
END_TEST

/* GPUs first, CPUs last: none is left out. */
START_TEST(kinds_of_devices)
{
    static const char *const names[] = { "Fake device 2", "Fake device 1", "Fake device 0" };
    static const char *const features[] = { "gpu, fp16", "accelerator, fp16", "cpu, fp16" };
    struct akunu_device_info info;
    set_plan("devices=3;kinds");
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(akunu_get_device(i, &info, sizeof info), AKUNU_OK);
        ck_assert_str_eq(info.name, names[i]);
        ck_assert_str_eq(info.features, features[i]);
    }
    ck_assert_int_eq(akunu_get_device(3, &info, sizeof info), AKUNU_ERROR_ARGUMENT);
}
END_TEST

/* One that cannot run the kernels is listed, passed over, and refused where it is asked for. */
START_TEST(device_of_few_lanes)
{
    struct akunu_device_info info;
    struct akunu_load_params params = load_params();
    set_plan("devices=2;narrow=0");
    ck_assert_int_eq(akunu_get_device(0, &info, sizeof info), AKUNU_OK);
    ck_assert(!info.usable);
    ck_assert_int_eq(akunu_get_device(1, &info, sizeof info), AKUNU_OK);
    ck_assert(info.usable);
    struct akunu_model *model = load("qwen2", &params);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    akunu_model_free(model);
    params.device = "0";
    ck_assert_ptr_null(load("qwen2", &params));
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), "has groups of 64"));
    params.device = NULL;
    set_plan("devices=1;narrow=0");
    ck_assert_ptr_null(load("qwen2", &params));
    ck_assert_ptr_nonnull(strstr(akunu_last_error(), "none of the 1 OpenCL devices is usable"));
}
END_TEST

/* Types of the KV cache that devices lack, for keys or values: the message lists the others. */
START_TEST(kv_types)
{
    struct akunu_load_params params = load_params();
    set_plan("");
    struct akunu_model *model = load("qwen3", &params);
    for (int type = AKUNU_KV_F16; type <= AKUNU_KV_Q5_1; type++)
        for (int values = 0; values < 2; values++) {
            struct akunu_session_params session_params = golden_params(1, 16, AKUNU_KV_F16);
            *(values ? &session_params.v_type : &session_params.k_type) = (enum akunu_kv_type)type;
            struct akunu_session *session = akunu_session_new(model, &session_params);
            ck_assert_int_eq(session != NULL, type <= AKUNU_KV_Q4_0);
            if (!session)
                ck_assert_ptr_nonnull(strstr(akunu_last_error(), values ?
                                                                     "values of the KV cache in" :
                                                                     "keys of the KV cache in"));
            akunu_session_free(session);
        }
    akunu_model_free(model);
    ck_assert_int_eq(state().objects, 0);
}
END_TEST

/* A device that is lost says so at every pass from then on; one that stumbles goes on. */
START_TEST(lost_device)
{
    struct akunu_load_params params = load_params();
    set_plan("");
    struct akunu_model *model = load("qwen2", &params);
    struct akunu_session *session = golden_session(model, 1, 16, AKUNU_KV_F16);
    akunu_sequence sequence = akunu_sequence_new(session);
    ck_assert_int_eq(decode(session, sequence, 5), DECODED);
    set_plan("clFinish=1");
    ck_assert_int_eq(decode(session, sequence, 5), 0);
    ck_assert_int_eq(decode(session, sequence, 5), DECODED);
    ck_assert_uint_eq(akunu_sequence_length(session, sequence), 10);
    set_plan("clEnqueueNDRangeKernel=7+");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(decode(session, sequence, 1), 0);
        ck_assert_str_eq(akunu_last_error(),
                         "Fake device 0 failed while it computed a pass: CL_OUT_OF_RESOURCES");
    }
    ck_assert_uint_eq(akunu_sequence_length(session, sequence), 10);
    akunu_session_free(session);
    akunu_model_free(model);
    ck_assert_int_eq(state().objects, 0);
}
END_TEST

/* Weights that lie as the device wants them are lent where its memory is the host's. */
START_TEST(weights_are_lent)
{
    for (int unified = 0; unified < 2; unified++) {
        struct akunu_load_params params = load_params();
        set_plan(unified ? "unified" : "");
        struct akunu_model *model = load("mixed", &params);
        struct akunu_session *session = golden_session(model, 1, 16, AKUNU_KV_F16);
        struct akunu_memory memory;
        ck_assert_int_eq(akunu_model_get_memory(model, session, &memory, sizeof memory), AKUNU_OK);
        if (unified)
            ck_assert_uint_ge(state().borrowed_bytes, memory.packed / 2);
        else
            ck_assert_uint_eq(state().borrowed_bytes, 0);
        akunu_session_free(session);
        akunu_model_free(model);
        ck_assert_int_eq(state().objects, 0);
    }
}
END_TEST

/* ---- Recorded launches -------------------------------------------------- */
struct notes {
    int refused;
};

static void take_note(enum akunu_log_level level, const char *line, void *user)
{
    struct notes *notes = user;
    notes->refused +=
        level == AKUNU_LOG_WARN && strncmp(line, "opencl: Fake device 0 ", 22) == 0 &&
        (strstr(line, ": they are enqueued one by one") || strstr(line, ": it does without"));
}

/* Passes of one token are replayed where the device records; whatever of it fails is said, and
 * costs no pass. */
START_TEST(launches_are_recorded)
{
    static const char *const functions[] = {
        "clGetExtensionFunctionAddressForPlatform", "clCreateCommandBufferKHR",
        "clCommandNDRangeKernelKHR", "clFinalizeCommandBufferKHR", "clEnqueueCommandBufferKHR"
    };
    static const char *const models[] = { "qwen2", "gpt-oss" };
    char plan[128], message[1100];
    struct notes notes;
    struct akunu_load_params params = load_params();
    params.log = take_note;
    params.user = &notes;
    uint64_t before = state().replays;
    ck_assert_int_eq(live("qwen2", &params, "", message), ALL);
    ck_assert_uint_eq(state().replays, before);
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        notes.refused = 0;
        before = state().replays;
        ck_assert_msg(live(models[m], &params, "recording", message) == ALL, "%s", message);
        if (state().replays == before)
            return; /* headers of OpenCL without the extension */
        ck_assert_uint_ge(state().replays, before + 3);
        ck_assert_int_eq(notes.refused, 0);
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
            for (int call = 1; call <= 3; call++)
                for (int for_good = 0; for_good < 2; for_good++) {
                    snprintf(plan, sizeof plan, "recording;%s=%d%s", functions[i], call,
                             for_good ? "+" : "");
                    notes.refused = 0;
                    ck_assert_msg(live(models[m], &params, plan, message) == ALL, "%s: %s", plan,
                                  message);
                    ck_assert_msg(notes.refused == (state().failures > 0), "%s: said %d times",
                                  plan, notes.refused);
                }
    }
}
END_TEST

/* ---- Layers on the CPU and on a device ---------------------------------- */
START_TEST(layers_are_shared)
{
    char message[1100];
    uint64_t bytes[8];
    struct akunu_load_params params = load_params();
    set_plan("");
    for (int n = 0; n <= 5; n++) {
        struct akunu_model_info info;
        params.n_gpu_layers = n == 5 ? -1 : n;
        struct akunu_model *model = load("mixed", &params);
        ck_assert_msg(model != NULL, "%s", akunu_last_error());
        ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
        struct akunu_session *session = golden_session(model, 1, 16, AKUNU_KV_F16);
        bytes[n] = state().bytes;
        ck_assert_int_eq(strstr(info.cpu, "opencl") != NULL, n > 0);
        ck_assert_int_eq(strstr(info.cpu, "layers") != NULL,
                         n > 0 && (uint32_t)n < info.n_layers && n != 5);
        if (n > 0 && (uint32_t)n <= info.n_layers && n != 5)
            ck_assert_uint_gt(bytes[n], bytes[n - 1]); /* what is not there takes nothing there */
        akunu_session_free(session);
        akunu_model_free(model);
        ck_assert_int_eq(live("mixed", &params, "", message), ALL);
    }
    ck_assert_uint_eq(bytes[0], 0);
    ck_assert_uint_eq(bytes[4], bytes[5]);
    params.n_gpu_layers = 1;
    params.backend = "cpu";
    ck_assert_ptr_null(load("mixed", &params));
    ck_assert_str_eq(akunu_last_error(),
                     "n_gpu_layers is 1, but the backend \"cpu\" has no device");
}
END_TEST

/* A device that is too small: the largest number that the message names fits, and one more does
 * not. */
START_TEST(too_many_layers)
{
    struct akunu_load_params params = load_params();
    char plan[80], message[1100];
    int refused = 0, seen[2] = { 0 };
    for (uint64_t memory = 20000; memory < 4000000; memory += memory / 4) {
        params.n_gpu_layers = -1;
        snprintf(plan, sizeof plan, "memory=%llu", (unsigned long long)memory);
        if (live("lfm2", &params, plan, message) & OPENED)
            break;
        refused++;
        const char *room = strstr(message, "there is room for ");
        ck_assert_msg(room && strstr(message, "Fake device 0 has too little memory for ") &&
                          strstr(message, " MB, the KV cache "),
                      "%s", message);
        bool none = strstr(room, "less than one layer, so 0") != NULL;
        seen[none]++;
        if (none)
            continue;
        params.n_gpu_layers = atoi(room + strlen("there is room for "));
        ck_assert_int_gt(params.n_gpu_layers, 0);
        params.n_gpu_layers++;
        ck_assert_msg(!(live("lfm2", &params, plan, message) & OPENED), "%s: one layer more fits",
                      plan);
        params.n_gpu_layers--;
        ck_assert_msg(live("lfm2", &params, plan, message) == ALL, "%s, %d layers: %s", plan,
                      params.n_gpu_layers, message);
    }
    ck_assert(refused > 0 && seen[0] > 0 && seen[1] > 0);
}
END_TEST

START_TEST(bandwidth)
{
    struct akunu_roofline roof;
    struct akunu_load_params params = load_params();
    for (int n = -1; n <= 1; n++) {
        set_plan("");
        params.n_gpu_layers = n;
        struct akunu_model *model = load("mixed", &params);
        ck_assert_int_eq(
            akunu_roofline_measure_model(model, 1, AKUNU_MEASURE_READ, &roof, sizeof roof),
            AKUNU_OK);
        ck_assert(roof.read_bytes_per_second > 0.0);
        set_plan("clEnqueueNDRangeKernel=3+");
        ck_assert_int_eq(
            akunu_roofline_measure_model(model, 1, AKUNU_MEASURE_READ, &roof, sizeof roof),
            n == 0 ? AKUNU_OK : AKUNU_ERROR_UNSUPPORTED);
        ck_assert_int_eq(
            akunu_roofline_measure_model(model, 0, AKUNU_MEASURE_READ, &roof, sizeof roof),
            AKUNU_ERROR_ARGUMENT);
        akunu_model_free(model);
        ck_assert_int_eq(state().objects, 0);
    }
}
END_TEST

/* ---- Several at once ---------------------------------------------------- */
struct worker {
    const char *model, *device;
    int n_gpu_layers, failed;
    char message[1100];
};

/* Loads, runs the text and holds its logits against the golden ones, where a device computes. */
static void *work(void *context)
{
    struct worker *w = context;
    bool computes = getenv("AKUNU_TEST_DEVICE") != NULL;
    struct akunu_load_params params = load_params();
    struct akunu_model_info info;
    struct golden_text text;
    char path[4096];
    params.device = w->device;
    params.n_gpu_layers = w->n_gpu_layers;
    golden_read_text(w->model, &text);
    w->failed = 1;
    struct akunu_model *model = akunu_model_load(golden_path(w->model, ".gguf", path), &params);
    struct akunu_session_params session_params = golden_params(1, 64, AKUNU_KV_F32);
    struct akunu_session *session = model ? akunu_session_new(model, &session_params) : NULL;
    akunu_sequence sequence = session ? akunu_sequence_new(session) : -1;
    size_t last = 0;
    if (sequence >= 0 && akunu_model_get_info(model, &info, sizeof info) == AKUNU_OK &&
        akunu_session_prefill(session, sequence, &(struct akunu_ids){ text.ids, text.n_prompt },
                              NULL, NULL, &last) == AKUNU_OK) {
        const float *got = akunu_session_logits(session, last);
        float *want = golden_read_logits(w->model, text.n_prompt * info.vocab_size),
              *row = want + (text.n_prompt - 1) * info.vocab_size;
        double difference = 0.0, whole = 0.0;
        for (uint32_t i = 0; i < info.vocab_size; i++) {
            difference += ((double)got[i] - (double)row[i]) * ((double)got[i] - (double)row[i]);
            whole += (double)row[i] * (double)row[i];
        }
        w->failed = computes && !(difference <= 4e-4 * whole); /* of quantized weights on the CPU */
        snprintf(w->message, sizeof w->message, "%s: NMSE %.2e", w->model, difference / whole);
        free(want);
    } else {
        snprintf(w->message, sizeof w->message, "%s: %s", w->model, akunu_last_error());
    }
    akunu_session_free(session);
    akunu_model_free(model);
    return NULL;
}

static void run_workers(struct worker *workers, int n)
{
    pthread_t threads[4];
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < n; i++)
        ck_assert_msg(!workers[i].failed, "%s", workers[i].message);
}

START_TEST(two_devices)
{
    struct worker workers[] = { { .model = "qwen2", .device = "0", .n_gpu_layers = -1 },
                                { .model = "mixed", .device = "1", .n_gpu_layers = -1 },
                                { .model = "gemma", .device = "device 1", .n_gpu_layers = 1 } };
    set_plan("devices=2");
    for (int i = 0; i < 10; i++)
        run_workers(workers, 3);
    ck_assert_int_eq(state().objects, 0);
}
END_TEST

/* On a device that computes (tests/opencl/test_devices.sh): one device twice, and layers on it and
 * the CPU. */
START_TEST(one_device_twice)
{
    struct worker workers[] = { { .model = "qwen2", .n_gpu_layers = -1 },
                                { .model = "gemma", .n_gpu_layers = -1 } };
    run_workers(workers, 2);
}
END_TEST

START_TEST(shared_layers_compute)
{
    static const char *const models[] = { "qwen2", "mixed", "gpt-oss", "lfm2" };
    struct worker workers[] = { { .model = models[_i], .n_gpu_layers = 1 },
                                { .model = models[_i], .n_gpu_layers = 2 } };
    run_workers(workers, 1);
    run_workers(workers + 1, 1);
}
END_TEST

int main(void)
{
    bool computes = getenv("AKUNU_TEST_DEVICE") != NULL;
    if (!computes)
        setenv("AKUNU_OPENCL", AK_FAKE_OPENCL, 1);
    setenv("AKUNU_BACKEND", "opencl", 1);
    Suite *suite = suite_create("opencl");
    TCase *tests = tcase_create(computes ? "device" : "fake");
    tcase_set_timeout(tests, 600);
    if (computes) {
        tcase_add_test(tests, one_device_twice);
        tcase_add_loop_test(tests, shared_layers_compute, 0, 4);
    } else {
        tcase_add_test(tests, nothing_fails);
        tcase_add_loop_test(tests, every_call_fails, 0, N_FAULTS);
        tcase_add_test(tests, compiler_says_why);
        TCase *devices = tcase_create("devices");
        tcase_add_test(devices, devices_are_listed);
        tcase_add_test(devices, kinds_of_devices);
        tcase_add_test(devices, device_of_few_lanes);
        suite_add_tcase(suite, devices);
        TCase *speech = tcase_create("speech");
        tcase_set_timeout(speech, 600);
        tcase_add_loop_test(speech, speech_fails, 0, 7);
        tcase_add_test(speech, speech_is_whole);
        suite_add_tcase(suite, speech);
        tcase_add_test(tests, kv_types);
        tcase_add_test(tests, lost_device);
        tcase_add_test(tests, weights_are_lent);
        tcase_add_test(tests, launches_are_recorded);
        tcase_add_test(tests, layers_are_shared);
        tcase_add_test(tests, too_many_layers);
        tcase_add_test(tests, bandwidth);
        tcase_add_test(tests, two_devices);
    }
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
