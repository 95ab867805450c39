// Monitoring of a server: the dashboard panels and alerts as one table. The files in deploy/monitoring and the table in docs/monitoring.md
// are generated from it (`bun run docs`), and a test compares them.

export type Panel = {
  readonly title: string;
  readonly group: string;
  /** Grafana's unit for the values. */
  readonly unit: "short" | "s" | "bytes" | "reqps" | "percentunit" | "dateTimeFromNow";
  readonly queries: readonly { readonly expr: string; readonly legend: string }[];
};

type Alert = {
  readonly name: string;
  readonly expr: string;
  /** How long the condition must hold before the alert fires. */
  readonly for: string;
  readonly severity: "page" | "ticket";
  /** The problem in one sentence. */
  readonly summary: string;
  /** What to do. */
  readonly action: string;
};

const toQuery = (expr: string, legend = ""): Panel["queries"] => [{ expr, legend }];
const toQuantileQueries = (histogram: string): Panel["queries"] =>
  [0.5, 0.99].map((q) => ({
    expr: `histogram_quantile(${q}, sum by (le) (rate(${histogram}_bucket{job="$job"}[5m])))`,
    legend: `p${100 * q}`,
  }));

export const PANELS: readonly Panel[] = [
  {
    group: "Requests",
    title: "Requests by status",
    unit: "reqps",
    queries: toQuery('sum by (status) (rate(slipway_http_requests_total{job="$job"}[5m]))', "{{status}}"),
  },
  { group: "Requests", title: "Time to answer", unit: "s", queries: toQuantileQueries("slipway_http_request_seconds") },
  {
    group: "Requests",
    title: "Open connections",
    unit: "short",
    queries: [
      { expr: 'slipway_http_requests_open{job="$job"}', legend: "requests" },
      { expr: 'slipway_sockets_open{job="$job"}', legend: "WebSockets" },
      { expr: 'slipway_event_streams_open{job="$job"}', legend: "event streams" },
    ],
  },
  { group: "Database", title: "Time of a commit", unit: "s", queries: toQuantileQueries("slipway_commit_seconds") },
  {
    group: "Database",
    title: "Size",
    unit: "bytes",
    queries: [
      { expr: 'slipway_database_bytes{job="$job"}', legend: "database" },
      { expr: 'slipway_wal_bytes{job="$job"}', legend: "write-ahead log" },
    ],
  },
  {
    group: "Database",
    title: "Trouble",
    unit: "short",
    queries: [
      { expr: 'slipway_database_damaged{job="$job"}', legend: "damaged" },
      { expr: 'slipway_disk_full{job="$job"}', legend: "disk full" },
    ],
  },
  {
    group: "Database",
    title: "Last scheduled backup",
    unit: "dateTimeFromNow",
    queries: toQuery('slipway_backup_last_success_seconds{job="$job"} * 1000 > 0'),
  },
  {
    group: "Database",
    title: "Oldest last home backup",
    unit: "dateTimeFromNow",
    queries: toQuery('slipway_home_backup_oldest_seconds{job="$job"} * 1000 > 0'),
  },
  {
    group: "Workspaces and chats",
    title: "Connected agents",
    unit: "short",
    queries: toQuery('slipway_agents_connected{job="$job"}'),
  },
  {
    group: "Workspaces and chats",
    title: "Turns",
    unit: "short",
    queries: [
      { expr: 'slipway_chat_turns{job="$job"}', legend: "running" },
      { expr: 'slipway_chat_turns_waiting{job="$job"}', legend: "waiting" },
    ],
  },
  {
    group: "Workspaces and chats",
    title: "Model calls that failed",
    unit: "reqps",
    queries: toQuery('sum(rate(slipway_model_failures_total{job="$job"}[5m]))'),
  },
  { group: "Process", title: "Memory", unit: "bytes", queries: toQuery('process_resident_memory_bytes{job="$job"}') },
  {
    group: "Process",
    title: "Event-loop delay",
    unit: "s",
    queries: toQuery('slipway_event_loop_delay_seconds{job="$job"}', "{{quantile}}"),
  },
  { group: "Process", title: "Open files", unit: "short", queries: toQuery('process_open_fds{job="$job"}') },
  {
    group: "Process",
    title: "Waiting messages of actors",
    unit: "short",
    queries: toQuery('slipway_mailbox_waiting{job="$job"}'),
  },
];

