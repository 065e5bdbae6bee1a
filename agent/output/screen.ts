/** For a person at a terminal: URL, state and the last requests, kept current in place. */
import { stripVTControlCharacters } from "node:util";
import type { Target } from "../target.ts";
import type { AgentTunnel, Rejected } from "../tunnel.ts";
import type { FinishedRequest } from "../origin/origin.ts";
import { rejectionText } from "./rejection.ts";

const REQUESTS_SHOWN = 12;
const REDRAW_MS = 100;
/** How often a local server that does not listen is looked for again. */
const ORIGIN_CHECK_MS = 2_000;

const paint = (code: number) => (text: string) => `\u001b[${code}m${text}\u001b[0m`;
const bold = paint(1);
const dim = paint(2);
const red = paint(31);
const green = paint(32);
const yellow = paint(33);

export class Screen {
  readonly #tunnel: AgentTunnel;
  readonly #target: Target;
  readonly #checks: NodeJS.Timeout;
  #state = yellow("connecting");
  #localState = "";
  #notice = "";
  #requests: FinishedRequest[] = [];
  #count = 0;
  #redraw: NodeJS.Timeout | undefined;

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
      this.#draw();
    });
    tunnel.on("request", (request) => {
      this.#count += 1;
      this.#requests = [request, ...this.#requests].slice(0, REQUESTS_SHOWN);
      this.#draw();
    });
    this.#checks = setInterval(() => void this.#checkOrigin(), ORIGIN_CHECK_MS);
    void this.#checkOrigin();
    process.stdout.on("resize", () => this.#draw());
    this.#draw();
  }

  end(rejection?: Rejected): void {
    clearInterval(this.#checks);
    clearTimeout(this.#redraw);
    this.#paint();
    process.stdout.write(rejection ? `\n${red(rejectionText(rejection))}\n` : "\nStopped.\n");
  }

  #show(state: string): void {
    this.#state = state;
    this.#draw();
  }

  async #checkOrigin(): Promise<void> {
    const listening = await this.#tunnel.origin.isListening();
    const state = listening ? "" : yellow("  nothing listens there yet; waiting");
    if (state === this.#localState) return;
    this.#localState = state;
    this.#draw();
  }

  /** At most one picture each `REDRAW_MS`: a thousand requests a second are no reason for more. */
  #draw(): void {
    this.#redraw ??= setTimeout(() => {
      this.#redraw = undefined;
      this.#paint();
    }, REDRAW_MS);
  }

  #paint(): void {
    const url = this.#tunnel.welcome?.url ?? "…";
    const lines = [
      bold("underpass") + dim("   Ctrl+C stops it"),
      "",
      `State       ${this.#state}`,
      `Forwarding  ${bold(url)} -> ${this.#target.origin}${this.#localState}`,
      `Requests    ${this.#count}`,
      ...(this.#notice === "" ? [] : [`Note        ${yellow(this.#notice)}`]),
      "",
      ...this.#requests.map((request) => requestLine(request)),
    ];
    const width = process.stdout.columns || 80;
    const shown = lines.map((line) =>
      stripVTControlCharacters(line).length > width ? cut(line, width) : line,
    );
    process.stdout.write(`\u001b[H\u001b[2J${shown.join("\n")}\n`);
  }
}

function requestLine({ method, path, status, durationMs, problem }: FinishedRequest): string {
  const color = status >= 500 ? red : status >= 400 ? yellow : green;
  const time = `${durationMs} ms`.padStart(10);
  // A path is a visitor's text: it must not move the cursor.
  const shownPath = stripVTControlCharacters(path).replace(/[\u0000-\u001f\u007f-\u009f]/g, "");
  const why = problem === undefined ? "" : dim(`  ${problem}`);
  return `${color(String(status))} ${method.padEnd(7)}${time}  ${shownPath}${why}`;
}

/** Without colours: a cut must not leave one switched on. */
function cut(line: string, width: number): string {
  return `${stripVTControlCharacters(line).slice(0, width - 1)}…`;
}
