"""The job and all that moves it: pure core, storage, services and their HTTP and task edges."""
