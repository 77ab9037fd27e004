"""The pipeline of every fit: inputs -> problem -> chains -> posterior.

`inputs` reads what the user passes, `problem` builds what the chains work on, `runner` runs the
chains and wraps their results, `checkpoint` keeps a run in a folder. `settings` and `presets` say
what can be chosen and what the defaults are.
"""
