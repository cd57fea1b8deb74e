"""The screens: plan, dialogs, pickers, help."""
