// `slipway templates list|push`: each word is a file of templates/.
import { subVerbs } from "../sub-verbs.ts";

export const run = subVerbs("templates", {
  list: () => import("./templates/list.ts"),
  push: () => import("./templates/push.ts"),
});
