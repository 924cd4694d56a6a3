"""The public header in ctypes. Made by python/declare.py: do not edit."""

from __future__ import annotations

from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_bool,
    c_char,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint,
    c_uint32,
    c_uint64,
    c_uint8,
    c_void_p,
)
from typing import Any, Dict, Optional, TypedDict

AKUNU_VERSION_MAJOR = 0
AKUNU_VERSION_MINOR = 1
AKUNU_VERSION_PATCH = 0
AKUNU_OK = 0
AKUNU_ERROR_ARGUMENT = 1
AKUNU_ERROR_FORMAT = 2
AKUNU_ERROR_UNSUPPORTED = 3
AKUNU_ERROR_MEMORY = 4
AKUNU_ERROR_CONTEXT = 5
AKUNU_ERROR_IO = 6
AKUNU_ERROR_CANCELLED = 7
AKUNU_ERROR_SYSTEM = 8
AKUNU_ERROR_NUMERIC = 9
AKUNU_ERROR_BUSY = 10
AKUNU_LOG_DEBUG = 0
AKUNU_LOG_INFO = 1
AKUNU_LOG_NOTICE = 2
AKUNU_LOG_WARN = 3
AKUNU_STAGE_BACKEND = 1
AKUNU_STAGE_KERNELS = 2
AKUNU_STAGE_FORMAT = 3
AKUNU_STAGE_OPEN = 4
AKUNU_STAGE_CONFIG = 5
AKUNU_STAGE_ARCHITECTURE = 6
AKUNU_STAGE_PROFILE = 7
AKUNU_STAGE_QUIRKS = 8
AKUNU_STAGE_ROPE = 9
AKUNU_STAGE_VALIDATE = 10
AKUNU_STAGE_TOKENIZER = 11
AKUNU_STAGE_KV = 12
AKUNU_STAGE_SCRATCH = 13
AKUNU_STAGE_TABLE = 14
AKUNU_STAGE_SAMPLED_TABLE = 15
AKUNU_STAGE_WEIGHTS = 16
AKUNU_STAGE_WARMUP = 17
AKUNU_STAGE_READY = 18
AKUNU_PREFILL_AUTO = 0
AKUNU_PREFILL_OWN = 1
AKUNU_PREFILL_BLAS = 2
AKUNU_ROPE_SCALING_MODEL = 0
AKUNU_ROPE_SCALING_NONE = 1
AKUNU_ROPE_SCALING_LINEAR = 2
AKUNU_ROPE_SCALING_YARN = 3
AKUNU_SPLIT_ROWS = 0
AKUNU_SPLIT_LAYERS = 1
AKUNU_POOLING_MODEL = 0
AKUNU_POOLING_MEAN = 1
AKUNU_POOLING_CLS = 2
AKUNU_POOLING_LAST = 3
AKUNU_POOLING_MAX = 4
AKUNU_POOLING_MEAN_SQRT = 5
AKUNU_POOLING_WEIGHTED_MEAN = 6
AKUNU_NORMALIZE_MODEL = 0
AKUNU_NORMALIZE_NONE = 1
AKUNU_NORMALIZE_L2 = 2
AKUNU_KV_F16 = 0
AKUNU_KV_F32 = 1
AKUNU_KV_BF16 = 2
AKUNU_KV_Q8_0 = 3
AKUNU_KV_Q4_0 = 4
AKUNU_KV_Q4_1 = 5
AKUNU_KV_IQ4_NL = 6
AKUNU_KV_Q5_0 = 7
AKUNU_KV_Q5_1 = 8
AKUNU_KV_IMPORTANT = 0
AKUNU_KV_RECENT = 1
AKUNU_SPECULATION_AUTO = 0
AKUNU_SPECULATION_NONE = 1
AKUNU_SPECULATION_NGRAM = 2
AKUNU_SPECULATION_DRAFT = 3
AKUNU_STOP_END = 1
AKUNU_STOP_LENGTH = 2
AKUNU_STOP_CONTEXT = 3
AKUNU_STOP_CALLBACK = 4
AKUNU_STOP_TEXT = 5
AKUNU_META_BOOL = 1
AKUNU_META_INT = 2
AKUNU_META_UINT = 3
AKUNU_META_FLOAT = 4
AKUNU_META_STRING = 5
AKUNU_META_ARRAY = 6
AKUNU_CACHE_READY = 1
AKUNU_CACHE_STALE = 2
AKUNU_CACHE_DAMAGED = 3
AKUNU_CACHE_UNFINISHED = 4
AKUNU_CACHE_BUILDING = 5
AKUNU_TIER_PACKED = 1
AKUNU_TIER_COMPRESSED = 2
AKUNU_TIER_SOURCE = 3
AKUNU_PACKING_CACHED = 1
AKUNU_PACKING_KEPT = 2
AKUNU_PACKING_MEMORY = 3
AKUNU_PACKING_NONE = 4
AKUNU_MEASURE_READ = 1
AKUNU_MEASURE_INT8 = 2
AKUNU_MEASURE_F32 = 4
AKUNU_MEASURE_BF16 = 8
AKUNU_MEASURE_CLOCK = 16
AKUNU_MEASURE_ALL = 31
AKUNU_REQUEST_PROMPT = 1
AKUNU_REQUEST_TOKEN = 2
AKUNU_REQUEST_END = 3
AKUNU_ADD_SPECIAL = 1
AKUNU_PARSE_SPECIAL = 2
AKUNU_SKIP_SPECIAL = 4
AKUNU_CONTINUE = 8
AKUNU_TOKEN_BOS = 1
AKUNU_TOKEN_EOS = 2
AKUNU_TOKEN_EOT = 3
AKUNU_TOKEN_PAD = 4
AKUNU_TOKEN_FIM_PREFIX = 5
AKUNU_TOKEN_FIM_SUFFIX = 6
AKUNU_TOKEN_FIM_MIDDLE = 7
AKUNU_TOKEN_FIM_PAD = 8
AKUNU_TOKEN_FIM_REPO = 9
AKUNU_TOKEN_FIM_FILE = 10
AKUNU_SCHEMA_WRITING = 0
AKUNU_SCHEMA_READING = 1
AKUNU_PROMPT_AUTO = 0
AKUNU_PROMPT_MESSAGE = 1
AKUNU_PROMPT_RAW = 2
AKUNU_REPLY_REASONING = 1
AKUNU_REPLY_CONTENT = 2
AKUNU_REPLY_CALL = 3
AKUNU_REPLY_ARGUMENTS = 4
AKUNU_REPLY_CALL_END = 5
AKUNU_REPLY_BROKEN = 6


class akunu_comm_params(Structure):
    size: int
    timeout: float


class akunu_comm_counts(Structure):
    n_exchanges: int
    bytes_sent: int
    seconds: float


class akunu_rope(Structure):
    scaling: int
    freq_base: float
    freq_scale: float
    yarn_orig_ctx: int
    yarn_ext_factor: float
    yarn_attn_factor: float
    yarn_beta_fast: float
    yarn_beta_slow: float


class akunu_adapter(Structure):
    path: Optional[bytes]
    scale: float


class akunu_load_params(Structure):
    size: int
    cpu: Optional[bytes]
    n_threads: int
    strict: bool
    warm_up: bool
    no_cache: bool
    cache_dir: Optional[bytes]
    progress: Any
    log: Any
    user: Optional[int]
    profile: Optional[bytes]
    relaxed: bool
    prefill: int
    override_kv: Any
    backend: Optional[bytes]
    device: Optional[bytes]
    n_gpu_layers: int
    cache_limit: int
    rope: Any
    adapters: Any
    n_adapters: int
    quantize: Optional[bytes]
    importance: Optional[bytes]
    comm: Optional[int]
    split: int
    ignore_keys: Any


class akunu_model_info(Structure):
    name: Optional[bytes]
    architecture: Optional[bytes]
    format: Optional[bytes]
    weight_type: Optional[bytes]
    cpu: Optional[bytes]
    n_layers: int
    width: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_width: int
    vocab_size: int
    context: int
    n_parameters: int
    token_weight_bytes: int
    matrix_parameters: int
    float_parameters: int
    encoder: bool
    pooling: int
    normalized: bool
    n_scores: int
    n_mels: int
    encoder_context: int
    n_encoder_layers: int


class akunu_session_params(Structure):
    size: int
    context: int
    batch: int
    max_sequences: int
    n_threads: int
    k_type: int
    v_type: int
    log: Any
    user: Optional[int]
    cpus: Optional[bytes]
    pool: Optional[int]
    kv_bytes_max: int
    max_windows: int
    kv_keep: int
    kv_choice: int


