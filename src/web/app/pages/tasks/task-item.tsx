// One task of the list: its status, workspace and actions.
import type { Task } from "#schema/tasks/task.ts";
import { call } from "../../data/api.ts";
import { confirmAction } from "../../parts/dialog.tsx";
import { Menu, type MenuItem } from "../../parts/menu.tsx";
import { State } from "../../parts/state.tsx";
import { Time } from "../../parts/time.tsx";
import { showToast } from "../../shell/toasts.tsx";
import { formatTaskText, getTaskState, toId } from "./words.ts";

export const TaskItem = ({ task, reload }: { task: Task; reload: () => Promise<void> }) => {
  const { kind, label } = getTaskState(task);
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
      <Menu label={`More for ${title}`} small items={() => listItems(task, reload)} />
      <span class="small mut clip">
        <State kind={kind}>{label}</State>
        {" · "}
        <a class="link" href={workspace}>
          {task.workspace_name}
        </a>
        {" · "}
        <Time at={task.updated_at} />
        {formatTaskText(task) !== "" && ` · ${formatTaskText(task)}`}
      </span>
    </li>
  );
};

const listItems = (task: Task, reload: () => Promise<void>): MenuItem[] => {
  const path = { user: "me", task: task.id };
  const chat = toId(task.chat_id);
  const isPaused = task.status === "paused" || task.status === "error";
  const confirmDelete = (): void =>
    confirmAction({
      title: `Delete ${task.name}`,
      text: "Its workspace and everything in it are deleted. Its chat is archived.",
      confirmLabel: "Delete task",
      cancelLabel: "Keep it",
      isDanger: true,
      act: async () => {
        await call("DELETE /tasks/:user/:task", { path });
        await reload();
        showToast(`Deleting ${task.name}`);
      },
    });
  const pause = async (): Promise<void> => {
    await call("POST /tasks/:user/:task/pause", { path });
    await reload();
  };
  const resume = async (): Promise<void> => {
    await call("POST /tasks/:user/:task/resume", { path });
    await reload();
  };
  return [
    ...(chat === undefined ? [] : [{ icon: "chat", label: "Chat", href: `/chats/${chat}` } as const]),
    { icon: "box", label: "Workspace", href: `/workspaces/${toId(task.workspace_id) ?? ""}` },
    "line",
    isPaused ? { icon: "play", label: "Resume", act: resume } : { icon: "stop", label: "Pause", act: pause },
    { icon: "trash", label: "Delete…", isDanger: true, act: confirmDelete },
  ];
};
