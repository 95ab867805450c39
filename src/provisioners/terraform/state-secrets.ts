// Finds the secrets in a state file, which are masked in the output of the next build (rule TF-11).
import { ProvisionError } from "../provisioner.ts";
import { parseState } from "./state-json.ts";

const SECRET_ATTRIBUTES = new Set(["token", "session_token", "ssh_private_key", "oidc_access_token", "access_token"]);

/**
 * Returns the secrets of the provider `coder` in a state file; none if the text is not a state. Throws ProvisionError if the state has too
 * many values.
 */
export const parseStateSecrets = (state: string): string[] => {
  try {
    const { resources = [] } = parseState(state) as {
      resources?: { type: string; instances?: { attributes?: Record<string, unknown> }[] }[];
    };
    return resources
      .filter(({ type }) => type.startsWith("coder_"))
      .flatMap(({ instances = [] }) => instances)
      .flatMap(({ attributes = {} }) => Object.entries(attributes))
      .flatMap(([name, value]) => (SECRET_ATTRIBUTES.has(name) && typeof value === "string" ? [value] : []));
  } catch (error) {
    if (error instanceof ProvisionError) throw error;
    return [];
  }
};
