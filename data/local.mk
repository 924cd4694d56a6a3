# Examples, to be copied: a file that is found must be meant.
exampledir = $(docdir)/examples
dist_example_DATA = data/config.yaml data/profile.yaml
