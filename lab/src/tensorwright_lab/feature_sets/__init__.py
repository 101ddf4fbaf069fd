"""Feature sets besides the features of statements: one module each, the formula in its docstring.

Those over loops are native code (`loop_kernel.py`); `named.py` has all:

    knob          the raw configuration, which needs no loops (`named.py`)
    itervar       the loops one after the other (`loop_features.py`)
    curve         relations of quantities of the loops, as published in code
    curve-fix     the same with all samples
    curve-paired  the same with points kept whole, and bottomup (`relation_curves.py`)
    context       the loops in a length that does not depend on the operator (`loop_features.py`)
    loop-tree     the loops for a model that reads trees (`loop_features.py`)

Curves may be followed by the number of samples and by relations: "curve-paired@20",
"curve-fix:count/reuse,count>topdown".
"""

from tensorwright_lab.feature_sets.loop_features import LEAF_FIELDS, TREE_FIELDS
from tensorwright_lab.feature_sets.loop_kernel import LOOPS
from tensorwright_lab.feature_sets.named import LOOP_TREE, feature_set
