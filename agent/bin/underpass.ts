/** The command `underpass`. It prints its version before it loads anything else. */
import { formatVersion } from "../version.ts";

// The reader of a pipe, such as `head`, may end first, and a terminal may be closed. Nothing is left to do then, except for a
// command that serves visitors: it has a listener of its own, which stops it.
process.stdout.on("error", ({ code, errno = 0, message }: NodeJS.ErrnoException) => {
  const isClosed = code === "EPIPE" || code === "EIO";
  if (!isClosed) {
    const { getSystemErrorMap } = process.getBuiltinModule("node:util");
    const [name, meaning] = getSystemErrorMap().get(errno) ?? [code, message];
    process.stderr.write(`underpass: the output can't be written: ${meaning} (${name})\n`);
    process.exit(1);
  }
  if (process.stdout.listenerCount("error") === 1) process.exit(process.exitCode ?? 0);
});
process.stderr.on("error", () => undefined);

const args = process.argv.slice(2);
const [name = "", ...rest] = args;
const isVersionOnly = ["version", "--version", "-v"].includes(name) && rest.length === 0;
// The environment may ask for another format, which is an option of the command.
if (isVersionOnly && !process.env["UNDERPASS_JSON"]) process.stdout.write(`${formatVersion()}\n`);
// The one-file executable is CommonJS, which has no `await` outside of functions.
else void import("../cli/main.ts").then(({ main }) => main(args));
