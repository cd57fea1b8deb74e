"""Changes of a plan, each filled, estimated and held against limits as planning it would."""
