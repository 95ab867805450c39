// Starts the app.
import { render } from "preact";
import { drawn } from "./data/first-picture.ts";
import { App } from "./shell/app.tsx";
import { readyToDraw } from "./shell/begin.ts";
import { registerWorker } from "./shell/install.ts";

const root = document.getElementById("app");
if (root)
  void readyToDraw(location.pathname).then(() => {
    render(<App />, root);
    drawn();
  });
registerWorker();
