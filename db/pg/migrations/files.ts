// Written by `bun run migration` from the names of the files beside it.
import step0 from "./0000_release_0_2_0.sql" with { type: "text" };
import step1 from "./0001_groups_to_oauth2.sql" with { type: "text" };
import step2 from "./0002_agents_latency.sql" with { type: "text" };
import step3 from "./0003_parts.sql" with { type: "text" };
import step4 from "./0004_parts_of_nodes.sql" with { type: "text" };
import step5 from "./0005_versions.sql" with { type: "text" };
import step6 from "./0006_bucket_blobs.sql" with { type: "text" };
import step7 from "./0007_workspace_versions.sql" with { type: "text" };
import step8 from "./0008_notices.sql" with { type: "text" };
import step9 from "./0027_key_origins.sql" with { type: "text" };
import step10 from "./0028_oidc_sessions.sql" with { type: "text" };
import step11 from "./0029_model_gateway.sql" with { type: "text" };
import step12 from "./0030_invitations.sql" with { type: "text" };
import step13 from "./0031_coding_agents.sql" with { type: "text" };
import step14 from "./0032_budgets.sql" with { type: "text" };
import step15 from "./0033_workspace_snapshots.sql" with { type: "text" };
import step16 from "./0034_wake_on_connect.sql" with { type: "text" };
import step17 from "./0035_start_without_user_data.sql" with { type: "text" };
import step18 from "./0036_model_recordings.sql" with { type: "text" };
import step19 from "./0037_agent_resources.sql" with { type: "text" };
import step20 from "./0038_workspace_forks.sql" with { type: "text" };
import step21 from "./0039_default_agents.sql" with { type: "text" };
import step22 from "./0040_home_backups.sql" with { type: "text" };
import step23 from "./0041_dotfiles_and_deploy_keys.sql" with { type: "text" };
import step24 from "./0042_repository_prebuilds.sql" with { type: "text" };
import step25 from "./0043_trials.sql" with { type: "text" };
import step26 from "./0044_snapshot_modules.sql" with { type: "text" };
import step27 from "./0045_chat_questions.sql" with { type: "text" };

export const FILES: readonly (readonly [name: string, sql: string])[] = [
  ["0000_release_0_2_0", step0],
  ["0001_groups_to_oauth2", step1],
  ["0002_agents_latency", step2],
  ["0003_parts", step3],
  ["0004_parts_of_nodes", step4],
  ["0005_versions", step5],
  ["0006_bucket_blobs", step6],
  ["0007_workspace_versions", step7],
  ["0008_notices", step8],
  ["0027_key_origins", step9],
  ["0028_oidc_sessions", step10],
  ["0029_model_gateway", step11],
  ["0030_invitations", step12],
  ["0031_coding_agents", step13],
  ["0032_budgets", step14],
  ["0033_workspace_snapshots", step15],
  ["0034_wake_on_connect", step16],
  ["0035_start_without_user_data", step17],
  ["0036_model_recordings", step18],
  ["0037_agent_resources", step19],
  ["0038_workspace_forks", step20],
  ["0039_default_agents", step21],
  ["0040_home_backups", step22],
  ["0041_dotfiles_and_deploy_keys", step23],
  ["0042_repository_prebuilds", step24],
  ["0043_trials", step25],
  ["0044_snapshot_modules", step26],
  ["0045_chat_questions", step27],
];
