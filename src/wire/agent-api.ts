// The service that a workspace agent speaks with the server, typed: what the server implements and what the daemon calls. The one about the
// private network is in tailnet-api.ts; everything else in this folder is free of both.
import { type JsonObject, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import type { Opener } from "./drpc/client.ts";
import { Agent, type Manifest, ManifestSchema } from "./gen/agent_pb.ts";
import { type Client, clientFor, type Handlers } from "./service.ts";

export { Agent };
export type AgentHandlers = Handlers<typeof Agent>;
/** Answers as a handler may write them. */
export type ManifestInit = MessageInitShape<typeof ManifestSchema>;

/** Newest agent API this server knows (facts/wire 1.1); any 2.x is served. */
export const AGENT_API_VERSION = "2.10";

/** `agentClient(session).getManifest({})` */
export const agentClient = (session: Opener): Client<typeof Agent> => clientFor(Agent, session);

/** Returns a manifest as JSON for people: names of variables and of secrets without their values. */
export const manifestWithoutSecrets = (manifest: Manifest): Record<string, unknown> => ({
  ...(toJson(ManifestSchema, manifest) as JsonObject),
  environmentVariables: Object.fromEntries(Object.keys(manifest.environmentVariables).map((name) => [name, ""])),
  secrets: manifest.secrets.map(({ envName, filePath }) => ({ envName, filePath })),
});
