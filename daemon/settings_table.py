"""The one table of settings. Everything else (environment, file, flags, help, docs, `/config`) is made from it.

A row is a field of `Settings` declared with `_row`; `SETTINGS` is the same rows as values. The dotted name
(`embedding.model`) is what people write in a file; the attribute has an underscore (`settings.embedding_model`), the
environment variable is `RECALLD_EMBEDDING_MODEL`. Aliases are the `HINDSIGHT_API_*` names people already have set.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Any

from recalld.actors.recall.settings import RecallSettings
from recalld.actors.trust.instructions import SOURCE_LEVELS
from recalld.actors.trust.redaction import POLICIES
from recalld.daemon.settings_consolidation import ConsolidationRows
from recalld.daemon.settings_rows import TYPES, Setting
from recalld.daemon.settings_rows import row as _row

DEFAULT_HOME = Path("~/.recalld")
_ENGINE = RecallSettings()
MODEL_ONLY = "read by extraction with a language model, the local rules do not use it."


def _engine(
    path: str, help: str, minimum: float | None, maximum: float | None, *, alias: str | tuple[str, ...] = ()
) -> Any:
    """Declare a row of the recall engine: `path` is a field of `RecallSettings`, whose default is the row's."""
    default = attrgetter(path)(_ENGINE)
    return _row(default, help, minimum=minimum, maximum=maximum, alias=alias, engine=path)


SECTIONS = (
    "embedding", "extraction", "retain", "recall", "graph", "rank", "bank", "store", "operations", "ray", "admission",
    "budget", "files", "ledger", "llm", "mcp", "pages", "opinions",
    "reflect", "disposition", "consolidation",
)  # fmt: skip


