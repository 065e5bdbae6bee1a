/**
 * The agent of the bare tunnel. Arguments: the port of the server and that of the origin. Like the real one it uses undici's raw
 * handlers, and sends the responses of one turn of the event loop as one message.
 */
import { Pool } from "undici";
import WebSocket from "ws";

const [serverPort, originPort] = process.argv.slice(2).map(Number);
const pool = new Pool(`http://127.0.0.1:${originPort}`, { connections: 256 });
const socket = new WebSocket(`ws://127.0.0.1:${serverPort}/`, {
  perMessageDeflate: false,
  generateMask: (mask) => mask.fill(0),
  headers: { host: "tunnel" },
});
let frames: Buffer[] = [];

function send(frame: Buffer): void {
  if (frames.push(frame) > 1) return;
  setImmediate(() => {
    socket.send(Buffer.concat(frames));
    frames = [];
  });
}

/** As `bare-tunnel.js` reads it. */
function buildFrame(id: number, head: string, body: Buffer[]): Buffer {
  const headBytes = Buffer.from(head);
  const rest = Buffer.concat([headBytes, ...body]);
  const frame = Buffer.alloc(12);
  frame.writeUInt32BE(8 + rest.length, 0);
  frame.writeUInt32BE(id, 4);
  frame.writeUInt32BE(headBytes.length, 8);
  return Buffer.concat([frame, rest]);
}

type ForwardedRequest = [id: number, method: "GET", path: string, headers: string[]];

socket.on("message", (message: Buffer) => {
  const [id, method, path, headers] = JSON.parse(message.toString()) as ForwardedRequest;
  const body: Buffer[] = [];
  let head = "";
  pool.dispatch(
    { method, path, headers },
    {
      onConnect: () => {},
      onHeaders: (status, raw) => {
        const texts = raw.map(String);
        const fields = texts.flatMap((name, i) => (i % 2 === 0 ? [[name, texts[i + 1]]] : []));
        head = JSON.stringify([status, fields]);
        return true;
      },
      onData: (chunk) => {
        body.push(chunk);
        return true;
      },
      onComplete: () => send(buildFrame(id, head, body)),
      onError: (error) => {
        throw error;
      },
    },
  );
});
socket.once("open", () => process.send?.({ port: serverPort }));
