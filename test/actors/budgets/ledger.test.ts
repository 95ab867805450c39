// Budgets against a model based only on the rules: random concurrent calls, with crashes and new periods in between. A failure prints the
// seed to reproduce it.
import { expect } from "bun:test";
import fc from "fast-check";
import { ModelLedger, type OpenCall } from "#actors/chat/spending/ledger.ts";
import { loadUsed, toLimit } from "#actors/chat/spending/limits.ts";
import { systemClock } from "#base/clock.ts";
import { type BudgetRow, deleteBudget, insertBudget, listBudgets } from "#db/budgets/budgets.ts";
import { deletePeriods } from "#db/budgets/periods.ts";
import type { LedgerCall, Settlement } from "#db/chats/reservations.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext } from "#test/support/seed.ts";
import { startTestServer } from "#test/support/server.ts";

const RUNS = Number(process.env.SLIPWAY_TEST_BUDGET_RUNS ?? 12);
const DAY_MS = 86_400_000;

/** Two users, two chats: each call is charged to one of each and to everyone. */
type Charge = { readonly user: number; readonly chat: number };
type Step =
  | { readonly do: "begin"; readonly calls: readonly (Charge & { readonly micros: number })[] }
  | { readonly do: "end"; readonly pick: number; readonly share: number }
  | { readonly do: "giveUp"; readonly pick: number }
  | { readonly do: "crash" }
  | { readonly do: "nextDay" };

const callArbitrary = fc.record({ user: fc.nat(1), chat: fc.nat(1), micros: fc.integer({ min: 1, max: 60 }) });
const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc
      .array(callArbitrary, { minLength: 1, maxLength: 6 })
      .map((calls) => ({ do: "begin", calls }) as const),
  },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("end" as const), pick: fc.nat(9), share: fc.integer({ min: 0, max: 100 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("giveUp" as const), pick: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.constant({ do: "crash" } as const) },
  { weight: 1, arbitrary: fc.constant({ do: "nextDay" } as const) },
);

type ModelCall = Charge & { readonly micros: number; readonly open: OpenCall; readonly row: LedgerCall };
type Entry = Charge & { readonly cost: number; readonly day: number };

const createSettlement = (cost_micros: number): Settlement => ({
  outcome: "ok",
  input_tokens: 0,
  output_tokens: cost_micros,
  cache_read_tokens: 0,
  cache_creation_tokens: 0,
  cost_micros,
  is_estimated: false,
  first_byte_ms: null,
  duration_ms: null,
  provider_request_id: "",
  recording_id: "",
});

const NO_CALL = {
  workspace_id: "",
  key_id: "",
  provider_id: "",
  model_config_id: "",
  asked_model: "",
  model: "",
  organization_id: "none",
  template_id: "",
  kind: "gateway",
} as const;

let runNumber = 0;

