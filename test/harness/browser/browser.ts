/** A real browser from npm's own packages: no system browser is needed, and nothing is downloaded. */
import bundled from "@sparticuz/chromium";
import {
  chromium,
  type Browser,
  type BrowserContext,
  type LaunchOptions,
  type Page,
} from "playwright-core";
import { hasMemoryDir } from "../directories.ts";
import { WAIT_MAX_MS } from "../timeouts.ts";

/** Pages use no WebGL. Its software renderer would draw all of them, and takes half of the browser's CPU time. */
bundled.setGraphicsMode = false;

/** Flags that the bundled build sets for serverless platforms, or that would weaken security tests or slow them down. */
const UNWANTED_FLAGS = [
  "--single-process",
  "--no-zygote",
  "--disable-web-security",
  "--allow-running-insecure-content",
];

/** @param domain a domain whose names all resolve to this machine, as those of `localhost` always do. */
export async function openBrowser(domain = "localhost"): Promise<Browser> {
  const options = await readLaunchOptions(domain);
  try {
    return await chromium.launch(options);
  } catch (error) {
    // One launch in thousands crashes in Chromium itself, before it has opened anything.
    if (!String(error).includes("signal=SIGSEGV")) throw error;
    return chromium.launch(options);
  }
}

async function readLaunchOptions(domain: string): Promise<LaunchOptions> {
  return {
    executablePath: await bundled.executablePath(),
    // This flag of Playwright keeps the memory that the browser's processes share in files on the disk.
    ignoreDefaultArgs: (await hasMemoryDir()) ? ["--disable-dev-shm-usage"] : [],
    args: [
      ...bundled.args.filter((argument) => !UNWANTED_FLAGS.includes(argument)),
      // Contexts are apart without a process for each.
      "--renderer-process-limit=1",
      `--host-resolver-rules=MAP *.${domain} 127.0.0.1`,
    ],
  };
}

export interface OpenedPage {
  page: Page;
  /** Console errors and warnings, script errors, and violations of the content security policy. */
  problems: string[];
  /** Hosts that the page sent requests to. */
  hosts: Set<string>;
}

/** Browsers that share a process, and neither cookies nor caches. */
export function openContext(browser: Browser, locale = "en-US"): Promise<BrowserContext> {
  // On a machine without a language, the browser's default is "en-US@posix", which no script accepts.
  return browser.newContext({ locale, reducedMotion: "reduce" });
}

/** Opens an empty page without cookies, and with empty caches. Closing the context closes it. */
export async function openPage(browser: Browser, locale?: string): Promise<OpenedPage> {
  return openPageIn(await openContext(browser, locale));
}

export async function openPageIn(context: BrowserContext): Promise<OpenedPage> {
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT_MAX_MS);
  const problems: string[] = [];
  const hosts = new Set<string>();
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("request", (request) => hosts.add(new URL(request.url()).host));
  return { page, problems, hosts };
}
