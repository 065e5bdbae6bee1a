/** The output of `underpass start`: the output of each tunnel, with the tunnel's name. */
import { nameKeys } from "../config/option-keys.ts";
import type { GroupChanges, GroupConfig, TunnelGroup } from "../start/tunnel-group.ts";
import { ServiceApi } from "../service-api.ts";
import { printHttpJson, printHttpLines } from "./http.ts";
import { TunnelScreen } from "./tunnel-screen.ts";
import {
  createEventPrinter,
  createLinePrinter,
  formatRejection,
  printError,
  printEvent,
  printJson,
  printLine,
  printRejectionJson,
  printStoppingJson,
  printStoppingLine,
  type Level,
  type Output,
} from "./output.ts";
import { printTcpJson, printTcpLines } from "./tcp.ts";

export interface StartOutput extends Output {
  /** Prints where the inspector of all tunnels listens. */
  inspecting(url: string): void;
  /** A changed file is valid: its problems, if it had any, are gone. */
  fileAccepted(): void;
  /** Prints what a new configuration has changed. */
  reloaded(changes: GroupChanges, config: GroupConfig): void;
  /** Prints why a new configuration is not used: one problem a line. */
  reloadFailed(problems: string): void;
}

/** Prints that a file is valid, with the names of its tunnels. */
export function printCheckedFile(path: string, names: readonly string[], isJson: boolean): void {
  if (isJson) return printJson({ file: path, tunnels: names });
  printLine(`${path} is valid: ${names.join(", ")}`);
}

export function printGroupJson(group: TunnelGroup): StartOutput {
  group.on("opened", ({ name, ...named }) => {
    if (named.protocol === "http") printHttpJson(named.tunnel, named.target, name);
    else printTcpJson(named.tunnel, named.target.text, name);
  });
  group.on("closed", (name) => createEventPrinter(name)({ event: "closed" }));
  group.on("tunnelRejected", (name, rejection) =>
    printRejectionJson(rejection, createEventPrinter(name)),
  );
  group.on("notice", (message) => printEvent({ event: "notice", message }));
  return {
    inspecting: (url) => printEvent({ event: "inspect", url }),
    fileAccepted: () => undefined,
    reloaded: (changes) => printEvent({ event: "reloaded", ...changes }),
    reloadFailed: (problems) =>
      printEvent({ event: "reload_failed", message: formatReloadFailure(problems) }),
    stopping: printStoppingJson,
    end: () => undefined,
  };
}

export function printGroupLines(group: TunnelGroup, level: Level): StartOutput {
  const print = createLinePrinter(level);
  group.on("opened", ({ name, ...named }) => {
    if (named.protocol === "http") printHttpLines(named.tunnel, named.target, level, name);
    else printTcpLines(named.tunnel, named.target.text, level, name);
  });
  group.on("closed", (name) => createLinePrinter(level, name)("info", "closed"));
  group.on("tunnelRejected", (name, rejection) => {
    printError(`${name}: ${nameKeys(formatRejection(rejection))}`);
  });
  group.on("notice", (message) => print("warn", message));
  return {
    inspecting: (url) => print("info", `Inspect at ${url}`),
    fileAccepted: () => undefined,
    reloaded: (changes) => print("info", formatChanges(changes)),
    reloadFailed: (problems) => printError(formatReloadFailure(problems)),
    stopping: printStoppingLine,
    end: (rejection) => {
      if (rejection) printError(ALL_REJECTED);
    },
  };
}

/** On a line of its own, because a problem may end with a question. */
function formatReloadFailure(problems: string): string {
  return `${problems}\nthe tunnels stay as they are`;
}

const ALL_REJECTED = "no tunnel is left; the server has rejected all of them";

/** @param config of the first start. */
export function showGroupScreen(group: TunnelGroup, config: GroupConfig): StartOutput {
  const createApi = (access: GroupConfig): ServiceApi => new ServiceApi(access, access.token);
  const screen = new TunnelScreen(config.server, createApi(config));
  const { tunnels } = screen;
  group.on("opened", ({ name, ...named }) => {
    if (named.protocol === "http") screen.add(named.tunnel, named.target, name);
    else screen.addTcp(named.tunnel, named.target, name);
  });
  group.on("closing", (name) => tunnels.showClosing(name));
  group.on("closed", (name) => tunnels.remove(name));
  group.on("tunnelRejected", (name, rejection) => tunnels.showRejection(name, rejection));
  group.on("notice", (message) => screen.showNotice(message));
  return {
    inspecting: (url) => screen.showInspector(url),
    fileAccepted: () => screen.showFileProblems([]),
    reloaded(changes, changed) {
      screen.setServer(changed.server, createApi(changed));
      tunnels.sort(changed.entries.map(({ name }) => name));
      screen.showResult(formatChanges(changes));
    },
    reloadFailed: (problems) => screen.showFileProblems(problems.split("\n")),
    stopping: (countOpen) => screen.stopping(countOpen),
    end: (rejection) => screen.endWith(rejection ? ALL_REJECTED : "Stopped."),
  };
}

function formatChanges(changes: GroupChanges): string {
  const parts = Object.entries(changes)
    .filter(([, names]) => names.length > 0)
    .map(([change, names]) => `${change} ${names.join(", ")}`);
  return `configuration reloaded: ${parts.length === 0 ? "nothing has changed" : parts.join("; ")}`;
}
