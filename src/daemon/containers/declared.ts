// Returns the devcontainers that the template names, with absolute paths.
import { join } from "node:path";
import type { Manifest } from "#src/wire/gen/agent_pb.ts";
import { toId } from "../environment.ts";
import { type DevcontainerPaths, findDefaultConfig } from "./devcontainers-find.ts";

export type DeclaredDevcontainer = DevcontainerPaths & { name: string; subagent_id: string | null };

/** `resolve` makes a path absolute: expands variables and `~`, relative to `base`, by default the agent's folder. */
export const listDeclaredDevcontainers = (
  { devcontainers }: Pick<Manifest, "devcontainers">,
  resolve: (path: string, base?: string) => string,
): DeclaredDevcontainer[] =>
  devcontainers.map(({ workspaceFolder, configPath, name, subagentId }) => {
    const workspace_folder = join(resolve(workspaceFolder));
    return {
      name,
      workspace_folder,
      config_path: configPath ? join(resolve(configPath, workspace_folder)) : findDefaultConfig(workspace_folder),
      subagent_id: (subagentId && toId(subagentId)) || null,
    };
  });
