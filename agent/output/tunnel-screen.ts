/** The screen of `underpass http`, `tcp` and `start`: what the tunnels' events and the user's keys change on it. */
import { renderUnicodeCompact } from "uqr";
import type { RequestReport } from "../library/types.ts";
import type { Replay } from "../origin/replay.ts";
import type { HttpTunnel } from "../tunnel/http-tunnel.ts";
import { findAccount } from "../screen/account.ts";
import { getQrSize, renderScreen, renderLastState } from "../screen/render-screen.ts";
import type { ScreenState } from "../screen/render-screen.ts";
import { editLine } from "../screen/keys.ts";
import { formatLine, type Features, type Line } from "../screen/line.ts";
import { compareReplay, explainReplayProblem } from "../screen/replay-messages.ts";
import { RequestList, type RequestEntry } from "../screen/request-list.ts";
import { getTerminalSize, stopProcess, TerminalScreen } from "../screen/terminal.ts";
import { escapeControls, escapeControlsInLines } from "../../shared/text/escape-controls.ts";
import { TunnelList } from "../screen/tunnel-list.ts";
import { getConnectCommand } from "../screen/tunnel-lines.ts";
import type { ServiceApi } from "../service-api.ts";
import type { Target } from "../origin/target.ts";
import type { TcpTarget } from "../tcp/tcp-target.ts";
import type { TcpTunnel } from "../tcp/tcp-tunnel.ts";
import { openInBrowser } from "./browser.ts";
import { copyToClipboard } from "./clipboard.ts";
import { isColored } from "./format/colors.ts";
import { nameKeys } from "../config/option-keys.ts";
import { formatUpdateCommand } from "../update-advice.ts";
import { formatRejection, type Output } from "./output.ts";
import type { RejectionError } from "../rejection-error.ts";

/** The age of open streams changes by itself. */
const CLOCK_MS = 1_000;
const RESULT_SHOWN_MS = 4_000;

interface NoticeSource {
  on(event: "ready", listener: () => void): unknown;
  on(event: "notice", listener: (message: string) => void): unknown;
  on(event: "localServer", listener: (isListening: boolean, message: string) => void): unknown;
}

export class TunnelScreen implements Output {
  #server: URL;
  readonly #screen: TerminalScreen;
  readonly #state: ScreenState;
  readonly tunnels: TunnelList;
  readonly #owners = new WeakMap<RequestEntry["report"], HttpTunnel>();
  readonly #clock: NodeJS.Timeout;
  #hideResult: NodeJS.Timeout | undefined;
  #replay: Replay | undefined;

