// The least that a tunnel does for a GET request: no gates, captures, counters, limits, request bodies or errors.
import { DurableObject } from "cloudflare:workers";

/** A message holds whole frames: the length of the rest, the id of the request, and the response's head and body. */
const FRAME_HEAD_BYTES = 8;
const decoder = new TextDecoder();

export class BareTunnel extends DurableObject {
  #agent;
  #lastId = 0;
  #waiting = new Map();

  fetch(request) {
    if (request.headers.get("upgrade") === "websocket") return this.#accept();
    const id = ++this.#lastId;
    const { method, url } = request;
    const headers = [];
    request.headers.forEach((value, name) => headers.push(name, value));
    this.#agent ??= this.ctx.getWebSockets()[0];
    this.#agent.send(JSON.stringify([id, method, url.slice(url.indexOf("/", 8)), headers]));
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }

  webSocketMessage(_socket, message) {
    const view = new DataView(message);
    for (let at = 0; at < message.byteLength; at += 4 + view.getUint32(at)) {
      const head = at + FRAME_HEAD_BYTES + 4;
      const body = head + view.getUint32(at + FRAME_HEAD_BYTES);
      const end = at + 4 + view.getUint32(at);
      const [status, headers] = JSON.parse(
        decoder.decode(new Uint8Array(message, head, body - head)),
      );
      const id = view.getUint32(at + 4);
      const bytes = new Uint8Array(message, body, end - body);
      this.#waiting.get(id)(new Response(bytes, { status, headers, encodeBody: "manual" }));
      this.#waiting.delete(id);
    }
  }

  #accept() {
    const { 0: client, 1: server } = new WebSocketPair();
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client });
  }
}
