"""Commands about data: the catalogues, storage, and the tools of coding assistants."""
