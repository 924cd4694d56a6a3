# One line a topic: tests/<topic>.mk registers test_<topic>.
include tests/amx.mk
include tests/base.mk
include tests/cache.mk
include tests/gguf.mk
include tests/kernels.mk
include tests/kernels_hash.mk
include tests/kv.mk
include tests/load.mk
include tests/model.mk
include tests/profile.mk
include tests/quant.mk
include tests/role.mk
include tests/sampler.mk
include tests/session.mk
include tests/steady.mk
include tests/tokenizer.mk
include tests/utf8.mk
