"""The product by oneDNN is the one PyTorch makes, with its gradients; it is taken only where it is meant to be."""

import pytest
import torch
from torch.nn import functional

from core_model.config import FeedForwardSpec
from core_model.nn import product as module
from core_model.nn.feedforward import FeedForward
from core_model.nn.linear import Linear
from core_model.nn.product import few_sizes, grouped_product, product

needs_onednn = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this PyTorch was built without oneDNN"
)


@pytest.fixture
def calls(monkeypatch):
    """Shapes of what oneDNN was given; it is given everything it takes, however small."""
    given, multiply = [], module._onednn
    monkeypatch.setattr(module, "onednn_is_faster", lambda: True)
    monkeypatch.setattr(module, "_LEAST_PRODUCTS", 0)
    monkeypatch.setattr(module, "_LEAST_ROWS", 0)
    monkeypatch.setattr(module, "_LEAST_TRAINED_PRODUCTS", 0)

    def counted(x, weight_EC, bias_E):
        given.append((tuple(x.shape), tuple(weight_EC.shape)))
        return multiply(x, weight_EC, bias_E)

    monkeypatch.setattr(module, "_onednn", counted)
    return given


@needs_onednn
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("shape", [(1, 5), (33, 5), (2, 17, 5), (2, 3, 7, 5)])
def test_a_product_is_the_linear_map(calls, shape, has_bias):
    x, weight_EC, bias_E = torch.randn(shape), torch.randn(9, 5), torch.randn(9) if has_bias else None
    with torch.inference_mode():
        y = product(x, weight_EC, bias_E)
    expected = functional.linear(x.double(), weight_EC.double(), None if bias_E is None else bias_E.double())
    torch.testing.assert_close(y.double(), expected, atol=1e-6, rtol=1e-5)
    assert [weight for _, weight in calls] == [(9, 5)]


@needs_onednn
@pytest.mark.parametrize("x", [torch.randn(12, 31).t(), torch.randn(31, 24)[:, ::2], torch.randn(31, 1, 12)[:, 0]])
def test_rows_may_lie_in_memory_as_they_like(calls, x):
    weight_EC = torch.randn(7, 12)
    with torch.inference_mode():
        y = product(x, weight_EC)
    torch.testing.assert_close(y.double(), x.double() @ weight_EC.double().t(), atol=1e-6, rtol=1e-5)
    assert len(calls) == 1


@needs_onednn
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("trained", [(True, True), (True, False), (False, True)])
def test_gradients_are_those_of_the_linear_map(calls, trained, has_bias):
    x, weight_EC = torch.randn(2, 19, 6), torch.randn(8, 6)
    bias_E = torch.randn(8) if has_bias else None
    grad = torch.randn(2, 19, 8)
    found, expected = (
        _gradients(multiply, [t if t is None else t.to(dtype) for t in (x, weight_EC, bias_E)], trained, grad.to(dtype))
        for multiply, dtype in ((product, torch.float32), (functional.linear, torch.float64))
    )
    assert len(calls) == 1 + sum(trained)
    for ours, theirs in zip(found, expected, strict=True):
        if ours is None or theirs is None:
            assert ours is theirs
        else:
            torch.testing.assert_close(ours.double(), theirs, atol=1e-5, rtol=1e-5)


def _gradients(multiply, given, trained, grad):
    x, weight_EC, bias_E = (None if t is None else t.clone() for t in given)
    for tensor, is_trained in zip((x, weight_EC, bias_E), (*trained, True), strict=True):
        if tensor is not None:
            tensor.requires_grad_(is_trained)
    multiply(x, weight_EC, bias_E).backward(grad)
    return [None if t is None else t.grad for t in (x, weight_EC, bias_E)]


@needs_onednn
def test_a_gradient_of_a_gradient_is_refused_and_not_wrong(calls):
    x = torch.randn(4, 3, requires_grad=True)
    (grad,) = torch.autograd.grad(product(x, torch.randn(5, 3)).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


@needs_onednn
def test_what_it_is_slow_or_wrong_for_is_left_to_pytorch(calls):
    x, weight_EC = torch.randn(6, 4), torch.randn(5, 4)
    with torch.inference_mode():
        product(x.double(), weight_EC.double())
        product(x.bfloat16(), weight_EC.bfloat16())
        product(x, torch.randn(5, 8)[:, :4])
        product(x, weight_EC, torch.randn(5, 3)[:, 0])
        product(x.to("meta"), weight_EC.to("meta"))
        with torch.autocast("cpu", torch.bfloat16):
            assert product(x, weight_EC).dtype == torch.bfloat16
    assert not calls


def test_small_products_are_left_to_pytorch(monkeypatch):
    monkeypatch.setattr(module, "onednn_is_faster", lambda: pytest.fail("asked"))
    with torch.inference_mode():
        assert product(torch.ones(8, 8), torch.ones(8, 8)).eq(8).all()


@pytest.mark.parametrize(
    ("name", "has_avx512", "is_faster"),
    [("AMD EPYC", True, True), ("AMD Ryzen 5 3600", False, False), ("Intel Xeon Platinum 8481C", True, False)],
)
def test_onednn_multiplies_where_mkl_leaves_half_of_the_processor_unused(monkeypatch, name, has_avx512, is_faster):
    capabilities = {"cpu_name": name, "avx512_f": has_avx512}
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert module.onednn_is_faster.__wrapped__() is is_faster


@pytest.mark.parametrize("library", [torch.backends.mkldnn, torch.backends.mkl], ids=["oneDNN", "MKL"])
def test_without_one_of_both_pytorch_multiplies(monkeypatch, library):
    for each in (torch.backends.mkldnn, torch.backends.mkl):
        monkeypatch.setattr(each, "is_available", lambda: True)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"cpu_name": "AMD EPYC", "avx512_f": True})
    monkeypatch.setattr(library, "is_available", lambda: False)
    assert module.onednn_is_faster.__wrapped__() is False


