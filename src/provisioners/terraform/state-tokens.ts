// Finds the agents' tokens in a Terraform state, the only place where they are stored in readable form.
import { parseState } from "./state-json.ts";

/** Returns the tokens of all agents of a build; none for a state of another provisioner. */
export const parseAgentTokens = (state: string | null): string[] => {
  const { resources } = parseState(state) as {
    resources?: { type: string; instances?: { attributes?: { token?: unknown } }[] }[];
  };
  if (!Array.isArray(resources)) return [];
  return resources
    .filter(({ type }) => type === "coder_agent")
    .flatMap(({ instances = [] }) => instances.flatMap(({ attributes }) => attributes?.token ?? []))
    .filter((token): token is string => typeof token === "string" && token !== "");
};
