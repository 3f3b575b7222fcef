"""What Matplotlib plots share: one style, colour-blind-safe and legible at half size; bars, labels, legends."""
