// Budgets: limits on what all users, a user, a group, an organization, a template or a chat may spend in a period, and the current usage.
import { useSignal } from "@preact/signals";
import type { Budget, BudgetPeriod, BudgetScope, BudgetUnit } from "#schema/ai/budget.ts";
import { formatAmount, formatBudgetTitle } from "#schema/ai/budget-words.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { organizations } from "../../data/session.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Failed } from "../../parts/empty.tsx";
import { Field, NameField, Select } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { setTo, writeTo } from "../../parts/handlers.ts";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Time } from "../../parts/time.tsx";

const MICROS_PER_DOLLAR = 1_000_000;

const SCOPES: readonly { readonly value: BudgetScope; readonly label: string }[] = [
  { value: "everyone", label: "Everyone together" },
  { value: "user", label: "One person" },
  { value: "group", label: "A group" },
  { value: "organization", label: "An organization" },
  { value: "template", label: "Workspaces of a template" },
];
const PERIODS = [
  { value: "day", label: "Day" },
  { value: "week", label: "Week" },
  { value: "month", label: "Month" },
];
const UNITS = [
  { value: "usd", label: "US dollars" },
  { value: "tokens", label: "Tokens" },
];

export const Budgets = () => {
  const { state, reload } = useResource("budgets", () => call("GET /ai/budgets"));
  const isAdding = useSignal(false);
  const raisedBudget = useSignal<Budget | undefined>(undefined);
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load the budgets" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={4} />;
  const close = (): void => {
    isAdding.value = false;
    raisedBudget.value = undefined;
    void reload();
  };
  return (
    <section class="stack" aria-labelledby="budgets">
      <div class="head">
        <h2 id="budgets">Budgets</h2>
        <span class="push">
          <Button icon="plus" onPress={setTo(isAdding, true)}>
            Add budget
          </Button>
        </span>
      </div>
      {data.length === 0 ? (
        <p class="mut">
          A budget limits what chats and the AI gateway use together: for everyone, a team or a template.
        </p>
      ) : (
        <ul class="panel list">
          {data.map((budget) => (
            <BudgetRow key={budget.id} budget={budget} onRaise={() => setTo(raisedBudget, budget)()} reload={reload} />
          ))}
        </ul>
      )}
      {isAdding.value && <AddBudget onClose={close} />}
      {raisedBudget.value && <RaiseBudget budget={raisedBudget.value} onClose={close} />}
    </section>
  );
};

const WARNING_SHARE = 0.8;

type RowProps = { readonly budget: Budget; readonly onRaise: () => void; readonly reload: () => Promise<void> };

const BudgetRow = ({ budget, onRaise, reload }: RowProps) => {
  const { unit, amount, extra, spent, reserved, resets_at } = budget;
  const limit = amount + extra;
  const look = spent >= limit ? "t-bad" : spent >= limit * WARNING_SHARE ? "t-attn" : "";
  const title = formatBudgetTitle(budget);
  return (
    <li class="item">
      <span class="med clip">{title}</span>
      <span class="line">
        <span class={`num ${look}`}>
          {formatAmount(unit, spent)} of {formatAmount(unit, limit)}
        </span>
        <Button small onPress={onRaise}>
          Raise
        </Button>
        <IconButton
          icon="trash"
          small
          label={`Remove budget: ${title}`}
          onPress={async () => {
            await call("DELETE /ai/budgets/:budget", { path: { budget: budget.id } });
            await reload();
          }}
        />
      </span>
      <span class="sub clip">
        {extra > 0 && <>Raised by {formatAmount(unit, extra)} for this period. </>}
        {reserved > 0 && <>Reserved for calls in progress: {formatAmount(unit, reserved)}. </>}
        Resets <Time at={resets_at} />
      </span>
    </li>
  );
};

/** Amounts are typed in dollars or tokens. */
const toAmount = (unit: BudgetUnit, text: string): number =>
  Math.round(Number(text) * (unit === "usd" ? MICROS_PER_DOLLAR : 1));

