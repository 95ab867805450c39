// The typed service between a workspace agent and the server: implemented by the server, called by the daemon. The service of the private
// network is in tailnet-api.ts. The other files of this folder depend on neither.
import { type JsonObject, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import type { Opener } from "./drpc/client.ts";
import { Agent, type Manifest, ManifestSchema } from "./gen/agent_pb.ts";
import { type Client, createClient, type Handlers } from "./service.ts";

export { Agent };
export type AgentHandlers = Handlers<typeof Agent>;
/** A manifest in the form that handlers return. */
export type ManifestInit = MessageInitShape<typeof ManifestSchema>;

/** The newest agent API version that this server supports (facts/wire 1.1); any 2.x is served. */
export const AGENT_API_VERSION = "2.10";

/** Returns a client of the agent service, with one function per method: `createAgentClient(session).getManifest({})`. */
export const createAgentClient = (session: Opener): Client<typeof Agent> => createClient(Agent, session);

/** Returns a manifest as JSON for display: names of variables and secrets without their values. */
export const omitManifestSecrets = (manifest: Manifest): Record<string, unknown> => ({
  ...(toJson(ManifestSchema, manifest) as JsonObject),
  environmentVariables: Object.fromEntries(Object.keys(manifest.environmentVariables).map((name) => [name, ""])),
  secrets: manifest.secrets.map(({ envName, filePath }) => ({ envName, filePath })),
});