class akunu_ids(Structure):
    ids: Any
    n: int


class akunu_batch_token(Structure):
    token: int
    sequence: int
    logits: bool


class akunu_embedding_params(Structure):
    size: int
    pooling: int
    normalize: int
    width: int
    n_prompt: int
    cancel: Any
    user: Optional[int]


class akunu_pair(Structure):
    ids: Any
    n: int
    second: int


class akunu_reasoning(Structure):
    size: int
    budget: int
    begin: Optional[bytes]
    end: Optional[bytes]
    closing: Optional[bytes]
    begins_anywhere: bool
    is_open: bool


class akunu_generation_params(Structure):
    size: int
    max_tokens: int
    sampling: Any
    on_piece: Any
    cancel: Any
    user: Optional[int]
    special: bool
    speculation: int
    draft: Optional[int]
    draft_sequence: int
    draft_max: int
    draft_min: int
    draft_p_min: float
    on_logprobs: Any
    n_top_logprobs: int
    stops: Any
    n_stops: int
    reasoning: Any
    on_logits: Any


class akunu_result(Structure):
    size: int
    stop: int
    n_prompt: int
    n_generated: int
    prompt_seconds: float
    generate_seconds: float
    n_drafted: int
    n_accepted: int
    n_kept: int
    stop_index: int
    chain: Any


class akunu_file_info(Structure):
    format: Optional[bytes]
    architecture: Optional[bytes]
    n_tensors: int
    n_metadata: int
    bytes: int


class akunu_tensor_info(Structure):
    name: Optional[bytes]
    canonical: Optional[bytes]
    type: Optional[bytes]
    n_dims: int
    shape: Any
    bytes: int
    offset: int


class akunu_meta(Structure):
    key: Optional[bytes]
    type: int
    element_type: int
    n: int
    boolean: bool
    integer: int
    unsigned_integer: int
    number: float
    string: Optional[int]


class akunu_format_info(Structure):
    name: Optional[bytes]
    about: Optional[bytes]


class akunu_architecture_info(Structure):
    name: Optional[bytes]
    about: Optional[bytes]
    names: Any
    experts: bool


class akunu_type_info(Structure):
    name: Optional[bytes]
    block_elems: int
    block_bytes: int
    integers: bool
    packed: bool


class akunu_quantization_info(Structure):
    name: Optional[bytes]
    about: Optional[bytes]


class akunu_device_info(Structure):
    backend: bytes
    name: bytes
    vendor: bytes
    version: bytes
    driver: bytes
    features: bytes
    memory: int
    max_allocation: int
    units: int
    mhz: int
    usable: bool


class akunu_cache_entry(Structure):
    file: Optional[bytes]
    model: Optional[bytes]
    backend: Optional[bytes]
    state: int
    bytes: int
    built: int
    used: int
    n_tokens: int


class akunu_load_plan(Structure):
    format: Optional[bytes]
    tier: int
    packing: int
    cache_state: int
    cache_file: bytes
    reason: bytes
    backend: bytes
    built: int
    used: int
    cache_limit: int
    source_bytes: int
    packed_bytes: int
    in_place_bytes: int
    token_weight_bytes: int
    kv_bytes: int
    scratch_bytes: int
    context: int


class akunu_prompt_cache(Structure):
    size: int
    dir: Optional[bytes]
    file: Optional[bytes]
    max_bytes: int
    min_tokens: int


class akunu_convert_params(Structure):
    size: int
    type: Optional[bytes]
    pre: Optional[bytes]
    overwrite: bool
    override_kv: Any
    progress: Any
    log: Any
    user: Optional[int]
    no_vocab: bool
    ignore_keys: Any


class akunu_quantized_tensor(Structure):
    name: Optional[bytes]
    stored: Optional[bytes]
    type: Optional[bytes]
    n_dims: int
    shape: Any
    bytes: int
    divergence: float


class akunu_quantize_params(Structure):
    size: int
    type: Optional[bytes]
    tensor_types: Any
    output_type: Optional[bytes]
    embedding_type: Optional[bytes]
    importance: Optional[bytes]
    pure: bool
    requantize: bool
    overwrite: bool
    override_kv: Any
    n_threads: int
    progress: Any
    report: Any
    log: Any
    user: Optional[int]
    target_bytes: int
    target_bits: float
    text: Optional[bytes]
    n_text: int
    no_vocab: bool
    ignore_keys: Any


class akunu_advisor_params(Structure):
    size: int
    session: Any
    override_kv: Any
    cpu: Optional[bytes]
    no_speed: bool
    ignore_keys: Any


class akunu_advice(Structure):
    type: Optional[bytes]
    needs_importance: bool
    requantizes: bool
    file_bytes: int
    weight_bytes: int
    kv_bytes: int
    scratch_bytes: int
    memory_bytes: int
    context: int
    token_weight_bytes: int
    tokens_per_second: float
    end_tokens_per_second: float
    divergence: float
    importance_divergence: float


class akunu_compress_params(Structure):
    size: int
    encoding: Optional[bytes]
    group: int
    importance: Optional[bytes]
    awq: Optional[bytes]
    text: Optional[bytes]
    n_text: int
    max_divergence: float
    min_agreement: float
    requantize: bool
    overwrite: bool
    n_threads: int
    progress: Any
    log: Any
    user: Optional[int]


class akunu_compress_result(Structure):
    source_bytes: int
    int8_bytes: int
    int4_bytes: int
    int3_bytes: int
    plain_bytes: int
    n_matrices: int
    n_resumed: int
    min_cosine: float
    n_positions: int
    divergence: float
    agreement: float


class akunu_importance_params(Structure):
    size: int
    output: bool
    chunk_size: int
    dataset: Optional[bytes]


class akunu_importance_info(Structure):
    n_tensors: int
    n_tokens: int
    n_matrices: int
    n_unused: int


class akunu_chip(Structure):
    name: bytes
    cores: int
    hardware_threads: int
    numa_nodes: int
    l1d_bytes: int
    l2_bytes: int
    l3_bytes: int
    memory_bytes: int


class akunu_roofline(Structure):
    read_bytes_per_second: float
    int8_ops_per_second: float
    f32_ops_per_second: float
    bf16_ops_per_second: float
    clock_hz: float


class akunu_profile(Structure):
    size: int
    threads: int
    prefill_chunk: int
    skinny_scale32: int
    skinny_scale256: int
    skinny_float: int
    blas_scale32: bool
    blas_scale256: bool
    blas_float: bool


class akunu_tune_params(Structure):
    size: int
    cpu: Optional[bytes]
    n_threads: int
    n_runs: int
    progress: Any
    user: Optional[int]


class akunu_memory(Structure):
    mapped: int
    packed: int
    kv: int
    scratch: int
    tokenizer: int
    table: int
    cached: int


class akunu_counters(Structure):
    passes: int
    tokens: int
    gemv: int
    skinny: int
    gemm: int


class akunu_time(Structure):
    name: Optional[bytes]
    calls: int
    seconds: float
    wait_seconds: float
    bytes: float
    ops: float


class akunu_logit_bias(Structure):
    token: int
    bias: float


class akunu_sampling_params(Structure):
    size: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    repeat_last_n: int
    presence_penalty: float
    frequency_penalty: float
    seed: int
    ignore_end: bool
    samplers: Optional[bytes]
    sampler_seq: Optional[bytes]
    dynatemp_range: float
    dynatemp_exponent: float
    typical_p: float
    top_n_sigma: float
    xtc_probability: float
    xtc_threshold: float
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_penalty_last_n: int
    dry_sequence_breakers: Any
    mirostat: int
    mirostat_tau: float
    mirostat_eta: float
    adaptive_target: float
    adaptive_decay: float
    logit_bias: Any
    n_logit_bias: int
    grammar: Optional[int]


class akunu_logprob(Structure):
    token: int
    logprob: float


class akunu_request_event(Structure):
    size: int
    kind: int
    request: int
    index: int
    token: int
    prompt_index: int
    text: Optional[bytes]
    n_bytes: int
    logprob: float
    top: Any
    n_top: int
    status: int
    message: Optional[bytes]
    result: Any
    n_open: int


class akunu_request(Structure):
    size: int
    ids: Any
    n_ids: int
    n: int
    generation: Any
    logprobs: bool
    prompt_logprobs: bool
    chain: bool
    client: int
    timeout: float
    on_event: Any
    user: Optional[int]


class akunu_scheduler_params(Structure):
    size: int
    max_waiting: int
    max_pass_ratio: float
    no_prefix_cache: bool
    prompts: Any


