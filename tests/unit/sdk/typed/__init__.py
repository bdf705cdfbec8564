"""The public types, checked by mypy: right calls pass, wrong ones are found."""
