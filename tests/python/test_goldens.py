"""The goldens agree with themselves: a prompt in chunks means the same as in one piece."""

import pytest
from conftest import Golden, assert_close, models_dir

NAMES = ["llama", "llama_tied", "qwen2", "qwen2_tied", "qwen3", "qwen3_tied"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("whole, chunked", [("2", "2 token by token"), ("7", "7 in chunks"), ("64", "64 in chunks"),
                                            ("bound", "bound in chunks")])
def test_chunks_agree_with_one_piece(name: str, whole: str, chunked: str) -> None:
    golden = Golden(models_dir() / "tiny" / name)
    one, many = golden.cases[whole], golden.cases[chunked]
    steps = len(one) - 1
    for left, right in zip(one[-steps - 1 :], many[-steps - 1 :]):
        assert left["pos"] + len(left["tokens"]) == right["pos"] + len(right["tokens"])
        assert_close(golden.logits(right), golden.logits(left), f"{name}, {chunked}, position {right['pos']}")


@pytest.mark.parametrize("name", NAMES)
def test_next_token_is_never_a_near_tie(name: str) -> None:
    golden = Golden(models_dir() / "tiny" / name)
    for case, calls in golden.cases.items():
        for call in calls:
            second, first = sorted(golden.logits(call))[-2:]
            assert first - second > 4e-3, f"{name}, {case}, position {call['pos']}: {first} against {second}"
