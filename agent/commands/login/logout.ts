/** `underpass logout`: removes the saved login of a server from this machine. */
import { rejectExtraArguments } from "../../options.ts";
import { printError, printLine } from "../../output/output.ts";
import { findServer, removeCredential, TOKEN_VARIABLE } from "../../settings.ts";
import type { Input } from "../command.ts";
import type { LOGOUT } from "../table/login.ts";
import { PROGRAM } from "../../program.ts";

export async function run({ values, positionals }: Input<typeof LOGOUT.options>): Promise<number> {
  rejectExtraArguments(positionals);
  const server = await findServer(values.server);
  const { path, label, remaining, defaultServer } = await removeCredential(server);
  printLine(
    `Removed the login for ${server.origin} from ${path}. Its token ${label} stays valid until you revoke it in the dashboard: ${PROGRAM} open --server ${server.origin}`,
  );
  if (remaining.length > 0)
    printLine(
      `The logins for these servers are still saved: ${remaining.join(", ")}. Without --server, commands use ${defaultServer}.`,
    );
  if (process.env[TOKEN_VARIABLE]) {
    printError(`${TOKEN_VARIABLE} is set, so commands still use its token; unset it too`);
  }
  return 0;
}
