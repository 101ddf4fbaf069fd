"""PyTorch at the door. The only folder that imports torch; each module is named by its user.

`fx_record.py`: an ExportedProgram as a record of its graph.
`compile_backend.py`: the backend "tensorwright" of torch.compile.
"""