def test_this_processor_is_one_that_pytorch_can_name():
    assert isinstance(torch.cpu.get_capabilities()["cpu_name"], str)


@needs_onednn
def test_a_training_with_it_goes_where_one_without_goes(calls):
    torch.manual_seed(0)
    net = torch.nn.Sequential(Linear(8, 32), torch.nn.ReLU(), Linear(32, 8))
    twin = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
    twin.load_state_dict(net.state_dict())
    x = torch.randn(64, 8)
    for model in (net, twin):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(20):
            optimizer.zero_grad()
            (model(x) - x).square().mean().backward()
            optimizer.step()
    assert calls
    for ours, theirs in zip(net.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("by_onednn", [pytest.param(True, marks=needs_onednn), False])
@pytest.mark.parametrize(
    ("n", "n_parts", "n_made", "width"), [(1, 1, 1, 1), (40, 3, 6, 5), (9, 12, 33, 64), (64, 1, 7, 20)]
)
def test_a_grouped_product_is_one_of_each_part(monkeypatch, by_onednn, n, n_parts, n_made, width):
    monkeypatch.setattr(module, "onednn_is_faster", lambda: by_onednn)
    x_NKC = torch.randn(n + 2, n_parts, width)[1:-1]
    weight_KEC, bias_KE = torch.randn(n_parts, n_made, width), torch.randn(n_parts, n_made)
    with torch.inference_mode():
        y_NKE = grouped_product(x_NKC, weight_KEC, bias_KE)
    expected_NKE = torch.einsum("nkc,kec->nke", x_NKC.double(), weight_KEC.double()) + bias_KE
    torch.testing.assert_close(y_NKE.double(), expected_NKE, atol=1e-5, rtol=1e-5)


@needs_onednn
def test_what_is_no_number_in_one_part_stays_in_its_rows_there(monkeypatch):
    monkeypatch.setattr(module, "onednn_is_faster", lambda: True)
    x_NKC = torch.ones(5, 2, 4)
    x_NKC[3, 1, 0] = float("nan")
    y_NKE = grouped_product(x_NKC, torch.ones(2, 6, 4), torch.zeros(2, 6))
    assert y_NKE.isnan().nonzero()[:, :2].unique(dim=0).tolist() == [[3, 1]]


@needs_onednn
def test_a_bias_with_gaps_is_read_across_them(monkeypatch):
    monkeypatch.setattr(module, "onednn_is_faster", lambda: True)
    x_NKC, weight_KEC, bias_KE = torch.randn(20, 3, 4), torch.randn(3, 1, 4), torch.randn(3, 9)[:, 4:5]
    expected_NKE = torch.einsum("nkc,kec->nke", x_NKC, weight_KEC) + bias_KE
    torch.testing.assert_close(grouped_product(x_NKC, weight_KEC, bias_KE), expected_NKE, atol=1e-6, rtol=1e-5)


@needs_onednn
def test_no_weight_is_given_to_onednn_with_gaps_between_its_rows(monkeypatch, calls):
    """The gradient of the weight of a classifier's map: x, one position of each example, stands for a weight there."""
    multiply, dense = module._onednn, []

    def watched(x, weight_EC, bias_E):
        dense.append(weight_EC.is_contiguous() or weight_EC.t().is_contiguous())
        return multiply(x, weight_EC, bias_E)

    monkeypatch.setattr(module, "_onednn", watched)
    linear, x_BNC = Linear(6, 8), torch.randn(16, 5, 6)
    linear(x_BNC[:, 0]).sum().backward()
    assert dense == [True, True]
    torch.testing.assert_close(linear.weight.grad, x_BNC[:, 0].sum(0).expand(8, 6), atol=1e-5, rtol=1e-5)


@needs_onednn
def test_what_is_not_trained_is_not_kept(calls):
    x, weight_EC = torch.randn(16, 6, requires_grad=True), torch.randn(8, 6, requires_grad=True)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.shape) or t, lambda t: t):
        product(x.detach(), weight_EC)
        product(x, weight_EC.detach())
    assert kept == [x.shape, weight_EC.shape]


@needs_onednn
@pytest.mark.parametrize("activation", ["identity", "relu", "tanh", "gelu", "silu"])
@pytest.mark.parametrize("gated", [True, False])
def test_a_feed_forward_of_every_kind_trains(calls, activation, gated):
    spec = FeedForwardSpec(d_hidden=12, activation=activation, gated=gated)
    network, x_BNC = FeedForward(spec, 8), torch.randn(2, 17, 8)
    network(x_BNC).square().sum().backward()
    assert calls
    wide = FeedForward(spec, 8).double()
    wide.load_state_dict(network.state_dict())
    wide(x_BNC.double()).square().sum().backward()
    for ours, theirs in zip(network.parameters(), wide.parameters(), strict=True):
        assert ours.grad is not None
        torch.testing.assert_close(ours.grad.double(), theirs.grad, atol=1e-4, rtol=1e-4)


def test_lengths_of_all_kinds_come_in_few_sizes_a_little_larger():
    sizes = [few_sizes(n) for n in range(1, 8193)]
    assert len(set(sizes)) <= 16 * 6
    assert all(0 <= size - n < max(16, n / 8) for n, size in enumerate(sizes, start=1))
    assert [few_sizes(n) for n in (1024, 2048, 4096)] == [1024, 2048, 4096]
