// Saved filters: built-in ones, and the user's own, stored in this browser.
import { computed, signal } from "@preact/signals";
import { me } from "../../data/session.ts";
import { workspacesByUse } from "../../data/workspaces.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field } from "../../parts/field.tsx";
import { sets } from "../../parts/handlers.ts";
import { matching } from "./filter.ts";

type Filter = { readonly name: string; readonly q: string };

const READY: readonly Filter[] = [
  { name: "Mine", q: "owner:me" },
  { name: "Running", q: "owner:me status:running" },
  { name: "Outdated", q: "owner:me outdated:true" },
  { name: "Dormant", q: "owner:me dormant:true" },
  { name: "Everyone", q: "" },
];

const STORE = "workspace-filters";
const read = (): Filter[] => {
  try {
    const kept = JSON.parse(localStorage.getItem(STORE) ?? "[]");
    return Array.isArray(kept) ? kept.filter((one) => typeof one?.name === "string" && typeof one?.q === "string") : [];
  } catch {
    return [];
  }
};
const own = signal<readonly Filter[]>(read());
const keep = (filters: readonly Filter[]): void => {
  own.value = filters;
  localStorage.setItem(STORE, JSON.stringify(filters));
};

const naming = signal(false);

/** The number of matches of each filter, recomputed only when the list or the filters change, not on every keystroke. */
const counts = computed(() => {
  const viewer = { username: me.value?.username ?? "" };
  return new Map([...READY, ...own.value].map(({ q }) => [q, matching(workspacesByUse.value, q, viewer).length]));
});

export const Saved = ({ q, go }: { q: string; go: (q: string) => void }) => {
  const all = [...READY, ...own.value];
  const isKnown = all.some((one) => one.q === q);
  const mine = own.value.find((one) => one.q === q);
  return (
    <div class="tabs" role="navigation" aria-label="Saved filters">
      {all.map((filter) => (
        <a
          key={`${filter.name} ${filter.q}`}
          href={`/workspaces?${new URLSearchParams({ q: filter.q })}`}
          aria-current={filter.q === q ? "true" : undefined}
        >
          {filter.name}
          <span class="count">{counts.value.get(filter.q)}</span>
        </a>
      ))}
      <span class="push line">
        {!isKnown && (
          <Button small look="ghost" icon="save" onPress={sets(naming, true)}>
            Save filter
          </Button>
        )}
        {mine && (
          <IconButton
            small
            icon="trash"
            label={`Delete the filter ${mine.name}`}
            onPress={() => {
              keep(own.value.filter((one) => one !== mine));
              go("owner:me");
            }}
          />
        )}
      </span>
      {naming.value && <Naming q={q} />}
    </div>
  );
};

const Naming = ({ q }: { q: string }) => {
  const close = (): void => {
    naming.value = false;
  };
  return (
    <Dialog
      title="Save filter"
      onClose={close}
      footer={
        <>
          <Button onPress={close}>Cancel</Button>
          <Button look="primary" type="submit" form="name-filter">
            Save filter
          </Button>
        </>
      }
    >
      <form
        id="name-filter"
        onSubmit={(event) => {
          event.preventDefault();
          const name = String(new FormData(event.currentTarget).get("name")).trim();
          if (name !== "") keep([...own.value, { name, q }]);
          close();
        }}
      >
        <Field label="Name" name="name" required maxLength={40} hint={<code>{q}</code>} autocomplete="off" />
      </form>
    </Dialog>
  );
};
