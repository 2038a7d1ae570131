"""The views of the Ops screen on a sample: collectives, gaps and iterations beside kernels, host ops and categories."""

from __future__ import annotations

from pathlib import Path

from roofterm.results import TABLES
from roofterm.tui.app import RooftermApp
from roofterm.tui.columns import TABLES as COLUMNS
from roofterm.tui.columns import row_details
from roofterm.tui.screens.ops import ORDER, views_of
from roofterm_parsers import open_profile
from tests.tui.harness import press, screen_lines, screen_text, settled

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "transformer_h100_synthetic.pt.trace.json.gz"


async def opened(pilot) -> None:
    for _ in range(200):
        if "kernels by total time" in screen_text(pilot):
            return
        await pilot.pause(0.05)
    raise AssertionError(screen_text(pilot))


def first_row(pilot) -> str:
    return next(line for line in screen_lines(pilot) if line.startswith(">"))


async def test_v_walks_every_table_that_the_command_has():
    assert set(ORDER) == set(TABLES) == set(TABLES) & set(COLUMNS)
    app = RooftermApp([str(SAMPLE)])
    async with app.run_test(size=(100, 24)) as pilot:
        await opened(pilot)
        await press(pilot, "3 v v v v")
        # samples/README.md: gradients are all-reduced, over 8 ranks.
        assert first_row(pilot).split()[:2] == [">all_reduce", "8"]
        await press(pilot, "v")
        # The longest idle time is that of step 13, which waits about 36 ms for its batch.
        row = first_row(pilot)
        assert row.startswith(">enumerate(DataLoader)")
        assert "36." in row
        assert "host_wait" in row
        await press(pilot, "v")
        assert first_row(pilot).startswith(">ProfilerStep#")
        await press(pilot, "v")
        assert "kernels · whole file" in screen_text(pilot)


async def test_rows_of_gaps_keep_their_place_though_they_share_names():
    app = RooftermApp([str(SAMPLE)])
    async with app.run_test(size=(100, 24)) as pilot:
        await opened(pilot)
        await press(pilot, "3 v v v v v j j")
        third = first_row(pilot)
        assert third.startswith(">enumerate(DataLoader)")
        await press(pilot, "1 3")
        await settled(pilot)
        assert first_row(pilot) == third


async def test_host_ops_are_split_by_shapes_stack_and_module_and_put_together_again():
    """Of the CPU's sample: aten::mm has rows of several shapes; each grouping has a column of its own in sight at 80x24."""
    app = RooftermApp([str(SAMPLE.with_name("transformer_cpu.pt.trace.json.gz"))])
    async with app.run_test(size=(80, 24)) as pilot:
        for _ in range(200):
            if "by self time" in screen_text(pilot):
                break
            await pilot.pause(0.05)
        await press(pilot, "3")
        one = [line for line in screen_lines(pilot) if line[1:].startswith("aten::mm ")]
        assert len(one) == 1
        await press(pilot, "u")
        text = screen_text(pilot)
        assert "by input shapes" in text
        assert len([line for line in screen_lines(pilot) if line[1:].startswith("aten::mm ")]) > 1
        assert "[[" in text
        await press(pilot, "u")
        assert "by Python stack" in screen_text(pilot)
        await press(pilot, "u")
        assert "by module" in screen_text(pilot)
        await press(pilot, "u")
        assert len([line for line in screen_lines(pilot) if line[1:].startswith("aten::mm ")]) == 1


async def test_the_tables_of_the_screen_are_named_and_those_without_rows_left_out():
    app = RooftermApp([str(SAMPLE)])
    async with app.run_test(size=(100, 24)) as pilot:
        await opened(pilot)
        await press(pilot, "3 v v")
        assert screen_lines(pilot)[2].split() == ["kernels", "launches", "[host", "ops]", "categories", "collectives", "gaps", "iterations"]


async def test_gaps_open_on_the_longest_whatever_was_selected_before():
    app = RooftermApp([str(SAMPLE)])
    async with app.run_test(size=(100, 24)) as pilot:
        await opened(pilot)
        await press(pilot, "5 j j 3 v v v v v")
        assert first_row(pilot).startswith(">enumerate(DataLoader)")


TPU = SAMPLE.with_name("decoder_tpu_synthetic.xplane.pb")
CPU = SAMPLE.with_name("mlp_jax_cpu.xplane.pb")


def test_a_profile_has_the_tables_that_it_has_rows_for():
    """A TPU has no grid to launch; compiled programs that ran on no device have neither HLO rows nor framework ops of one."""
    assert not {"launch", "counter"} & set(views_of(open_profile(TPU, cache=False)))
    assert {"hlo", "framework"} <= set(views_of(open_profile(TPU, cache=False)))
    assert not {"hlo", "framework", "kernel", "gap"} & set(views_of(open_profile(CPU, cache=False), works=False))


async def test_a_launch_leads_to_the_slices_of_its_kernel():
    app = RooftermApp([str(SAMPLE)])
    async with app.run_test(size=(100, 24)) as pilot:
        await opened(pilot)
        await press(pilot, "3 v")
        name = first_row(pilot)[1:20].strip()
        await press(pilot, "4")
        assert name[:12] in screen_text(pilot)


async def test_a_tpus_overview_says_duty_cycle_and_input_and_leads_to_all_of_it():
    app = RooftermApp([str(TPU)])
    async with app.run_test(size=(100, 30)) as pilot:
        for _ in range(200):
            if "duty cycle" in screen_text(pilot):
                break
            await pilot.pause(0.05)
        lines = screen_lines(pilot)
        assert any(line.strip().startswith("xprof") for line in lines)
        assert any("input-bound" in line for line in lines)
        place = next(at for at, line in enumerate(lines) if line.strip().startswith("input"))
        for _ in range(20):
            if screen_lines(pilot)[place].startswith(">"):
                break
            await press(pilot, "j")
        await press(pilot, "enter")
        assert "XProf's overview and input pipeline" in screen_text(pilot)
        assert "duty cycle" in screen_text(pilot)


def test_a_share_says_in_details_what_it_is_a_share_of():
    shares = {column.title for columns in COLUMNS.values() for column in columns if column.label.startswith("%")}
    assert {title for title in shares if not title.startswith("% of ")} == {"change %"}
    row = {"name": "gemm", "pct": 12.5, "pct_of_roof": 71.0}
    told = {fact.label: fact.value for fact in row_details("kernel", row).facts}
    assert (told["% of total"], told["% of roof"]) == ("12.5%", "71.0%")
