"""What a run says while it works: listened to, and kept."""
