// Addresses inside the private network. An agent's addresses are derived from its ID, so that it cannot claim those of another agent
// (facts/wire 2.4). [TL-11]

const PREFIXES = ["fd7a115ca1e0", "fd60627aa42b"] as const;

/** Returns the addresses that this agent may have, as canonical text. */
export const listAgentAddresses = (agent_id: string): readonly string[] =>
  PREFIXES.map((prefix) => {
    const hex = prefix + agent_id.replaceAll("-", "").slice(12);
    return normalizeAddress((hex.match(/.{4}/g) ?? []).join(":")) as string;
  });

/** Returns the canonical address of a prefix that contains exactly one IPv6 address; undefined for any other text. */
export const parseSingleAddress = (prefix: string): string | undefined => {
  const [address = "", bits, ...rest] = prefix.split("/");
  return bits === "128" && rest.length === 0 ? normalizeAddress(address) : undefined;
};

/** Formats an address from its 16 bytes. */
export const formatAddress = (address: Uint8Array): string =>
  (normalizeAddress((Buffer.from(address).toString("hex").match(/.{4}/g) ?? []).join(":")) ?? "").replace(
    /^\[|\]$/g,
    "",
  );

/** Returns the canonical text of an IPv6 address. */
const normalizeAddress = (address: string): string | undefined => {
  if (!/^[0-9a-f:.]{2,45}$/i.test(address) || !address.includes(":")) return undefined;
  const url = `http://[${address}]/`;
  return URL.canParse(url) ? new URL(url).hostname : undefined;
};
