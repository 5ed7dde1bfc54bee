"""What is measured on a GPU: raw readings, made into samples that health can be judged by."""
