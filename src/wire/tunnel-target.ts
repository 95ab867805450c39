// The header of a stream through the tunnel: the server names a port, and the daemon accepts or sends the reason why not; raw bytes follow
// (rules TN-1, TN-2). Used by both ends.
// - server -> daemon: u8 version (1; 2 = the daemon opens TLS_VERSION to the port), u16 port
// - daemon -> server: u8 outcome (0 open, 1 refused, 2 failed), u16 length, reason in UTF-8; length 0 when open
import type { Lookahead } from "./lookahead.ts";
import { WireError } from "./wire-error.ts";

const PLAIN_VERSION = 1;
const TLS_VERSION = 2;
const OUTCOMES = ["open", "refused", "failed"] as const;
const MAX_REASON_BYTES = 512;

export type Outcome = (typeof OUTCOMES)[number];

export type Target = { readonly port: number; readonly tls: boolean };

export const encodeTarget = (port: number, tls = false): Uint8Array =>
  Uint8Array.of(tls ? TLS_VERSION : PLAIN_VERSION, port >> 8, port & 255);

/** Reads the server's request. Throws WireError `protocol` for another version of the header. */
export const readTarget = async (stream: Lookahead): Promise<Target> => {
  const [version, high, low] = (await stream.readExactly(3)) as unknown as [number, number, number];
  if (version !== PLAIN_VERSION && version !== TLS_VERSION)
    throw new WireError("protocol", "Unknown version of the tunnel's header.");
  return { port: high * 256 + low, tls: version === TLS_VERSION };
};

export const encodeOutcome = (outcome: Outcome, reason = ""): Uint8Array => {
  const text = new TextEncoder().encode(reason.slice(0, MAX_REASON_BYTES / 4));
  const bytes = new Uint8Array(3 + text.byteLength);
  bytes.set([OUTCOMES.indexOf(outcome), text.byteLength >> 8, text.byteLength & 255]);
  bytes.set(text, 3);
  return bytes;
};

/** Resolves when the port is open. Throws WireError: `refused` or `closed` with the daemon's reason, `protocol` for an invalid header. */
export const readOutcome = async (stream: Lookahead): Promise<void> => {
  const [outcome, high, low] = (await stream.readExactly(3)) as unknown as [number, number, number];
  const length = high * 256 + low;
  if (OUTCOMES[outcome] === undefined || length > MAX_REASON_BYTES) {
    throw new WireError("protocol", "The agent's answer about a target makes no sense.");
  }
  const reason = new TextDecoder().decode(await stream.readExactly(length));
  if (OUTCOMES[outcome] === "open") return;
  throw new WireError(OUTCOMES[outcome] === "refused" ? "refused" : "closed", reason);
};
