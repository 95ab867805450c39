// One task of the list: its status, workspace and actions.
import type { Task } from "#schema/tasks/task.ts";
import { call } from "../../data/api.ts";
import { ask } from "../../parts/dialog.tsx";
import { Menu, type MenuItem } from "../../parts/menu.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { say } from "../../shell/toasts.tsx";
import { taskState, taskWords, toId } from "./words.ts";

export const TaskItem = ({ task, again }: { task: Task; again: () => Promise<void> }) => {
  const { kind, words } = taskState(task);
  const chat = toId(task.chat_id);
  const title = task.display_name || task.name;
  const workspace = `/workspaces/${toId(task.workspace_id) ?? ""}`;
  return (
    <li class="item">
      <span class="clip">
        <a class="med" href={chat === undefined ? workspace : `/chats/${chat}`}>
          {title}
        </a>
      </span>
      <Menu label={`More for ${title}`} small items={() => makeItems(task, again)} />
      <span class="small mut clip">
        <State kind={kind}>{words}</State>
        {" · "}
        <a class="link" href={workspace}>
          {task.workspace_name}
        </a>
        {" · "}
        <Time at={task.updated_at} />
        {taskWords(task) !== "" && ` · ${taskWords(task)}`}
      </span>
    </li>
  );
};

const makeItems = (task: Task, again: () => Promise<void>): MenuItem[] => {
  const path = { user: "me", task: task.id };
  const chat = toId(task.chat_id);
  const isPaused = task.status === "paused" || task.status === "error";
  const remove = (): void =>
    ask({
      title: `Delete ${task.name}`,
      text: "Its workspace and everything in it are deleted. Its chat is archived.",
      yes: "Delete task",
      no: "Keep it",
      isDanger: true,
      act: async () => {
        await call("DELETE /tasks/:user/:task", { path });
        await again();
        say(`Deleting ${task.name}`);
      },
    });
  const pause = async (): Promise<void> => {
    await call("POST /tasks/:user/:task/pause", { path });
    await again();
  };
  const resume = async (): Promise<void> => {
    await call("POST /tasks/:user/:task/resume", { path });
    await again();
  };
  return [
    ...(chat === undefined ? [] : [{ icon: "chat", label: "Chat", href: `/chats/${chat}` } as const]),
    { icon: "box", label: "Workspace", href: `/workspaces/${toId(task.workspace_id) ?? ""}` },
    "line",
    isPaused ? { icon: "play", label: "Resume", act: resume } : { icon: "stop", label: "Pause", act: pause },
    { icon: "trash", label: "Delete…", isDanger: true, act: remove },
  ];
};
