"""The interface that the onnx package asks of a backend, and some of that package's own cases."""

from __future__ import annotations

import unittest
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from benchmarks.correctness.onnx_backend import WatchedBackend, run_case
from onnx import ModelProto, TensorProto, helper
from onnx.backend.test import BackendTest
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from tensorwright.base import InputError, ModelError, UnsupportedError
from tensorwright.integrations import onnx_backend as backend
from tensorwright.integrations.onnx_backend import Backend, Placement

# Of every operator that is supported, two or three cases; all cases:
# benchmarks/correctness/onnx_backend.py.
CASES = """
    abs acos acos_example acosh acosh_example add_bcast add_uint16 add_uint8
    affine_grid_3d_align_corners affine_grid_3d and2d and_bcast3v2d and_bcast4v4d
    argmax_default_axis_example argmax_negative_axis_keepdims_example
    argmax_no_keepdims_random_select_last_index argmin_default_axis_example
    argmin_negative_axis_keepdims_example argmin_no_keepdims_random_select_last_index asin
    asin_example asinh asinh_example atan atan_example atanh atanh_example
    attention_23_fullymasked_qk_matmul_output_mode3_zero attention_4d_causal_bf16
    attention_4d_causal_fp16_expanded attention_4d_fp16
    attention_local_window_rank1_boolean_mask_expanded averagepool_1d_default
    averagepool_2d_precomputed_strides averagepool_3d_dilations_small basic_conv_with_padding
    batchnorm_epsilon batchnorm_example_training_mode bitcast_2d_float32_to_int32
    bitcast_int32_to_float32 bitcast_uint32_to_int32 bitshift_left_int16 bitshift_right_int16
    bitshift_right_int8_negative_shift bitshift_right_uint8 bitwise_and_i16_3d
    bitwise_and_ui8_bcast_4v3d bitwise_not_2d bitwise_not_4d bitwise_or_i16_4d
    bitwise_or_ui8_bcast_4v3d bitwise_xor_i16_3d bitwise_xor_ui8_bcast_4v3d blackmanwindow
    blackmanwindow_symmetric_expanded cast_BFLOAT16_to_FLOAT cast_FLOAT16_to_FLOAT
    cast_FLOAT_to_FLOAT16 castlike_BFLOAT16_to_FLOAT castlike_FLOAT16_to_FLOAT
    castlike_FLOAT_to_FLOAT16_expanded causal_conv_with_state_b1_c1_degenerate
    causal_conv_with_state_fp16 causal_conv_with_state_silu
    causal_conv_with_state_with_past_state_expanded ceil ceil_example celu_bfloat16
    celu_float16_expanded center_crop_pad_crop_and_pad center_crop_pad_crop
    center_crop_pad_pad_expanded clip clip_default_min_expanded clip_splitbounds_expanded
    compress_0 compress_negative_axis concat_1d_axis_0 concat_3d_axis_0
    concat_3d_axis_negative_3 constant constant_pad_axes constantofshape_float_ones
    constantofshape_int_zeros conv_with_strides_padding convinteger_with_padding
    convinteger_without_padding convtranspose_1d convtranspose_group_2 convtranspose_pads cos
    cos_example cosh cosh_example cumprod_1d cumprod_1d_reverse_exclusive
    cumprod_2d_negative_axis cumsum_1d cumsum_1d_reverse_exclusive cumsum_2d_negative_axis
    depthtospace_crd_mode_example depthtospace_example_expanded dequantizelinear_axis
    dequantizelinear_uint16 div_bcast div_int32_trunc div_uint8 dropout_default
    dropout_random_old dynamicquantizelinear dynamicquantizelinear_min_adjusted_expanded
    einsum_batch_diagonal einsum_scalar einsum_transpose elu elu_expanded_ver18 equal_bcast
    equal_uint16 equal_uint8 erf exp exp_example expand_dim_changed expand_dim_unchanged
    eyelike_populate_off_main_diagonal eyelike_without_dtype flatten_axis0 flatten_default_axis
    flatten_negative_axis4 flexattention_causal_mask_expanded_ver26
    flexattention_gqa_expanded_ver26 flexattention_soft_cap_expanded_ver26 floor floor_example
    gather_0 gather_elements_0 gather_elements_negative_indices gather_negative_indices
    gathernd_example_float32 gathernd_example_int32 gelu_default_1 gelu_tanh_1
    gelu_tanh_2_expanded gemm_all_attributes gemm_default_scalar_bias gemm_transposeB
    globalaveragepool globalaveragepool_precomputed globalmaxpool globalmaxpool_precomputed
    greater_bcast greater_equal_bcast greater_equal_uint16 greater_equal_uint8_expanded
    greater_uint16 greater_uint8 gridsample_aligncorners_true gridsample
    gridsample_zeros_padding group_normalization_epsilon group_normalization_epsilon_expanded
    group_normalization_example_expanded gru_defaults hammingwindow
    hammingwindow_symmetric_expanded hannwindow hannwindow_symmetric_expanded hardmax_axis_0
    hardmax_one_hot hardsigmoid hardsigmoid_expanded_ver18 hardswish hardswish_expanded
    identity if instancenorm_epsilon instancenorm_example isinf isinf_positive isnan
    isnan_float16 l1normalization_axis_0 l2normalization_axis_1 layer_normalization_2d_axis0
    layer_normalization_3d_axis_negative_3_epsilon_expanded
    layer_normalization_default_axis_expanded_ver18 leakyrelu leakyrelu_expanded less_bcast
    less_equal_bcast less_equal_uint16 less_equal_uint8_expanded less_uint16 less_uint8
    linear_attention_decode_step linear_attention_linear_t1_no_past_expanded log log_example
    logsoftmax_axis_0 logsoftmax_default_axis_expanded logsoftmax_negative_axis_expanded_ver18
    loop11 lpnormalization_default lppool_1d_default lppool_2d_strides lrn lrn_default
    matmul_1d_1d matmul_bcast matmulinteger max_example max_int64 max_uint8 maxpool_1d_default
    maxpool_2d_precomputed_same_upper maxpool_3d_dilations_use_ref_impl_large mean_example
    mean_two_inputs min_example min_int64 min_uint8 mish mish_expanded mod_broadcast
    mod_mixed_sign_float32 mod_uint8 mul_bcast mul_int8 mul_uint8 mvn mvn_expanded_ver18 neg
    neg_example nllloss_NC nllloss_NCd1d2_reduction_sum_expanded
    nllloss_NCd1d2d3d4d5_none_no_weight_expanded nonmaxsuppression_center_point_box_format
    nonmaxsuppression_flipped_coordinates nonmaxsuppression_suppress_by_IOU_and_scores
    nonmaxsuppression_two_batches nonzero_example onehot_negative_indices
    onehot_without_axis or2d or_bcast3v2d or_bcast4v4d pow_bcast_array pow_types_float32_int64
    pow_types_int64_float32 prelu_broadcast prelu_example_expanded qlinearconv
    qlinearmatmul_2D_int8_float16 qlinearmatmul_3D_uint8_float32 quantizelinear_axis
    quantizelinear_uint16 range_bfloat16_type_positive_delta range_float_type_positive_delta
    range_int32_type_negative_delta_expanded reciprocal reciprocal_example
    reduce_l1_default_axes_keepdims_example reduce_l1_empty_set
    reduce_l1_negative_axes_keep_dims_random_expanded reduce_l2_default_axes_keepdims_example
    reduce_l2_empty_set reduce_l2_negative_axes_keep_dims_random_expanded
    reduce_log_sum_asc_axes reduce_log_sum_desc_axes
    reduce_log_sum_exp_default_axes_keepdims_example reduce_log_sum_exp_empty_set
    reduce_log_sum_exp_negative_axes_keepdims_random_expanded
    reduce_log_sum_negative_axes_expanded reduce_max_bool_inputs reduce_max_empty_set_bool
    reduce_max_negative_axes_keepdims_random reduce_mean_default_axes_keepdims_example
    reduce_mean_keepdims_example reduce_mean_negative_axes_keepdims_random
    reduce_min_bool_inputs reduce_min_do_not_keepdims_random
    reduce_min_negative_axes_keepdims_random reduce_prod_default_axes_keepdims_example
    reduce_prod_empty_set reduce_prod_negative_axes_keepdims_random
    reduce_sum_default_axes_keepdims_example reduce_sum_empty_set
    reduce_sum_negative_axes_keepdims_random reduce_sum_square_default_axes_keepdims_example
    reduce_sum_square_empty_set reduce_sum_square_negative_axes_keepdims_random_expanded relu
    relu_expanded_ver18 reshape_allowzero_reordered reshape_one_dim reshape_zero_dim
    resize_downsample_scales_cubic_A_n0p5_exclude_outside resize_upsample_scales_linear
    resize_upsample_sizes_nearest_round_prefer_ceil_asymmetric reversesequence_batch
    reversesequence_time rms_normalization_2d_axis0
    rms_normalization_3d_axis_negative_3_epsilon rms_normalization_default_axis
    rms_normalization_default_axis_expanded rotary_embedding_3d_input
    rotary_embedding_no_position_ids_interleaved rotary_embedding_with_rotary_dim_expanded
    round scan9_multi_state scan9_sum scatter_elements_with_axis scatter_elements_without_axis
    scatter_with_axis scatter_without_axis scatternd_add scatternd_multiply
    sce_NCd1_mean_weight_negative_ii sce_mean_no_weight_ii_4d_log_prob_expanded
    sce_sum_log_prob_expanded selu selu_expanded_ver18 shape_clip_end shape_example
    shape_start_negative_1 shrink_hard shrink_soft_expanded_ver18 sigmoid sigmoid_example sign
    simple_rnn_batchwise simple_rnn_with_initial_bias sin sin_example sinh sinh_example size
    size_example slice slice_neg slice_start_out_of_bounds softmax_axis_0
    softmax_default_axis_expanded softmax_negative_axis_expanded_ver18 softplus
    softplus_expanded_ver18 softsign softsign_expanded_ver18 spacetodepth
    spacetodepth_dcr_mode_example_expanded spacetodepth_expanded split_1d_uneven_split_opset18
    split_variable_parts_1d_opset13 split_zero_size_splits_opset18 sqrt sqrt_example squeeze
    squeeze_negative_axes sub_bcast sub_int8 sub_uint8 sum_example sum_two_inputs swiglu_alpha
    swiglu_float16_expanded swish swish_expanded tan tan_example tanh tanh_example
    thresholdedrelu thresholdedrelu_expanded_ver18 tile tile_precomputed top_k top_k_uint64
    transpose_all_permutations_0 transpose_default tril tril_zero triu_zero
    unique_bfloat16_sorted_without_axis unique_not_sorted_without_axis
    unique_sorted_with_axis_3d unique_sorted_without_axis unsqueeze_axis_0
    unsqueeze_unsorted_axes upsample_nearest where_example where_long_example wrap_pad xor2d
    xor_bcast3v2d xor_bcast4v4d
""".split()
REFUSED = {
    "det_2d": "Det",
    "sequence_insert_at_front": "SequenceInsert",
    "strnormalizer_nostopwords_nochangecase": "StringNormalizer",
    "cast_FLOAT_to_FLOAT8E4M3FN": "Cast",
    "cast_INT4_to_FLOAT": "Cast",
    "optional_get_element_tensor": "OptionalGetElement",
    "bernoulli": "Bernoulli",
    "adam": "Adam",
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> type[unittest.TestCase]:
    """The runner's cases that are named here."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("ONNX_HOME", str(tmp_path_factory.mktemp("onnx")))
        warnings.simplefilter("ignore")  # the package computes its cases, overflows among them
        runner = BackendTest(WatchedBackend, __name__)
        for name in (*CASES, *REFUSED):
            runner.include(f"^test_{name}_cpu$")
        return runner.test_cases["OnnxBackendNodeModelTest"]


@pytest.mark.parametrize("name", CASES)
def test_a_case_of_the_onnx_package(suite: type[unittest.TestCase], name: str) -> None:
    row = run_case(suite, f"test_{name}_cpu", "")
    assert row.outcome in ("compiled", "host"), row.reason


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_refused_by_name(
    suite: type[unittest.TestCase], name: str
) -> None:
    row = run_case(suite, f"test_{name}_cpu", "")
    assert row.outcome == "unsupported"
    assert row.named == REFUSED[name]
    assert row.reason


def test_a_case_that_did_not_run_has_not_passed() -> None:
    class Silent(unittest.TestCase):
        def test_swallowed(self) -> None:
            try:
                raise BackendIsNotSupposedToImplementIt("not here")
            except BackendIsNotSupposedToImplementIt:
                pass  # as the runner does

        def test_skipped(self) -> None:
            raise unittest.SkipTest("not here")

        def test_wrong(self) -> None:
            raise AssertionError("another result")

    rows = [run_case(Silent, name, "") for name in ("test_swallowed", "test_skipped", "test_wrong")]
    assert [row.outcome for row in rows] == ["failed"] * 3
    assert rows[0].reason == "the case did not run"
    assert "not here" in rows[1].reason
    assert "another result" in rows[2].reason


def model_of(
    node: onnx.NodeProto,
    inputs: dict[str, tuple[int, tuple[int | str, ...]]],
    **known: np.ndarray,
) -> ModelProto:
    graph = helper.make_graph(
        [node],
        "small",
        [helper.make_tensor_value_info(name, *each) for name, each in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in node.output],
        [onnx.numpy_helper.from_array(array, name) for name, array in known.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


RELU = model_of(helper.make_node("Relu", ["x"], ["y"]), {"x": (TensorProto.FLOAT, ("n", 3))})
SLICE = model_of(
    helper.make_node("Slice", ["x", "first", "last"], ["y"]),
    {
        "x": (TensorProto.FLOAT, (4,)),
        "first": (TensorProto.INT64, (1,)),
        "last": (TensorProto.INT64, (1,)),
    },
)


def test_a_model_runs_by_position_and_by_name() -> None:
    x = np.array([[-1, 0, 2]], np.float32)
    for inputs in ([x], (x,), x, {"x": x}):
        (y,) = backend.run_model(RELU, inputs)
        np.testing.assert_array_equal(y, [[0, 0, 2]])


def test_an_open_shape_is_taken_from_the_call() -> None:
    prepared = backend.prepare(RELU)
    assert prepared.executable is None
    assert prepared.placement is None
    for rows in (2, 5, 2):
        (y,) = prepared.run([-np.ones((rows, 3), np.float32)])
        np.testing.assert_array_equal(y, np.zeros((rows, 3)))
    assert prepared.placement is Placement.COMPILED


def test_values_that_decide_shapes_are_taken_from_the_call() -> None:
    prepared = backend.prepare(SLICE)
    x = np.arange(4, dtype=np.float32)
    for first, last in ((0, 2), (1, 4)):
        (y,) = prepared.run([x, np.array([first]), np.array([last])])
        np.testing.assert_array_equal(y, x[first:last])
    same = prepared.executable
    prepared.run([x, np.array([1]), np.array([4])])
    assert prepared.executable is same


def test_the_number_of_inputs_is_checked() -> None:
    with pytest.raises(InputError, match="1 are given, the model has 3"):
        backend.prepare(SLICE).run([np.zeros(4, np.float32)])


def test_initialisers_are_not_asked_for() -> None:
    node = helper.make_node("Add", ["x", "w"], ["y"])
    inputs = {"x": (TensorProto.FLOAT, (2,)), "w": (TensorProto.FLOAT, (2,))}
    model = model_of(node, inputs, w=np.array([1, 2], np.float32))
    (y,) = backend.run_model(model, [np.ones(2, np.float32)])
    np.testing.assert_array_equal(y, [2, 3])


@pytest.mark.parametrize("as_bytes", [True, False])
def test_bytes_and_paths_are_models_too(tmp_path: Path, as_bytes: bool) -> None:
    path = tmp_path / "relu.onnx"
    onnx.save(RELU, path)
    model = path.read_bytes() if as_bytes else path
    (y,) = backend.run_model(model, [np.ones((1, 3), np.float32)])
    np.testing.assert_array_equal(y, np.ones((1, 3)))


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(ModelError, match="not an ONNX model"):
        backend.prepare(b"nothing of the kind")


def test_a_node_runs_alone() -> None:
    node = helper.make_node("MatMul", ["a", "b"], ["c"])
    a, b = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    (c,) = backend.run_node(node, [a, b])
    np.testing.assert_array_equal(c, np.full((2, 4), 3))
    (square,) = backend.run_node(helper.make_node("Mul", ["a", "a"], ["c"]), [a], opset_version=13)
    np.testing.assert_array_equal(square, a)


def test_it_says_where_the_work_was_done() -> None:
    x = {"x": (TensorProto.FLOAT, (2, 3))}
    array = np.array([[1, 3, 2], [4, 6, 5]], np.float32)

    def placement(model: ModelProto) -> Placement | None:
        prepared = backend.prepare(model)
        prepared.run([array])
        return prepared.placement

    assert placement(model_of(helper.make_node("Exp", ["x"], ["y"]), x)) is Placement.COMPILED
    assert placement(model_of(helper.make_node("Shape", ["x"], ["y"]), x)) is Placement.FOLDED
    k = np.array([1], np.int64)
    top = model_of(helper.make_node("TopK", ["x", "k"], ["y", "i"]), x, k=k)
    assert placement(top) is Placement.COMPILED
    bits = model_of(helper.make_node("BitCast", ["x"], ["y"], to=TensorProto.INT32), x)
    assert placement(bits) is Placement.HOST
    assert backend.prepare(bits).host_operators == ("bitcast",)


def test_devices() -> None:
    assert backend.supports_device("CPU")
    assert backend.supports_device("CPU:0")
    assert not backend.supports_device("CUDA")
    with pytest.raises(UnsupportedError, match="device CUDA"):
        Backend.prepare(RELU, "CUDA")


def test_compatible_models() -> None:
    x = {"x": (TensorProto.FLOAT, (2, 2))}
    known = model_of(helper.make_node("Exp", ["x"], ["y"]), x)
    unknown = model_of(helper.make_node("Det", ["x"], ["y"]), x)
    assert backend.is_compatible(known)
    assert backend.is_compatible(RELU)
    assert not backend.is_compatible(unknown)
    assert not backend.is_compatible(known, "CUDA")
