"""``traceanalyzer tune export``: rules for vLLM as a configuration file, a patch or a plugin."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from traceanalyzer.cli.common import emit_json, json_option, show_warnings
from traceanalyzer.commands.tune.config_text import command_lines
from traceanalyzer.commands.tune.export.patch import (
    find_opt_flags,
    keys_beyond_plugin,
    known_keys,
    make_patch,
    vendor_of,
)
from traceanalyzer.commands.tune.export.result import ExportKind, TuneExportDocument
from traceanalyzer.commands.tune.options import answer, chosen_policy, pairs, policy_options, sweep_argument
from traceanalyzer.commands.tune.policy.compute import Policy
from traceanalyzer.declare import part_of
from traceanalyzer.files import write_whole
from traceanalyzer.problems import TraceError


def _export_options(*, in_rows: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command SWEEP, the options of a policy, --leave-out and --json; it receives the policy made of them.

    Args:
        in_rows: whether m has to count rows, as triton_kernels' m does.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_policy(
            sweep: Path, top_k: int | None, max_regret: float, where: Sequence[str], leave_out: Sequence[str],
            **others: Any,
        ) -> None:  # fmt: skip
            policy, warnings = chosen_policy(sweep, top_k, max_regret, where)
            show_warnings(warnings)
            if in_rows and policy.rows != "rows":
                reason = "has the concurrency only, and triton_kernels' m is concurrency x top-k; pass --top-k"
                raise TraceError(policy.source, reason)
            if top_k is not None:
                policy = replace(policy, shape={**policy.shape, "top_k": top_k})
            rules = tuple(replace(rule, config=rule.config.without(leave_out)) for rule in policy.rules)
            if not all(rule.config for rule in rules):
                raise click.UsageError("--leave-out leaves a rule nothing to set")
            command(policy=replace(policy, rules=rules), **others)

        leave_out_option = click.option(
            "--leave-out", multiple=True, metavar="KEY", help="A parameter left to the kernel; repeatable."
        )
        return sweep_argument(policy_options(leave_out_option(json_option(with_policy))))

    return decorate


_vendor_option = click.option(
    "--vendor", type=click.Choice(("amd", "nvidia")), help="Vendor of the GPU, if the sweep does not record it."
)


@click.group()
def export() -> None:
    """Write rules from a sweep, or from a file of tune policy --json, in the form that a server reads."""


@export.command("vllm-moe")
@_export_options(in_rows=False)
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False, path_type=Path),
              help="Folder for VLLM_TUNED_CONFIG_FOLDER.")  # fmt: skip
@click.option("--experts", type=click.IntRange(min=1), help="Experts on one rank.")
@click.option("--n", "n", type=click.IntRange(min=1), help="The experts' intermediate size on one rank.")
@click.option("--device-name", help="Name of the GPU as torch.cuda.get_device_name() returns it.")
@click.option("--dtype", help="Type of quantised weights, such as fp8_w8a8.")
@click.option("--block-shape", metavar="N,K", help="Block of block-wise scales, such as 128,128.")
@click.option("--triton-version", help="Version of Triton that the configurations were measured with.")
@click.option("--set", "sets", multiple=True, metavar="KEY=NUMBER",
              help="Value of a parameter that the sweep does not record; repeatable.")  # fmt: skip
def vllm_moe(
    policy: Policy, as_json: bool, output: Path, experts: int | None, n: int | None, device_name: str | None,
    dtype: str | None, block_shape: str | None, triton_version: str | None, sets: Sequence[str],
) -> None:  # fmt: skip
    """Write vLLM's fused_moe configuration file: the name it looks for, every M pinned to its rule."""
    from traceanalyzer.commands.tune.export.vllm_moe import file_name, moe_document, write_moe_file

    try:
        given = {key: int(value) for key, value in pairs(sets).items()}
    except ValueError:
        raise click.UsageError(f"a value of {', '.join(sets)} is not a whole number") from None
    document = moe_document(policy, triton_version, given)
    name = file_name(policy, experts, n, device_name, dtype, _block_shape(block_shape))
    path = write_moe_file(output, name, document)
    _report("vllm-moe", [path], policy, [f"VLLM_TUNED_CONFIG_FOLDER={_from_here(output)} vllm serve ..."], as_json)


