"""The loop: it drives runs, asks models, calls tools."""
