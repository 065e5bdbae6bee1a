/** `underpass service install|status|uninstall`: `underpass start --all` as a service of this machine. */
import { findConfigFile, readConfigFile } from "../config/config-file.ts";
import { parseConfig } from "../config/parse-config.ts";
import { rejectExtraArguments } from "../options.ts";
import { printJson, printLine } from "../output/output.ts";
import { buildLaunchdInstructions, buildWindowsInstructions } from "../service/instructions.ts";
import { getServiceCommand } from "../service/service-command.ts";
import { SystemdService, type ServiceStatus } from "../service/systemd.ts";
import { findServer, findToken } from "../settings.ts";
import type { Input } from "./command.ts";
import type { SERVICE_INSTALL, SERVICE_STATUS, SERVICE_UNINSTALL } from "./table/service.ts";

export async function install(input: Input<typeof SERVICE_INSTALL.options>): Promise<number> {
  const { values, positionals } = input;
  rejectExtraArguments(positionals);
  const path = await findConfigFile(values.config);
  const text = await readConfigFile(path);
  const config = parseConfig(text, path);
  const command = getServiceCommand(path);
  if (printInstructions(command)) return 0;
  // Under sudo, the token of the user whose service it is can't be found.
  if (!values.system) await findToken(await findServer(config.server), config.tokenFile);
  const service = new SystemdService(values.system);
  await service.install(command);
  printLine(`The service runs the tunnels of ${path}.`);
  printLine(`Its log:  ${service.logCommand}`);
  if (text.includes("${")) {
    printLine(
      `The file uses variables, and the service does not have those of this shell: write them as NAME=value lines to ${service.environmentFile}, and make it private with chmod 600.`,
    );
  }
  if (!values.system && !(await service.isLingering())) {
    printLine("It runs while you are logged in. To start it at boot: loginctl enable-linger");
  }
  return 0;
}

export async function status(input: Input<typeof SERVICE_STATUS.options>): Promise<number> {
  const { values, positionals } = input;
  rejectExtraArguments(positionals);
  if (printInstructions(getServiceCommand("underpass.yml"))) return 0;
  const service = new SystemdService(values.system);
  const current = await service.readStatus();
  if (values.json) printJson({ ...current, unit: service.unitPath });
  else for (const line of formatStatus(current, service)) printLine(line);
  return current.isActive ? 0 : 1;
}

export async function uninstall(input: Input<typeof SERVICE_UNINSTALL.options>): Promise<number> {
  const { values, positionals } = input;
  rejectExtraArguments(positionals);
  if (printInstructions(getServiceCommand("underpass.yml"))) return 0;
  const wasInstalled = await new SystemdService(values.system).uninstall();
  printLine(wasInstalled ? "The service is stopped and removed." : "No service is installed.");
  return 0;
}

/** @returns false on systems with systemd, where the agent does all of it. */
function printInstructions(command: string[]): boolean {
  switch (process.platform) {
    case "darwin":
      printLine(buildLaunchdInstructions(command));
      return true;
    case "win32":
      printLine(buildWindowsInstructions(command));
      return true;
    default:
      return false;
  }
}

function formatStatus(current: ServiceStatus, service: SystemdService): string[] {
  const { isInstalled, state, pid, since } = current;
  if (!isInstalled) return ["No service is installed; to install it: underpass service install"];
  return [
    `State    ${state}${since === "" ? "" : ` since ${since}`}`,
    ...(pid === undefined ? [] : [`Process  ${pid}`]),
    `Unit     ${service.unitPath}`,
    `Log      ${service.logCommand}`,
  ];
}
