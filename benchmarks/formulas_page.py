def write_page(rows, measured):
    pass
