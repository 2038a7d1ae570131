"""Any number of microseconds, in any spelling, is read to the picosecond; and why no float is trusted with it."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from roofterm_parsers.chrome.times import GOOD, microseconds, one

PS = 1_000_000

plain = st.builds(
    lambda sign, whole, decimals: f"{sign}{whole}{'.' + decimals if decimals else ''}",
    st.sampled_from(["", "-"]),
    st.integers(0, 10**18 - 1).map(str),
    st.text("0123456789", max_size=30),
)
exponents = st.builds(lambda digits, power: f"{digits}e{power}", plain, st.integers(-30, 2))
spelled = st.one_of(plain, exponents, plain.map(lambda text: f'"{text}"'), plain.map(lambda text: f'" {text} "'))


def exact(text: str) -> int:
    """Picoseconds, by rational arithmetic."""
    value = Decimal(text.strip('" '))
    return int((Fraction(value) * PS).__round__()) if value == value.to_integral_value() else _half_even(Fraction(value) * PS)


def _half_even(value: Fraction) -> int:
    return round(value)  # Fraction rounds half to even


@given(st.lists(spelled, min_size=1, max_size=20))
def test_many_values_at_once_are_exact(texts: list[str]) -> None:
    us, ps, state = microseconds(",".join(texts).encode(), len(texts))
    wanted = [exact(text) for text in texts]
    small = [abs(value) < (1 << 60) * PS for value in wanted]
    got = [int(a) * PS + int(b) for a, b in zip(us, ps, strict=True)]
    assert [g for g, fits in zip(got, small, strict=True) if fits] == [w for w, fits in zip(wanted, small, strict=True) if fits]
    assert all((s == GOOD) == fits for s, fits in zip(state.tolist(), small, strict=True))


@given(spelled)
def test_one_value_reads_as_many_do(text: str) -> None:
    us, ps, state = microseconds(text.encode(), 1)
    assert one(text.encode()) == (us[0], ps[0], state[0])


@given(st.integers(0, (1 << 43) * 1000 - 1))
def test_a_double_keeps_nanoseconds_below_two_to_the_43_microseconds(ns: int) -> None:
    # the bound that Kineto's time base was made for: below it, splitting the double gives the nanosecond back
    value = float(f"{ns // 1000}.{ns % 1000:03d}")
    whole = int(value)
    assert whole * 1000 + round((value - whole) * 1000) == ns


def test_a_double_loses_nanoseconds_beyond() -> None:
    ns = 1_712_195_495_519_689_047  # a real time of 2024, in nanoseconds
    value = float(f"{ns // 1000}.{ns % 1000:03d}")
    assert round(Decimal(value) * 1000) != ns
    us, ps, _ = microseconds(f"{ns // 1000}.{ns % 1000:03d}".encode(), 1)
    assert int(us[0]) * PS + int(ps[0]) == ns * 1000


@given(st.integers(0, 10**12), st.sampled_from([6, 9, 12, 17]))
def test_picoseconds_survive_a_writer_that_prints_doubles(ps: int, digits: int) -> None:
    # XPlane's converter prints microseconds as doubles of 17 digits
    text = f"{ps / PS:.17g}" if digits == 17 else f"{Decimal(ps) / PS:f}"
    us, rest, _ = microseconds(text.encode(), 1)
    assert int(us[0]) * PS + int(rest[0]) == int((Decimal(text) * PS).to_integral_value(ROUND_HALF_EVEN)) == ps