export const ALERTS: readonly Alert[] = [
  {
    name: "SlipwayDown",
    expr: 'up{job="slipway"} == 0',
    for: "2m",
    severity: "page",
    summary: "The server doesn't respond to Prometheus.",
    action: "Read `journalctl -u slipway` and run `slipway health`.",
  },
  {
    name: "SlipwayDatabaseDamaged",
    expr: "slipway_database_damaged == 1",
    for: "0m",
    severity: "page",
    summary: "The server has read a damaged part of its database.",
    action: "Stop the server and restore a backup, or run `slipway salvage` ([backup](backup.md#damaged-database)).",
  },
  {
    name: "SlipwayDiskFull",
    expr: "slipway_disk_full == 1",
    for: "0m",
    severity: "page",
    summary: "The disk is full: nothing is saved.",
    action: "Free space on the disk of the data directory. The server continues without a restart.",
  },
  {
    name: "SlipwayDatabaseAway",
    expr: "slipway_database_answers == 0",
    for: "1m",
    severity: "page",
    summary: "PostgreSQL doesn't respond to this node.",
    action: "Check PostgreSQL and the network; `slipway doctor` shows the error.",
  },
  {
    name: "SlipwayNoStandby",
    expr: "slipway_database_standbys < slipway_database_standby_required",
    for: "1m",
    severity: "page",
    summary: "No synchronous standby of PostgreSQL is connected: writes wait.",
    action: "Restore the standby, or stop requiring one ([cluster](cluster.md)).",
  },
  {
    name: "SlipwayErrors",
    expr: 'sum(rate(slipway_http_requests_total{status=~"5..", status!="503"}[5m])) > 0.05 * sum(rate(slipway_http_requests_total[5m]))',
    for: "10m",
    severity: "page",
    summary: "More than one request in twenty fails.",
    action: "The log names each failed request with its reason.",
  },
  {
    name: "SlipwayOverloaded",
    expr: 'sum(rate(slipway_http_requests_total{status="503"}[5m])) > 1',
    for: "10m",
    severity: "ticket",
    summary: "The server refuses more than one request a second.",
    action: "Check commits, waiting messages and open connections; raise `max_connections` or use a faster disk.",
  },
  {
    name: "SlipwaySlowCommits",
    expr: "histogram_quantile(0.99, sum by (le) (rate(slipway_commit_seconds_bucket[10m]))) > 0.5",
    for: "15m",
    severity: "ticket",
    summary: "One commit in a hundred takes longer than half a second.",
    action: "The disk is slow or busy: check what else writes to it.",
  },
  {
    name: "SlipwayEventLoopBlocked",
    expr: 'slipway_event_loop_delay_seconds{quantile="0.99"} > 0.5',
    for: "10m",
    severity: "ticket",
    summary: "The server's event loop is blocked for half a second or more.",
    action: "The server lacks CPU time or has a defect: send a support bundle.",
  },
  {
    name: "SlipwayLogGrows",
    expr: "slipway_wal_bytes > 1073741824",
    for: "30m",
    severity: "ticket",
    summary: "The write-ahead log is larger than 1 GiB.",
    action: "A program holds the database open, such as a SQLite shell: close it.",
  },
  {
    name: "SlipwayBackupFailed",
    expr: "increase(slipway_backup_failures_total[1d]) > 0",
    for: "0m",
    severity: "ticket",
    summary: "A scheduled backup has failed.",
    action: "The log says why; `slipway doctor` names the newest backup.",
  },
  {
    name: "SlipwayHomeBackupProblems",
    expr: "slipway_home_backup_problems > 0",
    for: "1h",
    severity: "ticket",
    summary: "Home backups of workspaces are missing, late, failed or damaged.",
    action: "See Administration > Backups for the workspaces and reasons.",
  },
  {
    name: "SlipwaySpansDropped",
    expr: "sum(rate(slipway_spans_dropped_total[15m])) > 0",
    for: "15m",
    severity: "ticket",
    summary: "Traces have gaps: spans are dropped.",
    action: "The log says why the collector rejects spans; with `buffer_full` lower `otlp_sample_percent`.",
  },
  {
    name: "SlipwayModelsFail",
    expr: "sum(rate(slipway_model_failures_total[15m])) > 0.5 * sum(rate(slipway_model_calls_total[15m]))",
    for: "15m",
    severity: "ticket",
    summary: "More than half of all model calls fail.",
    action: "Check the provider's status, and its key under Administration > Models.",
  },
];