const RaiseBudget = ({ budget, onClose }: { budget: Budget; onClose: () => void }) => (
  <FormDialog
    title={`Raise ${formatBudgetTitle(budget).toLowerCase().startsWith("the") ? formatBudgetTitle(budget).slice(4) : formatBudgetTitle(budget)}`}
    submitLabel="Raise budget"
    onClose={onClose}
    act={async ({ amount = "" }) => {
      const body = { amount: toAmount(budget.unit, amount) };
      await call("POST /ai/budgets/:budget/raise", { path: { budget: budget.id }, body });
    }}
  >
    {(problems) => (
      <Field
        label={budget.unit === "usd" ? "US dollars to add" : "Tokens to add"}
        name="amount"
        type="number"
        min={0}
        step={budget.unit === "usd" ? "0.01" : "1"}
        required
        hint="For the current period only. Chats that are waiting for this budget continue."
        error={problems.amount}
      />
    )}
  </FormDialog>
);

const AddBudget = ({ onClose }: { onClose: () => void }) => {
  const scope = useSignal<string>("everyone");
  const pickedId = useSignal("");
  const period = useSignal<string>("month");
  const unit = useSignal<string>("usd");
  return (
    <FormDialog
      title="Add budget"
      submitLabel="Add budget"
      onClose={onClose}
      act={async ({ user = "", amount = "" }) => {
        const scope_id =
          scope.value === "user"
            ? (await call("GET /users/:user", { path: { user: user.trim() } })).id
            : pickedId.value;
        await call("PUT /ai/budgets", {
          body: {
            scope: scope.value as BudgetScope,
            ...(scope.value === "everyone" ? {} : { scope_id }),
            period: period.value as BudgetPeriod,
            unit: unit.value as BudgetUnit,
            amount: toAmount(unit.value as BudgetUnit, amount),
          },
        });
      }}
    >
      {(problems) => (
        <>
          <Select
            label="For"
            value={scope.value}
            choices={SCOPES}
            hint="Their calls share the budget."
            onPick={(value) => {
              scope.value = value;
              pickedId.value = "";
            }}
          />
          <ScopeField scope={scope.value} picked={pickedId} />
          <Select label="Unit" value={unit.value} choices={UNITS} onPick={writeTo(unit)} />
          <Field
            label="Amount"
            name="amount"
            type="number"
            min={0}
            step={unit.value === "usd" ? "0.01" : "1"}
            required
            error={problems.amount ?? problems.scope_id}
          />
          <Select
            label="Per"
            value={period.value}
            choices={PERIODS}
            hint="In UTC; weeks begin on Monday."
            onPick={writeTo(period)}
          />
        </>
      )}
    </FormDialog>
  );
};

type Choice = { readonly value: string; readonly label: string };
type PickedValue = { value: string };

const ScopeField = ({ scope, picked }: { scope: string; picked: PickedValue }) => {
  if (scope === "user") return <NameField label="Username" name="user" />;
  if (scope === "organization") {
    const choices = organizations.value.map((one) => ({ value: one.id, label: one.display_name || one.name }));
    return <ChoiceSelect label="Organization" choices={choices} picked={picked} />;
  }
  if (scope === "group") return <LoadedSelect label="Group" load={loadGroups} picked={picked} />;
  if (scope === "template") return <LoadedSelect label="Template" load={loadTemplates} picked={picked} />;
  return null;
};

const toChoices = (things: readonly { id: string; name: string; display_name: string }[]): Choice[] =>
  things.map(({ id, name, display_name }) => ({ value: id, label: display_name || name }));
const loadGroups = async (): Promise<Choice[]> => toChoices(await call("GET /groups"));
const loadTemplates = async (): Promise<Choice[]> => toChoices(await call("GET /templates"));

type LoadedProps = { readonly label: string; readonly load: () => Promise<Choice[]>; readonly picked: PickedValue };

const LoadedSelect = ({ label, load, picked }: LoadedProps) => {
  const { state } = useResource(`budget choices ${label}`, load);
  return <ChoiceSelect label={label} choices={state.value.data ?? []} picked={picked} />;
};

const ChoiceSelect = ({
  label,
  choices,
  picked,
}: {
  label: string;
  choices: readonly Choice[];
  picked: PickedValue;
}) => {
  if (picked.value === "" && choices[0]) picked.value = choices[0].value;
  return (
    <Select
      label={label}
      value={picked.value}
      choices={choices}
      onPick={(value) => {
        picked.value = value;
      }}
    />
  );
};
