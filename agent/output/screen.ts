/** For a person at a terminal: URL, state and the last requests, kept current in place. */
import type { Target } from "../target.ts";
import type { AgentTunnel, Rejected } from "../tunnel.ts";
import type { FinishedRequest } from "../origin/origin.ts";
import { bold, dim, green, harmless, Picture, red, yellow } from "./picture.ts";
import { rejectionText } from "./rejection.ts";

const REQUESTS_SHOWN = 12;
/** How often a local server that does not listen is looked for again. */
const ORIGIN_CHECK_MS = 2_000;

export class Screen {
  readonly #tunnel: AgentTunnel;
  readonly #target: Target;
  readonly #checks: NodeJS.Timeout;
  #state = yellow("connecting");
  #localState = "";
  #notice = "";
  #requests: FinishedRequest[] = [];
  #count = 0;
  readonly #picture = new Picture(() => this.#lines());

  constructor(tunnel: AgentTunnel, target: Target) {
    this.#tunnel = tunnel;
    this.#target = target;
    const online = (): void => this.#show(green("online"));
    tunnel.on("ready", online);
    tunnel.on("reconnected", online);
    tunnel.on("disconnected", (reason) => this.#show(yellow(`reconnecting (${reason})`)));
    tunnel.on("retrying", (reason) => this.#show(yellow(`reconnecting (${reason})`)));
    tunnel.on("stopped", (explanation) =>
      this.#show(yellow(`stopped (${explanation}); waiting until it is started again`)),
    );
    tunnel.on("notice", (message) => {
      this.#notice = message;
      this.#picture.draw();
    });
    tunnel.on("request", (request) => {
      this.#count += 1;
      this.#requests = [request, ...this.#requests].slice(0, REQUESTS_SHOWN);
      this.#picture.draw();
    });
    this.#checks = setInterval(() => void this.#checkOrigin(), ORIGIN_CHECK_MS);
    void this.#checkOrigin();
    this.#picture.draw();
  }

  end(rejection?: Rejected): void {
    clearInterval(this.#checks);
    this.#picture.end(rejection ? red(rejectionText(rejection)) : "Stopped.");
  }

  #show(state: string): void {
    this.#state = state;
    this.#picture.draw();
  }

  async #checkOrigin(): Promise<void> {
    const listening = await this.#tunnel.origin.isListening();
    const state = listening ? "" : yellow("  nothing listens there yet; waiting");
    if (state === this.#localState) return;
    this.#localState = state;
    this.#picture.draw();
  }

  #lines(): string[] {
    const url = this.#tunnel.welcome?.url ?? "…";
    return [
      bold("underpass") + dim("   Ctrl+C stops it"),
      "",
      `State       ${this.#state}`,
      `Forwarding  ${bold(url)} -> ${this.#target.origin}${this.#localState}`,
      `Requests    ${this.#count}`,
      ...(this.#notice === "" ? [] : [`Note        ${yellow(this.#notice)}`]),
      "",
      ...this.#requests.map((request) => requestLine(request)),
    ];
  }
}

function requestLine({ method, path, status, durationMs, problem }: FinishedRequest): string {
  const color = status >= 500 ? red : status >= 400 ? yellow : green;
  const time = `${durationMs} ms`.padStart(10);
  const why = problem === undefined ? "" : dim(`  ${problem}`);
  return `${color(String(status))} ${method.padEnd(7)}${time}  ${harmless(path)}${why}`;
}
