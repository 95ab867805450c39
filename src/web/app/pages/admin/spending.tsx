// Budgets, users' spend limits, and how much each user has spent. Micros are millionths of a US dollar.
import { useSignal } from "@preact/signals";
import type { UsagePeriod } from "#schema/chats/usage-limit.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { organizations } from "../../data/session.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Failed } from "../../parts/empty.tsx";
import { Field, NameField, Select } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { setTo, writeTextTo, writeTo } from "../../parts/handlers.ts";
import { Skeleton } from "../../parts/skeleton.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { Budgets } from "./budgets.tsx";

const MICROS = 1_000_000;
const MONEY = new Intl.NumberFormat(undefined, { style: "currency", currency: "USD" });
const formatDollars = (micros: number): string => MONEY.format(micros / MICROS);
const PERIODS = [
  { value: "day", label: "Day" },
  { value: "week", label: "Week" },
  { value: "month", label: "Month" },
];

const read = async () => {
  const [limits, costs] = await Promise.all([
    call("GET /chats/usage-limits"),
    call("GET /chats/cost/users", { query: { limit: 100 } }),
  ]);
  return { limits, costs };
};
type Read = Awaited<ReturnType<typeof read>>;

export const Spending = () => {
  const { state, reload } = useResource("spending", read);
  const adding = useSignal(false);
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load the spend limits" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={8} />;
  const { limits } = data;
  const own = [
    ...limits.group_overrides.map((one) => ({
      id: one.group_id,
      name: `Each member of ${one.group_display_name || one.group_name}`,
      micros: one.spend_limit_micros,
      remove: () => call("DELETE /chats/usage-limits/group-overrides/:group", { path: { group: one.group_id } }),
    })),
    ...limits.overrides.map((one) => ({
      id: one.user_id,
      name: one.name || one.username,
      micros: one.spend_limit_micros,
      remove: () => call("DELETE /chats/usage-limits/overrides/:user", { path: { user: one.user_id } }),
    })),
  ];
  return (
    <>
      <Budgets />
      <Everybody key={limits.updated_at ?? ""} limits={limits} reload={reload} />
      <section class="stack" aria-labelledby="own">
        <div class="head">
          <h2 id="own">Other limits for a person</h2>
          <span class="push">
            <Button icon="plus" onPress={setTo(adding, true)}>
              Add limit
            </Button>
          </span>
        </div>
        {own.length === 0 ? (
          <p class="mut">
            A person's own limit takes precedence, then the lowest limit of their organizations, then the limit for each
            person.
          </p>
        ) : (
          <ul class="panel list">
            {own.map(({ id, name, micros, remove }) => (
              <li key={id} class="item">
                <span class="med clip">{name}</span>
                <span class="line">
                  <span class="num">{formatDollars(micros)}</span>
                  <IconButton
                    icon="trash"
                    small
                    label={`Remove the limit: ${name}`}
                    onPress={async () => {
                      await remove();
                      await reload();
                    }}
                  />
                </span>
              </li>
            ))}
          </ul>
        )}
      </section>
      <SpendingTable data={data} />
      {adding.value && (
        <AddLimit
          onClose={() => {
            adding.value = false;
            void reload();
          }}
        />
      )}
    </>
  );
};

const Everybody = ({ limits, reload }: { limits: Read["limits"]; reload: () => Promise<void> }) => {
  const amount = useSignal(limits.spend_limit_micros === null ? "" : String(limits.spend_limit_micros / MICROS));
  const period = useSignal<string>(limits.period);
  const save = async (): Promise<void> => {
    const spend_limit_micros = amount.value.trim() === "" ? null : Math.round(Number(amount.value) * MICROS);
    await call("PUT /chats/usage-limits", { body: { spend_limit_micros, period: period.value as UsagePeriod } });
    await reload();
    showToast(spend_limit_micros === null ? "Limit removed" : "Limit saved");
  };
  return (
    <section class="panel" aria-labelledby="everybody">
      <header>
        <h2 id="everybody">Limit for each person</h2>
      </header>
      <div class="body stack">
        <Field
          label="US dollars per user"
          type="number"
          min={0}
          step="0.01"
          value={amount.value}
          placeholder="no limit"
          hint="Leave empty for no limit. 0 blocks all spending."
          onInput={writeTextTo(amount)}
        />
        <Select
          label="Period"
          value={period.value}
          choices={PERIODS}
          hint="In UTC; weeks start on Monday. Applies to all limits."
          onPick={writeTo(period)}
        />
        {limits.unpriced_model_count > 0 && (
          <p class="small t-attn">
            {limits.unpriced_model_count === 1 ? "One model has" : `${limits.unpriced_model_count} models have`} no
            price, so {limits.unpriced_model_count === 1 ? "its" : "their"} cost is not counted toward totals or limits.
            Set prices next to the <a href="/admin/models">models</a>.
          </p>
        )}
      </div>
      <footer>
        <Button look="primary" onPress={save}>
          Save limit
        </Button>
      </footer>
    </section>
  );
};

const SpendingTable = ({ data: { costs } }: { data: Read }) => (
  <section class="panel" aria-labelledby="spent">
    <header>
      <h2 id="spent">Spent in the last 30 days</h2>
    </header>
    {costs.users.length === 0 ? (
      <p class="body mut">No model calls yet.</p>
    ) : (
      <section class="body scroll" tabIndex={0} aria-label="Spending by user">
        <table class="table">
          <thead>
            <tr>
              <th>Person</th>
              <th class="r">Chats</th>
              <th class="r">Tokens in / out</th>
              <th class="r">Spent</th>
            </tr>
          </thead>
          <tbody>
            {costs.users.map((one) => (
              <tr key={one.user_id}>
                <td>{one.name || one.username}</td>
                <td class="r">{one.chat_count}</td>
                <td class="r">
                  {one.input_tokens + one.cache_read_tokens + one.cache_creation_tokens} / {one.output_tokens}
                </td>
                <td class="r">{formatDollars(one.total_cost_micros)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    )}
  </section>
);

const AddLimit = ({ onClose }: { onClose: () => void }) => {
  const whose = useSignal("user");
  const group = useSignal(organizations.value[0]?.id ?? "");
  return (
    <FormDialog
      title="Add limit"
      submitLabel="Add limit"
      onClose={onClose}
      act={async ({ user = "", amount = "" }) => {
        const body = { spend_limit_micros: Math.round(Number(amount) * MICROS) };
        if (whose.value === "user") {
          await call("PUT /chats/usage-limits/overrides/:user", { path: { user: user.trim() }, body });
        } else await call("PUT /chats/usage-limits/group-overrides/:group", { path: { group: group.value }, body });
      }}
    >
      {(problems) => (
        <>
          <Select
            label="Applies to"
            value={whose.value}
            choices={[
              { value: "user", label: "One person" },
              { value: "group", label: "Each member of an organization" },
            ]}
            onPick={writeTo(whose)}
          />
          {whose.value === "user" ? (
            <NameField label="Username" name="user" />
          ) : (
            <Select
              label="Organization"
              value={group.value}
              choices={organizations.value.map((one) => ({ value: one.id, label: one.display_name || one.name }))}
              onPick={writeTo(group)}
            />
          )}
          <Field
            label="US dollars"
            name="amount"
            type="number"
            min={0.01}
            step="0.01"
            required
            error={problems.spend_limit_micros}
          />
        </>
      )}
    </FormDialog>
  );
};
