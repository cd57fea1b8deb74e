"""The screens, a folder each: the plan, this machine, and the dialogs that lie over them."""
