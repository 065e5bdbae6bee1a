/** `underpass service install|status|uninstall`: `underpass start --all` as a service of this machine. */
import { replaceReferences } from "../config/environment-references.ts";
import { findConfigFile, readConfigFile } from "../config/config-file.ts";
import { parseConfig, type Config } from "../config/parse-config.ts";
import { rejectExtraArguments } from "../options.ts";
import { printJson, printLine } from "../output/output.ts";
import { findInstructions, type Instructions } from "../service/instructions.ts";
import { THIS_MACHINE, type Machine } from "../service/machine.ts";
import { getServiceCommand } from "../service/service-command.ts";
import {
  readServiceEnvironment,
  type ServiceScope,
  type ServiceUser,
} from "../service/service-user.ts";
import { SystemdService, type ServiceStatus } from "../service/systemd.ts";
import { findServer, findToken, TOKEN_VARIABLE } from "../settings.ts";
import { MissingTokenError, SettingsError } from "../settings-error.ts";
import type { Input } from "./command.ts";
import type { SERVICE_INSTALL, SERVICE_STATUS, SERVICE_UNINSTALL } from "./table/service.ts";
import { PROGRAM } from "../program.ts";

export async function install(
  input: Input<typeof SERVICE_INSTALL.options>,
  machine = THIS_MACHINE,
): Promise<number> {
  const { values, positionals } = input;
  const scope = values.system ? "system" : "user";
  rejectExtraArguments(positionals);
  const path = await findConfigFile(values.config);
  const command = getServiceCommand(path);
  const instructions = findInstructionsFor(scope, machine, command);
  const text = await readConfigFile(path);
  const service = new SystemdService(scope, machine);
  if (instructions === null) service.rejectMissingRights("install");
  const user = await service.findUser();
  const environmentFile = service.getEnvironmentFile(user);
  const environment = await findEnvironment(machine, user, environmentFile);
  const shell = { ...machine.environment, ...environment };
  const config = await parseConfig(text, path, shell);
  await checkToken(config, environment, user, machine);
  if (instructions === null) {
    await service.install(command, user);
    printLine(`The service runs the tunnels of ${path}.`);
    if (values.system) printLine(`User:   ${user.name} (logins: ${user.settingsDirectory})`);
    printLine(`State:  ${PROGRAM} service status${values.system ? " --system" : ""}`);
    printLine(`Log:    ${service.logCommand}`);
  } else {
    process.stdout.write(`${instructions.install}\n`);
  }
  if (replaceReferences(text, environment).text !== replaceReferences(text, shell).text) {
    const step =
      instructions?.variables ??
      `write them as NAME=value lines to ${environmentFile}, make it private with chmod 600, and run this command again`;
    printLine(`The file uses variables of this shell, which the service does not have: ${step}.`);
  }
  if (instructions === null && !values.system && !(await service.isLingering(user))) {
    printLine("It runs while you are logged in. To start it at boot: loginctl enable-linger");
  }
  return 0;
}

export async function status(
  input: Input<typeof SERVICE_STATUS.options>,
  machine = THIS_MACHINE,
): Promise<number> {
  const { values, positionals } = input;
  const scope = values.system ? "system" : "user";
  rejectExtraArguments(positionals);
  const instructions = findInstructionsFor(scope, machine);
  if (instructions !== null) {
    throw new SettingsError(
      `the service manager of this system has the service's state; run: ${instructions.status}`,
    );
  }
  const service = new SystemdService(scope, machine);
  const current = await service.readStatus();
  if (values.json) printJson({ ...current, unit: service.unitPath });
  else if (current.isInstalled) for (const line of formatStatus(current, service)) printLine(line);
  else printLine(await describeMissing("status", scope, machine));
  return current.isActive ? 0 : 1;
}

