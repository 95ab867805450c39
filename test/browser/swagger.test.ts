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
  stranger: { status: string; body: string };
  schemes: string[];
  signedIn: { status: string; body: string };
  looks: { scheme: string; width: number; fits: boolean; contrast: Record<string, number> }[];
  unnamed: string[];
  stream?: string;
  socket?: string;
};

const newChat = async (person: Client): Promise<string> => {
  const [organization] = await person.get<{ id: string }[]>("/api/v2/organizations");
  const content = [{ type: "text", text: "Hello, stream!" }];
  return (await person.post<{ id: string }>("/api/v2/chats", { organization_id: organization?.id, content })).id;
};

testNeeding(
  [needs.chromium, needs.node],
  "[SW-1] [SW-2] [SW-3] [SW-4] [SW-5] [SW-6] the page lists every operation, accepts a token, shows the response of a call or a stream, and is readable; no request leaves the machine",
  async () => {
    await using server = await startTestServer();
    const { token } = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    const document = await fetchDocument(server.url);
    const chat = await newChat(new Client(server.url, token));
    const args = [server.url.href, token as string, "", "light", "1100", chat];
    const seen = await runStory<SwaggerResult>("swagger.mjs", args);
    expect(seen.title).toBe("Slipway API");
    expect(seen.operations).toBe(listOperations(document).length);
    const used = new Set(listOperations(document).flatMap(({ described }) => described.tags));
    expect(seen.tags).toEqual(document.tags.map(({ name }) => name).filter((name) => used.has(name)));
    expect(seen.schemes.toSorted()).toEqual(["agent_token", "provisioner_key", "session_token"]);
    expect(seen.stranger.status).toStartWith("401");
    expect(seen.signedIn.status).toStartWith("200");
    expect(seen.looks.length).toBe(4);
    for (const { fits, contrast } of seen.looks) {
      expect(fits).toBe(true);
      expect(Object.entries(contrast).filter(([, ratio]) => ratio < 4.5)).toEqual([]);
    }
    expect(seen.unnamed).toEqual([]);
    expect(seen.stream).toStartWith("event: ping");
    expect(seen.stream).toContain("Hello, stream!");
    expect(seen.stream).toEndWith("This page shows its first 3 seconds.");
    expect(seen.socket).toContain("This page shows its first 3 seconds.");
    expect(seen.requests.length).toBeGreaterThan(5);
    expect(seen.requests.filter((url) => !url.startsWith(server.url.origin) && !url.startsWith("data:"))).toEqual([]);
    expect(seen.consoleErrors.filter((text) => !text.startsWith("Failed to load resource"))).toEqual([]);
  },
  // Swagger UI is heavy, and the machine may be busy with other tests.
  scaleTimeout(180_000),
);
