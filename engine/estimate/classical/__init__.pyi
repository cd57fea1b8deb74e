from .work import reasonable_rows as reasonable_rows
