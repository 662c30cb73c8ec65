"""`recalld bench`: the command line of the measurements."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from recalld.daemon.commands.common import USAGE, CommandError, JsonOption, checked_url, one_blas_thread

app = typer.Typer(
    help="Measure quality, latency and growth.\n\nEach starts a daemon of its own in a temporary home.",
    no_args_is_help=True,
)

RuntimeOption = Annotated[str, typer.Option("--runtime", help="Runtime of the daemon it starts: ray or inline.")]
SettingOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of the daemon it starts; may be repeated."),
]

MeasuredUrlOption = Annotated[
    str | None,
    typer.Option("--url", help="Measure the daemon at this URL instead of starting one.", show_default=False),
]


def checked_settings(runtime: str, pairs: list[str] | None) -> dict[str, str]:
    """The settings of the daemon to start. Raises here what it would refuse."""
    from recalld.daemon.commands.serve import assignments
    from recalld.daemon.settings import load

    assigned = assignments(pairs or [])
    load({}, None, {"runtime": runtime}, assigned, warnings=[])
    return {"runtime": runtime, **assigned}


def check(budget: str, url: str | None) -> None:
    """Raise a usage error for what a recall or the network would refuse later."""
    if budget not in ("low", "mid", "high"):
        raise CommandError("--budget is low, mid or high.", USAGE)
    if url is not None:
        checked_url(url)


@app.command()
def locomo(
    file: Annotated[Path, typer.Argument(help="A LoCoMo-shaped file: a list of {sample_id, conversation, qa}.")],
    form: Annotated[
        str,
        typer.Option(
            help="document: a session in one call; single: a turn a call, no document; append: a turn appended;"
            " session: a session as one text."
        ),
    ] = "document",
    split: Annotated[
        str, typer.Option(help="tune: the first two of every five conversations; held: the others; all.")
    ] = "all",
    date_suffix: Annotated[
        str, typer.Option(help="Embed texts with their date behind them: on, off, both (side by side) or default.")
    ] = "default",
    minutes_apart: Annotated[
        float,
        typer.Option(min=0, help="Minutes between the turns of a session; 0 gives all of them the session's own time."),
    ] = 0.0,
    extraction: Annotated[
        str,
        typer.Option(help="Extraction mode, default (what the settings say), or both: that beside verbatim turns."),
    ] = "both",
    baselines: Annotated[bool, typer.Option(help="Also rank by BM25, by cosine and by their fusion.")] = True,
    questions: Annotated[int, typer.Option(min=0, help="Questions asked of each conversation; 0 asks all.")] = 0,
    conversations: Annotated[int, typer.Option(min=0, help="Only the first conversations; 0 takes all.")] = 0,
    budget: Annotated[str, typer.Option(help="Budget of each recall: low, mid or high.")] = "mid",
    runtime: RuntimeOption = "inline",
    setting: SettingOption = None,
    url: MeasuredUrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Retrieval quality: the share of a question's evidence turns that recall finds.

    Every conversation goes into a bank of its own over the HTTP API. The file is not part of the project; anyone who
    has fetched the data can run it.

    Example:

      recalld bench locomo locomo10.json --split held
    """
    if form not in ("document", "single", "append", "session"):
        raise CommandError("--form is document, single, append or session.", USAGE)
    if extraction not in ("default", "both", "concise", "verbose", "custom", "verbatim", "chunks"):
        raise CommandError("--extraction is default, both or an extraction mode.", USAGE)
    if url is not None and extraction not in ("default", "both"):
        raise CommandError("--extraction needs a daemon of its own: leave --url out.", USAGE)
    if date_suffix not in ("on", "off", "both", "default"):
        raise CommandError("--date-suffix is on, off, both or default.", USAGE)
    if split not in ("tune", "held", "all"):
        raise CommandError("--split is tune, held or all.", USAGE)
    check(budget, url)
    one_blas_thread()
    import recalld.daemon.bench.locomo as measure
    from recalld.daemon.bench.report import show

    settings = checked_settings(runtime, setting)
    plan = measure.Plan(
        file,
        form,
        split,
        baselines,
        questions,
        budget,
        settings,
        url,
        minutes_apart,
        date_suffix,
        # The modes of a daemon given by URL are its own affair.
        "default" if url is not None else extraction,
        conversations,
    )
    show(asyncio.run(measure.run(plan)), as_json)


