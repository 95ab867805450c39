// The permission modes of a chat: four modes, always visible below the message. Shift+Tab in the message selects the next one.
import type { ComponentChildren } from "preact";
import type { ChatPermissions, PermissionMode } from "#schema/chats/chat-permissions.ts";
import { call } from "../../data/api.ts";
import { patchChat } from "../../data/chats.ts";
import { showError } from "../../shell/toasts.tsx";
import type { LiveChat } from "./live-chat.ts";

/** The modes in the order in which the page shows them. */
const MODES: Readonly<Record<PermissionMode, readonly [label: string, meaning: string]>> = {
  ask: ["Ask", "Asks before it edits files, runs commands or uses other tools."],
  accept_edits: ["Accept edits", "Edits files in the workspace folder without asking. Asks before anything else."],
  allow: ["Allow everything", "Edits files, runs commands and uses tools without asking."],
  plan: ["Plan", "Reads files, then proposes a plan for your approval."],
};
const MODE_NAMES = Object.keys(MODES) as PermissionMode[];

export const getNextMode = (mode: PermissionMode): PermissionMode =>
  MODE_NAMES[(MODE_NAMES.indexOf(mode) + 1) % MODE_NAMES.length] ?? "ask";

/** Explains the mode for this chat, including the rules that take precedence. */
const explainMode = (mode: PermissionMode, permissions: ChatPermissions | undefined): string => {
  const [, meaning] = MODES[mode];
  const isStricter = mode === "ask" && (permissions?.default === "ask" || permissions?.default === "deny");
  const meaningHere = isStricter
    ? permissions.default === "ask"
      ? "Asks before every call."
      : "Refuses every call."
    : meaning;
  const ruleCount = permissions?.rules.length ?? 0;
  return ruleCount === 0
    ? meaningHere
    : `${meaningHere} ${ruleCount === 1 ? "1 rule applies" : `${ruleCount} rules apply`} first.`;
};

type ModesProps = {
  readonly mode: PermissionMode;
  readonly permissions: ChatPermissions | undefined;
  readonly onPick: (mode: PermissionMode) => void;
  /** The modes of the chat's coding agent. */
  readonly children?: ComponentChildren;
};

export const Modes = ({ mode, permissions, onPick, children }: ModesProps) => (
  <div class="modes">
    <div
      class="opts"
      role="radiogroup"
      aria-label="Permission mode"
      aria-keyshortcuts="Shift+Tab"
      title="Shift+Tab: next mode"
    >
      {MODE_NAMES.map((one) => (
        <label key={one} data-mode={one}>
          <input
            type="radio"
            name="permission-mode"
            aria-describedby="mode-meaning"
            checked={one === mode}
            // Selecting the current mode again also sends a request, because a late response from the server may be about to change the
            // mode.
            onClick={() => onPick(one)}
          />
          {MODES[one][0]}
        </label>
      ))}
    </div>
    {children}
    <p id="mode-meaning" class="small mut">
      {explainMode(mode, permissions)}
    </p>
  </div>
);

/** Changes are sent sequentially, so that the last selection wins. */
let lastRequest: Promise<unknown> = Promise.resolve();

/** Shows the mode immediately and stores it; reverts if the server refuses. */
export const pickMode = (chat: LiveChat, mode: PermissionMode): void => {
  const showMode = (): void => {
    patchChat(chat.id, { permission_mode: mode });
    if (chat.chat.value) chat.chat.value = { ...chat.chat.value, permission_mode: mode };
  };
  showMode();
  lastRequest = lastRequest
    .then(() => call("PATCH /chats/:chat", { path: { chat: chat.id }, body: { permission_mode: mode } }))
    .catch(showError)
    .then(() => chat.refresh())
    .catch(() => {});
};
