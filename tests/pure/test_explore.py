"""The explorer: data, and pages in a real browser."""

from __future__ import annotations

import json
import random
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import isthmus
from browser import Browser, find
from isthmus import redistribution_schedule as redistribution
from isthmus.check import sweep
from isthmus.collectives.records import COLLECTIVES
from isthmus.cost.machines import load
from isthmus.cost.placement import MACHINE
from isthmus.cost.recorded import of_events
from isthmus.explore.page import data, write
from isthmus.explore.run import runs
from isthmus.export import chrome
from isthmus.redistribution.layouts import Layout
from isthmus.schedules.program import buffer_size
from isthmus.schedules.registry import (
    algorithms,
    collectives,
    resolve,
)
from isthmus.schedules.schedule import Schedule
from isthmus.verify import reference_machine as machine
from isthmus.verify.marks import blank, marks
from sampling import LONG, some

SEED = 26
MIB = 1 << 20


@cache
def zoo_of(each: int, most: int = 4) -> list[Schedule]:
    """Schedules of every algorithm, with random sizes, options and placements."""
    rng, cases_of_algorithm = random.Random(SEED), {}
    for case in sweep.cases(most, SEED):
        if len(COLLECTIVES[case.collective].ranks(case.sizes)) > 2:
            continue  # of more groups there is no page
        key = case.collective, resolve(case.collective, case.algorithm)[0].name
        cases_of_algorithm.setdefault(key, []).append(case)
    example = []
    for cases in cases_of_algorithm.values():
        rng.shuffle(cases)
        for case in cases[:each]:
            schedule = isthmus.schedule(case.collective, case.algorithm, **case.sizes)
            try:
                schedule.all_ranks()
                example.append(schedule)
            except ValueError:  # a stage that declines these sizes
                assert "+" in case.algorithm
    return example


def reference(example):
    """The contents of every buffer after a run on the reference machine: ranks, then
    nodes."""
    programs, mark = example.all_ranks(), example.contract.mark
    nodes = example.nodes or tuple(range(example.n))
    shared = {}
    for node, rounds in zip(nodes, programs, strict=True):
        size = max(buffer_size(rounds, "node"), len(shared.get(node, ())))
        shared[node] = blank(size, mark)
    memory = []
    for r, rounds in enumerate(programs):
        own = {name: buf.copy() for name, buf in example.contract.before(r).items()}
        own["tmp"] = blank(buffer_size(rounds, "tmp"), mark)
        memory.append({**own, "node": shared[nodes[r]]})
    machine.run(programs, memory, nodes)
    cells = [held.get(b, ()) for held in memory for b in ("send", "recv", "tmp")]
    return [elements(buf) for buf in [*cells, *shared.values()]]


