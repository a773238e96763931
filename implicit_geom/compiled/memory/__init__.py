"""The arrays and tables of addresses that compiled code reads and writes."""
