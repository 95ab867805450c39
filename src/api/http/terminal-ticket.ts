// A ticket for one agent's terminal, for a page on another host whose browser sends no cookie with its WebSocket. It is encrypted, valid
// for a minute, and only while the session that created it is valid (rule TM-17).
import type { Clock } from "#base/clock.ts";
import { type Encryption, UnsealError } from "#base/encryption.ts";
import { isUuid } from "#base/ids.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { getPath } from "./errors.ts";

/** The query parameter with the ticket. */
export const TICKET_PARAMETER = "signed_token";
/** The scope of a ticket. */
export const TICKET_SCOPE = "workspace:ssh";
const TICKET_TTL_MS = 60_000;
const TERMINAL_PATH = /^\/api\/v2\/workspaceagents\/([0-9a-fA-F-]{36})\/pty\/?$/;

type Ticket = { readonly user_id: string; readonly key_id: string; readonly until: number };
type Deps = { readonly clock: Clock; readonly encryption: Encryption };

const toSealContext = (agent_id: string): string => `terminal_ticket:${agent_id}`;

/** Returns the agent whose terminal has this path; undefined for any other path. */
export const parseTerminalAgent = (path: string): string | undefined => {
  const id = TERMINAL_PATH.exec(path)?.[1]?.toLowerCase();
  return id !== undefined && isUuid(id) ? id : undefined;
};

export const createTicket = (
  { clock, encryption }: Deps,
  { user_id, key_id }: UserCaller,
  agent_id: string,
): string => {
  const ticket: Ticket = { user_id, key_id, until: clock.now() + TICKET_TTL_MS };
  return encryption.seal(JSON.stringify(ticket), toSealContext(agent_id));
};

/** Returns the ticket in the query of a terminal request; undefined for other requests. */
export const findTicket = (url: string, query: URLSearchParams): string | undefined =>
  query.has(TICKET_PARAMETER) && parseTerminalAgent(getPath(url)) ? (query.get(TICKET_PARAMETER) ?? "") : undefined;

/** Returns the ticket's content; undefined when it has expired, was altered, or is for a different agent than the request. */
export const openTicket = ({ clock, encryption }: Deps, sealed: string, url: string): Ticket | undefined => {
  try {
    const ticket = JSON.parse(encryption.open(sealed, toSealContext(parseTerminalAgent(getPath(url)) ?? ""))) as Ticket;
    return ticket.until > clock.now() ? ticket : undefined;
  } catch (error) {
    if (error instanceof UnsealError) return undefined;
    throw error;
  }
};
