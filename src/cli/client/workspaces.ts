// `slipway workspaces list|show|create|start|stop|delete|logs|shell`: each word is a file of workspaces/.
import { subVerbs } from "../sub-verbs.ts";

export const run = subVerbs("workspaces", {
  list: () => import("./workspaces/list.ts"),
  show: () => import("./workspaces/show.ts"),
  create: () => import("./workspaces/create.ts"),
  start: () => import("./workspaces/start.ts"),
  stop: () => import("./workspaces/stop.ts"),
  delete: () => import("./workspaces/delete.ts"),
  logs: () => import("./logs.ts"),
  shell: () => import("./workspaces/shell.ts"),
});
