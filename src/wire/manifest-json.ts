// An agent's manifest for people's eyes: as JSON, names of variables and of secrets without their values.
import { type JsonObject, toJson } from "@bufbuild/protobuf";
import { type Manifest, ManifestSchema } from "./gen/agent_pb.ts";

export const manifestWithoutSecrets = (manifest: Manifest): Record<string, unknown> => ({
  ...(toJson(ManifestSchema, manifest) as JsonObject),
  environmentVariables: Object.fromEntries(Object.keys(manifest.environmentVariables).map((name) => [name, ""])),
  secrets: manifest.secrets.map(({ envName, filePath }) => ({ envName, filePath })),
});
