message("summary")
