/** `underpass logout`: removes the saved login of a server from this machine. */
import { rejectExtraArguments } from "../../options.ts";
import { printLine } from "../../output/output.ts";
import { stripControl } from "../../output/format/strip-control.ts";
import { findServer, removeCredential, TOKEN_VARIABLE } from "../../settings.ts";
import type { Input } from "../command.ts";
import type { LOGOUT } from "../table/login.ts";

export async function run({ values, positionals }: Input<typeof LOGOUT.options>): Promise<number> {
  rejectExtraArguments(positionals);
  const server = await findServer(values.server);
  const { path, label, remaining } = await removeCredential(server);
  printLine(
    `Removed the login for ${server.origin} from ${path}. Its token ${stripControl(label)} stays valid until you revoke it in the dashboard: underpass open --server ${server.origin}`,
  );
  if (remaining.length > 0)
    printLine(`The logins for these servers are still saved: ${remaining.join(", ")}.`);
  if (process.env[TOKEN_VARIABLE]) {
    process.stderr.write(
      `underpass: ${TOKEN_VARIABLE} is set, so commands still use its token; unset it too\n`,
    );
  }
  return 0;
}
