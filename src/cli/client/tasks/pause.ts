// `slipway tasks pause TASK` and `resume TASK`: stop and start the workspace of a task, and wait until that is done.
import { readArguments } from "../../arguments.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { finishBuild } from "../workspaces/build.ts";
import { getWorkspace } from "../workspaces/find.ts";
import { selectTask, toTaskPath } from "./find.ts";

const createVerb =
  (verb: "pause" | "resume", targetStatus: "paused" | "active"): RunVerb =>
  async (input) => {
    const { words, value, has } = readArguments(input.argv, { switches: ["no-wait"] });
    const findTask = selectTask(input, words);
    return withServer(`tasks ${verb}`, input, value, async (remote) => {
      const { client } = remote;
      const task = await findTask(client);
      if (task.status === targetStatus) {
        input.print(has.json ? JSON.stringify(task) : `${task.name} is already ${targetStatus}.`);
        return EXIT.ok;
      }
      const { workspace_build } = await client.post(`${toTaskPath(task)}/${verb}`);
      const workspace = await getWorkspace(client, `${task.owner_name}/${task.workspace_name}`);
      return finishBuild(input, remote, workspace, workspace_build, has);
    });
  };

export const pause = createVerb("pause", "paused");
export const resume = createVerb("resume", "active");