class akunu_scheduler_stats(Structure):
    n_requests: int
    n_cancelled: int
    n_prompt_tokens: int
    n_cached_tokens: int
    n_generated: int
    n_passes: int
    n_preempted: int
    n_running: int
    n_waiting: int
    n_pages: int
    n_used_pages: int
    n_cached_pages: int
    page_bytes: int
    session_bytes: int


class akunu_scheduler_slot(Structure):
    request: int
    index: int
    n_prompt: int
    n_cached: int
    n_done: int
    n_generated: int


class akunu_vad_params(Structure):
    size: int
    threshold: float
    min_speech_ms: int
    min_silence_ms: int
    max_speech_s: float
    speech_pad_ms: int
    overlap_s: float


class akunu_transcription_params(Structure):
    size: int
    language: Optional[bytes]
    translate: bool
    no_timestamps: bool
    beams: int
    best_of: int
    patience: float
    length_penalty: float
    temperature: float
    temperature_step: float
    max_compression: float
    min_log_prob: float
    max_no_speech: float
    max_previous: int
    prompt: Optional[bytes]
    prefix: Optional[bytes]
    keep_prompt: bool
    keep_symbols: bool
    offset_ms: int
    duration_ms: int
    max_tokens: int
    seed: int
    word_times: bool
    vad: Optional[int]
    vad_params: Any
    grammar: Optional[int]
    grammar_penalty: float
    hallucination_silence: float
    hotwords: Optional[bytes]
    audio_context: int


class akunu_word(Structure):
    start: float
    end: float
    probability: float
    text: Optional[bytes]
    n_bytes: int


class akunu_segment(Structure):
    id: int
    window: int
    start: float
    end: float
    text: Optional[bytes]
    n_bytes: int
    tokens: Any
    n_tokens: int
    temperature: float
    mean_log_prob: float
    compression: float
    no_speech: float
    words: Any
    n_words: int
    token_probabilities: Any


class akunu_clip(Structure):
    size: int
    audio: Optional[int]
    params: Any
    on_segment: Any
    progress: Any
    on_end: Any
    user: Optional[int]


class akunu_infill(Structure):
    size: int
    prefix: Optional[bytes]
    suffix: Optional[bytes]
    n_prefix_bytes: int
    n_suffix_bytes: int
    suffix_first: bool
    max_tokens: int
    n_prefix_dropped: int
    n_suffix_dropped: int


class akunu_embedding_text(Structure):
    size: int
    prompt_name: Optional[bytes]
    flags: int
    max_tokens: int
    n_whole: int
    n_prompt: int


class akunu_pair_text(Structure):
    size: int
    query: Optional[bytes]
    document: Optional[bytes]
    n_query_bytes: int
    n_document_bytes: int
    second: int


class akunu_schema_params(Structure):
    size: int
    form: int
    lax: bool
    log: Any
    user: Optional[int]


class akunu_chat(Structure):
    size: int
    messages: Optional[bytes]
    tools: Optional[bytes]
    documents: Optional[bytes]
    kwargs: Optional[bytes]
    name: Optional[bytes]
    add_generation_prompt: bool
    continue_final_message: Optional[bytes]
    bos_token: Optional[bytes]
    eos_token: Optional[bytes]
    now: int


class akunu_completion_params(Structure):
    size: int
    generation: Any
    form: int
    system: Optional[bytes]
    chat: Any
    chat_template: Optional[int]


class akunu_reply_params(Structure):
    size: int
    format: Optional[bytes]
    chat_template: Optional[bytes]
    tokenizer: Optional[int]
    prompt: Optional[bytes]
    tools: Optional[bytes]
    calls: bool
    reasoning: bool
    seed: int


class akunu_reply_event(Structure):
    size: int
    kind: int
    text: Optional[int]
    n_bytes: int
    call: int
    id: Optional[bytes]


class akunu_tool_grammar_params(Structure):
    size: int
    choice: Optional[bytes]
    parallel: bool
    lax: bool
    log: Any
    user: Optional[int]
    content: Optional[int]


akunu_log_fn = CFUNCTYPE(
    None, c_int, c_void_p, c_void_p
)
akunu_fraction_fn = CFUNCTYPE(
    c_bool, c_double, c_void_p
)
akunu_cancel_fn = CFUNCTYPE(
    c_bool, c_void_p
)
akunu_progress_fn = CFUNCTYPE(
    c_bool, c_int, c_double, c_void_p
)
akunu_piece_fn = CFUNCTYPE(
    c_bool, c_size_t, c_int32, c_void_p, c_size_t, c_void_p
)
akunu_logprobs_fn = CFUNCTYPE(
    None, c_size_t, c_int32, c_float, POINTER(akunu_logprob), c_size_t, c_void_p
)
akunu_logits_fn = CFUNCTYPE(
    None, c_size_t, POINTER(c_float), c_size_t, c_void_p
)
akunu_quantize_report_fn = CFUNCTYPE(
    None, POINTER(akunu_quantized_tensor), c_void_p
)
akunu_request_fn = CFUNCTYPE(
    c_bool, POINTER(akunu_request_event), c_void_p
)
akunu_vad_probability_fn = CFUNCTYPE(
    c_bool, c_float, c_void_p
)
akunu_vad_range_fn = CFUNCTYPE(
    c_bool, c_double, c_double, c_void_p
)
akunu_segment_fn = CFUNCTYPE(
    c_bool, POINTER(akunu_segment), c_void_p
)
akunu_clip_end_fn = CFUNCTYPE(
    None, c_int, c_void_p, c_void_p, c_void_p
)
akunu_next_clip_fn = CFUNCTYPE(
    c_bool, POINTER(akunu_clip), c_void_p
)
akunu_words_fn = CFUNCTYPE(
    c_bool, POINTER(akunu_word), c_size_t, c_bool, c_void_p
)
akunu_reply_fn = CFUNCTYPE(
    None, POINTER(akunu_reply_event), c_void_p
)

akunu_comm_params._fields_ = [
    ("size", c_size_t),
    ("timeout", c_double),
]

akunu_comm_counts._fields_ = [
    ("n_exchanges", c_uint64),
    ("bytes_sent", c_uint64),
    ("seconds", c_double),
]

akunu_rope._fields_ = [
    ("scaling", c_int),
    ("freq_base", c_float),
    ("freq_scale", c_float),
    ("yarn_orig_ctx", c_uint32),
    ("yarn_ext_factor", c_float),
    ("yarn_attn_factor", c_float),
    ("yarn_beta_fast", c_float),
    ("yarn_beta_slow", c_float),
]

akunu_adapter._fields_ = [
    ("path", c_char_p),
    ("scale", c_float),
]

akunu_load_params._fields_ = [
    ("size", c_size_t),
    ("cpu", c_char_p),
    ("n_threads", c_uint),
    ("strict", c_bool),
    ("warm_up", c_bool),
    ("no_cache", c_bool),
    ("cache_dir", c_char_p),
    ("progress", akunu_progress_fn),
    ("log", akunu_log_fn),
    ("user", c_void_p),
    ("profile", c_char_p),
    ("relaxed", c_bool),
    ("prefill", c_int),
    ("override_kv", POINTER(c_char_p)),
    ("backend", c_char_p),
    ("device", c_char_p),
    ("n_gpu_layers", c_int),
    ("cache_limit", c_uint64),
    ("rope", akunu_rope),
    ("adapters", POINTER(akunu_adapter)),
    ("n_adapters", c_size_t),
    ("quantize", c_char_p),
    ("importance", c_char_p),
    ("comm", c_void_p),
    ("split", c_int),
    ("ignore_keys", POINTER(c_char_p)),
]

akunu_model_info._fields_ = [
    ("name", c_char_p),
    ("architecture", c_char_p),
    ("format", c_char_p),
    ("weight_type", c_char_p),
    ("cpu", c_char_p),
    ("n_layers", c_uint32),
    ("width", c_uint32),
    ("n_heads", c_uint32),
    ("n_kv_heads", c_uint32),
    ("head_dim", c_uint32),
    ("ffn_width", c_uint32),
    ("vocab_size", c_uint32),
    ("context", c_uint32),
    ("n_parameters", c_uint64),
    ("token_weight_bytes", c_uint64),
    ("matrix_parameters", c_uint64),
    ("float_parameters", c_uint64),
    ("encoder", c_bool),
    ("pooling", c_int),
    ("normalized", c_bool),
    ("n_scores", c_uint32),
    ("n_mels", c_uint32),
    ("encoder_context", c_uint32),
    ("n_encoder_layers", c_uint32),
]

