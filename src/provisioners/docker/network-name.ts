// Which networks of an engine a template may name. Pure; asked at the import for what stands in the template, and at the build for what
// values make of it.

/**
 * Why a workspace cannot be in this network; undefined when it can. `container:<id>` would enter another workspace's network, and in `host`
 * the server's own ports on loopback would be open to the workspace.
 */
export const networkProblem = (network: string): string | undefined => {
  if (!/^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/.test(network)) return `${network} is not a network name.`;
  return network === "host" ? "A workspace cannot use the machine's own network (host)." : undefined;
};
