/** What `underpass start` prints: that of each tunnel, with the tunnel's name. */
import type { GroupChanges, NamedTunnel, TunnelGroup } from "../start/tunnel-group.ts";
import type { RejectionError } from "../tunnel-connection.ts";
import { showTunnelState } from "./connection-events.ts";
import { formatRequest, httpJson, httpLines } from "./http.ts";
import {
  createEventPrinter,
  createLinePrinter,
  formatRejection,
  printJson,
  type Level,
  type Output,
} from "./output.ts";
import { formatConnection, tcpJson, tcpLines } from "./tcp.ts";
import { bold, dim, red, TerminalView, yellow } from "./terminal-view.ts";

const EVENTS_SHOWN = 12;

export interface StartOutput extends Output {
  /** Prints what a new configuration has changed. */
  reloaded(changes: GroupChanges): void;
  /** Prints why a new configuration is not used. */
  reloadFailed(message: string): void;
}

export function startJson(group: TunnelGroup): StartOutput {
  group.on("opened", ({ name, ...named }) => {
    if (named.protocol === "http") httpJson(named.tunnel, named.target, name);
    else tcpJson(named.tunnel, named.target.text, name);
  });
  group.on("closed", (name) => createEventPrinter(name)({ event: "closed" }));
  group.on("tunnelRejected", (tunnel, { reason, message }) =>
    printJson({ event: "rejected", tunnel, reason, message }),
  );
  return {
    reloaded: (changes) => printJson({ event: "reloaded", ...changes }),
    reloadFailed: (message) => printJson({ event: "reload_failed", message }),
    end: () => undefined,
  };
}

export function startLines(group: TunnelGroup, level: Level): StartOutput {
  const print = createLinePrinter(level);
  group.on("opened", ({ name, ...named }) => {
    if (named.protocol === "http") httpLines(named.tunnel, named.target, level, name);
    else tcpLines(named.tunnel, named.target.text, level, name);
  });
  group.on("closed", (name) => createLinePrinter(level, name)("info", "closed"));
  group.on("tunnelRejected", (name, rejection) => {
    process.stderr.write(`underpass: ${name}: ${formatRejection(rejection)}\n`);
  });
  return {
    reloaded: (changes) => print("info", formatChanges(changes)),
    reloadFailed: (message) => process.stderr.write(`underpass: ${message}\n`),
    end: (rejection) => {
      if (rejection) process.stderr.write(`underpass: ${ALL_REJECTED}\n`);
    },
  };
}

const ALL_REJECTED = "no tunnel is left; the server has rejected all of them";

export function startScreen(group: TunnelGroup): StartOutput {
  const rows = new Map<string, { named: NamedTunnel; state: string; url: string }>();
  const rejections = new Map<string, RejectionError>();
  let note = "";
  let recent: string[] = [];
  const view = new TerminalView(() => {
    const width = Math.max(...[...rows.keys()].map((name) => name.length), 0);
    return [
      bold("underpass start") + dim("   q quits"),
      "",
      ...[...rows].map(([name, { named, state, url }]) => {
        const local = named.protocol === "http" ? named.target.origin : named.target.text;
        return `${name.padEnd(width)}  ${bold(url)} -> ${local}  ${state}`;
      }),
      ...(note === "" ? [] : ["", ...note.split("\n").map((line) => yellow(line))]),
      "",
      ...recent,
    ];
  });
  const addRecent = (name: string, line: string): void => {
    recent = [`${dim(name)}  ${line}`, ...recent].slice(0, EVENTS_SHOWN);
    view.draw();
  };
  group.on("opened", (named) => {
    const { name } = named;
    const row = { named, state: yellow("connecting"), url: "…" };
    rows.set(name, row);
    rejections.delete(name);
    const showUrl = ({ url }: { url: string }): void => {
      row.url = url;
    };
    const showState = (state: string): void => {
      row.state = state;
      view.draw();
    };
    if (named.protocol === "http") {
      named.tunnel.on("ready", showUrl);
      named.tunnel.on("request", (request) => addRecent(name, formatRequest(request)));
      showTunnelState(named.tunnel, showState);
    } else {
      named.tunnel.on("ready", showUrl);
      named.tunnel.on("connection", (served) => addRecent(name, formatConnection(served)));
      showTunnelState(named.tunnel, showState);
    }
    view.draw();
  });
  group.on("closed", (name) => {
    rows.delete(name);
    view.draw();
  });
  group.on("tunnelRejected", (name, rejection) => {
    rejections.set(name, rejection);
    const row = rows.get(name);
    if (row) row.state = red(`rejected (${rejection.message})`);
    view.draw();
  });
  const showNote = (text: string): void => {
    note = text;
    view.draw();
  };
  return {
    reloaded: (changes) => showNote(formatChanges(changes)),
    reloadFailed: showNote,
    end(rejection) {
      const lines = [...rejections].map(([name, why]) => red(`${name}: ${formatRejection(why)}`));
      view.end([...lines, rejection ? ALL_REJECTED : "Stopped."].join("\n"));
    },
  };
}

function formatChanges(changes: GroupChanges): string {
  const parts = Object.entries(changes as unknown as Record<string, string[]>)
    .filter(([, names]) => names.length > 0)
    .map(([change, names]) => `${change} ${names.join(", ")}`);
  return `configuration reloaded: ${parts.length === 0 ? "nothing has changed" : parts.join("; ")}`;
}
