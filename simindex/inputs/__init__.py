"""Readers: files and streams in, documents or fingerprints out.

    source            format    documents                                  fingerprints
    *.jsonl *.ndjson  jsonl     one per line, an object with a text field  or with a field of digits
    *.json            json      one per object of an array; or as jsonl
    *.csv *.tsv       csv       one per row, a column of text              or a column of digits
    *.html *.htm      html      one, the main text of the page
    *.warc *.wet      warc      one per page of the archive
    *.arc             arc       one per page of the archive
    *.parquet         parquet   one per row, a column of text
    *.arrow *.feather arrow     one per row, a column of text
    *.npy             npy                                                  one per row of the array
    *.hex             hex                                                  one per line
    other files       text      one
    folder                      those of the files below it, at any depth
    -                 jsonl     standard input, unless its first bytes say otherwise

    paths.py             paths, patterns and lists of paths
    remote_files.py      files of other systems, by their addresses
    files.py             which files there are, and their names
    foreign_formats.py   formats that are known and cannot be read
    formats.py           formats that can, one row each
    document.py          what a reader takes and gives
    document_columns.py  some documents of a file as columns
    line_columns.py      JSON lines of a file as such columns, by a kernel
    extraction.py        texts of HTML pages, taken by several processes
    fingerprints.py      what readers of fingerprints give and check
    read_options.py      how inputs are read
    reading.py           all of it together

Every reader is a generator that holds one record or one column at a time, whatever the size of its
file; compressed files are decompressed as they are read. What cannot be read becomes a bad record:
counted, reported with its file and line, and skipped up to a limit (`Intake`). In a folder, files
of other formats are counted and passed over.
"""
