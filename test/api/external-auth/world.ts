// Starts servers with providers of external accounts, and links accounts as a person on the pages does.
import type { Clock } from "#base/clock.ts";
import type { AgentExternalAuth } from "#schema/users/external-auth.ts";
import { ApiError, Client } from "#src/client.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";
import type { FakeProvider } from "./provider.ts";

export const LOCAL = { SLIPWAY_ALLOWED_PRIVATE_NETWORKS: "127.0.0.0/8" };

export const startWith = (
  providers: readonly Record<string, unknown>[],
  options: { clock?: Clock; directory?: string; env?: Record<string, string> } = {},
): Promise<TestServer> =>
  startTestServer({
    ...options,
    env: { ...LOCAL, SLIPWAY_EXTERNAL_AUTH: JSON.stringify(providers), ...options.env },
  });

/** Links an account by signing in at the provider. */
export const link = async (person: Client, provider: FakeProvider, id: string): Promise<void> => {
  const { url } = await person.post<{ url: string }>(`/api/v2/external-auth/${id}/start`);
  const { code, state } = provider.approve(url);
  await person.post(`/api/v2/external-auth/${id}/callback`, { code, state });
};

export const getAgentToken = (server: TestServer, agent_token: string, query: string): Promise<AgentExternalAuth> =>
  new Client(server.url, agent_token).get<AgentExternalAuth>(`/api/v2/workspaceagents/me/external-auth?${query}`);

/** Returns status and detail of an error; 200 if there was none. */
export const awaitRejection = (call: Promise<unknown>): Promise<{ status: number; detail: string }> =>
  call.then(
    () => ({ status: 200, detail: "" }),
    (error: unknown) => {
      if (!(error instanceof ApiError)) throw error;
      return { status: error.status, detail: error.body.detail ?? "" };
    },
  );
