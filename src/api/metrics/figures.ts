// Registers the server's metrics and where each is read. Values are read on each scrape; src/base/metrics.ts has the few that must be
// counted as they happen.
import { statSync } from "node:fs";
import { join } from "node:path";
import { watchMailboxes } from "#actors/runtime/mailbox.ts";
import type { Labelled } from "#base/labelled.ts";
import type { Metrics } from "#base/metrics.ts";
import type { SpanCounts, Telemetry } from "#base/spans.ts";
import { COMMIT, VERSION } from "#base/version.ts";
import type { ScheduledBackups } from "#db/backup/schedule.ts";
import { LocalStore } from "#db/engine/local.ts";
import type { Trouble } from "#db/engine/store.ts";
import type { ApiContext } from "../context.ts";
import { registerCluster } from "./cluster.ts";

/** Registers all metrics of this server. */
export const registerFigures = (
  metrics: Metrics,
  ctx: ApiContext & { backups: ScheduledBackups; telemetry: Telemetry | undefined },
): void => {
  metrics.gauge(
    "slipway_build_info",
    "Which Slipway this is; always 1.",
    () => one({ version: VERSION, commit: COMMIT }),
    ["version", "commit"],
  );
  registerRequests(metrics, ctx);
  registerActors(metrics, ctx);
  registerStore(metrics, ctx);
  if (ctx.cluster) registerCluster(metrics, ctx.cluster);
  presentChats(metrics, ctx);
  metrics.gauge(
    "slipway_backup_last_success_seconds",
    "When the server last made a backup by itself, seconds since 1970; 0 for never since the start.",
    () => ctx.backups.last / 1000,
  );
  registerHomeBackups(metrics, ctx);
  registerSpans(metrics, ctx.telemetry?.counts);
  metrics.counter("slipway_backup_failures_total", "Scheduled backups that have failed.", () => ctx.backups.failures);
};

const one = (labels: Record<string, string>): Labelled => [{ labels, value: 1 }];

const registerHomeBackups = (metrics: Metrics, { homeBackups }: ApiContext): void => {
  const { counts } = homeBackups;
  const results = (): Labelled =>
    (["made", "failed", "verified", "damaged"] as const).map((result) => ({
      labels: { result },
      value: counts[result],
    }));
  metrics.counter(
    "slipway_home_backups_total",
    "Home backups made and verified by this server since its start.",
    results,
    ["result"],
  );
  metrics.gauge("slipway_home_backup_bytes", "What all home backups had to store.", () => homeBackups.standing.bytes);
  metrics.gauge(
    "slipway_home_backup_problems",
    "Workspaces whose home backup is missing, too old, failed or damaged.",
    () => homeBackups.standing.problems,
  );
  metrics.gauge(
    "slipway_home_backup_oldest_seconds",
    "When the oldest of the newest home backups was made, seconds since 1970; 0 without any.",
    () => homeBackups.standing.oldest_ms / 1000,
  );
};

const registerRequests = (metrics: Metrics, { requests, sockets, streams }: ApiContext): void => {
  const rows = (): Labelled =>
    [...metrics.requests].map(([key, value]) => {
      const [method = "", route = "", status = ""] = key.split(" ");
      return { labels: { method, route, status }, value };
    });
  metrics.counter("slipway_http_requests_total", "Answered requests.", rows, ["method", "route", "status"]);
  metrics.histogram(
    "slipway_http_request_seconds",
    "Time until a request was answered; for streams until they began.",
    metrics.requestSeconds,
  );
  metrics.counter(
    "slipway_http_response_mismatches_total",
    "Answers that did not fit their own schema: a defect of Slipway, whose log names operation and field.",
    () => requests.mismatches.count,
  );
  metrics.gauge("slipway_http_requests_open", "Requests that are being answered.", () => requests.size);
  metrics.gauge("slipway_sockets_open", "Open WebSockets.", () => sockets.counts.open);
  metrics.gauge("slipway_agents_connected", "Agents that are connected.", () => sockets.agents);
  metrics.gauge(
    "slipway_followers",
    "Readers of topics, such as followers of logs and chats.",
    () => sockets.followers,
  );
  metrics.counter(
    "slipway_slow_closes_total",
    "WebSockets that were closed because their reader was too slow.",
    () => sockets.slowCloses,
  );
  metrics.gauge("slipway_event_streams_open", "Open event streams and long polls.", () => streams.size);
};

