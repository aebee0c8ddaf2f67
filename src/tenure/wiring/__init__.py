"""Where everything is put together: settings are read once, drivers are picked, processes are started and stopped."""
