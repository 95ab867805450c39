// Findings of `doctor` about Terraform templates: which program runs them, or why none does.
import { existsSync } from "node:fs";
import type { Config } from "#base/config.ts";
import { getOwnBinary } from "#base/program.ts";
import { findProgram } from "#src/provisioners/terraform/program.ts";
import type { Finding } from "./finding.ts";

/** A configured program that is missing is a mistake; a machine without one is not. */
export const checkTerraform = async (
  { terraform_binary, terraform_cli_config, agent_binary, agent_binaries }: Config,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Finding> => {
  const name = "terraform";
  const found = await findProgram({ setting: terraform_binary, env });
  if (typeof found === "string") {
    return {
      name,
      status: terraform_binary === undefined ? "ok" : "wrong",
      detail: `Terraform templates are not available: ${found}`,
    };
  }
  const isServed = (getOwnBinary() ?? agent_binary ?? agent_binaries) !== undefined;
  // Workspaces download this program from the server.
  const lacks = isServed
    ? ""
    : "; this server runs from source, so agents have no program to fetch: `bun run build` makes one for the setting agent_binary";
  const detail = `${found.name} ${found.version} at ${found.path}${lacks}`;
  if (terraform_cli_config === undefined || existsSync(terraform_cli_config)) return { name, status: "ok", detail };
  return { name, status: "warn", detail: `${detail}; ${terraform_cli_config} does not exist and is ignored` };
};
