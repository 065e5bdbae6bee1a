/** The screen in a shell with job control: as a job in the background, and with redirected input or output. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startSharedServer, type SharedServer } from "../../../harness/agent/shared-server.ts";
import { openScreen, type Screen } from "../../../harness/screen.ts";

let shared: SharedServer;
beforeAll(async () => {
  shared = await startSharedServer((_request, response) => void response.end("ok"));
});
afterAll(() => shared?.[Symbol.asyncDispose]());

/** An interactive bash, in which `$UNDERPASS` shares the local server under this name. */
async function openShell(name: string): Promise<Screen> {
  const screen = await openScreen(shared.getArgs(name), {
    token: shared.token,
    shell: "-i",
    env: { PS1: "prompt> " },
  });
  await screen.waitFor(/prompt>/);
  return screen;
}

/** What only the screen sends: it hides the cursor and draws frames. */
const hasDrawn = ({ received }: Screen): boolean => /\u001b\[\?(?:25l|2026h)/.test(received);

const visit = async (name: string): Promise<number> => (await shared.visit(name, "/visit")).status;

describe.skipIf(process.platform === "win32")("in an interactive shell", () => {
  test("`underpass http &` serves and prints lines; the shell stays usable, and fg with Ctrl-C ends it", async () => {
    await using screen = await openShell("job-started");
    screen.press("$UNDERPASS &\r");
    await screen.waitFor(/Forwarding http:\/\/job-started/);
    expect(await visit("job-started")).toBe(200);
    await screen.waitFor(/^200 GET \/visit/m);
    screen.press("echo typed-$((1 + 1)); jobs\r");
    await screen.waitFor(/^typed-2\n\[1\]\+ +Running/m);
    expect(hasDrawn(screen)).toBe(false);
    screen.press("fg\r");
    await screen.waitFor(/fg\n\S+.*\n/);
    screen.press("\u0003");
    screen.press("jobs; echo none-$((1 + 1))\r");
    await screen.waitFor(/none-2/);
    expect(screen.rows.join("\n")).not.toMatch(/none-2[^]*(?:Running|Stopped) /);
  });

  test("after Ctrl-Z, bg serves without drawing, and fg brings the screen and its keys back", async () => {
    await using screen = await openShell("job-continued");
    screen.press("$UNDERPASS\r");
    await screen.waitFor(/online, /);
    screen.press("\u001a");
    await screen.waitFor(/Stopped[^]*prompt>/);
    screen.clearReceived();
    screen.press("bg\r");
    expect(await visit("job-continued")).toBe(200);
    screen.press("jobs; stty -a | grep -o ' -\\?icanon'\r");
    await screen.waitFor(/Running[^]*^ icanon$/m);
    expect(hasDrawn(screen)).toBe(false);
    screen.press("fg\r");
    await screen.waitFor(/^Forwarding[^]*\/visit[^]*\? keys$/m);
    screen.press("q");
    await screen.waitFor(/Stopped\.[^]*prompt>/);
  });

  test("a job in the background that is ended draws nothing over the shell", async () => {
    await using screen = await openShell("job-ended");
    screen.press("$UNDERPASS\r");
    await screen.waitFor(/online, /);
    screen.press("\u001a");
    await screen.waitFor(/Stopped[^]*prompt>/);
    screen.clearReceived();
    screen.press("bg; kill %1; wait; echo ended-$((1 + 1))\r");
    await screen.waitFor(/ended-2/);
    expect(screen.received).toContain("Stopped.");
    expect(hasDrawn(screen)).toBe(false);
  });

  test("with its output in a file it writes lines there; without input it draws and Ctrl-C ends it", async () => {
    await using screen = await openShell("job-redirected");
    screen.press("$UNDERPASS > lines.txt\r");
    await expect.poll(() => visit("job-redirected"), { timeout: 30_000 }).toBe(200);
    screen.press("\u0003");
    await screen.waitFor(/\^C[^]*prompt>/);
    expect(hasDrawn(screen)).toBe(false);
    screen.press("clear; cat lines.txt\r");
    await screen.waitFor(/ Forwarding\s+http[^]*200\s+GET\s+\/visit/m);
    screen.press("$UNDERPASS < /dev/null\r");
    await screen.waitFor(/online, [^]*Ctrl\+C quits$/m);
    screen.press("\u0003");
    await screen.waitFor(/Stopped\.[^]*prompt>/);
  });
});
