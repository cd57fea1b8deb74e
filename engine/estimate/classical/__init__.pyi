from .reasonable import reasonable_rows as reasonable_rows
