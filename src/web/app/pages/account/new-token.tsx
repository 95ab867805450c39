// The form for a new token: name, lifetime, scopes and allowed addresses.
import { useSignal } from "@preact/signals";
import { call } from "../../data/api.ts";
import { Area, Field, NameField, Options, Select } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { writeTextTo, writeTo } from "../../parts/handlers.ts";

const LIFETIME_DAYS = [7, 30, 60, 90];

const listLifetimes = (maxHours: number) => [
  ...LIFETIME_DAYS.filter((days) => days * 24 <= maxHours).map((days) => ({
    value: String(days),
    label: `${days} days`,
  })),
  { value: "date", label: "Custom date" },
];

/** Converts to the API's format: seconds until the end of that local day, or a number of days. */
const toLifetime = (days: string, date: string): string => {
  if (days !== "date") return `${Number(days) * 24}h`;
  const seconds = Math.floor((new Date(`${date}T23:59:59`).getTime() - Date.now()) / 1000);
  if (!(seconds > 0)) throw new Error("Choose a date in the future.");
  return `${seconds}s`;
};

const formatDay = (time: number): string => new Date(time).toLocaleDateString("sv");

type NewTokenProps = {
  readonly scopes: readonly string[];
  readonly maxHours: number;
  readonly onCreated: (name: string, key: string) => Promise<void>;
  readonly onClose: () => void;
};

export const NewToken = ({ scopes, maxHours, onCreated, onClose }: NewTokenProps) => {
  const days = useSignal("7");
  const access = useSignal("all");
  const chosenScopes = useSignal<ReadonlySet<string>>(new Set());
  const createToken = async (values: Readonly<Record<string, string>>): Promise<void> => {
    const { token_name = "", date = "", addresses = "" } = values;
    const isScoped = access.value === "some";
    if (isScoped && chosenScopes.value.size === 0) throw new Error("Choose at least one scope.");
    const allowed_addresses = addresses.split(/[\s,]+/).filter(Boolean);
    const body = {
      token_name,
      lifetime: toLifetime(days.value, date),
      ...(isScoped ? { scopes: [...chosenScopes.value] } : {}),
      ...(allowed_addresses.length > 0 ? { allowed_addresses } : {}),
    };
    const { key } = await call("POST /users/me/keys/tokens", { body });
    await onCreated(token_name, key);
  };
  return (
    <FormDialog title="New token" submitLabel="Create token" onClose={onClose} act={createToken}>
      {(problems) => (
        <>
          <NameField label="Name" name="token_name" maxLength={64} placeholder="laptop" error={problems.token_name} />
          <Select
            label="Expiration"
            value={days.value}
            choices={listLifetimes(maxHours)}
            error={problems.lifetime}
            onPick={writeTo(days)}
          />
          {days.value === "date" && <ExpiryField maxHours={maxHours} />}
          <Options
            label="Access"
            value={access.value}
            choices={[
              { value: "all", label: "Full access" },
              { value: "some", label: "Selected scopes" },
            ]}
            onPick={writeTo(access)}
          />
          {access.value === "some" && (
            <Scopes scopes={scopes} chosen={chosenScopes.value} onChange={writeTo(chosenScopes)} />
          )}
          <Area
            label="Allowed addresses"
            name="addresses"
            rows={2}
            spellcheck={false}
            placeholder="203.0.113.0/24"
            hint="IP addresses or networks, one per line. Leave empty to allow any address."
            error={problems.allowed_addresses}
          />
        </>
      )}
    </FormDialog>
  );
};

const ExpiryField = ({ maxHours }: { maxHours: number }) => {
  // Dates that a date field cannot show are not used as a limit.
  const lastDay = maxHours < 100 * 366 * 24 ? formatDay(Date.now() + (maxHours - 24) * 3_600_000) : undefined;
  return <Field label="Expires after" name="date" type="date" required min={formatDay(Date.now())} max={lastDay} />;
};

type ScopesProps = {
  readonly scopes: readonly string[];
  readonly chosen: ReadonlySet<string>;
  readonly onChange: (chosen: ReadonlySet<string>) => void;
};

const Scopes = ({ scopes, chosen, onChange }: ScopesProps) => {
  const search = useSignal("");
  const individualScopes = scopes.filter((scope) => scope !== "all");
  const shownScopes = individualScopes.filter(
    (scope) => chosen.has(scope) || scope.includes(search.value.toLowerCase()),
  );
  const toggleScope = (scope: string): void => {
    const next = new Set(chosen);
    if (!next.delete(scope)) next.add(scope);
    onChange(next);
  };
  return (
    <fieldset class="field">
      <legend>Scopes{chosen.size > 0 && `, ${chosen.size} chosen`}</legend>
      <input
        class="input"
        aria-label="Find scopes"
        placeholder="workspace, template, read"
        value={search.value}
        onInput={writeTextTo(search)}
      />
      <div class="checks">
        {shownScopes.map((scope) => (
          <label key={scope} class="line">
            <input type="checkbox" checked={chosen.has(scope)} onChange={() => toggleScope(scope)} />
            <span class="mono">{scope}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
};
