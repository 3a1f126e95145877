"""Whether this pipeline may hold jobs with keys: asked of GitLab's own variables. Pure.

GitLab gives protected variables to pipelines of protected branches and tags only; this decides in
the same way which jobs exist at all, so that a job without its key is never even generated.
"""

from collections.abc import Mapping
from dataclasses import dataclass

FOREIGN = ("merge_request_event", "external_pull_request_event")
"""Sources of pipelines for changes that nobody has accepted yet."""

NONE = "0" * 40
"""What GitLab gives for the commit before when there is none."""


@dataclass(frozen=True)
class Trust:
    """``trusted`` and the reason, which is printed."""

    trusted: bool
    why: str


def trust_of(environment: Mapping[str, str]) -> Trust:
    """Whether a pipeline with these variables may sign, push and deploy."""
    source = environment.get("CI_PIPELINE_SOURCE", "")
    if not source:
        return Trust(False, "this is not a GitLab pipeline")
    if source in FOREIGN or environment.get("CI_MERGE_REQUEST_IID"):
        theirs = environment.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "")
        ours = environment.get("CI_MERGE_REQUEST_PROJECT_ID", "")
        fork = theirs and ours and theirs != ours
        return Trust(False, "a merge request from a fork" if fork else "a merge request")
    if environment.get("CI_COMMIT_REF_PROTECTED") != "true":
        return Trust(False, "its branch or tag is not protected")
    return Trust(True, "its branch or tag is protected")


def base_of(environment: Mapping[str, str]) -> str:
    """The commit that this pipeline's change is against; "" when GitLab names none."""
    for name in ("CI_MERGE_REQUEST_DIFF_BASE_SHA", "CI_COMMIT_BEFORE_SHA"):
        value = environment.get(name, "")
        if value and value != NONE:
            return value
    return ""
