// Selects the days and time zone of a report. Both are stored in the address.
import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso/router";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, Options } from "../../parts/field.tsx";
import { into, textInto } from "../../parts/handlers.ts";
import { CHOICES, type DateRange, formatDay } from "./range.ts";

/** The viewer's own time zone. */
export const LOCAL_TIME_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Returns the address of the same page with other days. */
const toRangeUrl = (path: string, requested: Readonly<Record<string, string | undefined>>): string => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(requested)) if (value) query.set(name, value);
  return query.size > 0 ? `${path}?${query}` : path;
};

export const ChooseRange = ({ range }: { range: DateRange }) => {
  const { path, query, route } = useLocation();
  const isOpen = useSignal(false);
  const isOwn = query.from !== undefined;
  const applyRange = (requested: Readonly<Record<string, string | undefined>>): void =>
    route(toRangeUrl(path, { zone: query.zone, ...requested }), true);
  return (
    <>
      <span class="group desk">
        {CHOICES.map((days) => (
          <Button key={days} pressed={!isOwn && range.days === days} onPress={() => applyRange({ days: String(days) })}>
            {days} days
          </Button>
        ))}
      </span>
      <Button icon="clock" onPress={() => (isOpen.value = true)}>
        {formatDay(range.first)} to {formatDay(range.last)}
      </Button>
      {isOpen.value && <Form range={range} applyRange={applyRange} close={() => (isOpen.value = false)} />}
    </>
  );
};

type FormProps = {
  range: DateRange;
  applyRange: (requested: Readonly<Record<string, string | undefined>>) => void;
  close: () => void;
};

const Form = ({ range, applyRange: go, close }: FormProps) => {
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
        {LOCAL_TIME_ZONE !== "UTC" && (
          <Options
            label="Time zone"
            value={zone.value}
            choices={[
              { value: "", label: LOCAL_TIME_ZONE },
              { value: "utc", label: "UTC" },
            ]}
            onPick={into(zone)}
          />
        )}
      </div>
    </Dialog>
  );
};
