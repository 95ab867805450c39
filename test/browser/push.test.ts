// System notifications in a real browser, through a push service on a real socket.
import { expect } from "bun:test";
import { join } from "node:path";
import { fetchStatus } from "#test/api/users/people.ts";
import { ServerSlot } from "#test/crash/server.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { PushService } from "#test/support/push-service.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { listPageErrors, listStrayRequests, runStory } from "./story.ts";

testNeeding(
  [needs.chromium, needs.node, needs.openssl],
  "[WB-61][NO-8] after a user enables push messages, the service verifies and decrypts a message, the worker shows it, and a click opens its page",
  async () => {
    await using place = await ServerSlot.make();
    using service = await PushService.start(place.scratch);
    const env = { SLIPWAY_WEBPUSH_PRIVATE_NETWORKS: "127.0.0.0/8", NODE_EXTRA_CA_CERTS: service.certificate };
    await place.start({ env });
    const message = join(place.scratch, "message");
    const { email, password } = ADMIN;
    const subscription = JSON.stringify(service.subscription);
    const admin = await place.client.signIn(email, password);
    const removeBrowser = (): Promise<number> => {
      const { endpoint } = service.subscription;
      return fetchStatus(admin, "DELETE", "/users/me/webpush/subscription", { endpoint });
    };
    const actions = {
      delivered: async () => {
        const { text } = await until(() => service.delivered[0]);
        await Bun.write(message, text);
      },
      end: () => admin.delete("/api/v2/users/me/sessions"),
      back: () => until(async () => (await removeBrowser()) === 204),
      off: async () => {
        // The server no longer knows the browser.
        expect(await removeBrowser()).toBe(404);
      },
    };
    const args = [place.client.url.href, email, password, subscription, message];
    // The headless engine has no system notifications.
    const result = await runStory("push.mjs", args, actions, needs.chromium);
    const { webpush_public_key } = await admin.get<{ webpush_public_key: string }>("/api/v2/buildinfo");
    expect(service.refused).toEqual([]);
    expect(service.delivered).toHaveLength(1);
    expect(service.delivered[0]).toMatchObject({ audience: service.origin, key: webpush_public_key });
    expect(result).toMatchObject({
      problems: [],
      requestsBefore: 0,
      permissionRequests: 1,
      before: false,
      same: true,
      closed: true,
      // The first byte of an uncompressed point: the server's key.
      key: "4",
      shown: [{ title: "Test notification", data: { path: "/" } }],
    });
    expect(listStrayRequests(result, place.client.url.origin)).toEqual([]);
    expect(listPageErrors(result)).toEqual([]);
  },
  scaleTimeout(360_000),
);
