"""The operators of rewriting, as data: parameters, shape rule, and meaning through `ops`.

    matmul(a, b)                          (..., m, k) (..., k, n), the leading dimensions equal
    ewadd ewmul ewsub ewdiv ewmax ewmin ewpow (a, b)
                                          equal shapes; broadcasting is `broadcast`, explicitly
    less less_or_equal equal (a, b)       1 where it is so, else 0
    select(c, a, b)                       a where c is not 0, else b
    scalar_mul(x, s)                      s has rank 0
    relu exp sigmoid tanh neg abs sign floor ceil sqrt rsqrt log erf sin cos softplus hard_swish (x)
    gelu[approximate] leaky_relu[alpha] elu[alpha] swish[alpha] hard_sigmoid[alpha, beta]
    clip[min, max] (x)                    none | tanh; numbers are words: f0p5 is 0.5, fm1p0 is -1
    transpose[perm...](x)                 dimension i of the result is dimension perm[i] of x
    concat[axis](a, b)
    split0[axis, at](x) split1[axis, at](x)     before `at`, from `at` on
    conv2d[stride_h, stride_w, padding, activation](x, w)
                                          x (n, c, h, w), w (oc, c/groups, kh, kw); groups follow
                                          from the shapes; padding same | valid | p1_1_1_1 (rows
                                          above, columns left, rows below, columns right), maybe
                                          with _d2_2 (steps between taps); activation none | relu;
                                          `same` gives ceil(h / stride) rows, the odd element of the
                                          padding last
    conv3d[stride_d, stride_h, stride_w, padding, activation](x, w)
                                          the same of x (n, c, d, h, w), w (oc, c/groups, kd, kh,
                                          kw); padding maybe p1_1_1_1_1_1, all that is before, then
                                          all that is after, with _d2_2_2
    max_pool avg_pool [kernel_h, kernel_w, stride_h, stride_w, padding](x)
                                          avg_pool divides by kernel_h*kernel_w: padding counts
    max_pool3d avg_pool3d [kernel_d, kernel_h, kernel_w, stride_d, stride_h, stride_w, padding](x)
    enlarge[kernel_h, kernel_w](w)        zeros around a kernel, its centre stays the centre
    ones[size...]() eye[n]()              all 1, the identity matrix
    identity_kernel[c, kh, kw]()          (c, c, kh, kw): convolution with it changes nothing
    pool_kernel[c, kh, kw]()              (c, 1, kh, kw) of 1/(kh*kw): depthwise, average pooling
    reduce_sum reduce_mean reduce_max reduce_min [axis](x)
                                          the dimension stays, with extent 1
    reshape[size...](x) broadcast[size...](x)   broadcast stretches dimensions of extent 1
    slice[axis, start, stop](x) pad[axis, before, after](x)     pad with zeros
    reverse[axis](x) strided[axis, step](x)     every step-th element from the first on
    batch_norm(x, scale, bias, mean, var) at inference, epsilon 1e-5; the last four (c)
    layer_norm[axis, epsilon](x, scale, bias)   of the dimensions from `axis` on, which the last
                                          two have
    softmax[axis](x)

What an operator means is a chain of applications of `ops` operators: the first gets the
arguments, each later one the result before it.  A family of operators is one file of this folder;
`operator.py` has what they share.
"""

from __future__ import annotations

from tensorwright.base import unknown_name
from tensorwright.rewriting.operators import elementwise, movement, windows
from tensorwright.rewriting.operators.elementwise import PAIRS, REDUCTIONS
from tensorwright.rewriting.operators.movement import PARTS
from tensorwright.rewriting.operators.operator import (
    ArgumentRole, IntShape, RewriteOperator, Step, follow,
)
from tensorwright.rewriting.operators.parameters import (
    AXIS, Boundaries, Parameter, is_open_word, merged_axis, merged_runs, number_of_word,
    number_word, size,
)
from tensorwright.rewriting.operators.windows import holds_elements, padding_word
from tensorwright.rewriting.terms import Term, applications

OPERATORS: tuple[RewriteOperator, ...] = (
    *elementwise.PRODUCTS,
    *elementwise.ELEMENTWISE,
    *elementwise.FUNCTIONS,
    *movement.MOVEMENTS,
    *movement.JOINS,
    *windows.CONVOLUTIONS,
    *windows.POOLS,
    *movement.CONSTANTS,
    *elementwise.FOLDS,
    *elementwise.NORMALIZATIONS,
)
MOVING = frozenset(
    {"reshape", "broadcast", "transpose", "pad", "slice", "split0", "split1", "concat"}
)
"""The operators that compute nothing: they only move elements."""
FUNCTIONS: tuple[RewriteOperator, ...] = elementwise.FUNCTIONS
"""The operators of single elements."""
_BY_NAME = {each.name: each for each in OPERATORS}


def operator_named(name: str) -> RewriteOperator:
    """The operator of this name.

    Raises:  UsageError, with the nearest names, if there is none.
    """
    match = _BY_NAME.get(name)
    if match is None:
        reason = "rewriting knows no such operator"
        raise unknown_name("rules", f"operator {name}", reason, name, _BY_NAME)
    return match


def arguments_of(role: ArgumentRole, *roots: Term) -> tuple[Term, ...]:
    """The arguments of a role below some roots, in order; some maybe twice."""
    return tuple(
        arg
        for each in applications(*roots)
        for arg, own in zip(each.args, operator_named(each.operator).arguments, strict=True)
        if own is role
    )


def operator_count(*roots: Term) -> int:
    """How many operators a graph has: shared terms once, the outputs of one operator once."""
    return len(
        {
            (operator_named(each.operator).output_of or each.operator, each.params, each.args)
            for each in applications(*roots)
        }
    )