@app.command()
def reflect(
    file: Annotated[Path, typer.Argument(help="A LoCoMo-shaped file: a list of {sample_id, conversation, qa}.")],
    split: Annotated[
        str, typer.Option(help="tune: the first two of every five conversations; held: the others; all.")
    ] = "held",
    questions: Annotated[int, typer.Option(min=0, help="Questions asked of each conversation; 0 asks all.")] = 0,
    conversations: Annotated[int, typer.Option(min=0, help="Only the first conversations; 0 takes all.")] = 0,
    budget: Annotated[str, typer.Option(help="Budget of each recall: low, mid or high.")] = "mid",
    runtime: RuntimeOption = "inline",
    setting: SettingOption = None,
    url: MeasuredUrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answers without a model: gold words in what they cite, dates, and what is said not to be found.

    The floor under which nothing counts as found was set on the split tune; held was never looked at for it.

    Example:

      recalld bench reflect locomo10.json --split held
    """
    if split not in ("tune", "held", "all"):
        raise CommandError("--split is tune, held or all.", USAGE)
    check(budget, url)
    one_blas_thread()
    import recalld.daemon.bench.reflect as measure
    from recalld.daemon.bench.report import show

    settings = checked_settings(runtime, setting)
    plan = measure.Plan(file, split, questions, conversations, budget, settings, url)
    show(asyncio.run(measure.run(plan)), as_json)


@app.command()
def extract(
    files: Annotated[list[Path], typer.Argument(help="Files of labelled items, one JSON object a line.")],
    mode: Annotated[str, typer.Option(help="Extraction mode: concise, verbose, custom or verbatim.")] = "concise",
    item: Annotated[
        list[str] | None, typer.Option("--item", metavar="ID", help="Only this item; may be repeated.")
    ] = None,
    totals_only: Annotated[bool, typer.Option("--totals-only", help="Figures without the misses.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Local extraction on labelled items: dates, speakers, polarity, networks, entities, splits, junk; and every miss.

    Example:

      recalld bench extract tests/extract/labelled/tuning.jsonl
    """
    if mode not in ("concise", "verbose", "custom", "verbatim"):
        raise CommandError("--mode is concise, verbose, custom or verbatim.", USAGE)
    one_blas_thread()
    import recalld.daemon.bench.extraction as measure
    from recalld.daemon.bench.report import show

    show(measure.run(measure.Plan(tuple(files), mode, tuple(item or ()), totals_only)), as_json)


@app.command()
def latency(
    units: Annotated[int, typer.Option(min=1, help="Units in the bank.")] = 6000,
    recalls: Annotated[int, typer.Option(min=1, help="Recalls of each measurement.")] = 400,
    clients: Annotated[int, typer.Option(min=1, help="Clients of the measurement under load.")] = 8,
    budget: Annotated[str, typer.Option(help="Budget of each recall: low, mid or high.")] = "mid",
    runtime: RuntimeOption = "ray",
    setting: SettingOption = None,
    url: MeasuredUrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recall over HTTP beside the bare query embedding of the same run: alone, beside a retain, and with many clients.

    Example:

      recalld bench latency --runtime inline
    """
    check(budget, url)
    one_blas_thread()
    import recalld.daemon.bench.latency as measure
    from recalld.daemon.bench.report import show

    settings = checked_settings(runtime, setting)
    plan = measure.Plan(units, recalls, clients, budget, settings, url)
    show(asyncio.run(measure.run(plan)), as_json)


@app.command()
def scale(
    units: Annotated[str, typer.Option(help="Sizes of the banks, separated by commas.")] = "10000,100000,1000000",
    recalls: Annotated[int, typer.Option(min=1, help="Recalls of each measurement.")] = 200,
    runtime: RuntimeOption = "inline",
    setting: SettingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Growth: banks of made-up units; latency in the engine and over HTTP, build time, disk and memory by size.

    Example:

      recalld bench scale --units 10000,100000
    """
    try:
        sizes = [int(one.replace("_", "")) for one in units.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise CommandError("--units is a list of numbers, such as 10000,100000.", USAGE)
    one_blas_thread()
    import recalld.daemon.bench.scale as measure
    from recalld.daemon.bench.report import show

    settings = checked_settings(runtime, setting)
    show(asyncio.run(measure.run(measure.Plan(sizes, recalls, settings))), as_json)
