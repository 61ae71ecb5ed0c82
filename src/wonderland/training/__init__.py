"""The one training loop: compiled epochs, schedules, stopping, snapshots, many fits at once."""
