// One terminal of the page: its header, its screen, and the drop target for files.
import { useSignal } from "@preact/signals";
import { Button, IconButton } from "../../parts/button.tsx";
import { setTo, writeTo } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { TerminalBox } from "../../parts/terminal/terminal.tsx";
import { uploadFiles } from "../../parts/upload-files.ts";
import type { Terminals } from "./session.ts";

type PaneProps = {
  readonly terminals: Terminals;
  readonly id: string;
  readonly number: number;
  readonly isActive: boolean;
};

export const Pane = ({ terminals, id, number, isActive }: PaneProps) => {
  const isDragOver = useSignal(false);
  const command = terminals.initialCommand?.id === id ? terminals.initialCommand.command : undefined;
  return (
    <section
      class={isActive ? "on" : undefined}
      aria-label={`Terminal ${number}${isActive ? ", active" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        isDragOver.value = true;
      }}
      onDragLeave={setTo(isDragOver, false)}
      onDrop={(event) => {
        event.preventDefault();
        isDragOver.value = false;
        void uploadFiles(terminals.agent, { terminal: id }, [...(event.dataTransfer?.files ?? [])]);
      }}
    >
      <header>
        <Icon name="terminal" small />
        <span class="clip">{terminals.titles.value[id] || command || "Shell"}</span>
        <span class="push line">
          <IconButton icon="x" small label={`Close terminal ${number}`} onPress={() => terminals.close(id)} />
        </span>
      </header>
      <TerminalBox
        hasLeaveHint
        agent_id={terminals.agent}
        terminalId={id}
        command={command}
        label={`Screen of terminal ${number}`}
        fontSize={terminals.fontSize.value}
        onFocus={() => terminals.onFocus(id)}
        onKey={terminals.handleKey}
        onTitle={(title) => {
          terminals.titles.value = { ...terminals.titles.value, [id]: title };
        }}
        onSession={(session) => {
          if (session) terminals.sessions.set(id, session);
          else terminals.sessions.delete(id);
        }}
        onModifier={writeTo(terminals.modifier)}
        onSize={(columns, rows) => {
          terminals.size.value = `${columns} × ${rows}`;
        }}
        endedActions={
          <Button small onPress={() => terminals.restart(id)}>
            Open another
          </Button>
        }
      />
      {isDragOver.value && <p class="drop-here">Drop to upload into the folder of this terminal</p>}
    </section>
  );
};
