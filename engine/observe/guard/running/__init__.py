"""The processes of a guarded run: started, followed, halted, ended, and taken up by another guard."""
