// The agents' tokens in a Terraform state, the only place where they are stored in readable form.

type StateOfAgents = {
  resources?: { type: string; instances?: { attributes?: { token?: unknown } }[] }[];
};

/** Returns the tokens of all agents of a build; none for a state of another provisioner. */
export const parseAgentTokens = (state: string | null): string[] => {
  const { resources } = parsed(state);
  if (!Array.isArray(resources)) return [];
  return resources
    .filter(({ type }) => type === "coder_agent")
    .flatMap(({ instances = [] }) => instances.flatMap(({ attributes }) => attributes?.token ?? []))
    .filter((token): token is string => typeof token === "string" && token !== "");
};

const parsed = (state: string | null): StateOfAgents => {
  try {
    return (JSON.parse(state ?? "{}") ?? {}) as StateOfAgents;
  } catch {
    return {};
  }
};
