// The dialog that forks a workspace: new workspaces start with its files and with copies of the user's chats in it.
import { signal, useSignal } from "@preact/signals";
import { useLocation } from "preact-iso/router";
import { MAX_COPIES } from "#schema/workspaces/fork.ts";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { call } from "../../data/api.ts";
import { setName } from "../../data/names.ts";
import { Field, Switch } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { setTo, writeTextTo, writeTo } from "../../parts/handlers.ts";
import { showToast } from "../../shell/toasts.tsx";

type Source = Pick<WorkspaceSummary, "id" | "name" | "owner_name">;

const openSource = signal<Source | undefined>(undefined);

/** Opens the dialog. The page must render ForkDialog. */
export const openFork = (source: Source): void => {
  setName(source.id, `${source.owner_name}/${source.name}`);
  openSource.value = source;
};

/** Renders nothing until the dialog is opened. */
export const ForkDialog = () =>
  openSource.value ? <ForkForm key={openSource.value.id} source={openSource.value} /> : null;

const ForkForm = ({ source }: { source: Source }) => {
  const { route } = useLocation();
  const count = useSignal("1");
  const copiesChats = useSignal(true);
  const startsCopies = useSignal(true);
  const fork = async (): Promise<void> => {
    const body = { count: Number(count.value), chats: copiesChats.value, start: startsCopies.value };
    const { copies } = await call("POST /workspaces/:workspace/forks", { path: { workspace: source.id }, body });
    const [first, ...more] = copies.map(({ name }) => name);
    const message = more.length === 0 ? `Creating ${first}` : `Creating ${copies.length} workspaces`;
    // A new workspace has no page until its files are copied.
    showToast(message, { label: "Show", act: () => route("/workspaces") });
  };
  return (
    <FormDialog
      title={`Fork ${source.name}`}
      submitLabel="Fork workspace"
      onClose={setTo(openSource, undefined)}
      act={fork}
    >
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
            onInput={writeTextTo(count)}
            min={1}
            max={MAX_COPIES}
            required
            error={problems.count}
          />
          <Switch label="Copy my chats" checked={copiesChats.value} onSwitch={writeTo(copiesChats)} />
          <Switch label="Start the new workspaces" checked={startsCopies.value} onSwitch={writeTo(startsCopies)} />
        </>
      )}
    </FormDialog>
  );
};
