"""The broker: gateway, engine and stores."""
