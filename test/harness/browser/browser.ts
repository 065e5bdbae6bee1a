/** A real browser from npm's own packages: no system browser is needed, and nothing is downloaded. */
import bundled from "@sparticuz/chromium";
import { chromium, type Browser, type Page } from "playwright-core";
import { WAIT_MAX_MS } from "../timeouts.ts";

/** What the bundled build sets for lambdas, and what would make a test of security say less. */
const UNWANTED_FLAGS = ["--single-process", "--disable-web-security", "--allow-running-insecure-content"];

/** @param domain a domain of which every name is this machine's; `localhost` always is one. */
export async function openBrowser(domain = "localhost"): Promise<Browser> {
  return chromium.launch({
    executablePath: await bundled.executablePath(),
    args: [
      ...bundled.args.filter((argument) => !UNWANTED_FLAGS.includes(argument)),
      `--host-resolver-rules=MAP *.${domain} 127.0.0.1`,
    ],
  });
}

export interface OpenedPage {
  page: Page;
  /** Errors of the console and of scripts, and violations of the page's own policy. */
  problems: string[];
  /** Hosts that anything was asked of. */
  hosts: Set<string>;
}

export async function openPage(browser: Browser): Promise<OpenedPage> {
  const page = await browser.newPage();
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
