"""The contract between SDK, operator and broker: only generated code below, nothing by hand."""
