/** `underpass start [--all|NAME...]`: the tunnels of underpass.yml in one process, which follows changes of the file. */
import { canShowScreen } from "../screen/terminal.ts";
import { findConfigFile, readConfigFile } from "../config/config-file.ts";
import { parseConfig, type TunnelEntry } from "../config/parse-config.ts";
import { buildJsonSchema } from "../config/schema.ts";
import { GroupInspectors } from "../start/group-inspectors.ts";
import { rejectExtraArguments, UsageError, type OptionValues } from "../options.ts";
import { printIndentedJson } from "../output/output.ts";
import {
  printCheckedFile,
  printGroupJson,
  printGroupLines,
  showGroupScreen,
  type StartOutput,
} from "../output/start.ts";
import { findServerAccess } from "../server-access.ts";
import { ConfigReloader } from "../start/config-reloader.ts";
import { TunnelGroup, type GroupChanges, type GroupConfig } from "../start/tunnel-group.ts";
import type { RejectionError } from "../rejection-error.ts";
import { formatSuggestion } from "../options/suggestion.ts";
import type { Input } from "./command.ts";
import type { START } from "./table/start.ts";
import { runUntilStopped } from "./run-until-stopped.ts";

type Values = OptionValues<typeof START.options>;

export async function run({ values, positionals }: Input<typeof START.options>): Promise<number> {
  if (values.schema) {
    rejectExtraArguments(positionals);
    printIndentedJson(buildJsonSchema());
    return 0;
  }
  if (values.all && positionals.length > 0) throw new UsageError("use names or --all, not both");
  const path = await findConfigFile(values.config);
  const text = await readConfigFile(path);
  if (values.check) {
    rejectExtraArguments(positionals);
    const { tunnels } = await parseConfig(text, path, process.env, values);
    const names = tunnels.map(({ name }) => name);
    printCheckedFile(path, names, values.json);
    return 0;
  }
  const first = await parseGroupConfig(text, path, values);
  rejectInvalidSelection(first.entries, values.all, positionals);
  const isSelected = ({ name }: TunnelEntry): boolean =>
    positionals.length === 0 || positionals.includes(name);
  const group = new TunnelGroup();
  const output = createOutput(group, values, first);
  const inspectors = new GroupInspectors(group);
  await inspectors.start(values.inspect);
  if (group.inspectUrl !== undefined) output.inspecting(group.inspectUrl);
  const apply = (config: GroupConfig): Promise<GroupChanges> =>
    group.apply({ ...config, entries: config.entries.filter(isSelected) });
  const reloader = new ConfigReloader({
    path,
    text,
    parse: (changed) => parseGroupConfig(changed, path, values),
    apply,
    onAccepted: () => output.fileAccepted(),
    onReloaded: (changes, config) => output.reloaded(changes, config),
    onFailed: (reason) => output.reloadFailed(reason),
  });
  try {
    const stoppable = {
      on: (_: "rejected", listener: (rejection: RejectionError) => void) =>
        group.on("rejected", listener),
      start: async () => void (await apply(first)),
      close: () => group.close(),
      reload: reloader.request,
      get openRequests() {
        return group.openRequests;
      },
    };
    return await runUntilStopped(stoppable, output);
  } finally {
    reloader.end();
    inspectors.stop();
  }
}

function createOutput(group: TunnelGroup, values: Values, config: GroupConfig): StartOutput {
  if (values.json) return printGroupJson(group);
  const level = values["log-level"];
  if (level !== undefined || !canShowScreen()) return printGroupLines(group, level ?? "info");
  return showGroupScreen(group, config);
}

/** An option of the command line takes precedence over the file's. */
async function parseGroupConfig(text: string, path: string, values: Values): Promise<GroupConfig> {
  const config = await parseConfig(text, path, process.env, values);
  const access = await findServerAccess({
    server: values.server ?? config.server,
    "token-file": values["token-file"] ?? config.tokenFile,
    "ca-file": values["ca-file"] ?? config.caFile,
  });
  return { ...access, entries: config.tunnels };
}

/** @throws UsageError when a name is unknown, or none is given and there are several tunnels. */
function rejectInvalidSelection(entries: TunnelEntry[], isAll: boolean, names: string[]): void {
  const known = entries.map(({ name }) => name);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    const hint = formatSuggestion(unknown, known);
    throw new UsageError(`the file has no tunnel ${unknown}${hint}; it has ${known.join(", ")}`);
  }
  if (!isAll && names.length === 0 && known.length > 1) {
    throw new UsageError(`name the tunnels, or use --all; the file has ${known.join(", ")}`);
  }
}
