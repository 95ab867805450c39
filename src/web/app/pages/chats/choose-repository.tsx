// A new chat in a repository: a dialog selects the repository, and its workspace is found or created before the first message is sent.
import { useSignal } from "@preact/signals";
import { parseRepositoryAddress } from "#base/links/repository-address.ts";
import type { RecentRepository, RepositoryAsked } from "#schema/templates/repository.ts";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { call } from "../../data/api.ts";
import { canStart } from "../../data/states.ts";
import { waitForWorkspace, workspaces } from "../../data/workspaces.ts";
import { FormDialog } from "../../parts/form-dialog.tsx";
import { NO_REPOSITORY, RepositoryFields, toRepository } from "../../parts/repository-fields.tsx";
import { findFreeName } from "../create/free-name.ts";

type ChooseProps = {
  readonly onClose: () => void;
  readonly onChoose: (repository: RepositoryAsked) => void;
};

/** Asks for the repository that the chat works in. */
export const ChooseRepository = ({ onClose, onChoose }: ChooseProps) => {
  const repository = useSignal<RepositoryAsked>(NO_REPOSITORY);
  return (
    <FormDialog
      title="Work in a repository"
      submitLabel="Choose repository"
      onClose={onClose}
      act={async () => {
        const chosen = toRepository(repository.value);
        if (!chosen) throw new Error("Enter the link to a repository.");
        const { problem } = await call("POST /repositories/read", { body: { repository: chosen } });
        if (problem !== "") throw new Error(problem);
        onChoose(chosen);
      }}
    >
      {(problems) => (
        <RepositoryFields
          value={repository}
          hint="The chat uses your workspace with a clone of it, or creates one."
          problems={problems}
        />
      )}
    </FormDialog>
  );
};

const isSame = (a: RepositoryAsked, b: RepositoryAsked): boolean =>
  (["url", "branch", "commit", "pull_request", "path"] as const).every((name) => (a[name] ?? "") === (b[name] ?? ""));

/** Returns the user's workspace of the repository; undefined if no workspace can be used. */
const findExistingWorkspace = async (requested: RepositoryAsked): Promise<WorkspaceSummary | undefined> => {
  const recent: readonly RecentRepository[] = await call("GET /repositories");
  const address = parseRepositoryAddress(requested.url);
  const match = recent.find(({ repository }) =>
    isSame(repository, { ...requested, url: address?.url ?? requested.url }),
  );
  return match?.workspace && workspaces.value.get(match.workspace.id);
};

/** Returns the ID of a workspace with the repository, once it is ready. Rejects if it does not start. */
export const findOrCreateWorkspace = async (
  requested: RepositoryAsked,
  showStatus: (text: string) => void,
): Promise<string> => {
  const existing = await findExistingWorkspace(requested);
  if (existing && canStart(existing)) {
    await call("POST /workspaces/:workspace/builds", {
      path: { workspace: existing.id },
      body: { transition: "start" },
    });
  }
  const name = existing?.name ?? findFreeName(parseRepositoryAddress(requested.url)?.name ?? "");
  const { id } =
    existing ??
    (await call("POST /users/:user/workspaces", { path: { user: "me" }, body: { name, repository: requested } }));
  showStatus(`Preparing the workspace ${name}. Your message is sent when it is ready.`);
  await waitUntilReady(id, name);
  return id;
};

const PENDING_STATES = new Set(["created", "starting"]);

/** Resolves when the start scripts, including the clone, have finished. */
const waitUntilReady = (id: string, name: string): Promise<void> =>
  waitForWorkspace(id, (workspace) => {
    if (!workspace) throw new Error(`The workspace ${name} was deleted.`);
    if (workspace.status === "failed" || workspace.status === "canceled")
      throw new Error(
        workspace.error || `The workspace ${name} didn't start. Check its log, then send your message again.`,
      );
    const [agent] = workspace.agents;
    if (workspace.status !== "running" || !agent) return false;
    if (agent.lifecycle_state === "start_error")
      throw new Error(`A startup script of the workspace ${name} failed. Check its log, then send your message again.`);
    return agent.status === "connected" && !PENDING_STATES.has(agent.lifecycle_state);
  });
