/* Keys of configurations that change no result, and keys of which only the value that changes
 * nothing is supported, for all architectures. Published files are full of them: what concerns
 * training, generation, other parts of a model, the class that saved it, and the tools that made
 * it. */
#include "engine/spec/known_keys.h"

const char ak_unused_keys[] =
    /* the file and its class */
    "model_type architectures is_llama_config auto_map.* custom_pipelines.* transformers_version "
    "transformers.js_config.* torch_dtype dtype _name_or_path name_or_path _commit_hash "
    "_attn_implementation _attn_implementation_autoset _attn_implementation_internal "
    "attn_implementation _experts_implementation _experts_implementation_internal "
    "experts_implementation use_flash_attn use_flash_attention use_flash_attention_2 "
    "_flash_attn_2_enabled "
    "use_sdpa memory_efficient_attention use_memory_efficient_attention unpad_inputs torchscript "
    "use_bfloat16 return_dict use_return_dict output_attentions output_hidden_states use_cache "
    "cache_implementation cache_config.* _load_in_8bit _load_in_4bit tf_legacy_loss "
    "gradient_checkpointing tp_plan* base_model_tp_plan* base_model_pp_plan* pretraining_tp "
    "model_name model_id original_model base_model parent_model_name _from_model_config "
    "_auto_class library_name "
    "rope_scaling.finetuned description author license tags date version comment comments name "
    "title "
    /* vocabulary and its files */
    "*_token_id *_token_ids *_token_index *_token_indices tokenizer_class tokenizer_name "
    "processor_class vocab_type model_max_length pad_vocab_size_multiple pad_to_multiple_of "
    "original_vocab_size prefix chat_template "
    /* classes of texts */
    "id2label.* label2id.* num_labels problem_type finetuning_task task_specific_params.* "
    "sentence_transformers.* sbert_ce_default_activation_function matryoshka_dimensions emb_pooler "
    /* training */
    "initializer_range initializer_factor initializer_cutoff_factor init_std init_method* "
    "_init_weights *dropout *dropout_prob *pdrop *dropout_p *layerdrop drop_path_rate "
    "*_dropout_rate "
    "output_router_logits router_aux_loss_coef aux_loss_coef router_z_loss_coef "
    "router_jitter_noise router_bias_update_speed seq_aux z_loss* *_loss_weight "
    "loss_type label_smoothing* mask_time_* mask_feature_* use_cut_cross_entropy use_xentropy "
    "fused_bias_fc fused_dropout_add_ln fused_mlp fuse_norm fuse_cross_entropy fuse_swiglu "
    "last_layer_subset num_lookahead_tokens mlp_checkpoint_lvl unsloth_* _unsloth_* is_unsloth* "
    "max_train_seq_len training_* train_* lora_* peft_* "
    "learning_rate weight_decay neftune_noise_alpha "
    /* generation, as transformers 4 stored it */
    "max_length min_length max_new_tokens min_new_tokens do_sample early_stopping num_beams "
    "num_beam_groups diversity_penalty temperature top_k top_p min_p typical_p "
    "repetition_penalty length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size "
    "bad_words_ids num_return_sequences output_scores output_logits return_dict_in_generate "
    "remove_invalid_values exponential_decay_length_penalty suppress_tokens "
    "begin_suppress_tokens forced_decoder_ids renormalize_logits constraints penalty_alpha "
    "use_mtp is_assistant num_assistant_tokens* assistant_* "
    /* stored weights, which the formats read themselves */
    "quantization_config.* quantization.* compression_config.* quantization_config quantization "
    "quant_method* weight_block_size "
    /* the other parts of models for pictures and sound */
    "vision_config.* audio_config.* speech_config.* vision_* image_* video_* audio_* mm_* boi_* "
    "eoi_* "
    "boa_* eoa_* projector_* vision_feature_* spatial_merge_size "
    "text_config "
    /* transformers 4's settings of parts that decoders do not have */
    "is_composition tie_encoder_decoder cross_attention_hidden_size chunk_size_feed_forward "
    "sep_* summary_* ";

const char ak_fixed_keys[] =
    "is_encoder_decoder=false is_decoder=false add_cross_attention=false pruned_heads.*=none "
    "pruned_heads=[] use_mrope=false attention_sink_size=0 use_moe=false rope_interleaved=false "
    "per_layer_config=[] "
    "use_bidirectional_attention=false is_causal=true causal=true ";

const char ak_unused_gguf_keys[] =
    "rope.scaling.finetuned rope.dimension_sections tensor_data_layout name vocab_type "
    "decoder_start_token_id classifier.output_labels attention.layer_norm_epsilon "
    "attention.layer_norm_rms_epsilon embedding_length_out features_length ";

const char ak_fixed_gguf_keys[] =
    "attention.causal=true expert_count=0 expert_used_count=0 expert_shared_count=0 "
    "expert_group_count=1 expert_group_used_count=1 expert_weights_scale=1 expert_gating_func=1 "
    "use_parallel_residual=false attention.sliding_window=0 rope.scaling.yarn_log_multiplier=0 "
    "leading_dense_block_count=0 nextn_predict_layers=0 interleave_moe_layer_step=1 "
    "attention.clamp_kqv=0 attention.max_alibi_bias=0 attn_logit_softcapping=0 "
    "final_logit_softcapping=0 embedding_scale=1 residual_scale=1 logit_scale=1 ";

const char ak_general_keys[] =
    "general.* tokenizer.chat_template* tokenizer.ggml.model tokenizer.ggml.pre "
    "tokenizer.ggml.*_token_id tokenizer.ggml.add_bos_token tokenizer.ggml.add_eos_token "
    "tokenizer.ggml.add_sep_token tokenizer.ggml.add_space_prefix "
    "tokenizer.ggml.remove_extra_whitespaces tokenizer.ggml.normalizer.lowercase "
    "tokenizer.ggml.normalizer.strip_accents tokenizer.ggml.token_type_count "
    "tokenizer.ggml.precompiled_charsmap ";
