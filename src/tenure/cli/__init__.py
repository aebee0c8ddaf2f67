"""The command line. Commands translate and print; they decide nothing. Imports are late, so that help is quick."""