testInProcess(
  "[BU-2] [BU-5] [BU-7] concurrent calls, crashes and new days never exceed a budget by more than one reservation, and budgets equal the ledger's sums",
  async () => {
    // Only the calls use this clock. The server and its maintenance use an earlier time.
    const clock = new ManualClock(Date.UTC(2030, 0, 1, 12));
    await using server = await startTestServer();
    const { store } = getContext(server);
    await fc.assert(
      fc.asyncProperty(fc.array(stepArbitrary, { minLength: 10, maxLength: 25 }), async (steps) => {
        runNumber += 1;
        const toId = (name: string, number = 0): string => `${name}-${runNumber}-${number}`;
        const amounts: readonly (readonly [BudgetRow["scope"], string, number])[] = [
          ["everyone", "", 150],
          ...([0, 1] as const).map((user) => ["user", toId("user", user), 100] as const),
          ...([0, 1] as const).map((chat) => ["chat", toId("chat", chat), 70] as const),
        ];
        const now = clock.now();
        const rows = amounts.map(
          ([scope, scope_id, amount], index): BudgetRow => ({
            id: toId("budget", index),
            scope,
            scope_id,
            amount,
            period: "day",
            unit: index % 2 === 0 ? "usd" : "tokens",
            created_at: now,
            updated_at: now,
          }),
        );
        for (const previous of await store.all(listBudgets()))
          await store.commit([deleteBudget(previous.id), deletePeriods(previous.id)]);
        await store.commit(rows.map((row) => insertBudget(row)));
        const appliesTo = ({ user, chat }: Charge, { scope, scope_id }: BudgetRow): boolean =>
          scope === "everyone" || scope_id === toId("user", user) || scope_id === toId("chat", chat);
        let ledger = new ModelLedger({ store, clock, onNotified: () => {} });
        const open: ModelCall[] = [];
        const entries: Entry[] = [];
        const today = (): number => Math.floor(clock.now() / DAY_MS);
        const sumSpent = (row: BudgetRow): number =>
          entries
            .filter((entry) => entry.day === today() && appliesTo(entry, row))
            .reduce((sum, { cost }) => sum + cost, 0);
        const sumReserved = (row: BudgetRow): number =>
          open.filter((call) => appliesTo(call, row)).reduce((sum, { micros }) => sum + micros, 0);
        const hasRoom = (call: Charge): boolean =>
          rows.every((row) => !appliesTo(call, row) || sumSpent(row) + sumReserved(row) < row.amount);
        const takeOpenCall = (pick: number): ModelCall | undefined =>
          open.splice(pick % Math.max(open.length, 1), 1)[0];

        const perform = async (step: Step): Promise<void> => {
          if (step.do === "begin") {
            const started = await Promise.all(
              step.calls.map(async ({ user, chat, micros }) => {
                const row: LedgerCall = {
                  ...NO_CALL,
                  user_id: toId("user", user),
                  root_chat_id: toId("chat", chat),
                  chat_id: toId("chat", chat),
                };
                const opened = await ledger.begin(row, () => ({ micros, tokens: micros }), { always: true });
                return { user, chat, micros, row, opened };
              }),
            );
            // Rejected calls still exceed the budget, because admitted calls only reserved more.
            const rejected: Charge[] = [];
            for (const { opened, ...call } of started) {
              if ("limits" in opened) open.push({ ...call, open: opened });
              else rejected.push(call);
            }
            for (const call of rejected) expect(hasRoom(call)).toBe(false);
          }
          if (step.do === "end") {
            const call = takeOpenCall(step.pick);
            if (!call) return;
            const cost = Math.floor((call.micros * step.share) / 100);
            await ledger.end(call.open, call.row, createSettlement(cost));
            entries.push({ user: call.user, chat: call.chat, cost, day: today() });
          }
          if (step.do === "giveUp") {
            const call = takeOpenCall(step.pick);
            if (call) await ledger.releaseReservation(call.open);
          }
          if (step.do === "crash") {
            ledger.stop();
            ledger = new ModelLedger({ store, clock, onNotified: () => {} });
            await ledger.settleLost({ all: true });
            // Open calls are charged with their reservation.
            for (const { user, chat, micros } of open.splice(0))
              entries.push({ user, chat, cost: micros, day: today() });
          }
          if (step.do === "nextDay") clock.advance(DAY_MS);
        };

        for (const step of steps) {
          await perform(step);
          for (const row of rows) {
            const used = await loadUsed(store, toLimit(row, clock.now()));
            expect([row.scope, used.spent, used.reserved]).toEqual([row.scope, sumSpent(row), sumReserved(row)]);
            const largestReservation = Math.max(0, ...[...open].map(({ micros }) => micros), 60);
            expect(used.spent + used.reserved).toBeLessThan(row.amount + largestReservation);
          }
        }
        for (const call of open.splice(0)) await ledger.releaseReservation(call.open);
        ledger.stop();
        // Runs do not share the budget for everyone.
        clock.advance(2 * DAY_MS);
      }),
      { numRuns: RUNS, endOnFailure: true },
    );
  },
);

testInProcess("[BU-10] a call's usage is stored although the queue of writes is full when the call ends", async () => {
  await using server = await startTestServer();
  const { store } = getContext(server);
  const now = systemClock.now();
  const row = { id: "full-queue", scope: "everyone", scope_id: "", amount: 1_000, period: "day", unit: "usd" } as const;
  await store.commit([insertBudget({ ...row, created_at: now, updated_at: now })]);
  let refusals = 0;
  const commit: Store["commit"] = (...args) =>
    refusals-- > 0
      ? Promise.reject(new CommitError("overloaded", "too many writes are waiting"))
      : store.commit(...args);
  const busyStore: Store = Object.assign(Object.create(null), {
    commit,
    all: store.all.bind(store),
    get: store.get.bind(store),
  });
  const ledger = new ModelLedger({ store: busyStore, clock: systemClock, onNotified: () => {} });
  const call: LedgerCall = { ...NO_CALL, user_id: "u", root_chat_id: "c", chat_id: "c" };
  const opened = await ledger.begin(call, () => ({ micros: 9, tokens: 9 }), { always: true });
  if (!("reserved" in opened)) throw new Error("the call may not begin");
  refusals = 1;
  await ledger.end(opened, call, createSettlement(7));
  ledger.stop();
  const used = await loadUsed(store, toLimit({ ...row, created_at: now, updated_at: now }, now));
  expect([used.spent, used.reserved]).toEqual([7, 0]);
});
