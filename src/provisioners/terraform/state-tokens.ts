// The tokens of agents as a state of Terraform holds them: nowhere else are they kept in a form that can be read.

type StateOfAgents = {
  resources?: { type: string; instances?: { attributes?: { token?: unknown } }[] }[];
};

/** Tokens of all agents that a build has left; none where the state is another program's. */
export const tokensIn = (state: string | null): string[] => {
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