def elements(buf):
    """Each written element by place: its index, and the contributing ranks."""
    contributors = {}
    for i, mark in enumerate(buf):
        lo, hi = int(mark["lo"]), int(mark["hi"])
        if lo < 0:
            continue
        who = set(range(lo, hi))
        if "who" in mark.dtype.names:
            words = mark["who"].tolist()
            who = {r for r in who if words[r // 64] >> r % 64 & 1}
        contributors[i] = int(mark["index"]), who
    return contributors


def shown(state):
    """Each written element of a page's state, in the form of `elements`."""
    return [
        {
            start + i: (index + i, {r for lo, hi in who for r in range(lo, hi)})
            for start, size, index, who in held
            for i in range(size)
        }
        for held in state
    ]


def test_runs_are_what_lies_in_a_row():
    buf = np.concatenate([marks(3, 2), blank(2), marks(3, 4)[2:], marks(4, 1)])
    assert runs(buf) == [0, 2, 0, 3, 4, 4, 2, 2, 3, 4, 6, 1, 0, 4, 5]
    assert runs(blank(3)) == runs(blank(0)) == []


def test_all_messages_of_a_timeline_have_their_step():
    for example in zoo_of(each=10) if LONG else some(zoo_of(each=1), 6):
        run = data([example])["runs"][0]
        for line in run["timelines"]:
            assert line["linked"], (
                example.collective,
                example.algorithm,
                example.sizes,
            )
            sent = [len(step.get("messages", ())) for step in run["steps"]]
            assert np.bincount(line["step"], minlength=len(sent)).tolist() == sent


@pytest.mark.parametrize(
    "collective, algorithm, sizes",
    [
        ("inter_allgather", "root_gathering", {"p": 32, "q": 32, "ka": 60, "kb": 6}),
        ("inter_allgather", "direct", {"p": 32, "q": 32, "ka": 600, "kb": 600}),
        ("alltoall", "bruck", {"p": 64, "k": 30}),
        ("allreduce", "node_aware", {"p": 64, "m": 640}),
    ],
)
def test_a_page_of_64_ranks_has_less_than_2_mb(tmp_path, collective, algorithm, sizes):
    nodes = {"nodes": [r // 8 for r in range(64)]} if "node" in algorithm else {}
    schedule = isthmus.schedule(collective, algorithm, **sizes, **nodes)
    assert schedule.explore(tmp_path / "page.html").stat().st_size < 2e6


def test_a_page_needs_no_network(tmp_path):
    schedule = isthmus.schedule("bcast", "binomial", p=3, m=6, root=0)
    text = schedule.explore(tmp_path / "page.html").read_text("utf-8")
    plain = text.replace("http://www.w3.org/", "")
    licences = plain.partition("Their licences:")[2].partition("-->")[0]
    plain = plain.replace(licences, "")
    assert "http://" not in plain and "https://" not in plain and "import " not in plain
    assert "Permission to use, copy, modify, and/or distribute" in licences


def test_what_cannot_be_shown_says_so(tmp_path):
    many = isthmus.schedule("bcast", "binomial", p=1025, m=6, root=0)
    with pytest.raises(ValueError, match="1025 ranks: a page shows 1024"):
        many.explore(tmp_path / "page.html")
    two = isthmus.schedule("bcast", "binomial", p=2, m=6, root=0)
    three = isthmus.schedule("bcast", "binomial", p=3, m=6, root=0)
    line = three.simulate(MACHINE, record=True)
    run = of_events(line.events, line.finish)
    with pytest.raises(ValueError, match="real: a run of 3 ranks, not of 2"):
        two.explore(tmp_path / "page.html", recorded={"real": run})
    with pytest.raises(ValueError, match="no schedule"):
        write(tmp_path / "page.html", [])


def test_a_recorded_trace_is_read_as_it_was_written(tmp_path):
    schedule = isthmus.schedule("inter_allgather", "segmented", p=3, q=2, ka=6, kb=6)
    line = schedule.simulate(MACHINE, record=True)
    run = of_events(line.events, line.finish)
    chrome.write(tmp_path / "run.json", run, (3, 2))
    recorded = chrome.read(tmp_path / "run.json")
    for name in ("source", "target", "size", "round"):
        assert np.array_equal(getattr(recorded.events, name), getattr(run.events, name))
    assert recorded.events.start == pytest.approx(run.events.start)
    assert recorded.finish == pytest.approx(run.finish)
    chrome.write(tmp_path / "run.json", line, (3, 2))
    with pytest.raises(ValueError, match="a simulated run"):
        chrome.read(tmp_path / "run.json")
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(ValueError, match="not a trace"):
        chrome.read(tmp_path / "run.json")


def test_the_command(tmp_path, capsys):
    pytest.importorskip("typer")
    from isthmus.cli.app import run

    path = tmp_path / "page.html"
    words = "inter_allgather segmented balanced --p 3 --q 2 --machine cori-like"
    assert run(["explore", *words.split(), "-o", str(path)]) == 0
    assert capsys.readouterr().out.strip() == str(path)
    assert "balanced" in path.read_text("utf-8")
    assert run(["explore", "bcast", "nonsense", "-o", str(path)]) == 2
    assert "no algorithm 'nonsense'" in capsys.readouterr().err


def test_a_recorded_run_as_a_page(tmp_path):
    pytest.importorskip("typer")
    from isthmus.cli import record

    case = record.case_of("allgather", (3, 2), "64", None)
    line = record.simulated(case, "segmented+ring", "cori-like")
    runs = {"MPI 5": of_events(line.events, 2 * line.finish)}
    path = tmp_path / "run.html"
    record.write_page(path, case, "segmented+ring", "cori-like", runs)
    text = path.read_text("utf-8")
    assert '"name":"MPI 5","recorded":true,"linked":true' in text
    assert '"name":"cori-like","recorded":false,"linked":true' in text


def test_the_gallery_has_every_algorithm_of_a_paper():
    page = (Path(__file__).parents[2] / "docs" / "gallery.md").read_text("utf-8")
    shown = set(re.findall(r"^isthmus explore (\w+) '?(\w+)", page, re.MULTILINE))
    embedded = {
        (entry.name, entry.paper)
        for collective in collectives()
        for entry in algorithms(collective)
        if (collective.removeprefix("inter_").removeprefix("multi_"), entry.name)
        in shown
    }
    papers = {
        (entry.name, entry.paper)
        for collective in collectives()
        for entry in algorithms(collective)
        if re.search(r"\d{4}", entry.paper)
    }
    assert papers <= embedded


# in a browser

needs_browser = pytest.mark.skipif(
    find() is None,
    reason="no browser: install chromium, or name one in the variable CHROME",
)


@pytest.fixture(scope="module")
def browser():
    with Browser() as program:
        yield program


@pytest.fixture
def show(browser, tmp_path):
    """A function that writes a page and opens the page; at the end, a page must have no
    errors."""
    pages = []

    def open_(schedules, fragment="", **options):
        path = write(tmp_path / "page.html", schedules, **options)
        page = browser.open(path, fragment)
        page.wait("document.body?.classList.contains('ready')")
        pages.append(page)
        return page

    yield open_
    for page in pages:
        assert not page.errors
        page.close()


@pytest.fixture(scope="module")
def zoo(browser, tmp_path_factory):
    """Schedules of every algorithm, and a page of all schedules."""
    example = zoo_of(each=8) if LONG else some(zoo_of(each=1), 2)
    page = browser.open(write(tmp_path_factory.mktemp("zoo") / "page.html", example))
    page.wait("document.body?.classList.contains('ready')")
    yield example, page
    assert not page.errors
    page.close()


@needs_browser
def test_every_algorithm_ends_as_on_the_reference_machine(zoo):
    example, page = zoo
    for k, schedule in enumerate(example):
        state, done = page.run(
            f"explorer.set({{a: {k}, step: 1e9}}), [explorer.state(),"
            f" explorer.runs[{k}].ranks.map((_, r) =>"
            " explorer.panels[0].replay.done(explorer.view.step, r))]"
        )
        label = schedule.collective, schedule.algorithm, schedule.sizes
        assert shown(state) == reference(schedule), label
        assert False not in done, label


@needs_browser
def test_keys_and_buttons_step(show):
    schedule = isthmus.schedule("inter_allgather", "segmented", p=6, q=2, ka=6, kb=6)
    page = show([schedule], "step=0")
    last = page.run("explorer.last")
    assert last == 4 and page.run("explorer.view.step") == 0
    for key, step in [("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1)]:
        page.press(key)
        assert page.run("explorer.view.step") == step
    page.press("End")
    assert page.run("explorer.view.step") == last
    assert page.run("document.querySelectorAll('.done.yes').length") == 8
    page.click("#button-first")
    assert page.run("explorer.view.step") == 0
    assert page.run("document.querySelectorAll('.done.yes').length") == 0
    page.press("+")
    page.press("+")
    assert page.run("document.getElementById('speed').value") == "4"
    page.press(" ")
    page.wait(f"explorer.view.step === {last} && !explorer.player.timer")
    page.wait("document.querySelectorAll('.done.yes').length === 8")
    assert shown(page.run("explorer.state()")) == reference(schedule)


@needs_browser
def test_a_click_on_a_block_tells_its_way(show):
    schedule = isthmus.schedule("inter_allgather", "segmented", p=6, q=2, ka=6, kb=6)
    page = show([schedule], "step=4")
    page.click(".cell[data-cell='1'] .block")
    way = page.run("document.querySelector('.way-box').innerText")
    assert "How the data of b0 came to recv of a0" in way.replace("\n", " ")
    assert page.run("explorer.view.block.cell") == 1
    steps = page.run(
        "explorer.panels[0].way(4, explorer.view.block).moves.map(m =>"
        " [m.step, m.source, m.target, m.parts.reduce((n, x) => n + x.to[2], 0)])"
    )
    inside = """[...document.querySelectorAll('.badge circle')].every(x => {
        const box = x.closest('svg').getBoundingClientRect();
        return x.getBoundingClientRect().left >= box.left; })"""
    assert page.run(inside)
    # b0's block in thirds: its own from b0, the others through its team
    assert next(x for x in steps if x[0] == 1) == [1, 6, 0, 2]
    assert all(target in (0, 1, 2, 5) for _, _, target, _ in steps)
    page.press("Escape")
    assert page.run("document.querySelector('.way-box').hidden")
    page.press("n")
    assert page.run("explorer.view.block.cell") == 0


@needs_browser
def test_the_way_of_a_block_begins_with_its_contributors(zoo):
    example, page = zoo
    for k in some(range(len(example)), 3):
        # every block of the end: the elements that its way begins with are its own
        wrong = page.run(
            f"""(() => {{
            explorer.set({{a: {k}, step: 1e9}});
            const panel = explorer.panels[0], first = panel.replay.state(0);
            return panel.blocks(1e9).filter((block) => {{
              const [run] = panel.replay.load(panel.replay.state(panel.last),
                [[block.cell, block.start, block.size]]);
              const who = new Set(run[3].flatMap(([lo, hi]) =>
                Array.from({{length: hi - lo}}, (_, i) => lo + i)));
              const way = panel.way(panel.last, block);
              const seen = panel.replay.load(first, way.begin).map((x) => x[3][0][0]);
              return seen.some((r) => !who.has(r)) || new Set(seen).size !== who.size;
            }}).length;
            }})()"""
        )
        assert wrong == 0, (
            example[k].collective,
            example[k].algorithm,
            example[k].sizes,
        )


@needs_browser
def test_the_address_holds_the_view(show):
    names = ("segmented", "balanced", "root_gathering")
    sizes = {"p": 6, "q": 2, "ka": 60, "kb": 60}
    example = [isthmus.schedule("inter_allgather", name, **sizes) for name in names]
    machines = {"slow": load("gigabit-ethernet"), "fast": load("hdr-infiniband")}
    fragment = (
        "algorithm=balanced&beside=segmented&machine=fast&step=2&block=a:1:0"
        "&colour=late&theme=dark&p=7"
    )
    page = show(example, fragment, machines=machines)
    view = page.run("explorer.view")
    assert (view["a"], view["b"], view["step"]) == (1, 0, 2)
    assert (view["machine"], view["colour"]) == ("fast", "late")
    assert page.run("document.querySelectorAll('.panel').length") == 2
    assert page.run("document.documentElement.dataset.theme") == "dark"
    assert "p = 7" in page.run("document.getElementById('notice').textContent")
    before = page.run("location.hash")
    assert "beside=segmented" in before and "block=a" in before and "p=6" in before
    page.press("ArrowRight")
    after = page.run("location.hash")
    assert "step=3" in after and after != before
    page.run(f"location.hash = {json.dumps(before)}")
    page.wait("explorer.view.step === 2 && explorer.view.block !== null")


@needs_browser
def test_recorded_runs_stand_beside_simulated_ones(show):
    schedule = isthmus.schedule("inter_allgather", "segmented", p=3, q=2, ka=60, kb=60)
    line = schedule.simulate(MACHINE, record=True)
    run = of_events(line.events, 3 * line.finish)
    page = show([schedule], "step=1", recorded={"MPI": run})
    heads = page.run(
        "[...document.querySelectorAll('.timeline h3')].map(x => x.innerText)"
    )
    assert heads == ["Simulated: 2 µs, 12 GB/s", "Recorded: MPI"]
    assert page.run("document.body.dataset.colour") == "late"
    late = page.run("explorer.panels[0].timelines[1].late")
    ends = np.array(line.events.end)
    step = np.array(page.run("explorer.panels[0].shown[1].step"))
    first = np.array([ends[step == k].min() for k in step])
    assert late == pytest.approx((ends - first).tolist(), abs=line.time / 1e5)


@needs_browser
def test_a_redistribution_shows_whose_every_element_was(show):
    small = redistribution(
        Layout.blocks((24, 12), (4, 2)), Layout.blocks((24, 12), (3, 3))
    )
    page = show([small], "step=99")
    own = slice(3 * small.n)
    assert shown(page.run("explorer.state()"))[own] == reference(small)[own]
    # of many narrow runs, the share of each rank: the four that b4 is of
    large = redistribution(
        Layout.blocks((1200, 600), (4, 2)), Layout.blocks((1200, 600), (3, 3))
    )
    page = show([large], "step=99")
    parts = f".cell[data-cell='{3 * (8 + 4) + 1}'] .column"
    colours = page.run(
        f"[...new Set([...document.querySelectorAll({json.dumps(parts)})]"
        ".map(x => x.getAttribute('fill')))]"
    )
    assert len(colours) == 4
    assert set(colours) <= set(page.run("explorer.panels[0].view.colours.slice(0, 8)"))
    assert page.run("document.querySelectorAll('svg.ranks *').length") < 6000


@needs_browser
def test_the_array_of_a_redistribution_is_shown_in_two_dimensions(show):
    shape = 240, 180
    before, after = Layout.blocks(shape, (4, 2)), Layout.blocks(shape, (3, 3))
    page = show([redistribution(before, after)], "step=1")
    pixel = (
        "(name, row, column) => { const x = explorer.panels[0].grid;"
        " const at = (k, n, pixels) => Math.floor((k + 0.5) * pixels / n);"
        " return x[name].at(at(column, 180, x.wide), at(row, 240, x.tall)); }"
    )
    owner = {}
    for name, layout, base in (("has", before, 0), ("wants", after, 8)):
        rows, columns = layout.mesh
        middles = [
            (r, int((i + 0.5) * shape[0] / rows), int((j + 0.5) * shape[1] / columns))
            for r, (i, j) in enumerate(np.ndindex(rows, columns))
        ]
        for r, y, x in middles:
            assert page.run(f"({pixel})('{name}', {y}, {x})") == base + r
            owner[name, y, x] = r
    share = (
        "(x => x.filter(r => r >= 0).length / x.length)"
        "(explorer.panels[0].grid.arrived.pixels)"
    )
    filled = [page.run(f"explorer.set({{step: {k}}}), {share}") for k in range(30)]
    assert filled[0] == 0 and filled[-1] == 1 and filled == sorted(filled)
    assert 0 < filled[1] < 1
    # in the end, whose an element was is who had it
    for name, y, x in owner:
        if name == "has":
            assert page.run(f"({pixel})('arrived', {y}, {x})") == owner[name, y, x]
    page.click("canvas.grid")  # between both maps there is nothing to pick
    assert page.run("explorer.view.block") is None
    grid = "explorer.panels[0].grid"
    page.run(f"{grid}.pick({{offsetX: {grid}.left[1] + 1, offsetY: 30}})")
    cell = page.run("explorer.view.block.cell")
    assert page.run(f"explorer.panels[0].view.cellName({cell})") == "recv of b0"


@needs_browser
def test_an_array_of_one_dimension_is_no_map(show):
    lines = Layout.blocks((24,), (4,)), Layout.blocks((24,), (3,))
    page = show([redistribution(*lines)])
    assert page.run("document.querySelectorAll('canvas.grid').length") == 0


@needs_browser
def test_many_ranks_are_a_matrix(show):
    schedule = isthmus.schedule(
        "inter_allgather", "segmented", p=192, q=64, ka=60, kb=60
    )
    page = show([schedule], "step=2")
    assert page.run("document.querySelectorAll('.matrix canvas').length") == 1
    assert page.run("document.querySelectorAll('svg.ranks').length") == 0
    sent = page.run("explorer.panels[0].view.now.size")
    events = schedule.simulate(MACHINE, record=True).events
    assert sent == np.count_nonzero(events.round == 1)
    page.press("End")
    assert page.run("explorer.view.step") == events.round.max() + 1


@needs_browser
def test_light_and_dark(show):
    schedule = isthmus.schedule("allreduce", "node_aware", p=4, m=8, nodes=[0, 0, 1, 1])
    page = show([schedule], "step=2")
    ground = "getComputedStyle(document.body).backgroundColor"
    page.media(prefers_color_scheme="light")
    light = page.run(ground)
    page.media(prefers_color_scheme="dark")
    dark = page.run(ground)
    assert light != dark
    page.press("d")
    assert page.run(ground) == light
    assert page.run("document.querySelectorAll('.node').length") == 2


@needs_browser
def test_a_picture_can_be_taken(show, tmp_path):
    schedule = isthmus.schedule("bcast", "circulant(n=4)", p=5, m=8, root=0)
    page = show([schedule], "step=3")
    page.size(900, 600)
    page.picture(Path(tmp_path, "page.png"))
    assert Path(tmp_path, "page.png").stat().st_size > 5000


@needs_browser
def test_a_page_opens_where_there_is_something_to_see(show):
    page = show(
        [isthmus.schedule("inter_allgather", "segmented", p=3, q=2, ka=4, kb=4)]
    )
    assert page.run("explorer.view.step") == 1
    assert page.run("document.querySelectorAll('.arrow').length") > 0


@needs_browser
def test_the_load_of_every_link_is_shown_over_time(show):
    """Loads add up to the time of messages; between two nodes is a single link."""
    schedule = isthmus.schedule(
        "inter_allgather", "segmented", p=3, q=2, ka=4096, kb=4096
    )
    page = show([schedule])
    page.run("document.querySelector('.links').open = true")
    links = page.run("explorer.panels[0].loads[0].links")
    line = page.run("explorer.panels[0].main")
    ends = set(zip(line["source"], line["target"], strict=True))
    assert len(links) == len(ends)
    assert sum(link["bytes"] for link in links) == sum(line["size"])
    assert all(0 <= x <= 1 for link in links for x in link["load"])
    busy = sum(map(sum, (link["load"] for link in links))) / 72
    spent = sum(line["end"]) - sum(line["start"])
    assert busy == pytest.approx(spent * line["tick"] / line["time"], rel=1e-3)
    page.wait("document.querySelector('.links canvas').height > 10")
    page.point(".links canvas")
    page.wait("/busy about/.test(document.getElementById('tip').textContent)")
    placed = isthmus.schedule(
        "allgatherv", "node_aware", counts=[8] * 4, nodes=[0, 0, 1, 1]
    )
    page = show([placed])
    names = page.run("explorer.panels[0].loads[0].links.map(x => x.name)")
    assert sorted(names) == ["node 0 → node 1", "node 1 → node 0"]


@needs_browser
def test_a_rank_or_a_block_is_found(show):
    page = show(
        [isthmus.schedule("inter_allgather", "segmented", p=6, q=2, ka=6, kb=6)]
    )
    ask = "(words => {{ const x = document.getElementById('find'); x.value = words; "
    ask += "x.dispatchEvent(new Event('change')); "
    ask += "return document.getElementById('notice').textContent; }})('{}')"
    assert page.run(ask.format("b1 in a4")) == ""
    block = page.run("explorer.view.block")
    names = "explorer.panels[0].view.cellName(explorer.view.block.cell)"
    assert block["panel"] == "a" and "a4" in page.run(names)
    assert page.run(ask.format("b1")) == ""
    assert page.run("document.querySelector('.found').textContent") == "b1"
    assert "no such rank" in page.run(ask.format("z9"))
    assert "No block of b0" in page.run(ask.format("b0 in a5"))
    page.run(ask.format(""))
    assert page.run("explorer.view.block") is None


@needs_browser
@pytest.mark.parametrize("width", [400, 1280])
def test_all_of_a_page_can_be_used_on_a_phone_and_on_a_desk(show, width):
    schedule = isthmus.schedule(
        "inter_allgather", "segmented", p=6, q=2, ka=6144, kb=6144
    )
    page = show(
        [
            schedule,
            isthmus.schedule("inter_allgather", "balanced", p=6, q=2, ka=9, kb=9),
        ]
    )
    page.size(width, 800)
    page.wait(f"document.getElementById('panels').clientWidth <= {width}")
    page.wait("explorer.width === document.getElementById('panels').clientWidth")
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    inside = (
        "[...document.querySelectorAll('select, .buttons button, #find, #slider, "
        ".ranks .name')].filter(x => x.getClientRects().length)"
        ".every(x => { const b = x.getBoundingClientRect(); "
        "return b.left >= 0 && b.right <= innerWidth; })"
    )
    assert page.run(inside)
    assert page.run("document.getElementById('speed').getClientRects().length") == 1
    assert "6 KiB" in page.run("document.getElementById('sizes').textContent")


def test_messages_of_a_redistribution_come_in_the_order_they_are_sent():
    shape = 24, 24
    before, after = Layout.blocks(shape, (4, 2)), Layout.blocks(shape, (3, 3))
    example = redistribution(before, after)
    (run,) = data([example])["runs"]
    steps = [step["messages"] for step in run["steps"] if "messages" in step]
    assert len(steps) > 1
    for messages in steps:
        sources = [message[0] for message in messages]
        assert len(sources) == len(set(sources))
    (line,) = run["timelines"]
    assert line["linked"] and len(line["source"]) == sum(map(len, steps))
    for rank in range(example.n):
        own = [
            (line["start"][i], line["step"][i])
            for i, source in enumerate(line["source"])
            if source == rank
        ]
        assert [step for _, step in sorted(own)] == sorted(step for _, step in own)