akunu_session_params._fields_ = [
    ("size", c_size_t),
    ("context", c_uint32),
    ("batch", c_uint32),
    ("max_sequences", c_uint32),
    ("n_threads", c_uint),
    ("k_type", c_int),
    ("v_type", c_int),
    ("log", akunu_log_fn),
    ("user", c_void_p),
    ("cpus", c_char_p),
    ("pool", c_void_p),
    ("kv_bytes_max", c_uint64),
    ("max_windows", c_uint32),
    ("kv_keep", c_uint32),
    ("kv_choice", c_int),
]

akunu_ids._fields_ = [
    ("ids", POINTER(c_int32)),
    ("n", c_size_t),
]

akunu_batch_token._fields_ = [
    ("token", c_int32),
    ("sequence", c_int32),
    ("logits", c_bool),
]

akunu_embedding_params._fields_ = [
    ("size", c_size_t),
    ("pooling", c_int),
    ("normalize", c_int),
    ("width", c_size_t),
    ("n_prompt", c_size_t),
    ("cancel", akunu_cancel_fn),
    ("user", c_void_p),
]

akunu_pair._fields_ = [
    ("ids", POINTER(c_int32)),
    ("n", c_size_t),
    ("second", c_size_t),
]

akunu_reasoning._fields_ = [
    ("size", c_size_t),
    ("budget", c_int64),
    ("begin", c_char_p),
    ("end", c_char_p),
    ("closing", c_char_p),
    ("begins_anywhere", c_bool),
    ("is_open", c_bool),
]

akunu_generation_params._fields_ = [
    ("size", c_size_t),
    ("max_tokens", c_int64),
    ("sampling", POINTER(akunu_sampling_params)),
    ("on_piece", akunu_piece_fn),
    ("cancel", akunu_cancel_fn),
    ("user", c_void_p),
    ("special", c_bool),
    ("speculation", c_int),
    ("draft", c_void_p),
    ("draft_sequence", c_int32),
    ("draft_max", c_uint32),
    ("draft_min", c_uint32),
    ("draft_p_min", c_float),
    ("on_logprobs", akunu_logprobs_fn),
    ("n_top_logprobs", c_uint32),
    ("stops", POINTER(c_char_p)),
    ("n_stops", c_size_t),
    ("reasoning", POINTER(akunu_reasoning)),
    ("on_logits", akunu_logits_fn),
]

akunu_result._fields_ = [
    ("size", c_size_t),
    ("stop", c_int),
    ("n_prompt", c_uint64),
    ("n_generated", c_uint64),
    ("prompt_seconds", c_double),
    ("generate_seconds", c_double),
    ("n_drafted", c_uint64),
    ("n_accepted", c_uint64),
    ("n_kept", c_uint64),
    ("stop_index", c_size_t),
    ("chain", c_uint8 * 32),
]

akunu_file_info._fields_ = [
    ("format", c_char_p),
    ("architecture", c_char_p),
    ("n_tensors", c_size_t),
    ("n_metadata", c_size_t),
    ("bytes", c_uint64),
]

akunu_tensor_info._fields_ = [
    ("name", c_char_p),
    ("canonical", c_char_p),
    ("type", c_char_p),
    ("n_dims", c_uint),
    ("shape", c_uint64 * 4),
    ("bytes", c_uint64),
    ("offset", c_uint64),
]

akunu_meta._fields_ = [
    ("key", c_char_p),
    ("type", c_int),
    ("element_type", c_int),
    ("n", c_uint64),
    ("boolean", c_bool),
    ("integer", c_int64),
    ("unsigned_integer", c_uint64),
    ("number", c_double),
    ("string", c_void_p),
]

akunu_format_info._fields_ = [
    ("name", c_char_p),
    ("about", c_char_p),
]

akunu_architecture_info._fields_ = [
    ("name", c_char_p),
    ("about", c_char_p),
    ("names", POINTER(c_char_p)),
    ("experts", c_bool),
]

akunu_type_info._fields_ = [
    ("name", c_char_p),
    ("block_elems", c_uint),
    ("block_bytes", c_uint),
    ("integers", c_bool),
    ("packed", c_bool),
]

akunu_quantization_info._fields_ = [
    ("name", c_char_p),
    ("about", c_char_p),
]

akunu_device_info._fields_ = [
    ("backend", c_char * 16),
    ("name", c_char * 128),
    ("vendor", c_char * 128),
    ("version", c_char * 128),
    ("driver", c_char * 128),
    ("features", c_char * 128),
    ("memory", c_uint64),
    ("max_allocation", c_uint64),
    ("units", c_uint),
    ("mhz", c_uint),
    ("usable", c_bool),
]

akunu_cache_entry._fields_ = [
    ("file", c_char_p),
    ("model", c_char_p),
    ("backend", c_char_p),
    ("state", c_int),
    ("bytes", c_uint64),
    ("built", c_int64),
    ("used", c_int64),
    ("n_tokens", c_uint64),
]

akunu_load_plan._fields_ = [
    ("format", c_char_p),
    ("tier", c_int),
    ("packing", c_int),
    ("cache_state", c_int),
    ("cache_file", c_char * 64),
    ("reason", c_char * 256),
    ("backend", c_char * 32),
    ("built", c_int64),
    ("used", c_int64),
    ("cache_limit", c_uint64),
    ("source_bytes", c_uint64),
    ("packed_bytes", c_uint64),
    ("in_place_bytes", c_uint64),
    ("token_weight_bytes", c_uint64),
    ("kv_bytes", c_uint64),
    ("scratch_bytes", c_uint64),
    ("context", c_uint32),
]

akunu_prompt_cache._fields_ = [
    ("size", c_size_t),
    ("dir", c_char_p),
    ("file", c_char_p),
    ("max_bytes", c_uint64),
    ("min_tokens", c_uint32),
]

akunu_convert_params._fields_ = [
    ("size", c_size_t),
    ("type", c_char_p),
    ("pre", c_char_p),
    ("overwrite", c_bool),
    ("override_kv", POINTER(c_char_p)),
    ("progress", akunu_fraction_fn),
    ("log", akunu_log_fn),
    ("user", c_void_p),
    ("no_vocab", c_bool),
    ("ignore_keys", POINTER(c_char_p)),
]

akunu_quantized_tensor._fields_ = [
    ("name", c_char_p),
    ("stored", c_char_p),
    ("type", c_char_p),
    ("n_dims", c_uint),
    ("shape", POINTER(c_uint64)),
    ("bytes", c_uint64),
    ("divergence", c_double),
]

akunu_quantize_params._fields_ = [
    ("size", c_size_t),
    ("type", c_char_p),
    ("tensor_types", POINTER(c_char_p)),
    ("output_type", c_char_p),
    ("embedding_type", c_char_p),
    ("importance", c_char_p),
    ("pure", c_bool),
    ("requantize", c_bool),
    ("overwrite", c_bool),
    ("override_kv", POINTER(c_char_p)),
    ("n_threads", c_uint),
    ("progress", akunu_fraction_fn),
    ("report", akunu_quantize_report_fn),
    ("log", akunu_log_fn),
    ("user", c_void_p),
    ("target_bytes", c_uint64),
    ("target_bits", c_double),
    ("text", c_char_p),
    ("n_text", c_size_t),
    ("no_vocab", c_bool),
    ("ignore_keys", POINTER(c_char_p)),
]

akunu_advisor_params._fields_ = [
    ("size", c_size_t),
    ("session", POINTER(akunu_session_params)),
    ("override_kv", POINTER(c_char_p)),
    ("cpu", c_char_p),
    ("no_speed", c_bool),
    ("ignore_keys", POINTER(c_char_p)),
]

akunu_advice._fields_ = [
    ("type", c_char_p),
    ("needs_importance", c_bool),
    ("requantizes", c_bool),
    ("file_bytes", c_uint64),
    ("weight_bytes", c_uint64),
    ("kv_bytes", c_uint64),
    ("scratch_bytes", c_uint64),
    ("memory_bytes", c_uint64),
    ("context", c_uint32),
    ("token_weight_bytes", c_uint64),
    ("tokens_per_second", c_double),
    ("end_tokens_per_second", c_double),
    ("divergence", c_double),
    ("importance_divergence", c_double),
]

