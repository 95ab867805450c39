// Workspace agents: requests they send with their token, and what users can read about them.
import { endWithParents } from "#domain/agents/sub-agents.ts";
import type { ApiContext } from "../context.ts";
import { routes } from "../http/routes.ts";
import { agentCoordinate } from "../tailnet/coordinate.ts";
import { agentConnection } from "../tailnet/derp-map.ts";
import { agentAppStatus } from "./app-status.ts";
import { agentContainers } from "./containers.ts";
import { agentDevcontainers } from "./devcontainers.ts";
import { agentExternalAuth } from "./external-auth.ts";
import { agentFiles } from "./files.ts";
import { agentGitSshKey } from "./git-ssh-key.ts";
import { instanceIdentity } from "./instance-identity.ts";
import { agentKeys } from "./keys.ts";
import { taskLogSnapshot } from "./log-snapshot.ts";
import { agentLogs } from "./logs.ts";
import { agentReports } from "./me.ts";
import { agentMetadata } from "./metadata.ts";
import { agentById } from "./one.ts";
import { agentPorts } from "./ports.ts";
import { agentReinit } from "./reinit.ts";
import { agentRpc } from "./rpc/index.ts";
import { agentTerminal } from "./terminal.ts";
import { agentTunnel } from "./tunnel.ts";
import { agentUpload } from "./upload.ts";

export const agents = (ctx: ApiContext) => {
  endWithParents(ctx);
  return routes({ prefix: "/workspaceagents" })
    .use(instanceIdentity(ctx))
    .use(agentReports(ctx))
    .use(agentAppStatus(ctx))
    .use(agentExternalAuth(ctx))
    .use(agentGitSshKey(ctx))
    .use(agentReinit(ctx))
    .use(taskLogSnapshot(ctx))
    .use(agentMetadata(ctx))
    .use(agentRpc(ctx))
    .use(agentTunnel(ctx))
    .use(agentLogs(ctx))
    .use(agentPorts(ctx))
    .use(agentContainers(ctx))
    .use(agentDevcontainers(ctx))
    .use(agentTerminal(ctx))
    .use(agentUpload(ctx))
    .use(agentKeys(ctx))
    .use(agentFiles(ctx))
    .use(agentConnection(ctx))
    .use(agentCoordinate(ctx))
    .use(agentById(ctx));
};
