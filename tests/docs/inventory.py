"""List which test runs which commands of the pages. tests/docs/test_inventory.py compares the list with the pages.

A test should take a new block of commands from its page. Its row then names the test, and the test calls `headings` for
the sections to follow: a section that it leaves out has no row, so the page's block is reported as missing.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.docs.blocks import chains_of


@dataclass(frozen=True, slots=True)
class Taken:
    """Commands that the test takes from the page and runs. FILE::FUNCTION, below tests/."""

    test: str


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Commands that a test runs in a form of its own, for the given reason."""

    test: str
    why: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A description of commands, such as a synopsis, which the test compares with the program."""

    test: str


@dataclass(frozen=True, slots=True)
class Untested:
    """Commands that no test can run."""

    why: str


@dataclass(frozen=True, slots=True)
class Row:
    """Blocks of a page: all, those of a section, or those whose first command begins with `begins`."""

    page: str
    section: str
    by: Taken | Elsewhere | Shown | Untested
    begins: str = ""
    but: tuple[Elsewhere, ...] = ()  # commands of these blocks that `by` leaves out or runs in another form


CLI, RING, PUBSUB = "docs/cli.md", "docs/ring.md", "docs/pubsub.md"
MCA, CAST = "docs/rqp-mca.md", "docs/rqp-cast.md"
CHART, ANALYTICS, KUBERNETES = "docs/chart.md", "docs/analytics.md", "docs/kubernetes.md"
IMAGES, OPERATIONS, TUTORIALS = "docs/images.md", "docs/operations.md", "docs/tutorials/"
BACKUP, RUNBOOKS = "docs/backup.md", "docs/runbooks/index.md"

ENVIRONMENT = Untested("it creates the virtual environment of the tests")
WITHOUT_STORE = Taken("docs/test_cli_page.py::test_without_a_store")
UP = Taken("docs/test_cli_page.py::test_section_up")
QUEUES = Taken("docs/test_cli_page.py::test_queues_and_messages")
README = Taken("docs/test_readme.py::test_try_it")
COPIED = Taken("docs/test_backup_page.py::test_a_copy_of_penstock_up_is_restored")
TUTORIAL = Taken("docs/test_tutorials.py::test_the_page")
ALONE = Taken("docs/test_pubsub_page.py::test_alone")
BRIDGES = Taken("docs/test_pubsub_page.py::test_two_servers_on_one_store_and_bridges_to_queues")
RING_SYSTEMS = Taken("docs/test_ring_page.py::test_two_systems")
RQP_SYSTEMS = Taken("docs/test_rqp_page.py::test_two_systems_on_one_machine")
README_ON_NODE = Taken("e2e/test_release.py::test_the_readme_installs_a_release_and_sends_a_message")
PAGE_OF_QUEUES = Taken("e2e/test_release.py::test_the_page_of_queues_peers_and_redrives")
ON_NODE = Taken("e2e/test_release.py::test_the_page_of_the_chart_on_an_installed_release")
UPGRADED = Taken("e2e/test_release.py::test_upgrade_commands_of_the_pages_keep_values")
GONE_AND_BACK = Taken(
    "e2e/test_release.py::test_uninstall_hangs_nowhere_and_retained_messages_are_there_again"
)
REPLICATED = Taken("docs/test_replicated_page.py::test_two_failovers_lose_nothing")
TRACES = Taken("docs/test_tracing_page.py::test_the_commands")

TROUBLESHOOTING = Taken("docs/test_troubleshooting.py::test_commands_print_the_output_of_the_page")
OF_A_READER = Untested("the reader inserts names, and the tests' node has no failures to show")

IMAGES_BUILT = Elsewhere(
    "images/test_push.py::test_readme_command_builds_and_pushes",
    "`make images`, in `make e2e`, which needs podman",
)
OF_README = Elsewhere(
    "e2e/test_release.py::test_the_readme_installs_a_release_and_sends_a_message",
    "README.md has the same commands",
)

ROWS = (
    Row("CONTRIBUTING.md", "Contributing", Untested("a test cannot run the command that runs all tests")),
    Row("CONTRIBUTING.md", "End to end", Elsewhere(
        "e2e/test_leftovers.py::cluster_with_a_pod",
        "`up --bare` and `run --in FOLDER`, in `make e2e`; for `down` only the function is called; .ci/run runs "
        "`make e2e` itself")),
    Row("README.md", "Try it", ENVIRONMENT, "make up"),
    Row("README.md", "Try it", README, ".venv/bin/penstock"),
    Row("README.md", "On Kubernetes", README_ON_NODE, "make images", (IMAGES_BUILT,)),
    Row("README.md", "On Kubernetes", README_ON_NODE, "kubectl"),
    Row("charts/penstock/README.md", "Chart penstock", OF_README),
    Row(ANALYTICS, "The job", Taken("analytics/spark/test_kills.py::command")),
    Row(ANALYTICS, "By spark-submit", Taken("analytics/spark/test_commands.py::test_the_job_submitted")),
    Row(ANALYTICS, "In a bucket", Elsewhere(
        "analytics/spark/test_s3.py::test_job_writes_its_tables_and_reports_into_a_bucket",
        "the same variables, with the secret of an object store that the test starts")),
    Row(ANALYTICS, "Querying the tables", Taken(
        "analytics/spark/test_tables.py::test_command_of_the_page_queries_the_tables")),
    Row(ANALYTICS, "From an older output", Taken(
        "analytics/spark/test_importing.py::test_old_output_is_imported_once_and_the_next_run_continues")),
    Row(ANALYTICS, "In a cluster", Elsewhere(
        "e2e/test_analytics.py::test_the_job_runs_alone_and_its_report_is_read_back",
        "the tests' node has images without a registry, and little memory"),
        "helm upgrade penstock charts/penstock --namespace queues --reset-then-reuse-values --set analytics.enabled"),
    Row(ANALYTICS, "In a cluster", Elsewhere(
        "e2e/test_analytics.py::test_the_job_runs_on_two_executors_and_its_report_is_read_back", "the same reasons"),
        "helm upgrade penstock charts/penstock --namespace queues --reset-then-reuse-values --set analytics.executors"),
    Row(ANALYTICS, "In a cluster", Elsewhere(
        "e2e/test_analytics.py::run_job", "the same Job, inspected while it runs"), "kubectl"),
    Row(CHART, "Install", ON_NODE, but=(OF_README,)),
    Row(CHART, "GitOps", GONE_AND_BACK),
    Row(CHART, "Upgrade", UPGRADED),
    Row(CHART, "Uninstall", GONE_AND_BACK),
    Row(CHART, "The store", Taken(
        "e2e/test_release.py::test_another_release_is_reached_over_rqp_links_and_the_ring"), "kubectl create"),
    Row(CHART, "The store", Elsewhere(
        "e2e/test_failovers.py::give_rights", "the same command, which another section has too; the store of the other "
        "test has the user from the start"), "kubectl get secret"),
    Row(CHART, "Sentinel and Cluster", REPLICATED),
    Row(CHART, "TLS", UPGRADED),
    Row(CHART, "Namespaces and rights", Taken("e2e/test_release.py::test_a_tenant_installs_a_release")),
    Row(CHART, "Quotas, meshes, autoscalers", ON_NODE),
    Row(CHART, "Monitoring", ON_NODE),
    Row(CHART, "Commands in a cluster", ON_NODE),
    Row(CHART, "Console", ON_NODE),
    Row(CHART, "Analytics", Elsewhere(
        "chart/test_import.py::test_job_of_the_page_imports_the_old_output", "in the namespace of its release")),
    Row(CLI, "Which store", WITHOUT_STORE),
    Row(CLI, "For programs", WITHOUT_STORE),
    Row(CLI, "up", UP),
    Row(CLI, "serve", UP),
    Row(CLI, "Flags of edges", UP),
    Row(CLI, "store init", UP),
    Row(CLI, "store rights", WITHOUT_STORE),
    Row(CLI, "doctor", QUEUES),
    Row(CLI, "config", WITHOUT_STORE),
    Row(CLI, "queue", QUEUES),
    Row(CLI, "queues.yaml", QUEUES),
    Row(CLI, "put", QUEUES),
    Row(CLI, "peek", QUEUES),
    Row(CLI, "get", QUEUES),
    Row(CLI, "dead", QUEUES),
    Row(CLI, "export, import", QUEUES),
    Row(CLI, "peer", QUEUES),
    Row(CLI, "rqp send", Taken("docs/test_cli_page.py::test_rqp_send")),
    Row(CLI, "log", Taken("docs/test_pubsub_page.py::test_three_stores_in_a_ring")),
    Row(CLI, "ring status", Taken("docs/test_cli_page.py::test_ring_status")),
    Row(CLI, "report", Taken("analytics/spark/test_commands.py::test_the_report")),
    Row(CLI, "sysv", QUEUES),
    Row(CLI, "console", WITHOUT_STORE),
    Row("docs/reference/cli.md", "", Shown("cli/reference/test_reference.py::test_page_is_current")),
    Row("docs/console.md", "Quick start", Taken("console/contract/test_page_of_docs.py::test_its_commands")),
    Row(IMAGES, "Images", Taken("images/test_page.py::test_build_commands_of_the_page_work")),
    Row(IMAGES, "Guarantees", Taken("images/test_page.py::test_how_a_container_is_best_run")),
    Row(KUBERNETES, "Create a Queue", PAGE_OF_QUEUES),
    Row(KUBERNETES, "Deletion", PAGE_OF_QUEUES),
    Row(KUBERNETES, "Several operators on one store", PAGE_OF_QUEUES),
    Row(KUBERNETES, "Redrive", PAGE_OF_QUEUES),
    Row(OPERATIONS, "On one machine", Taken("docs/test_operations_page.py::test_a_store_of_your_own")),
    Row(BACKUP, "Copy while it runs", COPIED),
    Row(BACKUP, "Copy the chart's own store", Elsewhere(
        "docs/test_restore_pod.py::test_its_commands_bring_a_copy_back", "what is typed into the pod, on the server of "
        "the chart's scripts")),
    Row(BACKUP, "Restore to penstock up", COPIED),
    Row(
        BACKUP,
        "Restore to a server of your own",
        Taken("docs/test_backup_page.py::test_a_copy_of_a_server_is_restored"),
    ),
    Row(
        BACKUP,
        "Onto the volume of the chart's store",
        Elsewhere(
            "docs/test_restore_pod.py::test_its_commands_bring_a_copy_back",
            "the commands in pods run on the folder of the volume, with the server of the chart's scripts; the pod is "
            "applied to an API server, and `kubectl wait` and `delete` need a node"),
    ),
    Row(PUBSUB, "Text pub/sub: using it", ENVIRONMENT),
    Row(PUBSUB, "Alone", ALONE),
    Row(PUBSUB, "Two servers on one store", BRIDGES),
    Row(PUBSUB, "Three stores in a chain", Taken("docs/test_pubsub_page.py::test_three_stores_in_a_chain")),
    Row(PUBSUB, "Three stores in a ring", Taken("docs/test_pubsub_page.py::test_three_stores_in_a_ring")),
    Row(PUBSUB, "Links with TLS", Taken("docs/test_pubsub_page.py::test_links_with_tls")),
    Row(PUBSUB, "Bridges to queues", BRIDGES),
    Row(PUBSUB, "How it works", Elsewhere(
        "pubsub/test_slow_subscribers.py::test_slow_consumer_gets_the_number_of_lost_messages",
        "the number of lost messages varies, and the test needs 100 MB"), "(echo"),
    Row(PUBSUB, "How it works", ALONE, "timeout"),
    Row(RUNBOOKS, "First steps", Elsewhere(
        "e2e/test_release.py::test_read_only_runbook_commands_work",
        "tests/docs/runbook_commands.py takes them from the page, and inserts names")),
    Row(RUNBOOKS, "More memory for the store", Taken(
        "docs/test_runbook_commands.py::test_a_server_of_your_own_gets_more_memory"), "redis-cli"),
    Row(RUNBOOKS, "More memory for the store", Taken(
        "docs/test_runbook_commands.py::test_the_store_of_a_release_gets_more_memory"), "helm"),
    Row(RING, "Try it", RING_SYSTEMS),
    Row(RING, "Both there", RING_SYSTEMS),
    Row(RING, "The shop alone", RING_SYSTEMS),
    Row(RING, "Both again", RING_SYSTEMS),
    Row(MCA, "Two systems on one machine", RQP_SYSTEMS),
    Row(MCA, "Two machines, with a cable", Taken("docs/test_rqp_machines.py::test_the_page")),
    Row(MCA, "Forwarding", Elsewhere("rqp/test_chain.py::PassOn", "the same program, between systems of that test")),
    Row(MCA, "Peers", RQP_SYSTEMS),
    Row(MCA, "When messages are not delivered", RQP_SYSTEMS),
    Row(CAST, "Two machines", Taken("docs/test_rqp_page.py::test_two_machines")),
    Row("docs/migrating.md", "TMQ", Taken(
        "docs/test_migrating_page.py::test_messages_of_a_tmq_server_are_moved")),
    Row("docs/migrating.md", "Text pub/sub", Taken(
        "docs/test_migrating_page.py::test_tags_are_repeated_at_the_new_server")),
    *(
        Row("docs/troubleshooting.md", "", TROUBLESHOOTING, begins)
        for begins in ("PENSTOCK_", "curl", "echo", "head", "penstock", "printf", "python")
    ),
    Row("docs/troubleshooting.md", "", OF_A_READER, "kubectl"),
    Row("docs/upgrades.md", "On Kubernetes", Elsewhere(
        "e2e/test_release.py::test_upgrade_commands_of_the_pages_keep_values",
        "the same upgrade, with a value that changes")),
    Row("docs/tmq.md", "Differences from the original server", Elsewhere(
        "tmq/test_original_server.py::test_document_lists_the_replies_to_each_call",
        "the original server is third-party; the test makes the same calls to Penstock")),
    Row(CAST, "When messages are not delivered",
        Taken("docs/test_cast_examples.py::test_held_messages_are_listed_redriven_and_purged")),
    Row("docs/start.md", "Try it", ENVIRONMENT, "make up"),
    Row("docs/start.md", "Try it", TUTORIAL, "make .venv/.ready"),
    Row("docs/start.md", "One queue, three ways in", TUTORIAL),
    Row("docs/sysv.md", "5 Running it", Taken("docs/test_sysv_examples.py::test_the_page")),
    Row("docs/tracing.md", "Try it", TRACES),
    *(
        Row(f"{TUTORIALS}{name}.md", "", TUTORIAL)
        for name in ("index", "pubsub", "ring", "rqp-cast", "rqp-mca", "sysv", "tmq")
    ),
)  # fmt: skip


def headings(test: str, page: str) -> list[str]:
    """Return the sections of a page that the test follows, as headings (`## put`), in the order of the rows.

    Subsections of a listed section are left out: they are followed with it.
    """
    mine = {row.section for row in ROWS if row.page == page and row.by == Taken(test)}
    chains = {chain[-1].lstrip("# "): chain for chain in chains_of(page)}
    found = [row.section for row in ROWS if row.page == page and row.section in mine]
    return [
        chains[section][-1]
        for section in dict.fromkeys(found)
        if not mine & {heading.lstrip("# ") for heading in chains[section][:-1]}
    ]
