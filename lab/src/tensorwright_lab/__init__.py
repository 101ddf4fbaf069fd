"""The laboratory of tensorwright: what compares, draws, pretrains, judges and reproduces papers.

    zoo               networks of papers, of the onnx package, of PyTorch; random plausible ones
    competitors       runtimes at their best, one module each
    comparison        competitors side by side, their rows and tables
    judging           chosen schedules against random ones
    feature_sets      other ways to describe programs to a cost model
    cost_models       other models and losses, and how good a model is
    strategies        searches that are compared with the usual one
    proposing         a model that proposes schedules before anything was measured
    pretraining       the models that the compiler ships, trained
    graph_text        a graph from its text
    loop_interpreter  runs loop nests as the IR means them, to judge passes and code
    axiom_checks      whether the axioms of rules are true, needed and enough
    exact_extraction  the cheapest term of an e-graph, proved
    bench, pretrain, demo, suites   what it adds to the command line

It imports the compiler; nothing of the compiler imports it. Its commands are those of the program
`tensorwright` as soon as it is installed.
"""

__all__: list[str] = []
