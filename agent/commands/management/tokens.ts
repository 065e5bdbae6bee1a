/** `underpass tokens`: the capability tokens of the organization, from the terminal. */
import type { MintedToken, Token } from "../../../protocol/schemas/tokens.ts";
import { requireAccessToken } from "../../management/credential.ts";
import { findToken, isTokenValid } from "../../management/find-token.ts";
import type { ManagementApi } from "../../management/management-api.ts";
import { openManagementApi } from "../../management/open-management-api.ts";
import { requireNewFile, writeNewFile } from "../../disk/new-file.ts";
import { getOnlyArgument, rejectExtraArguments, UsageError } from "../../options.ts";
import { printError, printJson, printLine } from "../../output/output.ts";
import { describeToken, formatTokenRow, createTokenTable } from "../../output/management/tokens.ts";
import { escapeControls } from "../../../shared/text/escape-controls.ts";
import { explainError } from "../../error-message.ts";
import { SettingsError } from "../../settings-error.ts";
import { confirm } from "./confirm.ts";
import type { Input } from "../command.ts";
import type {
  TOKENS,
  TOKENS_MINT,
  TOKENS_REVOKE,
  TOKENS_ROTATE,
} from "../table/management/tokens.ts";
import { getErrorCode } from "../../../shared/error-message.ts";
import { PROGRAM } from "../../program.ts";

type MintValues = Input<typeof TOKENS_MINT.options>["values"];

export async function listTokens(input: Input<typeof TOKENS.options>): Promise<number> {
  const { values, positionals } = input;
  rejectExtraArguments(positionals);
  const api = await openManagementApi(values);
  const table = createTokenTable();
  let shown = 0;
  for await (const page of api.listTokens()) {
    const rows = values.all ? page : page.filter(isTokenValid);
    if (values.json) rows.forEach((token) => printJson(token));
    else if (rows.length > 0) table.format(rows.map(formatTokenRow)).forEach(printLine);
    shown += rows.length;
  }
  if (shown === 0 && !values.json)
    process.stderr.write(values.all ? "There are no tokens.\n" : "There are no valid tokens.\n");
  return 0;
}

export async function mintToken(input: Input<typeof TOKENS_MINT.options>): Promise<number> {
  const { values, positionals } = input;
  const example = `${PROGRAM} tokens mint ci --output ci.token`;
  const name = getOnlyArgument(positionals, "the name of the token", example);
  requireNewFile(values.output, "--output");
  const api = await openManagementApi(values);
  const minted = await mint(api, name, values);
  return writeOrPrint(api, await setBudget(api, minted, values.budget), values);
}

export async function rotateToken(input: Input<typeof TOKENS_ROTATE.options>): Promise<number> {
  const { values } = input;
  requireNewFile(values.output, "--output");
  const { api, token } = await findNamed(input, "rotate");
  const question = `Replace the token ${token.name} (${token.nonce}), which stops working at once?`;
  if (!(await confirm(question, values.yes))) return 1;
  return writeOrPrint(api, await api.rotateToken(token.nonce), values);
}

export async function revokeToken(input: Input<typeof TOKENS_REVOKE.options>): Promise<number> {
  const { values } = input;
  const { api, token } = await findNamed(input, "revoke");
  const { name, nonce, kind } = token;
  const minted = kind === "master" ? ", and all tokens that it minted" : "";
  const question = `Revoke the token ${name} (${nonce})${minted}?`;
  if (!(await confirm(question, values.yes))) return 1;
  await api.revokeToken(nonce);
  if (values.json) printJson({ name, nonce, revoked: true });
  else printLine(`The token ${name} is revoked, and its agents are disconnected.`);
  return 0;
}

async function findNamed(
  { values, positionals }: Input<typeof TOKENS_REVOKE.options>,
  subcommand: string,
): Promise<{ api: ManagementApi; token: Token }> {
  const text = getOnlyArgument(positionals, "the token", `${PROGRAM} tokens ${subcommand} ci`);
  const api = await openManagementApi(values);
  requireAccessToken(api.credential, api.endpoint.server, `${subcommand} a token`);
  return { api, token: await findToken(api, text) };
}