const registerActors = (metrics: Metrics, ctx: ApiContext): void => {
  const kinds = {
    agent: ctx.agents,
    chat: ctx.chats,
    template_version: ctx.versions,
    dry_run: ctx.dryRuns,
    workspace: ctx.workspaces,
  };
  const live = (): Labelled => Object.entries(kinds).map(([kind, { size }]) => ({ labels: { kind }, value: size }));
  metrics.gauge("slipway_actors_live", "Actors in memory.", live, ["kind"]);
  metrics.gauge(
    "slipway_mailbox_waiting",
    "Messages that wait for their turn, all actors together.",
    () => metrics.mailboxWaiting,
  );
  metrics.histogram("slipway_mailbox_wait_seconds", "How long a message waited for its turn.", metrics.mailboxSeconds);
  watchMailboxes({
    entered() {
      metrics.mailboxWaiting += 1;
      return metrics.clock.monotonic();
    },
    begun(at) {
      metrics.mailboxWaiting -= 1;
      metrics.mailboxSeconds.observe((metrics.clock.monotonic() - at) / 1000);
    },
  });
};

const registerStore = (metrics: Metrics, { store, config }: ApiContext): void => {
  const isIn = (kind: Trouble["kind"]) => (): number => (store.trouble?.kind === kind ? 1 : 0);
  metrics.gauge("slipway_database_damaged", "1 once a damaged part of the database was read.", isIn("damaged"));
  metrics.gauge("slipway_disk_full", "1 while the disk takes no writes.", isIn("full"));
  metrics.histogram(
    "slipway_commit_seconds",
    "Time of a commit of a group of batches, its flush included.",
    metrics.commitSeconds,
  );
  metrics.histogram("slipway_commit_group_rows", "Rows of a group of batches.", metrics.commitRows);
  if (store instanceof LocalStore) {
    const size = (name: string) => () => statSync(join(config.data_dir, name), { throwIfNoEntry: false })?.size ?? 0;
    metrics.gauge("slipway_database_bytes", "Size of the database file.", size("slipway.db"));
    metrics.gauge("slipway_wal_bytes", "Size of the write-ahead log.", size("slipway.db-wal"));
  }
  const { writer } = store;
  if (!writer) return;
  metrics.counter(
    "slipway_commit_groups_total",
    "Groups of batches that reached the disk.",
    () => writer.counts.groups,
  );
  metrics.counter("slipway_commit_batches_total", "Batches in them.", () => writer.counts.batches);
  writer.watch = {
    now: () => metrics.clock.monotonic(),
    flushed(ms, rows) {
      metrics.commitSeconds.observe(ms / 1000);
      metrics.commitRows.observe(rows);
    },
  };
};

const presentChats = (metrics: Metrics, { generations, hooks }: ApiContext): void => {
  const { models } = metrics;
  const dispatches = (): Labelled =>
    [...hooks.counts].map(([key, value]) => {
      const [event = "", result = ""] = key.split(" ");
      return { labels: { event, result }, value };
    });
  metrics.counter("slipway_hook_dispatches_total", "Dispatches of lifecycle hooks, by what was decided.", dispatches, [
    ...["event", "result"],
  ]);
  metrics.gauge("slipway_hook_dispatches_open", "Dispatches that wait for an answer.", () => hooks.open);
  metrics.gauge("slipway_chat_turns", "Turns of chats that run or wait for a slot.", () => generations.size);
  metrics.gauge("slipway_chat_turns_waiting", "Those that wait for a slot.", () => generations.waiting);
  metrics.counter("slipway_chat_turns_total", "Turns that were given a slot.", () => generations.begun);
  const compactions = (): Labelled =>
    Object.entries(generations.compactions).map(([outcome, value]) => ({ labels: { outcome }, value }));
  metrics.counter("slipway_chat_compactions_total", "Histories that were to be made shorter.", compactions, [
    "outcome",
  ]);
  metrics.counter("slipway_model_calls_total", "Calls of language models.", () => models.calls);
  metrics.counter("slipway_model_retries_total", "Those that repeated a failed one.", () => models.retries);
  const tokens = (): Labelled => [
    { labels: { direction: "in" }, value: models.tokens_in },
    { labels: { direction: "out" }, value: models.tokens_out },
  ];
  metrics.counter("slipway_model_tokens_total", "Tokens, as providers report them.", tokens, ["direction"]);
  const failures = (): Labelled => [...models.failures].map(([kind, value]) => ({ labels: { kind }, value }));
  metrics.counter("slipway_model_failures_total", "Calls that failed, by what went wrong.", failures, ["kind"]);
};

const registerSpans = (metrics: Metrics, counts: Readonly<SpanCounts> | undefined): void => {
  metrics.counter(
    "slipway_spans_exported_total",
    "Spans that the collector of traces has taken.",
    () => counts?.exported ?? 0,
  );
  const dropped = (): Labelled =>
    (["buffer_full", "export_failed"] as const).map((reason) => ({ labels: { reason }, value: counts?.[reason] ?? 0 }));
  metrics.counter("slipway_spans_dropped_total", "Spans that were dropped, by why.", dropped, ["reason"]);
};
