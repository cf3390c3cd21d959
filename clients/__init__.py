"""`make clients`: the example clients of each language are built, and run against the real programs.

The examples are in folders of their own, each as one would hand it to a colleague who writes that language; nothing in
them knows this package. What they are told stands in `stage.py`, how they are built and run in `languages.py`.
"""
