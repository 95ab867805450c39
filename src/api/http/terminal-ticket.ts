// A ticket for the terminal of one agent: for a page of another host, whose browser sends no cookie with its WebSocket. Sealed, good for a
// minute, and only as long as the session counts that it was made in (rule TM-17).
import type { Clock } from "#base/clock.ts";
import { type Encryption, UnsealError } from "#base/encryption.ts";
import { isUuid } from "#base/ids.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { getPath } from "./errors.ts";

/** The parameter of the query that holds it. */
export const TICKET_PARAMETER = "signed_token";
/** What it may be used for, as if it were a key. */
export const TICKET_SCOPE = "workspace:ssh";
const LIFE_MS = 60_000;
const PLACE = /^\/api\/v2\/workspaceagents\/([0-9a-fA-F-]{36})\/pty\/?$/;

type Ticket = { readonly user_id: string; readonly key_id: string; readonly until: number };
type Deps = { readonly clock: Clock; readonly encryption: Encryption };

const toSealContext = (agent_id: string): string => `terminal_ticket:${agent_id}`;

/** The agent whose terminal is at this path; undefined for another path. */
export const agentOfTerminal = (path: string): string | undefined => {
  const id = PLACE.exec(path)?.[1]?.toLowerCase();
  return id !== undefined && isUuid(id) ? id : undefined;
};

export const newTicket = ({ clock, encryption }: Deps, { user_id, key_id }: UserCaller, agent_id: string): string => {
  const ticket: Ticket = { user_id, key_id, until: clock.now() + LIFE_MS };
  return encryption.seal(JSON.stringify(ticket), toSealContext(agent_id));
};

/** The ticket in the query of a request for a terminal; undefined elsewhere. */
export const ticketIn = (url: string, query: URLSearchParams): string | undefined =>
  query.has(TICKET_PARAMETER) && agentOfTerminal(getPath(url)) ? (query.get(TICKET_PARAMETER) ?? "") : undefined;

/** Whose session it stands for; undefined when it is over, was altered, or is for another agent than the request's. */
export const openTicket = ({ clock, encryption }: Deps, text: string, url: string): Ticket | undefined => {
  try {
    const ticket = JSON.parse(encryption.open(text, toSealContext(agentOfTerminal(getPath(url)) ?? ""))) as Ticket;
    return ticket.until > clock.now() ? ticket : undefined;
  } catch (error) {
    if (error instanceof UnsealError) return undefined;
    throw error;
  }
};
