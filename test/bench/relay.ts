// The baseline of the chat rows: fetches the stream of a model server and forwards each chunk unchanged to the followers of the chat.
// Arguments: the port, and the model server's URL. `POST /chats/{n}` starts chat n; a WebSocket on `/chats/{n}` follows it.
const [, , port, source] = process.argv;

const forward = async (chat: string): Promise<void> => {
  const response = await fetch(`${source}/v1/chat/completions`, { method: "POST", body: '{"stream":true}' });
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) server.publish(chat, decoder.decode(chunk, { stream: true }));
};

const server = Bun.serve<{ chat: string }>({
  hostname: "127.0.0.1",
  port: Number(port),
  fetch(request, server) {
    const chat = new URL(request.url).pathname;
    if (server.upgrade(request, { data: { chat } })) return undefined;
    if (request.method === "POST") void forward(chat);
    return new Response("ok");
  },
  websocket: {
    open(socket) {
      socket.subscribe(socket.data.chat);
    },
    message() {},
  },
});
