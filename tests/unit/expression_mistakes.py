"""Mistakes that everybody makes first, as texts: bodies of a compute, and whole statements."""

from __future__ import annotations


def _listed(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.replace("\n", ";;").split(";;") if each.strip())


# {v} a value, {x} an element of the tensor {t} at all axes, {o} one of another type, {i} the first
# axis, {n} its extent, {rest} the other axes, {T} the type of {v}; p and q are axes to fold
BODIES = _listed("""
max({x}, {v}) ;; min(0, {x}) ;; max([{x}, {v}]) ;; sorted([{x}, {v}])[0] ;;
{x} if {x} > 0 else {v} ;; {x} if {x} else {v} ;; {x} and {v} ;; {x} or {v} ;; not {x} ;;
{v} if 0 < {x} < 2 else {x} ;; (0 < {x} < 2) ;; any([{x} > 0]) ;; {x} in ({v}, 0) ;;
{x} if {i} < 1 else {v} ;; {x} if {i} == 1 else {v} ;; {x} if {i} != 1 else {v} ;;
{x} if {i} else {v} ;; {x} if p < 1 else {v} ;; [{x}, {v}][{i}] ;; [{x}, {v}][{i} < 1] ;;
select({i} > 0 and {i} < 2, {x}, {v}) ;; select({i} < 1 or {i} > 2, {x}, {v}) ;;
select(not {i} < 1, {x}, {v}) ;; select(0 < {i} < 2, {x}, {v}) ;;
select({i} in (0, 1), {x}, {v}) ;; select(({i} > 0) & ({i} < 2), {x}, {v}) ;;
select(~({i} > 0), {x}, {v}) ;; select({i}, {x}, {v}) ;;
select(all_of({i} > 0, {x} > 0), {x}, {v}) ;; select(1, {x}, {v}) ;; select({t}, {x}, {v}) ;;
select({x} == 0 and {i} == 0, {x}, {v}) ;; select({x} + 0, {x}, {v}) ;; select({i} > 0, 1, 2) ;;
select(None, {x}, {v}) ;; select({x} > 0, {x}, None) ;; select({x} > 0, {x}, {t}) ;;
np.maximum({x}, {v}) ;; np.minimum({x}, 0) ;; np.exp({x}) ;; np.where({x} > 0, {x}, {v}) ;;
np.sum({x}) ;; np.add({x}, {v}) ;; np.clip({x}, 0, 1) ;; np.max([{x}, {v}]) ;; np.abs({x}) ;;
np.array([{x}]) ;; np.asarray({x}) ;; np.ones({n}) * {x} ;; np.add.reduce([{x}, {v}]) ;;
np.sqrt({i}) ;; np.minimum({i}, 1) ;; np.dot({t}, {t}) ;; np.sum({t}) ;; np.ones({n})[{i}] ;;
math.exp({x}) ;; math.sqrt({i}) ;; math.floor({i}) ;; float({x}) ;; int({x}) ;; complex({x}) ;;
bool({x}) ;; float({i}) ;; range({i}) ;; sum({t}) ;; list({t})[0] ;; {x} in {t} ;; len({t}) ;;
{t}[{i} + 1000{rest}] ;; {t}[{i} + {n}{rest}] ;; {t}[{i} + 1{rest}] ;; {t}[{i} - 1{rest}] ;;
{t}[-1{rest}] ;; {t}[{n}{rest}] ;; {t}[-{i}{rest}] ;; {t}[2 * {i} + 1{rest}] ;;
select({i} > 0, {t}[{i} + 1{rest}], {v}) ;; select({x} > 0, {t}[{i} - 1{rest}], {v}) ;;
select({i} < {n}, {v}, {t}[{i} + 1{rest}]) ;; {t}[{i} * {i} * {i} + 1{rest}] ;;
select({i} != 0, {t}[{i} - 2{rest}], {v}) ;; {t}[{i} // ({i} + 0){rest}] ;; {t}[{n} % {i}{rest}] ;;
{t}[{i} // 0{rest}] ;; {t}[{i} % -2{rest}] ;; {t}[{i} / 2{rest}] ;; {t}[{i} * 0.5{rest}] ;;
{t}[0.5{rest}] ;; {t}[{x}{rest}] ;; {t}[{x} + 1{rest}] ;; {t}[{i} < 1{rest}] ;;
{t}[max({i}, 1){rest}] ;; {t}[True{rest}] ;; {t}[None{rest}] ;; {t}['i'{rest}] ;;
{t}[{i}:{rest}] ;; {t}[...] ;; {t}[{t}{rest}] ;; {t}[{i}{rest}, 0] ;; {t}[()] ;;
{t}[min({i}, 0){rest}] ;; {t}[{i} ** 0.5{rest}] ;; {t}[{i} ** -1{rest}] ;;
{t}[Element({t}, ({i}{rest},)){rest}] ;; {t}[round({i}){rest}] ;; {t}[~{i}{rest}] ;;
{t}[{i} & 1{rest}] ;; {t} * 2 ;; 2 + {t} ;; -{t} ;; {x} + {t} ;; exp({t}) ;; {t} ;; {t} == 0 ;;
{x} == {t} ;; max_of({t}, 0) ;; {x} + {i} ;; {x} * ({i} < 2) ;; {i} ;; {i} < 1 ;; {i} + 1 ;; p ;;
{i} == 0 ;; exp({i}) ;; ({i} < 1) + 1 ;; None ;; 0.0 ;; 1 ;; 'text' ;; ({x}, {v}) ;; [{x}] ;;
{{}} ;; lambda: {x} ;; compute ;; sum_over({x}) ;; sum_over({x}, p) ;; sum_over({x}, p, p) ;;
sum_over({t}, p) ;; sum_over({x}, {i}) ;; sum_over({x}, 3) ;; sum_over(1.0, p) ;; sum_over(p, p) ;;
sum_over({i} < p, p) ;; sum_over(cast(p, {T}), p, q) ;; sum_over(cast(p * q, {T}), p) ;;
cast(p, {T}) ;; sum_over(cast(p, {T}), p) + 1 ;; -sum_over(cast(p, {T}), p) ;;
exp(sum_over(cast(p, {T}), p)) ;; sum_over(sum_over(cast(p + q, {T}), p), q) ;;
max(sum_over(cast(p, {T}), p), 0) ;; sum_over({t}[{i} + p{rest}], p) ;;
max_over({t}[p{rest}], q) ;; any_over({x} + 0, p) ;; argmax_over({x}, p, q) ;;
sum_over({x}, axis=0) ;; compute('z', (2,), lambda a: {t}[a + {n}{rest}]) ;;
compute('z', (3,), lambda a: {x})[0] ;; compute('z', (3,), lambda a: {t}[a{rest}]) ;; {x} + {o} ;;
max_of({x}, {o}) ;; select({o} > 0, {x}, {o}) ;; {x} == {o} ;; exp(cast({x}, DType.I32)) ;;
cast({x}, DType.I32) + 0.5 ;; cast({x}, DType.I32) * 2.0 ;; cast({x}, DType.U8) + 1000 ;;
cast({x}, DType.U8) - (-1) ;; cast({x}, DType.I32) / 2 ;; cast({x}, DType.I32) ** -1 ;;
cast({x}, DType.BOOL) - 1 ;; -cast({x}, DType.BOOL) ;; cast({x}, DType.BOOL) + 1 ;;
cast({x}, DType.F32) & 1 ;; ~cast({x}, DType.F32) ;; cast({x}, DType.F32) << 1 ;;
cast({x}, 'f32') ;; cast({x}, float) ;; cast({x}, np.float32) ;; cast({t}, DType.F32) ;;
constant(0.5, DType.I32) + cast({x}, DType.I32) ;; round(cast({x}, DType.F32), 2) ;;
abs({i} < 1) ;; {x} @ {x} ;; {x}.sum() ;; {x} + 'a' ;; {x} + None ;; {x} + 1j ;;
minimum({x}, {i}) ;; mod({x}, 2) ;; all_of({x} > 0) ;; negate({x} > 0) ;; clip({x}, {i}, 1)
""")

