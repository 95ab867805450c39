// How long the ledger of lifecycle hooks keeps dispatches and their contents.
import { expect } from "bun:test";
import { HookLedger } from "#actors/hooks/ledger.ts";
import { Client } from "#src/client.ts";
import { createChat, Follower, openChatWorld } from "#test/support/chats.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { getContext } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";
import { Consumer } from "./world.ts";

const python = [needs.python3];

type Dispatches = { readonly dispatches: readonly { readonly event: string; readonly request?: string }[] };

testNeeding(
  python,
  "[HK-14] contents of dispatches are deleted with their chat, and the rows after their retention period",
  async () => {
    await using consumer = await Consumer.start();
    await using world = await openChatWorld({ env: consumer.env({ SLIPWAY_HOOK_LEDGER_CONTENTS: "true" }) });
    const owner = await new Client(world.server.url).signIn(ADMIN.email, ADMIN.password);
    const chat = await createChat(world, "something private");
    (await world.models.next()).say("Fine.").finish();
    using follower = await Follower.open(world.owner, chat.id);
    await follower.until(({ status }) => status === "waiting");
    const listDispatches = async () =>
      (await owner.get<Dispatches>(`/api/v2/hooks/dispatches?chat_id=${chat.id}`)).dispatches.map(
        ({ event, request }) => [event, request?.includes("something private") ?? false],
      );
    expect(await listDispatches()).toEqual([
      ["stop", false],
      ["session_start", false],
      ["user_prompt_submit", true],
    ]);
    await world.owner.patch(`/api/v2/chats/${chat.id}`, { archived: true });
    expect((await world.owner.fetch("DELETE", `/api/v2/chats/${chat.id}`)).status).toBe(204);
    expect((await listDispatches()).map(([, hasContent]) => hasContent)).toEqual([false, false, false]);
    const { store } = getContext(world.server);
    const clock = new ManualClock(Date.now() + 86_400_000 - 60_000);
    const ledger = new HookLedger({ store, clock, days: 1 });
    clock.advance(600_000);
    ledger.sweep();
    await ledger.whenIdle();
    expect(await listDispatches()).toEqual([]);
  },
);
