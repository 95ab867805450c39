// The two services a workspace agent speaks, typed: what the server implements and what the daemon calls. Everything else in
// this folder is free of them.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Opener } from "./drpc-client.ts";
import { Agent, type ManifestSchema } from "./gen/agent_pb.ts";
import {
  type AgentSchema,
  type DERPMapSchema,
  Tailnet,
  Workspace_Status,
  type WorkspaceSchema,
} from "./gen/tailnet_pb.ts";
import { type Client, clientFor, type Handlers } from "./service.ts";

export { Agent, Tailnet, Workspace_Status };
export type AgentHandlers = Handlers<typeof Agent>;
export type TailnetHandlers = Handlers<typeof Tailnet>;
/** Answers as a handler may write them. */
export type ManifestInit = MessageInitShape<typeof ManifestSchema>;
export type DerpMapInit = MessageInitShape<typeof DERPMapSchema>;
/** A workspace, and one of its agents, as desktop clients are shown them. */
export type TailnetWorkspaceInit = MessageInitShape<typeof WorkspaceSchema>;
export type TailnetAgentInit = MessageInitShape<typeof AgentSchema>;

/** Newest agent API this server knows (facts/wire 1.1); any 2.x is served. */
export const AGENT_API_VERSION = "2.10";

/** `agentClient(session).getManifest({})` */
export const agentClient = (session: Opener): Client<typeof Agent> => clientFor(Agent, session);

export const tailnetClient = (session: Opener): Client<typeof Tailnet> => clientFor(Tailnet, session);
