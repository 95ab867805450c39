// The API documentation page in a real browser, as used by someone who tries the API.
import { expect } from "bun:test";
import { Client } from "#src/client.ts";
import { fetchDocument, listOperations } from "#test/fuzz/operations.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { runStory } from "./story.ts";

type SwaggerResult = {
  title: string;
  operations: number;
  tags: string[];
  anonymous: { status: string; body: string };
  schemes: string[];
  signedIn: { status: string; body: string };
  displays: { scheme: string; width: number; fits: boolean; contrast: Record<string, number> }[];
  unnamed: string[];
  stream?: string;
  socket?: string;
};

const createChat = async (person: Client): Promise<string> => {
  const [organization] = await person.get<{ id: string }[]>("/api/v2/organizations");
  const content = [{ type: "text", text: "Hello, stream!" }];
  return (await person.post<{ id: string }>("/api/v2/chats", { organization_id: organization?.id, content })).id;
};

testNeeding(
  [needs.chromium, needs.node],
  "[SW-1] [SW-2] [SW-3] [SW-4] [SW-5] [SW-6] the page lists every operation, accepts a token, and shows responses and streams readably, without requests to other hosts",
  async () => {
    await using server = await startTestServer();
    const { token } = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    const document = await fetchDocument(server.url);
    const chat = await createChat(new Client(server.url, token));
    const args = [server.url.href, token as string, "", "light", "1100", chat];
    const result = await runStory<SwaggerResult>("swagger.mjs", args);
    expect(result.title).toBe("Slipway API");
    expect(result.operations).toBe(listOperations(document).length);
    const used = new Set(listOperations(document).flatMap(({ described }) => described.tags));
    expect(result.tags).toEqual(document.tags.map(({ name }) => name).filter((name) => used.has(name)));
    expect(result.schemes.toSorted()).toEqual(["agent_token", "provisioner_key", "session_token"]);
    expect(result.anonymous.status).toStartWith("401");
    expect(result.signedIn.status).toStartWith("200");
    expect(result.displays.length).toBe(4);
    for (const { fits, contrast } of result.displays) {
      expect(fits).toBe(true);
      expect(Object.entries(contrast).filter(([, ratio]) => ratio < 4.5)).toEqual([]);
    }
    expect(result.unnamed).toEqual([]);
    expect(result.stream).toStartWith("event: ping");
    expect(result.stream).toContain("Hello, stream!");
    expect(result.stream).toEndWith("This page shows its first 3 seconds.");
    expect(result.socket).toContain("This page shows its first 3 seconds.");
    expect(result.requests.length).toBeGreaterThan(5);
    expect(result.requests.filter((url) => !url.startsWith(server.url.origin) && !url.startsWith("data:"))).toEqual([]);
    expect(result.consoleErrors.filter((text) => !text.startsWith("Failed to load resource"))).toEqual([]);
  },
  // Swagger UI is heavy, and the machine may be busy with other tests.
  scaleTimeout(180_000),
);
