// The words of `slipway prebuilds`.
import { group } from "../group.ts";
import { CONNECTION } from "./client.ts";

const load = () => import("../client/prebuilds/pause.ts");

export const PREBUILDS = group({
  name: "prebuilds",
  help: "Pause that workspaces are kept ready before anybody asks.",
  details: CONNECTION,
  words: [
    { name: "status", usage: "", help: "Whether it is paused.", load: async () => ({ run: (await load()).status }) },
    {
      name: "pause",
      usage: "",
      help: "None is made or removed; what is ready can be claimed.",
      load: async () => ({ run: (await load()).pause }),
    },
    { name: "resume", usage: "", help: "It goes on at once.", load: async () => ({ run: (await load()).resume }) },
  ],
});
