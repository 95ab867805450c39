// Terminal tickets, with which pages of other hosts open sockets of a real server.
import { expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import { Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { seedAgent, seedUser } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { call, handshake } from "../edge/raw-http.ts";

const TICKETS = "/api/v2/applications/reconnecting-pty-signed-token";

test("[TM-17] a ticket opens the terminal of one agent from any page, for a minute and while the session is valid", async () => {
  const clock = new ManualClock();
  await using server = await startTestServer({ clock });
  const [agent, otherAgent] = [await seedAgent(server), await seedAgent(server)];
  const owner = new Client(server.url, agent.owner_token);
  const toTerminalPath = (id: string) => `/api/v2/workspaceagents/${id}/pty`;
  const toSocketUrl = (id: string) => new URL(toTerminalPath(id), server.url).href.replace("http", "ws");
  const createTicket = async (client: Client, id: string) =>
    (await client.post<{ signed_token: string }>(TICKETS, { url: toSocketUrl(id), agentID: id })).signed_token;
  const fetchStatus = async (client: Client, body: object) => (await client.fetch("POST", TICKETS, body)).status;
  const openTerminal = async (path: string, ticket: string, headers: Record<string, string> = {}) => {
    const query = new URLSearchParams({ reconnect: uuid(), signed_token: ticket });
    const request = handshake(`${path}?${query}`, {
      Host: server.url.host,
      Origin: "https://pages.example",
      ...headers,
    });
    return (await call(server.url, request))?.status;
  };

  const ticket = await createTicket(owner, agent.agent_id);
  expect(await openTerminal(toTerminalPath(agent.agent_id), ticket)).toBe(101);
  // A cookie in addition to the ticket is ignored.
  const cookie = { Cookie: `service_session_token=${agent.owner_token}` };
  expect(await openTerminal(toTerminalPath(agent.agent_id), ticket.slice(0, -2), cookie)).toBe(401);
  expect(await openTerminal(toTerminalPath(otherAgent.agent_id), ticket)).toBe(401);
  expect(await openTerminal(`/api/v2/workspaceagents/${agent.agent_id}/logs`, ticket)).not.toBe(101);
  expect((await new Client(server.url).fetch("GET", `/api/v2/users/me?signed_token=${ticket}`)).status).toBe(401);

  expect(await fetchStatus(owner, { url: toSocketUrl(agent.agent_id), agentID: otherAgent.agent_id })).toBe(404);
  for (const url of ["", "nowhere", "javascript:1", server.url.origin, toSocketUrl(otherAgent.agent_id)]) {
    expect([url, await fetchStatus(owner, { url, agentID: agent.agent_id })]).toEqual([url, 400]);
  }
  const outsider = new Client(server.url, (await seedUser(server)).token);
  expect(await fetchStatus(outsider, { url: toSocketUrl(agent.agent_id), agentID: agent.agent_id })).toBe(404);

  clock.advance(61_000);
  expect(await openTerminal(toTerminalPath(agent.agent_id), ticket)).toBe(401);

  const session = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const sessionTicket = await createTicket(session, agent.agent_id);
  await session.post("/api/v2/users/logout");
  expect(await openTerminal(toTerminalPath(agent.agent_id), sessionTicket)).toBe(401);
});
