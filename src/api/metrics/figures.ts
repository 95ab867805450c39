// Registers the server's metrics. Values are read on each scrape; src/base/metrics.ts has the few that must be counted as they happen.
import { statSync } from "node:fs";
import { join } from "node:path";
import { watchMailboxes } from "#actors/runtime/mailbox.ts";
import type { LabeledValues } from "#base/labelled-metrics.ts";
import type { Metrics } from "#base/metrics.ts";
import type { SpanCounts, Telemetry } from "#base/spans.ts";
import { COMMIT, VERSION } from "#base/version.ts";
import type { ScheduledBackups } from "#db/backup/schedule.ts";
import { LocalStore } from "#db/engine/local.ts";
import type { Trouble } from "#db/engine/store.ts";
import type { ApiContext } from "../context.ts";
import { registerCluster } from "./cluster.ts";

export const registerFigures = (
  metrics: Metrics,
  ctx: ApiContext & { backups: ScheduledBackups; telemetry: Telemetry | undefined },
): void => {
  metrics.gauge(
    "slipway_build_info",
    "Version of the server; always 1.",
    () => toSample({ version: VERSION, commit: COMMIT }),
    ["version", "commit"],
  );
  registerRequests(metrics, ctx);
  registerActors(metrics, ctx);
  registerStore(metrics, ctx);
  if (ctx.cluster) registerCluster(metrics, ctx.cluster);
  registerChats(metrics, ctx);
  metrics.gauge(
    "slipway_backup_last_success_seconds",
    "Time of the last scheduled backup in seconds since 1970; 0 if none was created since the start.",
    () => ctx.backups.last / 1000,
  );
  registerHomeBackups(metrics, ctx);
  registerSpans(metrics, ctx.telemetry?.counts);
  metrics.counter("slipway_backup_failures_total", "Scheduled backups that have failed.", () => ctx.backups.failures);
};

const toSample = (labels: Record<string, string>): LabeledValues => [{ labels, value: 1 }];

const registerHomeBackups = (metrics: Metrics, { homeBackups }: ApiContext): void => {
  const { counts } = homeBackups;
  const countResults = (): LabeledValues =>
    (["made", "failed", "verified", "damaged"] as const).map((result) => ({
      labels: { result },
      value: counts[result],
    }));
  metrics.counter(
    "slipway_home_backups_total",
    "Home backups that this server has created or verified since its start, by result.",
    countResults,
    ["result"],
  );
  metrics.gauge("slipway_home_backup_bytes", "Bytes stored by all home backups.", () => homeBackups.standing.bytes);
  metrics.gauge(
    "slipway_home_backup_problems",
    "Workspaces whose home backup is missing, too old, failed or damaged.",
    () => homeBackups.standing.problems,
  );
  metrics.gauge(
    "slipway_home_backup_oldest_seconds",
    "Creation time of the oldest among the latest home backups of all workspaces, in seconds since 1970; 0 without backups.",
    () => homeBackups.standing.oldest_ms / 1000,
  );
};

