/** A watcher of a complete server: runs the example of docs/protocols/live-view.md. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { CaptureSummary } from "../../../protocol/schemas/inspector/captures.ts";
import { ROOT } from "../../../self-host/build/build.ts";
import { waitUntil } from "../server/api.ts";

export type Watch = (
  server: string,
  accessToken: string,
  onRequest: (request: CaptureSummary) => void,
  onMissed: (count: number) => void,
) => WebSocket;

export async function readExample(): Promise<string> {
  const text = await readFile(join(ROOT, "docs/protocols/live-view.md"), "utf8");
  const source = /## Watching[^]*?```js\n([^]*?)```/.exec(text)?.[1];
  if (source === undefined)
    throw new Error("docs/protocols/live-view.md has no example of a watcher");
  return source;
}

export async function loadExample(): Promise<Watch> {
  const url = `data:text/javascript,${encodeURIComponent(await readExample())}`;
  return ((await import(/* @vite-ignore */ url)) as { watch: Watch }).watch;
}

export class NodeWatcher implements Disposable {
  readonly socket: WebSocket;
  readonly requests: CaptureSummary[] = [];
  missed = 0;
  readonly opened: Promise<void>;
  readonly closed: Promise<{ code: number; reason: string }>;

  constructor(watch: Watch, server: string, accessToken: string) {
    this.socket = watch(
      server,
      accessToken,
      (request) => this.requests.push(request),
      (count) => (this.missed += count),
    );
    this.opened = new Promise((resolve, reject) => {
      this.socket.addEventListener("open", () => resolve());
      this.socket.addEventListener("error", () =>
        reject(new Error("the server refused the watcher")),
      );
    });
    this.closed = new Promise((resolve) => {
      this.socket.addEventListener("close", ({ code, reason }) => resolve({ code, reason }));
    });
  }

  /** Waits for the first complete request of this path. */
  waitForRequest(path: string): Promise<CaptureSummary> {
    const isMatch = (request: CaptureSummary) => request.path === path && request.state !== "open";
    return waitUntil(() => Promise.resolve(this.requests.find(isMatch)), 30_000);
  }

  [Symbol.dispose](): void {
    this.socket.close();
  }
}