@export.command()
@_export_options(in_rows=True)
@click.option("--triton-kernels", "installed", type=click.Path(exists=True, path_type=Path),
              help="What to patch: opt_flags.py, the triton_kernels folder, or site-packages.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="The patch; without it, stdout.")
@_vendor_option
def patch(policy: Policy, as_json: bool, installed: Path | None, output: Path | None, vendor: str | None) -> None:
    """Write a patch of the installed triton_kernels: the rules at the top of its heuristics.

    Its version is read from the file that is patched; a parameter that this version has no constraint for is an error.
    """
    if installed is None:
        raise click.UsageError("pass the triton_kernels to patch as --triton-kernels (a file or a folder)")
    known = vendor or vendor_of(policy.device)
    if known is None:
        raise click.UsageError("the sweep does not record the GPU's vendor; pass --vendor")
    path = find_opt_flags(installed)
    text = make_patch(policy, _read(path), known, path.resolve().as_posix())
    if output is not None:
        write_whole(output, text)
        _report("patch", [output], policy, [f"patch -p1 -d / < {shlex.quote(str(output))}"], as_json)
    elif as_json:
        emit_json(_document("patch", [], policy, [], text))
    else:
        click.echo(text, nl=False)


@export.command()
@_export_options(in_rows=True)
@click.option(
    "-o", "--output", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder of the package."
)
@click.option("--name", default="vllm_tile_rules", show_default=True, help="Name of the module and of the plugin.")
@click.option(
    "--triton-kernels", "version", help="Version to check for, such as 3.5.0; the plugin checks again itself."
)
@_vendor_option
def plugin(policy: Policy, as_json: bool, output: Path, name: str, version: str | None, vendor: str | None) -> None:
    """Write a vLLM plugin: a small package that applies the rules when vLLM starts."""
    from traceanalyzer.commands.tune.export.plugin import plugin_files, write_plugin

    known = vendor or vendor_of(policy.device)
    if known:
        versions = (version,) if version else ("3.5.0", "newer")
        lacking = [keys_beyond_plugin(policy, known_keys(each, known), known) for each in versions]
        if all(lacking):
            reason = f"triton_kernels cannot set {', '.join(lacking[0])} on {known}; leave them out with --leave-out"
            raise TraceError(policy.source, reason)
    paths = write_plugin(output, plugin_files(policy, name))
    # pip looks a bare name up in the package index; only what has a slash is sure to be a folder.
    folder = str(output) if output.is_absolute() else f"./{output}"
    following = [f"pip install {shlex.quote(folder)}", f"PYTHONPATH={_from_here(output)} vllm serve ..."]
    _report("plugin", paths, policy, following, as_json)


def _block_shape(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    sides = text.split(",")
    if len(sides) != 2 or not all(side.strip().isdecimal() for side in sides):
        raise click.UsageError(f"--block-shape {text!r} is not two numbers such as 128,128")
    return int(sides[0]), int(sides[1])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(str(path), f"cannot be read ({error})") from None


def _document(
    kind: ExportKind, files: Sequence[Path], policy: Policy, steps: Sequence[str], patch: str | None = None
) -> TuneExportDocument:
    given = {"kind": kind, "files": list(map(str, files)), "m_counts": policy.rows, "next": list(steps)}
    return part_of(TuneExportDocument, policy, patch=patch, **given)


def _report(kind: ExportKind, files: Sequence[Path], policy: Policy, steps: Sequence[str], as_json: bool) -> None:
    """Say what was written, and the commands to run next."""
    from traceanalyzer.commands.tune.export import view

    document = _document(kind, files, policy, steps)
    answer(document, as_json, lambda width: view.render(document))
    if not as_json:
        click.echo(command_lines(steps))


def _from_here(path: Path) -> str:
    """A path for a shell that the user may leave this folder from."""
    return shlex.quote(str(path)) if path.is_absolute() else f"$PWD/{shlex.quote(str(path))}"