# {axes} the parameters of the body {body} for the extents {shape}
STATEMENTS = """
y = compute("y", {shape}, lambda: {body})
y = compute("y", {shape}, lambda {axes}, more: {body})
y = compute("y", (*{shape}, 2), lambda {axes}: {body})
y = compute("y", {shape}[0], lambda {axes}: {body})
y = compute("y", (2.0, *{shape}[1:]), lambda {axes}: {body})
y = compute("", {shape}, lambda {axes}: {body})
y = compute("y", (True, *{shape}[1:]), lambda {axes}: {body})
y = compute(7, {shape}, lambda {axes}: {body})
y = compute("y", (-1, *{shape}[1:]), lambda {axes}: {body})
y = compute("y", "ab", lambda {axes}: {body})
y = compute("y", None, lambda {axes}: {body})
y = compute("y", {shape}, 0.0)
y = compute("y", {shape}, max)
y = compute("y", {shape}, lambda {axes}: {body}, ("same",) * 5)
y = compute({shape}, "y", lambda {axes}: {body})
z = placeholder("z", (-1, 3)); y = compute("y", (3,), lambda a: z[0, a])
z = placeholder("z", (2.5, 3)); y = compute("y", (3,), lambda a: z[0, a])
z = placeholder("z", (True, 3)); y = compute("y", (3,), lambda a: z[0, a])
z = placeholder("z", 3); y = compute("y", (3,), lambda a: z[a])
z = placeholder("", (3,)); y = compute("y", (3,), lambda a: z[a])
z = placeholder("z", (0,)); y = compute("y", (3,), lambda a: z[a])
z = placeholder("z", (3,), "f32"); y = compute("y", (3,), lambda a: z[a])
z = placeholder("z", (3,), np.float32); y = compute("y", (3,), lambda a: z[a])
z, w = placeholder("z", (3,)), placeholder("z", (3,)); y = compute("y", (3,), lambda a: z[a] + w[a])
z = placeholder("y", (3,)); y = compute("y", (3,), lambda a: z[a])
z = placeholder("z", (3,)); y = compute("y", (3,), lambda a, b=z: b)
z = placeholder("z", (3, 3)); \
y = compute("y", (3,), lambda a: sum_over(z[a, a], reduce_axis("a", 3)))
z = placeholder("z", (3, 3)); k, m = reduce_axis("k", 3), reduce_axis("k", 2); \
y = compute("y", (3,), lambda a: sum_over(z[k, m], k, m))
k = reduce_axis("k", 1.5); y = compute("y", (3,), lambda a: sum_over(cast(k, DType.F32), k))
k = reduce_axis("k", -1); y = compute("y", (3,), lambda a: sum_over(cast(k, DType.F32), k))
k = reduce_axis("", 3); y = compute("y", (3,), lambda a: sum_over(cast(k, DType.F32), k))
y = compute("y", (3,), lambda a: sum_over(cast(a, DType.F32), reduce_axis("k", a + 1)))
keep = []; compute("w", (9,), lambda b: keep.append(b) or cast(b, DType.F32)); \
y = compute("y", (3,), lambda a: cast(keep[0], DType.F32))
""".strip().splitlines()
