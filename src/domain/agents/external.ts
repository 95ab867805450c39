// Agents on machines that the server does not start (facts/platform 3.7a): their token and what to run there. The token is where the build left
// it, in the sealed state; the agent's row has its digest only.
import { AppError } from "#base/errors.ts";
import { sha256 } from "#base/ids.ts";
import { listAgentsOfBuild } from "#db/agents/agents.ts";
import { openState } from "#db/workspaces/build-state.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import { findWorkspaceView } from "#db/workspaces/views.ts";
import type { ExternalAgentCredentials } from "#schema/workspaces/external-agent.ts";
import { INIT_MACHINES, INIT_SYSTEMS } from "#src/provisioners/terraform/init-script.ts";
import { tokensIn } from "#src/provisioners/terraform/state-tokens.ts";
import type { DomainContext } from "../context.ts";

/**
 * Of the agent with this name in the workspace's latest build. The caller may enter the workspace: has been checked. 404 when the workspace has
 * no such agent, or it does not run elsewhere, or signs in without a token.
 */
export const externalAgentCredentials = async (
  ctx: Pick<DomainContext, "store" | "encryption" | "accessUrl">,
  workspace_id: string,
  agent_name: string,
): Promise<ExternalAgentCredentials> => {
  const view = await ctx.store.get(findWorkspaceView({ id: workspace_id }));
  if (!view?.template_version.has_external_agent) throw none("The workspace has no external agent.");
  const agents = await ctx.store.all(listAgentsOfBuild({ build_id: view.build.id }));
  const agent = agents.find(({ name, parent_id }) => name === agent_name && parent_id === null);
  if (!agent) throw none("The workspace has no external agent of this name.");
  const build = await ctx.store.get(findBuild({ id: view.build.id }));
  const state = build ? openState(ctx.encryption, workspace_id, build.state) : null;
  const agent_token = tokensIn(state).find((token) => sha256(token.toLowerCase()) === agent.token_hash);
  if (agent_token === undefined) throw none("The agent signs in without a token of this workspace.");
  return { agent_token, command: commandFor(agent, agent_token, ctx.accessUrl) };
};

/** One line for a shell of the machine. */
const commandFor = (
  { operating_system, architecture }: { readonly operating_system: string; readonly architecture: string },
  token: string,
  accessUrl: URL,
): string => {
  const os = INIT_SYSTEMS.find((one) => one === operating_system) ?? "linux";
  const arch = INIT_MACHINES.find((one) => one === architecture) ?? "amd64";
  const script = new URL(`/api/v2/init-script/${os}/${arch}`, accessUrl).href;
  if (os === "windows") return `$env:CODER_AGENT_TOKEN="${token}"; iwr -useb "${script}" | iex`;
  return `curl -fsSL "${script}" | CODER_AGENT_TOKEN="${token}" sh`;
};

const none = (message: string): AppError => new AppError("not_found", message);
