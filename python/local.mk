# The Python package. Nothing installs it: pip install ./python. tests/test_python.sh tests it.
EXTRA_DIST += python/LICENSE python/README.md python/declare.py python/pyproject.toml python/setup.py \
	python/akunu/__init__.py python/akunu/_abi.py python/akunu/_call.py python/akunu/_errors.py \
	python/akunu/_handle.py python/akunu/_library.py python/akunu/_model.py python/akunu/_reply.py \
	python/akunu/_sampling.py python/akunu/_session.py python/akunu/_tools.py python/akunu/py.typed \
	python/tests/spawned.py python/tests/support.py python/tests/test_layout.py \
	python/tests/test_model.py python/tests/test_process.py python/tests/test_session.py
