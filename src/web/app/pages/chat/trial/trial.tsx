// The ways of a trial, live: the status, changes, cost and check result of each. The user keeps one or none.
import { useSignal } from "@preact/signals";
import type { Trial, TrialWay } from "#schema/chats/trial.ts";
import { call } from "../../../data/api.ts";
import { trialChanges } from "../../../data/chats.ts";
import { useChange, useResource } from "../../../data/resource.ts";
import { workspaces } from "../../../data/workspaces.ts";
import { Button, ButtonLink } from "../../../parts/button.tsx";
import { confirmAction, Dialog } from "../../../parts/dialog.tsx";
import { DiffFile } from "../../../parts/diff/diff-file.tsx";
import { parseFiles } from "../../../parts/diff/diff-lines.ts";
import { Failed } from "../../../parts/empty.tsx";
import { Fold } from "../../../parts/fold.tsx";
import { formatDuration } from "../../../parts/format-time.ts";
import { setTo } from "../../../parts/handlers.ts";
import { Icon } from "../../../parts/icon.tsx";
import { Skeleton } from "../../../parts/skeleton.tsx";
import { State } from "../../../parts/state.tsx";
import { now } from "../../../parts/time.tsx";
import { useAgents, useModels } from "../choices.tsx";
import type { LiveChat } from "../live-chat.ts";
import { formatCheck, formatTrialTitle, getWayDuration, getWayState, isUnfinished } from "./trial-words.ts";

/** Number of files that are expanded by default. */
const MAX_EXPANDED = 4;

/** Shows the newest trial of the chat, or nothing. */
export const NewestTrial = ({ chat }: { chat: LiveChat }) => {
  const { id } = chat;
  const { state, reload } = useResource(`trials ${id}`, () => call("GET /chats/:chat/trials", { path: { chat: id } }));
  useChange(String(trialChanges.value.get(id) ?? 0), reload);
  const trial = state.value.data?.trials[0];
  return trial ? <TrialPanel key={trial.id} trial={trial} /> : null;
};

const toPath = ({ chat_id, id }: Trial) => ({ chat: chat_id, trial: id });

const TrialPanel = ({ trial }: { trial: Trial }) => {
  const { status, ways, error, check_command } = trial;
  const hasEnded = status === "kept" || status === "discarded";
  const keptWay = ways.find(({ number }) => number === trial.kept_way);
  const canDecide = status === "running" || status === "ready";
  return (
    <section class="panel trial" aria-label="Ways">
      <header>
        <Icon name="branch" />
        <h3>{formatTrialTitle(trial)}</h3>
        <span class="push line">
          {ways.some(isUnfinished) && canDecide && (
            <Button
              small
              look="ghost"
              onPress={() => call("POST /chats/:chat/trials/:trial/stop", { path: toPath(trial) })}
            >
              Stop all
            </Button>
          )}
          {canDecide && (
            <Button small look="ghost" onPress={() => confirmDiscard(trial)}>
              Discard all
            </Button>
          )}
        </span>
      </header>
      {error !== "" && (
        <p class="pad t-bad" role="alert">
          The way was not kept: {error}
        </p>
      )}
      {hasEnded ? (
        <div class="line pad wrap">
          {status === "kept" && keptWay ? (
            <>
              <span class="mut">The workspace now has this way's files, and its chat continues there.</span>
              <ButtonLink small href={`/chats/${keptWay.chat_id}`}>
                Open chat
              </ButtonLink>
            </>
          ) : (
            <span class="mut">The forks are in the trash. The workspace is unchanged.</span>
          )}
        </div>
      ) : (
        <>
          {check_command !== "" && (
            <p class="pad small mut">
              Check: <code class="wrap-any">{check_command}</code>
            </p>
          )}
          <ul class="ways">
            {ways.map((way) => (
              <Way key={way.number} trial={trial} way={way} canDecide={canDecide} />
            ))}
          </ul>
        </>
      )}
    </section>
  );
};

type WayProps = { readonly trial: Trial; readonly way: TrialWay };