const registerRequests = (metrics: Metrics, { requests, sockets, streams }: ApiContext): void => {
  const countResponses = (): LabeledValues =>
    [...metrics.requests].map(([key, value]) => {
      const [method = "", route = "", status = ""] = key.split(" ");
      return { labels: { method, route, status }, value };
    });
  metrics.counter("slipway_http_requests_total", "Answered requests.", countResponses, ["method", "route", "status"]);
  metrics.histogram(
    "slipway_http_request_seconds",
    "Time to the response of a request; for streams, to its start.",
    metrics.requestSeconds,
  );
  metrics.counter(
    "slipway_http_response_mismatches_total",
    "Responses that did not match their schema. This is a bug in Slipway; the log names the operation and the field.",
    () => requests.mismatches.count,
  );
  metrics.gauge("slipway_http_requests_open", "Requests in progress.", () => requests.size);
  metrics.gauge("slipway_sockets_open", "Open WebSockets.", () => sockets.counts.open);
  metrics.gauge("slipway_agents_connected", "Connected agents.", () => sockets.agents);
  metrics.gauge(
    "slipway_followers",
    "Subscribers of topics, such as followers of logs and chats.",
    () => sockets.followers,
  );
  metrics.counter(
    "slipway_slow_closes_total",
    "WebSockets closed because their reader was too slow.",
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
  const countActors = (): LabeledValues =>
    Object.entries(kinds).map(([kind, { size }]) => ({ labels: { kind }, value: size }));
  metrics.gauge("slipway_actors_live", "Actors in memory.", countActors, ["kind"]);
  metrics.gauge(
    "slipway_mailbox_waiting",
    "Messages waiting in the mailboxes of all actors.",
    () => metrics.mailboxWaiting,
  );
  metrics.histogram("slipway_mailbox_wait_seconds", "Time that a message waited in a mailbox.", metrics.mailboxSeconds);
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
  const toTroubleReader = (kind: Trouble["kind"]) => (): number => (store.trouble?.kind === kind ? 1 : 0);
  metrics.gauge(
    "slipway_database_damaged",
    "1 once a damaged part of the database was read.",
    toTroubleReader("damaged"),
  );
  metrics.gauge("slipway_disk_full", "1 while the disk takes no writes.", toTroubleReader("full"));
  metrics.histogram(
    "slipway_commit_seconds",
    "Duration of a group commit, including the flush.",
    metrics.commitSeconds,
  );
  metrics.histogram("slipway_commit_group_rows", "Rows in a commit group.", metrics.commitRows);
  if (store instanceof LocalStore) {
    const toSizeReader = (name: string) => () =>
      statSync(join(config.data_dir, name), { throwIfNoEntry: false })?.size ?? 0;
    metrics.gauge("slipway_database_bytes", "Size of the database file.", toSizeReader("slipway.db"));
    metrics.gauge("slipway_wal_bytes", "Size of the write-ahead log.", toSizeReader("slipway.db-wal"));
  }
  const { writer } = store;
  if (!writer) return;
  metrics.counter("slipway_commit_groups_total", "Commit groups written to disk.", () => writer.counts.groups);
  metrics.counter("slipway_commit_batches_total", "Batches in them.", () => writer.counts.batches);
  writer.watch = {
    now: () => metrics.clock.monotonic(),
    flushed(ms, rows) {
      metrics.commitSeconds.observe(ms / 1000);
      metrics.commitRows.observe(rows);
    },
  };
};

const registerChats = (metrics: Metrics, { generations, hooks }: ApiContext): void => {
  const { models } = metrics;
  const countDispatches = (): LabeledValues =>
    [...hooks.counts].map(([key, value]) => {
      const [event = "", result = ""] = key.split(" ");
      return { labels: { event, result }, value };
    });
  metrics.counter("slipway_hook_dispatches_total", "Lifecycle hook dispatches, by decision.", countDispatches, [
    ...["event", "result"],
  ]);
  metrics.gauge("slipway_hook_dispatches_open", "Lifecycle hook dispatches waiting for a response.", () => hooks.open);
  metrics.gauge("slipway_chat_turns", "Chat turns that are running or waiting for a slot.", () => generations.size);
  metrics.gauge("slipway_chat_turns_waiting", "Chat turns waiting for a slot.", () => generations.waiting);
  metrics.counter("slipway_chat_turns_total", "Chat turns that got a slot.", () => generations.startedTurns);
  const countCompactions = (): LabeledValues =>
    Object.entries(generations.compactions).map(([outcome, value]) => ({ labels: { outcome }, value }));
  metrics.counter("slipway_chat_compactions_total", "Compactions of chat histories, by result.", countCompactions, [
    "outcome",
  ]);
  metrics.counter("slipway_model_calls_total", "Language model calls.", () => models.calls);
  metrics.counter("slipway_model_retries_total", "Retries of failed language model calls.", () => models.retries);
  const countTokens = (): LabeledValues => [
    { labels: { direction: "in" }, value: models.tokens_in },
    { labels: { direction: "out" }, value: models.tokens_out },
  ];
  metrics.counter("slipway_model_tokens_total", "Tokens as reported by the providers.", countTokens, ["direction"]);
  const countFailures = (): LabeledValues => [...models.failures].map(([kind, value]) => ({ labels: { kind }, value }));
  metrics.counter("slipway_model_failures_total", "Failed language model calls, by reason.", countFailures, ["kind"]);
};

const registerSpans = (metrics: Metrics, counts: Readonly<SpanCounts> | undefined): void => {
  metrics.counter(
    "slipway_spans_exported_total",
    "Spans accepted by the trace collector.",
    () => counts?.exported ?? 0,
  );
  const countDropped = (): LabeledValues =>
    (["buffer_full", "export_failed"] as const).map((reason) => ({ labels: { reason }, value: counts?.[reason] ?? 0 }));
  metrics.counter("slipway_spans_dropped_total", "Dropped spans, by reason.", countDropped, ["reason"]);
};
