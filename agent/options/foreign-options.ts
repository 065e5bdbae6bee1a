/** Options that users of ngrok, cloudflared and other tools type, and what to use here. */
import { PROGRAM } from "../program.ts";

interface ForeignOption {
  names: readonly string[];
  /** An option of the commands that the hint is for. */
  of: string;
  hint: string;
}

const FOREIGN_OPTIONS: readonly ForeignOption[] = [
  {
    names: ["--domain", "--hostname"],
    of: "url",
    hint: "use --subdomain NAME, or --url for a whole host",
  },
  { names: ["--domain", "--hostname"], of: "subdomain", hint: "use --subdomain NAME" },
  {
    names: ["--traffic-policy-file", "--policy"],
    of: "policy-file",
    hint: "use --policy-file FILE",
  },
  {
    names: ["--authtoken", "--token"],
    of: "token-file",
    hint: `run ${PROGRAM} login, or use --token-file FILE`,
  },
  {
    names: ["--oauth", "--oidc"],
    of: "url",
    hint: "the tunnel's page in the dashboard can require that visitors sign in",
  },
  { names: ["--request-header-add"], of: "header", hint: "use --header 'NAME: VALUE'" },
  { names: ["--region"], of: "server", hint: "leave it out: the server has no regions to choose" },
  {
    names: ["-p", "--port"],
    of: "subdomain",
    hint: `the port is an argument: ${PROGRAM} http PORT, or ${PROGRAM} tcp PORT`,
  },
  { names: ["--no-inspect"], of: "inspect", hint: "use --inspect off" },
  { names: ["--pooling-enabled"], of: "pool", hint: "use --pool" },
  { names: ["-s", "--sd"], of: "subdomain", hint: "use --subdomain NAME" },
  {
    names: ["--http-host-header", "--host-header-rewrite"],
    of: "host-header",
    hint: "use --host-header NAME",
  },
  {
    names: ["--allow-invalid-cert", "--insecure", "--no-tls-verify"],
    of: "insecure-upstream",
    hint: "use --insecure-upstream",
  },
  {
    names: ["-l", "--local-host"],
    of: "host-header",
    hint: `the host is a part of the argument: ${PROGRAM} http HOST:PORT`,
  },
  { names: ["--cidr-allow"], of: "allow", hint: "use --allow CIDR" },
  {
    names: ["--cidr-allow"],
    of: "url",
    hint: "the tunnel's page in the dashboard has an IP allowlist",
  },
  {
    names: ["--verify-webhook", "--verify-webhook-secret"],
    of: "url",
    hint: `webhook receivers verify signatures: ${PROGRAM} help webhooks`,
  },
  {
    names: ["--log", "--log-format", "--logfile"],
    of: "log-level",
    hint: "redirect the output to a file, as lines or with --json",
  },
];

/** @param specs the options of the command. @returns `; use --inspect off`, or "" when nothing is known about the option. */
export function formatForeignOption(name: string, specs: object): string {
  const found = FOREIGN_OPTIONS.find(
    (option) => option.names.includes(name) && Object.hasOwn(specs, option.of),
  );
  return found === undefined ? "" : `; ${found.hint}`;
}
