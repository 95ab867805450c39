// The dialog that forks a workspace: new workspaces start with its files and with copies of the user's chats in it.
import { signal, useSignal } from "@preact/signals";
import { useLocation } from "preact-iso/router";
import { MAX_COPIES } from "#schema/workspaces/fork.ts";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { call } from "../../data/api.ts";
import { setName } from "../../data/names.ts";
import { Field, Switch } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { into, sets, textInto } from "../../parts/handlers.ts";
import { showToast } from "../../shell/toasts.tsx";

type Source = Pick<WorkspaceSummary, "id" | "name" | "owner_name">;

const opened = signal<Source | undefined>(undefined);

/** Opens the dialog. The page must render ForkDialog. */
export const openFork = (source: Source): void => {
  setName(source.id, `${source.owner_name}/${source.name}`);
  opened.value = source;
};

/** Renders nothing until the dialog is opened. */
export const ForkDialog = () => (opened.value ? <OpenDialog key={opened.value.id} source={opened.value} /> : null);

const OpenDialog = ({ source }: { source: Source }) => {
  const { route } = useLocation();
  const count = useSignal("1");
  const chats = useSignal(true);
  const start = useSignal(true);
  const fork = async (): Promise<void> => {
    const body = { count: Number(count.value), chats: chats.value, start: start.value };
    const { copies } = await call("POST /workspaces/:workspace/forks", { path: { workspace: source.id }, body });
    const [first, ...more] = copies.map(({ name }) => name);
    const words = more.length === 0 ? `Creating ${first}` : `Creating ${copies.length} workspaces`;
    // A new workspace has no page until its files are copied.
    showToast(words, { label: "Show", act: () => route("/workspaces") });
  };
  return (
    <FormDialog title={`Fork ${source.name}`} submit="Fork workspace" onClose={sets(opened, undefined)} act={fork}>
      {(problems) => (
        <>
          <p class="mut">
            The new workspaces begin with the files that are in {source.name} now. It is paused while they are copied,
            and is unchanged.
          </p>
          <Field
            label="Workspaces"
            name="count"
            type="number"
            value={count.value}
            onInput={textInto(count)}
            min={1}
            max={MAX_COPIES}
            required
            error={problems.count}
          />
          <Switch label="Copy my chats" checked={chats.value} onSwitch={into(chats)} />
          <Switch label="Start the new workspaces" checked={start.value} onSwitch={into(start)} />
        </>
      )}
    </FormDialog>
  );
};