def _half_the_cores() -> int:
    return max(1, (os.cpu_count() or 1) // 2)


# ruff: noqa: RUF009 - every row is one call of `_row`, which makes a field
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ConsolidationRows):
    """Every setting with its value. Made by `recalld.daemon.settings.load`; `Settings()` is all defaults."""

    # Where it lives and what it listens on
    home: Path = _row(DEFAULT_HOME, "Home folder: data, logs, keys.")
    host: str = _row("127.0.0.1", "Address to listen on.", alias="HOST")
    port: int = _row(8888, "Port to listen on; 0 takes a free one.", minimum=0, maximum=65535, alias="PORT")
    base_path: str = _row("", "Prefix before every route, for a reverse proxy.", alias="BASE_PATH")
    allow_insecure_bind: bool = _row(
        False, "Listen beyond loopback without an API key. Anyone who reaches the port reads everything."
    )
    allowed_hosts: tuple[str, ...] = _row((), "Host names, beside loopback, that requests may name; * allows all.")
    allowed_origins: tuple[str, ...] = _row(
        (), "Origins of web pages that may call the API, such as https://app.example."
    )
    api_key: str | None = _row(
        None,
        "Key every request must carry as a bearer token; unset switches authentication off.",
        secret=True,
        alias="TENANT_API_KEY",
    )
    max_body_mb: int = _row(64, "Largest request body in MB; above it 413.", minimum=1, maximum=1024)
    max_url_length: int = _row(65536, "Longest URL in bytes; above it 414.", minimum=1024, maximum=1_000_000)
    gzip_min_size: int = _row(
        1024, "Answers larger than this many bytes are compressed; negative switches it off.", alias="GZIP_MIN_SIZE"
    )
    shutdown_grace: float = _row(1.5, "Seconds that running requests get after a stop signal.", minimum=0, maximum=60)

    # Logs
    log_level: str = _row(
        "info",
        "How much is logged.",
        choices=("critical", "error", "warning", "info", "debug", "trace"),
        alias="LOG_LEVEL",
        reload=True,
    )
    log_format: str = _row("text", "Log lines as text or JSON.", choices=("text", "json"), alias="LOG_FORMAT")
    access_log: bool = _row(False, "One log line a request.", alias="ACCESS_LOG", reload=True)

    # Admission
    admission_recall_max_in_flight: int = _row(
        0, "Recalls served at once; 0 means 16 a core.", minimum=0, alias="ADMISSION_RECALL_MAX_IN_FLIGHT"
    )
    admission_recall_max_wait_ms: int = _row(
        30000, "Longest wait for a recall's turn before 503.", minimum=0, alias="ADMISSION_RECALL_MAX_WAIT_MS"
    )
    admission_retain_max_in_flight: int = _row(
        0, "Retains served at once; 0 means 32 a core.", minimum=0, alias="ADMISSION_RETAIN_MAX_IN_FLIGHT"
    )
    admission_retain_max_wait_ms: int = _row(
        2000, "Longest wait for a retain's turn before 503.", minimum=0, alias="ADMISSION_RETAIN_MAX_WAIT_MS"
    )
    admission_max_waiting: int = _row(
        1024, "Requests that may wait for their turn in one lane; beyond it 503 at once.", minimum=0
    )

    # Processes
    runtime: str = _row("ray", "Actors in processes of Ray, or all in the daemon.", choices=("ray", "inline"))
    shards: int = _row(0, "Shard processes; 0 means half the cores, at least one.", minimum=0, maximum=256)
    ray_address: str | None = _row(None, "Ray cluster to join; unset starts a local instance owned by the daemon.")
    ray_memory_mb: int = _row(80, "Object store of a local Ray instance in MB.", minimum=75, maximum=65536)
    ray_start_timeout: float = _row(60.0, "Seconds Ray may take to start.", minimum=1)
    ray_allow_tokenless: bool = _row(False, "Run with a Ray release that has no token authentication.")
    partitions: int = _row(4, "Partitions of a new home; fixed once the home exists.", minimum=1, maximum=4096)
    encoder_threads: int = _row(0, "Threads that embed texts; 0 means one a core.", minimum=0, maximum=256)
    query_threads: int = _row(1, "Threads of the daemon that embed queries.", minimum=1, maximum=64)
    model_init_timeout: float = _row(
        300.0, "Seconds for loading models at start.", minimum=1, alias="MODEL_INIT_TIMEOUT"
    )

    # Embedding
    embedding_model: str = _row(
        "default",
        "default (MiniLM int8, English), a folder with an ONNX model, or a hub name.",
        alias="EMBEDDINGS_LOCAL_MODEL",
    )
    embedding_device: str = _row(
        "auto",
        "Where the model runs; auto takes a GPU provider when one is installed.",
        choices=("auto", "cpu", "cuda"),
    )
    embedding_force_cpu: bool = _row(False, "Never use a GPU.", alias="EMBEDDINGS_LOCAL_FORCE_CPU")
    embedding_trust_remote_code: bool = _row(
        False,
        "Read and refused: recalld never runs code from a model folder.",
        alias="EMBEDDINGS_LOCAL_TRUST_REMOTE_CODE",
    )
    embedding_query_cache: int = _row(4096, "Query embeddings kept in memory.", minimum=0)
    embedding_date_suffix: bool = _row(
        False, "Embed a text with its date behind it; the default is the better one on held-out data."
    )

    # Retain
    extraction_provider: str = _row(
        "auto",
        "Who turns texts into facts: a language model, rules, or nobody; auto is the model when llm.provider names"
        " one, else the rules.",
        choices=("auto", "model", "local", "none"),
    )
    retain_chunk_size: int = _row(
        3000, "Characters in a chunk.", minimum=200, maximum=100_000, alias="RETAIN_CHUNK_SIZE"
    )
    retain_structured_chunk_size: int | None = _row(
        None,
        "Characters of one conversation turn kept whole; unset is the chunk size.",
        minimum=200,
        maximum=1_000_000,
        alias="RETAIN_STRUCTURED_CHUNK_SIZE",
    )
    retain_extraction_mode: str = _row(
        "concise",
        "How facts are made.",
        choices=("concise", "verbose", "custom", "verbatim", "chunks"),
        alias="RETAIN_EXTRACTION_MODE",
    )
    retain_mission: str | None = _row(
        None, "What extraction with a language model should look for.", alias="RETAIN_MISSION"
    )
    retain_custom_instructions: str | None = _row(
        None, "Own rules of a language model for the mode custom.", alias="RETAIN_CUSTOM_INSTRUCTIONS"
    )
    retain_max_completion_tokens: int = _row(
        64000,
        "Most tokens a language model may answer for one chunk.",
        minimum=200,
        maximum=1_000_000,
        alias="RETAIN_MAX_COMPLETION_TOKENS",
    )
    llm_output_language: str | None = _row(
        None, "Language that facts are written in; unset is that of the text.", alias="LLM_OUTPUT_LANGUAGE"
    )
    retain_extract_causal_links: bool = _row(
        True, "Link facts to what caused them.", alias="RETAIN_EXTRACT_CAUSAL_LINKS"
    )
    retain_default_strategy: str | None = _row(
        None, "Strategy of items that name none.", alias="RETAIN_DEFAULT_STRATEGY"
    )
    retain_chunk_batch_size: int = _row(
        100,
        "Accepted and not used: what one request, or one part of an asynchronous one, stores is one transaction.",
        minimum=1,
        maximum=10_000,
        alias="RETAIN_CHUNK_BATCH_SIZE",
    )
    retain_batch_tokens: int = _row(
        10000, "Tokens of one part of an asynchronous retain.", minimum=100, alias="RETAIN_BATCH_TOKENS"
    )
    retain_wall_timeout: float = _row(
        3600.0, "Seconds one retain operation may take.", minimum=1, alias="RETAIN_WALL_TIMEOUT"
    )
    redaction: str = _row(
        "off",
        "Secrets and personal data: off, mark (counted and shown), redact (replaced before anything is stored) or block"
        " (refused).",
        choices=POLICIES,
    )
    source_trust: str = _row(
        "normal", "How far the source of an item that does not say is trusted.", choices=SOURCE_LEVELS
    )
    store_document_text: bool = _row(
        True, "Keep source texts.", name="store_document_text", alias="STORE_DOCUMENT_TEXT"
    )
    audit_log_enabled: bool = _row(
        False,
        "Record changes asked for by callers in the audit log; what retain decides is always recorded.",
        name="audit_log_enabled",
        alias="AUDIT_LOG_ENABLED",
    )
    audit_log_retention_days: int = _row(
        365,
        "Days the audit log of a bank goes back; -1 keeps all of it.",
        minimum=-1,
        maximum=36_500,
        name="audit_log_retention_days",
        alias="AUDIT_LOG_RETENTION_DAYS",
    )

    # Files
    enable_file_upload_api: bool = _row(True, "Uploads of files.", alias="ENABLE_FILE_UPLOAD_API", reload=True)
    files_parser: str = _row(
        "markitdown",
        "Who converts PDF, DOCX, PPTX and XLSX. Accepted and not used: markitdown does; other formats need nobody.",
        alias="FILE_PARSER",
    )
    files_max_count: int = _row(
        10, "Files of one upload.", minimum=1, maximum=1000, alias="FILE_CONVERSION_MAX_BATCH_SIZE"
    )
    files_max_batch_mb: int = _row(
        100, "MB of the files of one upload together.", minimum=1, alias="FILE_CONVERSION_MAX_BATCH_SIZE_MB"
    )
    files_max_upload_mb: int = _row(128, "MB of the body of an upload, beyond which it is not read (413).", minimum=1)
    files_max_characters: int = _row(10_000_000, "Characters a file may turn into.", minimum=1000)
    files_keep: bool = _row(
        True, "Keep an upload until its document is erased; under redaction it goes once it is converted."
    )
    files_convert_at_once: int = _row(1, "Files converted at once.", minimum=1, maximum=64)
    files_convert_seconds: float = _row(120.0, "Seconds the conversion of a file may take.", minimum=1)
    files_convert_memory_mb: int = _row(2048, "Memory the conversion of a file may take, in MB.", minimum=256)

    # Recall: budgets and floors
    recall_budget_function: str = _row(
        "fixed", "How many candidates a budget means.", choices=("fixed", "adaptive"), alias="RECALL_BUDGET_FUNCTION"
    )
    recall_budget_fixed_low: int = _engine(
        "budget_low", "Candidates an arm at budget low.", 1, 10_000, alias="RECALL_BUDGET_FIXED_LOW"
    )
    recall_budget_fixed_mid: int = _engine(
        "budget_mid", "Candidates an arm at budget mid.", 1, 10_000, alias="RECALL_BUDGET_FIXED_MID"
    )
    recall_budget_fixed_high: int = _engine(
        "budget_high", "Candidates an arm at budget high.", 1, 10_000, alias="RECALL_BUDGET_FIXED_HIGH"
    )
    recall_budget_adaptive_low: float = _row(
        0.025, "Candidates a token asked for, low.", minimum=0, maximum=10, alias="RECALL_BUDGET_ADAPTIVE_LOW"
    )
    recall_budget_adaptive_mid: float = _row(
        0.075, "Candidates a token asked for, mid.", minimum=0, maximum=10, alias="RECALL_BUDGET_ADAPTIVE_MID"
    )
    recall_budget_adaptive_high: float = _row(
        0.25, "Candidates a token asked for, high.", minimum=0, maximum=10, alias="RECALL_BUDGET_ADAPTIVE_HIGH"
    )
    recall_budget_min: int = _row(
        20, "Least candidates of an adaptive budget.", minimum=1, maximum=10_000, alias="RECALL_BUDGET_MIN"
    )
    recall_budget_max: int = _row(
        2000, "Most candidates of an adaptive budget.", minimum=1, maximum=10_000, alias="RECALL_BUDGET_MAX"
    )
    recall_semantic_floor: float = _engine(
        "semantic_floor", "Cosine floor of the semantic arm.", -1, 1, alias="SEMANTIC_MIN_SIMILARITY"
    )
    recall_temporal_floor: float = _engine(
        "temporal_floor", "Cosine floor of the temporal arm.", -1, 1, alias="TEMPORAL_SEMANTIC_MIN_SIMILARITY"
    )
    recall_query_terms: int = _engine(
        "query_terms", "Terms of a query the keyword arm keeps, the rarest first.", 1, 256, alias="BM25_MAX_QUERY_TERMS"
    )
    recall_bm25_k1: float = _engine("bm25_k1", "BM25: how soon repeated terms stop counting.", 0, 10)
    recall_bm25_b: float = _engine("bm25_b", "BM25: how much long texts are held back.", 0, 1)
    recall_tag_similarity: float = _engine("tag_similarity", "Similarity from which a fuzzy tag matches.", 0, 1)
    recall_prefer_observations: bool = _row(
        False, "Drop facts a returned observation was built from.", alias="RECALL_PREFER_OBSERVATIONS"
    )
    recall_max_ms: int = _row(0, "Deadline of a recall that names none; 0 is none.", minimum=0)
    enable_text_search: bool = _row(True, "Keyword arm.", alias="ENABLE_TEXT_SEARCH")
    enable_graph_retrieval: bool = _row(True, "Graph arm.", alias="ENABLE_GRAPH_RETRIEVAL")
    enable_temporal_retrieval: bool = _row(True, "Temporal arm.", alias="ENABLE_TEMPORAL_RETRIEVAL")
    enable_reranking: bool = _row(
        True,
        "Accepted and not used: there is no cross-encoder to switch off, late interaction ranks.",
        alias="ENABLE_RERANKING",
    )

    # Recall: graph
    graph_seeds: int = _engine("graph_seeds", "Best semantic hits the graph arm spreads from.", 1, 1000)
    graph_hops: int = _engine("graph_hops", "Hops from a seed.", 1, 4)
    graph_decay: float = _engine("graph_decay", "Activation kept a hop.", 0, 1)
    graph_stop: float = _engine("graph_stop", "Activation below which spreading stops.", 0, 1)
    graph_causal: float = _engine("graph_causal", "Weight (mu) of causal edges.", 0, 10)
    graph_entity: float = _engine("graph_entity", "Weight (mu) of entity edges.", 0, 10)
    graph_semantic: float = _engine("graph_semantic", "Weight (mu) of semantic edges.", 0, 10)
    graph_temporal: float = _engine("graph_temporal", "Weight (mu) of temporal edges.", 0, 10)
    graph_entity_units: int = _engine(
        "graph_entity_units",
        "Units visited an entity, newest first.",
        1,
        10_000,
        alias="LINK_EXPANSION_PER_ENTITY_LIMIT",
    )
    graph_entities: int = _engine("graph_entities", "Entities a hop may open.", 0, 1000)
    graph_frontier: int = _engine("graph_frontier", "Units the second hop spreads from, strongest first.", 0, 1000)
    graph_hours: float = _engine("graph_hours", "Hours beyond which neighbours are not linked in time.", 0, None)
    graph_semantic_link: float = _engine(
        "semantic_link",
        "Least cosine of a link between memories of like meaning; 0 takes what suits the embedding model (0.7).",
        0,
        1,
        alias="SEMANTIC_LINK_MIN_SIMILARITY",
    )
    graph_sigma: float = _engine(
        "graph_sigma", "Sigma of links in time, hours: their weight is exp(-hours apart / sigma).", 0.001, None
    )

    # Recall: ranking
    rank_rrf_k: int = _engine("rrf_k", "Constant of reciprocal rank fusion.", 1, 1000)
    rank_candidates_low: int = _engine("candidates_low", "Candidates scored at budget low.", 1, 5000)
    rank_candidates_mid: int = _engine("candidates_mid", "Candidates scored at budget mid.", 1, 5000)
    rank_candidates_high: int = _engine("candidates_high", "Candidates scored at budget high.", 1, 5000)
    rank_neighbour_heads: int = _engine("neighbour_heads", "Candidates whose neighbours join the list.", 0, 5000)
    rank_late_tokens: int = _engine("late_tokens", "Query tokens that take part in late interaction.", 1, 512)
    rank_prior_units: float = _engine("prior_units", "Units that the model's token counts weigh like.", 0, None)
    rank_maxsim: float = _engine("weights.maxsim", "Weight of late interaction.", -10, 10)
    rank_cosine: float = _engine("weights.cosine", "Weight of the cosine.", -10, 10)
    rank_keyword: float = _engine("weights.keyword", "Weight of the unit's BM25.", -10, 10)
    rank_window_keyword: float = _engine("weights.window_keyword", "Weight of the BM25 of three turns.", -10, 10)
    rank_thread_keyword: float = _engine("weights.thread_keyword", "Weight of the BM25 of the document.", -10, 10)
    rank_speaker: float = _engine("weights.speaker", "Added when the question names the speaker.", -10, 10)
    rank_near1: float = _engine("weights.near1", "Weight of the best neighbour one away.", -10, 10)
    rank_near2: float = _engine("weights.near2", "Weight of the best neighbour two away.", -10, 10)
    rank_near_keyword: float = _engine("weights.near_keyword", "Weight of the neighbours' BM25.", -10, 10)
    rank_question: float = _engine("weights.question", "Added to units that are questions.", -10, 10)
    rank_recency_alpha: float = _engine("recency_alpha", "Strength of the recency boost.", 0, 2)
    rank_recency_days: float = _engine("recency_days", "Days over which recency fades.", 1, None)
    rank_temporal_alpha: float = _engine("temporal_alpha", "Strength of the temporal boost.", 0, 2)
    rank_proof_alpha: float = _engine("proof_alpha", "Strength of the proof boost.", 0, 2)

    # Store
    bank_memory_mb: int = _row(512, "Memory of open banks in MB; the least used are closed above it.", minimum=16)
    store_map_size_gb: int = _row(256, "Address space of one partition in GiB.", minimum=1, maximum=16384)
    store_disk_reserve_mb: int = _row(64, "Disk kept free for deletes and compaction, in MB.", minimum=0)
    store_vector_threshold: int = _row(20000, "Units above which a bank gets an approximate index.", minimum=100)
    store_max_readers: int = _row(1024, "Reader slots of a partition.", minimum=16, maximum=65536)
    durability: str = _row(
        "local", "local flushes before every acknowledgement; none loses data on power loss.", choices=("local", "none")
    )

    # Operations
    operations_slots: int = _row(10, "Background operations at once.", minimum=1, maximum=256, alias="WORKER_MAX_SLOTS")
    operations_max_attempts: int = _row(
        4, "Runs of an operation over its whole life, the first included.", minimum=1, maximum=100
    )
    operations_backoff_seconds: float = _row(
        60.0, "Wait before the second run; doubles with each.", minimum=0, alias="WORKER_TASK_RETRY_BACKOFF_SECONDS"
    )
    operations_backoff_max_seconds: float = _row(1800.0, "Longest wait between runs.", minimum=0)
    operations_model_wait_seconds: float = _row(
        5.0, "First wait of an operation whose language model is away; doubles with each.", minimum=0.01
    )
    operations_model_wait_max_seconds: float = _row(300.0, "Longest wait for a language model.", minimum=0.01)
    operations_wall_seconds: float = _row(3600.0, "Seconds one run may take.", minimum=1)

    # Mental models and knowledge pages
    pages_tick_seconds: float = _row(
        300.0,
        "How often the triggers of mental models are looked at.",
        minimum=0.05,
        maximum=86_400,
        alias="MENTAL_MODEL_REFRESH_TICK_SECONDS",
    )
    pages_history_max_entries: int = _row(
        50,
        "Former contents kept of each mental model.",
        minimum=0,
        maximum=10_000,
        alias="MENTAL_MODEL_HISTORY_MAX_ENTRIES",
    )
    mental_model_min_refresh_interval_seconds: int = _row(
        0,
        "Floor between two automatic refreshes of a mental model; a bank, or its trigger, may have its own.",
        minimum=0,
        alias="MENTAL_MODEL_MIN_REFRESH_INTERVAL_SECONDS",
    )

    # Opinions
    opinions_nli_model: str = _row(
        "",
        "Folder of an ONNX model for pairs of sentences (model.onnx, tokenizer.json, config.json) that judges evidence"
        " for and against opinions where no language model does; unset leaves that to rules.",
    )

    # Budgets and the ledger of model calls
    budget_calls_per_day: int | None = _row(
        None, "Most model calls of the daemon a day (UTC); unset is no cap.", minimum=0
    )
    budget_tokens_per_day: int | None = _row(None, "Most tokens of the daemon a day, in and out.", minimum=0)
    budget_cost_per_day: float | None = _row(
        None, "Most money of the daemon a day, in the currency of the prices.", minimum=0
    )
    budget_bank_calls_per_day: int | None = _row(
        None, "Most model calls of one bank a day; a bank may have its own.", minimum=0
    )
    budget_bank_tokens_per_day: int | None = _row(None, "Most tokens of one bank a day.", minimum=0)
    budget_bank_cost_per_day: float | None = _row(None, "Most money of one bank a day.", minimum=0)
    budget_prices: tuple[str, ...] = _row(
        (),
        "Prices of models: name=input/output or name=input/output/cached a million tokens; a name may hold *.",
    )
    budget_currency: str = _row("USD", "Currency of the prices, for people.")
    budget_check_seconds: float = _row(
        60.0, "How often an operation that waits for a budget looks whether there is one.", minimum=0.05
    )
    ledger_days: float = _row(
        30.0,
        "Days that model calls are kept one by one; sums a day are kept for 400.",
        minimum=0.01,
        maximum=400,
        alias="LLM_TRACE_RETENTION_DAYS",
    )

    # Checks and features
    enable_dry_run_extract: bool = _row(
        True, "The route that shows what extraction would give.", alias="ENABLE_DRY_RUN_EXTRACT", reload=True
    )
    enable_bank_llm_health: bool = _row(
        False, "The route that makes a call to each model of a bank.", alias="ENABLE_BANK_LLM_HEALTH", reload=True
    )
    skip_llm_verification: bool = _row(
        False, "Accepted and not used: no model provider is called at start.", alias="SKIP_LLM_VERIFICATION"
    )
    enable_bank_config_api: bool = _row(
        True, "PATCH and DELETE of a bank's configuration.", alias="ENABLE_BANK_CONFIG_API", reload=True
    )

    @property
    def shard_count(self) -> int:
        """Shards to start: the setting, or half the cores."""
        return self.shards or _half_the_cores()

    @property
    def recall_lane(self) -> int:
        return self.admission_recall_max_in_flight or 16 * (os.cpu_count() or 1)

    @property
    def reflect_lane(self) -> int:
        return self.reflect_max_in_flight or 16 * (os.cpu_count() or 1)

    @property
    def retain_lane(self) -> int:
        return self.admission_retain_max_in_flight or 32 * (os.cpu_count() or 1)

    @property
    def home_path(self) -> Path:
        """The home with `~` put in full."""
        return self.home.expanduser()


def _dotted(attribute: str) -> str:
    section, _, rest = attribute.partition("_")
    return f"{section}.{rest}" if section in SECTIONS and rest else attribute


def _table() -> tuple[Setting, ...]:
    rows = []
    for one in fields(Settings):
        declared = str(one.type)
        optional = declared.endswith(" | None")
        meta = one.metadata
        rows.append(
            Setting(
                name=meta["name"] or _dotted(one.name),
                type=TYPES[declared.removesuffix(" | None")],
                default=one.default,
                help=meta["help"],
                minimum=meta["minimum"],
                maximum=meta["maximum"],
                choices=meta["choices"],
                secret=meta["secret"],
                aliases=meta["aliases"],
                optional=optional,
                reload=meta["reload"],
                engine=meta["engine"],
            )
        )
    return tuple(rows)


SETTINGS: tuple[Setting, ...] = _table()
BY_NAME: dict[str, Setting] = {row.name: row for row in SETTINGS}
