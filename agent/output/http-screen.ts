/** The screen of `underpass http` and `underpass start`: what the tunnels' events and the user's keys change on it. */
import { renderUnicodeCompact } from "uqr";
import { getErrorMessage } from "../error-message.ts";
import type { HttpTunnel } from "../http-tunnel.ts";
import { getQrSize, renderHttpScreen, renderLastState } from "../screen/http-lines.ts";
import type { HttpScreenState, TunnelView } from "../screen/http-lines.ts";
import { formatLine, type Features, type Line } from "../screen/line.ts";
import { replayRequest } from "../screen/replay.ts";
import { RequestList, type RequestEntry } from "../screen/request-list.ts";
import { getTerminalSize, stopProcess, TerminalScreen } from "../screen/terminal.ts";
import { escapeControls } from "../screen/text.ts";
import type { ServiceApi } from "../service-api.ts";
import type { Target } from "../target.ts";
import { openInBrowser } from "./browser.ts";
import { notListening } from "./http.ts";
import { formatRejection, type Output } from "./output.ts";
import type { RejectionError } from "../tunnel-connection.ts";

/** How often it is checked whether the local servers listen. */
const ORIGIN_CHECK_MS = 2_000;
/** The age of open streams changes by itself. */
const CLOCK_MS = 1_000;
const RESULT_SHOWN_MS = 4_000;

export class HttpScreen implements Output {
  readonly #api: ServiceApi;
  readonly #screen: TerminalScreen;
  readonly #state: HttpScreenState;
  readonly #tunnels = new Map<TunnelView, HttpTunnel>();
  readonly #owners = new WeakMap<RequestEntry["report"], HttpTunnel>();
  readonly #timers: NodeJS.Timeout[] = [];
  #hideResult: NodeJS.Timeout | undefined;

