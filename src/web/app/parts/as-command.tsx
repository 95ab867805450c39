// Shows the page's last action as a curl command and as a `slipway` command, to copy.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { recentCalls } from "../data/api.ts";
import { toCurl } from "../data/as-command.ts";
import type { toCliLine } from "../data/cli-lines.ts";
import { loadCode } from "../data/load-code.ts";
import { showError, showToast } from "../shell/toasts.tsx";
import { IconButton } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { setTo } from "./handlers.ts";

const isOpen = signal(false);

export const openCommands = (): void => {
  isOpen.value = true;
};

/** Shown in the header of every page; on phones it is in the menu of the tab bar. */
export const CommandButton = () => (
  <IconButton icon="terminal" class="desk" label="Show this page's requests as commands" onPress={openCommands} />
);

/** Renders the panel when it is open. Used once in the shell. */
export const CommandPanel = () => (isOpen.value ? <CommandDialog /> : null);

/** Copies the text and confirms it. */
export const copyText = async (text: string): Promise<void> => {
  // Without HTTPS there is no clipboard API, except on localhost; the selection is copied instead.
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else {
    const area = document.createElement("textarea");
    area.value = text;
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  showToast("Copied");
};

const CommandDialog = () => {
  const kind = useSignal<"cli" | "curl">("cli");
  const cli = useSignal<typeof toCliLine | undefined>(undefined);
  useEffect(() => {
    void loadCode(() => import("../data/cli-lines.ts")).then((loaded) => {
      cli.value = loaded.toCliLine;
    }, showError);
  }, []);
  const commands = recentCalls.value.toReversed().flatMap((sent) => {
    const text = kind.value === "curl" ? toCurl(sent, location.origin) : cli.value?.(sent);
    return text ? [text] : [];
  });
  const shownCommands = [...new Set(commands)].slice(0, 6);
  const close = (): void => {
    isOpen.value = false;
  };
  return (
    <Dialog title="Show as command" onClose={close} class="wide">
      <div class="line">
        <span class="group" role="group" aria-label="Command type">
          {(["cli", "curl"] as const).map((one) => (
            <button key={one} type="button" class="btn sm" aria-pressed={kind.value === one} onClick={setTo(kind, one)}>
              {one === "cli" ? "CLI" : "curl"}
            </button>
          ))}
        </span>
        <span class="dim small">Newest first. Create a token on the API tokens page.</span>
      </div>
      {shownCommands.length === 0 && (kind.value === "curl" || cli.value) && (
        <p>The command line has no equivalent for this page's requests. Use curl.</p>
      )}
      {shownCommands.map((text) => (
        <div key={text} class="line">
          <pre class="cmd mono grow" tabIndex={0}>
            {text}
          </pre>
          <IconButton icon="copy" small label="Copy command" onPress={() => copyText(text)} />
        </div>
      ))}
    </Dialog>
  );
};