akunu_compress_params._fields_ = [
    ("size", c_size_t),
    ("encoding", c_char_p),
    ("group", c_uint32),
    ("importance", c_char_p),
    ("awq", c_char_p),
    ("text", c_char_p),
    ("n_text", c_size_t),
    ("max_divergence", c_double),
    ("min_agreement", c_double),
    ("requantize", c_bool),
    ("overwrite", c_bool),
    ("n_threads", c_uint),
    ("progress", akunu_fraction_fn),
    ("log", akunu_log_fn),
    ("user", c_void_p),
]

akunu_compress_result._fields_ = [
    ("source_bytes", c_uint64),
    ("int8_bytes", c_uint64),
    ("int4_bytes", c_uint64),
    ("int3_bytes", c_uint64),
    ("plain_bytes", c_uint64),
    ("n_matrices", c_uint64),
    ("n_resumed", c_uint64),
    ("min_cosine", c_double),
    ("n_positions", c_uint64),
    ("divergence", c_double),
    ("agreement", c_double),
]

akunu_importance_params._fields_ = [
    ("size", c_size_t),
    ("output", c_bool),
    ("chunk_size", c_uint32),
    ("dataset", c_char_p),
]

akunu_importance_info._fields_ = [
    ("n_tensors", c_size_t),
    ("n_tokens", c_uint64),
    ("n_matrices", c_uint64),
    ("n_unused", c_uint64),
]

akunu_chip._fields_ = [
    ("name", c_char * 64),
    ("cores", c_uint32),
    ("hardware_threads", c_uint32),
    ("numa_nodes", c_uint32),
    ("l1d_bytes", c_uint64),
    ("l2_bytes", c_uint64),
    ("l3_bytes", c_uint64),
    ("memory_bytes", c_uint64),
]

akunu_roofline._fields_ = [
    ("read_bytes_per_second", c_double),
    ("int8_ops_per_second", c_double),
    ("f32_ops_per_second", c_double),
    ("bf16_ops_per_second", c_double),
    ("clock_hz", c_double),
]

akunu_profile._fields_ = [
    ("size", c_size_t),
    ("threads", c_uint32),
    ("prefill_chunk", c_uint32),
    ("skinny_scale32", c_uint32),
    ("skinny_scale256", c_uint32),
    ("skinny_float", c_uint32),
    ("blas_scale32", c_bool),
    ("blas_scale256", c_bool),
    ("blas_float", c_bool),
]

akunu_tune_params._fields_ = [
    ("size", c_size_t),
    ("cpu", c_char_p),
    ("n_threads", c_uint),
    ("n_runs", c_uint),
    ("progress", akunu_fraction_fn),
    ("user", c_void_p),
]

akunu_memory._fields_ = [
    ("mapped", c_uint64),
    ("packed", c_uint64),
    ("kv", c_uint64),
    ("scratch", c_uint64),
    ("tokenizer", c_uint64),
    ("table", c_uint64),
    ("cached", c_uint64),
]

akunu_counters._fields_ = [
    ("passes", c_uint64),
    ("tokens", c_uint64),
    ("gemv", c_uint64),
    ("skinny", c_uint64),
    ("gemm", c_uint64),
]

akunu_time._fields_ = [
    ("name", c_char_p),
    ("calls", c_uint64),
    ("seconds", c_double),
    ("wait_seconds", c_double),
    ("bytes", c_double),
    ("ops", c_double),
]

akunu_logit_bias._fields_ = [
    ("token", c_int32),
    ("bias", c_float),
]

akunu_sampling_params._fields_ = [
    ("size", c_size_t),
    ("temperature", c_float),
    ("top_k", c_int32),
    ("top_p", c_float),
    ("min_p", c_float),
    ("repeat_penalty", c_float),
    ("repeat_last_n", c_int32),
    ("presence_penalty", c_float),
    ("frequency_penalty", c_float),
    ("seed", c_uint64),
    ("ignore_end", c_bool),
    ("samplers", c_char_p),
    ("sampler_seq", c_char_p),
    ("dynatemp_range", c_float),
    ("dynatemp_exponent", c_float),
    ("typical_p", c_float),
    ("top_n_sigma", c_float),
    ("xtc_probability", c_float),
    ("xtc_threshold", c_float),
    ("dry_multiplier", c_float),
    ("dry_base", c_float),
    ("dry_allowed_length", c_int32),
    ("dry_penalty_last_n", c_int32),
    ("dry_sequence_breakers", POINTER(c_char_p)),
    ("mirostat", c_int32),
    ("mirostat_tau", c_float),
    ("mirostat_eta", c_float),
    ("adaptive_target", c_float),
    ("adaptive_decay", c_float),
    ("logit_bias", POINTER(akunu_logit_bias)),
    ("n_logit_bias", c_size_t),
    ("grammar", c_void_p),
]

akunu_logprob._fields_ = [
    ("token", c_int32),
    ("logprob", c_float),
]

akunu_request_event._fields_ = [
    ("size", c_size_t),
    ("kind", c_int),
    ("request", c_uint64),
    ("index", c_size_t),
    ("token", c_int32),
    ("prompt_index", c_size_t),
    ("text", c_char_p),
    ("n_bytes", c_size_t),
    ("logprob", c_float),
    ("top", POINTER(akunu_logprob)),
    ("n_top", c_size_t),
    ("status", c_int),
    ("message", c_char_p),
    ("result", POINTER(akunu_result)),
    ("n_open", c_size_t),
]

akunu_request._fields_ = [
    ("size", c_size_t),
    ("ids", POINTER(c_int32)),
    ("n_ids", c_size_t),
    ("n", c_size_t),
    ("generation", POINTER(akunu_generation_params)),
    ("logprobs", c_bool),
    ("prompt_logprobs", c_bool),
    ("chain", c_bool),
    ("client", c_uint64),
    ("timeout", c_double),
    ("on_event", akunu_request_fn),
    ("user", c_void_p),
]

akunu_scheduler_params._fields_ = [
    ("size", c_size_t),
    ("max_waiting", c_uint32),
    ("max_pass_ratio", c_double),
    ("no_prefix_cache", c_bool),
    ("prompts", POINTER(akunu_prompt_cache)),
]

akunu_scheduler_stats._fields_ = [
    ("n_requests", c_uint64),
    ("n_cancelled", c_uint64),
    ("n_prompt_tokens", c_uint64),
    ("n_cached_tokens", c_uint64),
    ("n_generated", c_uint64),
    ("n_passes", c_uint64),
    ("n_preempted", c_uint64),
    ("n_running", c_uint32),
    ("n_waiting", c_uint32),
    ("n_pages", c_uint32),
    ("n_used_pages", c_uint32),
    ("n_cached_pages", c_uint32),
    ("page_bytes", c_uint64),
    ("session_bytes", c_uint64),
]

akunu_scheduler_slot._fields_ = [
    ("request", c_uint64),
    ("index", c_size_t),
    ("n_prompt", c_uint32),
    ("n_cached", c_uint32),
    ("n_done", c_uint32),
    ("n_generated", c_uint32),
]

akunu_vad_params._fields_ = [
    ("size", c_size_t),
    ("threshold", c_float),
    ("min_speech_ms", c_uint32),
    ("min_silence_ms", c_uint32),
    ("max_speech_s", c_float),
    ("speech_pad_ms", c_uint32),
    ("overlap_s", c_float),
]

akunu_transcription_params._fields_ = [
    ("size", c_size_t),
    ("language", c_char_p),
    ("translate", c_bool),
    ("no_timestamps", c_bool),
    ("beams", c_uint32),
    ("best_of", c_uint32),
    ("patience", c_float),
    ("length_penalty", c_float),
    ("temperature", c_float),
    ("temperature_step", c_float),
    ("max_compression", c_float),
    ("min_log_prob", c_float),
    ("max_no_speech", c_float),
    ("max_previous", c_int32),
    ("prompt", c_char_p),
    ("prefix", c_char_p),
    ("keep_prompt", c_bool),
    ("keep_symbols", c_bool),
    ("offset_ms", c_uint32),
    ("duration_ms", c_uint32),
    ("max_tokens", c_uint32),
    ("seed", c_uint64),
    ("word_times", c_bool),
    ("vad", c_void_p),
    ("vad_params", POINTER(akunu_vad_params)),
    ("grammar", c_void_p),
    ("grammar_penalty", c_float),
    ("hallucination_silence", c_float),
    ("hotwords", c_char_p),
    ("audio_context", c_uint32),
]

akunu_word._fields_ = [
    ("start", c_double),
    ("end", c_double),
    ("probability", c_double),
    ("text", c_char_p),
    ("n_bytes", c_size_t),
]

