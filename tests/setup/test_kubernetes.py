"""Manifests in deploy/kubernetes without a cluster: by the schemas of Kubernetes, and by our own command line.

What cannot be seen here: whether a cluster takes them, and what runs in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer.main
import yaml

from cli.main import app
from ingest.settings import CollectSettings
from kardia import __version__
from kardia.events import DEFAULT_LANES
from stores.locations import Store, folder
from tests.setup.strategic_merge import merged

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
VERSIONS = ("1.32", "1.37")
"""Oldest and newest release of Kubernetes whose schemas are tried: a field that it does not know is refused."""

APPLIED: list[str] = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
RESOURCES = [one for name in APPLIED for one in yaml.safe_load_all((FOLDER / name).read_text())]
SIDECAR: dict[str, Any] = yaml.safe_load((FOLDER / "sidecar.yaml").read_text())
WORKLOADS = {one["metadata"]["name"]: one for one in RESOURCES if one["kind"] in ("StatefulSet", "Deployment")}
PODS: dict[str, dict[str, Any]] = {name: one["spec"]["template"]["spec"] for name, one in WORKLOADS.items()}
CONTAINERS: dict[str, dict[str, Any]] = {name: pod["containers"][0] for name, pod in PODS.items()} | {
    "sidecar": SIDECAR["spec"]["template"]["spec"]["initContainers"][0]
}
SETTINGS: dict[str, str] = next(one for one in RESOURCES if one["kind"] == "ConfigMap")["data"]
NAMED = re.compile(r"\$\(([A-Z_]+)\)")


BROKERS: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "data" / "kafka-statefulset.yaml").read_text())
PATCHED = merged(BROKERS, SIDECAR, VERSIONS[-1])


def _labelled() -> Iterator[tuple[str, dict[str, Any]]]:
    for one in RESOURCES:
        yield f"{one['kind']}/{one['metadata']['name']}", one
    yield "StatefulSet/brokers", BROKERS
    yield "StatefulSet/brokers with sidecar", PATCHED


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("name", "resource"), list(_labelled()), ids=lambda one: one if isinstance(one, str) else "")
def test_kubernetes_knows_every_field(name: str, resource: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(resource, version, strict=True)


@pytest.mark.parametrize(
    "change",
    [{"replica": 2}, {"replicas": "two"}, {"template": {"spec": {"containers": [{"image": "kardia"}]}}}],
)
def test_the_schemas_refuse_what_they_are_there_to_refuse(change: dict[str, Any]) -> None:
    serve = WORKLOADS["kardia-serve"]
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**serve, "spec": {**serve["spec"], **change}}, VERSIONS[-1], strict=True)


def test_all_roles_are_there_and_every_file_is_applied_or_named() -> None:
    assert sorted(container["args"][0] for container in CONTAINERS.values()) == [
        *("collect", "collect", "notify", "serve", "stream")
    ]
    files = {path.name for path in FOLDER.iterdir()}
    assert files == {*APPLIED, "kustomization.yaml", "sidecar.yaml"}
    images = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["images"]
    assert images == [{"name": "kardia", "newTag": __version__}]


@pytest.mark.parametrize("name", sorted(CONTAINERS))
def test_every_command_line_is_understood(name: str) -> None:
    """Options exist, their values have the right types, and what they name is in the map."""
    verb, *words = [NAMED.sub(lambda found: SETTINGS[found[1]], word) for word in CONTAINERS[name]["args"]]
    found = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    with found.make_context(verb, words, resilient_parsing=False) as context:
        assert context.params


def test_every_setting_is_used_and_no_other() -> None:
    named = {key for one in CONTAINERS.values() for word in one["args"] for key in NAMED.findall(word)}
    assert named == {key for key in SETTINGS if not key.startswith("AWS_")}
    assert int(SETTINGS["LANES"]) == CollectSettings.model_fields["lanes"].default == DEFAULT_LANES
    assert isinstance(folder(SETTINGS["TABLES"]), Store), "pods share no disk"
    assert isinstance(folder(SETTINGS["CHECKPOINT"]), Store)
    for name, container in CONTAINERS.items():
        assert not container.get("env"), name
        assert {"configMapRef": {"name": "kardia"}} in container["envFrom"], name


@pytest.mark.parametrize("name", sorted(CONTAINERS))
def test_no_container_may_more_than_it_must(name: str) -> None:
    container = CONTAINERS[name]
    own = container["securityContext"]
    allowed = own | PODS.get(name, {}).get("securityContext", {})
    assert allowed["runAsNonRoot"] is True
    assert allowed["runAsUser"] > 0
    assert allowed["seccompProfile"] == {"type": "RuntimeDefault"}
    assert own["allowPrivilegeEscalation"] is False
    assert own["readOnlyRootFilesystem"] is True
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert {"memory"} <= container["resources"]["limits"].keys()
    if name in PODS:
        assert PODS[name]["automountServiceAccountToken"] is False


@pytest.mark.parametrize("name", sorted(CONTAINERS))
def test_what_is_mounted_is_there_and_what_is_written_is_on_a_volume(name: str) -> None:
    pod = PATCHED["spec"]["template"]["spec"] if name == "sidecar" else PODS[name]
    claims = (PATCHED if name == "sidecar" else WORKLOADS[name])["spec"].get("volumeClaimTemplates", [])
    volumes = {one["name"] for one in pod["volumes"]} | {one["metadata"]["name"] for one in claims}
    mounts = {one["mountPath"]: one for one in CONTAINERS[name]["volumeMounts"]}
    assert {one["name"] for one in mounts.values()} <= volumes
    assert {"/tmp", "/var/lib/kardia"} <= mounts.keys()  # noqa: S108
    for word in CONTAINERS[name]["args"]:
        path = word.partition("=")[2]
        if path.startswith("/"):
            mount = next((place for place in mounts if path.startswith(f"{place}/")), None)
            assert mount, word
            read_only = mounts[mount].get("readOnly", False)
            assert read_only == (not path.startswith("/var/lib/kardia/")), word


@pytest.mark.parametrize("version", VERSIONS)
def test_the_sidecar_takes_nothing_from_the_brokers(version: str) -> None:
    """Merged as kustomize does it: what the brokers had is there as it was, and the collector beside it."""
    before, after = BROKERS["spec"], merged(BROKERS, SIDECAR, version)["spec"]
    pod_before, pod_after = before["template"]["spec"], after["template"]["spec"]
    for key in before.keys() - {"template"}:
        assert after[key] == before[key], key
    for key in pod_before.keys() - {"initContainers", "volumes"}:
        assert pod_after[key] == pod_before[key], key
    for key in ("initContainers", "volumes"):
        assert all(one in pod_after[key] for one in pod_before[key]), key
    assert [one["name"] for one in pod_after["initContainers"]] == ["prepare-volume", "kardia-collect"]


def test_one_job_and_one_notifier_and_probes_that_ask_what_is_served() -> None:
    for name in ("kardia-stream", "kardia-notify", "kardia-collect"):
        assert WORKLOADS[name]["kind"] == "StatefulSet", "no second one before the first is gone"
        assert WORKLOADS[name]["spec"]["replicas"] == 1
    for name, container in CONTAINERS.items():
        port = next(word.partition("=")[2] for word in container["args"] if re.match(r"--(metrics-)?port=", word))
        probes = [probe for key, probe in container.items() if key.endswith("Probe")]
        assert probes or name == "sidecar"
        for probe in probes:
            if "exec" in probe:
                assert f"127.0.0.1:{port}/metrics" in probe["exec"]["command"][-1], name
            else:
                assert container["ports"] == [{"name": probe["httpGet"]["port"], "containerPort": int(port)}], name


def test_labels_select_their_own_pods_only() -> None:
    for one in RESOURCES:
        if one["kind"] == "Service":
            chosen = [
                name
                for name, workload in WORKLOADS.items()
                if one["spec"]["selector"].items() <= workload["spec"]["template"]["metadata"]["labels"].items()
            ]
            assert chosen == [one["metadata"]["name"]]
    for name, workload in WORKLOADS.items():
        assert workload["spec"]["selector"]["matchLabels"] == workload["spec"]["template"]["metadata"]["labels"], name


def test_no_secret_is_inside() -> None:
    for path in FOLDER.iterdir():
        for key, value in re.findall(r"(?im)^\s*(\S*(?:password|token|secret|key)\S*):\s+(\S.*)$", path.read_text()):
            assert key in ("automountServiceAccountToken", "secretName", "secret"), (path.name, key, value)
