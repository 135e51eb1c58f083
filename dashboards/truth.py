"""The dashboard about Kardia itself: do predictions come true, how sure are answers, was a line lost on the way."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from dashboards.answers import CLOCK, Column, rows
from dashboards.board import board
from dashboards.palette import ALARM, CERTAINTY, OUTCOME, PLAIN, alarm, steps
from dashboards.panels import Says, bounded, lines, number, stacked
from dashboards.sources import AGE, CLUSTERS, RANGE, TRUTH_UID, clusters_variable


def build() -> Dashboard:
    """The dashboard."""
    made = board(
        TRUTH_UID,
        "Kardia: truth and pipeline",
        "How far Kardia can be believed: scores of its predictions, how sure and how fresh it is, what got lost.",
        clusters_variable(),
        since="3h",
        refresh="30s",
    )
    return _pipeline(_truth(_answers(made)))


def _counted(what: str, window: str) -> str:
    return f'sum(max by (cluster) (increase(kardia_ledger_total{{{CLUSTERS},what="{what}"}}[{window}])))'


def _answers(made: Dashboard) -> Dashboard:
    age, told = f"kardia_source_age_seconds{{{CLUSTERS}}}", f"count(kardia_feed_stale{{{CLUSTERS}}})"
    stalled = f"(count(max by (cluster, source) ({age}) > 15) or on () vector(0))"
    return (
        made.with_panel(
            number(
                Says(
                    "Age of the answers",
                    "Is Kardia up to date? Beyond ten seconds countdowns stand still and alerts are held back.",
                    "Is a collector down, the job, or the API behind? *Sources* shows which log stands still.",
                    "feed-stale.md",
                ),
                AGE,
                alarm(10),
                always=True,
                unit="s",
                decimals=1,
            )
        )
        .with_panel(
            number(
                Says(
                    "Stalled sources",
                    "How many logs have not been read for 15 s?",
                    "Look at the collector beside that broker, and at the broker.",
                    "source-stalled.md",
                ),
                f"{stalled} and on () {told} or on () vector(NaN)",
                alarm(1),
                always=True,
            )
        )
        .with_panel(
            number(
                Says(
                    "Gaps, last hour",
                    "Was a part of a log lost? That time is unknown, and Kardia does not guess.",
                    "Logs rotate faster than they are read, or a collector was away: keep more files.",
                    "log-gap.md",
                ),
                _counted("gaps", "1h"),
                alarm(0.5),
            )
        )
        .with_panel(
            number(
                Says(
                    "Rejected, last hour",
                    "Were there lines that could not be understood? They are kept in the table `rejected`.",
                    "`kardia rejected` lists them: a new broker version, a wrong time zone, or another log's lines?",
                    "log-gap.md",
                ),
                _counted("rejected", "1h"),
                alarm(0.5),
            )
        )
        .with_panel(
            number(
                Says(
                    "Session precision",
                    "Of the predicted session timeouts with a clear outcome, how many came true?",
                    "Low: members are often late and come back; their sessions are too short for them.",
                    "predictions-unreliable.md",
                ),
                f'min(kardia_prediction_precision_ratio{{{CLUSTERS},kind="session"}})',
                alarm(0.5, below=True),
                unit="percentunit",
            )
        )
        .with_panel(
            number(
                Says(
                    "Session recall",
                    "Of the session timeouts that struck, how many had been predicted?",
                    "Low: the feed was behind, or sessions are shorter than what it takes to see them.",
                    "predictions-unreliable.md",
                ),
                f'min(kardia_prediction_recall_ratio{{{CLUSTERS},kind="session"}})',
                alarm(0.9, below=True),
                unit="percentunit",
            )
        )
    )


def _truth(made: Dashboard) -> Dashboard:
    lead = f"kardia_prediction_lead_quantile_seconds{{{CLUSTERS},quantile='0.5'}}"
    known = f"kardia_eviction_known_after_quantile_seconds{{{CLUSTERS},quantile"
    sure = "kardia_members_by_certainty"
    by_outcome = (
        f"sum by (outcome) (max by (cluster, kind, outcome) (increase(kardia_predictions_total{{{CLUSTERS}}}[1h])))"
    )
    return (
        made.with_row(Row("Truth"))
        .with_panel(
            stacked(
                lines(
                    Says(
                        "What became of predictions",
                        "Do they come true? Per hour; averted: heard in time; unknown: the evidence was lost.",
                        "Many `unknown`: the member ended, or the log had a gap, before it could be seen. Many "
                        "`averted`: members that are often late.",
                        "predictions-unreliable.md",
                    ),
                    (by_outcome, "{{outcome}}"),
                    span=8,
                    colours=OUTCOME,
                )
            )
        )
        .with_panel(
            lines(
                Says(
                    "How far ahead",
                    "How long before a timeout was it said, in the median of the last hour? By kind of timeout.",
                    "Less than a few seconds: too late to act; use `kardia notify`, not a scrape.",
                    "predictions-unreliable.md",
                ),
                (f"min by (kind) ({lead})", "{{kind}}"),
                unit="s",
                span=8,
            )
        )
        .with_panel(
            lines(
                Says(
                    "How late evictions are known",
                    "How long after an eviction was its evidence there? Median and 95 % of the last hour.",
                    "It follows the heartbeats of the others and the end of the rebalance; more is the feed.",
                    "feed-stale.md",
                ),
                (f"max({known}='0.5'}})", "median"),
                (f"max({known}='0.95'}})", "95 %"),
                unit="s",
                span=8,
            )
        )
        .with_panel(
            stacked(
                lines(
                    Says(
                        "How sure the answers are",
                        "Of how many members is their health exact, inferred, provisional or unknown?",
                        "Much `unknown`: a gap, or members of whom nothing was heard yet.",
                        "log-gap.md",
                    ),
                    (f"sum by (certainty) (max by (cluster, certainty) ({sure}{{{CLUSTERS}}}))", "{{certainty}}"),
                    colours=CERTAINTY,
                )
            )
        )
        .with_panel(
            lines(
                Says(
                    "Precision and recall",
                    "Do the scores hold for each kind of timeout? Since the API was started.",
                    "A kind that is low is to be believed less; its alerts need a longer hold.",
                    "predictions-unreliable.md",
                ),
                (f"min by (kind) (kardia_prediction_precision_ratio{{{CLUSTERS}}})", "{{kind}}: precision"),
                (f"min by (kind) (kardia_prediction_recall_ratio{{{CLUSTERS}}})", "{{kind}}: recall"),
                unit="percentunit",
            )
        )
    )


def _pipeline(made: Dashboard) -> Dashboard:
    ledger = f"sum by (what) (max by (cluster, what) (rate(kardia_ledger_total{{{CLUSTERS},what"
    odd = f'kardia_ledger_total{{{CLUSTERS},what!~"lines|events|ignored"}}'
    return (
        made.with_row(Row("Pipeline"))
        .with_panel(
            bounded(
                lines(
                    Says(
                        "How fresh the answers are",
                        "Was Kardia blind for a while? The dashed line is where countdowns stop.",
                        "A step that stays: something is down. Teeth: batches are slow.",
                        "feed-stale.md",
                    ),
                    (AGE, "all"),
                    (f"max by (cluster, source) (kardia_source_age_seconds{{{CLUSTERS}}})", "{{cluster}}: {{source}}"),
                    unit="s",
                    span=8,
                    always=True,
                ),
                steps((None, PLAIN), (10, ALARM)),
            )
        )
        .with_panel(
            lines(
                Says(
                    "Lines on the way",
                    "How many lines are read per second, how many become events, how many say nothing?",
                    "Lines without events: the logger writes the wrong APIs. None at all: it is off.",
                    "source-stalled.md",
                ),
                (f'{ledger}=~"lines|events|ignored"}}[1m])))', "{{what}}"),
                unit="cps",
                span=8,
            )
        )
        .with_panel(
            lines(
                Says(
                    "What should be none",
                    "Was anything rejected, late, lost, repeated, not modelled, or corrected by the broker? Per hour.",
                    "`gaps`, `rejected`: the collector; `divergences`: the broker answered, or its server.log says, "
                    "otherwise than was concluded; `duplicates` after a restart are as they should be.",
                    "log-gap.md",
                ),
                (
                    f"sum by (what) (max by (cluster, what) (increase({odd}[1h])))",
                    "{{what}}",
                ),
                unit="none",
                span=8,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Tables",
                    "Can every table be read? 1 is yes. Answers that need a missing one are refused.",
                    "Is the job running, and does it write where the API reads?",
                    "feed-stale.md",
                ),
                ("min by (table) (kardia_table_available)", "{{table}}"),
                unit="bool_yes_no",
                always=True,
            )
        )
        .with_panel(
            lines(
                Says(
                    "What server.log says otherwise",
                    "How often did server.log say otherwise than the requests? Per hour, by kind.",
                    "`kardia disagreements` says which group, when, and what each says. `another_coordinator` is a "
                    "broker that woke after another one had taken over; of the others none should be.",
                    "sources-disagree.md",
                ),
                (
                    f"sum by (kind) (max by (cluster, kind) (increase(kardia_disagreements_total{{{CLUSTERS}}}[1h])))",
                    "{{kind}}",
                ),
                unit="none",
            )
        )
        .with_panel(
            lines(
                Says(
                    "Answers that the model predicts",
                    "Of the answers to classic requests, how many are not as the model of the release says? Per hour.",
                    "`kardia surprises` says which answer, and why. `unknown` are answers to groups of which Kardia "
                    "does not know yet who is in them; `broker_not_as_release` should never be.",
                    "broker-not-as-release.md",
                ),
                (
                    "sum by (outcome) (max by (cluster, outcome) "
                    f'(increase(kardia_self_test_answers_total{{{CLUSTERS},outcome!="predicted"}}[1h])))',
                    "{{outcome}}",
                ),
                unit="none",
            )
        )
        .with_row(Row("What Kardia itself costs"))
        .with_panel(
            lines(
                Says(
                    "CPU of kardia serve",
                    "How busy is the API? 1 is one core.",
                    "A whole core for long: too many pages that follow, or panels that ask for hours of a large group.",
                ),
                ("rate(kardia_serve_process_cpu_seconds_total[1m])", "{{instance}}"),
                unit="none",
                span=8,
                always=True,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Memory of kardia serve",
                    "How much memory does the API hold? It follows the members that are there.",
                    "It grows while the fleet does not: open an issue, with the numbers of groups and members.",
                ),
                ("kardia_serve_process_resident_memory_bytes", "{{instance}}"),
                unit="bytes",
                span=8,
                always=True,
            )
        )
        .with_panel(
            lines(
                Says(
                    "Batch time of the job",
                    "How long did the last batch take to write? From `kardia stream --metrics-port`, where Prometheus "
                    "scrapes it.",
                    "More than a second or two: the answers grow old. Give the job a core more, or compact its tables.",
                    "feed-stale.md",
                ),
                ("kardia_stream_write_seconds", "{{instance}}"),
                unit="s",
                span=8,
                always=True,
            )
        )
        .with_row(Row("Logs: $cluster").repeat("cluster"))
        .with_panel(
            rows(
                Says(
                    "Sources",
                    "Up to when has each log been read?",
                    "The one that is behind holds everything back: look at its collector.",
                    "source-stalled.md",
                ),
                "/clusters/~",
                "cluster.sources",
                Column("source", "source", width=420),
                Column("complete to", "complete_to_ms", CLOCK),
            )
        )
        .with_panel(
            rows(
                Says(
                    "Rejected lines",
                    "Which lines could not be understood, where do they stand, and what was expected?",
                    "Many of one kind: a new broker version, a wrong time zone, or another log's lines.",
                    "log-gap.md",
                ),
                "/clusters/~/rejected",
                "rejected",
                Column("at", "at_ms", CLOCK, width=190),
                Column("reason", "reason", width=150),
                Column("source", "source", width=300),
                Column("first byte", "start", "none", width=110),
                Column("expected", "expected"),
                Column("the line begins", "excerpt"),
                given=RANGE,
            )
        )
        .with_panel(
            rows(
                Says(
                    "Answers that are surprises",
                    "Which answer was not as the model of the release predicts, and of which class? Newest first.",
                    "Is it always one kind of request, or one moment? `kardia surprises` shows the trace as well.",
                    "broker-not-as-release.md",
                ),
                "/clusters/~/surprises",
                "surprises",
                Column("at", "at_ms", CLOCK, width=190),
                Column("group", "group_id", width=200),
                Column("class", "surprise_class", width=200),
                Column("what was answered", "text"),
                Column("source", "source", width=300),
                Column("first byte", "start", "none", width=110),
                given=RANGE,
            )
        )
        .with_panel(
            rows(
                Says(
                    "Where server.log disagrees",
                    "Of which group, when, and what does each of the two say? Newest first.",
                    "Is it always one broker, or one moment? The line stands at that byte of that log.",
                    "sources-disagree.md",
                ),
                "/clusters/~/disagreements",
                "disagreements",
                Column("at", "at_ms", CLOCK, width=190),
                Column("group", "group_id", width=200),
                Column("kind", "kind", width=180),
                Column("what each says", "text"),
                Column("source", "source", width=300),
                Column("first byte", "start", "none", width=110),
                given=RANGE,
            )
        )
    )