function mint(api: ManagementApi, name: string, values: MintValues): Promise<MintedToken> {
  const { project, tunnels, bandwidth, budget } = values;
  const fields = {
    name,
    ttlHours: values["valid-for"],
    allowedSubdomains: values["allowed-subdomain"],
    tunnelQuota: tunnels,
    bandwidthLimitMbps: bandwidth,
  };
  const isMasterKey = api.credential.kind === "master key";
  if (project === undefined || !isMasterKey)
    requireAccessToken(api.credential, api.endpoint.server, "mint a token");
  if (project === undefined) return api.mintToken(fields);
  if (tunnels !== undefined || bandwidth !== undefined) {
    throw new UsageError(
      "--tunnels and --bandwidth can't be combined with --project; leave them out",
    );
  }
  if (budget !== undefined && isMasterKey) {
    throw new UsageError(
      "--budget needs an access token: the budget of a master key covers its tokens",
    );
  }
  return api.mintProjectToken(project, fields);
}

/** A token that should have a budget must not stay valid without it. */
async function setBudget(
  api: ManagementApi,
  token: MintedToken,
  cents: number | undefined,
): Promise<MintedToken> {
  if (cents === undefined) return token;
  await revokeOnFailure(api, token, () => api.setBudget(token.nonce, cents));
  return { ...token, monthlyBudgetUsdCents: cents };
}

/** Writes the bytes to the file, or prints them: no other response contains them. */
async function writeOrPrint(
  api: ManagementApi,
  token: MintedToken,
  { output, json }: { output: string | undefined; json: boolean },
): Promise<number> {
  const { wireBytes, wireBytesLen: _, ...described } = token;
  if (output !== undefined) {
    const bytes = Buffer.from(wireBytes, "base64");
    await revokeOnFailure(api, token, () => writeToken(output, bytes));
  }
  const isPrinted = output === undefined;
  if (json) printJson({ ...described, ...(isPrinted ? { wireBytes } : { output }) });
  else if (isPrinted) printLine(wireBytes);
  const advice = isPrinted
    ? "Its bytes, above in base64, are shown only once, and your terminal may keep them. Set them as UNDERPASS_TOKEN where the agent runs, or write them to a file with --output FILE."
    : `Its bytes are in ${output}. Use it with: ${PROGRAM} http 3000${formatNameOption(token)} --token-file ${output}`;
  if (!json) process.stderr.write(`${escapeControls(describeToken(token))}\n${advice}\n`);
  return 0;
}

/** A token that is restricted to names does not allow random ones. */
function formatNameOption({ allowedSubdomains }: MintedToken): string {
  const [pattern] = allowedSubdomains;
  if (pattern === undefined || allowedSubdomains.includes("*")) return "";
  return ` --subdomain ${pattern.replaceAll("*", "shop")}`;
}

async function writeToken(path: string, bytes: Buffer): Promise<void> {
  try {
    await writeNewFile(path, bytes);
  } catch (error) {
    const code = getErrorCode(error) ?? "unknown error";
    throw new SettingsError(`can't write ${path} (${code}); choose another file with --output`);
  }
}

async function revokeOnFailure(
  api: ManagementApi,
  { nonce }: MintedToken,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    await revokeUnusable(api, nonce);
    throw error;
  }
}

/** Says whether the token is revoked. The error that made it unusable is printed after this. */
async function revokeUnusable(api: ManagementApi, nonce: string): Promise<void> {
  try {
    await api.revokeToken(nonce);
    printError("the token was revoked, because of the error that follows");
  } catch (error) {
    printError(
      `the token stays valid, because it could not be revoked: ${explainError(error)}; revoke it later: ${PROGRAM} tokens revoke ${nonce}`,
    );
  }
}
