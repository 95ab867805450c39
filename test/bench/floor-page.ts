// The baseline of the page rows: a minimal server with one minimal page, measured in the same browser with the same scripts
// (web-floor.mjs). It shows what images, keys and lines cost on this machine.
import type { Server } from "bun";

/** A message's text, as in the benchmark's chats. */
const TEXT = "word ".repeat(40);
const MESSAGES = JSON.stringify(Array.from({ length: 40 }, (_, index) => `${index} ${TEXT}`));

const PAGE = `<!doctype html><meta charset="utf-8"><title>Floor</title>
<style>
body { margin: 0; font: 14px/20px sans-serif }
#box { height: 100vh; overflow-y: auto }
#box > * { height: 36px }
</style>
<input id="field"><p id="typed"></p><main></main><div id="box"></div>
<script type="module" src="/floor.js"></script>`;

const SCRIPT = `
const fill = (into, texts) => {
  const rows = texts.map((text) => {
    const row = document.createElement("div");
    row.className = "row";
    row.textContent = text;
    return row;
  });
  into.replaceChildren(...rows);
};
const main = document.querySelector("main");
window.openPage = async () => fill(main, await (await fetch("/messages")).json());
// Only the rows are on the page, so that each frame draws a screenful of them.
window.fillBox = () => {
  const box = document.querySelector("#box");
  document.body.replaceChildren(box);
  fill(box, Array.from({ length: 2_000 }, (_, at) => "row " + at + " word".repeat(20)));
};
window.listen = () => {
  const typed = document.querySelector("#typed");
  const socket = new WebSocket(location.origin.replace("http", "ws") + "/echo");
  socket.onmessage = ({ data }) => requestAnimationFrame(() => typed.append(data));
  document.querySelector("#field").onkeydown = (event) => {
    // The letter itself is not inserted: drawing it would delay the frame of its echo.
    event.preventDefault();
    socket.send(event.key);
  };
  return new Promise((resolve) => { socket.onopen = resolve; });
};
await openPage();
`;

const toResponse = (body: string, type: string): Response => new Response(body, { headers: { "content-type": type } });

/** Serves the page until disposed. */
export const startFloorPage = (): { readonly url: string } & Disposable => {
  const server: Server<undefined> = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request, server) {
      const { pathname } = new URL(request.url);
      if (pathname === "/echo" && server.upgrade(request)) return undefined;
      if (pathname === "/messages") return toResponse(MESSAGES, "application/json");
      return pathname === "/floor.js" ? toResponse(SCRIPT, "text/javascript") : toResponse(PAGE, "text/html");
    },
    websocket: {
      message(socket, data) {
        socket.send(data);
      },
    },
  });
  return { url: server.url.href, [Symbol.dispose]: () => void server.stop(true) };
};
