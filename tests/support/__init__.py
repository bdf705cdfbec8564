"""What tests share: clocks, signals, bundles, checkers."""
