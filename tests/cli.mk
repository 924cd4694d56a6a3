ak_shell_tests += tests/test_cli.sh tests/models.sh tests/test_config.sh tests/completion.sh tests/man.sh tests/chat.sh
