// Agents on machines that the server does not start (facts/platform 3.7a): their token and the command to run. The token is in the build's
// encrypted state; the agent's row has only its digest.
import { AppError } from "#base/errors.ts";
import { sha256 } from "#base/ids.ts";
import { listAgentsOfBuild } from "#db/agents/agents.ts";
import { openState } from "#db/workspaces/build-state.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import { findWorkspaceView } from "#db/workspaces/views.ts";
import type { ExternalAgentCredentials } from "#schema/workspaces/external-agent.ts";
import { INIT_ARCHITECTURES, INIT_SYSTEMS } from "#src/provisioners/terraform/init-script.ts";
import { parseAgentTokens } from "#src/provisioners/terraform/state-tokens.ts";
import type { DomainContext } from "../context.ts";

/**
 * Returns the credentials of the agent with this name in the latest build. The caller's access to the workspace must have been checked.
 * Rejects with 404 when there is no such agent, or it is not external, or it signs in without a token.
 */
export const findExternalAgentCredentials = async (
  ctx: Pick<DomainContext, "store" | "encryption" | "accessUrl">,
  workspace_id: string,
  agent_name: string,
): Promise<ExternalAgentCredentials> => {
  const view = await ctx.store.get(findWorkspaceView({ id: workspace_id }));
  if (!view?.template_version.has_external_agent) throw notAvailable("The workspace has no external agent.");
  const agents = await ctx.store.all(listAgentsOfBuild({ build_id: view.build.id }));
  const agent = agents.find(({ name, parent_id }) => name === agent_name && parent_id === null);
  if (!agent) throw notAvailable("The workspace has no external agent of this name.");
  const build = await ctx.store.get(findBuild({ id: view.build.id }));
  const state = build ? openState(ctx.encryption, workspace_id, build.state) : null;
  const agent_token = parseAgentTokens(state).find((token) => sha256(token.toLowerCase()) === agent.token_hash);
  if (agent_token === undefined) throw notAvailable("The agent signs in without a token of this workspace.");
  return { agent_token, command: formatCommand(agent, agent_token, ctx.accessUrl) };
};

/** Returns a one-line shell command. */
const formatCommand = (
  { operating_system, architecture }: { readonly operating_system: string; readonly architecture: string },
  token: string,
  accessUrl: URL,
): string => {
  const os = INIT_SYSTEMS.find((one) => one === operating_system) ?? "linux";
  const arch = INIT_ARCHITECTURES.find((one) => one === architecture) ?? "amd64";
  const script = new URL(`/api/v2/init-script/${os}/${arch}`, accessUrl).href;
  if (os === "windows") return `$env:CODER_AGENT_TOKEN="${token}"; iwr -useb "${script}" | iex`;
  return `curl -fsSL "${script}" | CODER_AGENT_TOKEN="${token}" sh`;
};

const notAvailable = (message: string): AppError => new AppError("not_found", message);
