// An SMTP server on a real socket that stores messages: greeting, sign-in, envelope, data. It can reject messages.
import type { Socket } from "bun";

export type Letter = { readonly from: string; readonly to: string[]; readonly text: string; readonly user: string };

type Session = { user: string; from: string; to: string[]; data: string | undefined; unterminated: string };

export const startSmtpServer = () => {
  const letters: Letter[] = [];
  const requests = { refuse: 0 };
  const answer = (socket: Socket<Session>, line: string): void => {
    const state = socket.data;
    const reply = (text: string): unknown => socket.write(`${text}\r\n`);
    if (state.data !== undefined) {
      if (line !== ".") {
        state.data += `${line.startsWith("..") ? line.slice(1) : line}\n`;
        return;
      }
      letters.push({ from: state.from, to: state.to, text: state.data, user: state.user });
      Object.assign(state, { data: undefined, to: [] });
      reply("250 taken");
      return;
    }
    const [verb = "", ...args] = line.split(" ");
    switch (verb.toUpperCase()) {
      case "EHLO":
        socket.write("250-here\r\n250 AUTH PLAIN\r\n");
        return;
      case "AUTH":
        state.user = Buffer.from(args[1] ?? "", "base64")
          .toString()
          .split("\0")
          .slice(1)
          .join(":");
        reply("235 welcome");
        return;
      case "MAIL":
        if (requests.refuse > 0) {
          requests.refuse -= 1;
          reply("451 try again later");
          return;
        }
        state.from = line;
        reply("250 ok");
        return;
      case "RCPT":
        state.to.push(line.slice("RCPT TO:".length));
        reply("250 ok");
        return;
      case "DATA":
        state.data = "";
        reply("354 go on");
        return;
      case "QUIT":
        reply("221 bye");
        socket.end();
        return;
      default:
        reply("250 ok");
    }
  };
  const server = Bun.listen<Session>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { user: "", from: "", to: [], data: undefined, unterminated: "" };
        socket.write("220 here\r\n");
      },
      data(socket, bytes) {
        const lines = (socket.data.unterminated + bytes.toString()).split("\r\n");
        socket.data.unterminated = lines.pop() ?? "";
        for (const line of lines) answer(socket, line);
      },
    },
  });
  return { letters, rejections: requests, port: server.port, [Symbol.dispose]: () => server.stop(true) };
};
