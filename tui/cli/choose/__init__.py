"""Commands that choose: search, one field, sensitivity, configurations, and fleets of instances."""
