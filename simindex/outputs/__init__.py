"""Writers: columns of results in, files and streams out.

    json_lines.py    jsonl      one object a line
    csv_table.py     csv        a table with a header row
    parquet.py       parquet    row groups of bounded size

    formats.py       formats of results, one row each
    columns.py       the columns that writers take
    whole_file.py    a file that gets its name once it is complete

A writer holds some rows at a time, however many there are. What ends early, by an error or an
interrupt, does not look complete.
"""
