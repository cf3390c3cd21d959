"""Messages of the contract as rows of a spreadsheet: one text for commands and for downloads."""
