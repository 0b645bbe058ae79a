"""What `vs_trl.py` measures, part by part, and the process of each side."""
