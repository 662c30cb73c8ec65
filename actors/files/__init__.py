"""From an uploaded file to the text that is retained: where it lies, how it is converted, in a process of its own."""