akunu_segment._fields_ = [
    ("id", c_uint32),
    ("window", c_uint64),
    ("start", c_double),
    ("end", c_double),
    ("text", c_char_p),
    ("n_bytes", c_size_t),
    ("tokens", POINTER(c_int32)),
    ("n_tokens", c_size_t),
    ("temperature", c_float),
    ("mean_log_prob", c_double),
    ("compression", c_double),
    ("no_speech", c_double),
    ("words", POINTER(akunu_word)),
    ("n_words", c_size_t),
    ("token_probabilities", POINTER(c_float)),
]

akunu_clip._fields_ = [
    ("size", c_size_t),
    ("audio", c_void_p),
    ("params", POINTER(akunu_transcription_params)),
    ("on_segment", akunu_segment_fn),
    ("progress", akunu_fraction_fn),
    ("on_end", akunu_clip_end_fn),
    ("user", c_void_p),
]

akunu_infill._fields_ = [
    ("size", c_size_t),
    ("prefix", c_char_p),
    ("suffix", c_char_p),
    ("n_prefix_bytes", c_size_t),
    ("n_suffix_bytes", c_size_t),
    ("suffix_first", c_bool),
    ("max_tokens", c_size_t),
    ("n_prefix_dropped", c_size_t),
    ("n_suffix_dropped", c_size_t),
]

akunu_embedding_text._fields_ = [
    ("size", c_size_t),
    ("prompt_name", c_char_p),
    ("flags", c_uint),
    ("max_tokens", c_size_t),
    ("n_whole", c_size_t),
    ("n_prompt", c_size_t),
]

akunu_pair_text._fields_ = [
    ("size", c_size_t),
    ("query", c_char_p),
    ("document", c_char_p),
    ("n_query_bytes", c_size_t),
    ("n_document_bytes", c_size_t),
    ("second", c_size_t),
]

akunu_schema_params._fields_ = [
    ("size", c_size_t),
    ("form", c_int),
    ("lax", c_bool),
    ("log", akunu_log_fn),
    ("user", c_void_p),
]

akunu_chat._fields_ = [
    ("size", c_size_t),
    ("messages", c_char_p),
    ("tools", c_char_p),
    ("documents", c_char_p),
    ("kwargs", c_char_p),
    ("name", c_char_p),
    ("add_generation_prompt", c_bool),
    ("continue_final_message", c_char_p),
    ("bos_token", c_char_p),
    ("eos_token", c_char_p),
    ("now", c_int64),
]

akunu_completion_params._fields_ = [
    ("size", c_size_t),
    ("generation", POINTER(akunu_generation_params)),
    ("form", c_int),
    ("system", c_char_p),
    ("chat", POINTER(akunu_chat)),
    ("chat_template", c_void_p),
]

akunu_reply_params._fields_ = [
    ("size", c_size_t),
    ("format", c_char_p),
    ("chat_template", c_char_p),
    ("tokenizer", c_void_p),
    ("prompt", c_char_p),
    ("tools", c_char_p),
    ("calls", c_bool),
    ("reasoning", c_bool),
    ("seed", c_uint64),
]

akunu_reply_event._fields_ = [
    ("size", c_size_t),
    ("kind", c_int),
    ("text", c_void_p),
    ("n_bytes", c_size_t),
    ("call", c_size_t),
    ("id", c_char_p),
]

akunu_tool_grammar_params._fields_ = [
    ("size", c_size_t),
    ("choice", c_char_p),
    ("parallel", c_bool),
    ("lax", c_bool),
    ("log", akunu_log_fn),
    ("user", c_void_p),
    ("content", c_void_p),
]

