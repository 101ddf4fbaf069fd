"""Object code and assembly from LLVM IR; see `llvm.py`."""

from tensorwright.machine_code.compilation.llvm import (
    assembly,
    compile_module,
    create_machine,
    feature_flags,
    pipeline_key,
)

__all__ = ["assembly", "compile_module", "create_machine", "feature_flags", "pipeline_key"]
