"""What a start from a plain checkout needs before anything is installed: standard library only, here and below."""
