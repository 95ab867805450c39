// One terminal of the page: its header, its screen, and the drop target for files.
import { useSignal } from "@preact/signals";
import { Button, IconButton } from "../../parts/button.tsx";
import { into, sets } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { TerminalBox } from "../../parts/terminal/terminal.tsx";
import { uploadFiles } from "../../parts/upload-files.ts";
import type { Terminals } from "./session.ts";

type PaneProps = { readonly all: Terminals; readonly id: string; readonly number: number; readonly isOn: boolean };

export const Pane = ({ all, id, number, isOn }: PaneProps) => {
  const isOver = useSignal(false);
  const command = all.begins?.id === id ? all.begins.command : undefined;
  return (
    <section
      class={isOn ? "on" : undefined}
      aria-label={`Terminal ${number}${isOn ? ", active" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        isOver.value = true;
      }}
      onDragLeave={sets(isOver, false)}
      onDrop={(event) => {
        event.preventDefault();
        isOver.value = false;
        void uploadFiles(all.agent, { terminal: id }, [...(event.dataTransfer?.files ?? [])]);
      }}
    >
      <header>
        <Icon name="terminal" small />
        <span class="clip">{all.titles.value[id] || command || "Shell"}</span>
        <span class="push line">
          <IconButton icon="x" small label={`Close terminal ${number}`} onPress={() => all.close(id)} />
        </span>
      </header>
      <TerminalBox
        isToldToLeave
        agent_id={all.agent}
        reconnect={id}
        command={command}
        label={`Screen of terminal ${number}`}
        fontSize={all.fontSize.value}
        onFocus={() => all.onFocus(id)}
        onKey={all.key}
        onTitle={(title) => {
          all.titles.value = { ...all.titles.value, [id]: title };
        }}
        onSession={(session) => {
          if (session) all.sessions.set(id, session);
          else all.sessions.delete(id);
        }}
        onModifier={into(all.modifier)}
        onSize={(columns, rows) => {
          all.size.value = `${columns} × ${rows}`;
        }}
        ended={
          <Button small onPress={() => all.restart(id)}>
            Open another
          </Button>
        }
      />
      {isOver.value && <p class="drop-here">Drop to upload into the folder of this terminal</p>}
    </section>
  );
};
