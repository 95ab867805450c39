// Restricts the engine networks that a template may name. Pure. Names in a template are checked at import, and again at build, after
// placeholders are filled in.

/**
 * Returns why a workspace cannot use this network; undefined if it can. `container:<id>` would join another workspace's network, and `host`
 * would expose the server's loopback ports to the workspace.
 */
export const findNetworkProblem = (network: string): string | undefined => {
  if (!/^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/.test(network)) return `${network} is not a network name.`;
  return network === "host" ? "A workspace cannot use the machine's own network (host)." : undefined;
};