const Way = ({ trial, way, canDecide }: WayProps & { canDecide: boolean }) => {
  const { number, changes, check, error, changes_error, chat_id, started_at } = way;
  const isDiffOpen = useSignal(false);
  const [kind, label] = getWayState(way);
  const engineName = useEngine(way);
  const durationMs = getWayDuration(way, now.value);
  const canKeep = canDecide && !isUnfinished(way) && started_at !== undefined;
  return (
    <li aria-label={`Way ${number}`}>
      <div class="line wrap">
        <span class="med">Way {number}</span>
        <span class="push" role="status">
          <State kind={way.deleted ? "done" : kind} tint>
            {way.deleted ? "Deleted" : label}
          </State>
        </span>
      </div>
      {trial.ways.some(({ prompt }) => prompt !== way.prompt) && <p class="small mut clamp">{way.prompt}</p>}
      {engineName && <p class="small dim clip">{engineName}</p>}
      <p class="line wrap small num">
        {changes && (
          <span>
            {changes.files === 1 ? "1 file" : `${changes.files} files`} <span class="plus">+{changes.added}</span>{" "}
            <span class="minus">−{changes.removed}</span>
          </span>
        )}
        {durationMs !== undefined && <span class="dim">{formatDuration(durationMs)}</span>}
        {way.cost_micros > 0 && <span class="dim">{formatDollars(way.cost_micros)}</span>}
      </p>
      {error !== "" && <p class="small t-bad wrap-any">{error}</p>}
      {changes_error !== "" && <p class="small mut wrap-any">Changes unknown: {changes_error}</p>}
      {check && (
        <Fold summary={formatCheck(check)}>
          <pre class="cmd" tabIndex={0} role="region" aria-label={`Check output of way ${number}`}>
            {check.output || "No output"}
          </pre>
        </Fold>
      )}
      <div class="line wrap">
        {started_at !== undefined && !way.deleted && (
          <ButtonLink small look={way.status === "needs_you" ? "primary" : "ghost"} href={`/chats/${chat_id}`}>
            Open chat
          </ButtonLink>
        )}
        {changes && changes.files > 0 && (
          <Button small look="ghost" label={`Show diff of way ${number}`} onPress={setTo(isDiffOpen, true)}>
            Show diff
          </Button>
        )}
        {canKeep && (
          <Button small label={`Keep way ${number}`} onPress={() => confirmKeep(trial, way)}>
            Keep
          </Button>
        )}
      </div>
      {isDiffOpen.value && <DiffDialog trial={trial} way={way} close={setTo(isDiffOpen, false)} />}
    </li>
  );
};

let money: Intl.NumberFormat | undefined;
const formatDollars = (micros: number): string => {
  money ??= new Intl.NumberFormat(undefined, { style: "currency", currency: "USD", maximumFractionDigits: 4 });
  return money.format(micros / 1_000_000);
};

/** Returns the model or coding agent of a way, if it differs from the chat's. */
const useEngine = ({ model_config_id, coding_agent }: TrialWay): string | undefined => {
  const model = useModels().find(({ id }) => id === model_config_id);
  const agent = useAgents(coding_agent !== undefined).find(({ name }) => name === coding_agent);
  return agent?.display_name ?? coding_agent ?? model?.display_name;
};

const getWorkspaceName = ({ workspace_id }: Trial): string =>
  workspaces.value.get(workspace_id)?.name ?? "the workspace";

const confirmKeep = (trial: Trial, { number }: TrialWay): void =>
  confirmAction({
    title: `Keep way ${number}?`,
    text: `The files of way ${number} replace all files of ${getWorkspaceName(trial)}, which restarts if it is running. A snapshot of the current files is created first. The chat of way ${number} continues in ${getWorkspaceName(trial)}. The forks are moved to the trash, and the other chats are archived.`,
    confirmLabel: `Keep way ${number}`,
    cancelLabel: "Cancel",
    act: () => call("POST /chats/:chat/trials/:trial/keep", { path: toPath(trial), body: { way: number } }),
  });

const confirmDiscard = (trial: Trial): void =>
  confirmAction({
    title: "Discard all ways?",
    text: `All forks are moved to the trash, and their chats are archived. ${getWorkspaceName(trial)} is unchanged.`,
    confirmLabel: "Discard all",
    cancelLabel: "Cancel",
    isDanger: true,
    act: () => call("POST /chats/:chat/trials/:trial/discard", { path: toPath(trial) }),
  });

const DiffDialog = ({ trial, way, close }: WayProps & { close: () => void }) => {
  const path = { ...toPath(trial), way: String(way.number) };
  const { state, reload } = useResource(`trial diff ${trial.id} ${way.number} ${trial.updated_at}`, () =>
    call("GET /chats/:chat/trials/:trial/ways/:way/diff", { path }),
  );
  const { data, error } = state.value;
  return (
    <Dialog title={`Changes of way ${way.number}`} class="wide" onClose={close}>
      {error !== undefined && !data ? (
        <Failed title="Can't load the changes" error={error} reload={reload} />
      ) : data ? (
        <div class="stack">
          {data.folders.map(({ root, unified_diff }) => (
            <div key={root} class="stack">
              <p class="mono small mut wrap-any">{root}</p>
              {parseFiles(unified_diff).map((file, index) => (
                <DiffFile key={file.path} file={file} isOpen={index < MAX_EXPANDED} />
              ))}
            </div>
          ))}
        </div>
      ) : (
        <Skeleton lines={6} />
      )}
    </Dialog>
  );
};
