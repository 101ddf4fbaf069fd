"""Templates: schedules with named knobs, written by a person, as in AutoTVM.

Read `template.py` first (the protocol), then `configuration.py` (its knobs), `cpu.py` (some
of ours) and `space.py` (all of them).
"""

import tensorwright.tuning.space
from tensorwright.tuning.space.knobs import Annotation, Order, Policy
from tensorwright.tuning.space.sketch import SketchBuilder
from tensorwright.tuning.space.templates.configuration import INLINE, ROOT, AtLoop, Configuration
from tensorwright.tuning.space.templates.space import TEMPLATES, template_sketches
from tensorwright.tuning.space.templates.template import (
    Template, register_template, template, unregister_template,
)
