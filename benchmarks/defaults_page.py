def write_page(*_): pass