  /** @param api with the credentials of the tunnels, whose account is shown. */
  constructor(server: URL, api: ServiceApi) {
    this.#server = server;
    const tunnels = new TunnelList(() => this.#screen.draw());
    this.tunnels = tunnels;
    const describeUpdate = () => this.#describeUpdate();
    this.#state = {
      server: server.host,
      account: undefined,
      get update() {
        return describeUpdate();
      },
      tunnels: tunnels.views,
      get selectedTunnel() {
        return tunnels.selected;
      },
      fileProblems: [],
      notices: [],
      inspectorUrl: undefined,
      requests: new RequestList(),
      countOpenAtStop: undefined,
      isTypingFilter: false,
      result: "",
      overlay: null,
      hasKeys: process.stdin.isTTY,
      nowMs: Date.now(),
    };
    this.#screen = new TerminalScreen({
      getRows: (width, height) => this.#getRows(renderScreen, width, height),
      onKey: (key) => this.#handleKey(key),
    });
    this.#clock = setInterval(() => this.#screen.draw(), CLOCK_MS);
    void this.#showAccount(api);
  }

  /** Shows a tunnel. @param name distinguishes it from the other tunnels on the screen. */
  add(tunnel: HttpTunnel, target: Target, name = ""): void {
    const view = this.tunnels.add(tunnel, target.origin, name);
    tunnel.storeRequests();
    this.#watchNotices(tunnel, name);
    this.#watchRequests(tunnel, name);
    const findConnectProblem = () => tunnel.origin.findConnectProblem();
    this.tunnels.watchLocalServer({ findConnectProblem, isCheckVisible: false }, view);
    this.tunnels.watchMaintenance(tunnel, view);
    tunnel.on("pool", (agents) => {
      view.agents = agents;
      this.#screen.draw();
    });
    tunnel.on("refused", (visits) => {
      view.refused += visits;
      this.#screen.draw();
    });
  }

  /** Shows a TCP tunnel, whose connections are listed among the requests. */
  addTcp(tunnel: TcpTunnel, target: TcpTarget, name = ""): void {
    const view = this.tunnels.add(tunnel, target.text, name);
    this.#watchNotices(tunnel, name);
    const connections = { count: 0, open: 0 };
    view.connections = connections;
    const findConnectProblem = () => tunnel.findConnectProblem();
    this.tunnels.watchLocalServer({ findConnectProblem, isCheckVisible: true }, view);
    tunnel.on("connectionOpened", () => {
      connections.count += 1;
      connections.open += 1;
      this.#screen.draw();
    });
    tunnel.on("connection", (connection) => {
      connections.open -= 1;
      this.#state.requests.addConnection(name, connection, Date.now());
      this.#screen.draw();
    });
  }

  /** @param problems why a changed configuration is not used; empty when it is. */
  showFileProblems(problems: readonly string[]): void {
    this.#state.fileProblems = problems.map(escapeControls);
    this.#screen.draw();
  }

  showNotice(text: string): void {
    const notice = escapeControls(text);
    if (!this.#state.notices.includes(notice)) this.#state.notices.push(notice);
    this.#screen.draw();
  }

  /** Shows the inspector of all tunnels together; that of one tunnel is shown by itself. */
  showInspector(url: string): void {
    this.#state.inspectorUrl = url;
    this.#screen.draw();
  }

  /** @param api with the credentials of the tunnels, whose account is shown. */
  setServer(server: URL, api: ServiceApi): void {
    this.#state.server = server.host;
    this.#server = server;
    void this.#showAccount(api);
  }

  #describeUpdate(): string | undefined {
    const { newVersion } = this.tunnels;
    if (newVersion === undefined) return undefined;
    return `${newVersion} is available: ${formatUpdateCommand(this.#server.origin)}`;
  }

  async #showAccount(api: ServiceApi): Promise<void> {
    this.#state.account = await findAccount(api);
    this.#screen.draw();
  }

  stopping(countOpen: () => number): void {
    this.#state.countOpenAtStop = countOpen;
    this.#screen.draw();
  }

  end(rejection?: RejectionError): void {
    this.endWith(rejection ? formatRejection(rejection) : "Stopped.");
  }

  /** @param text printed below the last state. */
  endWith(text: string): void {
    clearTimeout(this.#hideResult);
    clearInterval(this.#clock);
    this.tunnels.end();
    const { width, height } = getTerminalSize();
    // Below are an empty row, the reason of the end, and the prompt.
    this.#screen.end([...this.#getRows(renderLastState, width, height - 4), ""]);
    process.stdout.write(`${escapeControlsInLines(text)}\n`);
  }

  #getRows(
    render: (state: ScreenState, width: number, height: number) => Line[],
    width: number,
    height: number,
  ): string[] {
    this.#state.nowMs = Date.now();
    const features = getFeatures();
    return render(this.#state, width, height).map((line) => formatLine(line, features));
  }

  // ── What the tunnels report ──

  #watchNotices(tunnel: HttpTunnel | TcpTunnel, name: string): void {
    const source = tunnel as NoticeSource;
    source.on("ready", () => {
      this.#state.inspectorUrl ??= tunnel.inspectUrl;
    });
    source.on("notice", (message) => this.showNotice(name === "" ? message : nameKeys(message)));
    source.on("localServer", (_isListening, message) => this.showResult(escapeControls(message)));
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
    requests.filter = key === "escape" ? "" : editLine(requests.filter, key);
  }

  #runKey(key: string): void {
    const { requests } = this.#state;
    switch (key) {
      case "q":
        return stopProcess();
      case "c":
        return this.#copyAddress();
      case "/":
        this.#state.isTypingFilter = true;
        return;
      case "j":
      case "down":
        return this.#moveSelection(1);
      case "k":
      case "up":
        return this.#moveSelection(-1);
      case "tab":
      case "right":
        return this.tunnels.select(1);
      case "shift-tab":
      case "left":
        return this.tunnels.select(-1);
      case "r":
        return this.#replaySelected();
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

  /** The keys are for the tunnel of a request that is selected. */
  #moveSelection(by: 1 | -1): void {
    const { requests } = this.#state;
    requests.moveSelection(by);
    const view = requests.selected && this.tunnels.find(requests.selected.tunnel);
    if (view) this.tunnels.selected = view;
  }

  /** Copies what visitors need: the URL, or the command that connects to a private tunnel. */
  #copyAddress(): void {
    const { selected } = this.tunnels;
    const address = selected && (getConnectCommand(selected) ?? selected.url);
    if (address === undefined) return this.showResult("The tunnel has no URL yet.");
    // OSC 52: the terminal fills its clipboard, even when this program runs on another machine. Many terminals ignore it.
    this.#screen.send(`\u001b]52;c;${Buffer.from(address).toString("base64")}\u0007`);
    void copyToClipboard(address).then((isCopied) =>
      this.showResult(isCopied ? `copied ${address}` : `asked the terminal to copy ${address}`),
    );
  }

  /** The local inspector needs no login, unlike the dashboard. */
  #openInspector(): void {
    const url = new URL("/", this.#state.inspectorUrl ?? this.#server);
    const { href } = url;
    void openInBrowser(url).then((isStarted) =>
      this.showResult(isStarted ? `opening ${href}` : `No browser on this machine; open ${href}`),
    );
  }

  #showQrCode(): void {
    const { selected } = this.tunnels;
    const connectCommand = selected && getConnectCommand(selected);
    if (connectCommand !== undefined)
      return this.showResult(`A private tunnel has no URL: ${connectCommand}`);
    const url = selected?.url;
    if (url === undefined) return this.showResult("The tunnel has no URL yet.");
    const qrCode = renderUnicodeCompact(url, { ecc: "L", border: 1 }).split("\n");
    const size = getQrSize(qrCode);
    const { width, height } = getTerminalSize();
    if (size.width > width || size.height > height) {
      return this.showResult(
        `The QR code needs a terminal of ${size.width} columns and ${size.height} rows.`,
      );
    }
    this.#state.overlay = { qrCode };
  }

  /** One replay runs at a time: the next one aborts that whose response does not end. */
  #replaySelected(): void {
    const original = this.#state.requests.selected?.report;
    const owner = original && this.#owners.get(original);
    if (!owner || original.kind === "connection")
      return this.showResult("Select a request first, with j and k.");
    this.#replay?.abort();
    const replay = owner.replay(original);
    if (typeof replay === "string") return this.showResult(explainReplayProblem(replay));
    this.#replay = replay;
    this.showResult("replaying …");
    const show = (): void => {
      if (this.#replay !== replay) return;
      this.#state.requests.markReplay(replay.report);
      this.showResult(compareReplay(original, replay.report));
    };
    // An event stream may stay open for ever; its head is the result.
    const showStream = (report: RequestReport): void => {
      if (report === replay.report) show();
    };
    owner.on("streamOpened", showStream);
    void replay.ended.then(() => {
      owner.off("streamOpened", showStream);
      if (replay.report.kind !== "events") show();
    });
  }

  /** Shows the result of a key, or a message, for some seconds. */
  showResult(text: string): void {
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
  const { TERM } = process.env;
  return {
    hasColors: isColored(process.env, process.stdout),
    // The console of Linux prints what it does not know.
    hasLinks: TERM !== "linux",
  };
}
