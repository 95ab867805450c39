// The steps in order. A released step is never edited; `bun run migration` writes the next one, which is then listed here.

import init from "../migrations/0000_init.sql" with { type: "text" };
import reports from "../migrations/0001_reports.sql" with { type: "text" };
import provisionerKeyIds from "../migrations/0002_provisioner_key_ids.sql" with { type: "text" };
import signIn from "../migrations/0003_sign_in.sql" with { type: "text" };
import secondFactors from "../migrations/0004_second_factors.sql" with { type: "text" };
import hooks from "../migrations/0005_hooks.sql" with { type: "text" };
import oidcLinks from "../migrations/0006_oidc_links.sql" with { type: "text" };
import passkeys from "../migrations/0007_passkeys.sql" with { type: "text" };
import requestDigests from "../migrations/0008_request_digests.sql" with { type: "text" };
import appStatusAttention from "../migrations/0009_app_status_attention.sql" with { type: "text" };
import templateVariables from "../migrations/0010_template_variables.sql" with { type: "text" };
import replacedChatModel from "../migrations/0011_replaced_chat_model.sql" with { type: "text" };
import declaredDevcontainers from "../migrations/0012_declared_devcontainers.sql" with { type: "text" };
import modelSpend from "../migrations/0013_model_spend.sql" with { type: "text" };
import aiColumns from "../migrations/0014_ai_columns.sql" with { type: "text" };
import chatCompaction from "../migrations/0015_chat_compaction.sql" with { type: "text" };
import notifications from "../migrations/0016_notifications.sql" with { type: "text" };
import followedBuilds from "../migrations/0017_followed_builds.sql" with { type: "text" };
import terminalFont from "../migrations/0018_terminal_font.sql" with { type: "text" };
import groups from "../migrations/0019_groups.sql" with { type: "text" };
import tasks from "../migrations/0020_tasks.sql" with { type: "text" };
import connectionLogs from "../migrations/0021_connection_logs.sql" with { type: "text" };
import userSecrets from "../migrations/0022_user_secrets.sql" with { type: "text" };
import quietHours from "../migrations/0023_quiet_hours.sql" with { type: "text" };
import oauth2 from "../migrations/0024_oauth2.sql" with { type: "text" };
import agentsLatency from "../migrations/0025_agents_latency.sql" with { type: "text" };
import parts from "../migrations/0026_parts.sql" with { type: "text" };
import type { Migration } from "./migration.ts";
import search from "./search.sql" with { type: "text" };
import userStatus from "./user-status.sql" with { type: "text" };

export const MIGRATIONS: readonly Migration[] = [
  { name: "0000_init", sql: init },
  // Written by hand: what Drizzle does not know.
  { name: "0000_search", sql: search },
  { name: "0000_user_status", sql: userStatus },
  { name: "0001_reports", sql: reports },
  { name: "0002_provisioner_key_ids", sql: provisionerKeyIds },
  { name: "0003_sign_in", sql: signIn },
  { name: "0004_second_factors", sql: secondFactors },
  { name: "0005_hooks", sql: hooks },
  { name: "0006_oidc_links", sql: oidcLinks },
  { name: "0007_passkeys", sql: passkeys },
  { name: "0008_request_digests", sql: requestDigests },
  { name: "0009_app_status_attention", sql: appStatusAttention },
  { name: "0010_template_variables", sql: templateVariables },
  { name: "0011_replaced_chat_model", sql: replacedChatModel },
  { name: "0012_declared_devcontainers", sql: declaredDevcontainers },
  { name: "0013_model_spend", sql: modelSpend },
  { name: "0014_ai_columns", sql: aiColumns },
  { name: "0015_chat_compaction", sql: chatCompaction },
  { name: "0016_notifications", sql: notifications },
  { name: "0017_followed_builds", sql: followedBuilds },
  { name: "0018_terminal_font", sql: terminalFont },
  { name: "0019_groups", sql: groups },
  { name: "0020_tasks", sql: tasks },
  { name: "0021_connection_logs", sql: connectionLogs },
  { name: "0022_user_secrets", sql: userSecrets },
  { name: "0023_quiet_hours", sql: quietHours },
  { name: "0024_oauth2", sql: oauth2 },
  { name: "0025_agents_latency", sql: agentsLatency },
  { name: "0026_parts", sql: parts },
];