  /** @param api with the credentials of the tunnels, for replays. */
  constructor(server: URL, api: ServiceApi) {
    this.#api = api;
    this.#state = {
      server: server.host,
      tunnels: [],
      notices: [],
      inspectorUrl: undefined,
      requests: new RequestList(),
      isTypingFilter: false,
      result: "",
      overlay: null,
      hasKeys: process.stdin.isTTY,
      nowMs: Date.now(),
    };
    this.#screen = new TerminalScreen({
      getRows: (width, height) => this.#getRows(renderHttpScreen, width, height),
      onKey: (key) => this.#handleKey(key),
    });
    this.#timers.push(setInterval(() => this.#screen.draw(), CLOCK_MS));
  }

  /** Shows a tunnel. @param name distinguishes it from the other tunnels on the screen. */
  add(tunnel: HttpTunnel, target: Target, name = ""): void {
    const view: TunnelView = {
      name,
      local: target.origin,
      url: undefined,
      connection: "connecting",
      latencyMs: undefined,
      reconnects: 0,
      warnings: [],
    };
    this.#state.tunnels.push(view);
    this.#tunnels.set(view, tunnel);
    this.#watchConnection(tunnel, view);
    this.#watchRequests(tunnel, name);
    this.#watchLocalServer(tunnel, target, view);
    this.#screen.draw();
  }

  end(rejection?: RejectionError): void {
    clearTimeout(this.#hideResult);
    for (const timer of this.#timers) clearInterval(timer);
    const { width, height } = getTerminalSize();
    // Below are an empty row, the reason of the end, and the prompt.
    this.#screen.end([...this.#getRows(renderLastState, width, height - 4), ""]);
    const text = rejection ? formatRejection(rejection) : "Stopped.";
    process.stdout.write(`${text.split("\n").map(escapeControls).join("\n")}\n`);
  }

  #getRows(
    render: (state: HttpScreenState, width: number, height: number) => Line[],
    width: number,
    height: number,
  ): string[] {
    this.#state.nowMs = Date.now();
    const features = getFeatures();
    return render(this.#state, width, height).map((line) => formatLine(line, features));
  }

  // ── What the tunnels report ──

  #watchConnection(tunnel: HttpTunnel, view: TunnelView): void {
    let problem: string | undefined;
    const show = (connection: TunnelView["connection"], message?: string): void => {
      view.connection = connection;
      if (problem !== undefined) removeFrom(view.warnings, problem);
      problem = message === undefined ? undefined : escapeControls(message);
      if (problem !== undefined) view.warnings.push(problem);
      this.#screen.draw();
    };
    tunnel.on("ready", ({ url }) => {
      view.url = url;
      this.#state.inspectorUrl ??= tunnel.inspectUrl;
      show("online");
    });
    tunnel.on("reconnected", ({ url }) => {
      view.url = url;
      view.reconnects += 1;
      show("online");
    });
    tunnel.on("disconnected", (reason) => show("reconnecting", reason));
    tunnel.on("retrying", (reason) => show("reconnecting", reason));
    tunnel.on("stopped", (reason) =>
      show("stopped", `${reason}; waiting until it is started again`),
    );
    tunnel.on("latency", (ms) => {
      view.latencyMs = ms;
      this.#screen.draw();
    });
    tunnel.on("notice", (message) => {
      const notice = escapeControls(message);
      if (!this.#state.notices.includes(notice)) this.#state.notices.push(notice);
      this.#screen.draw();
    });
  }

  #watchRequests(tunnel: HttpTunnel, name: string): void {
    const { requests } = this.#state;
    tunnel.on("request", (report) => {
      this.#owners.set(report, tunnel);
      requests.add(name, report, Date.now());
      this.#screen.draw();
    });
    tunnel.on("streamOpened", (report) => {
      this.#owners.set(report, tunnel);
      requests.openStream(name, report, Date.now());
      this.#screen.draw();
    });
    tunnel.on("streamClosed", (report) => {
      requests.closeStream(report, Date.now());
      this.#screen.draw();
    });
  }

  #watchLocalServer(tunnel: HttpTunnel, target: Target, view: TunnelView): void {
    const warning = notListening(target);
    const check = async (): Promise<void> => {
      const isListening = await tunnel.origin.isListening();
      if (isListening !== view.warnings.includes(warning)) return;
      if (isListening) removeFrom(view.warnings, warning);
      else view.warnings.push(warning);
      this.#screen.draw();
    };
    this.#timers.push(setInterval(() => void check(), ORIGIN_CHECK_MS));
    void check();
  }

  // ── Keys ──

  #handleKey(key: string): void {
    if (this.#state.isTypingFilter) this.#typeFilter(key);
    else if (this.#state.overlay !== null) this.#state.overlay = null;
    else this.#runKey(key);
    this.#screen.draw();
  }

  #typeFilter(key: string): void {
    const { requests } = this.#state;
    if (key === "enter" || key === "escape") this.#state.isTypingFilter = false;
    if (key === "escape") requests.filter = "";
    if (key === "backspace") requests.filter = [...requests.filter].slice(0, -1).join("");
    if ([...key].length === 1) requests.filter += key;
  }

  #runKey(key: string): void {
    const { requests } = this.#state;
    switch (key) {
      case "q":
        return stopProcess();
      case "c":
        return this.#copyUrl();
      case "/":
        this.#state.isTypingFilter = true;
        return;
      case "j":
      case "down":
        return requests.moveSelection(1);
      case "k":
      case "up":
        return requests.moveSelection(-1);
      case "r":
        return void this.#replaySelected();
      case "o":
        return this.#openInspector();
      case "u":
        return this.#showQrCode();
      case "?":
        this.#state.overlay = "keys";
        return;
      case "escape":
        requests.filter = "";
        requests.clearSelection();
        this.#state.notices.length = 0;
    }
  }

  /** The URL of the tunnel of the selected request, or of the first tunnel. */
  #getUrl(): string | undefined {
    const { requests, tunnels } = this.#state;
    const owner = requests.selected && this.#owners.get(requests.selected.report);
    return owner?.welcome?.url ?? tunnels[0]?.url;
  }

  #copyUrl(): void {
    const url = this.#getUrl();
    if (url === undefined) return this.#showResult("The tunnel has no URL yet.");
    // OSC 52: the terminal fills its clipboard, also when this program runs on another machine.
    this.#screen.send(`\u001b]52;c;${Buffer.from(url).toString("base64")}\u0007`);
    this.#showResult(`copied ${url}`);
  }

  #openInspector(): void {
    const { inspectorUrl } = this.#state;
    if (inspectorUrl === undefined)
      return this.#showResult("There is no inspector; start the command with --inspect.");
    void openInBrowser(new URL(inspectorUrl)).then((isStarted) =>
      this.#showResult(
        isStarted ? `opening ${inspectorUrl}` : `No browser opens here; visit ${inspectorUrl}`,
      ),
    );
  }

  #showQrCode(): void {
    const url = this.#getUrl();
    if (url === undefined) return this.#showResult("The tunnel has no URL yet.");
    const qrCode = renderUnicodeCompact(url, { ecc: "L", border: 1 }).split("\n");
    const size = getQrSize(qrCode);
    const { width, height } = getTerminalSize();
    if (size.width > width || size.height > height) {
      return this.#showResult(
        `The QR code needs a terminal of ${size.width} columns and ${size.height} rows.`,
      );
    }
    this.#state.overlay = { qrCode };
  }

  async #replaySelected(): Promise<void> {
    const { selected } = this.#state.requests;
    const tunnelId = selected && this.#owners.get(selected.report)?.welcome?.tunnelId;
    if (!selected || tunnelId === undefined)
      return this.#showResult("Select a request first, with j and k.");
    this.#showResult("replaying …");
    try {
      const { isSame } = await replayRequest(this.#api, tunnelId, selected);
      this.#showResult(
        isSame ? "replayed: the response is the same" : "replayed: the response differs",
      );
    } catch (error) {
      this.#showResult(escapeControls(getErrorMessage(error)));
    }
  }

  #showResult(text: string): void {
    this.#state.result = text;
    clearTimeout(this.#hideResult);
    this.#hideResult = setTimeout(() => {
      this.#state.result = "";
      this.#screen.draw();
    }, RESULT_SHOWN_MS);
    this.#screen.draw();
  }
}

function getFeatures(): Features {
  const { NO_COLOR = "", TERM } = process.env;
  return {
    hasColors: NO_COLOR === "" && process.stdout.hasColors(),
    // The console of Linux prints what it does not know.
    hasLinks: TERM !== "linux",
  };
}

function removeFrom(texts: string[], text: string): void {
  const at = texts.indexOf(text);
  if (at >= 0) texts.splice(at, 1);
}
