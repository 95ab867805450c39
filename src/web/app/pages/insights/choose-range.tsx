// Selects the days and time zone of a report. Both are stored in the address.
import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso/router";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, Options } from "../../parts/field.tsx";
import { into, textInto } from "../../parts/handlers.ts";
import { CHOICES, dayWords, type ShownRange } from "./range.ts";

/** The viewer's own time zone. */
export const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Returns the address of the same page with other days. */
const addressWith = (path: string, asked: Readonly<Record<string, string | undefined>>): string => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(asked)) if (value) query.set(name, value);
  return query.size > 0 ? `${path}?${query}` : path;
};

export const ChooseRange = ({ range }: { range: ShownRange }) => {
  const { path, query, route } = useLocation();
  const isOpen = useSignal(false);
  const isOwn = query.from !== undefined;
  const go = (asked: Readonly<Record<string, string | undefined>>): void =>
    route(addressWith(path, { zone: query.zone, ...asked }), true);
  return (
    <>
      <span class="group desk">
        {CHOICES.map((days) => (
          <Button key={days} pressed={!isOwn && range.days === days} onPress={() => go({ days: String(days) })}>
            {days} days
          </Button>
        ))}
      </span>
      <Button icon="clock" onPress={() => (isOpen.value = true)}>
        {dayWords(range.first)} to {dayWords(range.last)}
      </Button>
      {isOpen.value && <Form range={range} go={go} close={() => (isOpen.value = false)} />}
    </>
  );
};

type FormProps = {
  range: ShownRange;
  go: (asked: Readonly<Record<string, string | undefined>>) => void;
  close: () => void;
};

const Form = ({ range, go, close }: FormProps) => {
  const from = useSignal(range.first);
  const to = useSignal(range.last);
  const zone = useSignal(range.isUtc ? "utc" : "");
  const isWrong = from.value === "" || to.value === "" || from.value > to.value;
  return (
    <Dialog
      title="Days"
      onClose={close}
      footer={
        <>
          <Button onPress={close}>Cancel</Button>
          <Button
            look="primary"
            disabled={isWrong}
            onPress={() => {
              close();
              go({ from: from.value, to: to.value, zone: zone.value });
            }}
          >
            Apply
          </Button>
        </>
      }
    >
      <div class="stack">
        <Field label="First day" type="date" value={from.value} onInput={textInto(from)} />
        <Field
          label="Last day"
          type="date"
          value={to.value}
          error={from.value > to.value ? "The last day is before the first day." : undefined}
          onInput={textInto(to)}
        />
        {HERE !== "UTC" && (
          <Options
            label="Time zone"
            value={zone.value}
            choices={[
              { value: "", label: HERE },
              { value: "utc", label: "UTC" },
            ]}
            onPick={into(zone)}
          />
        )}
      </div>
    </Dialog>
  );
};