export async function uninstall(
  input: Input<typeof SERVICE_UNINSTALL.options>,
  machine = THIS_MACHINE,
): Promise<number> {
  const { values, positionals } = input;
  const scope = values.system ? "system" : "user";
  rejectExtraArguments(positionals);
  const instructions = findInstructionsFor(scope, machine);
  if (instructions !== null) {
    process.stdout.write(`${instructions.uninstall}\n`);
    return 0;
  }
  const wasInstalled = await new SystemdService(scope, machine).uninstall();
  printLine(
    wasInstalled
      ? "The service is stopped and removed."
      : await describeMissing("uninstall", scope, machine),
  );
  return 0;
}

/** @returns null on systems with systemd, where the agent does all of it. @throws SettingsError */
function findInstructionsFor(
  scope: ServiceScope,
  machine: Machine,
  command: string[] = [],
): Instructions | null {
  const instructions = findInstructions(command, machine);
  if (instructions === null || scope === "user") return instructions;
  throw new SettingsError(
    "--system needs systemd, which this system does not have; run the command without it",
  );
}

/** The variables that the service will have, as far as this command can find them out. */
async function findEnvironment(
  { platform, environment }: Machine,
  { name, home }: ServiceUser,
  environmentFile: string,
): Promise<NodeJS.ProcessEnv> {
  // On Windows, a user's variables are those of all programs.
  if (platform === "win32") return environment;
  const own = platform === "darwin" ? {} : await readServiceEnvironment(environmentFile);
  return { HOME: home, ...(name === undefined ? {} : { USER: name }), ...own };
}

/** @throws SettingsError when the service would have no token. */
async function checkToken(
  config: Config,
  environment: NodeJS.ProcessEnv,
  { name, home, settingsDirectory }: ServiceUser,
  machine: Machine,
): Promise<void> {
  const { UNDERPASS_SERVER, UNDERPASS_TOKEN_FILE } = environment;
  const server = await findServer(UNDERPASS_SERVER || config.server, settingsDirectory);
  const tokenFile = UNDERPASS_TOKEN_FILE || config.tokenFile;
  try {
    await findToken(server, tokenFile, { environment, directory: settingsDirectory });
  } catch (error) {
    if (!(error instanceof MissingTokenError)) throw error;
    const file = config.path;
    if (machine.environment[TOKEN_VARIABLE]) {
      throw new SettingsError(
        `the service does not have ${TOKEN_VARIABLE} of this shell; run \`${error.command}\`, or write token_file into ${file}`,
      );
    }
    const step = `run \`${error.command}\`${home === machine.home ? "" : ` as ${name}`}`;
    throw new SettingsError(
      `the service finds no token for ${server.origin} in ${settingsDirectory}; ${step}, or write token_file into ${file}`,
    );
  }
}

const OWNERS: Record<ServiceScope, string> = { user: "this user", system: "the system" };
const OPTIONS: Record<ServiceScope, string> = { user: "", system: " --system" };

/** A user's service and that of the system are often mistaken for each other. */
async function describeMissing(
  action: "status" | "uninstall",
  scope: ServiceScope,
  machine: Machine,
): Promise<string> {
  const other = scope === "system" ? "user" : "system";
  if (await new SystemdService(other, machine).hasUnit()) {
    const command = `${PROGRAM} service ${action}${OPTIONS[other]}`;
    return `No service of ${OWNERS[scope]} is installed, but ${OWNERS[other]} has one; run: ${command}`;
  }
  if (action === "uninstall") return "No service is installed.";
  return `No service is installed; to install it: ${PROGRAM} service install${OPTIONS[scope]}`;
}

function formatStatus(current: ServiceStatus, service: SystemdService): string[] {
  const { isActive, state, pid, since } = current;
  return [
    `State    ${state}${isActive && since !== "" ? ` since ${since}` : ""}`,
    ...(pid === undefined ? [] : [`Process  ${pid}`]),
    `Unit     ${service.unitPath}`,
    `Log      ${service.logCommand}`,
    ...(isActive
      ? []
      : [`The service does not run. Its last messages say why: ${service.recentLogCommand}`]),
  ];
}