# Result and parameters of each function.
FUNCTIONS: Dict[str, Any] = {
    "akunu_comm_count": (c_uint, [POINTER(c_uint)]),
    "akunu_comm_params_default": (None, [POINTER(akunu_comm_params), c_size_t]),
    "akunu_comm_join": (c_void_p, [POINTER(akunu_comm_params)]),
    "akunu_comm_free": (None, [c_void_p]),
    "akunu_comm_follow": (c_int, [c_void_p, akunu_log_fn, c_void_p]),
    "akunu_comm_has_failed": (c_bool, [c_void_p]),
    "akunu_comm_get_counts": (c_int, [c_void_p, POINTER(akunu_comm_counts), c_size_t]),
    "akunu_status_name": (c_char_p, [c_int]),
    "akunu_last_error": (c_char_p, []),
    "akunu_last_status": (c_int, []),
    "akunu_version": (c_char_p, []),
    "akunu_build_info": (c_char_p, []),
    "akunu_load_stage_name": (c_char_p, [c_int]),
    "akunu_load_params_default": (None, [POINTER(akunu_load_params), c_size_t]),
    "akunu_model_load": (c_void_p, [c_char_p, POINTER(akunu_load_params)]),
    "akunu_model_load_fd": (c_void_p, [c_int, POINTER(akunu_load_params)]),
    "akunu_model_free": (None, [c_void_p]),
    "akunu_model_get_info": (c_int, [c_void_p, POINTER(akunu_model_info), c_size_t]),
    "akunu_model_tokenizer": (c_void_p, [c_void_p]),
    "akunu_model_file": (c_void_p, [c_void_p]),
    "akunu_pool_new": (c_void_p, [c_uint, c_char_p]),
    "akunu_pool_free": (None, [c_void_p]),
    "akunu_pool_threads": (c_uint, [c_void_p]),
    "akunu_session_params_default": (None, [POINTER(akunu_session_params), c_size_t]),
    "akunu_session_new": (c_void_p, [c_void_p, POINTER(akunu_session_params)]),
    "akunu_session_free": (None, [c_void_p]),
    "akunu_session_context": (c_uint32, [c_void_p]),
    "akunu_session_batch": (c_uint32, [c_void_p]),
    "akunu_session_threads": (c_uint, [c_void_p]),
    "akunu_sequence_new": (c_int32, [c_void_p]),
    "akunu_sequence_free": (None, [c_void_p, c_int32]),
    "akunu_sequence_length": (c_uint32, [c_void_p, c_int32]),
    "akunu_sequence_rewind": (c_int, [c_void_p, c_int32, c_uint32]),
    "akunu_sequence_fork": (c_int32, [c_void_p, c_int32, c_uint32]),
    "akunu_sequence_evict": (c_int, [c_void_p, c_int32, c_uint32, c_int]),
    "akunu_sequence_rewindable": (c_uint32, [c_void_p, c_int32, c_uint32]),
    "akunu_session_decode": (c_int, [c_void_p, POINTER(akunu_batch_token), c_size_t]),
    "akunu_session_logits": (POINTER(c_float), [c_void_p, c_size_t]),
    "akunu_session_prefill": (c_int, [
        c_void_p,
        c_int32,
        POINTER(akunu_ids),
        akunu_cancel_fn,
        c_void_p,
        POINTER(c_size_t),
    ]),
    "akunu_embedding_params_default": (None, [POINTER(akunu_embedding_params), c_size_t]),
    "akunu_model_embedding_width": (c_uint32, [c_void_p, c_int]),
    "akunu_session_number_texts": (None, [c_void_p, c_size_t]),
    "akunu_session_embed": (c_int, [
        c_void_p,
        POINTER(akunu_ids),
        c_size_t,
        POINTER(akunu_embedding_params),
        POINTER(c_float),
    ]),
    "akunu_session_score": (c_int, [
        c_void_p,
        POINTER(akunu_pair),
        c_size_t,
        akunu_cancel_fn,
        c_void_p,
        POINTER(c_float),
    ]),
    "akunu_reasoning_default": (None, [POINTER(akunu_reasoning), c_size_t]),
    "akunu_generation_params_default": (None, [POINTER(akunu_generation_params), c_size_t]),
    "akunu_result_default": (None, [POINTER(akunu_result), c_size_t]),
    "akunu_session_generate": (c_int, [
        c_void_p,
        c_int32,
        POINTER(akunu_ids),
        POINTER(akunu_generation_params),
        POINTER(akunu_result),
    ]),
    "akunu_session_generate_parallel": (c_int, [
        c_void_p,
        POINTER(c_int32),
        c_size_t,
        POINTER(akunu_ids),
        POINTER(akunu_generation_params),
        POINTER(akunu_result),
    ]),
    "akunu_file_open": (c_void_p, [c_char_p]),
    "akunu_file_open_with": (c_void_p, [c_char_p, POINTER(c_char_p)]),
    "akunu_file_free": (None, [c_void_p]),
    "akunu_file_get_info": (c_int, [c_void_p, POINTER(akunu_file_info), c_size_t]),
    "akunu_file_get_tensor": (c_int, [c_void_p, c_size_t, POINTER(akunu_tensor_info), c_size_t]),
    "akunu_file_read_f32": (c_int, [c_void_p, c_size_t, c_uint64, c_uint64, POINTER(c_float)]),
    "akunu_file_sha256_f32": (c_int, [c_void_p, c_size_t, c_void_p]),
    "akunu_path_sha256": (c_int, [c_char_p, akunu_cancel_fn, c_void_p, c_void_p]),
    "akunu_file_get_meta": (c_int, [c_void_p, c_size_t, POINTER(akunu_meta), c_size_t]),
    "akunu_file_get_meta_element": (c_int, [
        c_void_p,
        c_size_t,
        c_uint64,
        POINTER(akunu_meta),
        c_size_t,
    ]),
    "akunu_get_format": (c_int, [c_size_t, POINTER(akunu_format_info), c_size_t]),
    "akunu_get_architecture": (c_int, [c_size_t, POINTER(akunu_architecture_info), c_size_t]),
    "akunu_get_type": (c_int, [c_size_t, POINTER(akunu_type_info), c_size_t]),
    "akunu_get_quantization": (c_int, [c_size_t, POINTER(akunu_quantization_info), c_size_t]),
    "akunu_get_device": (c_int, [c_size_t, POINTER(akunu_device_info), c_size_t]),
    "akunu_cache_state_name": (c_char_p, [c_int]),
    "akunu_cache_open": (c_void_p, [c_char_p]),
    "akunu_cache_free": (None, [c_void_p]),
    "akunu_cache_path": (c_char_p, [c_void_p]),
    "akunu_cache_count": (c_size_t, [c_void_p]),
    "akunu_cache_get_entry": (c_int, [c_void_p, c_size_t, POINTER(akunu_cache_entry), c_size_t]),
    "akunu_cache_remove": (c_int, [c_void_p, c_size_t]),
    "akunu_tier_name": (c_char_p, [c_int]),
    "akunu_packing_name": (c_char_p, [c_int]),
    "akunu_get_load_plan": (c_int, [
        c_char_p,
        POINTER(akunu_load_params),
        POINTER(akunu_session_params),
        POINTER(akunu_load_plan),
        c_size_t,
    ]),
    "akunu_sequence_save": (c_int, [c_void_p, c_int32, c_char_p]),
    "akunu_sequence_load": (c_int, [c_void_p, c_int32, c_char_p]),
    "akunu_prompt_cache_default": (None, [POINTER(akunu_prompt_cache), c_size_t]),
    "akunu_sequence_restore": (c_int, [
        c_void_p,
        c_int32,
        POINTER(akunu_ids),
        POINTER(akunu_prompt_cache),
        POINTER(c_size_t),
    ]),
    "akunu_sequence_keep": (c_int, [c_void_p, c_int32, c_size_t, POINTER(akunu_prompt_cache)]),
    "akunu_convert_params_default": (None, [POINTER(akunu_convert_params), c_size_t]),
    "akunu_convert": (c_int, [c_char_p, c_char_p, POINTER(akunu_convert_params)]),
    "akunu_quantize_params_default": (None, [POINTER(akunu_quantize_params), c_size_t]),
    "akunu_quantize": (c_int, [c_char_p, c_char_p, POINTER(akunu_quantize_params)]),
    "akunu_quantize_type_name": (c_char_p, [c_size_t]),
    "akunu_advisor_params_default": (None, [POINTER(akunu_advisor_params), c_size_t]),
    "akunu_advisor_new": (c_void_p, [c_char_p, POINTER(akunu_advisor_params)]),
    "akunu_advisor_free": (None, [c_void_p]),
    "akunu_advisor_get_advice": (c_int, [c_void_p, c_char_p, POINTER(akunu_advice), c_size_t]),
    "akunu_compress_params_default": (None, [POINTER(akunu_compress_params), c_size_t]),
    "akunu_compress": (c_int, [
        c_char_p,
        c_char_p,
        POINTER(akunu_compress_params),
        POINTER(akunu_compress_result),
        c_size_t,
    ]),
    "akunu_importance_params_default": (None, [POINTER(akunu_importance_params), c_size_t]),
    "akunu_importance_new": (c_void_p, [c_void_p, POINTER(akunu_importance_params)]),
    "akunu_importance_free": (None, [c_void_p]),
    "akunu_importance_read": (c_int, [c_void_p, c_char_p]),
    "akunu_importance_add": (c_int, [
        c_void_p,
        c_void_p,
        POINTER(akunu_ids),
        akunu_cancel_fn,
        c_void_p,
    ]),
    "akunu_importance_get_info": (c_int, [c_void_p, POINTER(akunu_importance_info), c_size_t]),
    "akunu_importance_write": (c_int, [c_void_p, c_char_p, c_bool]),
    "akunu_importance_check_path": (c_int, [c_char_p, c_bool]),
    "akunu_cpu_best": (c_char_p, []),
    "akunu_cpu_name": (c_char_p, [c_size_t]),
    "akunu_cpu_problem": (c_char_p, [c_char_p]),
    "akunu_get_chip": (c_int, [POINTER(akunu_chip), c_size_t]),
    "akunu_roofline_measure": (c_int, [
        c_char_p,
        c_uint,
        c_uint,
        POINTER(akunu_roofline),
        c_size_t,
    ]),
    "akunu_roofline_measure_model": (c_int, [
        c_void_p,
        c_uint,
        c_uint,
        POINTER(akunu_roofline),
        c_size_t,
    ]),
    "akunu_profile_default": (None, [POINTER(akunu_profile), c_size_t]),
    "akunu_tune_params_default": (None, [POINTER(akunu_tune_params), c_size_t]),
    "akunu_profile_tune": (c_int, [POINTER(akunu_tune_params), POINTER(akunu_profile), c_size_t]),
    "akunu_profile_write": (c_int, [POINTER(akunu_profile), c_char_p]),
    "akunu_model_profile": (c_char_p, [c_void_p]),
    "akunu_model_dump": (c_char_p, [c_void_p, c_bool]),
    "akunu_model_get_memory": (c_int, [c_void_p, c_void_p, POINTER(akunu_memory), c_size_t]),
    "akunu_session_get_counters": (c_int, [c_void_p, POINTER(akunu_counters), c_size_t]),
    "akunu_session_set_timing": (c_int, [c_void_p, c_bool]),
    "akunu_session_get_time": (c_int, [c_void_p, c_size_t, POINTER(akunu_time), c_size_t]),
    "akunu_sampling_params_default": (None, [POINTER(akunu_sampling_params), c_size_t]),
    "akunu_sampling_check": (c_int, [POINTER(akunu_sampling_params)]),
    "akunu_sampler_new": (c_void_p, [c_void_p, POINTER(akunu_sampling_params)]),
    "akunu_sampler_free": (None, [c_void_p]),
    "akunu_sampler_clone": (c_void_p, [c_void_p]),
    "akunu_sampler_reset": (c_int, [c_void_p]),
    "akunu_sampler_seed": (c_uint64, [c_void_p]),
    "akunu_sampler_accept": (None, [c_void_p, c_int32]),
    "akunu_sampler_sample": (c_int32, [c_void_p, POINTER(c_float)]),
    "akunu_logprobs_compute": (c_int, [
        POINTER(c_float),
        c_size_t,
        c_int32,
        POINTER(c_float),
        POINTER(akunu_logprob),
        c_size_t,
    ]),
    "akunu_request_default": (None, [POINTER(akunu_request), c_size_t]),
    "akunu_scheduler_params_default": (None, [POINTER(akunu_scheduler_params), c_size_t]),
    "akunu_scheduler_new": (c_void_p, [
        c_void_p,
        POINTER(akunu_session_params),
        POINTER(akunu_scheduler_params),
    ]),
    "akunu_scheduler_free": (None, [c_void_p]),
    "akunu_scheduler_submit": (c_int, [c_void_p, POINTER(akunu_request), POINTER(c_uint64)]),
    "akunu_scheduler_cancel": (None, [c_void_p, c_uint64]),
    "akunu_scheduler_pause": (None, [c_void_p, c_uint64, c_bool]),
    "akunu_scheduler_context": (c_uint32, [c_void_p]),
    "akunu_scheduler_get_stats": (c_int, [c_void_p, POINTER(akunu_scheduler_stats), c_size_t]),
    "akunu_scheduler_get_slot": (c_int, [
        c_void_p,
        c_size_t,
        POINTER(akunu_scheduler_slot),
        c_size_t,
    ]),
    "akunu_audio_open": (c_void_p, [c_char_p]),
    "akunu_audio_open_fd": (c_void_p, [c_int, c_char_p]),
    "akunu_audio_open_bytes": (c_void_p, [c_void_p, c_size_t, c_char_p]),
    "akunu_audio_from_samples": (c_void_p, [POINTER(c_float), c_size_t, c_uint]),
    "akunu_audio_free": (None, [c_void_p]),
    "akunu_audio_seconds": (c_double, [c_void_p]),
    "akunu_audio_warning": (c_char_p, [c_void_p]),
    "akunu_vad_load": (c_void_p, [c_char_p]),
    "akunu_vad_free": (None, [c_void_p]),
    "akunu_vad_params_default": (None, [POINTER(akunu_vad_params), c_size_t]),
    "akunu_vad_detect": (c_int, [
        c_void_p,
        c_void_p,
        POINTER(akunu_vad_params),
        akunu_vad_probability_fn,
        akunu_vad_range_fn,
        c_void_p,
    ]),
    "akunu_transcription_params_default": (None, [POINTER(akunu_transcription_params), c_size_t]),
    "akunu_clip_default": (None, [POINTER(akunu_clip), c_size_t]),
    "akunu_session_transcribe": (c_int, [c_void_p, POINTER(akunu_clip), POINTER(c_char_p)]),
    "akunu_session_transcribe_clips": (c_int, [c_void_p, akunu_next_clip_fn, c_void_p]),
    "akunu_speech_stream_new": (c_void_p, [
        c_void_p,
        c_uint,
        POINTER(akunu_transcription_params),
        akunu_words_fn,
        c_void_p,
    ]),
    "akunu_speech_stream_push": (c_int, [c_void_p, POINTER(c_float), c_size_t]),
    "akunu_speech_stream_end": (c_int, [c_void_p]),
    "akunu_speech_stream_free": (None, [c_void_p]),
    "akunu_session_languages": (c_int, [
        c_void_p,
        c_void_p,
        POINTER(akunu_transcription_params),
        POINTER(c_float),
        c_size_t,
    ]),
    "akunu_language_code": (c_char_p, [c_size_t]),
    "akunu_language_name": (c_char_p, [c_size_t]),
    "akunu_language_find": (c_char_p, [c_char_p]),
    "akunu_audio_mel": (c_int, [c_void_p, c_void_p, c_uint64, c_size_t, POINTER(c_float)]),
    "akunu_session_encode": (c_int, [
        c_void_p,
        c_int32,
        POINTER(c_float),
        c_uint32,
        POINTER(c_float),
    ]),
    "akunu_sequence_attend": (c_int, [c_void_p, c_int32, c_int32]),
    "akunu_tokenizer_load": (c_void_p, [c_char_p]),
    "akunu_tokenizer_load_with": (c_void_p, [c_char_p, POINTER(c_char_p)]),
    "akunu_tokenizer_free": (None, [c_void_p]),
    "akunu_tokenizer_encode": (c_int64, [
        c_void_p,
        c_char_p,
        c_size_t,
        c_uint,
        POINTER(c_int32),
        c_size_t,
    ]),
    "akunu_tokenizer_decode": (c_int64, [
        c_void_p,
        POINTER(c_int32),
        c_size_t,
        c_uint,
        c_void_p,
        c_size_t,
    ]),
    "akunu_tokenizer_vocab_size": (c_size_t, [c_void_p]),
    "akunu_tokenizer_is_end": (c_bool, [c_void_p, c_int32]),
    "akunu_tokenizer_is_control": (c_bool, [c_void_p, c_int32]),
    "akunu_tokenizer_bos": (c_int32, [c_void_p]),
    "akunu_tokenizer_special": (c_int32, [c_void_p, c_int]),
    "akunu_stream_new": (c_void_p, [c_void_p, c_uint]),
    "akunu_stream_free": (None, [c_void_p]),
    "akunu_stream_push": (c_int, [c_void_p, c_int32, POINTER(c_char_p), POINTER(c_size_t)]),
    "akunu_stream_end": (c_int, [c_void_p, POINTER(c_char_p), POINTER(c_size_t)]),
    "akunu_infill_default": (None, [POINTER(akunu_infill), c_size_t]),
    "akunu_tokenizer_encode_infill": (c_int64, [
        c_void_p,
        POINTER(akunu_infill),
        POINTER(c_int32),
        c_size_t,
    ]),
    "akunu_embedding_text_default": (None, [POINTER(akunu_embedding_text), c_size_t]),
    "akunu_model_encode_embedding": (c_int64, [
        c_void_p,
        c_char_p,
        c_size_t,
        POINTER(akunu_embedding_text),
        POINTER(c_int32),
        c_size_t,
    ]),
    "akunu_pair_text_default": (None, [POINTER(akunu_pair_text), c_size_t]),
    "akunu_model_encode_pair": (c_int64, [
        c_void_p,
        POINTER(akunu_pair_text),
        POINTER(c_int32),
        c_size_t,
    ]),
    "akunu_grammar_parse": (c_void_p, [c_char_p, c_size_t]),
    "akunu_grammar_parse_rule": (c_void_p, [c_char_p, c_size_t, c_char_p]),
    "akunu_schema_params_default": (None, [POINTER(akunu_schema_params), c_size_t]),
    "akunu_grammar_from_schema": (c_void_p, [c_char_p, c_size_t, POINTER(akunu_schema_params)]),
    "akunu_grammar_make_lazy": (c_void_p, [c_void_p, POINTER(c_char_p), c_bool]),
    "akunu_grammar_free": (None, [c_void_p]),
    "akunu_grammar_check": (c_int, [
        c_void_p,
        c_void_p,
        c_char_p,
        c_size_t,
        POINTER(c_bool),
        POINTER(c_size_t),
    ]),
    "akunu_template_load": (c_void_p, [c_char_p, POINTER(c_char_p)]),
    "akunu_model_template": (c_void_p, [c_void_p]),
    "akunu_template_parse": (c_void_p, [c_char_p, c_size_t, c_void_p]),
    "akunu_template_free": (None, [c_void_p]),
    "akunu_template_is_fallback": (c_bool, [c_void_p]),
    "akunu_template_name": (c_char_p, [c_void_p, c_size_t]),
    "akunu_template_text": (c_char_p, [c_void_p, c_char_p, c_bool, POINTER(c_size_t)]),
    "akunu_chat_default": (None, [POINTER(akunu_chat), c_size_t]),
    "akunu_template_render": (c_void_p, [c_void_p, POINTER(akunu_chat), POINTER(c_size_t)]),
    "akunu_text_free": (None, [c_void_p]),
    "akunu_completion_params_default": (None, [POINTER(akunu_completion_params), c_size_t]),
    "akunu_session_complete": (c_int, [
        c_void_p,
        c_int32,
        c_char_p,
        c_size_t,
        POINTER(akunu_completion_params),
        POINTER(akunu_result),
    ]),
    "akunu_reply_params_default": (None, [POINTER(akunu_reply_params), c_size_t]),
    "akunu_reply_new": (c_void_p, [POINTER(akunu_reply_params), akunu_reply_fn, c_void_p]),
    "akunu_reply_free": (None, [c_void_p]),
    "akunu_reply_push": (c_int, [c_void_p, c_char_p, c_size_t]),
    "akunu_reply_end": (c_int, [c_void_p]),
    "akunu_reply_message": (c_char_p, [c_void_p]),
    "akunu_reply_notes": (c_char_p, [c_void_p]),
    "akunu_reply_format": (c_char_p, [c_void_p]),
    "akunu_reply_format_name": (c_char_p, [c_size_t]),
    "akunu_get_reasoning": (c_int, [
        POINTER(akunu_reply_params),
        POINTER(akunu_reasoning),
        c_size_t,
    ]),
    "akunu_tool_grammar_params_default": (None, [POINTER(akunu_tool_grammar_params), c_size_t]),
    "akunu_grammar_from_tools": (c_int, [
        POINTER(akunu_reply_params),
        POINTER(akunu_tool_grammar_params),
        POINTER(c_void_p),
    ]),
}


class SamplingNumbers(TypedDict, total=False):
    temperature: float
    dynatemp_range: float
    dynatemp_exponent: float
    top_k: int
    top_p: float
    min_p: float
    typical_p: float
    top_n_sigma: float
    xtc_probability: float
    xtc_threshold: float
    repeat_penalty: float
    repeat_last_n: int
    presence_penalty: float
    frequency_penalty: float
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_penalty_last_n: int
    mirostat: int
    mirostat_eta: float
    mirostat_tau: float
    adaptive_target: float
    adaptive_decay: float
