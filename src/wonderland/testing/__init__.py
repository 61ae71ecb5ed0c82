"""The laws of each family, public: what must be true of every part, told when it is not.

Each law is a function that returns None when it holds and raises AssertionError with a sentence
when it does not. Try them on your own estimators, bases and functions:

>>> import numpy as np, wonderland as wl
>>> X = np.random.default_rng(0).normal(size=(20, 2))
>>> wl.testing.weights_are_repetition(wl.Ridge(), X, X[:, 0], counts=np.arange(20) % 3)
"""

from wonderland.testing.bases import (
    basis_has_one_name_per_column,
    basis_is_the_same_on_host_and_jax,
    basis_maps_each_row_alone,
    doubled_columns_round_to_the_host,
)
from wonderland.testing.compare import same
from wonderland.testing.compiling import nothing_compiles_again
from wonderland.testing.differentiable import (
    gradient_is_finite_difference,
    gradients_reach_every_parameter,
    jit_is_eager,
    vmap_is_a_loop,
)
from wonderland.testing.estimators import (
    clones_and_pickles,
    evidence_is_plain,
    predictions_are_the_models,
    same_seed_same_fit,
    samples_in_any_order,
    saving_keeps_every_bit,
    weights_are_repetition,
    zero_weight_is_absence,
)
from wonderland.testing.kernels import (
    kernel_gradients_are_finite_differences,
    kernel_is_positive_semidefinite,
    kernel_is_symmetric,
    kernel_matrix_holds_its_pairs,
    kernel_takes_sparse_tables,
    kernels_compose,
)
from wonderland.testing.layers import (
    dropout_keeps_mean_and_variance,
    gradients_reach_every_parameter_of_the_layer,
    inference_draws_nothing,
    layer_gradients_are_finite_differences,
    layer_is_stored,
    layer_maps_batches,
    training_keeps_parameters,
)
from wonderland.testing.linear import (
    outputs_are_fitted_alone,
    penalties_are_extra_samples,
    shrinks_as_the_penalty_grows,
    the_intercept_is_free,
)
from wonderland.testing.losses import (
    loss_and_conjugate_are_fenchel_young,
    loss_bends_as_stated,
    loss_conjugate_is_the_supremum,
    loss_curvature_is_finite_difference,
    loss_derivative_is_finite_difference,
    loss_duality_gap_closes,
    loss_is_calibrated_as_stated,
    loss_is_the_same_on_host_and_jax,
    loss_prox_minimises,
    loss_prox_splits_by_moreau,
)
from wonderland.testing.penalties import (
    penalty_bends_as_stated,
    penalty_distance_certifies,
    penalty_is_the_same_on_host_and_jax,
    penalty_prox_minimises,
    penalty_prox_splits_by_moreau,
)
from wonderland.testing.transactions import (
    failed_fit_changes_nothing,
    interrupted_fit_changes_nothing,
)

__all__ = [
    "basis_has_one_name_per_column",
    "basis_is_the_same_on_host_and_jax",
    "basis_maps_each_row_alone",
    "clones_and_pickles",
    "doubled_columns_round_to_the_host",
    "dropout_keeps_mean_and_variance",
    "evidence_is_plain",
    "failed_fit_changes_nothing",
    "gradient_is_finite_difference",
    "gradients_reach_every_parameter",
    "gradients_reach_every_parameter_of_the_layer",
    "inference_draws_nothing",
    "interrupted_fit_changes_nothing",
    "jit_is_eager",
    "kernel_gradients_are_finite_differences",
    "kernel_is_positive_semidefinite",
    "kernel_is_symmetric",
    "kernel_matrix_holds_its_pairs",
    "kernel_takes_sparse_tables",
    "kernels_compose",
    "layer_gradients_are_finite_differences",
    "layer_is_stored",
    "layer_maps_batches",
    "loss_and_conjugate_are_fenchel_young",
    "loss_bends_as_stated",
    "loss_conjugate_is_the_supremum",
    "loss_curvature_is_finite_difference",
    "loss_derivative_is_finite_difference",
    "loss_duality_gap_closes",
    "loss_is_calibrated_as_stated",
    "loss_is_the_same_on_host_and_jax",
    "loss_prox_minimises",
    "loss_prox_splits_by_moreau",
    "nothing_compiles_again",
    "outputs_are_fitted_alone",
    "penalties_are_extra_samples",
    "penalty_bends_as_stated",
    "penalty_distance_certifies",
    "penalty_is_the_same_on_host_and_jax",
    "penalty_prox_minimises",
    "penalty_prox_splits_by_moreau",
    "predictions_are_the_models",
    "same",
    "same_seed_same_fit",
    "samples_in_any_order",
    "saving_keeps_every_bit",
    "shrinks_as_the_penalty_grows",
    "the_intercept_is_free",
    "training_keeps_parameters",
    "vmap_is_a_loop",
    "weights_are_repetition",
    "zero_weight_is_absence",
]
